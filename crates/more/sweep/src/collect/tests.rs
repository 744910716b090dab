//! Tests of collecting. Their samples are made up, not simulated, because only
//! their presence and order matter here.

use super::*;
use crate::folder::Status;
use locklab_host::error::Error;
use locklab_judge::Side;
use locklab_lab::experiment::{Order, Sample, Values};
use locklab_lab::store::Slot;
use std::time::Instant;

fn models(path: &std::path::Path, seeds: u32, chunks: u64) -> Models {
    let text = format!(
        "kind = 'sweep'\nmachines = ['flat-16']\nbaseline = 'ticket'\nexperiment = ['mcs', 'tas']\n\
         seeds = {seeds}\n[[workload]]\nname = 'units'\nthreads = [1, 4]\ncritical = [0]\n"
    );
    Models::open_or_begin(path, &text, None, Some(chunks)).unwrap()
}

/// Returns a sample with the figures and the size of a simulated one.
fn sample(run: u64) -> Sample {
    let mut sample = Sample {
        values: Values::from([(OPS.to_owned(), 1e6 + run as f64), (JAIN.to_owned(), 1.0)]),
        ..Sample::default()
    };
    sample.detail = serde_json::json!({ "filler": "x".repeat(600) });
    sample
}

/// Fills a shard with the runs of its chunk, except the last `without`.
fn fill(models: &Models, chunk: usize, without: u64) {
    let plan = &models.plan;
    let runs = models.chunk(chunk).unwrap();
    let shard = Store::open_alone(&models.folder.shard(&Task::Chunk(chunk))).unwrap();
    shard
        .together(|shard| -> Result<(), Error> {
            let mut ids = HashMap::new();
            for (number, run) in plan.runs_of(runs.start..runs.end - without) {
                let id = *ids.entry((run.block, run.pair)).or_insert_with(|| {
                    let comparison = Comparison::new(plan, run.block, run.pair, &[]).unwrap();
                    let (key, experiment) = (&comparison.key, &comparison.experiment);
                    shard.begin(key, COMMAND, experiment).unwrap()
                });
                let cell = crate::comparison::key(plan, &run);
                for side in Side::BOTH {
                    let slot = Slot {
                        cell: &cell,
                        pair: run.replicate,
                        side,
                        order: Order::Together,
                    };
                    shard.keep(id, &slot, &sample(number))?;
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_run_is_there_once_in_the_order_of_the_plan() {
    let scratch = tempfile::tempdir().unwrap();
    let models = models(scratch.path(), 10, 7);
    // The order in which shards are made does not matter.
    for chunk in [4, 0, 6, 2, 1, 5, 3] {
        fill(&models, chunk, 0);
    }
    let collected = collect(&models, &Progress::hidden()).unwrap();
    assert_eq!(collected.missing, []);
    let store = Store::read(&models.folder.store()).unwrap();
    assert_eq!(store.count().unwrap(), 2 * models.plan.runs());
    assert!(store.list().unwrap().iter().all(|e| e.state == "done"));
    let mut number = 0;
    let damaged = store.each_row(None, |row| -> Result<(), Error> {
        let run = models.plan.run(number / 2);
        assert_eq!(row.pair, i64::from(run.replicate));
        number += 1;
        Ok(())
    });
    assert_eq!(damaged, Ok(vec![]));
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_merged() {
    let scratch = tempfile::tempdir().unwrap();
    let models = models(scratch.path(), 10, 5);
    for chunk in [0, 1, 2] {
        fill(&models, chunk, u64::from(chunk == 1) * 3);
    }
    // Too much is as wrong as too little: here every run twice.
    fill(&models, 4, 0);
    fill(&models, 4, 0);
    let collected = collect(&models, &Progress::hidden()).unwrap();
    let whys: Vec<(usize, u64, &str)> = collected
        .missing
        .iter()
        .map(|m| {
            (
                m.task.number().unwrap(),
                m.units.end - m.units.start,
                m.why.as_str(),
            )
        })
        .collect();
    let runs = |chunk: usize| {
        let runs = models.chunk(chunk).unwrap();
        runs.end - runs.start
    };
    assert_eq!((whys[0].0, whys[0].1), (1, 3));
    assert_eq!((whys[1].0, whys[1].1), (3, runs(3)));
    assert_eq!((whys[2].0, whys[2].1), (4, runs(4)));
    assert!(
        whys[2].2.contains("is one too many; remove the shard"),
        "{}",
        whys[2].2
    );
    let store = Store::read(&models.folder.store()).unwrap();
    assert_eq!(
        store.count().unwrap(),
        2 * (runs(0) + runs(1) - 3 + runs(2))
    );
}

#[test]
fn nodes_whose_clocks_are_apart_are_named_once_and_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let models = models(scratch.path(), 2, 4);
    for (chunk, (node, ahead)) in [("a", 0.4), ("b", 61.0), ("b", 62.0), ("c", -7.0)]
        .into_iter()
        .enumerate()
    {
        fill(&models, chunk, 0);
        let status = Status {
            node: node.into(),
            clock_ahead: ahead,
            ..Status::default()
        };
        models.folder.note(&Task::Chunk(chunk), &status);
    }
    let collected = collect(&models, &Progress::hidden()).unwrap();
    assert_eq!(collected.missing, []);
    let [b, c] = &collected.clocks[..] else {
        panic!("{:?}", collected.clocks);
    };
    assert!(b.starts_with("The clock of b is 61 s ahead of"), "{b}");
    assert!(c.starts_with("The clock of c is 7 s behind"), "{c}");
}

/// 1,000 shards of 1,000 samples: `cargo test --release -p locklab-sweep --
/// --ignored --nocapture` prints how long it took.
#[test]
#[ignore = "writes a gigabyte: cargo xtask test --thorough"]
fn a_thousand_shards_are_merged() {
    let scratch = tempfile::tempdir().unwrap();
    let models = models(scratch.path(), 125_000, 1000);
    assert_eq!(models.plan.runs(), 500_000);
    for chunk in 0..models.chunks() {
        fill(&models, chunk, 0);
    }
    let begun = Instant::now();
    let collected = collect(&models, &Progress::hidden()).unwrap();
    assert_eq!(collected.missing, []);
    eprintln!(
        "{} shards merged in {:.1} s",
        models.chunks(),
        begun.elapsed().as_secs_f64()
    );
}
