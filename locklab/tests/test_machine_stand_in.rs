//! Kernels on a test machine, with a stand-in for it: a guest of QEMU that boots
//! a system of its own from a disk, and nothing but ssh leads to it. Run by
//! `cargo xtask test --test-machine`, which installs what it needs. Figures mean nothing
//! here, and the report must say so.
//!
//! Both kernels are ready ones of Debian, of different versions: a sample says
//! which kernel it is of, so that no sample can be of the wrong one.

mod configuration;
mod machine;
mod stand_in;

use machine::DISKS;
use serde_json::Value;
use stand_in::{PATIENT, StandIn};
use std::path::PathBuf;
use std::process::{Child, Output};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, error)
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --test-machine"]
fn three_pairs_with_a_broken_connection_and_a_hang_lose_nothing_else() {
    let mut stand_in = StandIn::new("pairs");
    // Long enough in the translator for its connection to be broken.
    stand_in.file(100_000, "", stand_in.limit_of_a_hang());
    let doctor = stand_in
        .command(&["doctor", "--on", "ssh:stand-in"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("mean nothing"), "{doctor:?}");
    let [(_, scratch), (_, precious)] = DISKS;
    for (serial, what) in [(scratch, "empty"), (precious, "something is on it")] {
        assert!(
            text.contains(&format!("{serial}, 512 MiB: {what}")),
            "{text}"
        );
    }
    let before = stand_in.boot_id();
    assert!(before.is_some(), "the doctor changed nothing");

    let mut child = stand_in.compare(&["--pairs", "3"]);
    let mut hung = false;
    // The trial, then the first boot that counts.
    stand_in.wait(&mut child, "the first boot", || stand_in.boots() >= 2);
    stand_in.break_one.store(true, Ordering::Relaxed);
    while child.try_wait().unwrap().is_none() {
        if !hung && stand_in.boots() >= 4 {
            stand_in.machine.hang();
            hung = true;
        }
        if stand_in.path("cycle").exists() {
            stand_in.machine.cycle();
            std::fs::remove_file(stand_in.path("cycle")).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let (output, error) = ended(child);
    assert!(
        hung && !stand_in.break_one.load(Ordering::Relaxed),
        "{error}"
    );
    assert!(error.contains("looking for its results"), "{error}");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("mean nothing"), "{report}{error}");
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 2 * 2 * 3, "{report}{error}");
    // The boot that hung cost its samples of both workloads, with the reason.
    let lost: Vec<&Value> = samples.iter().filter(|s| !s["invalid"].is_null()).collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    for sample in lost {
        assert!(
            sample["invalid"].to_string().contains("not up within"),
            "{sample}"
        );
    }
    stand_in.assert_kernels();
    assert!(stand_in.boot_id().is_some_and(|id| Some(id) != before));
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --test-machine"]
fn a_kernel_that_panics_costs_its_sample_and_shows_its_last_lines() {
    let stand_in = StandIn::new("panic");
    // There is no such first program.
    stand_in.file(500, "rdinit=/none", PATIENT);
    let (output, error) = ended(stand_in.compare(&["--pairs", "1"]));
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 4, "{output:?}{error}");
    stand_in.assert_kernels();
    for sample in samples {
        let failed = sample["invalid"].to_string();
        if sample["side"] == "baseline" {
            assert_eq!(failed, "null", "{sample}");
        } else {
            assert!(failed.contains("came home by itself"), "{sample}");
            let console = sample["detail"]["console"].to_string();
            assert!(console.contains("Kernel panic"), "{sample}");
        }
    }
    assert!(stand_in.boot_id().is_some());
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --test-machine"]
fn fs_mark_overwrites_the_disk_that_both_named_and_locks_are_profiled() {
    let stand_in = StandIn::new("disk");
    let [(_, scratch), (_, precious)] = DISKS;
    // What is there is found before anything is written.
    stand_in.file_with_disk(precious);
    let before = std::fs::read(stand_in.path("precious")).unwrap();
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", precious]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        error.contains("is not empty and is not overwritten"),
        "{error}"
    );
    assert!(before == std::fs::read(stand_in.path("precious")).unwrap());
    // A name that no disk has.
    stand_in.file_with_disk("S3EW-3");
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", "S3EW-3"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(error.contains("S3EW-1 (vdb), S3EW-2 (vdc)"), "{error}");

    stand_in.file_with_disk(scratch);
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", scratch]));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("S3EW-1 (vdb, 512 MiB)"), "{report}{error}");
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 2, "{report}{error}");
    stand_in.assert_kernels();
    for sample in samples {
        assert!(sample["invalid"].is_null(), "{sample}");
        assert!(sample["time"].as_f64().unwrap() > 0.0, "{sample}");
        // One CPU of a translator may wait for nothing.
        assert!(
            sample["detail"]["locks"]["run"]["translated"] == true,
            "{sample}"
        );
    }
    assert!(report.contains("Locks waited for, fs-mark"), "{report}");
    let written = std::fs::read(stand_in.path("scratch")).unwrap();
    assert_eq!(&written[..4], b"XFSB");
    assert!(before == std::fs::read(stand_in.path("precious")).unwrap());
}

/// The first time it builds two kernels, the machine's own of some 1,400 files and the
/// ready one, in which locks are tortured before, and keeps them in
/// target/tmp/test-machine-builds, or where LOCKLAB_TEST_MACHINE_CACHE says. The stand-in then says that
/// it has a configuration of a machine like it; LOCKLAB_TEST_MACHINE_CONFIG may name another
/// whole one, of the source that the test takes.
#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --test-machine"]
fn the_machine_s_own_configuration_is_built_and_booted() {
    let stand_in = StandIn::of_configuration("config", |kernels, folder| {
        let given = std::env::var_os("LOCKLAB_TEST_MACHINE_CONFIG").map(PathBuf::from);
        Some(given.unwrap_or_else(|| configuration::write(&kernels[0].config, folder)))
    });
    let cache = std::env::var("LOCKLAB_TEST_MACHINE_CACHE")
        .unwrap_or_else(|_| format!("{}/test-machine-builds", env!("CARGO_TARGET_TMPDIR")));
    stand_in.file(500, "", PATIENT);
    let path = stand_in.path("experiment.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = text.split_once("[[workload]]").unwrap();
    // Debian's source of the kernel whose configuration it is, as 6.1 of 6.1.0-56.
    let release: Vec<&str> = stand_in.kernels[0].release.splitn(3, '.').collect();
    let source = format!("{}.{}", release[0], release[1]);
    let text = format!(
        "kind = \"kernel\"\nname = \"own-configuration\"\nlock_profile = true\n[kernel]\n\
         source = \"debian:{source}\"\nconfig = \"test-machine\"\ncmdline = \"no_timer_check\"\n\
         [experiment]\ncmdline = \"quiet\"\n[[workload]]\nname = \"locktorture\"\n\
         operations = 2\n[[workload]]{rest}"
    );
    std::fs::write(&path, text).unwrap();
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--cache", &cache]));
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 4, "{output:?}{error}");
    // In QEMU first, with the ready configuration, and then on the machine.
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("both kernels passed on 4 CPUs"), "{report}");
    assert!(words.contains("of the test machine"), "{report}");
    for sample in samples {
        assert!(sample["invalid"].is_null(), "{sample}");
        let kernel = &sample["detail"]["kernel"];
        let release = kernel["release"].as_str().unwrap();
        assert!(release.starts_with(&source), "{sample}");
        let cmdline = kernel["cmdline"].to_string();
        assert_eq!(cmdline.contains(" quiet"), sample["side"] == "experiment");
        // It has the tracepoints that its file asked for.
        assert!(sample["detail"]["locks"]["run"].is_object(), "{sample}");
    }
    assert!(stand_in.boot_id().is_some());
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --test-machine"]
fn ctrl_c_brings_it_home_and_resume_goes_on() {
    let stand_in = StandIn::new("interrupt");
    stand_in.file(500, "", PATIENT);
    let mut child = stand_in.compare(&["--pairs", "1"]);
    // The trial was the first.
    stand_in.wait(&mut child, "a measured kernel", || stand_in.boots() >= 2);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let (output, error) = ended(child);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(error.contains("Ctrl-C again"), "{error}");
    assert!(stand_in.boot_id().is_some(), "{error}");
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--resume"]));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("mean nothing"), "{report}{error}");
    let whole = stand_in.samples();
    let whole = whole.iter().filter(|sample| sample["invalid"].is_null());
    assert!(whole.count() >= 4, "{error}");
    stand_in.assert_kernels();
}
