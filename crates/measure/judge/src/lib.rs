//! Judges paired samples: better, worse, flat, unclear or invalid.
//!
//! A comparison has a **baseline** and an **experiment**. In each of its
//! pairs both run once, and a [`coin`] decides which goes first; strict
//! alternation would give a disturbance of period two the look of an effect.
//! [`judge`] takes the pairs of all comparisons of a session and says of each
//! what has been shown, how large it is, and what would settle it if nothing
//! has. "No significant difference" ([`Verdict::Unclear`]) and "shown to be
//! equal" ([`Verdict::Flat`]) are different verdicts.
//!
//! Everything here is a pure function of its arguments: no clocks, no files,
//! no printing, and nothing known of locks. No input panics.
//!
//! ```
//! use locklab_judge::{
//!     Comparison, Direction, Pair, Settings, Verdict, bias_band, coin, fork_seed, judge,
//! };
//!
//! // Twenty pairs of a workload whose noise is ±0.6 %.
//! let pairs = |seed: u64, effect: f64| -> Vec<Pair> {
//!     (0..20)
//!         .map(|i| {
//!             let noise = 1.0 + (i * 7 % 20) as f64 * 6e-4 - 5.7e-3;
//!             Pair::new(1e6, 1e6 * effect * noise, coin(fork_seed(seed, 0), i))
//!         })
//!         .collect()
//! };
//!
//! // Baseline against baseline first: how far off may this set-up be?
//! let band = bias_band(&pairs(1, 1.0), 0.01);
//!
//! let mut faster = Comparison::primary(pairs(2, 1.05), Direction::HigherIsBetter);
//! faster.bias_band = band;
//! let mut same = Comparison::primary(pairs(3, 1.001), Direction::HigherIsBetter);
//! same.bias_band = band;
//!
//! let judged = judge(&[faster, same], &Settings::default())?;
//! assert_eq!(judged[0].verdict, Verdict::Better);
//! assert_eq!(judged[1].verdict, Verdict::Flat { nonzero: false });
//!
//! let delta = judged[0].estimate.unwrap().delta_percent();
//! assert!(4.5 < delta.low && delta.high < 5.5);
//! # Ok::<(), locklab_judge::BadSetting>(())
//! ```
//!
//! # Whose 5 %
//! [`Settings::family`]: Holm over the workloads of a comparison, the false
//! discovery rate over the cells of a matrix; [`Family`] says why, and what
//! 8 pairs in 126 cells can and cannot show. Counters are screened by the
//! false discovery rate in any case. Flat is claimed at 5 % for each
//! comparison by itself.
//!
//! # Without pairs
//! [`Comparison::independent`] takes two samples that nothing pairs, as the
//! files of other programs have them: the exact rank-sum test, and the
//! Hodges-Lehmann shift between the samples. All else is the same, and a
//! warning says that a drift between the samples was not controlled.
//!
//! # Many subjects
//! [`best()`] takes complete blocks of any number of subjects and gives the set
//! that contains the best of them, how far behind each is, and which are shown
//! to be within δ of it. [`Looks`] are the moments, fixed beforehand, at which
//! a subject may leave the measurement.
//!
//! # Before a session and after
//! [`bias_band`] measures b from A/A pairs, once for each workload and metric
//! of a machine; [`aa_check`] asks of a session of baseline against baseline
//! whether it called more than 5 % allow. [`pairs_needed`] says how many pairs
//! a session must have before it can call anything, and [`interim()`] when one comparison of many may give
//! its time to the others.
//!
//! # Features
//! `serde`: verdicts, estimates and warnings serialise; a limit that is
//! infinite (fewer than six pairs) becomes `null` in JSON. [`Settings`] also
//! deserialise, and refuse fields they do not know.
//!
//! # Assumptions
//! Pairs are independent of one another (the lag-1 autocorrelation is
//! reported, with a warning beyond 2/√n), and d = s · ln(E / B) is symmetric
//! about θ. The coin brings about the second where there is no effect: it
//! gives noise either sign. The unit of a pair is the highest level that
//! varies; a judge that is fed iterations of one process, or one simulation
//! again and again, is fed too many pairs and cannot know.

mod aa;
mod alpha;
mod best;
mod estimate;
mod family;
mod interaction;
mod interim;
mod judge;
mod normal;
mod pair;
mod rank_sum;
mod region;
mod role;
mod samples;
mod series;
mod settings;
mod signed_rank;
mod verdict;
mod walsh;
mod warning;

pub use aa::{AaCheck, aa_check, bias_band};
pub use alpha::ALPHA;
pub use best::{Looks, Standing, best, blocks_needed, have_left};
pub use estimate::{Estimate, Interval, Shown, estimate, estimate_independent};
pub use family::{Family, fewest_callable, pairs_needed, smallest_p};
pub use interaction::{INTERACTION, Interaction, interaction};
pub use interim::{Interim, LOOKS, MORE, interim, is_look};
pub use judge::{Comparison, judge};
pub use pair::{Direction, Fault, FaultKind, Order, Pair, Side, Validity, coin, fork_seed};
pub use rank_sum::EXACT_SAMPLES;
pub use region::{JudgedRegion, Region, judge_regions};
pub use role::Role;
pub use samples::{Independent, MIN_SAMPLES, Samples, Sampling, samples_needed};
pub use settings::{BadSetting, MIN_PAIRS, Settings};
pub use signed_rank::{EXACT_PAIRS, Method};
pub use verdict::{Judged, Reason, Verdict};
pub use warning::Warning;

/// Returns a configuration with the same cases on every run of the unit tests.
#[cfg(test)]
fn cases_for_tests() -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: 128,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x10c7_1ab5),
        failure_persistence: None,
        ..Default::default()
    }
}
