//! `locklab matrix`, `results` and `locks` as a user calls them.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of its own, and the command with its store there.
struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("data/store.sqlite")
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command.args(arguments.split_whitespace());
        if !arguments.starts_with("locks") {
            command.arg("--store").arg(self.store());
        }
        command
    }

    /// Returns a matrix of a fraction of a second.
    fn matrix(&self, arguments: &str) -> Command {
        self.command(&format!("matrix {arguments} --time 1 --pairs 2"))
    }
}

const SMALL: &str = "--threads 1,2 --critical 0 --non-critical 1";

fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn a_matrix_is_measured_judged_printed_and_stored() {
    let lab = Lab::new();
    let document = json(&mut lab.matrix(&format!("tas ticket {SMALL}")));
    assert_eq!(document["provenance"]["source"], "hardware");
    let cells = document["cells"].as_array().unwrap();
    assert!(!cells.is_empty());
    for cell in cells {
        let words = ["better", "worse", "flat", "unclear"];
        let word = cell["verdict"].as_str().unwrap();
        assert!(words.contains(&word), "{word}");
        for field in ["threads", "critical", "non_critical"] {
            assert!(cell[field].is_u64(), "{field}");
        }
    }
    lab.command("results list")
        .assert()
        .success()
        .stdout(contains("ticket vs tas").and(contains("done")));
    let again = json(&mut lab.command("results show"));
    assert_eq!(again["cells"], document["cells"]);
    let csv = lab.command("results export").assert().success();
    let csv = String::from_utf8(csv.get_output().stdout.clone()).unwrap();
    assert!(csv.starts_with("experiment,threads,critical,non_critical,pair,side,"));
    // On a busy machine a cell may have fewer pairs than were planned.
    let pairs: u64 = cells.iter().filter_map(|cell| cell["pairs"].as_u64()).sum();
    let kept = csv.lines().filter(|line| line.contains(",kept,")).count();
    assert_eq!(kept as u64, 2 * pairs, "{csv}");
    assert!(csv.lines().count() > 2, "{csv}");
    lab.command("results export --json 1")
        .assert()
        .success()
        .stdout(contains("\"ops_per_s\""));
    lab.command("results show 7")
        .assert()
        .code(1)
        .stderr(contains("no experiment 7"));
}

#[test]
fn processes_on_fstat_say_that_they_are_oversubscribed() {
    let lab = Lab::new();
    lab.matrix(
        "mplock-ticket mplock-anderson --set processes=true --set workload=fstat --threads 2,4,8 --pin 0",
    )
    .assert()
    .success()
    .stdout(contains("versubscribed").and(contains("fstat")));
}

#[test]
fn a_dry_run_runs_nothing() {
    let lab = Lab::new();
    lab.command("matrix tas ticket --dry-run")
        .assert()
        .success()
        .stdout(contains("Would compare ticket with tas").and(contains("about")));
    assert!(!lab.store().exists());
    let plan = json(&mut lab.command(&format!("matrix tas ticket --dry-run {SMALL}")));
    assert_eq!(plan["cells"].as_array().unwrap().len(), 2);
}

#[test]
fn bad_input_is_refused_with_one_sentence() {
    let lab = Lab::new();
    for (arguments, part) in [
        ("tiket mcs", "the closest are ticket"),
        ("ticket qspinlok", "qspinlock"),
        ("ticket mcs --threads 0", "zero threads"),
        ("ticket mcs --threads 99999", "16383"),
        ("ticket mcs --threads=", "empty"),
        ("ticket mcs --critical 1,,2", "empty"),
        ("ticket mcs --critical 99999999999999999999", "whole number"),
        (
            "ticket mcs --critical 18446744073709551615",
            "more than a machine can count",
        ),
        ("ticket mcs --critical 1000000000", "longer slice_us"),
        (
            "ticket mcs --set processes=true",
            "does not work between processes",
        ),
        ("ticket mcs --pin 0,0", "twice"),
        ("ticket mcs --pin 9999", "may not use"),
        ("ticket mcs --delta 0", "no margin"),
        ("ticket mcs --pairs 0", "0 pairs"),
        ("ticket mcs --set workload=fstat --critical 3", "no length"),
        ("ticket", "required"),
    ] {
        lab.command(&format!("matrix {arguments}"))
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(part));
    }
    assert!(!lab.store().exists());
}

#[test]
fn a_store_that_cannot_be_written_is_named_before_anything_runs() {
    let lab = Lab::new();
    let file = lab.folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    Command::cargo_bin("locklab")
        .unwrap()
        .args(["matrix", "tas", "ticket", "--store"])
        .arg(file.join("store"))
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("cannot use the store").and(contains("--store PATH")));
}

#[test]
fn baseline_is_compared_with_itself_on_demand() {
    let lab = Lab::new();
    for locks in ["ticket", "ticket ticket", "ticket mcs"] {
        let document = json(&mut lab.matrix(&format!("{locks} --aa {SMALL}")));
        assert_eq!(document["spec"]["experiment"], "ticket");
        assert_eq!(document["design"]["aa"], true);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::os::unix::process::CommandExt;
    use std::process::{Command as Process, Stdio};

    fn process(store: &Path, arguments: &str) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_locklab"));
        process.args(arguments.split_whitespace());
        process.arg("--store").arg(store);
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        process
    }

    #[test]
    fn one_allowed_cpu_works_and_is_said() {
        let lab = Lab::new();
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let first = (0..CpuSet::count())
            .find(|cpu| allowed.is_set(*cpu).unwrap())
            .unwrap();
        let mut process = process(
            &lab.store(),
            "matrix tas ticket --critical 0 --non-critical 1 --time 1 --pairs 2",
        );
        // SAFETY: one system call on memory made before the fork.
        unsafe {
            process.pre_exec(move || {
                let mut one = CpuSet::new();
                one.set(first)?;
                sched_setaffinity(Pid::from_raw(0), &one)?;
                Ok(())
            });
        }
        let output = process.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(
            text.contains(&format!("Only CPU {first} may be used")),
            "{text}"
        );
    }

    #[test]
    fn a_real_time_policy_is_refused_because_no_run_would_end() {
        let lab = Lab::new();
        let mut process = process(&lab.store(), "matrix tas ticket");
        // SAFETY: one system call on memory made before the fork.
        unsafe {
            process.pre_exec(|| {
                let priority = libc::sched_param { sched_priority: 1 };
                match libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        // Without the right to such a policy there is nothing to refuse.
        if let Ok(output) = process.output() {
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{err}");
            assert!(err.contains("without chrt"), "{err}");
        }
    }

    #[test]
    fn ctrl_c_keeps_and_reports_what_is_done_and_resume_goes_on() {
        let lab = Lab::new();
        let matrix = "matrix tas ticket --threads 1,2 --critical 0 --non-critical 1 \
                      --time 2 --pairs 30";
        let child = process(&lab.store(), matrix).spawn().unwrap();
        // It is interrupted half-way: as soon as some samples are stored.
        let stored = || {
            locklab_harness::store::Store::read(&lab.store())
                .and_then(|store| store.samples(None))
                .map_or(0, |(samples, _)| samples.len())
        };
        while stored() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert_eq!(output.status.code(), Some(130), "{err}");
        assert!(err.contains("--resume"), "{err}");
        assert!(out.contains("nterrupted"), "{out}");
        lab.command("results list")
            .assert()
            .success()
            .stdout(contains("interrupted"));

        let before = stored();
        lab.command(&format!("{matrix} --resume"))
            .assert()
            .success()
            .stderr(contains("Going on with experiment 1"));
        // One experiment, as one session would have left it; how many pairs it
        // has depends on when its cells are settled.
        let listed = json(&mut lab.command("results list"));
        let experiments = listed["experiments"].as_array().unwrap();
        assert_eq!(experiments.len(), 1);
        assert_eq!(experiments[0]["state"], "done");
        assert!(stored() > before, "{}", stored());
        // A finished one is not resumed.
        lab.command(&format!("{matrix} --resume --dry-run"))
            .assert()
            .success();
    }
}

#[test]
fn stored_experiments_are_pruned_by_number_age_and_state() {
    let lab = Lab::new();
    for lock in ["ticket", "mcs"] {
        let matrix = format!("matrix tas {lock} --on flat-16 {SMALL} --pairs 2");
        lab.command(&format!("{matrix} --set acquisitions=100"))
            .assert()
            .success();
    }
    // Nothing is removed that was not named.
    lab.command("results prune").assert().code(2);
    for (options, part) in [
        ("--state running", "invalid value 'running'"),
        ("--older-than soon", "invalid value 'soon'"),
    ] {
        lab.command(&format!("results prune {options}"))
            .assert()
            .code(2)
            .stderr(contains(part));
    }
    let list = |lab: &Lab| json(&mut lab.command("results list"))["experiments"].clone();
    let removed = |options: &str| {
        let document = json(&mut lab.command(&format!("results prune {options}")));
        document["pruned"]["experiments"].as_array().unwrap().len()
    };
    assert_eq!(removed("--state failed,interrupted,damaged"), 0);
    assert_eq!(removed("--older-than 1day"), 0);
    assert_eq!(removed("--state done --older-than 0s --dry-run"), 2);
    assert_eq!(list(&lab).as_array().unwrap().len(), 2);
    lab.command("results prune 1 --state done")
        .assert()
        .success()
        .stdout(contains("   1  ").and(contains(
            "ticket vs tas\nRemoved 1 experiment, 8 samples and 0 bias bands; ",
        )));
    assert_eq!(list(&lab)[0]["experiment"], "mcs");
    lab.command("results prune 1")
        .assert()
        .code(1)
        .stderr(contains("no experiment 1"));
}

#[test]
fn locks_are_listed_for_people_and_programs() {
    let lab = Lab::new();
    lab.command("locks")
        .assert()
        .success()
        .stdout(contains("qspinlock").and(contains("parking_lot")));
    let document = json(&mut lab.command("locks"));
    let locks = document["locks"].as_array().unwrap();
    let ticket = locks.iter().find(|lock| lock["name"] == "ticket").unwrap();
    assert_eq!(
        (&ticket["bytes"], &ticket["fifo"]),
        (&4.into(), &true.into())
    );
}
