//! `locklab sweep` on this machine's cores: one file, one result, whatever
//! comes in between. The same on a cluster is in `slurm.rs`.

use crate::common::golden::golden;
use assert_cmd::Command;
use locklab_host::error::Error;
use locklab_lab::store::Store;
use serde_json::Value;
use std::path::Path;

/// Two machines, one of which has no 16 CPUs, a band and an exclusion.
const FILE: &str = "kind = 'sweep'\ntitle = 'A small sweep'\n\
                    machines = ['flat-16', 'amd64-8']\nbaseline = 'qspinlock'\n\
                    experiment = ['ticket', 'mcs', 'tas']\nseeds = 2\nbands = 2\n\
                    [[workload]]\nname = 'units'\nthreads = [1, 'half', 16]\n\
                    critical = [1]\nnon_critical = [1, 256]\nacquisitions = 400\n\
                    [[workload]]\nname = 'fstat'\nthreads = ['all']\nacquisitions = 400\n\
                    [[exclude]]\nmachine = 'amd64-8'\nexperiment = 'tas'\nthreads_above = 4\n";

struct Place(tempfile::TempDir);

impl Place {
    fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.toml"), file).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn locklab(&self, words: &[&str]) -> Command {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env_remove("XDG_DATA_HOME")
            .args(words);
        command
    }

    /// Compares a lock with ticket in two cells of a simulated matrix.
    fn matrix(&self, lock: &str, critical: &str, store: &str) {
        let command = format!(
            "matrix ticket {lock} --on flat-16 --threads 1,4 --critical {critical} \
             --non-critical 1 --pairs 2 --acquisitions 200 --store {store}"
        );
        self.text(&command.split(' ').collect::<Vec<_>>());
    }

    fn text(&self, words: &[&str]) -> String {
        let output = self.locklab(words).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    }

    fn error(&self, words: &[&str], code: i32) -> String {
        let output = self.locklab(words).assert().code(code);
        String::from_utf8(output.get_output().stderr.clone()).unwrap()
    }
}

/// Returns every row of a store's samples, to the letter.
fn rows(store: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    let store = Store::read(store).unwrap();
    store
        .each_row(None, |row| -> Result<(), Error> {
            rows.push(format!("{row:?}"));
            Ok(())
        })
        .unwrap();
    rows
}

/// Returns a text without the line of which the figure differs from run to run.
fn without_time(text: &str) -> String {
    let is_timed = |line: &&str| !line.contains("about") && !line.contains("cores were busy");
    text.lines()
        .filter(is_timed)
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn a_plan_says_what_would_run_and_runs_nothing() {
    let place = Place::new(FILE);
    let text = place.text(&["sweep", "s.toml", "--dry-run"]);
    assert!(text.contains("This machine"), "{text}");
    golden("sweep_plan.txt", &without_time(&text));
    assert!(!place.path("s.sweep").exists());
    let json = place.text(&["sweep", "s.toml", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_str(&json).unwrap();
    // flat-16: 7 cells of 3 pairs; amd64-8: 5 of 3, but for tas on 8 threads.
    assert_eq!(plan["runs"], 4 * (7 * 3 + 5 * 3 - 1));
    assert!(plan["core_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_plan_of_real_machines_is_text_or_json_as_asked() {
    let place = Place::new(FILE);
    let words = ["sweep", "s.toml", "--on", "native", "--dry-run"];
    assert_eq!(
        place.text(&words),
        "Would measure 3 pairs of locks under 2 workloads on this machine: about 6 minutes.\n"
    );
    let json = |more: &[&str]| -> Value {
        let text = place.text(&[&words[..], &["--json"], more].concat());
        serde_json::from_str(&text).unwrap()
    };
    let here = json(&[]);
    assert_eq!(here["machines"], serde_json::json!(["here"]));
    assert_eq!(here["pairs"][0], serde_json::json!(["qspinlock", "ticket"]));
    assert_eq!(here["machine_seconds"], 360);
    let nodes = [
        "--slurm",
        "--constraint",
        "icelake",
        "--constraint",
        "milan",
    ];
    assert_eq!(
        json(&nodes)["machines"],
        serde_json::json!(["icelake", "milan"])
    );
    let none = place.error(&[&words[..], &["--slurm"]].concat(), 2);
    assert!(none.contains("name the features of the nodes"), "{none}");
}

#[test]
fn a_sweep_draws_throughput_over_threads_a_line_a_lock() {
    let place = Place::new(&FILE.replace("critical = [1]", "critical = [1]\nlatency = true"));
    let text = place.text(&["sweep", "s.toml", "--html", "s.html"]);
    let heading = "flat-16, workload 1, critical 1, non-critical 1, 16 threads\n";
    let (_, bars) = text.split_once(heading).unwrap();
    let of: Vec<&str> = bars.lines().take_while(|line| !line.is_empty()).collect();
    // The titles, three locks and the baseline.
    assert_eq!(of.len(), 5, "{text}");
    assert!(of[0].ends_with("p99 ns") && of[1].ends_with('#'), "{text}");
    let page = std::fs::read_to_string(place.path("s.html")).unwrap();
    let pictures = page.matches("p99 of the wait, ns</text>").count();
    assert_eq!(pictures, 4, "two lengths on two machines");
    for lock in ["qspinlock", "ticket", "mcs", "tas"] {
        assert!(page.contains(&format!(">{lock}</text>")), "{lock}");
    }
}

#[test]
fn a_sweep_is_the_same_whatever_ran_where() {
    let place = Place::new(FILE);
    let words = ["sweep", "s.toml", "--folder"];
    let one = place.text(&[&words[..], &["one", "--workers", "1", "--array", "3"]].concat());
    let html = [
        "many",
        "--workers",
        "3",
        "--array",
        "40",
        "--html",
        "s.html",
    ];
    let many = place.text(&[&words[..], &html].concat());
    assert_eq!(without_time(&one), without_time(&many));
    golden("sweep_summary.txt", &without_time(&one));
    let (one, many) = (
        place.path("one/store.sqlite"),
        place.path("many/store.sqlite"),
    );
    assert_eq!(rows(&one), rows(&many));
    let page = std::fs::read_to_string(place.path("s.html")).unwrap();
    assert!(page.contains("Heat map, saturated: throughput against qspinlock"));
    assert!(page.contains("(contended, same socket) with published figures"));
    // What is done is not done again.
    let again = place.text(&["sweep", "s.toml", "--folder", "one", "--json"]);
    let document: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(document["missing"], Value::Array(vec![]));
    assert_eq!(document["runs"], 140);
    let caveats = document["caveats"].as_array().unwrap().iter();
    let scores = caveats.filter(|text| text.as_str().unwrap().contains("directions were right"));
    assert_eq!(scores.count(), 2);
    assert_eq!(document.get("busy"), None);
}

#[test]
fn a_sweep_of_one_machine_has_the_figures_of_its_matrix() {
    let file = "kind = 'sweep'\nmachines = ['flat-16']\nbaseline = 'ticket'\nexperiment = 'mcs'\n\
                seeds = 3\nseed = 7\n[[workload]]\nname = 'units'\nthreads = [1, 8]\n\
                critical = [0, 4]\nnon_critical = [1]\n";
    let place = Place::new(file);
    place.text(&["sweep", "s.toml"]);
    place.text(&[
        "matrix",
        "ticket",
        "mcs",
        "--on",
        "flat-16",
        "--threads",
        "1,8",
        "--critical",
        "0,4",
        "--non-critical",
        "1",
        "--pairs",
        "3",
        "--seed",
        "7",
        "--store",
        "matrix.sqlite",
    ]);
    let figures = |store: &str| {
        let store = Store::read(&place.path(store)).unwrap();
        let key = store.keys().unwrap()[0].1.clone();
        let mut samples: Vec<String> = store
            .samples(Some(1))
            .unwrap()
            .0
            .iter()
            .map(|s| format!("{} {} {} {:?}", s.cell, s.pair, s.side, s.sample.values))
            .collect();
        samples.sort();
        (key, samples)
    };
    assert_eq!(figures("s.sweep/store.sqlite"), figures("matrix.sqlite"));
}

#[test]
fn what_is_missing_or_damaged_is_named_and_run_again() {
    let place = Place::new(FILE);
    let words = ["sweep", "s.toml", "--array", "10"];
    let whole = place.text(&words);
    let store = place.path("s.sweep/store.sqlite");
    let all = rows(&store);
    std::fs::remove_file(place.path("s.sweep/shards/0004.sqlite")).unwrap();
    std::fs::remove_file(place.path("s.sweep/status/0004.json")).unwrap();
    // The runs of another chunk in place of its own.
    std::fs::copy(
        place.path("s.sweep/shards/0002.sqlite"),
        place.path("s.sweep/shards/0007.sqlite"),
    )
    .unwrap();
    let output = place
        .locklab(&["sweep", "s.toml", "--collect"])
        .assert()
        .code(1);
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("chunk 4:") && text.contains("no task of it began"),
        "{text}"
    );
    assert!(text.contains("is not that of the run"), "{text}");
    let error = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(error.contains("runs of 2 chunks are missing"), "{error}");
    let listed = Store::read(&store).unwrap().list().unwrap();
    assert!(listed.iter().any(|e| e.state == "interrupted"));
    assert!(rows(&store).len() < all.len());
    // As it says.
    std::fs::remove_file(place.path("s.sweep/shards/0007.sqlite")).unwrap();
    assert_eq!(
        without_time(&place.text(&["sweep", "s.toml"])),
        without_time(&whole)
    );
    assert_eq!(rows(&store), all);
}

/// `--seed` wins over the file's, and a sweep that was begun keeps its own.
#[test]
fn the_seed_of_the_command_is_that_of_the_sweep() {
    let place = Place::new(FILE);
    let words = ["sweep", "s.toml", "--array", "4", "--folder"];
    let given = place.text(&[&words[..], &["given", "--seed", "7"]].concat());
    assert!(given.contains("(seed 7)"), "{given}");
    let other = place.error(&[&words[..], &["given", "--seed", "8"]].concat(), 1);
    assert!(other.contains("another file or seed"), "{other}");
    let text = FILE.replace("seeds = 2", "seed = 7\nseeds = 2");
    std::fs::write(place.path("s.toml"), text).unwrap();
    let in_file = place.text(&[&words[..], &["in-file"]].concat());
    assert_eq!(without_time(&given), without_time(&in_file));
    let rows = |folder: &str| rows(&place.path(folder).join("store.sqlite"));
    assert_eq!(rows("given"), rows("in-file"));
    let one = place.text(&[&words[..], &["one", "--seed", "1"]].concat());
    assert!(one.contains("(seed 1)"), "{one}");
    assert_ne!(rows("one"), rows("in-file"));
}

#[test]
fn what_cannot_be_swept_is_one_sentence() {
    let place = Place::new(FILE);
    place.text(&["sweep", "s.toml", "--array", "4"]);
    let again = place.error(&["sweep", "s.toml", "--array", "5"], 1);
    assert!(again.contains("was begun with 4 chunks"), "{again}");
    std::fs::write(place.path("s.toml"), FILE.replace("seeds = 2", "seeds = 3")).unwrap();
    let changed = place.error(&["sweep", "s.toml"], 1);
    assert!(
        changed.contains("has the sweep of another file"),
        "{changed}"
    );
    std::fs::write(place.path("s.toml"), FILE).unwrap();
    let fixed = place.path("s.sweep/sweep.json");
    let text = std::fs::read_to_string(&fixed).unwrap();
    std::fs::write(&fixed, text.replace("(build ", "(build 0")).unwrap();
    let other = place.error(&["sweep", "s.toml"], 1);
    assert!(
        other.contains("figures of two versions are not one sweep"),
        "{other}"
    );
    let task = place.error(&["sweep", "--task", "s.sweep", "--part", "chunk:0"], 1);
    assert!(task.contains("figures of two versions"), "{task}");
    let nowhere = place.error(&["sweep", "--task", "nowhere", "--part", "chunk:0"], 1);
    assert!(
        nowhere.contains("must lie where all nodes share it"),
        "{nowhere}"
    );
    let mut without = place.locklab(&["sweep", "s.toml", "--folder", "n", "--slurm"]);
    let output = without.env("PATH", "/nowhere").assert().code(1);
    let error = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(error.contains("apt-get install slurm-client"), "{error}");
    for (change, part) in [
        ("kind = 'sweep'", "kind = 'swept'"),
        ("'flat-16'", "'flat-17'"),
        ("'mcs'", "'msc'"),
        ("threads = [1, 'half', 16]", "threads = ['most']"),
    ] {
        std::fs::write(place.path("s.toml"), FILE.replace(change, part)).unwrap();
        let error = place.error(&["sweep", "s.toml"], 2);
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("s.toml, "), "{error}");
    }
}

#[test]
fn a_lock_of_ones_own_is_compiled_once_and_every_task_runs_that() {
    if std::process::Command::new("cc")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: no C compiler (gcc)");
        return;
    }
    let file = "kind = 'sweep'\nmachines = ['flat-16']\nbaseline = 'ticket'\n\
                experiment = ['./mine.c', 'mcs']\nseeds = 2\n[[workload]]\nname = 'units'\n\
                threads = [1, 4]\ncritical = [1]\nnon_critical = [1]\nacquisitions = 200\n";
    let place = Place::new(file);
    place.text(&["new-lock", "mine.c"]);
    place.text(&["sweep", "s.toml", "--array", "3"]);
    let store = place.path("s.sweep/store.sqlite");
    let all = rows(&store);
    // The figures of the matrix, but for a key that says what the file holds.
    place.matrix("./mine.c", "1", "m.sqlite");
    let of = |store: &Path| {
        let store = Store::read(store).unwrap();
        let listed = store.list().unwrap();
        let own = listed
            .iter()
            .find(|e| e.experiment == "./mine.c")
            .unwrap()
            .id;
        let samples = store.samples(Some(own)).unwrap().0;
        let figures = |s: &locklab_lab::store::StoredSample| {
            format!("{} {} {} {:?}", s.cell, s.pair, s.side, s.sample.values)
        };
        let mut figures: Vec<String> = samples.iter().map(figures).collect();
        figures.sort();
        (
            figures,
            store.experiment(own).unwrap().spec["own_locks"].clone(),
        )
    };
    let (swept, source) = of(&store);
    assert_eq!(swept, of(&place.path("m.sqlite")).0);
    assert_eq!(source["./mine.c"].as_str().unwrap().len(), 16);

    // A task needs neither the file nor a compiler.
    let text = std::fs::read_to_string(place.path("mine.c")).unwrap();
    std::fs::remove_file(place.path("mine.c")).unwrap();
    for name in ["shards/0001.sqlite", "status/0001.json"] {
        std::fs::remove_file(place.path("s.sweep").join(name)).unwrap();
    }
    let task = ["sweep", "--task", "s.sweep", "--part", "chunk:1"];
    place
        .locklab(&task)
        .env("PATH", "/nowhere")
        .assert()
        .success();
    std::fs::write(place.path("mine.c"), &text).unwrap();
    place.text(&["sweep", "s.toml"]);
    assert_eq!(rows(&store), all);

    // Another lock is another sweep.
    let other = format!("{text}\nint something_else;\n");
    std::fs::write(place.path("mine.c"), other).unwrap();
    let changed = place.error(&["sweep", "s.toml"], 1);
    assert!(
        changed.contains("./mine.c was changed since the sweep in"),
        "{changed}"
    );
    let object = place.path("s.sweep/locks/0/instrumented.so");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes.push(0);
    std::fs::write(&object, bytes).unwrap();
    let damaged = place.error(&task, 1);
    assert!(
        damaged.contains("is not what was compiled when the sweep was begun"),
        "{damaged}"
    );
    let flags = place.error(&["sweep", "s.toml", "--cflags", "-DX"], 2);
    assert!(flags.contains("write cflags = \"-DX\""), "{flags}");
}

/// A disk of 200 kB that then gets more room: a tmpfs in a mount namespace.
const FULL_DISK: &str = "mount -t tmpfs -o size=200k none s.sweep/shards && \
                         { \"$0\" sweep s.toml; code=$?; } && \
                         mount -o remount,size=100m s.sweep/shards && \
                         \"$0\" sweep s.toml --json > again.json && exit $code";

#[test]
fn a_full_disk_is_one_sentence_and_loses_nothing() {
    let place = Place::new(&FILE.replace("seeds = 2", "seeds = 30"));
    place.text(&["sweep", "s.toml", "--folder", "whole", "--array", "4"]);
    std::fs::create_dir_all(place.path("s.sweep/shards")).unwrap();
    let namespace = ["--user", "--map-root-user", "--mount"];
    let can = std::process::Command::new("unshare")
        .args(namespace)
        .args(["mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: no user namespaces here (unshare, of util-linux), so no small disk");
        return;
    }
    let output = std::process::Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", FULL_DISK])
        .arg(env!("CARGO_BIN_EXE_locklab"))
        .current_dir(place.0.path())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let full: Vec<&str> = error
        .lines()
        .filter(|l| l.contains("disk is full"))
        .collect();
    assert!(
        !full.is_empty() && full[0].starts_with("locklab: chunk "),
        "{error}"
    );
    // With room again it went on, and all of it is there.
    let again = std::fs::read(place.path("again.json")).unwrap();
    let document: Value = serde_json::from_slice(&again).unwrap();
    assert_eq!(document["missing"], Value::Array(vec![]));
    assert_eq!(
        rows(&place.path("s.sweep/store.sqlite")),
        rows(&place.path("whole/store.sqlite"))
    );
}

#[test]
fn a_shard_that_cannot_be_written_is_one_sentence() {
    let place = Place::new(FILE);
    place.text(&["sweep", "s.toml", "--array", "4"]);
    for name in ["shards/0001.sqlite", "status/0001.json"] {
        std::fs::remove_file(place.path("s.sweep").join(name)).unwrap();
    }
    std::fs::create_dir(place.path("s.sweep/shards/0001.sqlite")).unwrap();
    let error = place.error(&["sweep", "s.toml"], 1);
    assert!(error.contains("chunk 1: cannot write"), "{error}");
    std::fs::remove_dir(place.path("s.sweep/shards/0001.sqlite")).unwrap();
    place.text(&["sweep", "s.toml"]);
}

#[test]
fn stores_of_many_machines_are_merged_into_one() {
    let place = Place::new(FILE);
    for (lock, store) in [("mcs", "a.sqlite"), ("tas", "b.sqlite")] {
        place.matrix(lock, "0", store);
    }
    let words = [
        "results",
        "merge",
        "--store",
        "all.sqlite",
        "a.sqlite",
        "b.sqlite",
        "a.sqlite",
    ];
    let text = place.text(&words);
    assert_eq!(
        text,
        "a.sqlite: 1 new, 0 with more samples, 0 known already; 8 samples copied\n\
         b.sqlite: 1 new, 0 with more samples, 0 known already; 8 samples copied\n\
         a.sqlite: 0 new, 0 with more samples, 1 known already; 0 samples copied\n"
    );
    let list = place.text(&["results", "list", "--store", "all.sqlite"]);
    assert!(
        list.contains("mcs vs ticket") && list.contains("tas vs ticket"),
        "{list}"
    );
    let missing = place.error(
        &["results", "merge", "--store", "all.sqlite", "c.sqlite"],
        1,
    );
    assert!(missing.contains("there is no store c.sqlite"), "{missing}");
}
