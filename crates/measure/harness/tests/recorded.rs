//! Runs of real machines, judged again: a change of the rules of judging shows as
//! a change of what they find, on each kind of processor of which there is a run.
//!
//! Each run is a file of `tests/recorded`: `MACHINE.LOCKS.csv`, one line a pair
//! that counts (threads, lengths, rates of both sides, cache-line round trip in
//! ns, empty for one thread). `locklab results export` has these
//! figures of each pair. What is found in it is the golden file of the same name.

use crate::common::golden::golden;
use locklab_harness::experiment::{
    Cell, Design, Experiment, Key, Labels, Order, Pair, Placement, Provenance, Sample, Source,
};
use locklab_harness::matrix::metrics;
use locklab_harness::verdicts::judge;
use locklab_workload::Waits;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the experiment of a file.
fn read(text: &str) -> Experiment {
    let mut cells: Vec<Cell> = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<u64>().unwrap();
        let figure = |i: usize| fields[i].parse::<f64>().ok();
        let threads = usize::try_from(number(0)).unwrap();
        let key = Key::point(threads, number(1), number(2));
        let at = cells.iter().position(|cell| cell.key == key);
        let at = at.unwrap_or_else(|| {
            cells.push(Cell::new(
                key,
                metrics(threads, Waits::None, Source::Backend),
            ));
            cells.len() - 1
        });
        let sample = |i: usize| Sample {
            values: [("ops_per_s".to_owned(), figure(i).unwrap())].into(),
            placement: figure(5).map(|ns| Placement {
                before: ns,
                after: ns,
                typical: Some(ns),
            }),
            ..Sample::default()
        };
        let index = u32::try_from(cells[at].pairs.len()).unwrap();
        cells[at].pairs.push(Pair {
            index,
            order: Order::Together,
            baseline: sample(3),
            experiment: sample(4),
        });
    }
    Experiment {
        kind: "matrix".into(),
        labels: Labels::new("baseline", "experiment"),
        spec: serde_json::Value::Null,
        design: Design::usual(13),
        provenance: Provenance::Hardware("recorded".into()),
        facts: vec![],
        caveats: vec![],
        cells,
        interrupted: None,
    }
}

/// Returns what is found in a run: verdicts of each number of threads, regions,
/// placements.
fn found(experiment: &Experiment) -> String {
    let verdicts = judge(experiment).unwrap();
    let mut text = String::new();
    for threads in [1, 2, 4] {
        let mut words: Vec<(&str, usize)> = Vec::new();
        for judged in &verdicts.cells {
            let cell = &experiment.cells[judged.cell];
            if cell.key.number("threads") != Some(threads) {
                continue;
            }
            let word = judged.verdict().unwrap().word();
            match words.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => words.push((word, 1)),
            }
        }
        words.sort_unstable();
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(|(w, n)| format!("{n} {w}")).collect();
            let _ = writeln!(text, "threads {threads}: {}", words.join(", "));
        }
    }
    for region in &verdicts.regions {
        let ratio = region.judged.ratio().unwrap();
        let _ = writeln!(
            text,
            "{:?}: {:.4} ({:.4} to {:.4}) {}",
            region.part,
            ratio.value,
            ratio.low,
            ratio.high,
            region.judged.verdict.word()
        );
    }
    let places = &verdicts.places;
    let _ = writeln!(
        text,
        "placements: p {:?}, split {}",
        places.p,
        places.matter()
    );
    text
}

#[test]
fn runs_of_real_machines_are_judged_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut runs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "csv") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let experiment = read(&std::fs::read_to_string(&path).unwrap());
        golden(&format!("{name}.txt"), &found(&experiment));
        runs += 1;
    }
    assert!(runs >= 2, "{runs} runs");
}
