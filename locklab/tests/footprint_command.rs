//! `locklab footprint` as a user runs it, on objects built here.

use assert_cmd::Command;
use std::path::Path;

fn locklab() -> Command {
    Command::cargo_bin("locklab").unwrap()
}

fn object(folder: &Path, name: &str, source: &str) -> String {
    let source_file = folder.join(format!("{name}.c"));
    std::fs::write(&source_file, source).unwrap();
    let out = folder.join(format!("{name}.o"));
    let gcc = std::process::Command::new("gcc")
        .args(["-g", "-O2", "-c", "-o"])
        .args([&out, &source_file])
        .status()
        .expect("gcc (apt-get install gcc)");
    assert!(gcc.success());
    out.display().to_string()
}

const OLD: &str = "__attribute__((noinline)) static int step(int x) { return x * 7 + 3; }
int twice(int x) { return step(step(x)); }";
const NEW: &str =
    "__attribute__((always_inline)) static inline int step(int x) { return x * 7 + 3; }
int twice(int x) { return step(step(x)); }";

#[test]
fn the_shape_that_others_rely_on_and_the_call_sites() {
    let folder = tempfile::tempdir().unwrap();
    let old = object(folder.path(), "old", OLD);
    let new = object(folder.path(), "new", NEW);
    let out = locklab()
        .args(["footprint", &old, &new, "--json", "--inlined", "step"])
        .assert()
        .success()
        .stderr("");
    let json: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(json["schema"], 1);
    assert!(json["provenance"].as_str().unwrap().starts_with("files"));
    let symbols = json["symbols"].as_array().unwrap();
    let sum = |side: &str| -> u64 { symbols.iter().map(|s| s[side].as_u64().unwrap()).sum() };
    for side in ["baseline", "experiment"] {
        assert_eq!(json["text"][side], sum(side));
    }
    let step = symbols.iter().find(|s| s["name"] == "step").unwrap();
    assert_eq!(
        (&step["experiment"], &step["change"]),
        (&0.into(), &"removed".into())
    );
    let copies: u64 = json["inlined"]["call_sites"]["sites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|site| site["copies"]["experiment"].as_u64().unwrap())
        .sum();
    assert_eq!(copies, 2);

    let text = locklab().args(["footprint", &old, &new]).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.contains("bloat-o-meter"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 72), "{text}");
}

#[test]
fn bad_input_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let old = object(folder.path(), "old", OLD);
    let missing = folder.path().join("missing").display().to_string();
    let text = folder.path().join("old.c").display().to_string();
    for (arguments, part) in [
        (vec![&old, &missing], "does not exist"),
        (vec![&old, &text], "not an ELF file"),
    ] {
        let out = locklab().arg("footprint").args(arguments).assert().code(1);
        let stderr = String::from_utf8(out.get_output().stderr.clone()).unwrap();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
    }
    locklab()
        .args(["footprint", &old, &old, "--counts", &text])
        .assert()
        .code(2);
}
