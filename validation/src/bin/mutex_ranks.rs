//! Compares simulated ranks of mutexes with measured ones on this machine, with more
//! threads than CPUs, and prints the table of results/mutexes.md: `cargo build --release
//! -p locklab`, then `cargo run --release -p locklab-validation --bin mutex_ranks --
//! [--locklab FILE] [--seconds N] [--threads LIST]`, on an idle machine.
//!
//! The model is fitted to single cache lines and futex calls of this machine by `locklab
//! machine fit`, never to a lock. A hypervisor moves virtual CPUs, which changes how far
//! apart they are by a factor of ten, so the model is fitted before and after what is
//! measured, and a part in which the two differ is measured again. Rates that a comparison
//! would call equal share a rank; the coefficient without that is printed too. It ends with 1
//! if a rank correlation is below 0.9.

use locklab_host::environment::Environment;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Mutexes that sleep, that spin first, and that only spin.
const LOCKS: [&str; 8] = [
    "pthread",
    "pthread-adaptive",
    "std",
    "parking_lot",
    "futex",
    "futex-adaptive",
    "ttas",
    "ticket",
];
/// The rank correlation that is asked for.
const ASKED: f64 = 0.9;
/// Rates that differ by less are equal, as in a comparison without `--delta`.
const EQUAL: f64 = 0.01;
/// By what factor the time of a line between CPUs may change while a part is measured.
const STILL: f64 = 1.25;
/// How often a part is measured at most.
const ATTEMPTS: u32 = 12;
const LENGTHS: [&str; 4] = ["--critical", "1", "--non-critical", "32"];

/// Operations per second of the locks, in their order, at a number of threads.
struct Point {
    threads: u64,
    rates: Vec<f64>,
}

fn main() -> Result<ExitCode, String> {
    let (mut locklab, mut seconds, mut threads) = (
        "target/release/locklab".to_owned(),
        15_u32,
        "4,8".to_owned(),
    );
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--locklab" => locklab = value,
            "--seconds" => {
                seconds = value
                    .parse()
                    .map_err(|_| format!("'{value}' is no number of seconds"))?;
            }
            "--threads" => threads = value,
            _ => return Err(format!("there is no option {word}")),
        }
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let asked = ["--threads", &threads];
    let seconds = seconds.to_string();
    let (model, measured) = (1..=ATTEMPTS)
        .find_map(|attempt| {
            let fit = |when: &str| fitted(&locklab, &folder.path().join(when));
            let part = || -> Result<_, String> {
                let (model, before) = fit(&format!("before-{attempt}.toml"))?;
                let measured = points(&locklab, &asked, &["--time", &seconds])?;
                let (_, after) = fit(&format!("after-{attempt}.toml"))?;
                eprintln!("a line takes {before:.0} ns before and {after:.0} ns after");
                let still = before.max(after) <= STILL * before.min(after);
                Ok(still.then_some((model, measured)))
            };
            part().transpose()
        })
        .ok_or("the CPUs were moved in every attempt")??;
    let simulated = points(&locklab, &asked, &["--on", &model])?;
    println!("{}\n", Environment::read().name());
    let mut all_agree = true;
    for (measured, simulated) in measured.iter().zip(&simulated) {
        let of = |equal| spearman(&measured.rates, &simulated.rates, equal);
        let correlation = of(EQUAL);
        all_agree &= correlation >= ASKED;
        println!(
            "{} threads, Spearman {correlation:.2} ({ASKED} asked; {:.2} if no rates are equal)\n",
            measured.threads,
            of(0.0)
        );
        println!("| lock | measured, 1/s | simulated, 1/s | factor |\n| --- | --- | --- | --- |");
        for (lock, (here, model)) in LOCKS
            .iter()
            .zip(measured.rates.iter().zip(&simulated.rates))
        {
            println!(
                "| `{lock}` | {here:.3e} | {model:.3e} | {:.2} |",
                model / here
            );
        }
        println!();
    }
    Ok(match all_agree {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn run(locklab: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(locklab)
        .args(words)
        .output()
        .map_err(|e| format!("{locklab} cannot be run: {e}; build it, or give --locklab FILE"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("locklab {}: {said}", words.join(" "))),
    }
}

/// Fits a model of this machine. Returns its path, and the time of a line between its CPUs, ns.
fn fitted(locklab: &str, path: &Path) -> Result<(String, f64), String> {
    let model = path.display().to_string();
    run(locklab, &["machine", "fit", &model])?;
    let text = std::fs::read_to_string(path).map_err(|e| format!("{model}: {e}"))?;
    let file: toml::Table = text.parse().map_err(|e| format!("{model}: {e}"))?;
    let figure = &file["transfer"]["cluster_ns"]["value"];
    let ns = figure
        .as_float()
        .ok_or_else(|| format!("{model} has no time of a line"))?;
    Ok((model, ns))
}

/// Returns the points of a ranking of all locks.
fn points(locklab: &str, threads: &[&str], how: &[&str]) -> Result<Vec<Point>, String> {
    let mut words = vec!["rank"];
    words.extend(LOCKS);
    words.extend(LENGTHS);
    words.extend(threads);
    words.extend(how);
    words.extend(["--json", "--quiet", "--store", ":memory:"]);
    let json: Value = serde_json::from_str(&run(locklab, &words)?).map_err(|e| e.to_string())?;
    let points = json["points"]
        .as_array()
        .ok_or("a ranking without points")?;
    points.iter().map(point).collect()
}

fn point(point: &Value) -> Result<Point, String> {
    let threads = point["threads"].as_u64().ok_or("a point without threads")?;
    let locks = point["metrics"][0]["locks"]
        .as_array()
        .ok_or("a point without locks")?;
    let rate = |name: &&str| {
        let found = locks.iter().find(|lock| lock["lock"] == **name);
        found
            .and_then(|lock| lock["value"].as_f64())
            .ok_or_else(|| format!("{name} has no rate with {threads} threads"))
    };
    Ok(Point {
        threads,
        rates: LOCKS.iter().map(rate).collect::<Result<_, _>>()?,
    })
}

/// Returns Spearman's rank correlation; equal values have their mean rank.
fn spearman(a: &[f64], b: &[f64], equal: f64) -> f64 {
    let (a, b) = (ranks(a, equal), ranks(b, equal));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        let both = x.iter().zip(y);
        both.map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Returns the rank of each value. Those in a row, each of which is within `equal` of the next,
/// share one.
fn ranks(values: &[f64], equal: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for group in order.chunk_by(|low, high| values[*high] <= values[*low] * (1.0 + equal)) {
        for at in group {
            ranks[*at] = before as f64 + f64::midpoint(group.len() as f64, 1.0);
        }
        before += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_correlation_is_of_orders_only() {
        let of = |a: &[f64], b: &[f64]| spearman(a, b, 0.0);
        assert!((of(&[1.0, 2.0, 3.0], &[10.0, 20.0, 900.0]) - 1.0).abs() < 1e-12);
        assert!((of(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(ranks(&[5.0, 1.0, 5.0], 0.0), [2.5, 1.0, 2.5]);
        assert_eq!(ranks(&[5.1, 1.0, 5.0, 4.9], 0.0), [4.0, 1.0, 3.0, 2.0]);
        assert_eq!(ranks(&[5.1, 1.0, 5.0, 4.9], 0.03), [3.0, 1.0, 3.0, 3.0]);
    }
}
