//! Machines of known behaviour in place of this one, block by block, with a clock
//! of their own: what the whole pipeline (plan, calibration, rules of disturbance,
//! runner, interim analyses, judge, regions) makes of them in their time.
//!
//! A rule that is good on the machine where it was found and bad on others shows
//! here as a share of decided cells, false calls or a minute that is not kept.

use super::*;
use crate::block::{PairRecord, SliceRecord, WorkerRecord};
use crate::disturbance::{Disturbance, Usage};
use crate::plan::Beat;
use crate::plan::Spec;
use crate::slice::Tally;
use crate::work::Calibration;
use locklab_harness::experiment::Invalid;
use locklab_harness::runner::run_unrecorded;
use locklab_harness::verdicts::judge;
use locklab_host::clock::Fault;
use locklab_host::environment::Environment;
use locklab_host::topology::Topology;
use locklab_judge::{Verdict, fork_seed};
use locklab_workload::Cells;

const MS: u64 = 1_000_000;

/// Describes what a machine does to its threads, besides running them.
#[derive(Clone, Copy, Debug, Default)]
struct Character {
    /// Standard deviation of a contended slice of 1 ms, and of one of a thread
    /// alone: shorter ones have more.
    noise: [f64; 2],
    /// Standard deviation of the ratio from block to block: other addresses.
    address: f64,
    /// The host moves the CPUs so often, in ns: to three times the distance.
    moves: Option<u64>,
    /// Says by how much the logarithm of the ratio is larger when they are far apart.
    depends: f64,
    /// Interruptions: how many a second on each CPU, and how long, in ns.
    interruptions: &'static [(f64, u64)],
    /// Says whether the scheduler counts them as switches to another thread.
    by_programs: bool,
    /// The clock speed changes by this factor every second.
    steps: f64,
    /// The second CPU takes so many times as long.
    slower: f64,
    /// The machine is suspended so often, in ns of its monotonic clock.
    sleeps: Option<u64>,
}

/// The machine, at a time.
struct Modelled {
    character: Character,
    seed: u64,
    /// Logarithm of the experiment's rate over the baseline's.
    effect: f64,
    began: Instant,
    /// Holds what the clock showed then.
    epoch: u64,
    /// Time since then, in ns.
    passed: u64,
    draws: u64,
}

impl Modelled {
    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        ((fork_seed(self.seed, self.draws) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn is_far(&self) -> bool {
        let period = self.character.moves;
        period.is_some_and(|period| (self.passed / period) % 3 == 2)
    }

    /// Returns the time for which a CPU is taken away during `wall` ns.
    fn taken(&mut self, wall: u64) -> u64 {
        let mut taken = 0;
        for (rate, length) in self.character.interruptions {
            // At most one of a kind in a slice: slices are short.
            if self.uniform() < rate * wall as f64 * 1e-9 {
                taken += length;
            }
        }
        taken
    }

    /// Returns one slice of one side: its record and those of its workers.
    fn slice(&mut self, block: &Block, effect: f64) -> (SliceRecord, Vec<WorkerRecord>) {
        let request = &block.request;
        let threads = request.threads;
        let usual = request.settle + request.length;
        let taken: Vec<u64> = (0..threads).map(|_| self.taken(usual)).collect();
        let worst = taken.iter().copied().max().unwrap_or(0);
        let alone = usize::from(threads == 1);
        let short = (MS as f64 / request.length as f64).sqrt();
        let noise = self.character.noise[alone] * short * self.normal();
        let speed = match (self.passed / 1_000_000_000) % 2 {
            1 if self.character.steps > 0.0 => self.character.steps.ln(),
            _ => 0.0,
        };
        let near = if self.is_far() && threads > 1 {
            3.0_f64.ln()
        } else {
            0.0
        };
        let slow = if threads > 1 {
            self.character.slower.max(1.0).ln()
        } else {
            0.0
        };
        // While a worker has no CPU the others get no further.
        let lost = worst.min(request.length) as f64 / request.length as f64;
        let rate = 0.02 * (noise + speed - near - slow + effect).exp() * (1.0 - lost);
        let turns = (rate * request.length as f64) as u64;
        let began = self.epoch + self.passed + request.settle;
        // The end is seen when the worker that lost its CPU has it again.
        let wall = usual + worst.saturating_sub(request.length);
        self.passed += wall + 5_000;
        let record = SliceRecord {
            measured: (began, began + request.length),
            turns_kept: turns / threads as u64 * threads as u64,
            ..SliceRecord::default()
        };
        let workers = taken.iter().map(|taken| WorkerRecord {
            tally: Tally {
                increments_ever: turns / threads as u64,
                turns: turns / threads as u64,
                writes: turns / threads as u64,
                ..Tally::default()
            },
            usage: Usage {
                wall,
                cpu: wall.saturating_sub(400 + taken),
                involuntary: u64::from(*taken > 0 && self.character.by_programs),
                ..Usage::default()
            },
        });
        let workers = workers.collect();
        (record, workers)
    }
}

impl Workers for Modelled {
    fn run(&mut self, block: &Arc<Block>) -> Result<Ending, Stopped> {
        let request = &block.request;
        // Threads start, memory is mapped.
        self.passed += MS;
        let began = self.passed;
        let address = self.character.address * self.normal();
        let (mut run, mut undisturbed) = (0, 0);
        loop {
            let draw = request.draw(run as usize);
            let mut record = PairRecord {
                trip: if self.is_far() { 96.0 } else { 33.0 } * (1.0 + 0.03 * self.uniform()),
                ..PairRecord::default()
            };
            if request.threads == 1 {
                record.trip = 0.0;
            }
            let far = if self.is_far() {
                self.character.depends
            } else {
                0.0
            };
            let mut workers = [Vec::new(), Vec::new()];
            let mut slices = [SliceRecord::default(); 2];
            for &side in draw.sides() {
                let effect = if side == 1 {
                    self.effect + far + address
                } else {
                    0.0
                };
                (slices[side], workers[side]) = self.slice(block, effect);
            }
            let disturbance = block.play(record, slices, [&workers[0], &workers[1]]);
            undisturbed += u32::from(disturbance == Disturbance::None);
            run += 1;
            let spent = self.passed - began;
            if request.is_over(run, undisturbed, spent, self.epoch + self.passed) {
                let times = |at: u64| self.character.sleeps.map(|period| at / period);
                if times(began) != times(self.passed) {
                    let slept = Fault::Slept(60_000).to_string();
                    return Ok(Ending::Badly(Invalid::Disturbed(slept)));
                }
                return Ok(Ending::Well);
            }
        }
    }

    fn now(&self) -> Instant {
        self.began + Duration::from_nanos(self.passed)
    }
}

/// Describes what a minute showed.
#[derive(Debug, Default)]
struct Minute {
    cells: usize,
    decided: usize,
    called: usize,
    invalid: usize,
    seconds: f64,
    split: bool,
    regions_called: usize,
}

/// Measures a third of the default matrix of two CPUs, on a machine of this character: a
/// third of a minute is as much for a cell as a minute for all.
fn minute(character: Character, effect: f64, seconds: u64, seed: u64) -> Minute {
    let environment = Environment::read();
    let native = Native {
        machine: Machine::new(&environment, &[0, 1]),
        environment,
        topology: Topology {
            order: vec![0, 1],
            known: true,
            cores: 2,
            nodes: 1,
        },
        calibration: Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.3,
        },
        clock_cost: 25.0,
        grain: 500,
        start: [MS / 10, 3 * MS / 10],
        unpinnable: Vec::new(),
        speeds: Vec::new(),
    };
    let spec = Spec {
        cells: Cells {
            critical: vec![0, 8, 128],
            non_critical: vec![1, 32],
            ..Cells::default()
        },
        time: Duration::from_secs(seconds),
        ..Spec::new("ticket", "ticket")
    };
    let beat = Beat {
        clock_interval: 10_000,
        tick: 4 * MS,
        start: [MS / 10, 3 * MS / 10],
    };
    let plan = Plan::of(spec, &native.topology, native.calibration, beat).unwrap();
    let design = Design {
        seed,
        aa: effect == 0.0,
        ..Design::usual(pairs_for(plan.cells.len()))
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    let code = crate::subject::code("ticket").unwrap();
    let (mut slices, mut experiment) = native
        .backend_of([code, code], plan, design, Arc::clone(&interrupt))
        .unwrap();
    let predicted = crate::resolution::Prediction { decided: 9, of: 12 };
    predicted.note(&mut experiment);
    let began = Instant::now();
    slices.workers = Box::new(Modelled {
        character,
        seed,
        effect,
        began,
        epoch: clock::now(),
        passed: 0,
        draws: 0,
    });
    let outcome = run_unrecorded(&mut slices, &mut experiment, &interrupt);
    assert_eq!(outcome.stopped, None);
    let verdicts = judge(&experiment).unwrap();
    // A report says what became of the prediction.
    let mut report = locklab_document::Document::default();
    crate::variance::append(&experiment, &verdicts, &mut report);
    let said = format!("{:?}", report.sections);
    assert!(said.contains("The machine card predicted that 9"), "{said}");
    let mut minute = Minute {
        seconds: (slices.now() - began).as_secs_f64(),
        split: verdicts.places.matter(),
        ..Minute::default()
    };
    for cell in &verdicts.cells {
        minute.cells += 1;
        match cell.verdict() {
            Some(Verdict::Better | Verdict::Worse) => {
                minute.decided += 1;
                minute.called += 1;
            }
            Some(Verdict::Flat { .. }) => minute.decided += 1,
            Some(Verdict::Invalid(_)) => minute.invalid += 1,
            Some(Verdict::Unclear { .. }) | None => {}
        }
    }
    let called = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
    let regions = verdicts.regions.iter();
    minute.regions_called = regions.filter(|r| called(&r.judged.verdict)).count();
    minute
}

const QUIET: Character = Character {
    noise: [0.03, 0.004],
    address: 0.004,
    moves: None,
    depends: 0.0,
    interruptions: &[],
    by_programs: false,
    steps: 0.0,
    slower: 0.0,
    sleeps: None,
};

/// Each kind of trouble, and how many of 12 cells are decided at least where nothing
/// differs.
const MACHINES: [(&str, usize, Character); 9] = [
    ("quiet", 11, QUIET),
    (
        "moves every 400 ms",
        11,
        Character {
            moves: Some(400 * MS),
            ..QUIET
        },
    ),
    (
        "kernel threads of 20 us, 250 a second",
        11,
        Character {
            interruptions: &[(250.0, 20_000)],
            by_programs: true,
            ..QUIET
        },
    ),
    (
        "bursts of steal",
        11,
        Character {
            interruptions: &[(3.0, 10 * MS), (40.0, 300_000)],
            ..QUIET
        },
    ),
    (
        "a busy program",
        8,
        Character {
            noise: [0.06, 0.01],
            interruptions: &[(60.0, 3 * MS)],
            by_programs: true,
            ..QUIET
        },
    ),
    (
        "steps of frequency",
        11,
        Character {
            steps: 1.4,
            ..QUIET
        },
    ),
    (
        "one CPU twice as slow",
        11,
        Character {
            slower: 2.0,
            ..QUIET
        },
    ),
    (
        "suspended twice a second",
        11,
        Character {
            sleeps: Some(500 * MS),
            ..QUIET
        },
    ),
    // Another program has half of each CPU.
    (
        "the policy SCHED_IDLE",
        8,
        Character {
            noise: [0.06, 0.01],
            interruptions: &[(10.0, 50 * MS)],
            by_programs: true,
            ..QUIET
        },
    ),
];

#[test]
fn the_time_decides_most_cells_calls_none_wrongly_and_is_kept_on_any_machine() {
    let (mut called, mut cells) = (0, 0);
    for (name, least, character) in MACHINES {
        let found = minute(character, 0.0, 20, 11);
        println!("{name:<40} {found:?}");
        assert!(found.decided >= least, "{name}: {found:?}");
        assert!(found.seconds <= 22.0, "{name}: {found:?}");
        assert_eq!((found.invalid, found.split), (0, false), "{name}");
        called += found.called + found.regions_called;
        cells += found.cells;
        // Three percent is found everywhere, and as itself.
        let found = minute(character, 0.03, 20, 12);
        assert!(found.called >= least, "{name}: {found:?}");
    }
    // Two of a hundred, as is promised of this machine.
    assert!(50 * called <= cells, "{called} of {cells}");
}

#[test]
fn a_ratio_that_depends_on_the_placement_is_split_by_it() {
    let moving = Character {
        moves: Some(400 * MS),
        depends: 0.08,
        ..QUIET
    };
    assert!(minute(moving, 0.0, 20, 5).split);
}

#[test]
fn a_second_ends_after_a_second_with_what_it_has() {
    let (mut called, mut cells) = (0, 0);
    for (name, _, character) in MACHINES {
        let found = minute(character, 0.0, 1, 3);
        assert!(found.seconds <= 2.0, "{name}: {found:?}");
        assert_eq!(found.cells, 12, "{name}: {found:?}");
        called += found.called;
        cells += found.cells;
    }
    // One run of twenty calls something wrongly: the family's error rate.
    assert!(50 * called <= cells, "{called} of {cells}");
}
