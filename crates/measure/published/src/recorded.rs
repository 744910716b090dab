//! Recordings of what every lock did on a machine, beside a model of that machine: how far the
//! model can be believed there.
//!
//! A virtual machine's host moves its CPUs, so a recording has a model for each place at which
//! locks were measured, and each figure is compared at its own. What is kept is raw: a change
//! of the simulator is judged on machines that nobody has at hand any more. It must never
//! choose a figure of a model, and never measures.

use crate::agreement::{Published, agreement, factor_error};
use crate::program_locks;
use locklab_document::{Column, Document, Section, Table, number};
use locklab_host::error::Error;
use locklab_locks::catalogue;
use locklab_sim::{Machine, Scenario, Workload, can_be_simulated, run_all};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Figures whose round trips differ by no more than this factor are of one place.
const SAME_PLACE: f64 = 1.3;
/// Measured rates that differ by no more than this factor are in no order.
const TIE: f64 = 1.05;

/// What every lock did on one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The processor, and what else ran.
    pub machine: String,
    /// The time at which it was recorded.
    pub date: String,
    /// A model of the machine for each place of its CPUs, that of the file first.
    pub fits: Vec<Fitted>,
    /// The measured rates, one of each block.
    pub rows: Vec<Row>,
}

/// A model of the machine at one place of its CPUs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The round trip of a cache line between its CPUs then, by stores, in ns.
    pub round_trip_ns: f64,
    /// The machine file.
    pub file: String,
}

/// One lock in one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name of the lock.
    pub lock: String,
    /// Number of threads, each on a CPU of its own.
    pub threads: usize,
    /// Length of the critical section, in units of the matrix.
    pub critical: u32,
    /// Length of the non-critical section.
    pub non_critical: u32,
    /// The round trip of a cache line in the block; none with one thread.
    pub round_trip_ns: Option<f64>,
    /// Acquisitions a second; none where the machine disturbed the block.
    pub ops_per_s: Option<f64>,
}

/// Kinds of locks, each of which a model may have right or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Whoever comes first after a release takes it.
    TestAndSet,
    /// First come, first served, by numbers.
    TicketsAndArrays,
    /// First come, first served, by links.
    Queues,
    /// Waiters may sleep.
    Sleepers,
    /// Readers share it.
    Readers,
}

impl Family {
    const ALL: [(Self, &str); 5] = [
        (Self::TestAndSet, "test-and-set"),
        (Self::TicketsAndArrays, "tickets and arrays"),
        (Self::Queues, "queues"),
        (Self::Sleepers, "sleepers"),
        (Self::Readers, "readers"),
    ];

    fn of(lock: &str) -> Self {
        let entry = catalogue::ALL.iter().find(|entry| entry.info.name == lock);
        let shares = entry.is_some_and(|entry| entry.info.readers_share);
        let has = |parts: &[&str]| parts.iter().any(|part| lock.contains(part));
        match () {
            () if shares || has(&["rwlock"]) => Self::Readers,
            () if program_locks::sleeps(lock) => Self::Sleepers,
            () if has(&["ticket", "anderson", "twa"]) => Self::TicketsAndArrays,
            () if has(&["tas", "virt-spin", "fissile"]) => Self::TestAndSet,
            () => Self::Queues,
        }
    }
}

/// Where and how locks were measured: threads, lengths, and the place by its number.
type Group = (usize, u32, u32, usize);

/// A measured figure beside the simulated one.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// The name of the lock.
    pub lock: String,
    /// The kind of the lock.
    pub family: Family,
    /// The number of the place at which it was measured.
    #[serde(skip)]
    place: usize,
    /// Number of threads.
    pub threads: usize,
    /// Length of the critical section.
    pub critical: u32,
    /// Length of the non-critical section.
    pub non_critical: u32,
    /// The round trip of a line where it was measured.
    pub round_trip_ns: Option<f64>,
    /// The median of the measured rates.
    pub measured: f64,
    /// The simulated rate.
    pub simulated: f64,
}

/// A recording beside the simulation.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Each lock at each place.
    pub rows: Vec<Beside>,
    /// What is left out, with the reason.
    pub left_out: Vec<String>,
}

/// How far the two agree, of several threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Spearman's rank correlation, the mean over places and lengths.
    pub spearman: f64,
    /// The median factor between simulated and measured rates.
    pub factor: f64,
    /// Pairs of locks whose measured rates differ by more than 5 %.
    pub pairs: usize,
    /// Those of them in the measured order.
    pub in_order: usize,
}

impl Recording {
    /// Simulates it on `workers` threads.
    ///
    /// # Errors
    /// If a model is invalid, or a lock does not work in the simulator.
    pub fn compare(&self, seed: u64, workers: usize) -> Result<Compared, Error> {
        program_locks::register();
        let mut compared = Compared::default();
        let machines: Vec<Machine> = self
            .fits
            .iter()
            .map(|fit| Machine::parse("a model of a recording", &fit.file))
            .collect::<Result<_, _>>()?;
        let mut found: BTreeMap<(Group, &str), Vec<&Row>> = BTreeMap::new();
        let mut elsewhere = 0;
        for row in self.rows.iter().filter(|row| can_be_simulated(&row.lock)) {
            let Some(place) = self.place(row) else {
                elsewhere += 1;
                continue;
            };
            let group = (row.threads, row.critical, row.non_critical, place);
            found.entry((group, &*row.lock)).or_default().push(row);
        }
        if elsewhere > 0 {
            compared.left_out.push(format!(
                "{}, of places that have no model",
                number::count(elsewhere, "figure")
            ));
        }
        let mut scenarios = Vec::new();
        for (((threads, critical, non_critical, place), lock), rows) in found {
            let mut rates: Vec<f64> = rows.iter().filter_map(|row| row.ops_per_s).collect();
            if rates.len() * 2 <= rows.len() {
                compared.left_out.push(format!(
                    "{lock} with {} and lengths {critical} and {non_critical}: the machine \
                     disturbed {} of {} blocks",
                    number::count(threads, "thread"),
                    rows.len() - rates.len(),
                    rows.len()
                ));
                continue;
            }
            rates.sort_by(f64::total_cmp);
            let workload = Workload::Matrix {
                critical,
                non_critical,
            };
            let mut scenario = Scenario::new(machines[place].clone(), lock, workload, threads);
            scenario.seed = seed;
            scenarios.push(scenario);
            compared.rows.push(Beside {
                lock: lock.to_owned(),
                family: Family::of(lock),
                place,
                threads,
                critical,
                non_critical,
                round_trip_ns: (threads > 1).then_some(self.fits[place].round_trip_ns),
                measured: rates[rates.len() / 2],
                simulated: 0.0,
            });
        }
        let outcomes = run_all(&scenarios, workers, |_| {})?;
        for (row, outcome) in compared.rows.iter_mut().zip(outcomes) {
            row.simulated = outcome.ops_per_s;
        }
        Ok(compared)
    }

    /// Returns the number of the place at which a figure was measured; none if it has no model.
    fn place(&self, row: &Row) -> Option<usize> {
        let Some(trip) = row.round_trip_ns else {
            return Some(0);
        };
        let off = |fit: &Fitted| factor_error(fit.round_trip_ns, trip);
        let places = self.fits.iter().enumerate();
        let nearest = places.min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)))?;
        (off(nearest.1) <= SAME_PLACE).then_some(nearest.0)
    }
}

impl Compared {
    fn groups(&self) -> Vec<(Group, Vec<&Beside>)> {
        let mut groups: BTreeMap<Group, Vec<&Beside>> = BTreeMap::new();
        for row in &self.rows {
            let group = (row.threads, row.critical, row.non_critical, row.place);
            groups.entry(group).or_default().push(row);
        }
        groups.into_iter().collect()
    }

    /// Returns how far the two agree over all figures of several threads; none if there are no
    /// pairs of them.
    #[must_use]
    pub fn found(&self) -> Option<Found> {
        let (mut pairs, mut in_order, mut ranks) = (0, 0, Vec::new());
        let groups = self.groups().into_iter();
        for (_, rows) in groups.filter(|((threads, ..), _)| *threads > 1) {
            for (at, one) in rows.iter().enumerate() {
                for other in &rows[at + 1..] {
                    let differs = factor_error(one.measured, other.measured) > TIE;
                    let right =
                        (one.measured > other.measured) == (one.simulated > other.simulated);
                    pairs += usize::from(differs);
                    in_order += usize::from(differs && right);
                }
            }
            let all: Vec<_> = (rows.iter())
                .map(|row| (Published::Ratio(row.measured), row.simulated))
                .collect();
            ranks.extend(agreement(&all).spearman);
        }
        let factor = self.factor(|row| row.threads > 1)?;
        (pairs > 0 && !ranks.is_empty()).then(|| Found {
            spearman: ranks.iter().sum::<f64>() / ranks.len() as f64,
            factor,
            pairs,
            in_order,
        })
    }

    fn factor(&self, of: impl Fn(&Beside) -> bool) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| of(row));
        let pairs: Vec<_> = rows
            .map(|row| (Published::Ratio(row.measured), row.simulated))
            .collect();
        agreement(&pairs).median_factor_error
    }

    /// Returns what a report on this machine quotes; none without locks to compare.
    #[must_use]
    pub fn sentence(&self, date: &str) -> Option<String> {
        let found = self.found()?;
        Some(format!(
            "On this machine ({date}) the model's order of locks is right in {:.0} of 100 pairs whose \
             measured rates differ by more than 5 %, and its rates of several threads are off by a \
             median factor of {:.2}.",
            100.0 * found.in_order as f64 / found.pairs as f64,
            found.factor
        ))
    }

    /// Returns the report.
    #[must_use]
    pub fn document(&self, recording: &Recording) -> Document {
        let mut document = Document {
            title: "Every lock, measured here and simulated on the model of this machine".into(),
            head: vec![
                ("Measured".into(), recording.machine.clone()),
                ("Date".into(), recording.date.clone()),
            ],
            labels: locklab_harness::experiment::Labels::new("measured", "simulated"),
            ..Document::default()
        };
        for ((threads, critical, non_critical, place), rows) in self.groups() {
            let at = match threads {
                1 => String::new(),
                _ => format!(
                    ", {:.0} ns from CPU to CPU and back",
                    recording.fits[place].round_trip_ns
                ),
            };
            let title = format!(
                "{}, critical {critical}, non-critical {non_critical}{at}: million acquisitions a \
                 second",
                number::count(threads, "thread")
            );
            let lines = rows.iter().map(|row| {
                vec![
                    row.lock.clone(),
                    format!("{:.3}", row.measured / 1e6),
                    format!("{:.3}", row.simulated / 1e6),
                    format!("{:.2}", row.simulated / row.measured),
                ]
            });
            let columns = vec![
                Column::words("lock", 22),
                Column::new("measured", 9),
                Column::new("simulated", 10),
                Column::new("factor", 7),
            ];
            let table = Table::new(columns, lines.collect());
            document.push(Section::new(title).with(locklab_document::Part::Table(table)));
        }
        let mut items: Vec<String> = self.sentence(&recording.date).into_iter().collect();
        if let Some(found) = self.found() {
            items.push(format!(
                "Spearman's rank correlation is {:.2}.",
                found.spearman
            ));
        }
        let families = Family::ALL.iter().filter_map(|(family, name)| {
            let factor = self.factor(|row| row.family == *family && row.threads > 1)?;
            Some(format!("{name} {factor:.2}"))
        });
        let families: Vec<String> = families.collect();
        if !families.is_empty() {
            items.push(format!(
                "Median factor with several threads, by family: {}.",
                families.join(", ")
            ));
        }
        document.push(Section::new("Agreement").items(items));
        if !self.left_out.is_empty() {
            document.push(Section::new("Left out").items(self.left_out.clone()));
        }
        for (key, value) in [
            ("schema", json!(1)),
            ("kind", json!("machine-check-locks")),
            ("agreement", json!(self.found())),
            ("rows", json!(self.rows)),
            ("left_out", json!(self.left_out)),
            ("recording", json!(recording)),
        ] {
            document.data.insert(key.into(), value);
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(rows: &[(&str, Option<f64>, f64)]) -> Recording {
        let file = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../machines/flat-16.toml"
        ));
        let rows = rows.iter().map(|(lock, rate, trip)| Row {
            lock: (*lock).into(),
            threads: 2,
            critical: 1,
            non_critical: 32,
            round_trip_ns: Some(*trip),
            ops_per_s: *rate,
        });
        Recording {
            machine: "m".into(),
            date: "28 November 2026".into(),
            fits: vec![Fitted {
                round_trip_ns: 100.0,
                file: file.unwrap(),
            }],
            rows: rows.collect(),
        }
    }

    #[test]
    fn each_figure_is_compared_at_its_own_place_and_a_disturbed_one_is_named() {
        let recording = recording(&[
            ("ticket", Some(2e6), 100.0),
            ("ticket", Some(3e6), 120.0),
            ("ticket", Some(9e9), 300.0),
            ("mcs", Some(1e6), 90.0),
            ("clh", None, 100.0),
            ("clh", Some(1e6), 100.0),
        ]);
        let compared = recording.compare(1, 1).unwrap();
        let names: Vec<_> = compared.rows.iter().map(|row| row.lock.as_str()).collect();
        assert_eq!(names, ["mcs", "ticket"]);
        assert_eq!(compared.rows[1].measured, 3e6);
        assert!(compared.rows.iter().all(|row| row.simulated > 0.0));
        let [elsewhere, disturbed] = &compared.left_out[..] else {
            panic!("{:?}", compared.left_out);
        };
        assert!(elsewhere.starts_with("1 figure, of places"), "{elsewhere}");
        assert!(disturbed.contains("clh with 2 threads"), "{disturbed}");
        assert!(disturbed.contains("disturbed 1 of 2 blocks"), "{disturbed}");
        // Two locks have no rank correlation.
        assert_eq!(compared.found(), None);
    }

    #[test]
    fn every_lock_has_a_family() {
        for (lock, family) in [
            ("ttas", Family::TestAndSet),
            ("anderson", Family::TicketsAndArrays),
            ("hemlock", Family::Queues),
            ("pthread", Family::Sleepers),
            ("std-rwlock", Family::Readers),
            ("phase-fair", Family::Readers),
        ] {
            assert_eq!(Family::of(lock), family, "{lock}");
        }
    }

    #[test]
    fn the_order_counts_where_measured_rates_differ() {
        let row = |lock: &str, measured: f64, simulated: f64| Beside {
            lock: lock.into(),
            family: Family::of(lock),
            place: 0,
            threads: 2,
            critical: 1,
            non_critical: 1,
            round_trip_ns: None,
            measured,
            simulated,
        };
        let compared = Compared {
            rows: vec![
                row("tas", 1.00, 5.0),
                row("ttas", 1.02, 4.0),
                row("mcs", 2.0, 6.0),
                row("clh", 3.0, 5.5),
                row("ticket", 4.0, 8.0),
            ],
            left_out: Vec::new(),
        };
        let found = compared.found().unwrap();
        assert_eq!((found.pairs, found.in_order), (9, 8));
        assert!((found.factor - 3.0).abs() < 1e-9, "{}", found.factor);
        let sentence = compared.sentence("today").unwrap();
        assert!(sentence.contains("right in 89 of 100 pairs"), "{sentence}");
    }
}
