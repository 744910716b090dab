//! The resolution of this machine, which reports call its machine card: what it shows
//! within a minute, measured in some
//! seconds, and the number of cells that a plan will decide, predicted from it.
//!
//! It compares a lock with itself, so that all it sees is the machine. It is
//! kept beside the store, and a run says what became of its prediction. It must
//! never enter a verdict.

use crate::backend::pairs_for;
use crate::figures::Detail;
use crate::plan::{Plan, Spec};
use crate::probe::Native;
use locklab_document::number;
use locklab_harness::experiment::{Cell, Design, Experiment};
use locklab_harness::placement::gap;
use locklab_harness::runner::{Stop, run_unrecorded};
use locklab_harness::verdicts::{Verdicts, primary_pairs};
use locklab_host::error::Error;
use locklab_host::machine::Machine;
use locklab_judge::{MIN_PAIRS, Verdict, estimate};
use locklab_workload::Cells;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The lock that is compared with itself.
const LOCK: &str = "ticket";

/// Holds what a machine resolves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// The processor, the CPUs and the kernel that were measured.
    pub machine: Machine,
    /// Seconds for which it was measured.
    pub seconds: f64,
    /// One thread, and as many as there are CPUs.
    pub rows: Vec<Row>,
    /// Says how often a minute the CPUs were at another distance than just before; a
    /// lower bound, because they may have been moved and back between two looks.
    pub moves_per_minute: f64,
    /// The share of pairs of slices that other programs or the hypervisor
    /// disturbed.
    pub disturbed: f64,
}

/// The cells of one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number of threads.
    pub threads: usize,
    /// Holds for each cell the standard deviation of the logarithm of the ratio, from
    /// block to block, and the time of a block in ns.
    pub scatter: Vec<(f64, u64)>,
}

/// The number of cells that a plan will decide, if the two locks are equal: the
/// harder case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The cells that will be decided.
    pub decided: usize,
    /// The cells that it predicts something of: no more threads than CPUs.
    pub of: usize,
}

/// Measures the resolution of this machine.
///
/// # Errors
/// [`Error::Failed`] if it cannot be measured, [`Error::Interrupted`] if `interrupt` was
/// set.
pub fn measure(
    native: &Native,
    time: Duration,
    interrupt: &Arc<AtomicBool>,
) -> Result<Resolution, Error> {
    let mut threads = vec![1, native.topology.order.len()];
    threads.dedup();
    let spec = Spec {
        cells: Cells {
            threads,
            critical: vec![0, 8, 128],
            non_critical: vec![1, 32],
            ..Cells::default()
        },
        time,
        ..Spec::new(LOCK, LOCK)
    };
    let plan = Plan::new(spec, native)?;
    let design = Design {
        aa: true,
        ..Design::usual(pairs_for(plan.cells.len()))
    };
    let blocks = plan.blocks(design.pairs);
    let (mut slices, mut experiment) = native
        .backend(plan, design, Arc::clone(interrupt))
        .map_err(|error| error.reworded(|why| format!("cannot measure the machine card: {why}")))?;
    let outcome = run_unrecorded(&mut slices, &mut experiment, interrupt);
    match outcome.stopped {
        Some(Stop::Fatal(why)) => {
            let why = format!("cannot measure the machine card: {why}");
            return Err(Error::Failed(why));
        }
        Some(_) => {
            let why = "interrupted before the machine card was measured";
            return Err(Error::Interrupted(why.into()));
        }
        None => {}
    }
    Ok(of(native.machine.clone(), time, &experiment.cells, &blocks))
}

fn of(machine: Machine, time: Duration, cells: &[Cell], blocks: &[u64]) -> Resolution {
    let mut rows: Vec<Row> = Vec::new();
    let (mut disturbed, mut slices) = (0, 0);
    for (cell, block) in cells.iter().zip(blocks) {
        let threads = cell.key.number("threads").unwrap_or(1);
        let threads = usize::try_from(threads).unwrap_or(usize::MAX);
        if let Some(estimate) = estimate(
            &primary_pairs(cell),
            locklab_judge::Direction::HigherIsBetter,
        ) && estimate.pairs > 2
        {
            let scatter = (estimate.spread, *block);
            match rows.iter_mut().find(|row| row.threads == threads) {
                Some(row) => row.scatter.push(scatter),
                None => rows.push(Row {
                    threads,
                    scatter: vec![scatter],
                }),
            }
        }
        for pair in &cell.pairs {
            if let Some(detail) = Detail::of(&pair.baseline) {
                let found = detail.slices;
                disturbed += found.preempted + found.stolen;
                slices += found.kept + found.preempted + found.stolen;
            }
        }
    }
    Resolution {
        machine,
        seconds: time.as_secs_f64(),
        rows,
        moves_per_minute: moves(cells) * 60.0 / time.as_secs_f64().max(1e-9),
        disturbed: f64::from(disturbed) / f64::from(slices.max(1)),
    }
}

/// Returns how often the host moved the CPUs while these cells were measured: the mean
/// over the cells of several threads, whose blocks are spread over the whole time, of the
/// changes from one round trip to the next.
fn moves(cells: &[Cell]) -> f64 {
    let trips: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| {
            let placements = cell.pairs.iter().filter_map(|pair| pair.baseline.placement);
            placements.flat_map(|p| [p.before, p.after]).collect()
        })
        .filter(|trips: &Vec<f64>| trips.len() > 1)
        .collect();
    let Some(far) = gap(trips.concat(), MIN_PAIRS) else {
        return 0.0;
    };
    let changes = |trips: &Vec<f64>| {
        let both = trips.windows(2);
        both.filter(|two| (two[0] >= far) != (two[1] >= far))
            .count()
    };
    trips.iter().map(changes).sum::<usize>() as f64 / trips.len() as f64
}

impl Row {
    /// Returns the median 95 % width of a cell that has `time` ns, as a fraction.
    fn width(&self, time: f64) -> f64 {
        let widths = self.scatter.iter().map(|(spread, block)| {
            let blocks = (time / *block as f64).max(1.0);
            2.0 * 1.96 * spread / blocks.sqrt()
        });
        locklab_harness::verdicts::median(widths.collect()).unwrap_or(f64::NAN)
    }

    /// Returns the probability that a cell with so many blocks is shown flat within
    /// `delta`, if there is no difference.
    fn flat(&self, blocks: f64, delta: f64) -> f64 {
        let of = |(spread, _): &(f64, u64)| {
            let error = spread / blocks.sqrt();
            let room = delta.ln_1p() - 1.645 * error;
            if room <= 0.0 {
                0.0
            } else {
                1.0 - two_sided_tail(room / error.max(1e-12))
            }
        };
        let sum: f64 = self.scatter.iter().map(of).sum();
        sum / self.scatter.len().max(1) as f64
    }
}

/// Returns P(|Z| >= z), to three digits (Abramowitz and Stegun 1964, 26.2.18): for a
/// prediction, and no verdict.
fn two_sided_tail(z: f64) -> f64 {
    let p = 1.0 + z * (0.196_854 + z * (0.115_194 + z * (0.000_344 + z * 0.019_527)));
    p.powi(-4)
}

impl Resolution {
    /// Returns its lines, as facts.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let percent = |x: f64| format!("{} %", number::percent(100.0 * x));
        let mut facts: Vec<(String, String)> = self
            .rows
            .iter()
            .map(|row| {
                // It is as in the default matrix: 18 cells of each number of threads,
                // and more of the time where threads contend.
                let share = if row.threads == 1 { 0.3 } else { 0.7 };
                let width = row.width(60e9 * share / 18.0);
                (
                    number::count(row.threads, "thread"),
                    format!("a 95 % interval is {} wide after a minute", percent(width)),
                )
            })
            .collect();
        facts.push((
            "Host".into(),
            match self.moves_per_minute {
                0.0 => "was not seen to move the CPUs".into(),
                moves => format!("moved the CPUs at least {moves:.0} times a minute"),
            },
        ));
        facts.push((
            "Background".into(),
            format!("disturbed {} of the slices", percent(self.disturbed)),
        ));
        facts
    }

    /// Returns the number of cells that `plan` will decide with this design; `None` for
    /// another machine, or a plan without such cells.
    #[must_use]
    pub fn predict(&self, plan: &Plan, design: &Design, machine: &Machine) -> Option<Prediction> {
        if *machine != self.machine {
            return None;
        }
        let blocks = plan.blocks(design.pairs);
        let rounds = plan.rounds(design.pairs);
        let (mut decided, mut of) = (0.0, 0);
        for (cell, block) in plan.cells.iter().zip(blocks) {
            let row = match cell.threads {
                _ if cell.oversubscribed => None,
                1 => self.rows.iter().find(|row| row.threads == 1),
                _ => self.rows.iter().find(|row| row.threads > 1),
            };
            let Some(row) = row else { continue };
            let measured: u64 = row.scatter.iter().map(|(_, block)| block).sum();
            let longer = block as f64 * row.scatter.len() as f64 / measured.max(1) as f64;
            decided += row.flat(rounds * longer, design.delta);
            of += 1;
        }
        (of > 0).then(|| Prediction {
            decided: decided.round() as usize,
            of,
        })
    }
}

/// Returns its file, beside a store.
#[must_use]
pub fn path(store: &Path) -> Option<PathBuf> {
    let folder = store.parent().filter(|_| store != Path::new(":memory:"))?;
    Some(folder.join("machine-card.json"))
}

/// Returns what a file holds; `None` if there is none that can be read.
#[must_use]
pub fn read(path: &Path) -> Option<Resolution> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Writes it to a file.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written.
pub fn write(resolution: &Resolution, path: &Path) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(resolution).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text + "\n"))
        .map_err(|e| {
            let path = path.display();
            Error::Failed(format!("cannot write the machine card {path}: {e}"))
        })
}

impl Prediction {
    /// The field of a matrix's specification that has it.
    const FIELD: &str = "predicted";

    /// Notes it in an experiment that is about to run.
    pub fn note(&self, experiment: &mut Experiment) {
        if let Some(spec) = experiment.spec.as_object_mut() {
            // Our own type, with string keys: this cannot fail.
            let value = serde_json::to_value(self).unwrap_or_default();
            spec.insert(Self::FIELD.into(), value);
        }
        experiment.facts.push((
            "Predicted".into(),
            format!(
                "{} of {} decided, if the locks are equal (machine card)",
                self.decided,
                number::count(self.of, "cell")
            ),
        ));
    }
}

/// Returns what became of the prediction of an experiment, if it had one.
#[must_use]
pub fn outcome(experiment: &Experiment, verdicts: &Verdicts) -> Option<String> {
    let noted = experiment.spec.get(Prediction::FIELD)?;
    let Prediction { decided, of } = Prediction::deserialize(noted).ok()?;
    let found = verdicts
        .cells
        .iter()
        .filter(|judged| !experiment.cells[judged.cell].oversubscribed)
        .filter(|judged| {
            let open = matches!(judged.verdict(), Some(Verdict::Unclear { .. }));
            !open && !judged.is_invalid()
        });
    Some(format!(
        "The machine card predicted that {decided} of {} would be decided if the locks were \
         equal; {} were.",
        number::count(of, "cell"),
        found.count()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Beat;
    use crate::work::Calibration;
    use locklab_host::topology::Topology;

    fn resolution_of(alone: f64, contended: f64) -> Resolution {
        let row = |threads, spread| Row {
            threads,
            scatter: vec![(spread, 20_000_000); 6],
        };
        Resolution {
            machine: Machine {
                name: "a machine".into(),
                kernel: String::new(),
                compiler: String::new(),
                host: String::new(),
                cpus: vec![0, 1],
            },
            seconds: 10.0,
            rows: vec![row(1, alone), row(2, contended)],
            moves_per_minute: 3.0,
            disturbed: 0.02,
        }
    }

    fn predicted(card: &Resolution, threads: Vec<usize>) -> Option<Prediction> {
        let topology = Topology {
            order: vec![0, 1],
            known: true,
            cores: 2,
            nodes: 1,
        };
        let calibration = Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.25,
        };
        let beat = Beat {
            clock_interval: 10_000,
            tick: 4_000_000,
            start: [100_000, 300_000],
        };
        let spec = Spec {
            cells: Cells {
                threads,
                critical: vec![0, 1, 2, 4, 8, 16, 32, 64, 128],
                non_critical: vec![1, 32],
                ..Cells::default()
            },
            ..Spec::new("ticket", "mcs")
        };
        let plan = Plan::of(spec, &topology, calibration, beat).unwrap();
        let design = Design::usual(13);
        card.predict(&plan, &design, &card.machine)
    }

    #[test]
    fn a_quiet_machine_decides_all_and_a_noisy_one_only_what_does_not_contend() {
        let decided = |card: &Resolution| predicted(card, vec![1, 2, 4]).unwrap();
        assert_eq!(
            decided(&resolution_of(0.001, 0.005)),
            Prediction {
                decided: 36,
                of: 36
            }
        );
        assert_eq!(
            decided(&resolution_of(0.001, 0.5)),
            Prediction {
                decided: 18,
                of: 36
            }
        );
        let between = decided(&resolution_of(0.001, 0.035)).decided;
        assert!(between > 18 && between < 36, "{between}");
        assert_eq!(predicted(&resolution_of(0.001, 0.01), vec![4]), None);
        assert!((two_sided_tail(1.96) - 0.05).abs() < 1e-3);
    }

    #[test]
    fn moves_between_blocks_count_as_well_as_those_within_one() {
        use locklab_harness::experiment::{Key, Order, Pair, Placement, Sample};
        let cell = |trips: &[(f64, f64)]| {
            let pairs = trips.iter().zip(0..).map(|(&(before, after), index)| Pair {
                index,
                order: Order::BaselineFirst,
                baseline: Sample {
                    placement: Some(Placement {
                        before,
                        after,
                        typical: None,
                    }),
                    ..Sample::default()
                },
                experiment: Sample::default(),
            });
            let mut cell = Cell::new(Key::point(2, 8, 1), vec![]);
            cell.pairs = pairs.collect();
            cell
        };
        let (near, far) = ((33.0, 34.0), (97.0, 99.0));
        let between = cell(&[near, near, far, far, near, near]);
        let within = cell(&[near, near, (33.0, 98.0), far, (99.0, 34.0), near]);
        assert_eq!(moves(&[between, within.clone(), within]), 2.0);
        // Spread evenly, as noise is: no gap, so one place.
        let noisy: Vec<(f64, f64)> = (0..12)
            .map(|i| (33.0 + f64::from(i * 5 % 12), 39.0))
            .collect();
        assert_eq!(moves(&[cell(&noisy), cell(&[])]), 0.0);
    }

    #[test]
    fn a_card_is_kept_beside_the_store_and_is_of_one_machine() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("locklab.sqlite")).unwrap();
        assert_eq!(
            (read(&path), super::path(Path::new(":memory:"))),
            (None, None)
        );
        let card = resolution_of(0.002, 0.01);
        write(&card, &path).unwrap();
        assert_eq!(read(&path), Some(card.clone()));
        assert_eq!(card.facts().len(), 4);
        std::fs::write(&path, "{").unwrap();
        assert_eq!(read(&path), None);
    }
}
