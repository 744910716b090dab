//! Published microbenchmarks of single cache lines, run in the simulator.
//!
//! A machine's parameters come from such figures and from nothing else: what a
//! transfer takes, what contention for one line costs, what each waiter adds
//! to a handoff. A machine file holds them beside its parameters (`[[check]]`),
//! each with its source, and says which parameter was chosen from it;
//! [`check`] runs them all and puts the model beside the source. No lock of
//! the catalogue is used here.

use crate::arena::Arena;
pub use crate::check::{Access, Benchmark, Check, Operation, State};
use crate::coroutine::{Coroutines, coroutine};
use crate::counting::Counting;
use crate::counts::{Counts, Limits};
use crate::distance::Distance;
use crate::engine::{Engine, engine};
use crate::error::{SimError, refused};
use crate::hypervisor::Hypervisor;
use crate::machine::{FigureKey, Machine};
use crate::own_stores::drain_all;
use crate::platform::{Sim, Word};
use crate::topology::{Placement, Topology};
use crate::workload::jitter;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Patience, Poll};
use serde::Serialize;
use std::cell::Cell;

/// A published figure and the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The name of the microbenchmark.
    pub name: String,
    /// The published figure, ns; a share of the elapsed time if `is_share`.
    pub published: f64,
    /// The simulated figure, in the same unit.
    pub ours: f64,
    /// Says whether the figures are shares, and not times.
    pub is_share: bool,
    /// The publication that the figure is from.
    pub source: String,
    /// The parameter that was chosen by this figure.
    pub chose: Option<String>,
}

/// Runs the microbenchmarks for which a machine's file has figures.
///
/// # Errors
/// The same errors as [`measure`].
pub fn check(machine: &Machine, seed: u64) -> Result<Vec<Checked>, SimError> {
    let checked = |check: &Check| {
        Ok(Checked {
            name: check.benchmark.name(),
            published: check.ns,
            ours: measure(machine, check.benchmark, seed)?,
            is_share: check.benchmark.is_fraction(),
            source: check.source.clone(),
            chose: check.chose.clone(),
        })
    };
    machine.checks.iter().map(checked).collect()
}

/// Runs one microbenchmark on an otherwise idle machine; returns ns.
///
/// # Errors
/// [`SimError::Refused`] if the machine has no cores at that distance, or
/// fewer than there are threads.
pub fn measure(machine: &Machine, benchmark: Benchmark, seed: u64) -> Result<f64, SimError> {
    // Interrupts and hosts are not part of these figures.
    let mut machine = machine.clone();
    for key in [FigureKey::InterruptsPerSecond, FigureKey::VmStealPerSecond] {
        machine = machine.with(key, 0.0)?;
    }
    let bench = Bench::new(&machine, seed);
    match benchmark {
        Benchmark::PingPong { distance } => bench.ping_pong(distance),
        Benchmark::Access {
            access,
            state,
            distance,
        } => bench.access(access, state, distance),
        Benchmark::FetchAdd { threads } => bench.contended(threads, |line| {
            line.words[0].fetch_add(1, Ordering::Relaxed);
        }),
        Benchmark::CompareAndSwap { threads } => bench.contended(threads, |line| {
            let mut seen = line.words[0].load(Ordering::Relaxed);
            while let Err(now) = line.words[0].compare_exchange(
                seen,
                seen.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                seen = now;
            }
        }),
        Benchmark::Ticket { threads } => bench.contended(threads, |line| {
            let [next, served, ..] = &line.words;
            let ticket = next.fetch_add(1, Ordering::Relaxed);
            wait(served, |now| now == ticket);
            line.count();
            let now = served.load(Ordering::Relaxed);
            served.store(now.wrapping_add(1), Ordering::Release);
        }),
        Benchmark::TestAndTestAndSet { threads } => bench.contended(threads, |line| {
            let held = &line.words[0];
            loop {
                wait(held, |held| held == 0);
                if held.swap(1, Ordering::Acquire) == 0 {
                    break;
                }
            }
            line.count();
            held.store(0, Ordering::Release);
        }),
        Benchmark::FixedWork { operation, threads } => {
            bench.fixed_work(operation, threads).map(|(ns, _)| ns)
        }
        Benchmark::OwnTime { operation, threads } => {
            bench.fixed_work(operation, threads).map(|(_, own)| own)
        }
    }
}

/// Makes one operation of a benchmark of fixed work. The loop of all but the first is
/// lockhammer's, which calls a function after the acquisition and after the release.
fn operate(operation: Operation, line: &Lines) {
    let word = &line.words[0];
    let half = std::ptr::from_ref(word).cast::<Word<u32>>();
    // SAFETY: the first half of the word, of this thread's line.
    let half = unsafe { &*half };
    match operation {
        Operation::Additions => _ = word.fetch_add(1, Ordering::Relaxed),
        Operation::FetchAdds => count_twice(Counting::AddAndSubtract, half),
        Operation::CompareAndSwaps => count_twice(Counting::CompareAndSwapThenAdd, half),
        Operation::Swaps => {
            while word.swap(1, Ordering::AcqRel) != 0 {}
            Sim::function_call();
            word.store(0, Ordering::Release);
            Sim::function_call();
        }
        Operation::Ticket => {
            const NEXT: usize = 1 << 32;
            let ticket = word.fetch_add(NEXT, Ordering::AcqRel) >> 32;
            word.spin(Ordering::Acquire, Patience::Forever, |value| {
                if value & (NEXT - 1) == ticket {
                    Poll::Done
                } else {
                    Poll::Relax(1)
                }
            });
            Sim::function_call();
            let now = half.load(Ordering::Relaxed);
            half.store(now.wrapping_add(1), Ordering::Release);
            Sim::function_call();
        }
    }
}

fn count_twice(counting: Counting, word: &Word<u32>) {
    counting.begin(word);
    counting.end(word);
}

/// Reads without a pause until `done`.
fn wait(word: &Word<usize>, mut done: impl FnMut(usize) -> bool) {
    word.spin(Ordering::Acquire, Patience::Forever, |value| {
        if done(value) {
            Poll::Done
        } else {
            Poll::Relax(0)
        }
    });
}

/// Two lines: one of the contended words, and one of the data that they
/// protect.
#[repr(C, align(64))]
struct Lines {
    words: [Word<usize>; 8],
    protected: [Word<usize>; 8],
}

impl Lines {
    fn new() -> Self {
        let line = || std::array::from_fn(|_| Word::new(0));
        Self {
            words: line(),
            protected: line(),
        }
    }

    fn count(&self) {
        let count = self.protected[0].load(Ordering::Relaxed);
        self.protected[0].store(count.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Operations of each thread that are not counted, and that are.
const WARM_UP: u32 = 50;
const ROUNDS: u32 = 400;

struct Bench<'a> {
    machine: &'a Machine,
    topology: Topology,
    seed: u64,
}

impl<'a> Bench<'a> {
    fn new(machine: &'a Machine, seed: u64) -> Self {
        Self {
            machine,
            topology: Topology::new(machine),
            seed,
        }
    }

    /// Runs `code` on each of these hardware threads, with `places` places.
    fn run(
        &self,
        hardware: &[usize],
        places: usize,
        code: impl Fn(usize, &[&Lines]),
    ) -> Result<(), SimError> {
        let cpus = hardware.len();
        let limits = Limits {
            warmup: 0,
            warmup_cycles: 0,
            acquisitions: u64::MAX,
            cycles: u64::MAX,
            precision: None,
            enough_after: None,
            // Nothing here is an acquisition, by which progress is seen.
            longest_quiet_ns: 2e7,
            readers_share: false,
            is_round: false,
        };
        let engine = Engine::new(
            self.machine,
            Hypervisor::new(self.machine, cpus, hardware),
            cpus,
            (places * Arena::lines_for::<Lines>(), Vec::new()),
            self.seed,
            Counts::new(
                "a microbenchmark",
                &self.machine.name,
                self.seed,
                cpus,
                1,
                &limits,
            ),
            None,
        );
        engine.enter(|| {
            let places: Vec<&Lines> = (0..places)
                .map(|n| {
                    engine
                        .memory
                        .arena
                        .place(format!("place {n}"), Lines::new())
                })
                .collect();
            let mut coroutines = Coroutines::default();
            for cpu in 0..cpus {
                let (code, places) = (&code, &places);
                // SAFETY: what it borrows outlives `coroutines`, which was
                // made after it.
                unsafe { coroutine(&mut coroutines, &engine, cpu, move || code(cpu, places)) };
            }
            coroutines.run(&engine);
        });
        engine.failure.take().map_or(Ok(()), Err)
    }

    /// Returns the first hardware threads of three cores, the second and the third as
    /// at the requested distance from the first, and near each other.
    fn apart(&self, distance: Distance) -> Result<[usize; 3], SimError> {
        let mut far =
            (1..self.topology.cores()).filter(|&core| self.topology.distance(0, core) == distance);
        let (Some(one), two) = (far.next(), far.next()) else {
            return Err(refused(format!(
                "{} has no two cores whose distance is \"{}\"",
                self.machine.name,
                distance.name()
            )));
        };
        Ok([0, one, two.unwrap_or(one)].map(|core| core * self.topology.threads_per_core))
    }

    fn ping_pong(&self, distance: Distance) -> Result<f64, SimError> {
        let [here, there, _] = self.apart(distance)?;
        let taken = Cell::new(0);
        self.run(&[here, there], 1, |cpu, places| {
            let (from, to) = (cpu, 1 - cpu);
            let word = &places[0].words[0];
            for round in 0..WARM_UP + ROUNDS {
                if cpu == 0 && round == WARM_UP {
                    taken.set(engine().time.get());
                }
                while word
                    .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
                {}
            }
            if cpu == 0 {
                taken.set(engine().time.get() - taken.get());
            }
        })?;
        Ok(self.ns(taken.get()) / f64::from(2 * ROUNDS))
    }

    fn access(&self, access: Access, state: State, distance: Distance) -> Result<f64, SimError> {
        let [here, there, third] = self.apart(distance)?;
        let rounds = ROUNDS as usize / 4;
        let taken = Cell::new(0);
        let turns = 3 + usize::from(state == State::Shared);
        let cpus = [here, there, third];
        let cpus = if state == State::Shared && third != there {
            &cpus[..]
        } else {
            &cpus[..2]
        };
        // The last place holds whose turn it is.
        self.run(cpus, rounds + 1, |cpu, places| {
            let engine = engine();
            let turn = &places[rounds].words[0];
            for (round, place) in places[..rounds].iter().enumerate() {
                let word = &place.words[0];
                let first = round * turns;
                let my_turn = match cpu {
                    1 => first,
                    2 => first + 1,
                    _ => first + turns - 2,
                };
                wait(turn, |now| now == my_turn);
                match cpu {
                    1 if state != State::Memory => word.store(1, Ordering::Relaxed),
                    2 => _ = word.load(Ordering::Relaxed),
                    0 => {
                        // This keeps it away from the turn's own transfer.
                        engine.work(1000);
                        let start = engine.time.get();
                        match access {
                            Access::Load => _ = word.load(Ordering::Relaxed),
                            Access::Store => {
                                word.store(2, Ordering::Relaxed);
                                drain_all(engine);
                            }
                            Access::CompareAndSwap => {
                                let seen = usize::from(state != State::Memory);
                                _ = word.compare_exchange(
                                    seen,
                                    2,
                                    Ordering::AcqRel,
                                    Ordering::Relaxed,
                                );
                            }
                        }
                        taken.set(taken.get() + engine.time.get() - start);
                    }
                    _ => {}
                }
                // Whoever has no second sharer skips its turn.
                let skip = usize::from(cpu == 1 && state == State::Shared && cpus.len() == 2);
                let next = if cpu == 0 {
                    first + turns
                } else {
                    my_turn + 1 + skip
                };
                turn.store(next, Ordering::SeqCst);
            }
        })?;
        Ok(self.ns(taken.get()) / rounds as f64)
    }

    fn contended(&self, threads: usize, operation: impl Fn(&Lines)) -> Result<f64, SimError> {
        let order = self.topology.order(Placement::Spread, self.seed);
        // One thread a core, one socket after another.
        let mut order: Vec<usize> = order
            .into_iter()
            .filter(|hardware| hardware % self.topology.threads_per_core == 0)
            .collect();
        order.sort_unstable();
        if threads == 0 || threads > order.len() {
            return Err(refused(format!(
                "{threads} threads on {}, which has {} cores",
                self.machine.name,
                order.len()
            )));
        }
        let rounds = ROUNDS.max(8000 / threads as u32);
        // All work until the first is done; counted is what is done between
        // the first to be warm and that.
        let (done, start, end) = (Cell::new(0u64), Cell::new(None), Cell::new(None));
        self.run(&order[..threads], 1, |_, places| {
            let engine = engine();
            for round in 0..WARM_UP + rounds {
                if end.get().is_some() {
                    return;
                }
                if round == WARM_UP && start.get().is_none() {
                    start.set(Some(engine.time.get()));
                }
                operation(places[0]);
                if start.get().is_some() && end.get().is_none() {
                    done.set(done.get() + 1);
                }
            }
            if end.get().is_none() {
                end.set(Some(engine.time.get()));
            }
        })?;
        let taken = end.get().unwrap_or(0) - start.get().unwrap_or(0);
        Ok(self.ns(taken) / done.get().max(1) as f64)
    }

    /// Returns the elapsed time by operation, ns, and the mean of own times as a part of the
    /// elapsed time, when each thread does as many operations and ends: the medians of
    /// as many runs as the published figures are medians of.
    fn fixed_work(&self, operation: Operation, threads: usize) -> Result<(f64, f64), SimError> {
        const RUNS: u64 = 9;
        /// The number of threads up to which they stay in the order in which they
        /// began; more mix within a run, and one run is enough.
        const FEW: usize = 8;
        let runs = if threads <= FEW { RUNS } else { 1 };
        let (mut ns, mut own) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let bench = Bench {
                machine: self.machine,
                topology: Topology::new(self.machine),
                seed: self.seed.wrapping_add(run),
            };
            let (time, part) = bench.fixed_work_once(operation, threads)?;
            ns.push(time);
            own.push(part);
        }
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Ok((median(ns), median(own)))
    }

    /// Times one run of [`Bench::fixed_work`].
    fn fixed_work_once(
        &self,
        operation: Operation,
        threads: usize,
    ) -> Result<(f64, f64), SimError> {
        let order = self.topology.order(Placement::Numbered, self.seed);
        if threads == 0 || threads > order.len() {
            return Err(refused(format!(
                "{threads} threads on {}, which has {} hardware threads",
                self.machine.name,
                order.len()
            )));
        }
        let rounds = match operation {
            // Threads that keep the word for a while differ by chance, which
            // evens out over many rounds.
            Operation::Swaps => 2 * ROUNDS,
            _ => ROUNDS,
        };
        let (own, last) = (Cell::new(0u64), Cell::new(0u64));
        self.run(&order[..threads], 1, |_, places| {
            let engine = engine();
            let start = engine.time.get();
            for _ in 0..rounds {
                engine.work(jitter(engine, 0));
                operate(operation, places[0]);
            }
            drain_all(engine);
            let end = engine.time.get();
            own.set(own.get() + end - start);
            last.set(last.get().max(end));
        })?;
        let elapsed = last.get().max(1) as f64;
        let operations = f64::from(rounds) * threads as f64;
        Ok((
            elapsed / self.machine.get(FigureKey::CoreClockGhz) / operations,
            own.get() as f64 / threads as f64 / elapsed,
        ))
    }

    fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 / self.machine.get(FigureKey::CoreClockGhz)
    }
}

#[cfg(test)]
#[path = "../tests/unit/microbench.rs"]
mod tests;
