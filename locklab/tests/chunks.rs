//! `--chunk`: an experiment in parts, whose merged store is that of the whole.

use assert_cmd::Command;
use locklab_harness::store::Store;
use std::path::PathBuf;

/// Eight cells, which take seconds.
pub(crate) const FILE: &str = "kind = 'matrix'\nbaseline = 'qspinlock'\nexperiment = 'ticket'\n\
     on = 'flat-16'\nthreads = [1, 16]\ncritical = [0, 8]\nnon_critical = [1, 64]\npairs = 8\n\
     acquisitions = 2000\n";

/// A folder with the file.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f.toml"), file).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the command in the folder, and returns what it prints.
    pub(crate) fn locklab(&self, line: &str) -> String {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env_remove("XDG_DATA_HOME")
            .args(line.split_whitespace());
        let output = command.assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    }

    /// Merges the stores of `count` chunks.
    pub(crate) fn merge(&self, count: usize) -> String {
        let parts: Vec<String> = (1..=count).map(|n| format!("part-{n}.sqlite")).collect();
        self.locklab(&format!(
            "results merge {} --store all.sqlite",
            parts.join(" ")
        ))
    }

    /// Returns the first experiment of a store, with every sample that counts and without times.
    pub(crate) fn contents(&self, store: &str) -> String {
        let store = Store::read(&self.path(store)).unwrap();
        let mut experiment = store.experiment(1).unwrap();
        let samples = experiment.cells.iter_mut().flat_map(|cell| &mut cell.pairs);
        for pair in samples {
            pair.baseline.started = None;
            pair.experiment.started = None;
        }
        let pairs = experiment.cells.iter().map(|cell| {
            let pairs = serde_json::to_string(&cell.pairs).unwrap();
            assert!(
                cell.pairs.len() > 7,
                "{}: {} pairs",
                cell.key,
                cell.pairs.len()
            );
            format!("{}: {pairs}\n", cell.key)
        });
        pairs.collect::<String>() + &serde_json::to_string(&experiment).unwrap()
    }
}

#[test]
fn chunks_merge_into_what_the_whole_gives() {
    let place = Place::new(FILE);
    place.locklab("compare f.toml --store whole.sqlite --quiet");
    for chunk in [2, 3, 1] {
        let line = format!("compare f.toml --chunk {chunk}/3 --store part-{chunk}.sqlite --quiet");
        let report = place.locklab(&line);
        assert!(report.contains("left to another chunk than"), "{report}");
    }
    let merged = place.merge(3);
    assert_eq!(merged.matches("1 with more samples").count(), 2, "{merged}");
    assert_eq!(place.contents("all.sqlite"), place.contents("whole.sqlite"));
    let again = place.merge(3);
    assert_eq!(
        again.matches("1 known already; 0 samples").count(),
        3,
        "{again}"
    );
    let report = place.locklab("results show --store all.sqlite");
    assert!(!report.contains("another chunk"), "{report}");
}
