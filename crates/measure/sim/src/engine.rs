//! The engine: the clock, the queue of events, memory and CPUs of one running
//! simulation.
//!
//! Time is counted in cycles of the machine's clock. The CPU whose code runs
//! keeps its own time in [`Engine::time`] and may run ahead, without
//! synchronisation, until the earliest queued event; before each access to
//! shared memory it checks whether that is due ([`Engine::sync`]). So accesses
//! take effect in the order of time, and a run of cache hits needs no switch.
//!
//! Everything is in cells and borrowed for the length of a function that cannot
//! reach a coroutine switch: no mutable borrow is alive across one. What
//! coherence, spinning, the hypervisor and store buffers do is in modules above
//! this one, which must never import any of them.

use crate::costs::Costs;
use crate::counts::Counts;
use crate::cpu::{Cpu, Phase};
use crate::error::SimError;
use crate::event::{Kind, Queue};
use crate::hypervisor::Hypervisor;
use crate::line::Line;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::places::Places;
use crate::region::Region;
use crate::rng::Rng;
use crate::topology::Topology;
use crate::trace::Trace;
use std::cell::{Cell, RefCell};

/// Describes what a core's CPUs have in common.
#[derive(Default)]
pub(crate) struct Core {
    /// CPUs at work on it.
    busy: Cell<u8>,
    /// CPUs of it that have done all their work.
    ended: Cell<u8>,
    /// Generation of its L1: lines used in an earlier one are in L2.
    generation: Cell<u32>,
    is_small: bool,
}

/// Describes what has happened so far.
pub(crate) struct Tally {
    /// Hash of every access.
    pub(crate) hash: Cell<u64>,
    pub(crate) accesses: Cell<u64>,
    pub(crate) transfers: Cell<u64>,
    pub(crate) writes: Cell<u64>,
    pub(crate) events: Cell<u64>,
}

/// One running simulation.
pub(crate) struct Engine {
    pub(crate) queue: Queue,
    pub(crate) time: Cell<u64>,
    pub(crate) current: Cell<usize>,
    pub(crate) memory: Memory,
    pub(crate) lines: Box<[Line]>,
    pub(crate) cpus: Box<[Cpu]>,
    cores: Box<[Core]>,
    pub(crate) costs: Costs,
    pub(crate) topology: Topology,
    /// Places of cores and lines; none where all are alike.
    pub(crate) places: Option<Places>,
    pub(crate) rng: Rng,
    pub(crate) hypervisor: Hypervisor,
    pub(crate) counts: Counts,
    pub(crate) trace: Option<Trace>,
    pub(crate) tally: Tally,
    /// The table of visible readers: its first entry, and how many there are.
    pub(crate) visible: Cell<(*const (), usize)>,
    /// The parking lot, of `parking`'s types: its counter and its buckets.
    pub(crate) lot: Cell<(*const (), *const ())>,
    /// The queues of threads that sleep by address, of `sleepers`' type.
    pub(crate) sleepers: Cell<*const ()>,
    /// What the system keeps of those who wait for a word, of `futex_queue`'s type.
    pub(crate) futexes: Cell<*const ()>,
    pub(crate) stopped: Cell<bool>,
    pub(crate) failure: RefCell<Option<SimError>>,
}

thread_local! {
    static ENGINE: Cell<*const Engine> = const { Cell::new(std::ptr::null()) };
}

/// The engine whose simulation runs on this thread.
///
/// # Panics
/// Outside a simulation.
#[inline(always)]
pub(crate) fn engine<'a>() -> &'a Engine {
    let engine = ENGINE.get();
    assert!(
        !engine.is_null(),
        "a simulated lock was used outside a simulation"
    );
    // SAFETY: set only while `run` or `enter` has the engine borrowed, and
    // coroutines, the only other users, live within that time.
    unsafe { &*engine }
}

impl Engine {
    /// Makes an engine for this many CPUs, with this many lines of memory in
    /// its arena and more elsewhere.
    pub(crate) fn new(
        machine: &Machine,
        hypervisor: Hypervisor,
        cpus: usize,
        (lines, regions): (usize, Vec<Region>),
        seed: u64,
        counts: Counts,
        trace: Option<Trace>,
    ) -> Self {
        let (memory, lines) = Memory::new(lines, cpus, regions);
        let topology = Topology::new(machine);
        let core = |core: usize| Core {
            is_small: topology.is_small(core),
            ..Core::default()
        };
        Self {
            queue: Queue::new(),
            time: Cell::new(0),
            current: Cell::new(0),
            memory,
            lines: (0..lines).map(|_| Line::new()).collect(),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            cores: (0..topology.cores()).map(core).collect(),
            costs: Costs::new(machine),
            topology,
            places: Places::new(machine, lines, seed),
            rng: Rng::new(seed),
            hypervisor,
            counts,
            trace,
            tally: Tally {
                hash: Cell::new(seed),
                accesses: Cell::new(0),
                transfers: Cell::new(0),
                writes: Cell::new(0),
                events: Cell::new(0),
            },
            visible: Cell::new((std::ptr::null(), 0)),
            lot: Cell::new((std::ptr::null(), std::ptr::null())),
            sleepers: Cell::new(std::ptr::null()),
            futexes: Cell::new(std::ptr::null()),
            stopped: Cell::new(false),
            failure: RefCell::new(None),
        }
    }

    /// Makes this the engine of `f`, which sets up simulated memory.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(*const Engine);
        impl Drop for Leave {
            fn drop(&mut self) {
                ENGINE.set(self.0);
            }
        }
        let _leave = Leave(ENGINE.replace(self));
        f()
    }

    #[inline(always)]
    pub(crate) fn current(&self) -> &Cpu {
        &self.cpus[self.current.get()]
    }

    /// The line of an address, or a failure if it is not simulated memory.
    #[inline(always)]
    pub(crate) fn line_of(&self, address: usize) -> usize {
        match self.memory.line_in_arena(address) {
            Some(line) => line,
            None => self.line_elsewhere(address),
        }
    }

    #[inline(never)]
    fn line_elsewhere(&self, address: usize) -> usize {
        if let Some(line) = self.memory.line_at(address) {
            return line;
        }
        self.fail(SimError::Outside { address });
        self.suspend(Phase::Done);
        unreachable!("a CPU that has failed is not resumed")
    }

    /// Processes all events before the running CPU's time.
    #[inline(always)]
    pub(crate) fn sync(&self) {
        if self.time.get() >= self.queue.horizon() || self.current().preempt.get() {
            self.schedule(self.current.get(), self.time.get());
            self.suspend(Phase::Sync);
        }
    }

    /// Synchronises as [`Engine::sync`] does before an access that hits, which may be early:
    /// no request that another CPU still makes can be granted before it has
    /// travelled, and no other CPU uses a private line.
    #[inline(always)]
    pub(crate) fn sync_for(&self, line: &Line) {
        let cpu = self.current();
        let ahead = (self.time.get() + 1).saturating_sub(self.queue.horizon());
        let too_early =
            ahead > 0 && !line.private.get() && (ahead > cpu.lookahead.get() || !line.quiet());
        if too_early || cpu.preempt.get() {
            self.sync();
        }
    }

    /// Makes a CPU continue at `time` instead of its previous time.
    #[inline]
    pub(crate) fn schedule(&self, cpu: usize, time: u64) {
        let seq = self.queue.push(time, Kind::Cpu, cpu);
        self.cpus[cpu].event.set(seq);
    }

    /// Switches to the engine until the CPU is resumed.
    pub(crate) fn suspend(&self, phase: Phase) {
        let cpu = self.current();
        cpu.phase.set(phase);
        cpu.since.set(self.time.get());
        if phase != Phase::Sync {
            self.set_busy(self.current.get(), false);
        }
        // SAFETY: set by the coroutine itself when it started; we run on its
        // stack, because only the running CPU's code calls this.
        unsafe { (*cpu.yielder.get()).suspend(()) };
    }

    /// Suspends as [`Engine::suspend`] does, and counts the time as one for which the CPU waited
    /// for a line.
    pub(crate) fn stall(&self, phase: Phase) {
        let (cpu, from) = (self.current(), self.time.get());
        self.suspend(phase);
        cpu.stalled.set(cpu.stalled.get() + self.time.get() - from);
    }

    /// Lets the running CPU, which holds no lock of the system any more, be descheduled again.
    pub(crate) fn leave_system(&self) {
        let cpu = self.current();
        cpu.in_system.set(false);
        if cpu.preempt_after.replace(false) {
            cpu.preempt.set(true);
        }
    }

    /// Marks a CPU as using, or not, the issue slots of its core.
    #[inline]
    pub(crate) fn set_busy(&self, cpu: usize, busy: bool) {
        let cpu = &self.cpus[cpu];
        if cpu.busy.get() != busy {
            cpu.busy.set(busy);
            let core = &self.cores[cpu.core.get()].busy;
            core.set(if busy { core.get() + 1 } else { core.get() - 1 });
        }
    }

    /// Returns how long the running CPU computes for what takes `cycles` cycles alone.
    #[inline]
    pub(crate) fn shared_cycles(&self, cycles: u64) -> u64 {
        let core = &self.cores[self.current().core.get()];
        if self.costs.smt != 1024 && core.busy.get() > 1 {
            (cycles * self.costs.smt) >> 10
        } else if core.is_small {
            (cycles * self.costs.small) >> 10
        } else {
            cycles
        }
    }

    /// Lets the running CPU compute for `cycles` cycles.
    #[inline]
    pub(crate) fn work(&self, cycles: u64) {
        self.work_many(cycles, 1);
    }

    /// Works as [`Engine::work`] does; `by_clock` is for what takes so many cycles while a sibling
    /// thread has work: less once that has ended.
    #[inline]
    pub(crate) fn take(&self, cycles: u64, by_clock: bool) {
        let core = &self.cores[self.current().core.get()];
        self.pass(match by_clock {
            true if core.ended.get() > 0 => (cycles << 10) / self.costs.smt,
            true => cycles,
            false => self.shared_cycles(cycles),
        });
    }

    /// Notes that the running CPU has done all its work.
    pub(crate) fn ends(&self) {
        let ended = &self.cores[self.current().core.get()].ended;
        ended.set(ended.get() + 1);
    }

    /// Works as [`Engine::work`] does, so many times.
    #[inline]
    pub(crate) fn work_many(&self, cycles: u64, times: u64) {
        self.pass(self.shared_cycles(cycles) * times);
    }

    /// Lets so many cycles of the running CPU pass, and what interrupts it.
    #[inline]
    fn pass(&self, cycles: u64) {
        let cpu = self.current();
        let mut time = self.time.get() + cycles;
        if time >= cpu.next_steal.get() {
            time += self.costs.steal.1;
            cpu.stolen.set(cpu.stolen.get() + self.costs.steal.1);
            cpu.next_steal
                .set(time + self.rng.exponential(self.costs.steal.0));
        }
        if time >= cpu.next_interrupt.get() && !cpu.masked.get() {
            time += self.costs.interrupt.1;
            cpu.next_interrupt
                .set(time + self.rng.exponential(self.costs.interrupt.0));
        }
        self.time.set(time);
    }

    /// Generation of a core's L1: lines used in an earlier one are in L2.
    #[inline(always)]
    pub(crate) fn l1_generation(&self, core: usize) -> u32 {
        self.cores[core].generation.get()
    }

    /// Notes that the running CPU's own work has evicted everything from its
    /// L1.
    pub(crate) fn evict_l1(&self) {
        let generation = &self.cores[self.current().core.get()].generation;
        generation.set(generation.get().wrapping_add(1));
    }

    /// Charges for a hit, which costs more if the line has been evicted from L1
    /// meanwhile.
    #[inline(always)]
    pub(crate) fn hit(&self, index: usize) {
        let line = &self.lines[index];
        let generation = self.l1_generation(self.current().core.get());
        if line.generation.get() != generation {
            line.generation.set(generation);
            self.time.set(self.time.get() + self.costs.l2);
        }
    }

    /// Adds to the trace's hash and counts an access.
    #[inline(always)]
    pub(crate) fn note(&self, what: u64) {
        self.note_many(what, 1);
    }

    /// Notes so many accesses of one kind, as [`Engine::note`] does.
    #[inline(always)]
    pub(crate) fn note_many(&self, what: u64, accesses: u64) {
        let tally = &self.tally;
        tally.accesses.set(tally.accesses.get() + accesses);
        let key = self.time.get() ^ (what << 40) ^ ((self.current.get() as u64) << 52);
        let mixed = (self.tally.hash.get() ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.tally.hash.set(mixed ^ (mixed >> 32));
    }

    /// Ends the simulation with an error; the first one counts.
    pub(crate) fn fail(&self, error: SimError) {
        self.failure.borrow_mut().get_or_insert(error);
        self.stopped.set(true);
    }

    /// Converts cycles to simulated nanoseconds.
    pub(crate) fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 / self.costs.clock_ghz
    }
}
