//! Empties the buffers of all CPUs into one file while the program runs.
//!
//! The records stay as the kernel wrote them: what they mean is found when the program has
//! ended, so that this thread takes little of its CPUs.

use crate::acquire::Gap;
use crate::open::Open;
use crate::windows::Windows;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Says how the collection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was told to, as the program ended.
    Told,
    /// The time was over.
    Deadline,
    /// There was no more room.
    Full,
}

/// Says until when is recorded, and how much.
pub(crate) struct Until<'a> {
    /// Set when the program has ended.
    pub(crate) ended: &'a AtomicBool,
    /// The time at which it is over.
    pub(crate) deadline: Option<Instant>,
    /// The most bytes.
    pub(crate) bytes: u64,
    /// Says what a record costs the program, ns, if it is to be recorded in windows where that
    /// is much.
    pub(crate) in_windows: Option<f64>,
    /// Says which processes are recorded.
    pub(crate) processes: &'a (dyn Fn() -> Vec<u32> + Sync),
}

/// Holds what was collected, beside the records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) why: Why,
    /// The times between windows.
    pub(crate) gaps: Vec<Gap>,
}

/// Milliseconds after which buffers are emptied that are not half full.
const OFTEN: libc::c_int = 50;

/// Moves records from the buffers into `spool` until something ends that, then disables
/// the events and moves the rest.
///
/// # Errors
/// If the file cannot be written; the events are disabled then.
pub(crate) fn collect(open: &mut Open, spool: &File, until: &Until<'_>) -> io::Result<Collected> {
    let mut out = BufWriter::with_capacity(1 << 20, spool);
    let mut polled: Vec<libc::pollfd> = open
        .buffers
        .iter()
        .map(|buffer| libc::pollfd {
            fd: buffer.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let (mut bytes, mut records) = (0, 0);
    let begin = |cost| Windows::begin(cost, until.processes);
    let mut windows = until.in_windows.map(begin);
    let why = loop {
        // Acquire pairs with the Release of who saw the program end.
        let ended = until.ended.load(Ordering::Acquire);
        let over = until
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        if ended || over {
            open.disable();
        }
        match empty(open, &mut out) {
            Ok(moved) => {
                bytes += moved.0;
                records += moved.1;
            }
            Err(e) => {
                open.disable();
                return Err(e);
            }
        }
        if ended {
            break Why::Told;
        }
        if over {
            break Why::Deadline;
        }
        if bytes >= until.bytes {
            open.disable();
            break Why::Full;
        }
        if let Some(windows) = &mut windows {
            windows.turn(open, records);
        }
        let count = libc::nfds_t::try_from(polled.len()).unwrap_or(0);
        let often = windows.as_ref().map_or(OFTEN, |windows| {
            windows.left().as_millis().min(OFTEN.unsigned_abs().into()) as libc::c_int
        });
        // SAFETY: so many entries, of files that are open. A signal only ends it early.
        unsafe { libc::poll(polled.as_mut_ptr(), count, often) };
        // The end of the first thread hangs a file up, and others go on.
        for entry in &mut polled {
            if entry.revents & libc::POLLHUP != 0 {
                entry.fd = -1;
            }
        }
    };
    out.flush()?;
    Ok(Collected {
        why,
        gaps: windows.map_or_else(Vec::new, Windows::end),
    })
}

/// Moves what is in the buffers; returns the number of bytes, and of records.
pub(crate) fn empty(open: &mut Open, out: &mut impl io::Write) -> io::Result<(u64, u64)> {
    /// The kernel's header of a record: kind, flags, size.
    const HEADER: usize = 8;
    let (mut bytes, mut records) = (0, 0);
    for buffer in &mut open.buffers {
        while let Some(record) = buffer.next_record() {
            let size = record.len() + HEADER;
            out.write_all(&record.ty().to_ne_bytes())?;
            out.write_all(&record.misc().to_ne_bytes())?;
            // The kernel's own field has as many bits.
            out.write_all(&(size as u16).to_ne_bytes())?;
            for part in record.data() {
                out.write_all(part)?;
            }
            bytes += size as u64;
            records += 1;
        }
    }
    Ok((bytes, records))
}
