//! A lock of the user's own in Rust, brought into the command.

use clap::Parser;
use locklab::bring::{Loom, NativePlatform, Sim, lock};
use locklab::cli::Cli;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use std::process::ExitCode;

/// Test and set, as a user would write it.
struct Spin<P: Platform> {
    held: P::U32,
}

impl<P: Platform> Default for Spin<P> {
    fn default() -> Self {
        Self {
            held: P::U32::new(0),
        }
    }
}

// SAFETY: whoever has swapped 0 for 1 holds it until 0 is stored.
unsafe impl<P: Platform> RawLock<P> for Spin<P> {
    type Ctx = ();
    const INFO: Info = Info {
        name: "my-spin",
        summary: "test and set",
        try_lock: false,
        ..Info::BASE
    };

    unsafe fn lock(&self, (): &()) {
        while self.held.swap(1, Ordering::Acquire) != 0 {
            self.held.spin_until(Ordering::Relaxed, |held| held == 0);
        }
    }

    unsafe fn unlock(&self, (): &()) {
        self.held.store(0, Ordering::Release);
    }
}

fn locklab(arguments: &[&str]) -> ExitCode {
    let arguments = ["locklab", "--quiet"].iter().chain(arguments);
    locklab::run(Cli::parse_from(arguments)).unwrap()
}

/// The catalogue, the simulator and the checker know it by its name.
#[test]
fn a_lock_in_rust_goes_through_three_worlds() {
    lock::<Spin<NativePlatform>, Spin<Sim>, Spin<Loom>>();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.sqlite");
    let store = ["--store", store.to_str().unwrap()];
    let small = [
        "--threads",
        "2",
        "--critical",
        "0",
        "--non-critical",
        "1",
        "--pairs",
        "8",
    ];
    for command in [
        &["locks", "my-spin"][..],
        &[
            &["matrix", "my-spin", "ttas", "--on", "flat-16"],
            &small[..],
            &store,
        ]
        .concat(),
        &[
            &["matrix", "my-spin", "ttas", "--time", "2"],
            &small[..],
            &store,
        ]
        .concat(),
    ] {
        assert_eq!(locklab(command), ExitCode::SUCCESS, "{command:?}");
    }
    // So few executions cut some promises, which is no failure; what broke, and
    // what broke nothing, is in the files.
    let (trace, bugs) = (folder.path().join("trace"), folder.path().join("bugs.md"));
    let code = locklab(&[
        "verify",
        "my-spin",
        "--mutants",
        "--at-most",
        "executions=300",
        "--steps",
        trace.to_str().unwrap(),
        "--update",
        bugs.to_str().unwrap(),
    ]);
    assert_eq!(code, ExitCode::SUCCESS);
    let trace = std::fs::read_to_string(trace).unwrap();
    assert_eq!(trace, "no promise is broken\n");
    let bugs = std::fs::read_to_string(bugs).unwrap();
    assert!(!bugs.contains("my-spin"), "a mutant survives: {bugs}");
}
