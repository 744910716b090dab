//! The rule by which a published figure was made: what each thread did, and by
//! which time its work was divided.
//!
//! A model that is simulated by another rule than the figure's is scored on
//! another question: with fixed work a lock that is not fair ends its threads one
//! after the other, and what a rate then means depends on the rule.

use locklab_host::error::Error;
use locklab_sim::{Outcome, Stop};
use serde::{Deserialize, Serialize};

/// The rule of a published experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// All threads work, after a warm-up, until a time is over: all their work by
    /// that time.
    FixedTime,
    /// Each thread does as much work as the others, and ends: all work by the
    /// time until the last has ended.
    FixedWork,
    /// Each thread does as much work as the others, and ends: all work by the
    /// mean of the times that the threads took.
    FixedWorkByMean,
}

impl Rule {
    /// Every rule, by its name in files.
    pub const ALL: [(&'static str, Self); 3] = [
        ("fixed-time", Self::FixedTime),
        ("fixed-work", Self::FixedWork),
        ("fixed-work-by-mean", Self::FixedWorkByMean),
    ];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::FixedTime => "fixed-time",
            Self::FixedWork => "fixed-work",
            Self::FixedWorkByMean => "fixed-work-by-mean",
        }
    }

    /// Returns what a rate by it means, for a report.
    pub fn words(self) -> &'static str {
        match self {
            Self::FixedTime => "all work until a time is over",
            Self::FixedWork => "as much work by each thread, until the last has ended",
            Self::FixedWorkByMean => {
                "as much work by each thread, over the mean of the threads' own times"
            }
        }
    }

    /// Returns the rule of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none; the message lists all.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, rule)| *rule).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            Error::Usage(format!("no rule is called `{name}`; there are {known}"))
        })
    }

    /// Returns when a simulation of so many operations by so many threads ends.
    pub(crate) fn stop(self, operations: u64, threads: usize) -> Stop {
        /// Operations of a thread at least: fewer would be all beginning and end.
        const LEAST: u64 = 50;
        match self {
            Self::FixedTime => Stop::Acquisitions(operations),
            Self::FixedWork | Self::FixedWorkByMean => {
                Stop::Each((operations / threads as u64).max(LEAST))
            }
        }
    }

    /// Returns the operations per second, as this rule counts them.
    pub(crate) fn rate(self, outcome: &Outcome) -> f64 {
        match self {
            // With `Stop::Each` the outcome's own rate is that by the mean.
            Self::FixedTime | Self::FixedWorkByMean => outcome.ops_per_s,
            Self::FixedWork => outcome.ops_per_s_until_the_last(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_sim::{Loop, Machine, Scenario, Workload, run};

    #[test]
    fn every_rule_has_its_name() {
        for (name, rule) in Rule::ALL {
            assert_eq!((Rule::named(name), rule.name()), (Ok(rule), name));
        }
        let error = Rule::named("best-of-ten").unwrap_err().to_string();
        assert!(error.contains("fixed-work-by-mean"), "{error}");
    }

    #[test]
    fn a_lock_that_is_not_fair_has_a_higher_rate_by_the_mean() {
        let machine = Machine::builtin("xeon-8380-2s").unwrap();
        let workload = Workload::Loop(Loop::default());
        let mut scenario = Scenario::new(machine, "tas", workload, 8);
        scenario.stop = Rule::FixedWork.stop(4_000, 8);
        assert_eq!(scenario.stop, Stop::Each(500));
        let outcome = run(&scenario).unwrap();
        let elapsed = Rule::FixedWork.rate(&outcome);
        assert!(Rule::FixedWorkByMean.rate(&outcome) > elapsed);
    }
}
