//! `--preset`: situations that people ask about, each a set of other options.
//!
//! A preset sets options and nothing else: what it sets is in the report as if it had been
//! typed. It must never be told apart afterwards from the options that it stands for.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A situation. Lengths are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    /// A counter: 10 ns under the lock, 50 outside
    Counter,
    /// Short sections: 100 ns, 500 outside
    Short,
    /// Long sections: 20 us, 20 us outside
    Long,
    /// Short sections in bursts: 100 ns, 2 us outside, bursty
    Burst,
    /// Short sections, and one thread whose sections take 100 us
    Hog,
    /// 95 % of the acquisitions read, 500 ns, 500 outside
    Readers,
    /// A thousand locks, equally likely: 50 ns, 50 outside
    ManyLocks,
    /// Short sections with twice and four times as many threads as CPUs
    Oversubscribed,
}

impl Preset {
    /// Returns the lengths of the critical section and of the time outside, ns.
    pub(super) fn lengths(self) -> [u64; 2] {
        match self {
            Self::Counter => [10, 50],
            Self::Short | Self::Oversubscribed => [100, 500],
            Self::Long => [20_000, 20_000],
            Self::Burst => [100, 2_000],
            Self::Hog => [100, 1_000],
            Self::Readers => [500, 500],
            Self::ManyLocks => [50, 50],
        }
    }

    /// Returns the numbers of threads on so many CPUs, if it sets them.
    pub(crate) fn threads(self, cpus: usize) -> Option<Vec<usize>> {
        (self == Self::Oversubscribed).then(|| vec![2 * cpus, 4 * cpus])
    }

    /// Returns the name on the command line.
    pub(super) fn word(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::LockSettings;
    use super::*;
    use locklab_harness::file;
    use locklab_host::error::Error;
    use locklab_workload::{Cells, Work};

    fn settings(words: &str) -> Result<LockSettings, Error> {
        let set: Vec<String> = words.split(' ').map(str::to_owned).collect();
        file::parse_with::<LockSettings>("", &set)?.with_preset(false)
    }

    fn cells(settings: &LockSettings) -> Cells {
        let cells = &settings.cells;
        cells.cells(&settings.turns, Work::Units, || vec![1, 2], [&[1], &[32]])
    }

    #[test]
    fn a_preset_is_the_settings_that_it_stands_for() {
        let burst = settings("preset=burst").unwrap();
        let typed = settings("unit=ns critical=100 non_critical=2000 distribution=bursty");
        assert_eq!(cells(&burst), cells(&typed.unwrap()));
        let hog = settings("preset=hog threads=[4]").unwrap();
        assert_eq!(cells(&hog).threads, [4]);
        assert_eq!(cells(&hog).mix.hog, 100_000);
        assert_eq!(Preset::Oversubscribed.threads(8), Some(vec![16, 32]));
        assert_eq!(Preset::Short.threads(8), None);
    }

    #[test]
    fn what_a_preset_sets_is_not_given_as_well() {
        for (words, name) in [
            ("preset=burst distribution=uniform", "distribution"),
            ("preset=readers reads=50", "--reads"),
            ("preset=long critical=4", "--critical"),
            ("preset=many-locks locks=4", "locks"),
            ("preset=oversubscribed threads=[4]", "--threads"),
            ("preset=short unit=ns", "--unit"),
        ] {
            let error = settings(words).unwrap_err().to_string();
            assert!(
                error.contains(&format!("says what {name} is")) && error.starts_with("--preset"),
                "{error}"
            );
        }
    }
}
