//! Threads that sleep for a lock: no convoys, and nobody is passed for ever.

mod support;

use locklab_profile::{BYTES, FOLDER_VARIABLE, Report};
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;
use support::{compile, succeed, under};

const THREADS: u64 = 16;
const TURNS: u64 = 500;
/// Locks that hand over in order; `futex` does not.
const IN_ORDER: [&str; 4] = ["mcs", "clh", "ticket", "qspinlock"];

/// Puts a command on one CPU, so that whoever holds and whoever waits are not both running.
fn on_one_cpu(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(|| {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            libc::sched_getaffinity(0, size, &raw mut set);
            let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &set));
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(first.unwrap_or(0), &mut set);
            libc::sched_setaffinity(0, size, &raw const set);
            Ok(())
        })
    }
}

/// Handoffs to sleeping threads, and how often one went to sleep, as counted while
/// each of the threads took its turns.
fn convoy(program: &Path, lock: &str, wait: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = under(lock, wait, program);
    command
        .env(FOLDER_VARIABLE, folder.path())
        .args([THREADS.to_string(), TURNS.to_string()]);
    let counted = succeed(on_one_cpu(&mut command), 120);
    assert_eq!(counted, format!("{}\n", THREADS * TURNS), "{lock} {wait}");
    let file = std::fs::read_dir(folder.path())
        .unwrap()
        .next()
        .expect("the interposer reports")
        .unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    assert_eq!(bytes.len(), BYTES);
    let count = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    (
        count(offset_of!(Report, handoffs)),
        count(offset_of!(Report, sleeps)),
    )
}

/// Returns where all threads but one sleep, a lock in order of arrival is handed to a
/// sleeper each time, unless a thread that runs may pass.
#[test]
fn the_default_forms_no_convoy() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "convoy.c", &[]) else {
        return;
    };
    let all = THREADS * TURNS;
    for lock in IN_ORDER {
        let (handoffs, sleeps) = convoy(&program, lock, "spin-then-park");
        assert!(handoffs > all / 2, "{lock}: {handoffs}");
        assert!(sleeps > all / 2, "{lock}: {sleeps}");
        // This is the default.
        let (handoffs, sleeps) = convoy(&program, lock, "");
        assert_eq!(handoffs, 0, "{lock}");
        assert!(sleeps < all / 4, "{lock}: {sleeps}");
    }
    let (handoffs, _) = convoy(&program, "futex", "");
    assert_eq!(handoffs, 0);
}

/// A sleeper that the scheduler would not run for a long time gets the lock
/// after so many passes.
#[test]
fn a_sleeper_is_passed_at_most_1024_times() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "passed.c", &[]) else {
        return;
    };
    for lock in IN_ORDER {
        let mut command = under(lock, "barging", &program);
        let passes: u64 = succeed(on_one_cpu(&mut command), 60)
            .trim()
            .parse()
            .unwrap();
        assert!(passes <= 1024, "{lock}: {passes}");
    }
}
