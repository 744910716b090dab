//! The null test on files that programs wrote about the same code: 1,000 random families are
//! drawn, and those in which any benchmark is called better or worse are counted.
//!
//!     NULL_FILES=FOLDER/files/PROGRAM cargo test --release -p locklab-samples --test files \
//!         same_code_by -- --ignored --nocapture

use locklab_judge::{Settings, Verdict};
use locklab_samples::{JudgedSamples, Judging, Matching, SampleFile, compare, judge, read};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

const FAMILIES: u32 = 1000;

fn judged(files: &[SampleFile], noise: Option<f64>) -> JudgedSamples {
    let (baseline, experiment) = files.split_at(files.len() / 2);
    let [baseline, experiment] = [baseline, experiment].map(|f| SampleFile::joined(f.to_vec()));
    let judging = Judging {
        settings: Settings::default(),
        drift: 0.03,
        apart: None,
        process_noise: noise,
    };
    judge(compare(baseline, experiment, Matching::default()), judging).unwrap()
}

fn spread(files: &[SampleFile]) -> f64 {
    let all = judged(files, None);
    let spreads = all.primaries().filter_map(|row| row.of.between_processes);
    spreads.fold(0.0, f64::max)
}

#[test]
#[ignore = "needs twenty files of crates/measure/samples/tests/null.sh, in NULL_FILES"]
fn the_same_code_by_a_real_program_is_called_in_no_more_families_than_5_percent() {
    let folder = std::env::var_os("NULL_FILES").expect("NULL_FILES is a folder of files");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let file = |path| read(&std::fs::read(path).unwrap(), "benchmark", None).unwrap();
    let mut files: Vec<SampleFile> = paths.iter().map(file).collect();
    let percent = 100.0 * spread(&files);
    println!(
        "{} files, processes differ by up to {percent:.1} %",
        files.len()
    );
    // With no noise of processes at all, with none given, with three times what ten other files
    // differ by, and with several files a side.
    for (of_a_side, noise) in [
        (1, "0"),
        (1, "not given"),
        (1, "three times that of ten others"),
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
                _ => Some(3.0 * spread(&others[..10])),
            };
            let is_call = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
            let found = judged(drawn, noise);
            called += u32::from(found.primaries().any(|row| is_call(&row.judged.verdict)));
        }
        let percent = 100.0 * f64::from(called) / f64::from(FAMILIES);
        println!("{of_a_side:>2} a side, process noise {noise}: {percent:.1} % of families called");
        assert!(noise == "0" || percent <= 5.0, "{percent} %");
    }
}
