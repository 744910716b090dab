//! One simulation, from its description to its outcome.

use crate::arena::Arena;
use crate::barrier::Round;
use crate::coroutine::{Coroutines, coroutine};
use crate::counts::{Counts, Limits};
use crate::engine::Engine;
use crate::error::{SimError, refused, unknuser_lock};
use crate::event::MAX_TARGET;
use crate::foreign::registered;
use crate::hypervisor::Hypervisor;
use crate::kind::{Kind, LockKind};
use crate::libraries;
use crate::machine::{FigureKey, MAX_CORES};
use crate::metrics::leaves;
use crate::metrics::{jain, outcome};
use crate::outcome::Outcome;
use crate::platform::Sim;
use crate::region::Memory;
use crate::scenario::{Scenario, Simulation, Stop};
use crate::topology::Topology;
use crate::trace::Trace;
use crate::workload::{Buffer, Thread, Workload};
use locklab_locks::catalogue::{self, BigVisitor, Visitor};
use locklab_locks::{BigLock, HeldLocks, QueueNodes, RawLock, VisibleReader};
use locklab_workload::{Turn, fork_seed, turns as drawn};
use std::ptr::NonNull;

/// The most locks of which a thread has a context each.
const MOST_CONTEXTS: usize = 256;

/// The most lines of memory: events name them.
const MOST_LINES: usize = MAX_TARGET;
/// The warm-up of a run by time in which threads share CPUs, as a part of the run. A lock
/// with a queue collapses once a thread in line loses its CPU; with two threads a CPU that
/// takes some slices to happen, and what came before is no part of a long run.
const SETTLING: f64 = 0.5;
/// The shortest run of a lock whose waiters sleep, as a part of those slices.
const SHORTEST: f64 = 0.25;

/// Contexts of a thread: one for each lock, or of many locks one for each that it can hold.
fn contexts(locks: usize) -> usize {
    match locks > MOST_CONTEXTS {
        true => 2,
        false => locks,
    }
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
    if let Some(lock) = registered(&scenario.lock) {
        return lock.simulate(scenario);
    }
    // A big lock can tell whether it is held; for others the word is read.
    catalogue::visit_big::<Sim, _>(&scenario.lock, Run(scenario))
        .or_else(|| catalogue::visit::<Sim, _>(&scenario.lock, Run(scenario)))
        .or_else(|| libraries::visit(&scenario.lock, Run(scenario)))
        .unwrap_or_else(|| Err(unknuser_lock(&scenario.lock)))
}

/// Simulates as [`simulate`] does a lock that is not in the catalogue: your own,
/// or one that a test breaks.
///
/// # Errors
/// The same errors as [`run`].
pub fn simulate_lock<L: RawLock<Sim>>(scenario: &Scenario) -> Result<Simulation, SimError> {
    Run(scenario).simulate(&Kind::<L, Sim>::by_word(), Memory::default())
}

/// Simulates as [`simulate_lock`] does a lock whose memory is outside its type `L`, which
/// accesses it by `by_address`; `is_held` returns whether it is held.
///
/// # Errors
/// The same errors as [`run`].
pub fn simulate_outside<L: RawLock<Sim>>(
    scenario: &Scenario,
    memory: Memory<'_>,
    is_held: fn(&L) -> bool,
) -> Result<Simulation, SimError> {
    Run(scenario).simulate(&Kind::<L, Sim>::by(is_held), memory)
}

struct Run<'a>(&'a Scenario);

impl Visitor<Sim> for Run<'_> {
    type Output = Result<Simulation, SimError>;

    fn visit<L: RawLock<Sim>>(self) -> Self::Output {
        self.simulate(&Kind::<L, Sim>::by_word(), Memory::default())
    }
}

impl BigVisitor<Sim> for Run<'_> {
    type Output = Result<Simulation, SimError>;

    fn visit<L: BigLock<Sim>>(self) -> Self::Output {
        self.simulate(&Kind::<L, Sim>::by(L::held), Memory::default())
    }
}

impl Run<'_> {
    fn simulate(self, kind: &dyn LockKind, memory: Memory<'_>) -> Result<Simulation, SimError> {
        let scenario = self.0;
        let hardware = scenario.check()?;
        let machine = &scenario.machine;
        let threads = scenario.threads;
        let is_round = matches!(scenario.stop, Stop::Round(_));
        // Who starts the others is one more.
        let all = threads + usize::from(is_round);
        let locks = scenario.workload.locks();
        let contexts = contexts(locks);
        let known = locks.min(MOST_CONTEXTS) as u64;
        let in_cycles = |ms: f64| (ms * 1e6 * machine.get(FigureKey::CoreClockGhz)) as u64;
        let (acquisitions, cycles) = match scenario.stop {
            Stop::Each(_) | Stop::Round(_) => (u64::MAX, u64::MAX),
            Stop::Acquisitions(n) => (n, u64::MAX),
            Stop::Precise { most, .. } => (most, u64::MAX),
            Stop::Milliseconds(ms) | Stop::Slices { ms, .. } => (u64::MAX, in_cycles(ms)),
        };
        let enough_after = match scenario.stop {
            Stop::Slices { ms, half_width } if kind.parks() => {
                Some((in_cycles(ms * SHORTEST), half_width))
            }
            _ => None,
        };
        let limits = Limits {
            // Long enough for every thread to have acquired.
            warmup: match scenario.stop {
                Stop::Each(_) | Stop::Round(_) => 0,
                Stop::Precise { .. } => (8 * threads as u64 * known).max(400),
                _ => (acquisitions.min(10_000) / 10).max(4 * threads as u64 * known),
            },
            warmup_cycles: match scenario.stop {
                Stop::Milliseconds(_) | Stop::Slices { .. } if all > hardware => {
                    let least = enough_after.map_or(cycles, |(least, _)| least);
                    (least as f64 * SETTLING) as u64
                }
                _ => 0,
            },
            precision: match scenario.stop {
                Stop::Precise { half_width, .. } => Some(half_width),
                _ => None,
            },
            enough_after,
            acquisitions,
            cycles,
            longest_quiet_ns: scenario.workload.longest_quiet_ns(),
            readers_share: kind.readers_share(),
            is_round,
        };
        let order = Topology::new(machine).order(scenario.placement, scenario.seed);
        debug_assert!(machine.cores() <= MAX_CORES);
        let used = &order[..all.min(hardware)];
        let (lock, context) = kind.lines();
        let held = match kind.held_locks() {
            true => Arena::lines_for::<HeldLocks<Sim>>(),
            false => 0,
        };
        let visible = match shows_readers(scenario, kind) {
            true => threads * Arena::lines_for::<VisibleReader<Sim>>(),
            false => 0,
        };
        let shared = scenario.workload.lines() * Arena::lines_for::<Buffer>();
        let sleepers = match kind.parks() {
            true => libraries::lines_of_sleepers(all),
            false => 0,
        };
        let barriers = match is_round {
            true => Round::lines(),
            false => 0,
        };
        let lines = visible
            + sleepers
            + barriers
            + locks * (lock + shared)
            + scenario.workload.lines_of_counts(all) * Arena::lines_for::<Buffer>()
            + threads
                * (contexts * context
                    + Arena::lines_for::<QueueNodes<Sim>>()
                    + held
                    + Arena::lines_for::<Buffer>());
        if lines > MOST_LINES {
            return Err(refused(format!(
                "{locks} locks of {} and what they protect take {lines} lines of memory, and at most \
                 {MOST_LINES} can be simulated; give fewer locks",
                scenario.lock
            )));
        }
        let clock = machine.get(FigureKey::CoreClockGhz);
        let scheduler = match machine.get(FigureKey::VmVcpus) > 0.0 {
            true => Hypervisor::new(machine, all, used),
            false => Hypervisor::of_system(machine, all, used),
        };
        let engine = Engine::new(
            machine,
            scheduler,
            all,
            (lines, memory.regions),
            scenario.seed,
            Counts::new(
                &scenario.lock,
                &machine.name,
                scenario.seed,
                all,
                locks,
                &limits,
            ),
            scenario.trace.then(|| Trace::new(clock, all)),
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
        let mut outcome = outcome(&engine);
        // Who starts the others does no operation.
        outcome.ops_by_thread.truncate(threads);
        outcome.jain = jain(&outcome.ops_by_thread);
        Ok(Simulation {
            outcome,
            trace: engine.trace.as_ref().map(Trace::finish),
        })
    }
}

/// Returns whether CPUs publish what they read. Where nothing reads there is no table,
/// and a biased lock behaves as the one inside it.
fn shows_readers(scenario: &Scenario, kind: &dyn LockKind) -> bool {
    kind.readers_share()
        && matches!(&scenario.workload, Workload::Mixed(mixed) if mixed.mix.reads > 0)
}

fn simulate_in(engine: &Engine, scenario: &Scenario, kind: &dyn LockKind) {
    if shows_readers(scenario, kind) {
        // One after the other, since each fills a line; the arena returns
        // pointers that may reach all of it.
        let place = |cpu: usize| {
            let label = format!("visible reader of CPU {cpu}");
            let entry = VisibleReader::<Sim>::default();
            std::ptr::from_ref(engine.memory.arena.place(label, entry))
        };
        let entries: Vec<*const VisibleReader<Sim>> = (0..scenario.threads).map(place).collect();
        if let Some(first) = entries.first() {
            engine.visible.set((first.cast(), entries.len()));
        }
    }
    let count = scenario.workload.locks();
    let name = |what: &str, n: usize| {
        if count == 1 {
            what.to_owned()
        } else {
            format!("{what} {n}")
        }
    };
    let locks: Vec<NonNull<()>> = (0..count)
        .map(|n| kind.place_lock(&engine.memory.arena, name("lock", n)))
        .collect();
    for lock in &locks {
        // SAFETY: just placed, in the engine's arena.
        unsafe { kind.settle(*lock) };
    }
    let shared: Vec<&Buffer> = (0..count * scenario.workload.lines())
        .map(|n| {
            let label = match scenario.workload.lines() {
                1 => name("shared buffer", n),
                lines => format!("line {} of {}", n % lines, name("shared buffer", n / lines)),
            };
            engine.memory.arena.place(label, Buffer::new())
        })
        .collect();
    let counts: Vec<&Buffer> = (0..scenario.workload.lines_of_counts(scenario.threads))
        .map(|n| {
            engine
                .memory
                .arena
                .place(format!("counts {n}"), Buffer::new())
        })
        .collect();
    let turns: Vec<Vec<Turn>> = match &scenario.workload {
        Workload::Mixed(mixed) if !mixed.is_usual() => (0..scenario.threads as u64)
            .map(|thread| {
                let seed = fork_seed(scenario.seed, thread);
                drawn(&mixed.mix, mixed.locks, mixed.non_critical, seed)
            })
            .collect(),
        _ => Vec::new(),
    };
    let threads: Vec<Thread<'_>> = (0..scenario.threads)
        .map(|cpu| {
            let nodes = engine.memory.arena.place(
                format!("queue nodes of CPU {cpu}"),
                QueueNodes::<Sim>::default(),
            );
            engine.cpus[cpu].nodes.set(std::ptr::from_ref(nodes).cast());
            if kind.held_locks() {
                let label = format!("held locks of CPU {cpu}");
                let held = engine
                    .memory
                    .arena
                    .place(label, HeldLocks::<Sim>::default());
                engine.cpus[cpu].held.set(std::ptr::from_ref(held).cast());
            }
            let private = engine
                .memory
                .arena
                .place(format!("private buffer of CPU {cpu}"), Buffer::new());
            let first = engine.line_of(std::ptr::from_ref(private) as usize);
            for line in &engine.lines[first..first + Arena::lines_for::<Buffer>()] {
                line.private.set(true);
            }
            Thread {
                kind,
                locks: &locks,
                contexts: (0..contexts(count))
                    .map(|n| {
                        let label = format!("{} of CPU {cpu}", name("context", n));
                        kind.place_context(&engine.memory.arena, label)
                    })
                    .collect(),
                shared: &shared,
                private,
                counts: counts.get(cpu * counts.len() / scenario.threads).copied(),
                turns: turns.get(cpu).map_or(&[], Vec::as_slice),
            }
        })
        .collect();
    let workload = &scenario.workload;
    let operations = match scenario.stop {
        Stop::Each(operations) | Stop::Round(operations) => operations,
        _ => u64::MAX,
    };
    let is_round = engine.counts.limits.is_round;
    let round = is_round.then(|| Round::new(&engine.memory.arena, scenario.threads));
    if kind.parks() {
        // The last, so that all else lies where it does for other locks.
        libraries::place_sleepers(engine);
    }
    let mut coroutines = Coroutines::default();
    for (cpu, thread) in threads.iter().enumerate() {
        let round = round.as_ref();
        let code = move || {
            let work = || thread.run(workload, operations);
            match round {
                Some(round) => round.work(work),
                None => work(),
            }
            leaves(engine);
        };
        // SAFETY: it borrows `threads`, `round` and `scenario`, and is dropped before
        // any: `coroutines` was made after them.
        unsafe { coroutine(&mut coroutines, engine, cpu, code) };
    }
    if let Some(round) = &round {
        let code = || round.time(engine);
        // SAFETY: as above.
        unsafe { coroutine(&mut coroutines, engine, scenario.threads, code) };
    }
    coroutines.run(engine);
}
