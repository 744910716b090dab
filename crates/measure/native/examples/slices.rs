//! Two locks in a few cells, judged: the backend by itself, without store
//! and report. `cargo run --release -p locklab-native --example slices --
//! BASELINE EXPERIMENT [--time S] [--slice-us N] [--threads 1,2,4]
//! [--critical 0,8] [--non-critical 1,32] [--aa] [--seed N] [--pairs N]
//! [--repeat N] [--layout N] [--brief] [--record FILE]`

use locklab_harness::experiment::Design;
use locklab_harness::matrix::OPS;
use locklab_harness::runner::run_unrecorded;
use locklab_harness::verdicts::judge;
use locklab_judge::{Family, Verdict};
use locklab_native::{Native, Plan, Spec, pairs_for};
use locklab_workload::Cells;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let mut names = Vec::new();
    let mut spec = Spec {
        cells: Cells {
            threads: vec![1, 2, 4],
            critical: vec![0, 1, 2, 4, 8, 16, 32, 64, 128],
            non_critical: vec![1, 32],
            ..Cells::default()
        },
        ..Spec::new("", "")
    };
    let (mut aa, mut brief, mut seed, mut pairs, mut repeat) = (false, false, 1_u64, None, 1);
    let mut record = None;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        let list = |text: String| -> Result<Vec<u64>, String> {
            let number = |n: &str| n.parse().map_err(|_| format!("'{n}' is no number"));
            text.split(',').map(number).collect()
        };
        match word.as_str() {
            "--time" => spec.time = Duration::from_secs(list(value()?)?[0]),
            "--slice-us" => spec.slice = Some(Duration::from_micros(list(value()?)?[0])),
            "--threads" => {
                spec.cells.threads = list(value()?)?.iter().map(|n| *n as usize).collect()
            }
            "--critical" => spec.cells.critical = list(value()?)?,
            "--non-critical" => spec.cells.non_critical = list(value()?)?,
            "--pin" => spec.pin = Some(list(value()?)?.iter().map(|n| *n as usize).collect()),
            "--layout" => spec.layout = Some(list(value()?)?[0] as usize),
            "--seed" => seed = list(value()?)?[0],
            "--pairs" => pairs = Some(list(value()?)?[0] as u32),
            "--repeat" => repeat = list(value()?)?[0],
            "--latency" => spec.cells.latency = true,
            "--processes" => spec.processes = true,
            "--aa" => aa = true,
            "--record" => record = Some(value()?),
            "--brief" => brief = true,
            _ => names.push(word),
        }
    }
    spec.baseline = names.first().ok_or("name two locks")?.clone();
    spec.experiment = names.get(1).unwrap_or(&spec.baseline).clone();
    let native = Native::probe();
    for round in 0..repeat {
        let plan = Plan::new(spec.clone(), &native)?;
        let cells = plan.cells.len();
        let design = Design {
            pairs: pairs.unwrap_or(pairs_for(cells)),
            seed: seed + round,
            delta: 0.01,
            family: Family::FalseDiscovery,
            aa,
            retry: 0,
        };
        let interrupt = Arc::new(AtomicBool::new(false));
        let (mut slices, mut experiment) = native.backend(plan, design, Arc::clone(&interrupt))?;
        let started = Instant::now();
        let outcome = run_unrecorded(&mut slices, &mut experiment, &interrupt);
        let took = started.elapsed().as_secs_f64();
        if let Some(stop) = &outcome.stopped {
            println!("Not complete: {stop:?}");
        }
        show(&experiment, brief, took, outcome.repeated)?;
        if let Some(path) = &record {
            std::fs::write(path, recorded(&experiment)).map_err(|e| format!("{path}: {e}"))?;
        }
    }
    Ok(())
}

/// Returns the pairs of an experiment, in the form of crates/measure/harness/tests/recorded.
fn recorded(experiment: &locklab_harness::experiment::Experiment) -> String {
    let mut text = String::from("threads,critical,non_critical,baseline,experiment,round_trip\n");
    for cell in &experiment.cells {
        let [threads, critical, non_critical] = cell.key.place().unwrap_or_default();
        for pair in cell.pairs.iter().filter(|pair| pair.invalid().is_none()) {
            let [b, e] = pair.samples().map(|s| s.values[OPS]);
            let trip = pair
                .round_trip()
                .map_or_else(String::new, |ns| format!("{ns:.1}"));
            text += &format!("{threads},{critical},{non_critical},{b:.1},{e:.1},{trip}\n");
        }
    }
    text
}

fn show(
    experiment: &locklab_harness::experiment::Experiment,
    brief: bool,
    took: f64,
    repeated: u32,
) -> Result<(), String> {
    let verdicts = judge(experiment).map_err(|e| e.to_string())?;
    let mut decided = std::collections::BTreeMap::<bool, (usize, usize)>::new();
    let (mut called, mut widths) = (0, Vec::new());
    for judged in &verdicts.cells {
        let cell = &experiment.cells[judged.cell];
        let alone = cell.key.number("threads") == Some(1);
        let Some(verdict) = judged.verdict() else {
            continue;
        };
        let count = decided.entry(alone).or_default();
        count.1 += 1;
        let word = match verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Flat { .. } => "flat",
            Verdict::Unclear { .. } => "unclear",
            Verdict::Invalid(_) => "invalid",
        };
        count.0 += usize::from(!matches!(word, "unclear" | "invalid"));
        called += usize::from(matches!(word, "better" | "worse"));
        let width = judged
            .ratio()
            .map_or(f64::NAN, |r| 100.0 * (r.high - r.low));
        if alone {
            widths.push(width);
        }
        if !brief {
            let estimate = judged.primary().and_then(|m| m.judged.estimate);
            let sum = |name: &str| -> u64 {
                let pairs = cell.pairs.iter();
                pairs
                    .filter_map(|p| p.baseline.detail["slices"][name].as_u64())
                    .sum()
            };
            println!(
                "{:<12} {word:<8} {:>7.4} {:>7.4} {:>7.4}  {:>6.2} % wide, {:>3} pairs of {:>5} slices, {:>4} preempted {:>3} stolen, lag-1 {:>5.2}  {} {}",
                cell.key.to_string(),
                judged.ratio().map_or(f64::NAN, |r| r.value),
                judged.ratio().map_or(f64::NAN, |r| r.low),
                judged.ratio().map_or(f64::NAN, |r| r.high),
                width,
                judged.pairs,
                sum("kept"),
                sum("preempted"),
                sum("stolen"),
                estimate.and_then(|e| e.autocorrelation).unwrap_or(f64::NAN),
                judged.class.as_deref().unwrap_or("-"),
                cell.facts.first().map_or("", |f| f.1.as_str()),
            );
            if let Verdict::Invalid(reasons) = verdict {
                println!("    {reasons:?}");
            }
        }
    }
    for region in &verdicts.regions {
        let ratio = region
            .judged
            .ratio()
            .map_or([f64::NAN; 3], |r| [r.value, r.low, r.high]);
        let [value, low, high] = ratio;
        println!(
            "{:?}: {} {value:.4} ({low:.4} to {high:.4})",
            region.part,
            region.judged.verdict.word()
        );
    }
    println!("placements: p = {:?}", verdicts.places.p);
    widths.sort_by(f64::total_cmp);
    let share = |alone| decided.get(&alone).copied().unwrap_or_default();
    let ((a, b), (c, d)) = (share(true), share(false));
    println!(
        "{} / {}: decided {a} of {b} cells of one thread, {} of {} of all; {called} called; median width of one thread {:.2} %; {took:.1} s, {repeated} repeated",
        experiment.labels.experiment,
        experiment.labels.baseline,
        a + c,
        b + d,
        widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
    );
    Ok(())
}
