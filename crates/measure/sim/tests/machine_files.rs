//! A fault in a machine file is named by file, line, key and what is allowed.

use locklab_sim::{FigureKey, Machine, Origin};

const GOOD: &str = include_str!("../../../../machines/xeon-8380-2s.toml");

fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test is out of date: {from}");
    Machine::parse("mine.toml", &GOOD.replacen(from, to, 1))
        .unwrap_err()
        .to_string()
}

#[test]
fn messages() {
    let cases = [
        ("cores = 40", "cores = -4"),
        ("cores = 40", "cores = 2.5"),
        ("cores = 40", "cores = \"many\""),
        ("cores = 40\n", ""),
        ("cores = 40", "cores = 400"),
        ("cores = 40", "kores = 40"),
        ("[topology]", "[topologie]"),
        ("arch = \"x86_64\"", "arch = \"sparc\""),
        ("name = \"xeon-8380-2s\"\n", ""),
        ("value = 140", "value = 0"),
        ("value = 140", "value = nan"),
        ("value = 140", "value = 170"),
        ("band = [120, 160]", "band = [120]"),
        ("cluster_ns = { value = 58", "cluster_ns = { value = 60"),
        (
            "clock_ghz = { value = 3.0, source = \"Intel Xeon 8380: all-core turbo 3.0 GHz\" }",
            "clock_ghz = 3.0",
        ),
        (
            "l1_cycles = { value = 5, source",
            "l1_cycles = { value = 5, reason",
        ),
        (
            "l1_cycles = { value = 5, source",
            "l1_cycles = { value = 50, source",
        ),
        ("value = \"fifo\"", "value = \"fair\""),
        ("benchmark = \"ping-pong\"", "benchmark = \"pong\""),
        ("distance = \"cluster\"", "threads = 2"),
        ("ns = 50.3\n", ""),
        (
            "chose = \"transfer.cluster_ns\"",
            "chose = \"transfer.cluster\"",
        ),
        ("[[check]]", "[check]"),
        ("[core]", "[core"),
    ];
    let mut text = String::new();
    for (from, to) in cases {
        text += &format!("{to:?}\n    {}\n", error(from, to));
    }
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/machine-errors.txt"
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap());
}

#[test]
fn an_unknown_machine_and_a_missing_file() {
    let unknown = Machine::named("cray").unwrap_err().to_string();
    assert!(
        unknown.starts_with("there is no machine called `cray`; there are amd64-8,"),
        "{unknown}"
    );
    let missing = Machine::named("no/such.toml").unwrap_err().to_string();
    assert!(
        missing.starts_with("cannot read the machine file no/such.toml"),
        "{missing}"
    );
}

#[test]
fn every_figure_has_an_origin() {
    let machine = Machine::parse("x", GOOD).unwrap();
    assert!(matches!(
        machine.figures[&FigureKey::CoreClockGhz].origin,
        Origin::Source(_)
    ));
    assert!(matches!(
        machine.figures[&FigureKey::DirectorySharedReadNs].origin,
        Origin::Assumption(_)
    ));
    assert!(machine.banded().count() > 3);
    assert!(
        machine
            .clone()
            .with(FigureKey::CorePauseCycles, -1.0)
            .is_err()
    );
    assert_eq!(
        machine
            .with(FigureKey::CorePauseCycles, 40.0)
            .unwrap()
            .get(FigureKey::CorePauseCycles),
        40.0
    );
}
