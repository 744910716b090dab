//! Programs that are drawn from seeds, really run and recorded: whatever threads wait for,
//! each recording gets an answer, with the program under its own lock simulated.
//!
//! How near the simulated rate comes was measured on an idle machine (results/programs.md), and
//! never here.

mod common;

use locklab_preload_run::Recording;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the program; `None`, after saying so, without a compiler.
fn program(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("drawn");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/drawn.c");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .args([&program, &source])
        .status();
    let Ok(status) = compiled else {
        println!("skipped: no gcc; install the package gcc");
        return None;
    };
    assert!(status.success(), "the program compiles");
    Some(program)
}

#[test]
fn drawn_programs_are_simulated_and_never_deadlock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return;
    };
    let mut simulated = 0;
    for seed in 1..=8 {
        let file = folder.path().join(format!("{seed}.trace"));
        let recording = Recording {
            file: file.clone(),
            seconds: None,
            megabytes: 16,
            whole: true,
            command: vec![
                program.clone().into(),
                seed.to_string().into(),
                "300".into(),
            ],
            round_trip: || None,
            cpu_use: || None,
            client: None,
        };
        let (status, _) = recording.ready().unwrap().run(true).unwrap();
        assert_eq!(status, 0, "seed {seed}");
        let answer = common::answer(&file, None);
        let Some(gate) = answer.get("gate") else {
            continue;
        };
        assert!(gate["why"].is_null(), "seed {seed}: {gate}");
        assert!(gate["ratio"].as_f64().unwrap() > 0.0, "seed {seed}: {gate}");
        let failed = answer["points"][0]["failed"].as_array().unwrap();
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
        simulated += 1;
    }
    // On a machine with much else to do threads seldom meet, so few of them wait.
    assert!(simulated >= 1, "{simulated} of 8 had something to gain");
}
