//! `locklab kernel compare --on ssh:HOST` as far as it goes without a machine:
//! what it would do, and what it refuses. `test_machine_stand_in` has the rest.

use crate::common::golden::golden;
use std::path::Path;
use std::process::{Command, Output};

fn locklab(arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_locklab"))
        .args(arguments)
        .env("XDG_CACHE_HOME", folder.path())
        // No ssh may be called.
        .env("PATH", folder.path())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn experiment(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    root.join(name).display().to_string()
}

#[test]
fn a_dry_run_on_a_test_machine_says_time_steps_and_what_it_leaves_untouched() {
    let file = experiment("inline-unlock.toml");
    let arguments = ["compare", &file, "--host", "ssh:root@testhost", "--dry-run"];
    let (code, text, error) = locklab(&arguments);
    assert_eq!(code, Some(0), "{error}");
    golden("test_machine_dry_run.txt", &text);
    let (code, text, error) = locklab(&[&arguments[..], &["--json"]].concat());
    assert_eq!(code, Some(0), "{error}");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["on"], "ssh:root@testhost");
    assert_eq!(document["seconds"], serde_json::Value::Null);
}

#[test]
fn a_disk_is_overwritten_only_if_file_and_command_line_name_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk.toml");
    let dry_run = |in_file: &str, workload: &str, arguments: &[&str]| {
        let text = format!(
            "kind = 'kernel'\nname = 'disk'\n[experiment]\nnoinline = ['schedule']\n\
             [[workload]]\nname = '{workload}'\n[test_machine]\nlimit = 60\n{in_file}"
        );
        std::fs::write(&file, text).unwrap();
        let all = ["compare", file.to_str().unwrap(), "--dry-run"];
        locklab(&[&all[..], arguments].concat())
    };
    let on = ["--host", "ssh:root@testhost"];
    let named = "scratch_disk = 'S3EW'\n";
    for (in_file, workload, arguments, needle) in [
        (
            named,
            "fs-mark",
            &[][..],
            "confirm it by --scratch-disk S3EW",
        ),
        (
            "",
            "fs-mark",
            &["--scratch-disk", "S3EW"],
            "write scratch_disk = \"S3EW\"",
        ),
        (
            named,
            "fs-mark",
            &["--scratch-disk", "s3ew"],
            "both name the same",
        ),
        (
            named,
            "fstat",
            &["--scratch-disk", "S3EW"],
            "is for fs-mark",
        ),
    ] {
        let (code, _, error) = dry_run(in_file, workload, &[&on, arguments].concat());
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(needle), "{error}");
    }
    let (code, _, error) = dry_run(named, "fs-mark", &["--scratch-disk", "S3EW"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("give --host"), "{error}");
    let both = [&on[..], &["--scratch-disk", "S3EW"]].concat();
    let (code, text, error) = dry_run(named, "fs-mark", &both);
    assert_eq!(code, Some(0), "{error}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("except the one with the serial number S3EW"),
        "{text}"
    );
    // Without fs-mark nothing is overwritten, and nothing has to be confirmed.
    let (code, text, _) = dry_run(named, "fstat", &on);
    assert_eq!(code, Some(0));
    assert!(text.contains("neither side mounts or writes one"), "{text}");
}

#[test]
fn what_makes_no_sense_on_a_test_machine_is_said() {
    let file = experiment("inline-unlock.toml");
    for (arguments, needle) in [
        (&["--host", "root@testhost"][..], "write ssh:root@testhost"),
        (&["--host", "ssh:-oProxyCommand=x"], "not a test machine"),
        (
            &["--host", "ssh:root@testhost", "--vcpus", "4"],
            "[test_machine] cpus",
        ),
        (
            &["--host", "ssh:root@testhost", "--set", "tcg=true"],
            "leave it out",
        ),
        (
            &["--host", "ssh:root@testhost", "--set", "boot_limit=9"],
            "[test_machine] limit",
        ),
    ] {
        let all = [&["compare", &file, "--dry-run"], arguments].concat();
        let (code, _, error) = locklab(&all);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(needle), "{arguments:?}: {error}");
    }
}
