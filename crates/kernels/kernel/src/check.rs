//! Checks whether the counts of a session repeat, and the cost of the plugin:
//! the first run is repeated, and once more without the plugin, alone on the
//! machine. A session whose counts do not repeat must never look like one whose
//! counts do.

use crate::guests::{GuestRun, Guests, measured};
use crate::outcome::{Measured, Outcome};
use crate::spinlock_matrix::cells;
use locklab_harness::experiment::Pair;
use locklab_host::error::Error;

/// The result of the check.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// The first run; `None` if it failed.
    first: Option<Measured>,
    again: Outcome,
    plain: Outcome,
    longest_boot: f64,
}

impl Check {
    /// Repeats the first run, and once more without the plugin, alone on
    /// the machine.
    ///
    /// # Errors
    /// If QEMU itself fails, or after Ctrl-C.
    pub(crate) fn of(
        guests: &Guests<'_>,
        run: &GuestRun<'_>,
        first: Option<Measured>,
        pairs: &[Pair],
    ) -> Result<Self, Error> {
        let again = guests.run(run)?;
        let plain = guests.run(&GuestRun {
            counted: false,
            ..*run
        })?;
        let boots = pairs
            .iter()
            .flat_map(Pair::samples)
            .filter_map(|sample| Some(measured(sample)?.boot_seconds));
        Ok(Self {
            first,
            again,
            plain,
            longest_boot: boots.fold(0.0, f64::max),
        })
    }

    /// Returns the facts for the head of a report.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.first.is_some() && self.differs().is_none() {
            facts.push((
                "Repeated",
                "the first run, a second time: the same counts to the last digit".into(),
            ));
        }
        facts.push((
            "Boot",
            format!("{:.1} s to the workload, the longest", self.longest_boot),
        ));
        if let (Ok(again), Ok(plain)) = (&self.again, &self.plain) {
            facts.push((
                "Plugin",
                format!(
                    "{:.2} times the CPU time of TCG without it ({:.1} s, {:.1} s)",
                    again.cpu_seconds / plain.cpu_seconds,
                    again.cpu_seconds,
                    plain.cpu_seconds
                ),
            ));
        }
        facts
    }

    /// Returns the reason why the counts cannot be trusted, if so.
    pub(crate) fn differs(&self) -> Option<String> {
        match (&self.first, &self.again) {
            (Some(first), Ok(again))
                if (first.counts, first.elapsed_ns) == (again.counts, again.elapsed_ns)
                    && cells(first) == cells(again) =>
            {
                None
            }
            // Both failed, which the verdict reports.
            (None, Err(_)) => None,
            (Some(first), Ok(again)) => Some(format!(
                "the first run gave other counts the second time, so the counts here do not \
                 repeat: {} and {}",
                show(first),
                show(again)
            )),
            (Some(_), Err(invalid)) => Some(format!(
                "the first run failed the second time: {}",
                invalid.why
            )),
            (None, Ok(_)) => Some("the first run failed once and not the second time".into()),
        }
    }
}

fn show(measured: &Measured) -> String {
    measured.counts.map_or_else(
        || "none".into(),
        |counts| {
            format!(
                "user {} and kernel {} instructions, {} and {} misses",
                counts.user.instructions,
                counts.kernel.instructions,
                counts.user.l1i_misses,
                counts.kernel.l1i_misses
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample as run;

    #[test]
    fn a_run_that_does_not_repeat_is_said() {
        let check = |again| Check {
            first: run(9).ok(),
            again,
            plain: run(9),
            longest_boot: 3.25,
        };
        let same = check(run(9));
        assert_eq!(same.differs(), None);
        let facts = same.facts();
        assert!(facts[0].1.contains("to the last digit"), "{facts:?}");
        assert!(facts[1].1.starts_with("3.2 s"), "{facts:?}");
        assert!(facts[2].1.starts_with("1.00 times"), "{facts:?}");
        let other = check(run(10));
        assert!(other.differs().unwrap().contains("9 misses"));
        assert!(other.facts().iter().all(|(name, _)| *name != "Repeated"));
    }
}
