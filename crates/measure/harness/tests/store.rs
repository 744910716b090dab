//! The store by itself: what goes in comes out, and what cannot be used is
//! refused in a sentence.

use locklab_harness::experiment::{
    Cell, Design, Experiment, Invalid, Key, Labels, Metric, Order, Pair, Provenance, Role, Sample,
    Source,
};
use locklab_harness::store::{Prune, Slot, Store, hash_of};
use locklab_judge::{Family, Side};
use rusqlite::Connection;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn header() -> Experiment {
    let metric = Metric::higher("rate", "ops/s", Source::Backend).with_role(Role::Primary);
    let mut cell = Cell::new(key(), vec![metric]);
    cell.oversubscribed = true;
    cell.bias_band = Some(0.02);
    Experiment {
        kind: "matrix".into(),
        labels: Labels::new("ticket", "mcs"),
        spec: json!({ "lengths": [u64::MAX] }),
        design: Design {
            pairs: 8,
            seed: u64::MAX,
            delta: 0.1 + 0.2,
            family: Family::FalseDiscovery,
            aa: false,
            retry: 0,
        },
        provenance: Provenance::Hardware("test".into()),
        facts: vec![("Unit".into(), "4 ns".into())],
        caveats: vec!["c".into()],
        cells: vec![cell],
        interrupted: None,
    }
}

#[test]
fn a_kind_in_a_word_of_version_0_2_is_read_as_that_of_today() {
    let mut stored = serde_json::to_value(header()).unwrap();
    for (old, today) in [
        ("programs", "compare"),
        ("kernels", "kernel"),
        ("rank", "rank"),
    ] {
        stored["kind"] = old.into();
        let read: Experiment = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(read.kind, today);
    }
}

fn key() -> Key {
    Key::point(2, 0, u64::MAX)
}

fn slot(key: &Key, pair: u32, side: Side) -> Slot<'_> {
    Slot {
        cell: key,
        pair,
        side,
        order: Order::ExperimentFirst,
    }
}

fn memory() -> Store {
    Store::open(Path::new(":memory:")).unwrap()
}

fn sample(rate: f64) -> Sample {
    Sample {
        started: Some(0.1 + 0.2),
        values: [("rate".to_owned(), rate)].into(),
        detail: json!({ "per_thread": [1, 2] }),
        ..Sample::default()
    }
}

/// Returns a store in a folder that is removed with it, and where it lies.
fn on_disk() -> (tempfile::TempDir, PathBuf, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    (folder, path, store)
}

/// Makes a change to the file by another program.
fn tamper(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(sql).unwrap();
}

/// Adds a pair whose samples are closed as given.
fn add_pair(store: &mut Store, id: i64, pair: u32, kept: bool) {
    let key = key();
    let open = sample(1.0);
    let experiment = store.add(id, &slot(&key, pair, Side::Experiment), &open);
    let baseline = store.add(id, &slot(&key, pair, Side::Baseline), &open);
    let (b, e) = (baseline.unwrap(), experiment.unwrap());
    store
        .close([(Some(b), &sample(1.5)), (Some(e), &sample(2.5))], kept)
        .unwrap();
}

#[test]
fn what_goes_in_comes_out() {
    let mut store = memory();
    let id = store.begin("key", "locklab matrix", &header()).unwrap();
    for (pair, kept) in [(0, true), (1, false), (1, true)] {
        add_pair(&mut store, id, pair, kept);
    }
    // Interrupted between the two runs of a pair.
    let key = key();
    store
        .add(id, &slot(&key, 2, Side::Baseline), &sample(9.0))
        .unwrap();

    let found = store.experiment(id).unwrap();
    let pair = |p: &Pair| (p.index, p.order, p.baseline.clone(), p.experiment.clone());
    let pairs: Vec<_> = found.cells[0].pairs.iter().map(pair).collect();
    let expected = [0, 1].map(|i| (i, Order::ExperimentFirst, sample(1.5), sample(2.5)));
    assert_eq!(pairs, expected);
    let mut without = found;
    without.cells[0].pairs.clear();
    assert_eq!(without, header());
    let (samples, damaged) = store.samples(None).unwrap();
    assert_eq!((samples.len(), damaged.len()), (7, 0));
    let subjects = (samples[0].subject.as_str(), samples[1].subject.as_str());
    assert_eq!(subjects, ("mcs", "ticket"));
    assert_eq!(samples[6].state, "open");
}

#[test]
fn only_what_was_not_finished_is_resumed() {
    let mut store = memory();
    assert_eq!(store.unfinished("key"), Ok(None));
    let id = store.begin("key", "", &header()).unwrap();
    assert_eq!(store.unfinished("key"), Ok(Some(id)));
    assert_eq!(store.unfinished("other"), Ok(None));
    let mut experiment = header();
    experiment.interrupted = Some("Ctrl-C".into());
    store.finish(id, &experiment).unwrap();
    assert_eq!(store.unfinished("key"), Ok(Some(id)));
    assert_eq!(store.listed(None).unwrap().state, "interrupted");
    add_pair(&mut store, id, 0, true);
    let pairs = store.pairs(id).unwrap().0.remove(&key()).unwrap();
    let mut experiment = header();
    experiment.cells[0].pairs = pairs;
    store.finish(id, &experiment).unwrap();
    assert_eq!(store.unfinished("key"), Ok(None));
    assert_eq!(store.listed(None).unwrap().state, "done");
    assert_eq!(store.listed(Some(id)).unwrap().runs, 2);
}

#[test]
fn an_experiment_in_which_nothing_was_measured_failed() {
    let store = memory();
    let id = store.begin("key", "", &header()).unwrap();
    store.finish(id, &header()).unwrap();
    assert_eq!(store.listed(None).unwrap().state, "failed");
    assert_eq!(store.unfinished("key"), Ok(Some(id)));
    let missing = store.experiment(id + 1).unwrap_err().to_string();
    assert!(missing.contains("has no experiment 2"), "{missing}");
}

#[test]
fn a_process_that_is_gone_was_interrupted() {
    let (_folder, path, store) = on_disk();
    let id = store.begin("key", "", &header()).unwrap();
    assert_eq!(store.listed(Some(id)).unwrap().state, "running");
    // No process has this number: Linux ends at 2^22.
    tamper(&path, "UPDATE experiments SET process = 1 << 30");
    assert_eq!(store.listed(Some(id)).unwrap().state, "interrupted");
    store.go_on(id).unwrap();
    assert_eq!(store.listed(Some(id)).unwrap().state, "running");
}

#[test]
fn the_latest_bias_band_counts_and_belongs_to_its_metric() {
    let store = memory();
    let id = store.begin("key", "", &header()).unwrap();
    let cell = header().cells.remove(0);
    store.keep_band("setup", &cell, 0.03, id).unwrap();
    store.keep_band("setup", &cell, 0.02, id).unwrap();
    assert_eq!(store.band("setup", &cell), Ok(Some(0.02)));
    assert_eq!(store.band("else", &cell), Ok(None));
    let mut other = cell;
    other.metrics[0].name = "latency".into();
    assert_eq!(store.band("setup", &other), Ok(None));
}

/// Returns three pairs, of which the third row of samples is damaged.
fn with_a_damaged_row() -> (tempfile::TempDir, PathBuf, Store, i64) {
    let (folder, path, mut store) = on_disk();
    let id = store.begin("key", "", &header()).unwrap();
    for pair in 0..3 {
        add_pair(&mut store, id, pair, true);
    }
    tamper(
        &path,
        "UPDATE samples SET sample = '{\"started\":' WHERE id = 3",
    );
    (folder, path, store, id)
}

/// A row with damaged bytes costs that row, and is named.
#[test]
fn a_damaged_row_is_left_out_and_named() {
    let (_folder, path, store, id) = with_a_damaged_row();
    let found = store.experiment(id).unwrap();
    let numbers: Vec<u32> = found.cells[0].pairs.iter().map(|p| p.index).collect();
    assert_eq!(numbers, [0, 2]);
    let caveat = found.caveats.last().unwrap();
    assert!(
        caveat.starts_with("row 3 of the samples in ") && caveat.contains("is damaged"),
        "{caveat}"
    );
    tamper(&path, "UPDATE experiments SET header = '?'");
    assert_eq!(store.list().unwrap()[0].state, "damaged");
    assert!(
        store
            .experiment(id)
            .unwrap_err()
            .to_string()
            .contains("results export")
    );
}

#[test]
fn an_invalid_sample_keeps_its_reason() {
    let store = memory();
    let id = store.begin("key", "", &header()).unwrap();
    let key = key();
    let invalid = Sample::invalid(Invalid::Counter("it was multiplexed".into()));
    store
        .add(id, &slot(&key, 0, Side::Baseline), &invalid)
        .unwrap();
    assert_eq!(store.samples(Some(id)).unwrap().0[0].sample, invalid);
}

#[test]
fn a_hash_names_what_was_asked_and_nothing_else() {
    assert_eq!(hash_of(&header()), hash_of(&header()));
    let mut other = header();
    other.design.seed = 1;
    assert_ne!(hash_of(&header()), hash_of(&other));
}

fn refused(path: &Path) -> String {
    match Store::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_store_that_cannot_be_used_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(
        &file,
        "plain text, and long enough to be read as a header of a file",
    )
    .unwrap();
    // A folder that is a file; the store a folder; not a database.
    for path in [&file.join("deeper/store"), folder.path(), &file] {
        let text = refused(path);
        assert!(
            text.contains("cannot use the store") && text.contains("--store PATH"),
            "{text}"
        );
    }
    let foreign = folder.path().join("foreign");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    assert!(refused(&foreign).contains("another program"));
    for (version, words) in [(3, "newer locklab"), (1, "locklab 0.1")] {
        let other = folder.path().join(format!("version-{version}"));
        drop(Store::open(&other).unwrap());
        Connection::open(&other)
            .unwrap()
            .pragma_update(None, "user_version", version)
            .unwrap();
        assert!(refused(&other).contains(words));
    }
    let absent = Store::read(&folder.path().join("absent")).err().unwrap();
    assert!(absent.to_string().contains("there is no store"), "{absent}");
}

#[test]
fn a_store_is_read_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin("key", "", &header()).unwrap();
    add_pair(&mut store, id, 0, true);
    drop(store);
    let reader = Store::read(&path).unwrap();
    assert_eq!(reader.experiment(id).unwrap().cells[0].pairs.len(), 1);
    assert!(reader.begin("key", "", &header()).is_err());
}

fn filled(path: &Path, rates: &[f64]) -> Store {
    let store = Store::open(path).unwrap();
    let id = store.begin("key", "locklab matrix", &header()).unwrap();
    let key = key();
    for (pair, rate) in (0..).zip(rates) {
        for side in Side::BOTH {
            store
                .add(id, &slot(&key, pair, side), &sample(*rate))
                .unwrap();
        }
    }
    store
}

/// Returns the number of samples.
fn count(store: &Store) -> usize {
    store.samples(None).unwrap().0.len()
}

#[test]
fn a_merge_copies_what_is_new_and_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(&folder.path().join("a"), &[1.0, 2.0]);
    let to = Store::open(&folder.path().join("b")).unwrap();
    let merged = to.merge(&from).unwrap();
    assert_eq!((merged.added, merged.samples), (1, 4));
    let again = to.merge(&from).unwrap();
    assert_eq!((again.added, again.known, again.samples), (0, 1, 0));
    let json = |store: &Store| json!(store.samples(None).unwrap().0);
    assert_eq!(json(&to), json(&from));
    // It was continued since.
    let key = key();
    for side in Side::BOTH {
        from.add(1, &slot(&key, 2, side), &sample(3.0)).unwrap();
    }
    let more = to.merge(&from).unwrap();
    assert_eq!((more.completed, more.samples), (1, 6));
    assert_eq!(count(&to), 6);
    // A process number of another machine means nothing here.
    assert_eq!(to.list().unwrap()[0].state, "interrupted");
}

#[test]
fn what_is_pruned_is_what_was_named_and_its_space_comes_back() {
    let (_folder, path, mut store) = on_disk();
    // Done, failed, interrupted (its process is gone), and one that runs.
    let ids: Vec<i64> = (0..4)
        .map(|n| store.begin(&format!("key {n}"), "", &header()).unwrap())
        .collect();
    for id in &ids {
        for pair in 0..200 {
            add_pair(&mut store, *id, pair, true);
        }
    }
    let mut whole = header();
    whole.cells[0].pairs = store.experiment(ids[0]).unwrap().cells[0].pairs.clone();
    store.finish(ids[0], &whole).unwrap();
    store.finish(ids[1], &header()).unwrap();
    store
        .keep_band("setup", &header().cells[0], 0.01, ids[0])
        .unwrap();
    tamper(
        &path,
        "UPDATE experiments SET process = 4194305 WHERE id = 3;
         UPDATE experiments SET started = datetime('now', '-40 days') WHERE id IN (1, 2, 4)",
    );
    let states = |states: &[&str]| Prune {
        states: states.iter().map(|&state| state.to_owned()).collect(),
        ..Prune::default()
    };
    let month = Prune {
        older_than: Some(Duration::from_secs(30 * 86_400)),
        ..Prune::default()
    };
    let named = |id: i64| Prune {
        ids: vec![id],
        ..Prune::default()
    };
    let of = |prune: &Prune| -> Vec<i64> {
        let pruned = store.prunable(prune).unwrap();
        pruned.experiments.iter().map(|listed| listed.id).collect()
    };
    assert!(of(&Prune::default()).is_empty());
    assert_eq!(of(&states(&["failed", "interrupted"])), [3, 2]);
    // What runs is never removed, however old it is.
    assert_eq!(of(&month), [2, 1]);
    let both = Prune {
        older_than: month.older_than,
        ..states(&["failed", "interrupted"])
    };
    assert_eq!(of(&both), [2]);
    for (prune, part) in [(named(4), "still running"), (named(9), "no experiment 9")] {
        let error = store.prune(&prune).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(count(&store), 4 * 400);

    let pruned = store.prune(&month).unwrap();
    assert_eq!((pruned.experiments.len(), pruned.bias_bands), (2, 1));
    assert!(pruned.not_compacted.is_none());
    assert!(pruned.freed_bytes > 100_000, "{}", pruned.freed_bytes);
    assert_eq!(store.band("setup", &header().cells[0]), Ok(None));
    let left: Vec<i64> = store.list().unwrap().iter().map(|e| e.id).collect();
    assert_eq!(left, [4, 3]);
    assert_eq!(count(&store), 2 * 400);
    assert_eq!(store.prune(&month).unwrap().freed_bytes, 0);
}

#[test]
fn damaged_rows_are_pruned_and_nothing_else() {
    let (_folder, _, store, _) = with_a_damaged_row();
    let prune = Prune {
        damaged_rows: true,
        ..Prune::default()
    };
    let pruned = store.prune(&prune).unwrap();
    assert_eq!((pruned.experiments.len(), pruned.damaged_rows), (0, 1));
    let (samples, damaged) = store.samples(None).unwrap();
    assert_eq!((samples.len(), damaged.len()), (5, 0));
}
