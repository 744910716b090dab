//! The null test of `judge`: of files that one program wrote about the same code, 1,000
//! random families are drawn, and those in which any benchmark is called better or worse are counted.
//!
//!     cargo run --release -p locklab-samples --example null -- FOLDER

use locklab_judge::{Settings, Verdict};
use locklab_samples::{JudgedSamples, Judging, Matching, SampleFile, compare, judge, read};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use std::error::Error;

const FAMILIES: u32 = 1000;

fn judged(files: &[SampleFile], noise: Option<f64>) -> Result<JudgedSamples, Box<dyn Error>> {
    let (baseline, experiment) = files.split_at(files.len() / 2);
    let [baseline, experiment] = [baseline, experiment].map(|f| SampleFile::joined(f.to_vec()));
    let judging = Judging {
        settings: Settings::default(),
        drift: 0.03,
        apart: None,
        process_noise: noise,
    };
    Ok(judge(
        compare(baseline, experiment, Matching::default()),
        judging,
    )?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("give a folder of files")?;
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .flatten()
        .map(|e| e.path())
        .collect();
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let file = read(&std::fs::read(path)?, "benchmark", None);
        files.push(file.map_err(|e| format!("{} {e}", path.display()))?);
    }
    let spread = |files: &[SampleFile]| -> Result<f64, Box<dyn Error>> {
        let all = judged(files, None)?;
        let spreads = all.primaries().filter_map(|row| row.of.between_processes);
        Ok(spreads.fold(0.0, f64::max))
    };
    let percent = 100.0 * spread(&files)?;
    println!(
        "{} files, processes differ by up to {percent:.1} %",
        files.len()
    );
    // With no noise of processes at all, with none given, with twice what ten other files
    // differ by, and with several files a side.
    for (of_a_side, noise) in [
        (1, "0"),
        (1, "not given"),
        (1, "twice that of ten others"),
        (5, "not given"),
        (10, "not given"),
    ] {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut called = 0;
        for _ in 0..FAMILIES {
            files.shuffle(&mut rng);
            let (drawn, others) = files.split_at(2 * of_a_side);
            let noise = match noise {
                "0" => Some(1e-9),
                "not given" => None,
                _ => Some(2.0 * spread(&others[..10])?),
            };
            let found = judged(drawn, noise)?;
            let is_call = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
            called += u32::from(found.primaries().any(|row| is_call(&row.judged.verdict)));
        }
        let percent = 100.0 * f64::from(called) / f64::from(FAMILIES);
        println!(
            "{of_a_side:>2} a side, process noise {noise}: {percent:.1} % of {FAMILIES} families called"
        );
    }
    Ok(())
}
