//! What the simulator's commands print: the same seed gives the same figures
//! on every machine, so whole reports are golden files.

#[path = "common/golden.rs"]
mod golden;

use assert_cmd::Command;
use golden::golden;

fn locklab(line: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(line.split_whitespace());
    command.args(["--quiet", "--store", ":memory:"]);
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
        "matrix virt-spin qspinlock-pv --on xeon-8380-vm --vcpus 12 --physical 8 --threads 12 \
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
