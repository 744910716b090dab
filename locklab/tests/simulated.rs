//! Tests what the simulator's commands print: the same seed gives the same figures on
//! every machine, so whole reports are golden files.

use crate::common::golden::golden;
use assert_cmd::Command;

fn locklab(line: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(line.split_whitespace());
    command.arg("--quiet");
    if line.starts_with("matrix") {
        command.args(["--store", ":memory:"]);
    }
    command
}

fn printed(line: &str) -> String {
    let out = locklab(line).assert().success().stderr("");
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 72).collect();
    assert!(wide.is_empty(), "{wide:?}");
    text
}

#[test]
fn a_matrix_says_that_it_is_simulated_and_on_what() {
    let text = printed(
        "matrix mplock-ticket mplock-anderson --on amd64-8 --threads 1,8 --critical 1 \
         --non-critical 1 --pairs 8",
    );
    assert!(
        text.contains("simulation: the modelled machine amd64-8"),
        "{text}"
    );
    golden("simulated_matrix.txt", &text);
}

#[test]
fn a_matrix_of_a_virtual_machine_with_too_many_cpus() {
    let text = printed(
        "matrix virt-spin qspinlock-pv --on xeon-8380-vm --vcpus 12 --set physical=8 --threads 12 \
         --critical 4 --non-critical 32 --pairs 8",
    );
    golden("simulated_vcpus.txt", &text);
}

#[test]
fn a_reproduction_prints_ours_beside_theirs() {
    golden("reproduce.txt", &printed("reproduce mplock-anderson"));
}

#[test]
fn the_band_names_what_was_changed() {
    let text = printed(
        "matrix mplock-ticket mplock-anderson --on amd64-8 --threads 8 --critical 1 \
         --non-critical 1 --pairs 8 --band",
    );
    let band = text
        .split("Which assumption matters:")
        .nth(1)
        .expect("a band");
    golden("simulated_band.txt", band);
}

#[test]
fn the_length_of_a_run_is_reported_and_options_of_the_other_kind_are_refused() {
    const MATRIX: &str = "matrix ticket mcs --on flat-16 --threads 2 --critical 1 \
                          --non-critical 1 --pairs 1";
    let text = printed(&format!("{MATRIX} --set acquisitions=500"));
    assert!(text.contains("500 acquisitions, after a warm-up"), "{text}");
    let json = locklab(&format!("{MATRIX} --set acquisitions=500 --json")).assert();
    let json = String::from_utf8_lossy(&json.success().get_output().stdout).into_owned();
    assert!(json.contains("500 acquisitions, after a warm-up"), "{json}");
    assert!(!json.contains("50 ms"), "{json}");
    for (line, words) in [
        ("--on flat-16 --time 5", "--time is for this machine"),
        (
            "--on flat-16 --set slice_us=100",
            "--set slice_us is for this machine",
        ),
        ("--on flat-16 --pin 0", "--pin is for this machine"),
        (
            "--set acquisitions=5",
            "--set acquisitions is for simulated machines",
        ),
        ("--band", "--band is for simulated machines"),
    ] {
        let refused = locklab(&format!("matrix ticket mcs {line}"));
        let refused = { refused }.assert().code(2).stdout("");
        let text = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(text.contains(words), "{line}: {text}");
    }
}

/// Also before it runs: what so few pairs cannot show.
#[test]
fn too_few_pairs_for_a_verdict_are_reported_first() {
    let mut command = Command::cargo_bin("locklab").unwrap();
    let line = "matrix ticket mcs --on flat-16 --threads 2 --critical 1 --non-critical 1 --pairs 1";
    command
        .args(line.split_whitespace())
        .args(["--store", ":memory:"]);
    let ran = command.assert().success();
    let text = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert!(text.starts_with("1 cell x 1 pair."), "{text}");
    assert!(
        text.contains("Too few: with 1 pair no verdict on 1 comparison"),
        "{text}"
    );
}

/// The recipe of a machine: a copy of a file, under a name and with figures of
/// its own, is a machine wherever `--on` is.
#[test]
fn a_copied_machine_file_is_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let copied = concat!(env!("CARGO_MANIFEST_DIR"), "/../machines/amd64-8.toml");
    let text = std::fs::read_to_string(copied).unwrap();
    std::fs::write(&file, text.replace("name = \"amd64-8\"", "name = \"mine\"")).unwrap();
    let file = file.to_str().unwrap();
    let shown = printed(&format!("machine show {file}"));
    assert!(shown.starts_with("mine: "), "{shown}");
    let rest = "ticket mcs --threads 8 --critical 1 --non-critical 1 --pairs 8 --on";
    let [copy, original] = [file, "amd64-8"].map(|on| printed(&format!("matrix {rest} {on}")));
    let cell = |text: &str| {
        let row = text.lines().find(|line| line.starts_with("     8 |"));
        row.unwrap_or_default().to_owned()
    };
    assert!(copy.contains("the modelled machine mine"), "{copy}");
    assert_eq!(cell(&copy), cell(&original));
    assert!(!cell(&copy).is_empty(), "{copy}");
}
