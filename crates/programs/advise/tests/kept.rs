//! Parts of recordings of real programs (`results/recordings`): under its own lock each is
//! simulated at about its recorded rate, on the machine that was fitted when it was recorded.

mod common;

use flate2::read::GzDecoder;
use locklab_sim::Machine;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Returns the simulated rate of a program by its recorded one.
fn ratio(name: &str) -> f64 {
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../results/recordings/programs.data"
    );
    let of = |ending: &str| -> PathBuf { Path::new(kept).join(format!("{name}.{ending}")) };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part.trace");
    let mut packed = GzDecoder::new(File::open(of("trace.gz")).unwrap());
    std::io::copy(&mut packed, &mut File::create(&file).unwrap()).unwrap();
    let here = Machine::named(of("toml").to_str().unwrap()).unwrap();
    let answer = common::answer(&file, Some(here));
    answer["gate"]["ratio"].as_f64().unwrap()
}

#[test]
fn a_program_whose_waiters_sleep_gets_on_as_it_was_recorded() {
    for (name, off) in [("hot-long", 0.15), ("stress-ng", 0.15), ("sqlite", 0.2)] {
        let ratio = ratio(name);
        assert!((ratio - 1.0).abs() < off, "{name}: {ratio}");
    }
}
