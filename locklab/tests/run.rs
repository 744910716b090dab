//! `locklab run` as a user calls it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn locklab() -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.timeout(std::time::Duration::from_secs(60));
    command
}

/// Returns a program whose `hot` takes a lock 20000 times in two threads.
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
    compile(folder, &source)
}

/// Compiles a C program; `None`, after saying so, if there is no compiler.
fn compile(folder: &Path, source: &Path) -> Option<PathBuf> {
    let program = folder.join("program");
    let compiled = std::process::Command::new("gcc")
        .args(["-g", "-O1", "-fno-inline", "-pthread"])
        .arg(source)
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
        .stderr(contains("#1 hot program.c:8 (program)").and(contains(" 20.0k ")));
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

/// Two users of one wrapper, each with mutexes of its own, in three threads
/// that all want the first; the mutexes are recursive, which glibc keeps count
/// of in its own way.
const WRAPPED: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
typedef struct { pthread_mutex_t mutex; } my_mutex;
static my_mutex queue, caches[2];
static pthread_barrier_t all;
void my_mutex_init(my_mutex *m)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&m->mutex, &kind);
}
void my_mutex_lock(my_mutex *m) { pthread_mutex_lock(&m->mutex); __asm__(\"\"); }
void my_mutex_unlock(my_mutex *m) { pthread_mutex_unlock(&m->mutex); __asm__(\"\"); }
void queue_new(void) { my_mutex_init(&queue); __asm__(\"\"); }
void cache_new(my_mutex *m) { my_mutex_init(m); __asm__(\"\"); }
void queue_put(void)
{
    my_mutex_lock(&queue);
    my_mutex_lock(&queue);
    usleep(2000);
    my_mutex_unlock(&queue);
    my_mutex_unlock(&queue);
    __asm__(\"\");
}
void cache_get(my_mutex *m) { my_mutex_lock(m); my_mutex_unlock(m); __asm__(\"\"); }
static void *f(void *unused)
{
    pthread_barrier_wait(&all);
    for (int i = 0; i < 20; i++) {
        queue_put();
        cache_get(&caches[i % 2]);
    }
    return unused;
}
int main(void)
{
    pthread_t others[2];
    queue_new();
    for (int i = 0; i < 2; i++)
        cache_new(&caches[i]);
    pthread_barrier_init(&all, 0, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&others[i], 0, f, 0);
    f(0);
    for (int i = 0; i < 2; i++)
        pthread_join(others[i], 0);
    return 0;
}
";

#[test]
fn a_profile_names_users_of_wrappers_waiters_and_holders() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wrapped.c");
    std::fs::write(&source, WRAPPED).unwrap();
    let program = folder.path().join("wrapped");
    let compiled = std::process::Command::new("gcc")
        .args([
            "-g",
            "-O1",
            "-fno-inline",
            "-fomit-frame-pointer",
            "-pthread",
        ])
        .args(["-o".as_ref(), program.as_os_str(), source.as_os_str()])
        .status();
    if compiled.is_err() {
        println!("skipped: no gcc; install the package gcc");
        return;
    }
    // glibc's mutexes as they are, too.
    for lock in ["mcs", "ticket", "pthread", "pthread-interposed"] {
        let page = folder.path().join("page.html");
        let output = locklab()
            .args(["run", "--lock", lock, "--profile", "--json", "--html"])
            .arg(&page)
            .arg("--")
            .arg(&program)
            .assert()
            .success();
        let document: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        let places = document["profile"].as_array().unwrap();
        let place = |name: &str| {
            let found = places.iter().find(|place| {
                let place = place["place"].as_str().unwrap();
                place.starts_with(&format!("{name} "))
            });
            found.unwrap_or_else(|| panic!("{lock}: no {name}: {document:#}"))
        };
        assert_eq!(places.len(), 2, "{lock}: {document:#}");
        let queue = place("queue_new");
        assert_eq!(queue["acquired"], 60, "{lock}");
        assert_eq!(queue["holds"], 60, "{lock}");
        assert_eq!(queue["mutexes"].as_array().unwrap().len(), 1);
        assert!(queue["contended"].as_u64() > Some(0), "{lock}: {queue:#}");
        assert!(queue["most_waiters"].as_u64() <= Some(2), "{lock}");
        for side in ["waited_by", "held_by"] {
            let who = queue[side][0]["who"].as_str().unwrap_or_default();
            assert!(who.starts_with("queue_put wrapped.c:"), "{lock}: {queue:#}");
        }
        let share = queue["held_share"].as_f64().unwrap();
        assert!(0.0 < share && share <= 1.0, "{lock}: {share}");
        let caches = place("cache_new");
        assert_eq!(caches["acquired"], 60, "{lock}");
        let each = caches["mutexes"].as_array().unwrap();
        assert_eq!(each.len(), 2, "{lock}");
        assert!(each.iter().all(|mutex| mutex["acquired"] == 30), "{lock}");
        assert!(
            std::fs::read_to_string(&page)
                .unwrap()
                .contains("queue_put")
        );
    }
}

/// Three acquisitions for reading, two of which are one to the lock, and one for
/// writing.
#[test]
fn rwlocks_are_profiled_or_said_to_have_stayed_glibcs() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("readers.c");
    std::fs::write(
        &source,
        "#include <pthread.h>
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
int main(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_tryrdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    return pthread_rwlock_unlock(&rwlock);
}
",
    )
    .unwrap();
    let Some(program) = compile(folder.path(), &source) else {
        return;
    };
    let run = |arguments: &[&str]| {
        let mut command = locklab();
        command.arg("run").args(arguments).arg("--").arg(&program);
        command.assert().success()
    };
    for arguments in [
        &["--lock", "bravo"][..],
        &["--lock", "mcs", "--rwlock", "bravo"],
    ] {
        let output = run(&[arguments, &["--profile", "--json"]].concat());
        let document: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert_eq!(document["rwlock"], "bravo");
        let [place] = &document["profile"].as_array().unwrap()[..] else {
            panic!("{document}");
        };
        assert_eq!(place["acquired"], 3, "{place}");
        assert_eq!(place["holds"], 1, "{place}");
    }
    run(&["--lock", "mcs"]).stderr(contains(
        "the program's rwlocks stayed glibc's, because 'mcs' has no readers",
    ));
    run(&["--lock", "mcs", "--rwlock", "pthread"]).stderr("");
    locklab()
        .args(["run", "--lock", "mcs", "--rwlock", "ticket", "--", "true"])
        .assert()
        .code(2)
        .stderr(contains("'ticket' has no readers"));
}

#[test]
fn a_program_with_locks_of_its_own_hears_of_it() {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !python.is_ok_and(|output| output.status.success()) {
        println!("skipped: no python3; install the package python3");
        return;
    }
    locklab()
        .args(["run", "--lock", "mcs", "--", "python3", "-c"])
        .arg("import threading; threading.Lock().acquire()")
        .assert()
        .success()
        .stderr(contains("pthread mutex").and(contains(
            "Python's threading.Lock is a semaphore, which --lock does not replace",
        )));
}

/// A signal to the process of `locklab run` reaches the program.
#[test]
fn a_signal_is_forwarded_to_the_program() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin("locklab"))
        .args(["run", "--lock", "mcs", "--", "sh", "-c"])
        .arg("trap 'echo stopped; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // SAFETY: a child that has not been waited for.
    unsafe { libc::kill(run.id().cast_signed(), libc::SIGTERM) };
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stopped\n");
    assert_eq!(run.wait().unwrap().code(), Some(7));
}

/// The note at the end, and the default that has none.
#[test]
fn a_convoy_is_reported_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("convoy");
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/programs/preload/tests/c/convoy.c");
    let compiled = std::process::Command::new("gcc")
        .args(["-O2", "-pthread", "-o"])
        .args([&program, &source])
        .status();
    if compiled.is_err() {
        println!("skipped: no gcc; install the package gcc");
        return;
    }
    let sleepers = |wait: &[&str]| {
        let output = locklab()
            .args(["run", "--lock", "mcs", "--json"])
            .args(wait)
            .arg("--")
            .arg(&program)
            .args(["16", "200"])
            .assert()
            .success();
        let document: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        document["sleepers"].clone()
    };
    let convoy = sleepers(&["--wait", "spin-then-park"]);
    assert!(convoy["handoffs"].as_u64() > Some(1600), "{convoy}");
    assert!(convoy["idle_s"].as_f64() > Some(0.0), "{convoy}");
    let barging = sleepers(&[]);
    assert_eq!(barging["handoffs"].as_u64(), Some(0), "{barging}");
    assert!(barging["sleeps"].as_u64() < Some(800), "{barging}");
}

#[test]
fn what_cannot_run_is_told_in_a_sentence() {
    locklab()
        .args(["run", "--lock", "tickett", "--", "true"])
        .assert()
        .code(2)
        .stderr(contains("Did you mean 'ticket'?"));
    locklab()
        .args(["run", "--lock", "mcs", "--html", "page.html", "--", "true"])
        .assert()
        .code(2)
        .stderr(contains("--profile"));
    locklab()
        .args([
            "run",
            "--lock",
            "mcs",
            "--profile",
            "--html",
            "/no/such/page.html",
        ])
        .args(["--", "true"])
        .assert()
        .code(2)
        .stderr(contains("cannot write /no/such/page.html"));
    locklab()
        .args(["run", "--lock", "mcs", "--", "./no-such-program"])
        .assert()
        .code(1)
        .stderr(contains("./no-such-program does not start in /"));
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
        .stdout(contains(
            "LOCKLAB_LOCK=mcs LOCKLAB_WAIT=spin LOCKLAB_RWLOCK=pthread echo ran",
        ));
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
        .stderr(contains(
            "did not load the interposer, and ran on its own locks: static is linked statically",
        ));
}

/// One binary is all that `run` takes, and a cache folder that serves for nothing is named.
#[test]
fn a_lone_binary_has_its_libraries_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone");
    std::fs::create_dir(&alone).unwrap();
    let command = alone.join("locklab");
    std::fs::copy(assert_cmd::cargo::cargo_bin("locklab"), &command).unwrap();
    let run = |cache: &Path| {
        let mut run = Command::new(&command);
        run.env("XDG_CACHE_HOME", cache)
            .env("TMPDIR", folder.path());
        run.args(["run", "--lock", "mcs", "--", "sh", "-c", "exit 7"]);
        run.assert().code(7)
    };
    run(&folder.path().join("cache")).stderr("");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    run(&file)
        .stderr(contains("file/locklab/libraries cannot hold it"))
        .stderr(contains("so the interposer is"));
}
