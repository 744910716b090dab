//! Tests where a setting comes from: the command takes precedence over the file, the
//! file over the default, and what is not used is refused.

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;
use std::path::Path;

const MATRIX: &str = "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\non = 'flat-16'\n";
const PROGRAMS: &str = "kind = 'compare'\n[baseline]\ncommand = 'true'\n[experiment]\n\
                        command = 'sleep 0'\n";
const KERNELS: &str =
    "kind = 'kernel'\nname = 'x'\n[experiment]\nselect = ['ARCH_INLINE_SPIN_UNLOCK']\n";

fn locklab(folder: &Path, line: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.current_dir(folder).args(line.split_whitespace());
    command
}

/// Returns the comparison of a file that would run.
fn dry_run(folder: &Path, text: &str, options: &str) -> Value {
    std::fs::write(folder.join("x.toml"), text).unwrap();
    let output = locklab(
        folder,
        &format!("compare x.toml --dry-run --json {options}"),
    )
    .output()
    .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns its design.
fn design(folder: &Path, text: &str, options: &str) -> Value {
    dry_run(folder, text, options)["design"].take()
}

#[test]
fn a_kind_is_the_same_word_in_files_and_in_json_and_the_words_of_0_2_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (text, word, formerly) in [
        (MATRIX, "matrix", "matrix"),
        (PROGRAMS, "compare", "programs"),
        (KERNELS, "kernel", "kernels"),
    ] {
        let old = text.replace(word, formerly);
        for text in [text, &old] {
            assert_eq!(dry_run(folder.path(), text, "")["kind"], word);
        }
    }
}

#[test]
fn the_command_takes_precedence_over_the_file_and_the_file_over_the_default() {
    let folder = tempfile::tempdir().unwrap();
    for text in [MATRIX, PROGRAMS, KERNELS] {
        let (first, rest) = text.split_once('\n').unwrap();
        let of_file = format!("{first}\nseed = 5\npairs = 9\ndelta = 2\n{rest}");
        let seen = |text: &str, options: &str| {
            let design = design(folder.path(), text, options);
            (design["seed"].clone(), design["delta"].clone())
        };
        assert_eq!(seen(text, ""), (1.into(), 0.01.into()), "{text}");
        assert_eq!(seen(&of_file, ""), (5.into(), 0.02.into()));
        // What equals the default was given all the same.
        let all = "--seed 1 --delta 1 --pairs 8";
        assert_eq!(seen(&of_file, all), (1.into(), 0.01.into()));
        assert_eq!(design(folder.path(), &of_file, "")["pairs"], 9);
        assert_eq!(design(folder.path(), &of_file, all)["pairs"], 8);
    }
}

#[test]
fn an_option_that_is_not_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.toml"), MATRIX).unwrap();
    let published = "../experiments/virt-backoff.toml";
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join(published);
    let published = published.display();
    for (line, part) in [
        ("locks --seed 3", "unexpected argument '--seed'"),
        ("locks --store x", "unexpected argument '--store'"),
        ("--seed 3 locks", "write it behind the command"),
        ("doctor --cflags -O1", "unexpected argument '--cflags'"),
        ("results schema example --pairs 9", "unexpected argument"),
        (
            "compare m.toml --run-limit 5",
            "--run-limit is for programs",
        ),
        ("compare m.toml --warm-up 5", "--warm-up is for programs"),
        (
            "compare m.toml --baseline-lock mcs",
            "--baseline-lock is for programs",
        ),
        (
            "compare m.toml -- true",
            "a command after -- is for programs",
        ),
        (
            "matrix tas mcs --cflags -O1",
            "--cflags is for locks of your own",
        ),
        ("matrix tas mcs --band", "--band is for simulated machines"),
        (
            "matrix tas mcs --resume --store :memory:",
            "--resume continues a stored experiment",
        ),
        (
            "verify tas --cflags -O1",
            "--cflags is for locks of your own",
        ),
        (
            "verify tas --dependencies no",
            "--dependencies is for locks of your own",
        ),
        (
            "locks tas --cflags -O1",
            "--cflags is for locks of your own",
        ),
        (
            "compare --baseline true --plot x.svg",
            "--plot shows workloads",
        ),
        (
            "compare --baseline true --scale 2",
            "--scale is for workloads",
        ),
        ("compare --workload gcc:futex", "gcc does not use 'by'"),
        (
            "compare --workload fs-mark:4",
            "fs-mark does not use 'threads'",
        ),
        (
            "run --lock pthread --wait spin -- true",
            "--wait is for locks",
        ),
        ("sweep s.toml --slurm", "'locklab compare FILE --chunk I/N'"),
        ("matrix tas mcs --on flat-16 --chunk 3/2", "such as 3/8"),
        (
            "matrix tas mcs --on flat-16 --critical 1 --threads 1 --chunk 3/3",
            "there are 2 cells",
        ),
        (
            "doctor --host ssh:root@testhost --store x",
            "cannot be used with",
        ),
        (
            "kernel boot m.toml --set slowdown=true --set lock_profile=true",
            "slowdown has nothing to compare",
        ),
        (
            "matrix tas mcs --on flat-16 --time-limit 5",
            "--time-limit is for this machine",
        ),
        (
            "reproduce virt-backoff --pairs 9",
            "unexpected argument '--pairs'",
        ),
        (
            "reproduce virt-backoff --store x",
            "unexpected argument '--store'",
        ),
        (
            "reproduce inline-unlock",
            "run `locklab compare inline-unlock`",
        ),
        (
            &format!("compare {published} --html x.html"),
            "--html is for comparisons",
        ),
        (
            &format!("compare {published} --delta 2"),
            "--delta is for comparisons",
        ),
    ] {
        locklab(folder.path(), &format!("{line} --dry-run"))
            .assert()
            .code(2)
            .stdout("")
            .stderr(predicate::str::contains(part));
    }
}

#[test]
fn a_dry_run_writes_nothing_and_json_is_json() {
    let folder = tempfile::tempdir().unwrap();
    let stored = "matrix tas mcs --on flat-16 --threads 2 --critical 1 --non-critical 1 --pairs 2 \
                  --set acquisitions=100 --quiet --store a.sqlite";
    locklab(folder.path(), stored).assert().success();
    for (line, file) in [
        ("locks -o mine.c", "mine.c"),
        ("results merge a.sqlite --store b.sqlite", "b.sqlite"),
    ] {
        let would = predicate::str::starts_with("Would ");
        locklab(folder.path(), &format!("{line} --dry-run"))
            .assert()
            .success()
            .stdout(would);
        assert!(!folder.path().join(file).exists(), "{line}");
    }
    for line in ["machine list", "machine show amd64-8", "locks"] {
        let output = locklab(folder.path(), &format!("{line} --json"))
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["schema"], 1, "{line}");
    }
}

#[test]
fn a_time_limit_means_one_thing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    for (text, name) in [(PROGRAMS, "run_limit"), (KERNELS, "boot_limit")] {
        let (first, rest) = text.split_once('\n').unwrap();
        std::fs::write(&file, format!("{first}\ntime_limit = 60\n{rest}")).unwrap();
        locklab(folder.path(), "compare x.toml --dry-run")
            .assert()
            .code(2)
            .stderr(predicate::str::contains(name).and(predicate::str::contains("line 2")));
    }
}
