//! One simulation, from its description to its outcome.

use crate::arena::{Arena, LINE};
use crate::by_address::Memory;
use crate::coherence::MAX_CORES;
use crate::engine::Engine;
use crate::hypervisor::Hypervisor;
use crate::kind::{Kind, LockKind};
use crate::machine::Machine;
use crate::metrics::{Limits, Metrics, Outcome};
use crate::platform::Sim;
use crate::stuck::SimError;
use crate::topology::{Placement, Topology};
use crate::trace::Trace;
use crate::workload::{Buffer, Thread, Workload};
use corosensei::Coroutine;
use corosensei::stack::{DefaultStack, Stack, StackPointer};
use locklab_locks::catalogue::{self, BigVisitor, Visitor};
use locklab_locks::{BigLock, HeldLocks, QueueNodes, RawLock};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ptr::NonNull;

/// The condition that ends a simulation; the warm-up precedes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// After this many acquisitions by all threads together.
    Acquisitions(u64),
    /// After this much simulated time, in ms.
    Milliseconds(f64),
    /// When half the width of the 95 % interval of the rate is this fraction of
    /// it, by batch means; the warm-up ends when the rate no longer drifts.
    /// Each of the two takes at most `most` acquisitions;
    /// [`Outcome::steady`] and [`Outcome::half_width`] show what was reached.
    Precise {
        /// The requested half-width, such as 0.01.
        half_width: f64,
        /// The most acquisitions.
        most: u64,
    },
    /// When each thread has done this many operations, without a warm-up, and
    /// the rate is that of the kernel benchmark of report 3: all operations
    /// by the mean of the times that the threads took. A thread that is done
    /// stops, and the others continue without it.
    Each(u64),
}

/// The description of a simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The modelled machine.
    pub machine: Machine,
    /// The name of the lock.
    pub lock: String,
    /// The work of its users.
    pub workload: Workload,
    /// Number of threads, each on a CPU (in a virtual machine: a virtual CPU)
    /// of its own.
    pub threads: usize,
    /// Hardware threads that are used, or none for as many as there are. More
    /// threads than that are for virtual machines.
    pub hardware_threads: Option<usize>,
    /// The order in which CPUs are used.
    pub placement: Placement,
    /// The seed of all random choices.
    pub seed: u64,
    /// The condition that ends it.
    pub stop: Stop,
    /// Whether [`Simulation::trace`] is recorded.
    pub trace: bool,
}

impl Scenario {
    /// The default number of acquisitions for this many threads: enough for
    /// each to acquire a hundred times.
    pub fn acquisitions(threads: usize) -> u64 {
        (100 * threads as u64).max(10_000)
    }

    /// A scenario with default settings: compact placement, seed 1, as many
    /// acquisitions as [`Scenario::acquisitions`] gives.
    pub fn new(machine: Machine, lock: &str, workload: Workload, threads: usize) -> Self {
        Self {
            machine,
            lock: lock.to_owned(),
            workload,
            threads,
            hardware_threads: None,
            placement: Placement::Compact,
            seed: 1,
            stop: Stop::Acquisitions(Self::acquisitions(threads)),
            trace: false,
        }
    }

    /// Whether its threads start on CPUs of several sockets.
    pub fn spans_sockets(&self) -> bool {
        let topology = Topology::new(&self.machine);
        let order = topology.order(self.placement, self.seed);
        let socket = |hardware: &usize| topology.socket(hardware / topology.threads_per_core);
        let mut sockets = order.iter().take(self.threads).map(socket);
        let first = sockets.next();
        sockets.any(|socket| Some(socket) != first)
    }

    fn check(&self) -> Result<usize, SimError> {
        let machine = &self.machine;
        let there = machine.hardware_threads();
        let hardware = self.hardware_threads.unwrap_or(there);
        let virtual_machine = machine.get("vm.vcpus") > 0.0;
        let fault = |what: String| Err(SimError::Scenario(what));
        if self.threads == 0 {
            return fault("zero threads take no lock; give at least one".to_owned());
        }
        if hardware == 0 || hardware > there {
            return fault(format!(
                "{hardware} physical CPUs were asked for, but {} has {there}",
                machine.name
            ));
        }
        let most = if virtual_machine {
            machine.cpus()
        } else {
            hardware
        };
        if self.threads > most {
            return fault(format!(
                "{} threads on {most} CPUs of {}: each simulated thread has a CPU of its own{}",
                self.threads,
                machine.name,
                if virtual_machine {
                    "; raise vm.vcpus"
                } else {
                    " (virtual machines may have more virtual CPUs than physical ones)"
                }
            ));
        }
        if self.workload.locks() > crate::workload::MOST_LOCKS {
            return fault(format!(
                "a workload uses at most {} locks",
                crate::workload::MOST_LOCKS
            ));
        }
        match self.stop {
            Stop::Acquisitions(0) => {
                fault("zero acquisitions were asked for; at least one is needed".to_owned())
            }
            Stop::Each(0) => {
                fault("zero operations a thread were asked for; at least one is needed".to_owned())
            }
            Stop::Precise { half_width, most }
                if !(half_width > 0.0 && half_width < 1.0) || most == 0 =>
            {
                fault(format!(
                    "a half-width of {half_width} within {most} acquisitions was asked for; it must be between 0 and 1, within at least one"
                ))
            }
            Stop::Milliseconds(ms) if !(ms > 0.0 && ms < 1e9) => fault(format!(
                "a simulated time of {ms} ms was asked for; it must be above 0"
            )),
            _ => Ok(hardware),
        }
    }
}

/// An outcome, and a trace if one was requested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// The outcome.
    pub outcome: Outcome,
    /// The trace as JSON for Perfetto.
    pub trace: Option<String>,
}

/// Runs a scenario.
///
/// # Errors
/// [`SimError`] if there is no such lock, the scenario does not fit its
/// machine, or the lock deadlocks, livelocks, admits two holders or leaves
/// simulated memory.
pub fn run(scenario: &Scenario) -> Result<Outcome, SimError> {
    simulate(scenario).map(|simulation| simulation.outcome)
}

/// Runs a scenario like [`run`], and also returns the trace.
///
/// # Errors
/// The same errors as [`run`].
pub fn simulate(scenario: &Scenario) -> Result<Simulation, SimError> {
    if let Some(lock) = crate::foreign::registered(&scenario.lock) {
        return lock.simulate(scenario).map_err(SimError::Foreign);
    }
    // A big lock can tell whether it is held; for others the word is read.
    catalogue::visit_big::<Sim, _>(&scenario.lock, Run(scenario))
        .or_else(|| catalogue::visit::<Sim, _>(&scenario.lock, Run(scenario)))
        .unwrap_or_else(|| Err(SimError::UnknownLock(scenario.lock.clone())))
}

/// As [`simulate`], for a lock that is not in the catalogue: your own,
/// or one that a test breaks.
///
/// # Errors
/// The same errors as [`run`].
pub fn simulate_lock<L: RawLock<Sim>>(scenario: &Scenario) -> Result<Simulation, SimError> {
    Run(scenario).simulate(&Kind::<L>::by_word(), Memory::default())
}

/// As [`simulate_lock`], for a lock whose memory is outside its type `L`, which
/// accesses it by [`crate::by_address`]; `look` returns whether it is held.
///
/// # Errors
/// The same errors as [`run`].
pub fn simulate_outside<L: RawLock<Sim>>(
    scenario: &Scenario,
    memory: Memory<'_>,
    look: fn(&L) -> bool,
) -> Result<Simulation, SimError> {
    Run(scenario).simulate(&Kind::by(look), memory)
}

struct Run<'a>(&'a Scenario);

impl Visitor<Sim> for Run<'_> {
    type Output = Result<Simulation, SimError>;

    fn visit<L: RawLock<Sim>>(self) -> Self::Output {
        self.simulate(&Kind::<L>::by_word(), Memory::default())
    }
}

impl BigVisitor<Sim> for Run<'_> {
    type Output = Result<Simulation, SimError>;

    fn visit<L: BigLock<Sim>>(self) -> Self::Output {
        self.simulate(&Kind::by(L::held), Memory::default())
    }
}

impl Run<'_> {
    fn simulate(self, kind: &dyn LockKind, memory: Memory<'_>) -> Result<Simulation, SimError> {
        let scenario = self.0;
        let hardware = scenario.check()?;
        let machine = &scenario.machine;
        let threads = scenario.threads;
        let locks = scenario.workload.locks();
        let (acquisitions, cycles) = match scenario.stop {
            Stop::Each(_) => (u64::MAX, u64::MAX),
            Stop::Acquisitions(n) => (n, u64::MAX),
            Stop::Precise { most, .. } => (most, u64::MAX),
            Stop::Milliseconds(ms) => (u64::MAX, (ms * 1e6 * machine.get("core.clock_ghz")) as u64),
        };
        let limits = Limits {
            // Long enough for every thread to have acquired.
            warmup: match scenario.stop {
                Stop::Each(_) => 0,
                Stop::Precise { .. } => (8 * (threads * locks) as u64).max(400),
                _ => (acquisitions.min(10_000) / 10).max(4 * (threads * locks) as u64),
            },
            precision: match scenario.stop {
                Stop::Precise { half_width, .. } => Some(half_width),
                _ => None,
            },
            acquisitions,
            cycles,
            longest_quiet_ns: scenario.workload.longest_quiet_ns(),
        };
        let order = Topology::new(machine).order(scenario.placement, scenario.seed);
        debug_assert!(machine.cores() <= MAX_CORES);
        let used = if threads > hardware {
            &order[..hardware]
        } else {
            &order[..threads]
        };
        let (lock, context) = kind.lines();
        let held = match kind.held_locks() {
            true => Arena::lines_for::<HeldLocks<Sim>>(),
            false => 0,
        };
        let lines = locks * (lock + Arena::lines_for::<Buffer>())
            + threads
                * (locks * context
                    + Arena::lines_for::<QueueNodes<Sim>>()
                    + held
                    + Arena::lines_for::<Buffer>());
        let clock = machine.get("core.clock_ghz");
        let engine = Engine::new(
            machine,
            Hypervisor::new(machine, threads, used),
            threads,
            (lines, memory.regions),
            scenario.seed,
            Metrics::new(
                &scenario.lock,
                &machine.name,
                scenario.seed,
                threads,
                locks,
                &limits,
            ),
            scenario.trace.then(|| Trace::new(clock, threads)),
        );
        engine.enter(|| simulate_in(&engine, scenario, kind));
        if let Some(mut error) = engine.failure.take() {
            if let (Some(place_of), Some(report)) = (memory.place_of, error.report_mut()) {
                for cpu in &mut report.cpus {
                    let site = engine.cpus[cpu.cpu].site.get();
                    if cpu.place.is_none() && cpu.word.is_some() {
                        cpu.place = place_of(site);
                    }
                }
            }
            return Err(error);
        }
        Ok(Simulation {
            outcome: engine.metrics.outcome(&engine),
            trace: engine.trace.as_ref().map(Trace::finish),
        })
    }
}

fn simulate_in(engine: &Engine, scenario: &Scenario, kind: &dyn LockKind) {
    let count = scenario.workload.locks();
    let name = |what: &str, n: usize| {
        if count == 1 {
            what.to_owned()
        } else {
            format!("{what} {n}")
        }
    };
    let locks: Vec<NonNull<()>> = (0..count)
        .map(|n| kind.place_lock(&engine.arena, name("lock", n)))
        .collect();
    for lock in &locks {
        // SAFETY: just placed, in the engine's arena.
        unsafe { kind.settle(*lock) };
    }
    let shared: Vec<&Buffer> = (0..count)
        .map(|n| engine.arena.place(name("shared buffer", n), Buffer::new()))
        .collect();
    let threads: Vec<Thread<'_>> = (0..scenario.threads)
        .map(|cpu| {
            let nodes = engine.arena.place(
                format!("queue nodes of CPU {cpu}"),
                QueueNodes::<Sim>::default(),
            );
            engine.nodes.borrow_mut().push(nodes);
            if kind.held_locks() {
                let label = format!("held locks of CPU {cpu}");
                let held = engine.arena.place(label, HeldLocks::default());
                engine.held.borrow_mut().push(held);
            }
            let private = engine
                .arena
                .place(format!("private buffer of CPU {cpu}"), Buffer::new());
            let first = engine.line_of(std::ptr::from_ref(private) as usize);
            for line in &engine.lines[first..first + Arena::lines_for::<Buffer>()] {
                line.private.set(true);
            }
            Thread {
                kind,
                locks: &locks,
                contexts: (0..count)
                    .map(|n| {
                        let label = format!("{} of CPU {cpu}", name("context", n));
                        kind.place_context(&engine.arena, label)
                    })
                    .collect(),
                shared: &shared,
                private,
            }
        })
        .collect();
    let workload = &scenario.workload;
    let operations = match scenario.stop {
        Stop::Each(operations) => operations,
        _ => u64::MAX,
    };
    let mut coroutines = Coroutines::default();
    for (cpu, thread) in threads.iter().enumerate() {
        let code = || {
            thread.run(workload, operations);
            engine.leaves();
        };
        // SAFETY: it borrows `threads` and `scenario`, and is dropped before
        // either: `coroutines` was made after them.
        unsafe { coroutine(&mut coroutines, engine, cpu, code) };
    }
    coroutines.run(engine);
}

/// Coroutines that may be abandoned before they end.
#[derive(Default)]
pub(crate) struct Coroutines(Vec<Coroutine<(), (), (), ColouredStack>>);

impl Coroutines {
    /// Runs them, one for each CPU of the engine, in its order of CPUs.
    pub(crate) fn run(&mut self, engine: &Engine) {
        engine.stacks.borrow_mut().sort_unstable();
        engine.run(&mut self.0);
    }
}

/// Makes the next CPU of an engine run `code`, which holds nothing that must be
/// dropped: it may be abandoned before it ends.
///
/// # Safety
/// What `code` borrows outlives `coroutines`.
pub(crate) unsafe fn coroutine(
    coroutines: &mut Coroutines,
    engine: &Engine,
    cpu: usize,
    code: impl FnOnce(),
) {
    let code = move |yielder: &corosensei::Yielder<(), ()>, ()| {
        engine.cpus[cpu].yielder.set(yielder);
        code();
    };
    let stack = take_stack();
    engine.stacks.borrow_mut().push((stack.base().get(), cpu));
    // SAFETY: promised by the caller.
    let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, code) };
    coroutines.0.push(coroutine);
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        for mut coroutine in self.0.drain(..) {
            if !coroutine.done() {
                // SAFETY: what is left on the stack is the lock's and the
                // workload's frames, which own nothing that must be dropped.
                unsafe { coroutine.force_reset() };
            }
            STACKS.with_borrow_mut(|(stacks, _)| stacks.push(coroutine.into_stack()));
        }
    }
}

/// Enough for any lock of the catalogue; a guard page ends the process before
/// an overflow harms another stack.
const STACK_BYTES: usize = 32 * 1024;

/// Stacks begin on pages, so that the frames of all simulated CPUs would
/// compete for the same sets of the host's first-level cache, which keeps eight
/// or twelve of them. Each begins this much further down than the one before
/// it, within a page.
const COLOUR_BYTES: usize = 9 * LINE;
const PAGE_BYTES: usize = 4096;

/// A stack that begins somewhat below its highest address.
pub(crate) struct ColouredStack {
    stack: DefaultStack,
    base: StackPointer,
}

impl ColouredStack {
    fn new(number: usize) -> std::io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES + PAGE_BYTES)?;
        let below = number * COLOUR_BYTES % PAGE_BYTES;
        let base = StackPointer::new(stack.base().get() - below).unwrap_or(stack.base());
        Ok(Self { stack, base })
    }
}

// SAFETY: what is above the base of a stack is not used, and the rest has the
// guard page of the whole and the bytes that it must have. The base is aligned,
// since whole cache lines are left out.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

thread_local! {
    /// The stacks of simulations that have ended, for reuse, and how many were
    /// made.
    static STACKS: RefCell<(Vec<ColouredStack>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

fn take_stack() -> ColouredStack {
    STACKS.with_borrow_mut(|(stacks, made)| {
        stacks.pop().unwrap_or_else(|| {
            *made += 1;
            ColouredStack::new(*made).expect("address space for a stack of 36 KiB")
        })
    })
}
