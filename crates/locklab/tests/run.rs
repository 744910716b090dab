//! `locklab run` as a user calls it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The interposer, built as a user builds it.
fn interposer() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interposer");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/Cargo.toml");
        let status = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--lib", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the interposer builds");
        target.join("release/liblocklab_preload.so")
    });
    &PATH
}

fn locklab() -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.env("LOCKLAB_PRELOAD", interposer());
    command.timeout(std::time::Duration::from_secs(60));
    command
}

/// A program whose `hot` takes a lock 20000 times in two threads.
fn program(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("program.c");
    std::fs::write(
        &source,
        "#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *hot(void *unused)
{
    for (int i = 0; i < 10000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t other;
    pthread_mutexattr_t shared;
    pthread_mutex_t kept;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&kept, &shared);
    pthread_create(&other, 0, hot, 0);
    hot(0);
    pthread_join(other, 0);
    (void)!write(1, \"output\\n\", 7);
    if (argc > 2)
        _exit(0);
    return argc > 1 ? atoi(argv[1]) : 0;
}
",
    )
    .unwrap();
    let program = folder.join("program");
    let compiled = std::process::Command::new("gcc")
        .args(["-g", "-O1", "-fno-inline", "-pthread"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    if compiled.is_err() {
        println!("skipped: no gcc; install the package gcc");
        return None;
    }
    Some(program)
}

#[test]
fn the_program_runs_with_its_own_output_and_status() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return;
    };
    locklab()
        .args(["run", "--lock", "mcs", "--"])
        .arg(&program)
        .arg("7")
        .assert()
        .code(7)
        .stdout("output\n")
        .stderr(
            "locklab: 1 robust, process-shared or priority mutexes kept glibc's lock (0 \
             operations)\n",
        );
    locklab()
        .args(["run", "--lock", "mcs_spin_then_park", "--quiet", "--"])
        .args(["sh", "-c", "kill -TERM $$"])
        .assert()
        .code(143)
        .stderr("");
}

/// `_exit` runs no handlers, and the profile is there all the same.
#[test]
fn a_profile_counts_each_acquisition_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return;
    };
    locklab()
        .args(["run", "--lock", "ticket", "--profile", "--"])
        .arg(&program)
        .assert()
        .success()
        .stdout("output\n")
        .stderr(contains("hot program.c:8 (program)").and(contains("  20000 ")));
    for lock in ["mcs", "anderson", "clh"] {
        let output = locklab()
            .args(["run", "--lock", lock, "--profile", "--json", "--"])
            .arg(&program)
            .args(["0", "at-once"])
            .assert()
            .success()
            .stderr("output\n");
        let document: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert_eq!(document["lock"], lock);
        assert_eq!(document["kept_by_glibc"]["mutexes"], 1);
        let [place] = &document["profile"].as_array().unwrap()[..] else {
            panic!("{document}");
        };
        assert_eq!(place["place"], "hot program.c:8 (program)");
        assert_eq!(place["acquired"], 20000);
        assert_eq!(place["holds"], 20000);
        let longest = place["longest_hold_ns"].as_f64().unwrap();
        let mean = place["held_ns"].as_f64().unwrap() / 20000.0;
        assert!(0.0 < mean && mean <= longest, "{place}");
        assert!(place["contended"].as_u64() <= Some(20000));
    }
}

#[test]
fn what_cannot_run_is_told_in_a_sentence() {
    locklab()
        .args(["run", "--lock", "tickett", "--", "true"])
        .assert()
        .code(2)
        .stderr(contains("Did you mean 'ticket'?"));
    locklab()
        .args(["run", "--lock", "pthread", "--profile", "--", "true"])
        .assert()
        .code(2)
        .stderr(contains("glibc's own mutexes cannot be profiled"));
    locklab()
        .args(["run", "--lock", "mcs", "--", "/no/such/program"])
        .assert()
        .code(1)
        .stderr(contains("/no/such/program does not start"));
    locklab()
        .env("LOCKLAB_PRELOAD", "/no/such/library.so")
        .args(["run", "--lock", "mcs", "--", "true"])
        .assert()
        .code(1)
        .stderr(contains("cargo build --release -p locklab-preload"));
    locklab()
        .args([
            "run",
            "--lock",
            "mcs",
            "--wait",
            "spin",
            "--dry-run",
            "--",
            "echo",
            "ran",
        ])
        .assert()
        .success()
        .stdout(contains("LOCKLAB_LOCK=mcs LOCKLAB_WAIT=spin echo ran"));
}

#[test]
fn a_program_that_cannot_be_interposed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("static.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let program = folder.path().join("static");
    let compiled = std::process::Command::new("gcc")
        .arg("-static")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: no static libc; install the packages gcc and libc6-dev");
        return;
    }
    locklab()
        .args(["run", "--lock", "mcs", "--"])
        .arg(&program)
        .assert()
        .success()
        .stderr(contains("did not load the interposer"));
}
