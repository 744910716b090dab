//! A toy backend: what a backend gets from the harness when it only
//! names its cells and runs one side of a pair. Text, HTML, JSON,
//! resume, A/A runs with bias bands; see docs/adding-a-backend.md.

use crate::common::{context, xml};
use locklab_document::render::{Colour, html, json, junit, markdown, text};
use locklab_harness::backend::{Backend, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Coordinate, Design, Experiment, Key, Labels, Metric, Provenance, Role, Sample, Source,
};
use locklab_harness::report::document;
use locklab_harness::runner::Stop;
use locklab_harness::session::{Measured, Session};
use locklab_harness::store::Store;
use locklab_harness::verdicts::judge;
use locklab_judge::{Family, Side};
use serde_json::{Value, json as value};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Rolls dice; the experiment's are loaded.
struct Dice {
    loaded: f64,
    rolls: usize,
    stop_after: usize,
}

impl Dice {
    fn new(loaded: f64) -> Self {
        Self {
            loaded,
            rolls: 0,
            stop_after: usize::MAX,
        }
    }

    fn cells() -> Vec<Cell> {
        let metrics = || {
            vec![
                Metric::higher("eyes", "eyes", Source::Model).with_role(Role::Primary),
                Metric::lower("bounces", "", Source::Model),
            ]
        };
        [6, 20]
            .map(|sides| {
                let key = Key(vec![
                    ("workload".into(), Coordinate::Name("dice".into())),
                    ("sides".into(), Coordinate::Number(sides)),
                ]);
                Cell {
                    about: format!("A thousand rolls of a die with {sides} sides."),
                    ..Cell::new(key, metrics())
                }
            })
            .into()
    }
}

impl Backend for Dice {
    fn experiment(&self, design: Design) -> Experiment {
        Experiment {
            kind: "dice".into(),
            labels: Labels::new("ivory", if design.aa { "ivory" } else { "loaded" }),
            spec: Value::Null,
            design,
            provenance: Provenance::Model("arithmetic".into()),
            facts: vec![],
            caveats: vec![],
            cells: Self::cells(),
            interrupted: None,
        }
    }

    fn fingerprint(&self) -> Value {
        value!({ "dice": "ivory", "loaded": self.loaded })
    }

    fn bias_fingerprint(&self, _: &Cell) -> Option<Value> {
        Some(value!({ "dice": "ivory" }))
    }

    fn run(&mut self, cell: &Cell, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
        if self.rolls == self.stop_after {
            return Err(Stopped::Interrupted);
        }
        self.rolls += 1;
        let sides = cell.key.number("sides").unwrap_or(6) as f64;
        // From the seed, and a little from the side: each has dice of its own.
        let noise = (turn.seed.rotate_left(side as u32 * 7) % 1000) as f64 / 1e5;
        let loaded = if side == Side::Experiment {
            self.loaded
        } else {
            1.0
        };
        Ok(Sample {
            values: [
                ("eyes".to_owned(), 500.0 * sides * loaded * (1.0 + noise)),
                ("bounces".to_owned(), 3000.0 * (1.0 + noise)),
            ]
            .into(),
            ..Sample::default()
        })
    }
}

fn experiment(aa: bool) -> Experiment {
    Dice::new(1.0).experiment(Design {
        pairs: 12,
        seed: 3,
        delta: 0.02,
        family: Family::Holm,
        aa,
        retry: 0,
    })
}

/// Returns what a command does with any backend.
fn run(store: &Path, resume: bool, experiment: Experiment, dice: &mut Dice) -> Measured {
    let session = Session {
        store: Store::open(store).unwrap(),
        command: "locklab dice".into(),
        resume,
        deadline: None,
        interrupt: &AtomicBool::new(false),
        quiet: true,
    };
    let measured = session.run(dice, experiment).unwrap();
    assert_eq!(measured.store_failure, None);
    measured
}

#[test]
fn a_backend_gets_text_html_and_json_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let measured = run(&path, false, experiment(false), &mut Dice::new(1.25));
    assert_eq!(measured.outcome.stopped, None);
    // As `results show` makes it: from the store alone.
    let store = Store::read(&path).unwrap();
    let listed = store.listed(None).unwrap();
    assert_eq!(listed.state, "done");
    let experiment = store.experiment(listed.id).unwrap();
    let report = document(&experiment, &judge(&experiment).unwrap(), &context());
    let printed = text(&report, Colour::Plain);
    for part in [
        "Comparison: loaded against ivory",
        "Figures  model: computed by arithmetic from a real execution; not\n",
        "dice x 20",
        "eyes [eyes]",
        "loaded, eyes is 2",
        "), which is better.",
        "Against ivory, loaded is better in 2 of 2",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let page = html(&report);
    let charts = xml(&page)
        .descendants()
        .filter(|n| n.attribute("aria-label") == Some("intervals"))
        .count();
    assert_eq!(charts, 2);
    let data = json(&report);
    assert_eq!(data["workloads"][1]["metrics"][0]["verdict"], "better");
    assert!(markdown(&report).contains("| eyes \\[eyes\\] | 3"));
    assert!(junit(&report, &["worse"]).contains("tests=\"2\" failures=\"0\" errors=\"0\""));
}

#[test]
fn a_backend_gets_resume_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let whole = run(
        Path::new(":memory:"),
        false,
        experiment(false),
        &mut Dice::new(1.25),
    );

    let mut first = Dice::new(1.25);
    first.stop_after = 29;
    let interrupted = run(&path, false, experiment(false), &mut first);
    assert_eq!(interrupted.outcome.stopped, Some(Stop::Interrupted));
    let id = interrupted.listed.id;
    let state = |id| Store::read(&path).unwrap().listed(Some(id)).unwrap().state;
    assert_eq!(state(id), "interrupted");
    // Other dice are another question.
    let other = run(&path, true, experiment(false), &mut Dice::new(1.5));
    assert_ne!(other.listed.id, id);

    let mut second = Dice::new(1.25);
    let resumed = run(&path, true, experiment(false), &mut second);
    assert_eq!((resumed.listed.id, resumed.outcome.stopped), (id, None));
    assert_eq!(state(id), "done");
    // Half a pair was run again, nothing else.
    assert_eq!(second.rolls, 48 - 28);
    let values = |experiment: &Experiment| -> Vec<_> {
        let pairs = experiment.cells.iter().flat_map(|c| &c.pairs);
        pairs
            .map(|p| {
                let [baseline, experiment] = p.samples().map(|s| s.values.clone());
                (p.order, baseline, experiment)
            })
            .collect()
    };
    assert_eq!(values(&resumed.experiment), values(&whole.experiment));
    let stored = Store::read(&path).unwrap().experiment(id).unwrap();
    assert_eq!(values(&stored), values(&whole.experiment));
}

#[test]
fn a_backend_gets_rounds_for_what_is_unclear_for_nothing() {
    let design = Design {
        retry: 2,
        delta: 0.0001,
        ..experiment(false).design
    };
    // Loaded by as much as the noise hides in a round.
    let mut dice = Dice::new(1.0005);
    let asked = dice.experiment(design);
    let found = run(Path::new(":memory:"), false, asked, &mut dice).experiment;
    let pairs: Vec<usize> = found.cells.iter().map(|cell| cell.pairs.len()).collect();
    assert!(pairs.iter().all(|n| [12, 24, 36].contains(n)), "{pairs:?}");
    assert!(pairs.iter().any(|n| *n > 12), "{pairs:?}");
    let report = text(
        &document(&found, &judge(&found).unwrap(), &context()),
        Colour::Plain,
    );
    let words: Vec<&str> = report.split_whitespace().collect();
    assert!(
        words.join(" ").contains("up to 2 more rounds of 12"),
        "{report}"
    );
}

#[test]
fn a_backend_gets_bias_bands_of_aa_runs_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let again = run(&path, false, experiment(true), &mut Dice::new(1.0)).experiment;
    let verdicts = judge(&again).unwrap();
    let report = document(&again, &verdicts, &context());
    assert_eq!(report.title, "Comparison: ivory against itself");
    let words: Vec<_> = verdicts.primaries().map(|v| v.word()).collect();
    assert!(
        !words.contains(&"better") && !words.contains(&"worse"),
        "{words:?}"
    );

    let after = run(&path, false, experiment(false), &mut Dice::new(1.25));
    for cell in &after.experiment.cells {
        let band = cell.bias_band.unwrap();
        assert!((0.0..0.02).contains(&band), "{band}");
    }
}

/// A short A/A run once made every later comparison of its set-up unclear.
#[test]
fn an_aa_run_too_short_to_bound_the_bias_says_so_and_judges_nothing_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let strict = |aa| {
        let mut strict = experiment(aa);
        strict.design.delta = 0.0001;
        strict
    };
    let again = run(&path, false, strict(true), &mut Dice::new(1.0)).experiment;
    let said = again.caveats.join(" ");
    assert!(said.contains("neither found a bias"), "{said}");

    let after = run(&path, false, strict(false), &mut Dice::new(1.25)).experiment;
    assert!(after.cells.iter().all(|cell| cell.bias_band.is_none()));
    let judged = judge(&after).unwrap();
    assert!(judged.primaries().all(|v| v.word() == "better"));
}
