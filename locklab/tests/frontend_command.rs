//! What `locklab frontend` does with programs, processors and a QEMU that it cannot take as they
//! are: what can be counted is counted, and one sentence says what is missing. Skipped without
//! QEMU.

use crate::icache_command::ready;
use assert_cmd::Command;
use std::path::{Path, PathBuf};

/// Runs `locklab frontend` with these arguments.
fn frontend(arguments: &[&str]) -> (i32, String, String) {
    ended(
        Command::cargo_bin("locklab")
            .unwrap()
            .arg("frontend")
            .args(arguments),
    )
}

fn ended(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Returns the words of a report, one space between each two.
fn words(report: &str) -> String {
    report.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn gcc(folder: &Path, name: &str, options: &[&str], source: &str) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let built = std::process::Command::new("gcc")
        .args(["-O1", "-static"])
        .args(options)
        .arg("-o")
        .args([&program, &file])
        .status();
    assert!(built.expect("gcc (apt-get install gcc)").success());
    program
}

const CALLS: &str = "static __attribute__((noinline)) int step(int n) { return n * 5 ^ n >> 3; }
    int main(void) { int s = 1; for (int n = 0; n < 20000; n++) s += step(s); return s == 1; }";

#[test]
fn a_program_without_symbols_is_counted_by_addresses() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = gcc(folder.path(), "nameless", &["-s"], CALLS);
    let program = program.to_str().unwrap();
    let (code, out, err) = frontend(&["--processor", "zen-3", "--", program]);
    assert_eq!((code, err.as_str()), (0, ""));
    let said = "The program has no symbols, so its code has addresses for names.";
    assert!(words(&out).contains(said), "{out}");
    let (code, out, err) = frontend(&["--processor", "zen-3", "--json", "--", program]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["instructions"].as_u64().unwrap() > 100_000);
    let places = &json["frontend"]["places"];
    assert_eq!(places["symbols"], false);
    let name = places["functions"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("0x"), "{name}");

    // A question about a function needs its name.
    let inline = ["--processor", "zen-3", "--before", program];
    let (code, _, err) = frontend(&[&inline, &["--inlined", "step", "--", program][..]].concat());
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(
        err.contains("has a function 'step'") && err.contains("builds that have one"),
        "{err}"
    );
}

#[test]
fn of_a_processor_that_is_not_known_the_l1i_is_counted() {
    if !ready() {
        return;
    }
    // QEMU's own processor, which no file describes, runs the command itself.
    let locklab = assert_cmd::cargo::cargo_bin("locklab");
    let mut command = Command::new("qemu-x86_64");
    command.args(["-cpu", "qemu64"]).arg(locklab);
    let (code, out, err) = ended(command.args(["frontend", "--", "true"]));
    assert_eq!(code, 0, "{err}");
    let out = words(&out);
    let said = "Only the L1i was modelled: the front end of this processor (AuthenticAMD, family \
                15, model 107) is not known: name one with --processor (";
    assert!(out.contains(said) && out.contains("L1i misses"), "{out}");
}

#[test]
fn a_processor_file_that_lacks_a_size_is_refused_and_the_l1i_can_be_counted() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let known = include_str!("../../crates/code/frontend/processors/zen-3.toml");
    let file = folder.path().join("mine.toml");
    let unknown = known.replace("btb2_entries = {", "# btb2_entries = {");
    std::fs::write(&file, unknown).unwrap();
    let file = file.to_str().unwrap();
    let (code, _, err) = frontend(&["--processor", file, "--", "true"]);
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(
        err.contains("mine.toml: missing field `btb2_entries`"),
        "{err}"
    );
    let (code, out, err) = frontend(&["--processor", "none", "--", "true"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("L1i misses"), "{out}");
}

#[test]
fn a_program_that_writes_its_own_code_is_counted_and_said() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = include_str!("../../crates/code/qemu-plugin/tests/programs/rewrite.c");
    let program = gcc(folder.path(), "rewrite", &["-DTIMES=5000"], source);
    let program = program.to_str().unwrap();
    let (code, out, err) = frontend(&["--processor", "zen-5", "--json", "--", program]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rewritten = json["frontend"]["rewritten_blocks"].as_u64().unwrap();
    assert!((4999..5010).contains(&rewritten), "{rewritten}");
    // Each function is a move and a return, called from a loop.
    assert!(json["instructions"].as_u64().unwrap() > 5000 * 4);
    let (_, out, _) = frontend(&["--processor", "zen-5", "--", program]);
    let out = words(&out);
    assert!(
        out.contains("The program wrote over its own code ("),
        "{out}"
    );
}

/// A QEMU that was built without plugins, or one with an API that the plugin does not know.
#[test]
fn a_qemu_that_takes_no_plugin_is_one_sentence() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let qemu = folder.path().join("qemu-x86_64");
    for says in [
        "qemu: unknown option 'plugin'",
        "qemu-x86_64: could not load plugin: API version 9",
    ] {
        std::fs::write(&qemu, format!("#!/bin/sh\necho \"{says}\" >&2\nexit 1\n")).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let mut command = Command::cargo_bin("locklab").unwrap();
        command.env("PATH", path).args(["frontend", "--", "true"]);
        let (code, out, err) = ended(&mut command);
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (1, "", 1),
            "{err}"
        );
        assert!(err.contains(says) && err.contains("7.2 and 10.0"), "{err}");
    }
}
