//! Two builds of a program under the same model: what the change costs in cycles, by cause,
//! and a verdict. Exists for decisions about inlining and layout; must never say more than
//! the band of the penalties allows, and that of the predictor's hashes, which are not
//! published.

use locklab_frontend::{Cause, Cycles, Events, Processor};
use serde::Serialize;
use serde_json::Value;

/// A change below this share of the cycles is flat.
const FLAT: f64 = 0.005;

/// Describes what the experiment costs more than the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Cycles of the baseline.
    pub baseline: Cycles,
    /// Cycles of the experiment.
    pub experiment: Cycles,
    /// The change of all cycles in per cent, with the ends of its band: by penalties, and by
    /// hashes if both runs tried others.
    pub percent: Cycles,
    /// Cycles of baseline and experiment under each other hash of the predictor of
    /// conditional branches.
    pub by_hash: Vec<[f64; 2]>,
    /// Cycles more that are lost to each cause.
    pub causes: Vec<Caused>,
    /// Instructions more.
    pub instructions: i64,
    /// `better`, `worse`, `flat` or `unclear`.
    pub verdict: &'static str,
}

/// Cycles more that are lost to a cause.
#[derive(Clone, Debug, Serialize)]
pub struct Caused {
    /// Names the cause.
    pub cause: Cause,
    /// Cycles more, with the penalties of the processor file.
    pub cycles: f64,
}

/// Returns the instructions and events that a report of the plugin has for user mode.
#[must_use]
pub fn counted(report: &Value) -> Option<(u64, Events)> {
    let user = report.pointer("/frontend/user")?;
    let mut events = Events::by_name(|name| user["events"][name].as_u64())?;
    let by_hash = user["conditional_by_hash"].as_array();
    for (count, wrong) in events.by_hash.iter_mut().zip(by_hash.into_iter().flatten()) {
        *count = wrong.as_u64()?;
    }
    Some((report["user"]["instructions"].as_u64()?, events))
}

/// Compares two runs.
#[must_use]
pub fn change(
    processor: &Processor,
    (old_instructions, old): (u64, &Events),
    (new_instructions, new): (u64, &Events),
) -> Change {
    let baseline = processor.cycles(old_instructions, old);
    let experiment = processor.cycles(new_instructions, new);
    let percent = |old: f64, new: f64| {
        if old > 0.0 {
            100.0 * (new / old - 1.0)
        } else {
            0.0
        }
    };
    let value = percent(baseline.value, experiment.value);
    let each_hash = || {
        let sides = old.under_each_hash().zip(new.under_each_hash());
        sides.map(|(old, new)| {
            [
                processor.cycles(old_instructions, &old),
                processor.cycles(new_instructions, &new),
            ]
        })
    };
    let ends = || {
        each_hash().flat_map(|[old, new]| {
            [
                percent(old.low, new.low),
                percent(old.value, new.value),
                percent(old.high, new.high),
            ]
        })
    };
    let low = ends().fold(f64::INFINITY, f64::min);
    let high = ends().fold(f64::NEG_INFINITY, f64::max);
    let flat = 100.0 * FLAT;
    Change {
        baseline,
        experiment,
        percent: Cycles { low, value, high },
        by_hash: each_hash()
            .skip(1)
            .map(|sides| sides.map(|cycles| cycles.value))
            .collect(),
        causes: Cause::ALL
            .into_iter()
            .map(|(cause, _)| Caused {
                cause,
                cycles: processor.lost(new, cause).value - processor.lost(old, cause).value,
            })
            .collect(),
        instructions: new_instructions as i64 - old_instructions as i64,
        verdict: if high < -flat {
            "better"
        } else if low > flat {
            "worse"
        } else if low >= -flat && high <= flat {
            "flat"
        } else {
            "unclear"
        },
    }
}

impl Change {
    /// Returns the names of the causes that changed most, largest first.
    #[must_use]
    pub fn largest(&self) -> Vec<(&'static str, f64)> {
        let mut causes: Vec<_> = self
            .causes
            .iter()
            .map(|caused| (caused.cause.name(), caused.cycles))
            .filter(|(_, cycles)| *cycles != 0.0)
            .collect();
        causes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_frontend::Event;

    #[test]
    fn a_verdict_holds_for_the_whole_band() {
        let processor = Processor::named("zen-3").unwrap();
        let events = |wrong: u64, decoded: u64| {
            let mut events = Events::default();
            events[Event::Direction] = wrong;
            events[Event::TargetDecoded] = decoded;
            events
        };
        let verdict =
            |old: &Events, new: &Events| change(&processor, (60_000, old), (60_000, new)).verdict;
        assert_eq!(verdict(&events(100, 0), &events(50, 0)), "better");
        assert_eq!(verdict(&events(50, 0), &events(100, 0)), "worse");
        assert_eq!(verdict(&events(100, 0), &events(100, 0)), "flat");
        // There are fewer of one and more of another: by their penalties either may win.
        assert_eq!(verdict(&events(100, 0), &events(0, 150)), "unclear");
        let change = change(
            &processor,
            (60_000, &events(100, 0)),
            (61_000, &events(50, 0)),
        );
        assert_eq!(change.instructions, 1000);
        assert_eq!(change.largest(), [("conditional branches", -650.0)]);
    }

    #[test]
    fn a_change_that_another_hash_turns_round_is_unclear() {
        let processor = Processor::named("zen-3").unwrap();
        let events = |wrong: u64, by_hash| {
            let mut events = Events::default();
            events[Event::Direction] = wrong;
            events.by_hash = by_hash;
            events
        };
        let change = |old: &Events, new: &Events| change(&processor, (600, old), (600, new));
        let (old, new) = (events(100, [90, 95, 99]), events(50, [60, 96, 70]));
        let found = change(&old, &new);
        assert_eq!(found.verdict, "unclear");
        assert_eq!(found.by_hash.len(), 3);
        assert_eq!(found.by_hash[1], [100.0 + 95.0 * 13.0, 100.0 + 96.0 * 13.0]);
        assert_eq!(change(&old, &events(50, [60, 55, 70])).verdict, "better");
        let plain = change(&events(100, [0; 3]), &events(50, [0; 3]));
        assert!(plain.by_hash.is_empty() && plain.verdict == "better");
    }
}
