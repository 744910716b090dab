//! `locklab icache` in the real QEMU; skipped without it.

use assert_cmd::Command;

/// Returns whether programs can be run under the model here.
pub(crate) fn ready() -> bool {
    let there = locklab_host::process::find("qemu-x86_64", &[]).is_some()
        && locklab_programs::icache::Model::new(None, None, None, false).is_ok();
    if !there {
        println!("skipped: qemu-user or the plugin is missing");
    }
    there
}

fn icache(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("locklab")
        .unwrap()
        .arg("frontend")
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn gzip_twice_gives_identical_counts() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    let counts = || -> serde_json::Value {
        let text: String = (0..4000)
            .map(|n: u32| format!("{} ", n * n % 977))
            .collect();
        std::fs::write(&file, text).unwrap();
        let _ = std::fs::remove_file(folder.path().join("text.gz"));
        let (code, out, err) = icache(&["--json", "--", "gzip", file.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    };
    let (first, second) = (counts(), counts());
    assert!(first["instructions"].as_u64().unwrap() > 100_000);
    assert_eq!(first, second);
    assert_eq!(first["provenance"], "model");
    for field in ["l1i_misses", "user", "kernel", "geometry"] {
        assert!(!first[field].is_null(), "{field}");
    }
    // In QEMU's user mode no kernel runs: zero would be a count of it.
    assert_eq!(first["kernel"]["executed"], false);
    for field in ["instructions", "l1i_fetches", "l1i_misses"] {
        assert!(first["kernel"][field].is_null(), "{field}");
    }
    let (_, text, _) = icache(&["--", "true"]);
    assert!(text.contains("not executed"), "{text}");
}

#[test]
fn the_geometry_is_the_users() {
    if !ready() {
        return;
    }
    let misses = |size: &str| {
        let arguments = ["--l1i", &format!("{size},2,64"), "--json", "--", "true"];
        let (code, out, err) = icache(&arguments);
        assert_eq!(code, 0, "{err}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        json["l1i_misses"].as_u64().unwrap()
    };
    assert!(misses("2048") > misses("65536"));
    let (_, text, _) = icache(&["--l1i", "32768,8,64", "--", "true"]);
    assert!(
        text.contains("32 KiB, 8-way, 64-byte lines (as given)"),
        "{text}"
    );
    assert!(text.lines().all(|l| l.len() <= 72), "{text}");
}

#[test]
fn bad_input_is_one_sentence() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\ntrue\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    for (arguments, code, part) in [
        (
            vec!["--", "no-such-program-of-ours"],
            1,
            "there is no program",
        ),
        (vec!["--", script], 1, "is a script; give its interpreter"),
        (vec!["--l1i", "1000", "--", "true"], 2, "power of two"),
        (
            vec!["--", "sh", "-c", "exec true"],
            1,
            "became another program by exec",
        ),
        (vec!["--run-limit", "0", "--", "true"], 2, "seconds above 0"),
        (
            vec!["--time-limit", "9", "--", "true"],
            2,
            "write --run-limit",
        ),
    ] {
        let (found, _, err) = icache(&arguments);
        assert_eq!(found, code, "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains(part), "{err}");
    }
    let (code, out, err) = icache(&["--", "false"]);
    assert_eq!(code, 1);
    assert!(
        out.contains("instructions") && err.contains("exit status 1"),
        "{err}"
    );
}

/// What was executed of a program under the model is its hot text.
#[test]
fn the_hot_text_of_a_footprint_comes_from_the_model() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(
        folder.path().join("hot.c"),
        "__attribute__((noinline)) int hot(int x) { for (int i = 0; i < 10000; i++) x = x * 5 ^ i; \
         return x; }\n__attribute__((noinline)) int cold(int x) { return x * 3; }\n\
         int main(int c, char **v) { (void)v; return (c > 5 ? cold(c) : hot(c)) == 77; }\n",
    )
    .unwrap();
    let gcc = std::process::Command::new("gcc")
        .args(["-O1", "-pie", "-fPIE", "-o", &path("hot"), &path("hot.c")])
        .status()
        .expect("gcc (apt-get install gcc)");
    assert!(gcc.success());
    let (code, _, err) = icache(&["--hot", &path("counts"), "--", &path("hot")]);
    assert_eq!(code, 0, "{err}");
    let counts = std::fs::read_to_string(path("counts")).unwrap();
    assert!(counts.contains(",program\n") && counts.contains(",elsewhere\n"));
    let output = Command::cargo_bin("locklab")
        .unwrap()
        .args([
            "footprint",
            "--json",
            "--counts",
            &path("counts"),
            &path("counts"),
        ])
        .args([&path("hot"), &path("hot")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let hot = &json["hot"]["baseline"];
    // 99 % of the instructions are in the one loop.
    assert!(hot["executed"].as_u64().unwrap() > 10_000, "{json}");
    let bytes = hot["bytes"].as_u64().unwrap();
    assert!((8..100).contains(&bytes), "{json}");
}
