//! The start of the file, and the claims of blocks.
//!
//! Plain memory at fixed places: the processes of the program share it by a
//! mapping, and it outlives each of them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"locktrac";
/// Changes whenever what is written would be read otherwise.
pub const VERSION: u32 = 6;
/// The oldest version that is read: 4 lacks three kinds of records, 5 one, and they are no
/// different otherwise.
pub(crate) const OLDEST: u32 = 4;
/// Says where the first block begins.
pub const FIRST: usize = 4096;
/// Size of a block in bytes.
pub const BLOCK: usize = 32 << 10;

/// The first [`FIRST`] bytes of the file.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`], by which a recording is known.
    pub magic: [u8; 8],
    /// [`VERSION`] of the format.
    pub version: u32,
    /// 1 if ticks are nanoseconds of the monotonic clock, and not those of the
    /// processor's counter.
    pub clock: u32,
    /// Nanoseconds in a tick, as the bits of an `f64`.
    pub nanoseconds_per_tick: u64,
    /// The time at which the recording began, in ticks.
    pub began: u64,
    /// The time at which it stops, in ticks, whatever else happens.
    pub deadline: u64,
    /// Number of blocks that there is room for.
    pub blocks: u32,
    /// Number of blocks claimed; with [`CLOSED`] once no more may be.
    claimed: AtomicU32,
    /// Number of threads so far.
    pub threads: AtomicU32,
    /// Number of program images so far.
    pub images: AtomicU32,
    /// The time at which the recording stopped, in ticks; 0 before. What is later is not
    /// part of it, so that it ends at the same time for all threads.
    stopped: AtomicU64,
    /// The [`Stopped`] that says why.
    reason: AtomicU32,
    /// The [`Source`], as [`Source::number`].
    pub source: u32,
    /// The machine, in words, ending in zeros.
    pub machine: [u8; 512],
    /// The command line of the program, ending in zeros; cut if longer.
    pub command: [u8; 1024],
    /// Holds what a round trip of a cache line between two CPUs of the machine took when
    /// the recording began and when it ended, in nanoseconds, as the bits of an `f64`; 0
    /// if that is not known, as in older recordings.
    round_trips: [AtomicU64; 2],
    /// Counts how many CPUs the program and how many others had on average, as the bits
    /// of an `f64`; 0 both if that is not known, as in older recordings.
    cpus_used: [AtomicU64; 2],
    /// The folder in which the program was started, ending in zeros; empty in older
    /// recordings, and if it is longer.
    folder: [u8; 512],
    /// 1 between windows: operations that wait for nobody are not recorded.
    between: AtomicU32,
    /// Zeros, so that no thread that looks at the above waits for one that writes the below.
    apart: [u8; 124],
    /// Holds what the recorder took of the threads' time, and how much time that was, in
    /// ticks: sums of what was timed, from which the next window is chosen.
    spent: AtomicU64,
    active: AtomicU64,
    /// Zeros up to the size of a page.
    rest: [u8; REST],
}

/// Holds what is left of the page, so that no byte of it is without a value.
const REST: usize = FIRST - 72 - 512 - 1024 - 16 - 16 - 512 - 128 - 16;
const _: () = assert!(size_of::<Header>() == FIRST);
const _: () = assert!(core::mem::offset_of!(Header, rest) == FIRST - REST);

/// The most blocks of a file.
pub const MOST_BLOCKS: u32 = CLOSED - 1;
/// Marks a file as one in which no more blocks are claimed.
const CLOSED: u32 = 1 << 31;

/// Names what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A program's locks, by the recorder in it.
    Program,
    /// A kernel's locks: acquisitions that waited, and neither others nor
    /// releases. Each release stands right behind its acquisition.
    KernelWaits,
    /// A kernel's locks: all acquisitions and releases that lockdep saw.
    KernelLocks,
}

impl Source {
    pub(crate) fn of(number: u32) -> Self {
        match number {
            1 => Self::KernelWaits,
            2 => Self::KernelLocks,
            _ => Self::Program,
        }
    }

    /// Returns what stands for it in [`Header::source`].
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Program => 0,
            Self::KernelWaits => 1,
            Self::KernelLocks => 2,
        }
    }
}

/// Says why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was never told to stop: the recording command did not live to see
    /// the program's end.
    Never,
    /// The program ended.
    Ended,
    /// The file was full.
    Full,
    /// The time was over.
    Deadline,
}

impl Stopped {
    pub(crate) fn of(number: u32) -> Self {
        match number {
            1 => Self::Ended,
            2 => Self::Full,
            3 => Self::Deadline,
            _ => Self::Never,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Never => 0,
            Self::Ended => 1,
            Self::Full => 2,
            Self::Deadline => 3,
        }
    }
}

impl Header {
    /// Returns a header of a recording that begins at `began`, with room for so many
    /// blocks. Longer texts are cut.
    #[must_use]
    pub fn new(
        nanoseconds_per_tick: f64,
        began: u64,
        blocks: u32,
        machine: &str,
        command: &str,
    ) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            clock: 0,
            nanoseconds_per_tick: nanoseconds_per_tick.to_bits(),
            began,
            deadline: u64::MAX,
            blocks,
            claimed: AtomicU32::new(0),
            threads: AtomicU32::new(0),
            images: AtomicU32::new(0),
            stopped: AtomicU64::new(0),
            reason: AtomicU32::new(0),
            source: Source::Program.number(),
            machine: text(machine),
            command: text(command),
            round_trips: [AtomicU64::new(0), AtomicU64::new(0)],
            cpus_used: [AtomicU64::new(0), AtomicU64::new(0)],
            folder: [0; 512],
            between: AtomicU32::new(0),
            apart: [0; 124],
            spent: AtomicU64::new(0),
            active: AtomicU64::new(0),
            rest: [0; REST],
        }
    }

    /// Returns the bytes for the start of a file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: plain numbers without padding, of this size. Nobody else
        // changes them: a header that is shared is a mapping.
        unsafe { core::slice::from_raw_parts((&raw const *self).cast(), FIRST) }
    }

    /// Returns the place in the file of a block that nobody else writes; `None` if
    /// there is none, or the recording is over.
    #[must_use]
    pub fn claim(&self) -> Option<usize> {
        // Relaxed: what a claimant writes is its own until the file is read.
        let claimed = self
            .claimed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |claimed| {
                (claimed < self.blocks).then_some(claimed + 1)
            });
        claimed.ok().map(|number| FIRST + number as usize * BLOCK)
    }

    /// Notes what a round trip between two CPUs takes, in nanoseconds: at the begin of
    /// the recording, or at its `end`.
    pub fn note_round_trip(&self, end: bool, ns: f64) {
        self.round_trips[usize::from(end)].store(ns.to_bits(), Ordering::Relaxed);
    }

    /// Notes the folder in which the program is started, if it fits.
    pub fn note_folder(&mut self, folder: &str) {
        if folder.len() < self.folder.len() {
            self.folder[..folder.len()].copy_from_slice(folder.as_bytes());
        }
    }

    /// Notes how many CPUs the program and how many others had on average.
    pub fn note_cpus_used(&self, program: f64, others: f64) {
        for (note, cpus) in self.cpus_used.iter().zip([program, others]) {
            note.store(cpus.to_bits(), Ordering::Relaxed);
        }
    }

    /// Begins or ends a window, in which operations that wait for nobody are recorded.
    pub fn set_window(&self, within: bool) {
        self.between.store(u32::from(!within), Ordering::Relaxed);
    }

    /// Returns whether such operations are recorded now.
    #[inline(always)]
    #[must_use]
    pub fn is_in_window(&self) -> bool {
        self.between.load(Ordering::Relaxed) == 0
    }

    /// Notes what the recorder took of so much time of a thread, in ticks.
    pub fn note_spent(&self, spent: u64, active: u64) {
        self.spent.fetch_add(spent, Ordering::Relaxed);
        self.active.fetch_add(active, Ordering::Relaxed);
    }

    /// Returns what the recorder took of threads' time until now, and how much that was,
    /// in ticks.
    #[must_use]
    pub fn spent(&self) -> [u64; 2] {
        [&self.spent, &self.active].map(|sum| sum.load(Ordering::Relaxed))
    }

    /// Ends the recording at `tick`, unless it is over already.
    pub fn stop(&self, tick: u64, why: Stopped) {
        let first =
            self.stopped
                .compare_exchange(0, tick.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.reason.store(why.number(), Ordering::Relaxed);
        }
    }

    /// Returns whether the recording is over.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) != 0
    }
}

/// Ends the claims; returns the number of bytes of the file that are used.
/// Processes that still run write to their own blocks only.
pub fn close(header: &Header) -> u64 {
    let claimed = header.claimed.fetch_or(CLOSED, Ordering::Relaxed) & !CLOSED;
    file_bytes(claimed)
}

/// Returns the size of a file with so many blocks.
#[must_use]
pub fn file_bytes(blocks: u32) -> u64 {
    FIRST as u64 + u64::from(blocks) * BLOCK as u64
}

/// Returns the number of blocks in a file of at most so many megabytes (2^20 bytes).
#[must_use]
pub fn room(megabytes: u32) -> u32 {
    let blocks = ((u64::from(megabytes) << 20) - FIRST as u64) / BLOCK as u64;
    u32::try_from(blocks).map_or(CLOSED - 1, |blocks| blocks.min(CLOSED - 1))
}

fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut end = text.len().min(N);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
    bytes
}

/// The fields of a header that is at the start of `bytes`, which has
/// [`FIRST`] of them.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

macro_rules! fields {
    ($($name:ident: $type:ty;)*) => {
        impl Fields<'_> {
            $(pub(crate) fn $name(&self) -> $type {
                let at = core::mem::offset_of!(Header, $name);
                let mut bytes = [0; size_of::<$type>()];
                bytes.copy_from_slice(&self.0[at..at + size_of::<$type>()]);
                <$type>::from_ne_bytes(bytes)
            })*
        }
    };
}

fields! {
    version: u32;
    nanoseconds_per_tick: u64;
    began: u64;
    claimed: u32;
    images: u32;
    stopped: u64;
    reason: u32;
    source: u32;
}

impl Fields<'_> {
    pub(crate) fn blocks_claimed(&self) -> u32 {
        self.claimed() & !CLOSED
    }

    /// Returns the round trips at the begin and at the end, where they are known.
    pub(crate) fn round_trips(&self) -> [Option<f64>; 2] {
        let round_trips = self.pair(core::mem::offset_of!(Header, round_trips));
        round_trips.map(|ns| Some(ns).filter(|ns| ns.is_normal() && *ns > 0.0))
    }

    /// Returns how many CPUs the program and how many others had, if that is known.
    pub(crate) fn cpus_used(&self) -> Option<[f64; 2]> {
        let used = self.pair(core::mem::offset_of!(Header, cpus_used));
        let known = used.iter().all(|cpus| cpus.is_finite() && *cpus >= 0.0);
        (known && used != [0.0, 0.0]).then_some(used)
    }

    fn pair(&self, at: usize) -> [f64; 2] {
        [at, at + 8].map(|at| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.0[at..at + 8]);
            f64::from_bits(u64::from_ne_bytes(bytes))
        })
    }

    pub(crate) fn machine(&self) -> String {
        self.text(core::mem::offset_of!(Header, machine), 512)
    }

    pub(crate) fn command(&self) -> String {
        self.text(core::mem::offset_of!(Header, command), 1024)
    }

    pub(crate) fn folder(&self) -> String {
        self.text(core::mem::offset_of!(Header, folder), 512)
    }

    fn text(&self, at: usize, length: usize) -> String {
        let bytes = self.0[at..at + length].split(|&byte| byte == 0).next();
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }
}
