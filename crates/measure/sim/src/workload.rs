//! The work of simulated threads around the lock.
//!
//! The work is the published benchmarks' with the memory that they touch,
//! the same for every lock and machine.

use crate::counting::Counting;
use crate::engine::{Engine, engine};
use crate::kind::LockKind;
use crate::metrics::{acquired, operation, releases, wants};
use crate::platform::Word;
use crate::repeats::{Unit, repeat};
use crate::scheduler::sleep;
use locklab_locks::platform::{Atomic, Ordering};
use locklab_workload::{MOST_LOCKS, Mix, Turn, Use, turns::longest};
use std::ptr::NonNull;

/// The longest piece of work of a thread that shares its CPU, in cycles: it loses the CPU
/// between two.
const PIECE_CYCLES: u64 = 60_000;

/// The most locks of [`Workload::XfsCreate`].
const MOST_HOT_LOCKS: usize = 16;

/// The work of threads, in an endless loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// The kernel benchmark of report 3: critical units write one line of a
    /// buffer that all share, non-critical ones of a private one, interrupts are off from
    /// before the acquisition until after the release. A length of n is n + 1
    /// units.
    Matrix {
        /// Length of the critical section.
        critical: u32,
        /// Length of the non-critical section.
        non_critical: u32,
    },
    /// Means the same with readers, several locks or lines, or times outside that vary.
    Mixed(Mixed),
    /// One system call on a file of the thread's own under one big lock
    /// (report 4).
    Fstat(Fstat),
    /// Many short holds on a few hot locks, most on one (report 2).
    XfsCreate(XfsCreate),
    /// One lock in a loop, as in most published benchmarks of locks.
    Loop(Loop),
    /// A counter that all change, without a lock; a turn counts as an acquisition.
    Counter(Counter),
}

/// Parameters of [`Workload::Counter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// Computing between the two changes of a turn, ns.
    pub inside_ns: f64,
    /// Computing between two turns, ns.
    pub outside_ns: f64,
    /// Holds what a turn does to the word.
    pub counting: Counting,
    /// Says what [`Loop::by_clock`] does.
    pub by_clock: bool,
}

/// Parameters of [`Workload::Mixed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed {
    /// Units of the critical section.
    pub critical: u64,
    /// Units of the non-critical section, on average.
    pub non_critical: u64,
    /// Number of locks.
    pub locks: u32,
    /// Holds what a turn does beyond its lengths.
    pub mix: Mix,
    /// Units of the first thread's critical sections; 0 if they are as long as the others'.
    pub hog: u64,
}

impl Mixed {
    /// Returns [`Workload::Matrix`] of these lengths.
    fn usual(critical: u32, non_critical: u32) -> Self {
        Self {
            critical: u64::from(critical) + 1,
            non_critical: u64::from(non_critical) + 1,
            locks: 1,
            mix: Mix::default(),
            hog: 0,
        }
    }

    /// Returns whether every turn is like every other.
    pub(crate) fn is_usual(&self) -> bool {
        self.locks == 1 && self.mix.is_usual()
    }
}

/// Parameters of [`Workload::Loop`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loop {
    /// Computing under the lock, ns.
    pub inside_ns: f64,
    /// Computing between two holds, ns.
    pub outside_ns: f64,
    /// Percentage of the holds that write a line which all share (the
    /// others read it).
    pub write_percent: u32,
    /// Number of threads, at most, whose counts share a line, evenly over the lines: each thread
    /// writes its own count in a hold. With 0 there are no counts.
    pub counts_in_line: u32,
    /// One hold in this many takes [`Loop::long_ns`] more; 0 for none.
    pub long_one_in: u32,
    /// Computing under the lock in such a hold, ns.
    pub long_ns: f64,
    /// Number of locks, of which each turn takes one at random; 0 is one too.
    pub locks: u32,
    /// Says whether its lengths are times by the clock while all threads have work: a
    /// benchmark whose threads measure their lengths together makes them so. Whether a
    /// sibling thread computes or waits then makes no difference; once it has ended,
    /// computing takes less. Otherwise two siblings that compute slow each other.
    pub by_clock: bool,
    /// One turn of a thread in this many takes the lock to write, the others to read;
    /// 0 if all write.
    pub write_one_in: u64,
}

/// Parameters of [`Workload::Fstat`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fstat {
    /// User code, entry and exit of the system call and the file table, ns.
    pub outside_ns: f64,
    /// Time under the lock, ns.
    pub inside_ns: f64,
    /// Says how often the holder reads the lock's own state while it holds (assertions
    /// that the lock is held).
    pub state_reads: u32,
}

impl Default for Fstat {
    fn default() -> Self {
        Self {
            outside_ns: 250.0,
            inside_ns: 20.0,
            state_reads: 2,
        }
    }
}

/// Parameters of [`Workload::XfsCreate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XfsCreate {
    /// Computing for one file, all threads apart, ns.
    pub outside_ns: f64,
    /// Acquisitions of the hottest lock for one file.
    pub hot: u32,
    /// Acquisitions of each of the other locks for one file.
    pub warm: u32,
    /// Number of other locks.
    pub warm_locks: u32,
    /// Length of a hold, ns.
    pub inside_ns: f64,
}

impl Default for XfsCreate {
    fn default() -> Self {
        Self {
            outside_ns: 44_000.0,
            hot: 6,
            warm: 4,
            warm_locks: 4,
            inside_ns: 20.0,
        }
    }
}

impl Workload {
    /// Returns the name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Matrix { .. } | Self::Mixed(_) => "matrix",
            Self::Fstat(_) => "fstat",
            Self::XfsCreate(_) => "xfs-create",
            Self::Loop(_) => "loop",
            Self::Counter(_) => "counter",
        }
    }

    /// Returns the number of locks that it uses.
    pub fn locks(&self) -> usize {
        match self {
            Self::Matrix { .. } | Self::Fstat(_) | Self::Counter(_) => 1,
            Self::Loop(turn) => turn.locks.max(1) as usize,
            Self::XfsCreate(mix) => 1 + mix.warm_locks as usize,
            Self::Mixed(mixed) => mixed.locks as usize,
        }
    }

    /// Returns the number of shared lines that each lock protects.
    pub(crate) fn lines(&self) -> usize {
        match self {
            Self::Mixed(mixed) => mixed.mix.lines as usize,
            _ => 1,
        }
    }

    /// Returns the number of lines with the threads' own counts.
    pub(crate) fn lines_of_counts(&self, threads: usize) -> usize {
        match self {
            Self::Loop(turn) if turn.counts_in_line > 0 => {
                threads.div_ceil(turn.counts_in_line as usize)
            }
            _ => 0,
        }
    }

    /// Returns why it cannot be run; `None` if it can.
    pub(crate) fn fault(&self) -> Option<String> {
        let locks = self.locks();
        match self {
            Self::XfsCreate(_) if locks > MOST_HOT_LOCKS => {
                Some(format!("xfs-create uses at most {MOST_HOT_LOCKS} locks"))
            }
            // A choice among one lock may be one cell of several.
            Self::Mixed(mixed) => {
                let wrong = mixed.mix.check(&[mixed.locks, MOST_LOCKS]).err();
                wrong.map(|wrong| wrong.to_string())
            }
            _ if locks > MOST_LOCKS as usize => {
                Some(format!("a workload uses at most {MOST_LOCKS} locks"))
            }
            _ => None,
        }
    }

    /// Returns the longest time without an access to shared memory, ns.
    pub(crate) fn longest_quiet_ns(&self) -> f64 {
        match self {
            Self::Matrix {
                critical,
                non_critical,
            } => (*critical).max(*non_critical) as f64 * 20.0,
            Self::Mixed(mixed) => {
                let outside = mixed.non_critical as f64 * longest(mixed.mix.distribution);
                let inside = mixed.critical.max(mixed.hog) as f64;
                outside.max(inside) * 20.0 + mixed.mix.hold_sleep_ns as f64
            }
            Self::Fstat(call) => call.outside_ns.max(call.inside_ns) * 4.0,
            Self::XfsCreate(mix) => mix.outside_ns.max(mix.inside_ns) * 4.0,
            Self::Loop(turn) => turn.outside_ns.max(turn.inside_ns + turn.long_ns) * 4.0,
            Self::Counter(counter) => counter.outside_ns.max(counter.inside_ns) * 4.0,
        }
    }
}

/// The source and destination of a unit of work, on two lines.
#[repr(C, align(64))]
pub(crate) struct Buffer {
    to: [Word<u32>; 16],
    from: [Word<u32>; 16],
}

impl Buffer {
    pub(crate) fn new() -> Self {
        let line = || std::array::from_fn(|_| Word::new(0));
        Self {
            to: line(),
            from: line(),
        }
    }

    /// Reads the line that is written, and adds one to it if `write`.
    fn count(&self, write: bool) {
        let count = self.to[0].load(Ordering::Relaxed);
        if write {
            self.to[0].store(count.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Does so many units: each reads a line that no CPU writes, and writes
    /// another.
    fn units(&self, engine: &Engine, count: u64) {
        let mut left = count;
        while left > 0 {
            let piece = match engine.hypervisor.fair {
                Some(_) => left.min(PIECE_CYCLES / engine.costs.unit),
                None => left,
            };
            self.piece(engine, piece);
            left -= piece;
            if left > 0 {
                engine.sync();
            }
        }
    }

    /// Does so many units without a chance for the system to take the CPU away, unless it
    /// is due.
    fn piece(&self, engine: &Engine, count: u64) {
        let cycles = engine.costs.unit.saturating_sub(engine.costs.l1 + 1);
        let mut left = count;
        while left > 0 {
            let word = self.from[0].load(Ordering::Relaxed);
            self.to[0].store(word, Ordering::Relaxed);
            engine.work(cycles);
            let unit = Unit {
                read: self.from[0].address(),
                write: (self.to[0].address(), Word::<u32>::SIZE, u64::from(word)),
                cycles,
            };
            left -= 1;
            // SAFETY: our own address and size.
            left -= unsafe { repeat(engine, &unit, left) };
        }
    }

    /// Does one unit that reads the line which writers write.
    #[inline]
    fn read_unit(&self, engine: &Engine) {
        self.to[0].load(Ordering::Relaxed);
        engine.work(engine.costs.unit.saturating_sub(engine.costs.l1));
    }
}

/// The state of one simulated thread.
pub(crate) struct Thread<'a> {
    pub(crate) kind: &'a dyn LockKind,
    pub(crate) locks: &'a [NonNull<()>],
    /// One context for each lock; of many locks one for each that it can hold at once.
    pub(crate) contexts: Vec<NonNull<()>>,
    /// As many shared buffers for each lock as it protects lines.
    pub(crate) shared: &'a [&'a Buffer],
    pub(crate) private: &'a Buffer,
    /// The line with its own counts and those of its neighbours, if it writes such.
    pub(crate) counts: Option<&'a Buffer>,
    /// Its turns, which it repeats; none if every turn is like every other.
    pub(crate) turns: &'a [Turn],
}

impl Thread<'_> {
    /// Does this many operations, unless the engine ends the run before.
    pub(crate) fn run(&self, workload: &Workload, operations: u64) {
        let engine = engine();
        for number in 0..operations {
            match workload {
                Workload::Matrix {
                    critical,
                    non_critical,
                } => self.mixed(engine, &Mixed::usual(*critical, *non_critical), number),
                Workload::Mixed(mixed) => self.mixed(engine, mixed, number),
                Workload::Fstat(call) => {
                    self.compute(engine, call.outside_ns);
                    self.hold(engine, 0, |thread| {
                        self.compute(engine, call.inside_ns / 2.0);
                        for _ in 0..call.state_reads {
                            // SAFETY: the lock stays in the arena.
                            unsafe { thread.kind.is_held(thread.locks[0]) };
                        }
                        self.compute(engine, call.inside_ns / 2.0);
                    });
                }
                Workload::XfsCreate(mix) => self.create(engine, mix),
                Workload::Loop(turn) => self.turn(engine, turn, number),
                Workload::Counter(counter) => {
                    self.compute_for(engine, counter.outside_ns, counter.by_clock);
                    let wanted = wants(engine, 0, Use::Write);
                    let word = &self.shared[0].to[0];
                    counter.counting.begin(word);
                    acquired(engine, 0, wanted, Use::Write);
                    releases(engine, 0, Use::Write);
                    // An interrupt may come during any work, even of no cycles.
                    if counter.inside_ns > 0.0 {
                        let cycles = (counter.inside_ns * engine.costs.clock_ghz) as u64;
                        engine.take(cycles, counter.by_clock);
                    }
                    counter.counting.end(word);
                }
            }
            operation(engine);
        }
    }

    fn mixed(&self, engine: &Engine, mixed: &Mixed, number: u64) {
        let turn = match self.turns.len() as u64 {
            0 => Turn::usual(mixed.non_critical),
            n => self.turns[(number % n) as usize],
        };
        let outside = u64::from(turn.outside);
        self.private.units(engine, outside);
        self.jitter(engine, outside * engine.costs.unit);
        engine.current().masked.set(true);
        engine.work(engine.costs.mask);
        let to = turn.purpose();
        let first = turn.first as usize;
        self.hold_to(engine, first, to, |thread| match turn.nested() {
            None => thread.inside(engine, mixed, first, to),
            Some(second) => {
                let second = second as usize;
                let context = thread.context(second, 1);
                thread.hold_with(engine, (second, context), to, |thread| {
                    thread.inside(engine, mixed, second, to);
                });
            }
        });
        engine.work(engine.costs.mask);
        engine.current().masked.set(false);
    }

    /// Works the units of a critical section, over the lines of its lock in turn.
    fn inside(&self, engine: &Engine, mixed: &Mixed, lock: usize, to: Use) {
        let units = match mixed.hog {
            hog if hog > 0 && engine.current.get() == 0 => hog,
            _ => mixed.critical,
        };
        self.inside_units(engine, (mixed.mix.lines as usize, units), lock, to);
        if mixed.mix.hold_sleep_ns > 0 {
            let cycles = mixed.mix.hold_sleep_ns as f64 * engine.costs.clock_ghz;
            sleep(engine, cycles as u64);
        }
    }

    fn inside_units(&self, engine: &Engine, (lines, units): (usize, u64), lock: usize, to: Use) {
        let of_lock = &self.shared[lock * lines..][..lines];
        if let ([one], Use::Write) = (of_lock, to) {
            return one.units(engine, units);
        }
        for unit in 0..units {
            let line = of_lock[(unit % lines as u64) as usize];
            match to {
                Use::Write => line.units(engine, 1),
                Use::Read => line.read_unit(engine),
            }
        }
    }

    fn turn(&self, engine: &Engine, turn: &Loop, number: u64) {
        self.compute_for(engine, turn.outside_ns, turn.by_clock);
        let write = engine.rng.below(100) < turn.write_percent as usize;
        let long = turn.long_one_in > 0 && engine.rng.below(turn.long_one_in as usize) == 0;
        // One lock takes no draw.
        let lock = match turn.locks {
            0 | 1 => 0,
            several => engine.rng.below(several as usize),
        };
        // The last of each row of turns writes.
        let to = match turn.write_one_in {
            0 | 1 => Use::Write,
            row if number % row == row - 1 => Use::Write,
            _ => Use::Read,
        };
        self.hold_to(engine, lock, to, |thread| {
            thread.shared[lock].count(write && to == Use::Write);
            if let Some(counts) = thread.counts {
                counts.count(true);
            }
            let more = if long { turn.long_ns } else { 0.0 };
            let cycles = (turn.inside_ns + more) * engine.costs.clock_ghz;
            take(engine, cycles as u64, turn.by_clock);
        });
    }

    fn create(&self, engine: &Engine, mix: &XfsCreate) {
        let holds = mix.hot + mix.warm * mix.warm_locks;
        // Holds come in a random order with equal work between.
        // (On the stack, which is given up without dropping anything.)
        let mut left = [0; MOST_HOT_LOCKS];
        left[1..=mix.warm_locks as usize].fill(mix.warm);
        left[0] = mix.hot;
        for remaining in (1..=holds).rev() {
            self.compute(engine, mix.outside_ns / f64::from(holds));
            engine.evict_l1();
            let mut pick = engine.rng.below(remaining as usize) as u32;
            let lock = left
                .iter()
                .position(|&count| {
                    let here = pick < count;
                    pick = pick.wrapping_sub(if here { 0 } else { count });
                    here
                })
                .unwrap_or(0);
            left[lock] -= 1;
            self.hold(engine, lock, |thread| {
                thread.shared[lock].units(engine, 1);
                engine.work((mix.inside_ns * engine.costs.clock_ghz) as u64);
            });
        }
    }

    fn hold(&self, engine: &Engine, lock: usize, inside: impl FnOnce(&Self)) {
        self.hold_to(engine, lock, Use::Write, inside);
    }

    fn hold_to(&self, engine: &Engine, lock: usize, to: Use, inside: impl FnOnce(&Self)) {
        let context = self.context(lock, 0);
        self.hold_with(engine, (lock, context), to, inside);
    }

    /// Returns its context for a lock that it takes while it holds so many others.
    fn context(&self, lock: usize, held: usize) -> NonNull<()> {
        match self.contexts.len() == self.locks.len() {
            true => self.contexts[lock],
            false => self.contexts[held],
        }
    }

    fn hold_with(
        &self,
        engine: &Engine,
        (lock, context): (usize, NonNull<()>),
        to: Use,
        inside: impl FnOnce(&Self),
    ) {
        let wanted = wants(engine, lock, to);
        let place = self.locks[lock];
        // SAFETY: the context is this thread's own, for this lock or idle; lock and
        // context stay in the arena; the engine has as many CPUs as threads.
        unsafe {
            match to {
                Use::Write => self.kind.lock(place, context),
                Use::Read => self.kind.read_lock(place, context),
            }
        }
        acquired(engine, lock, wanted, to);
        inside(self);
        releases(engine, lock, to);
        // SAFETY: held, with this context.
        unsafe {
            match to {
                Use::Write => self.kind.unlock(place, context),
                Use::Read => self.kind.read_unlock(place, context),
            }
        }
    }

    /// Computes for this long and up to a tenth more.
    fn compute(&self, engine: &Engine, ns: f64) {
        self.compute_for(engine, ns, false);
    }

    /// Computes as [`Thread::compute`] does; see [`Loop::by_clock`].
    fn compute_for(&self, engine: &Engine, ns: f64, by_clock: bool) {
        let cycles = (ns * engine.costs.clock_ghz) as u64;
        // A time by the clock is a mean; otherwise it is the least.
        let least = if by_clock {
            cycles - cycles / 20
        } else {
            cycles
        };
        take(engine, least, by_clock);
        engine.take(jitter(engine, cycles), by_clock);
    }

    /// Adds up to a tenth.
    fn jitter(&self, engine: &Engine, cycles: u64) {
        engine.work(jitter(engine, cycles));
    }
}

/// Computes for so many cycles, in pieces where threads share CPUs.
fn take(engine: &Engine, cycles: u64, by_clock: bool) {
    let mut left = cycles;
    while engine.hypervisor.fair.is_some() && left > PIECE_CYCLES {
        engine.take(PIECE_CYCLES, by_clock);
        engine.sync();
        left -= PIECE_CYCLES;
    }
    engine.take(left, by_clock);
}

/// Returns up to a tenth of so many cycles, because real loops are never synchronous:
/// one cycle at least decides at times which of two CPUs is first.
pub(crate) fn jitter(engine: &Engine, cycles: u64) -> u64 {
    engine.rng.below((cycles / 10).max(2) as usize) as u64
}
