//! The three promises of an answer, held against what was measured: no change gains more than
//! the bound; what is said with nine in ten is right in nine of ten; a program that waits
//! gets a direction.
//!
//! Every case that breaks one is named, so that a total can be traced to its rows.

use crate::table::direction;
use serde_json::Value;
use std::fmt;

/// Of so many gains, one may be above the bound.
const OF_GAINS: usize = 33;
/// The part of what is said that has to be right.
const RIGHT: f64 = 0.9;
/// The share of its time from which a program waits enough to get a direction.
const WAITS: f64 = 0.01;

/// Counts cases of one promise, and names those that break it.
#[derive(Default)]
struct Count {
    all: usize,
    broken: Vec<String>,
}

/// Holds how often each promise was kept.
#[derive(Default)]
pub(crate) struct Checks {
    /// Gains that were measured, and the bound.
    bound: Count,
    /// Bands of nine in ten, and what was measured.
    bands: Count,
    /// Directions that all variants of the model have.
    directions: Count,
    /// Programs that wait, and whether one of their changes has a direction.
    answers: Count,
}

impl Count {
    fn case(&mut self, holds: bool, name: impl FnOnce() -> String) {
        self.all += 1;
        if !holds {
            self.broken.push(name());
        }
    }

    fn kept(&self) -> usize {
        self.all - self.broken.len()
    }

    /// Returns whether so large a part was kept.
    fn is(&self, part: f64) -> bool {
        self.kept() as f64 >= part * self.all as f64
    }
}

impl Checks {
    /// Checks all rows that are kept.
    pub(crate) fn of(kept: &Value) -> Self {
        let mut checks = Self::default();
        for (program, row) in kept.as_object().into_iter().flatten() {
            if row["locks"].is_array() {
                checks.row(program, row);
            }
        }
        checks
    }

    fn row(&mut self, program: &str, row: &Value) {
        let bound = &row["bound"];
        let most = [&bound["gain_interval"][1], &bound["gain"]];
        let most = most.into_iter().find_map(Value::as_f64);
        let (mut said, mut simulated) = (false, false);
        for change in row["locks"].as_array().into_iter().flatten() {
            let name = |what: String| {
                let of = change["lock"].as_str().unwrap_or_default();
                format!("{program} with {of} ({what})")
            };
            let class = change["simulated"]["class"].as_str().unwrap_or_default();
            said |= !matches!(class, "" | "unclear");
            simulated |= !class.is_empty();
            let measured = &change["measured"];
            let Some(ratio) = measured["ratio"].as_f64() else {
                continue;
            };
            // Too few pairs have an interval without an end.
            let low = measured["low"].as_f64().unwrap_or(0.0);
            let high = measured["high"].as_f64().unwrap_or(f64::INFINITY);
            if let Some(most) = most {
                self.bound.case(low <= 1.0 + most, || {
                    name(format!("{low:.2} or more, bound {:.2}", 1.0 + most))
                });
            }
            let band = &change["simulated"]["band"];
            if let (Some(least), Some(greatest)) = (band[0].as_f64(), band[1].as_f64()) {
                // What was measured is an interval too.
                self.bands.case(high >= least && low <= greatest, || {
                    name(format!("{ratio:.2}, band {least:.2} to {greatest:.2}"))
                });
            }
            let to = match class {
                "helps" => 1,
                "worse" | "collapses" => -1,
                _ => continue,
            };
            // Measured as neither better nor worse, it says nothing of a direction.
            let is = match (low > 1.0, high < 1.0) {
                (false, false) => continue,
                _ => direction(ratio),
            };
            if is != 0 {
                self.directions
                    .case(is == to, || name(format!("{class}, measured {ratio:.2}")));
            }
        }
        let waits = bound["share"].as_f64().is_some_and(|share| share > WAITS);
        if waits {
            // Of a lock that `run` keeps, or of the kernel's events, the direction is a cause.
            let cause = !simulated && row["cause"].is_object();
            self.answers.case(said || cause, || program.to_owned());
        }
    }

    /// Returns whether every promise is kept.
    pub(crate) fn hold(&self) -> bool {
        self.bound.broken.len() * OF_GAINS <= self.bound.all.max(OF_GAINS)
            && self.bands.is(RIGHT)
            && self.directions.is(RIGHT)
            && self.answers.is(RIGHT)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("Measured gains within the bound", &self.bound),
            ("Measured within the band of nine in ten", &self.bands),
            (
                "Directions of all variants that were right",
                &self.directions,
            ),
            (
                "Programs that wait for 1 % or more with a direction",
                &self.answers,
            ),
        ];
        for (what, count) in rows {
            writeln!(out, "{what}: {} of {}.", count.kept(), count.all)?;
            for broken in &count.broken {
                writeln!(out, "- {broken}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checks(class: &str, measured: [f64; 3]) -> Checks {
        let [low, ratio, high] = measured;
        Checks::of(&json!({ "a program": {
            "bound": { "share": 0.2, "gain": 0.25, "gain_interval": [0.2, 0.3] },
            "cause": {},
            "locks": [{
                "lock": "mcs",
                "simulated": { "class": class, "band": [0.8, 1.2] },
                "measured": { "ratio": ratio, "low": low, "high": high },
            }],
        } }))
    }

    #[test]
    fn each_promise_can_be_broken() {
        assert!(checks("helps", [1.05, 1.1, 1.2]).hold());
        let above = checks("helps", [1.31, 1.4, 1.5]);
        assert_eq!((above.bound.broken.len(), above.bands.broken.len()), (1, 1));
        let wrong = checks("worse", [1.05, 1.1, 1.2]);
        assert_eq!(
            wrong.directions.broken,
            ["a program with mcs (worse, measured 1.10)"]
        );
        assert!(!wrong.hold());
        let silent = checks("unclear", [0.9, 1.0, 1.1]);
        assert_eq!(silent.answers.broken, ["a program"]);
        // An interval on both sides of 1 says nothing of a direction.
        assert_eq!(checks("worse", [0.9, 1.0, 1.1]).directions.all, 0);
    }
}
