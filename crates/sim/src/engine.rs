//! The engine: simulated CPUs as coroutines, and the loop that wakes them in
//! the order of simulated time.
//!
//! Time is counted in cycles of the machine's clock. The CPU whose code runs
//! keeps its own time in [`Engine::time`] and may run ahead, without
//! synchronisation, until the earliest queued event; before each access to
//! shared memory it checks whether that is due ([`Engine::sync`]). So accesses
//! take effect in the order of time, and a run of cache hits needs no switch.
//!
//! Everything is in cells and borrowed for the length of a method that cannot
//! reach a coroutine switch: no mutable borrow is alive across one.

use crate::arena::{Arena, LINE};
use crate::by_address::Region;
use crate::coherence::Line;
use crate::event::{Event, Kind, Queue};
use crate::hypervisor::Hypervisor;
use crate::machine::{Arbitration, Arch, Machine};
use crate::metrics::Metrics;
use crate::platform::Sim;
use crate::rng::Rng;
use crate::scenario::ColouredStack;
use crate::spin::Spin;
use crate::store_buffer::StoreBuffer;
use crate::stuck::SimError;
use crate::topology::{Distance, Topology};
use crate::trace::Trace;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use locklab_locks::{HeldLocks, QueueNodes};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The state of a CPU, as seen by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Running code that is about to touch shared memory.
    Sync,
    /// Waiting for a line.
    Miss,
    /// Waiting until the store buffer is empty.
    Drain,
    /// Waiting until the store buffer has room.
    DrainSlot,
    /// Spinning, asleep until the line changes.
    Watching,
    /// Spinning, with the time of the next read set.
    Polling,
    /// Spinning, with a request for the line of the next read.
    SpinMiss,
    /// Spinning, with the awaited value on its way.
    Found,
    /// In a loop that watches several lines, asleep until one changes.
    Asleep,
    /// Halted until woken.
    Halted,
    /// Its code has returned.
    Done,
}

/// One CPU that software sees; a virtual one in a virtual machine.
pub(crate) struct Cpu {
    pub(crate) phase: Cell<Phase>,
    /// The number of the event that continues it; others are stale.
    pub(crate) event: Cell<u64>,
    pub(crate) core: Cell<usize>,
    /// How far it may run ahead with hits: the least time that a request of
    /// another core travels. 0 if a sibling thread shares the core's lines.
    pub(crate) lookahead: Cell<u64>,
    pub(crate) hardware: Cell<usize>,
    /// Whether a hardware thread runs it.
    pub(crate) on: Cell<bool>,
    /// Whether it is to be descheduled as soon as possible.
    pub(crate) preempt: Cell<bool>,
    pub(crate) ready_since: Cell<u64>,
    pub(crate) stolen: Cell<u64>,
    /// Counted in its core's `busy`.
    pub(crate) busy: Cell<bool>,
    pub(crate) spin: Spin,
    pub(crate) stores: StoreBuffer,
    /// Cycles it has waited for lines.
    pub(crate) stalled: Cell<u64>,
    pub(crate) masked: Cell<bool>,
    pub(crate) next_interrupt: Cell<u64>,
    pub(crate) next_steal: Cell<u64>,
    /// The place in the lock's source where it waits, the word, and since when.
    pub(crate) place: Cell<Option<&'static Location<'static>>>,
    pub(crate) word: Cell<(usize, u8)>,
    /// For code that is not Rust: the address of its latest access's
    /// instruction, the word whose next read has been made for it, and the
    /// lines that it watches in its sleep.
    pub(crate) site: Cell<usize>,
    pub(crate) handed: Cell<(usize, u8)>,
    pub(crate) watched: RefCell<Vec<usize>>,
    pub(crate) since: Cell<u64>,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
}

/// The machine's figures in cycles.
pub(crate) struct Costs {
    /// Transfer of a line, by [`Distance`].
    pub(crate) transfer: [u64; 5],
    pub(crate) memory: u64,
    /// Reading what no core holds exclusively, within a socket.
    pub(crate) llc: u64,
    /// Whether that is no longer than from another core of the socket.
    pub(crate) llc_is_nearest: bool,
    /// Whether atomics of contended lines are done at the line's home.
    pub(crate) far_atomics: bool,
    /// How long one of those keeps the home busy.
    pub(crate) far_rmw: u64,
    /// Time from the loss of a line until a CPU that sleeps on it reads it; 0
    /// if it polls.
    pub(crate) wfe: u64,
    /// Chance that a waiting write is served before reads, in 1024ths.
    pub(crate) writes_first: usize,
    /// Share of a transfer until the owner loses a line that no other CPU wants,
    /// in 1024ths.
    pub(crate) travel_share: u64,
    /// The snoop's share, in 1024ths.
    pub(crate) snoop_share: u64,
    /// The spread of latencies, in 1024ths.
    pub(crate) spread: u64,
    pub(crate) shared_read: u64,
    pub(crate) invalidate: u64,
    pub(crate) rmw: u64,
    pub(crate) l1: u64,
    pub(crate) l2: u64,
    pub(crate) pause: u64,
    pub(crate) store_buffer: usize,
    pub(crate) drain: u64,
    /// The slowdown beside a sibling thread, in 1024ths.
    pub(crate) smt: u64,
    pub(crate) clock_ghz: f64,
    pub(crate) interrupt: (f64, u64),
    pub(crate) steal: (f64, u64),
}

impl Costs {
    fn new(machine: &Machine) -> Self {
        let ghz = machine.get("core.clock_ghz");
        let cycles = |key: &str| machine.get(key) as u64;
        let ns = |key: &str| (machine.get(key) * ghz).round() as u64;
        // Mean cycles between two, and cycles of one.
        let pair = |rate: &str, length: &str| {
            let rate = machine.get(rate);
            let mean = if rate > 0.0 { ghz * 1e9 / rate } else { 0.0 };
            (mean, (machine.get(length) * 1e3 * ghz) as u64)
        };
        let l1 = cycles("core.l1_cycles");
        let transfer = [
            l1,
            l1,
            ns("transfer.cluster_ns"),
            ns("transfer.socket_ns"),
            ns("transfer.remote_ns"),
        ];
        let llc = match ns("transfer.llc_ns") {
            0 => u64::MAX,
            llc => llc,
        };
        Self {
            transfer,
            memory: ns("transfer.memory_ns"),
            llc,
            llc_is_nearest: llc <= transfer[2].min(transfer[3]),
            far_atomics: machine.get("core.far_atomics") > 0.0,
            far_rmw: ns("core.far_rmw_ns"),
            wfe: cycles("core.wfe_cycles"),
            writes_first: (machine.get("directory.writes_first") * 1024.0) as usize,
            travel_share: ((machine.get("transfer.request_share")
                + machine.get("transfer.snoop_share"))
                * 1024.0) as u64,
            snoop_share: (machine.get("transfer.snoop_share") * 1024.0) as u64,
            spread: (machine.get("transfer.spread") * 1024.0) as u64,
            shared_read: ns("directory.shared_read_ns"),
            invalidate: ns("directory.invalidate_ns"),
            rmw: cycles("core.rmw_cycles"),
            l1,
            l2: cycles("core.l2_cycles"),
            pause: cycles("core.pause_cycles"),
            store_buffer: cycles("core.store_buffer") as usize,
            drain: cycles("core.drain_cycles"),
            smt: (machine.get("core.smt_slowdown") * 1024.0) as u64,
            clock_ghz: ghz,
            interrupt: pair("interrupts.per_second", "interrupts.us"),
            steal: pair("vm.steal_per_second", "vm.steal_us"),
        }
    }
}

/// Lines of a CPU's stack, from its beginning, that are simulated memory.
const STACK_LINES: usize = 32;

/// One running simulation.
pub(crate) struct Engine {
    pub(crate) queue: Queue,
    pub(crate) time: Cell<u64>,
    pub(crate) current: Cell<usize>,
    base: usize,
    pub(crate) lines: Box<[Line]>,
    pub(crate) cpus: Box<[Cpu]>,
    pub(crate) costs: Costs,
    pub(crate) x86: bool,
    pub(crate) topology: Topology,
    pub(crate) arbitration: Arbitration,
    pub(crate) rng: Rng,
    /// CPUs at work on each core.
    pub(crate) busy: Box<[Cell<u8>]>,
    generations: Box<[Cell<u32>]>,
    pub(crate) hypervisor: Hypervisor,
    pub(crate) metrics: Metrics,
    pub(crate) trace: Option<Trace>,
    pub(crate) arena: Arena,
    /// The queue nodes of each CPU, in the arena.
    pub(crate) nodes: RefCell<Vec<*const QueueNodes<Sim>>>,
    /// The locks that each CPU holds, in the arena; empty where no lock asks.
    pub(crate) held: RefCell<Vec<*const HeldLocks<Sim>>>,
    /// Simulated memory outside the arena, each with its first line.
    regions: Box<[(Region, usize)]>,
    /// Where each CPU's stack begins (its highest address), in order.
    pub(crate) stacks: RefCell<Vec<(usize, usize)>>,
    pub(crate) virtualized: bool,
    hash: Cell<u64>,
    pub(crate) accesses: Cell<u64>,
    pub(crate) transfers: Cell<u64>,
    pub(crate) writes: Cell<u64>,
    pub(crate) events: Cell<u64>,
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
        metrics: Metrics,
        trace: Option<Trace>,
    ) -> Self {
        let arena = Arena::new(lines);
        let mut lines = arena.lines() + cpus * STACK_LINES;
        let regions = regions
            .into_iter()
            .map(|region| {
                let first = lines;
                lines += region.addresses.len().div_ceil(LINE);
                (region, first)
            })
            .collect();
        let topology = Topology::new(machine);
        let cores = topology.cores();
        Self {
            queue: Queue::new(),
            time: Cell::new(0),
            current: Cell::new(0),
            base: arena.base(),
            lines: (0..lines).map(|_| Line::new()).collect(),
            regions,
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            costs: Costs::new(machine),
            x86: machine.arch == Arch::X86_64,
            arbitration: machine.arbitration,
            rng: Rng::new(seed),
            busy: (0..cores).map(|_| Cell::new(0)).collect(),
            generations: (0..cores).map(|_| Cell::new(0)).collect(),
            topology,
            hypervisor,
            metrics,
            trace,
            arena,
            nodes: RefCell::new(Vec::new()),
            held: RefCell::new(Vec::new()),
            stacks: RefCell::new(Vec::new()),
            virtualized: machine.get("vm.vcpus") > 0.0,
            hash: Cell::new(seed),
            accesses: Cell::new(0),
            transfers: Cell::new(0),
            writes: Cell::new(0),
            events: Cell::new(0),
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
        let index = address.wrapping_sub(self.base) / LINE;
        if index < self.arena.lines() {
            index
        } else {
            self.line_elsewhere(address)
        }
    }

    /// The line of an address, if it is simulated memory.
    pub(crate) fn line_at(&self, address: usize) -> Option<usize> {
        let index = address.wrapping_sub(self.base) / LINE;
        if index < self.arena.lines() {
            return Some(index);
        }
        self.line_in_region(address)
            .or_else(|| self.line_on_stack(address))
    }

    fn line_in_region(&self, address: usize) -> Option<usize> {
        let (region, first) = self
            .regions
            .iter()
            .find(|(region, _)| region.addresses.contains(&address))?;
        Some(first + (address - region.addresses.start) / LINE)
    }

    /// A lock may keep a waiter's node on the waiter's stack, whose outermost
    /// part is simulated memory too.
    fn line_on_stack(&self, address: usize) -> Option<usize> {
        let stacks = self.stacks.borrow();
        let above = stacks.partition_point(|&(base, _)| base <= address);
        let &(base, cpu) = stacks.get(above)?;
        let depth = (base - 1 - address) / LINE;
        (depth < STACK_LINES).then(|| self.arena.lines() + cpu * STACK_LINES + depth)
    }

    #[inline(never)]
    fn line_elsewhere(&self, address: usize) -> usize {
        if let Some(line) = self.line_at(address) {
            return line;
        }
        self.fail(SimError::Outside { address });
        self.suspend(Phase::Done);
        unreachable!("a CPU that has failed is not resumed")
    }

    /// A description of what lies at an address.
    pub(crate) fn describe(&self, address: usize) -> String {
        if let Some(line) = self.line_in_region(address) {
            return self.region_of(line).0.describe(address);
        }
        let stacks = self.stacks.borrow();
        let above = stacks.partition_point(|&(base, _)| base <= address);
        match stacks.get(above) {
            Some(&(base, cpu)) if base - address <= STACK_LINES * LINE => {
                format!("stack of CPU {cpu}")
            }
            _ => self.arena.describe(address),
        }
    }

    /// The region of a line that is in one.
    fn region_of(&self, line: usize) -> &(Region, usize) {
        let after = self.regions.partition_point(|&(_, first)| first <= line);
        &self.regions[after - 1]
    }

    /// A description of what lies in a line.
    pub(crate) fn describe_line(&self, line: usize) -> String {
        if line >= self.arena.lines() + self.cpus.len() * STACK_LINES {
            let (region, first) = self.region_of(line);
            return region.describe_line(region.addresses.start + (line - first) * LINE);
        }
        match line.checked_sub(self.arena.lines()) {
            Some(stack) => format!("stack of CPU {}", stack / STACK_LINES),
            None => self.arena.describe_line(line),
        }
    }

    /// Processes all events before the running CPU's time.
    #[inline(always)]
    pub(crate) fn sync(&self) {
        if self.time.get() >= self.queue.horizon() {
            self.schedule(self.current.get(), self.time.get());
            self.suspend(Phase::Sync);
        }
    }

    /// As [`Engine::sync`] before an access that hits, which may be early:
    /// no request that another CPU still makes can be granted before it has
    /// travelled, and no other CPU uses a private line.
    #[inline(always)]
    pub(crate) fn sync_for(&self, line: &Line) {
        let ahead = (self.time.get() + 1).saturating_sub(self.queue.horizon());
        if ahead > 0
            && !line.private.get()
            && (ahead > self.current().lookahead.get() || !line.quiet())
        {
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

    /// Marks a CPU as using, or not, the issue slots of its core.
    #[inline]
    pub(crate) fn set_busy(&self, cpu: usize, busy: bool) {
        let cpu = &self.cpus[cpu];
        if cpu.busy.get() != busy {
            cpu.busy.set(busy);
            let core = &self.busy[cpu.core.get()];
            core.set(if busy { core.get() + 1 } else { core.get() - 1 });
        }
    }

    /// Lets the running CPU compute for `cycles` cycles.
    #[inline]
    pub(crate) fn work(&self, cycles: u64) {
        let cpu = self.current();
        let siblings = self.costs.smt != 1024 && self.busy[cpu.core.get()].get() > 1;
        let cycles = if siblings {
            (cycles * self.costs.smt) >> 10
        } else {
            cycles
        };
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
        self.generations[core].get()
    }

    /// Notes that the running CPU's own work has evicted everything from its
    /// L1.
    pub(crate) fn evict_l1(&self) {
        let generation = &self.generations[self.current().core.get()];
        generation.set(generation.get().wrapping_add(1));
    }

    /// Adds to the trace's hash and counts an access.
    #[inline(always)]
    pub(crate) fn note(&self, what: u64) {
        self.accesses.set(self.accesses.get() + 1);
        let key = self.time.get() ^ (what << 40) ^ ((self.current.get() as u64) << 52);
        let mixed = (self.hash.get() ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash.set(mixed ^ (mixed >> 32));
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.hash.get()
    }

    /// Counts a transfer of a line; called for each grant.
    pub(crate) fn count_transfer(
        &self,
        line: usize,
        cpu: usize,
        want: crate::coherence::Want,
        now: u64,
        transfer: u64,
    ) {
        if transfer > self.costs.transfer[Distance::Core as usize] {
            self.transfers.set(self.transfers.get() + 1);
        }
        if let Some(trace) = &self.trace {
            trace.transfer(self, line, cpu, want, now, transfer);
        }
    }

    /// Ends the simulation with an error; the first one counts.
    pub(crate) fn fail(&self, error: SimError) {
        self.failure.borrow_mut().get_or_insert(error);
        self.stopped.set(true);
    }

    /// Runs coroutines, one a CPU, until all return, one stops the engine, or
    /// it fails.
    pub(crate) fn run(&self, coroutines: &mut [Coroutine<(), (), (), ColouredStack>]) {
        self.enter(|| {
            self.start();
            let mut watchdog = crate::stuck::Watchdog::new(self);
            self.queue.push(watchdog.interval(), Kind::Watchdog, 0);
            let mut alive = coroutines.len();
            while alive > 0 && !self.stopped.get() {
                let Some(event) = self.queue.pop() else { break };
                self.events.set(self.events.get() + 1);
                if event.kind == Kind::Watchdog {
                    match watchdog.look(self, event.time) {
                        None => {
                            self.queue
                                .push(event.time + watchdog.interval(), Kind::Watchdog, 0);
                        }
                        Some(error) => self.fail(error),
                    }
                } else if self.happens(event) {
                    let cpu = event.target;
                    self.current.set(cpu);
                    self.set_busy(cpu, true);
                    if let CoroutineResult::Return(()) = coroutines[cpu].resume(()) {
                        self.cpus[cpu].phase.set(Phase::Done);
                        self.set_busy(cpu, false);
                        self.gone(cpu, self.time.get());
                        alive -= 1;
                    }
                }
            }
        });
    }

    /// Processes an event; returns whether its CPU's code is to be resumed,
    /// with [`Engine::time`] set.
    #[inline]
    fn happens(&self, event: Event) -> bool {
        let Event {
            time,
            seq,
            kind,
            target,
        } = event;
        match kind {
            Kind::Cpu => {
                let cpu = &self.cpus[target];
                if cpu.event.get() != seq {
                    return false;
                }
                match cpu.phase.get() {
                    Phase::Sync if cpu.preempt.get() => {
                        self.deschedule(target, time);
                        false
                    }
                    Phase::Polling | Phase::Watching => self.spin_poll(target, time),
                    _ => {
                        self.time.set(time);
                        true
                    }
                }
            }
            Kind::Line => {
                self.line_free(target, seq, time);
                false
            }
            Kind::Drain => {
                self.drained(target, time);
                false
            }
            Kind::Slice => {
                self.slice_ends(target, seq, time);
                false
            }
            Kind::Ple => {
                self.pause_loop_exit(target, seq, time);
                false
            }
            Kind::Wake => {
                self.woken(target, time);
                false
            }
            Kind::Watchdog => false,
        }
    }

    /// Converts cycles to simulated nanoseconds.
    pub(crate) fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 / self.costs.clock_ghz
    }
}

impl Cpu {
    fn new() -> Self {
        Self {
            phase: Cell::new(Phase::Sync),
            event: Cell::new(0),
            core: Cell::new(0),
            lookahead: Cell::new(0),
            hardware: Cell::new(usize::MAX),
            on: Cell::new(false),
            preempt: Cell::new(false),
            ready_since: Cell::new(0),
            stolen: Cell::new(0),
            busy: Cell::new(false),
            spin: Spin::default(),
            stores: StoreBuffer::default(),
            stalled: Cell::new(0),
            masked: Cell::new(false),
            next_interrupt: Cell::new(u64::MAX),
            next_steal: Cell::new(u64::MAX),
            place: Cell::new(None),
            word: Cell::new((0, 0)),
            site: Cell::new(0),
            handed: Cell::new((0, 0)),
            watched: RefCell::new(Vec::new()),
            since: Cell::new(0),
            yielder: Cell::new(std::ptr::null()),
        }
    }
}
