//! The files that are mapped into the process, each recorded once.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use locklab_profile::maps;
use locklab_trace::{Event, Payload};

/// The most mapped parts that are remembered.
const MOST: usize = 200;
/// Sets how often the list is read at most: code made at run time is in no file.
const READS: u32 = 64;

/// The parts that have been recorded for this image.
#[repr(C)]
pub(crate) struct Known {
    reads: AtomicU32,
    reading: AtomicU32,
    count: AtomicU32,
    from: [AtomicU64; MOST],
    to: [AtomicU64; MOST],
}

impl Known {
    fn has(&self, address: u64) -> bool {
        // Acquire: pairs with the store in `add`.
        let count = self.count.load(Ordering::Acquire) as usize;
        self.from
            .iter()
            .zip(&self.to)
            .take(count)
            .any(|(from, to)| {
                (from.load(Ordering::Relaxed)..to.load(Ordering::Relaxed)).contains(&address)
            })
    }

    /// Remembers a part; returns whether it is new and there is room.
    fn add(&self, from: u64, to: u64) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let at = count as usize;
        if self.has(from) || at >= MOST {
            return false;
        }
        self.from[at].store(from, Ordering::Relaxed);
        self.to[at].store(to, Ordering::Relaxed);
        // Release: pairs with the load in `has`.
        self.count.store(count + 1, Ordering::Release);
        true
    }
}

/// Has the files recorded (`put`) that are new, if one of these addresses is in none that is
/// known.
pub(crate) fn cover(known: &Known, addresses: &[[u8; 8]], put: impl FnMut(&Event<'_>)) {
    let all = addresses
        .iter()
        .all(|address| known.has(u64::from_le_bytes(*address)));
    if all || known.reads.load(Ordering::Relaxed) >= READS {
        return;
    }
    // Who comes second leaves it to the first.
    if known.reading.swap(1, Ordering::Acquire) == 0 {
        known.reads.fetch_add(1, Ordering::Relaxed);
        read(known, put);
        // Release: pairs with the swap above.
        known.reading.store(0, Ordering::Release);
    }
}

fn read(known: &Known, mut put: impl FnMut(&Event<'_>)) {
    maps::each(|mapped| {
        let is_code = mapped.executable && mapped.path.starts_with(b"/");
        if is_code && known.add(mapped.from, mapped.to) {
            put(&Event::Module {
                from: mapped.from,
                to: mapped.to,
                offset: mapped.offset,
                path: Payload(mapped.path),
            });
        }
        ControlFlow::Continue(())
    });
}
