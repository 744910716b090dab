//! The store by itself: what goes in comes out, and what cannot be used is
//! refused in a sentence.

use super::*;
use crate::matrix::{Provenance, Spec, Unit, Work};
use crate::native::test_run;
use std::time::Duration;

fn header() -> Measured {
    Measured {
        spec: Spec {
            baseline: "ticket".into(),
            experiment: "mcs".into(),
            threads: vec![2],
            critical: vec![0],
            non_critical: vec![u64::MAX],
            unit: Unit::Units,
            work: Work::Units,
            pairs: 8,
            run: Duration::from_millis(50),
            warm_up: Duration::from_millis(10),
            seed: u64::MAX,
            pin: None,
            processes: false,
            latency: false,
            aa: false,
            delta: 0.01,
        },
        provenance: Provenance::Hardware("test".into()),
        environment: vec![("Unit".into(), "4 ns".into())],
        caveats: vec!["c".into()],
        cells: vec![crate::matrix::Cell {
            point: POINT,
            oversubscribed: true,
            bias_band: Some(0.02),
            pairs: Vec::new(),
        }],
        interrupted: None,
    }
}

const POINT: Point = Point {
    threads: 2,
    critical: 0,
    non_critical: u64::MAX,
};

fn slot(pair: u32, baseline: bool) -> Slot {
    Slot {
        point: POINT,
        pair,
        baseline,
        baseline_first: false,
    }
}

fn memory() -> Store {
    Store::open(Path::new(":memory:")).unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let mut store = memory();
    let id = store.begin("key", "locklab matrix", &header()).unwrap();
    let run = |ops| Run {
        ops_per_s: ops,
        ..test_run()
    };
    for (pair, kept) in [(0, true), (1, false), (1, true)] {
        let experiment = store.add(id, &slot(pair, false), &run(2.0)).unwrap();
        let baseline = store.add(id, &slot(pair, true), &run(1.0)).unwrap();
        store
            .close([(baseline, &run(1.5)), (experiment, &run(2.5))], kept)
            .unwrap();
    }
    // Interrupted between the two runs of a pair.
    store.add(id, &slot(2, true), &run(9.0)).unwrap();

    let measured = store.measured(id).unwrap();
    assert_eq!(measured.spec, header().spec);
    let [cell] = measured.cells.as_slice() else {
        panic!("one cell");
    };
    assert_eq!((cell.point, cell.bias_band), (POINT, Some(0.02)));
    let pairs: Vec<(u32, f64, f64)> = cell
        .pairs
        .iter()
        .map(|p| (p.index, p.baseline.ops_per_s, p.experiment.ops_per_s))
        .collect();
    assert_eq!(pairs, [(0, 1.5, 2.5), (1, 1.5, 2.5)]);
    let samples = store.samples(None).unwrap();
    assert_eq!(samples.len(), 7);
    assert_eq!(
        (samples[0].lock.as_str(), samples[1].lock.as_str()),
        ("mcs", "ticket")
    );
}

#[test]
fn only_what_was_not_finished_is_resumed() {
    let store = memory();
    assert_eq!(store.unfinished("key"), Ok(None));
    let id = store.begin("key", "", &header()).unwrap();
    assert_eq!(store.unfinished("key"), Ok(Some(id)));
    assert_eq!(store.unfinished("other"), Ok(None));
    let mut interrupted = header();
    interrupted.interrupted = Some("Ctrl-C".into());
    store.finish(id, &interrupted).unwrap();
    assert_eq!(store.unfinished("key"), Ok(Some(id)));
    store.finish(id, &header()).unwrap();
    assert_eq!(store.unfinished("key"), Ok(None));
    assert_eq!(store.listed(None).unwrap().state, "done");
}

#[test]
fn the_latest_bias_band_counts() {
    let store = memory();
    let id = store.begin("key", "", &header()).unwrap();
    store.keep_band("setup", &POINT, 0.03, id).unwrap();
    store.keep_band("setup", &POINT, 0.02, id).unwrap();
    assert_eq!(store.band("setup", &POINT), Ok(Some(0.02)));
    assert_eq!(store.band("else", &POINT), Ok(None));
}

fn refused(path: &Path) -> String {
    match Store::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(text) => text,
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
    let newer = folder.path().join("newer");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", VERSION + 1)
        .unwrap();
    assert!(refused(&newer).contains("newer locklab"));
}

#[test]
fn a_full_disk_is_called_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let pages: i64 = store
        .db
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    store
        .db
        .pragma_update(None, "max_page_count", pages)
        .unwrap();
    let failed = (0..1000).find_map(|_| store.begin("key", "", &header()).err());
    assert!(failed.unwrap().ends_with("the disk is full"));
}
