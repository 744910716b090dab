//! The table of what was kept, and how well it was predicted.

use serde_json::Value;
use std::fmt::Write as _;

/// Says why there is no gate where no lock can gain.
pub(crate) const NOTHING: &str = "nothing to gain";
/// Holds what differs less from 1 than this has no direction.
pub(crate) const FLAT: f64 = 0.05;

/// Holds what was predicted and measured of a lock under a program: ratios to glibc's.
#[derive(Clone, Copy)]
struct Pair {
    predicted: f64,
    measured: f64,
}

/// Says how well ratios were predicted of all locks under all programs whose gate passes.
#[derive(Default)]
struct Score {
    pairs: Vec<Pair>,
    /// Measured so widely that they may be better and worse: there is no truth to be
    /// right about.
    undecided: usize,
    /// Where nothing was to gain: an upper bound of every lock, and no prediction of
    /// one.
    bounds: Bounds,
}

/// Says how often no lock gained where that was predicted.
#[derive(Default)]
struct Bounds {
    all: usize,
    kept: usize,
    /// Says how many locks had glibc's own rate: as many would be right if the bound were
    /// read as a prediction of each lock.
    level: usize,
}

/// Returns whether a gate found that no lock can gain.
fn nothing_to_gain(gate: &Value) -> bool {
    gate["why"] == NOTHING
}

/// A ratio as predicted: that of a lock, or the bound of all locks.
fn predicted(gate: &Value, of: &Value) -> String {
    match (nothing_to_gain(gate), of.is_null()) {
        (true, false) => "at most 1".to_owned(),
        _ => ratio(of),
    }
}

/// The table of the rows that are kept, and its scores.
pub(crate) fn table(kept: &Value) -> String {
    let mut text = "| program, round trip | gate | lock | simulated | replayed | measured |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let (mut simulated, mut replayed) = (Score::default(), Score::default());
    let mut advised = Vec::new();
    for (program, row) in kept.as_object().into_iter().flatten() {
        if let Some(why) = row["why"].as_str() {
            let _ = writeln!(text, "| {program} | {why} | | | | |");
            continue;
        }
        let gates = [&row["simulated_gate"], &row["replayed_gate"]];
        for (number, lock) in row["locks"].as_array().into_iter().flatten().enumerate() {
            let name = match number {
                0 => format!(
                    "{program}: {}, {}",
                    row["about"].as_str().unwrap_or_default(),
                    trips(row)
                ),
                _ => String::new(),
            };
            let gate = match number {
                0 => format!("simulated {}, replayed {}", gate(gates[0]), gate(gates[1])),
                _ => String::new(),
            };
            let measured = &lock["measured"];
            let _ = writeln!(
                text,
                "| {name} | {gate} | {} | {} | {} | {} |",
                lock["lock"].as_str().unwrap_or_default(),
                predicted(gates[0], &lock["simulated"]),
                predicted(gates[1], &lock["replayed"]),
                ratio(measured)
            );
            let Some(measured_ratio) = measured["ratio"].as_f64() else {
                continue;
            };
            let at = |key: &str| measured[key].as_f64().unwrap_or(measured_ratio);
            let undecided = at("low") < 1.0 - FLAT && at("high") > 1.0 + FLAT;
            for (which, gate, score) in [
                ("simulated", gates[0], &mut simulated),
                ("replayed", gates[1], &mut replayed),
            ] {
                let predicted = lock[which]["ratio"].as_f64();
                if let Some(predicted) = predicted.filter(|_| gate["passes"] == true) {
                    match undecided {
                        true => score.undecided += 1,
                        false if nothing_to_gain(gate) => {
                            score.bounds.all += 1;
                            score.bounds.kept += usize::from(direction(measured_ratio) < 1);
                            score.bounds.level += usize::from(direction(measured_ratio) == 0);
                        }
                        false => score.pairs.push(Pair {
                            predicted,
                            measured: measured_ratio,
                        }),
                    }
                }
            }
            if lock["simulated"]["class"] == "helps" && gates[0]["passes"] == true {
                advised.push((
                    lock["simulated"]["low"].as_f64().unwrap_or(1.0),
                    measured_ratio,
                ));
            }
        }
    }
    text.push('\n');
    for (which, score) in [("Simulated", simulated), ("Replayed", replayed)] {
        let _ = writeln!(text, "{which}: {}", score.sentence());
    }
    let worse = |&&(_, measured): &&(f64, f64)| measured < 1.0 - FLAT;
    let below = |&&(low, measured): &&(f64, f64)| measured < low;
    let _ = writeln!(
        text,
        "Called better by advise: {}, of which {} measured below the band, and {} worse than glibc's.",
        advised.len(),
        advised.iter().filter(below).count(),
        advised.iter().filter(worse).count()
    );
    text
}

impl Score {
    fn sentence(&self) -> String {
        let pairs = &self.pairs;
        let right = pairs.iter().filter(|pair| pair.right()).count();
        // What differs from glibc's by less than counts is a tie with it.
        let level: Vec<Pair> = pairs.iter().map(Pair::level).collect();
        let ranks = match [pairs, &level].map(|pairs| correlation(pairs)) {
            [Some(all), Some(level)] => format!(
                "rank correlation over all of them {all:.2}, and {level:.2} where what is within 5 % \
                 of glibc's counts as equal to it"
            ),
            [Some(all), None] => format!("rank correlation over all of them {all:.2}"),
            [None, _] => "no rank correlation, because none differ".to_owned(),
        };
        let directions = match pairs.len() {
            0 => "none passes its gate with a direction".to_owned(),
            all => {
                format!("of {all} that pass their gate the direction is right in {right}; {ranks}")
            }
        };
        let bounds = match self.bounds.all {
            0 => String::new(),
            all => format!(
                " Where nothing was to gain, no lock gained in {} of {all}, and {} had glibc's rate.",
                self.bounds.kept, self.bounds.level
            ),
        };
        let undecided = match self.undecided {
            0 => String::new(),
            some => format!(" {some} more were measured too widely to have a direction."),
        };
        format!("{directions}.{bounds}{undecided}")
    }
}

fn gate(gate: &Value) -> String {
    match gate["ratio"].as_f64() {
        Some(ratio) if gate["passes"] == true => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.2} (shut)"),
        None => gate["why"]
            .as_str()
            .unwrap_or("-")
            .replace("locklab rank: ", ""),
    }
}

/// A ratio with its interval, if it has one.
fn ratio(of: &Value) -> String {
    if let Some(why) = of["why"].as_str() {
        return why.to_owned();
    }
    match (
        of["ratio"].as_f64(),
        of["low"].as_f64(),
        of["high"].as_f64(),
    ) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        (Some(ratio), ..) => format!("{ratio:.2}"),
        _ => "-".into(),
    }
}

/// The round trips between the CPUs while the row was made, and what disturbed it.
fn trips(row: &Value) -> String {
    let spans = row["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let trip = |of: &Value| of["round_trip"].as_f64().filter(|ns| *ns > 0.0);
    let all: Vec<f64> = spans.iter().chain([row]).filter_map(trip).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let disturbed = |of: &&Value| of["stayed"] == false || of["others"].as_f64() > Some(0.1);
    match (all.is_empty(), spans.iter().filter(disturbed).count()) {
        (true, _) => "round trips unknown".into(),
        (false, 0) => format!("{low:.0} to {high:.0} ns"),
        (false, some) => format!(
            "{low:.0} to {high:.0} ns, {some} of {} parts disturbed",
            spans.len()
        ),
    }
}

impl Pair {
    /// With a tie where there is no direction.
    fn level(&self) -> Self {
        let level = |ratio| match direction(ratio) {
            0 => 1.0,
            _ => ratio,
        };
        Self {
            predicted: level(self.predicted),
            measured: level(self.measured),
        }
    }

    fn right(&self) -> bool {
        direction(self.predicted) == direction(self.measured)
    }
}

/// Better, worse, or neither.
pub(crate) fn direction(ratio: f64) -> i8 {
    match ratio {
        ratio if ratio > 1.0 + FLAT => 1,
        ratio if ratio < 1.0 - FLAT => -1,
        _ => 0,
    }
}

/// Spearman's rank correlation; none if all that was predicted, or measured, is equal.
fn correlation(pairs: &[Pair]) -> Option<f64> {
    let predicted = ranks(pairs.iter().map(|pair| pair.predicted).collect());
    let measured = ranks(pairs.iter().map(|pair| pair.measured).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = sum(&predicted, &predicted) * sum(&measured, &measured);
    (spread > 0.0).then(|| sum(&predicted, &measured) / spread.sqrt())
}

fn ranks(values: Vec<f64>) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let same = |value: f64| values.iter().filter(|&&other| other == value).count() as f64;
    values
        .iter()
        .map(|&value| below(value) + (same(value) - 1.0) / 2.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(pairs: &[(f64, f64)]) -> Score {
        let pair = |&(predicted, measured): &(f64, f64)| Pair {
            predicted,
            measured,
        };
        Score {
            pairs: pairs.iter().map(pair).collect(),
            ..Score::default()
        }
    }

    #[test]
    fn what_cannot_be_said_is_no_number() {
        let none = score(&[]).sentence();
        assert_eq!(none, "none passes its gate with a direction.");
        let one = score(&[(1.2, 1.3)]).sentence();
        assert!(
            one.ends_with("right in 1; no rank correlation, because none differ."),
            "{one}"
        );
        // They differ by less than counts.
        let level = score(&[(1.01, 1.02), (1.02, 1.03)]).sentence();
        assert!(
            level.ends_with("rank correlation over all of them 1.00."),
            "{level}"
        );
        let both = score(&[(1.2, 1.3), (0.5, 0.6), (0.4, 0.7)]).sentence();
        assert!(both.contains("all of them 0.50, and 0.50 where"), "{both}");
    }
}
