//! `--preset`: situations that people ask about, each a set of other options.
//!
//! A preset sets options and nothing else: what it sets is in the report as if it had been
//! typed. It must never be told apart afterwards from the options that it stands for.

use super::arguments::RankSettings;
use clap::ValueEnum;
use locklab_host::error::Error;
use locklab_lab::list::Numbers;
use locklab_lab::workload::UnitWord;
use locklab_workload::Distribution;
use schemars::JsonSchema;
use serde::Deserialize;

/// A situation. Lengths are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
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
    /// The lengths of the critical section and of the time outside, ns.
    fn lengths(self) -> [u64; 2] {
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

    /// The numbers of threads on so many CPUs, if it sets them.
    pub(super) fn threads(self, cpus: usize) -> Option<Vec<usize>> {
        (self == Self::Oversubscribed).then(|| vec![2 * cpus, 4 * cpus])
    }

    /// The name on the command line.
    fn word(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Returns the settings with the options that their preset sets.
///
/// # Errors
/// [`Error::Usage`] if one of these was given as well.
pub(super) fn applied(settings: &RankSettings) -> Result<RankSettings, Error> {
    let mut settings = settings.clone();
    let Some(preset) = settings.preset else {
        return Ok(settings);
    };
    let (cells, turns) = (&mut settings.cells, &mut settings.turns);
    let [critical, non_critical] = preset.lengths();
    let mut twice = Vec::new();
    let mut set = |option: &'static str, given: bool| {
        if given {
            twice.push(option);
        }
    };
    set("--trace", settings.trace.is_some());
    set("--unit", turns.unit.replace(UnitWord::Ns).is_some());
    set(
        "--critical",
        cells.critical.replace(Numbers(vec![critical])).is_some(),
    );
    set(
        "--non-critical",
        cells
            .non_critical
            .replace(Numbers(vec![non_critical]))
            .is_some(),
    );
    match preset {
        Preset::Burst => set(
            "--distribution",
            turns.distribution.replace(Distribution::Bursty).is_some(),
        ),
        Preset::Hog => set("--hog", turns.hog.replace(100_000).is_some()),
        Preset::Readers => set("--reads", turns.reads.replace(95).is_some()),
        Preset::ManyLocks => set(
            "--locks",
            turns.lock_counts.replace(Numbers(vec![1_000])).is_some(),
        ),
        Preset::Oversubscribed => set("--threads", cells.threads.is_some()),
        Preset::Counter | Preset::Short | Preset::Long => {}
    }
    match twice.first() {
        None => Ok(settings),
        Some(option) => Err(Error::Usage(format!(
            "--preset {preset} says what {option} is; leave out one of the two",
            preset = preset.word()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        settings: RankSettings,
    }

    fn settings(words: &str) -> Result<RankSettings, Error> {
        let words = std::iter::once("rank").chain(words.split(' '));
        applied(&Command::parse_from(words).settings)
    }

    #[test]
    fn a_preset_is_the_options_that_it_stands_for() {
        let burst = settings("--preset burst").unwrap();
        let typed = "--unit ns --critical 100 --non-critical 2000 --distribution bursty";
        let typed = settings(typed).unwrap();
        let cells = |settings: &RankSettings| settings.cells(|| vec![1, 2]);
        assert_eq!(cells(&burst), cells(&typed));
        let hog = settings("--preset hog --threads 4").unwrap();
        assert_eq!(cells(&hog).threads, [4]);
        assert_eq!(cells(&hog).mix.hog, 100_000);
        assert_eq!(Preset::Oversubscribed.threads(8), Some(vec![16, 32]));
        assert_eq!(Preset::Short.threads(8), None);
    }

    #[test]
    fn what_a_preset_sets_is_not_given_as_well() {
        for (words, option) in [
            ("--preset burst --distribution uniform", "--distribution"),
            ("--preset readers --reads 50", "--reads"),
            ("--preset long --critical 4", "--critical"),
            ("--preset many-locks --locks 4", "--locks"),
            ("--preset oversubscribed --threads 4", "--threads"),
            ("--preset short --unit ns", "--unit"),
        ] {
            let error = settings(words).unwrap_err().to_string();
            assert!(
                error.contains(&format!("says what {option} is")) && error.starts_with("--preset"),
                "{error}"
            );
        }
    }
}
