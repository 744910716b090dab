//! Locks of a program's own, recorded: Rust's by the wrappers, C's by the header.

use locklab_preload_run::{Recorded, Recording};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

const TURNS: u64 = 500;

type Wrapped = lock_api::Mutex<locklab_record::Recorded<parking_lot::RawMutex>, u64>;

/// Returns the recording of a command.
fn record(folder: &Path, command: &[&str]) -> (u8, Recorded) {
    let recording = Recording {
        file: folder.join("recording"),
        seconds: None,
        megabytes: 16,
        whole: true,
        command: command.iter().map(Into::into).collect(),
        round_trip: || None,
        cpu_use: || None,
        client: None,
    };
    recording.ready().unwrap().run(true).unwrap()
}

/// Returns how often each lock of the program's own was acquired.
fn acquired(json: &Value) -> Vec<u64> {
    let locks = json["locks"].as_array().unwrap();
    let own = locks
        .iter()
        .filter(|lock| lock["kind"] == "the program's own");
    let counts = own.map(|lock| lock["counts"]["acquired"].as_u64().unwrap());
    counts.collect()
}

/// The program of the test below: two threads at a mutex of each kind, and a reader.
#[test]
#[ignore = "a program for another test"]
fn program_with_locks_of_its_own() {
    let std_like = Arc::new(locklab_record::sync::Mutex::new(0));
    let wrapped = Arc::new(Wrapped::new(0));
    let shared = Arc::new(locklab_record::sync::RwLock::new(0));
    let threads = [(); 2].map(|()| {
        let (std_like, wrapped, shared) = (std_like.clone(), wrapped.clone(), shared.clone());
        thread::spawn(move || {
            for _ in 0..TURNS {
                *std_like.lock().unwrap() += 1;
                *wrapped.lock() += 1;
                assert!(*shared.read().unwrap() <= 1);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    *shared.write().unwrap() = 1;
    assert_eq!(*std_like.lock().unwrap() + *wrapped.lock(), 4 * TURNS);
}

#[test]
fn the_locks_of_a_rust_program_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let itself = std::env::current_exe().unwrap();
    let command = [
        itself.to_str().unwrap(),
        "--ignored",
        "--exact",
        "program_with_locks_of_its_own",
    ];
    let (status, recorded) = record(folder.path(), &command);
    assert_eq!(status, 0);
    let mut acquired = acquired(&recorded.json());
    acquired.sort_unstable();
    assert_eq!(acquired, [2 * TURNS + 1; 3], "{}", recorded.text());
}

/// Compiles the C program, with more arguments; `None`, after saying so, without a compiler.
fn compile(folder: &Path, more: &[&str]) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("spin");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(more)
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/c/spin.c"))
        .arg("-o")
        .arg(&program)
        .status();
    let Ok(status) = compiled else {
        println!("skipped: no gcc; install the package gcc");
        return None;
    };
    assert!(status.success(), "the program compiles");
    Some(program)
}

#[test]
fn the_locks_of_a_c_program_are_recorded_and_named() {
    for more in [&[][..], &["-no-pie"], &["-fPIE", "-pie"]] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compile(folder.path(), more) else {
            return;
        };
        let (status, recorded) = record(folder.path(), &[program.to_str().unwrap()]);
        assert_eq!(status, 0);
        let json = recorded.json();
        assert_eq!(acquired(&json), [1000], "{more:?}: {}", recorded.text());
        let sites = json["sites"].to_string();
        assert!(sites.contains("spin.c:"), "{sites}");
        let locks = json["locks"].to_string();
        assert!(locks.contains("the_lock"), "{locks}");
    }
}

#[test]
fn without_the_recorder_or_the_macros_the_program_is_what_it_was() {
    for more in [&[][..], &["-DLOCKLAB_NO_RECORD"]] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compile(folder.path(), more) else {
            return;
        };
        assert!(Command::new(program).status().unwrap().success());
    }
}
