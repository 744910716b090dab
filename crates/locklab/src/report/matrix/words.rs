//! What a report of a matrix says in sentences, for text and HTML alike.
//!
//! Sentences are made of the verdicts and claim no more than these.

use super::{Report, axis, label};
use crate::matrix::{Provenance, Spec, Unit, Work};
use crate::report::{VERSION, number, region};
use crate::verdicts::JudgedCell;
use locklab_judge::{Family, Verdict, aa_check};

/// Regions named one by one; the rest are counted.
const MOST_REGIONS: usize = 3;

pub(super) fn title(spec: &Spec) -> String {
    if spec.aa {
        format!("{} against itself (A/A)", spec.baseline)
    } else {
        format!(
            "{} (experiment) against {} (baseline)",
            spec.experiment, spec.baseline
        )
    }
}

/// Where every figure comes from.
pub(super) fn source(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Hardware(name) => format!("hardware: measured on {name}"),
        Provenance::Simulation(name) => {
            format!("simulation: the modelled machine {name}; no figure was measured")
        }
        Provenance::Model(name) => {
            format!("model: computed by {name} from a real execution; not measured")
        }
    }
}

/// One sentence over the whole, for each placement class.
pub(super) fn result(report: &Report) -> Vec<String> {
    let groups = report.verdicts.by_class();
    let several = groups.len() > 1;
    let mut sentences: Vec<String> = groups
        .iter()
        .map(|(class, cells)| {
            let sentence = sentence(report, cells);
            match class {
                Some(class) if several => format!("CPUs placed as \"{class}\": {sentence}"),
                _ => sentence,
            }
        })
        .collect();
    if report.measured.spec.aa {
        sentences.push(aa(report));
    }
    sentences
}

fn sentence(report: &Report, cells: &[&JudgedCell]) -> String {
    if cells.is_empty() {
        return "No cell was measured, so nothing is claimed.".into();
    }
    let spec = &report.measured.spec;
    let of = |wanted: &str| -> Vec<&JudgedCell> {
        let is = |c: &&&JudgedCell| c.judged.verdict.word() == wanted;
        cells.iter().filter(is).copied().collect()
    };
    let mut parts = Vec::new();
    for word in ["better", "worse", "flat", "unclear", "invalid"] {
        let found = of(word);
        if found.is_empty() {
            // Better and worse are what a reader came for.
            if word == "better" || word == "worse" {
                parts.push(format!("{word} in none"));
            }
            continue;
        }
        let mut part = match word {
            "flat" => format!(
                "shown flat within {} % in {}",
                number::percent(100.0 * report.verdicts.settings.delta),
                found.len()
            ),
            _ => format!("{word} in {}", found.len()),
        };
        if matches!(word, "better" | "worse") {
            part.push_str(&format!(", by {}", extent(&found)));
        }
        if word == "flat" {
            let nonzero = |c: &&&JudgedCell| c.judged.verdict == Verdict::Flat { nonzero: true };
            match found.iter().filter(nonzero).count() {
                0 => {}
                n => part.push_str(&format!(", {n} of them small but not zero")),
            }
        }
        if found.len() < cells.len() {
            part.push_str(&format!(" ({})", regions(report, cells, &found)));
        }
        parts.push(part);
    }
    let subject = if spec.aa {
        format!("{} against itself", spec.baseline)
    } else {
        format!("{} against {}", spec.experiment, spec.baseline)
    };
    format!(
        "In {}, {subject} is {}.",
        number::count(cells.len(), "cell"),
        parts.join("; ")
    )
}

/// "12 to 95 %", or "a factor of 1.12 to 24.0" where percent mislead.
fn extent(cells: &[&JudgedCell]) -> String {
    let ratios: Vec<f64> = cells
        .iter()
        .filter_map(|c| Some(c.ratio()?.value))
        .collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    let span = |a: String, b: String| {
        if a == b { a } else { format!("{a} to {b}") }
    };
    if high >= 3.0 {
        let factors = span(number::ratio(low), number::ratio(high));
        return format!("a factor of {factors}");
    }
    let percent = |r: f64| number::percent((100.0 * (r - 1.0)).abs());
    let (near, far) = if high > 1.0 { (low, high) } else { (high, low) };
    format!("{} %", span(percent(near), percent(far)))
}

/// Where some of the cells are, in few words.
fn regions(report: &Report, cells: &[&JudgedCell], found: &[&JudgedCell]) -> String {
    let threads = axis(cells, |c| c.point.threads as u64);
    let critical = axis(cells, |c| c.point.critical);
    let non_critical = axis(cells, |c| c.point.non_critical);
    let place = |c: &&JudgedCell| {
        let on = |axis: &[u64], n: u64| axis.binary_search(&n).unwrap_or(0);
        [
            on(&threads, c.point.threads as u64),
            on(&critical, c.point.critical),
            on(&non_critical, c.point.non_critical),
        ]
    };
    let places: Vec<_> = found.iter().map(place).collect();
    let lengths = [threads.len(), critical.len(), non_critical.len()];
    let Some(covered) = region::cover(&places, lengths) else {
        return "too many cells to group; see the tables".into();
    };
    // A scatter of single cells is not a region worth a name.
    let named = covered
        .iter()
        .take(MOST_REGIONS)
        .take_while(|r| r.cells > 1 || covered.len() <= MOST_REGIONS);
    let mut words: Vec<String> = named
        .clone()
        .map(|r| {
            let span = |axis: &[u64], of: usize| {
                (axis.len() > 1)
                    .then(|| {
                        let whole = r.low[of] == 0 && r.high[of] + 1 == axis.len();
                        (!whole).then(|| (axis[r.low[of]], axis[r.high[of]]))
                    })
                    .flatten()
            };
            let mut words = Vec::new();
            if let Some((low, high)) = span(&threads, 0) {
                let noun = if report.measured.spec.processes {
                    "process"
                } else {
                    "thread"
                };
                words.push(match (low, high) {
                    (1, 1) => format!("1 {noun}"),
                    _ if report.measured.spec.processes => {
                        format!("{} processes", range(low, high))
                    }
                    _ => format!("{} threads", range(low, high)),
                });
            }
            if let Some((low, high)) = span(&critical, 1) {
                words.push(format!("critical length {}", range(low, high)));
            }
            if let Some((low, high)) = span(&non_critical, 2) {
                words.push(format!("non-critical length {}", range(low, high)));
            }
            if words.is_empty() {
                "everywhere".into()
            } else {
                words.join(", ")
            }
        })
        .collect();
    let rest: usize = covered.iter().skip(words.len()).map(|r| r.cells).sum();
    if rest > 0 {
        words.push(if words.is_empty() {
            "scattered".into()
        } else {
            format!("{} elsewhere", number::count(rest, "cell"))
        });
    }
    words.join("; ")
}

fn range(low: u64, high: u64) -> String {
    if low == high {
        label(low)
    } else {
        format!("{} to {}", label(low), label(high))
    }
}

/// Whether baseline against baseline found more than chance allows.
fn aa(report: &Report) -> String {
    let judged: Vec<_> = report
        .verdicts
        .cells
        .iter()
        .map(|c| c.judged.clone())
        .collect();
    let check = aa_check(&judged, report.verdicts.settings.family);
    if check.judged == 0 {
        return "A/A: no cell could be judged, which is no pass.".into();
    }
    format!(
        "A/A {}: of {}, {} called better or worse (allowed {}), and p < 0.05 before correction \
         in {} (allowed {}).",
        if check.passed() { "passed" } else { "FAILED" },
        number::count(check.judged, "cell"),
        check.called,
        check.calls_allowed,
        check.below_alpha,
        check.below_alpha_allowed
    )
}

/// How the runs were made.
pub(super) fn set_up(report: &Report) -> Vec<(String, String)> {
    let spec = &report.measured.spec;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let runners = if spec.processes {
        "processes"
    } else {
        "threads"
    };
    let mut facts = vec![
        fact(
            "Workload",
            format!(
                "loop {{ lock; critical; unlock; non-critical }} in {runners}; {}",
                match (spec.work, spec.unit) {
                    (Work::Fstat, _) => "critical is one fstat(2) on a file of its own".to_owned(),
                    (Work::Units, Unit::Units) =>
                        "length n is n + 1 units of about 15 cycles on Ice Lake".to_owned(),
                    (Work::Units, Unit::Nanoseconds) =>
                        "lengths in ns, by calibration at the start".to_owned(),
                }
            ),
        ),
        fact(
            "Runs",
            match report.measured.provenance {
                // Simulated time is not what ends a simulated run.
                Provenance::Simulation(_) => format!(
                    "{} a cell, both runs of a pair with the same seed",
                    number::count(spec.pairs as usize, "pair")
                ),
                _ => format!(
                    "{} a cell, a coin for the order; {} a run after {} of warm-up",
                    number::count(spec.pairs as usize, "pair"),
                    duration(spec.run),
                    duration(spec.warm_up)
                ),
            },
        ),
        fact("Seed", spec.seed.to_string()),
        fact("Tool", VERSION.into()),
    ];
    for (name, value) in [
        ("Date", &report.context.date),
        ("Command", &report.context.command),
    ] {
        if !value.is_empty() {
            facts.push(fact(name, value.clone()));
        }
    }
    facts
}

fn duration(d: std::time::Duration) -> String {
    match d.as_secs_f64() {
        s if s >= 1.0 => format!("{s} s"),
        s => format!("{} ms", (s * 1e6).round() / 1e3),
    }
}

/// How the verdicts were reached.
pub(super) fn method(report: &Report) -> String {
    let delta = number::percent(100.0 * report.verdicts.settings.delta);
    let family = match report.verdicts.settings.family {
        Family::FalseDiscovery => {
            "Of the cells called better or worse, one in twenty may be wrong \
             (Benjamini-Hochberg at 5 %): trust regions, and measure a single cell again before \
             believing it."
        }
        Family::Holm => "The chance that any cell is wrongly called is 5 % (Holm).",
        Family::Each => "No correction for many cells: of twenty equal ones, one will be called.",
    };
    format!(
        "A cell is the Hodges-Lehmann ratio over its pairs, judged by the exact signed-rank test; \
         flat means that the 90 % interval lies within {delta} %. {family}"
    )
}
