//! The verdicts on two files of samples, and whether a gate fails on them.
//!
//! What was not measured in turn may differ because the machine drifted between
//! the sides. So a drift is assumed, decided beforehand, and over the time between
//! them it is the bias that a difference must exceed: all of the time that the runs
//! took, and of a pause before the second file's no more than an hour, since a
//! machine does not go on drifting for days. Must never be fitted to the samples: a
//! change of everything at once looks the same as a drift.

use crate::matching::{Compared, Matched, Unmatched, Why};
use locklab_harness::gate::FailOn;
use locklab_host::error::Error;
use locklab_judge::{
    BadSetting, Comparison, Judged, Reason, Role, Samples, Settings, Verdict, samples_needed,
};

/// Describes how samples are judged, decided before they are read.
#[derive(Clone, Copy, Debug)]
pub struct Judging {
    /// The margin for flat, and the family.
    pub settings: Settings,
    /// The drift that is assumed, as a fraction in an hour.
    pub drift: f64,
    /// The time between the sides in seconds, where the caller knows it.
    pub apart: Option<f64>,
    /// By how much processes of the same code differ, as a fraction, where the caller
    /// knows it.
    pub process_noise: Option<f64>,
}

/// The most seconds of a pause between two files in which the machine is assumed to
/// drift, unless the caller gives the time between them.
pub(crate) const PAUSE: f64 = 3600.0;

/// The time between the sides in seconds, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Apart {
    /// The caller said so.
    Given(f64),
    /// It is known by the dates of the files.
    Dates {
        /// The time between them.
        seconds: f64,
        /// The time that their runs took, of which all counts.
        runs: f64,
    },
    /// It is at least so long, by the time that their runs took.
    Runs(f64),
}

impl Apart {
    /// Returns it in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        match self {
            Self::Given(seconds) | Self::Dates { seconds, .. } | Self::Runs(seconds) => seconds,
        }
    }

    /// Returns the seconds in which the machine is assumed to drift.
    #[must_use]
    pub fn drifting(self) -> f64 {
        match self {
            Self::Dates { seconds, runs } => seconds.min(runs + PAUSE),
            other => other.seconds(),
        }
    }

    /// Returns whether the pause was longer than the machine is assumed to drift.
    #[must_use]
    pub fn is_another_day(self) -> bool {
        self.drifting() < self.seconds()
    }
}

/// A benchmark with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedRow {
    /// Holds the benchmark that was judged.
    pub of: Matched,
    /// Holds what was shown.
    pub judged: Judged,
}

/// Two files of samples, judged.
#[derive(Clone, Debug)]
pub struct JudgedSamples {
    /// Says how the files are called, and what was not compared.
    pub compared: Compared,
    /// The verdicts, in the order of the baseline's file.
    pub rows: Vec<JudgedRow>,
    /// Says how they were judged.
    pub judging: Judging,
    /// The time between the sides.
    pub apart: Apart,
}

impl JudgedSamples {
    /// Returns the drift that is assumed over the time between the sides, as a fraction.
    #[must_use]
    pub fn allowance(&self) -> f64 {
        allowance(&self.judging, self.apart)
    }

    /// Returns the verdicts on which a gate fails: those that decide, and those on a count
    /// that is the same in every run of a side, which needs no test.
    pub fn gating(&self) -> impl Iterator<Item = &JudgedRow> {
        self.rows.iter().filter(|row| {
            let called = matches!(row.judged.verdict, Verdict::Better | Verdict::Worse);
            row.of.role == Role::Primary || row.of.exact && !row.of.drifts && called
        })
    }

    /// Returns whether no benchmark can be called, since how processes differ is not known.
    #[must_use]
    pub fn never_fails(&self) -> bool {
        let few = |row: &JudgedRow| row.of.few.is_some();
        self.judging.process_noise.is_none() && self.primaries().all(few) && !self.rows.is_empty()
    }

    /// Returns the fewest processes of each side that a verdict needs: enough for one
    /// benchmark of the family alone.
    #[must_use]
    pub fn processes_needed(&self) -> usize {
        samples_needed(
            self.judging.settings.family,
            self.primaries().count().max(1),
        )
    }

    /// Returns the verdicts that decide.
    pub fn primaries(&self) -> impl Iterator<Item = &JudgedRow> {
        self.rows.iter().filter(|row| row.of.role == Role::Primary)
    }

    /// Benchmarks of the baseline that the experiment does not have.
    pub fn missing(&self) -> impl Iterator<Item = &Unmatched> {
        let unmatched = self.compared.unmatched.iter();
        unmatched.filter(|u| u.role == Role::Primary && u.why == Why::OnlyBaseline)
    }

    /// Benchmarks whose figures do not measure the same on both sides, or not in one place.
    pub fn unlike(&self) -> impl Iterator<Item = &Unmatched> {
        let unmatched = self.compared.unmatched.iter();
        let is = |u: &&Unmatched| matches!(u.why, Why::Units(..) | Why::Setting(_));
        unmatched.filter(move |u| u.role == Role::Primary && is(u))
    }
}

fn allowance(judging: &Judging, apart: Apart) -> f64 {
    judging.drift * apart.drifting() / 3600.0
}

/// Judges the benchmarks of two files. Those that decide are one family.
///
/// # Errors
/// [`BadSetting`] if a setting makes no sense. Samples are never an error.
pub fn judge(mut compared: Compared, judging: Judging) -> Result<JudgedSamples, BadSetting> {
    let [began, ended] = [0, 1].map(|side: usize| compared.files[side].measured);
    let took = 0.5 * (compared.seconds[0] + compared.seconds[1]);
    let apart = match (judging.apart, began.zip(ended)) {
        (Some(seconds), _) => Apart::Given(seconds),
        (None, Some((began, ended))) if (ended - began).abs() > took => Apart::Dates {
            seconds: (ended - began).abs(),
            runs: took,
        },
        (None, _) => Apart::Runs(took),
    };
    let rows = std::mem::take(&mut compared.rows);
    let comparisons: Vec<Comparison> = rows
        .iter()
        .map(|row| {
            let drifts = row.drifts && matches!(row.samples, Samples::Independent(_));
            let drift = drifts.then(|| allowance(&judging, apart));
            let noise = row.few.and(judging.process_noise);
            let band = drift.into_iter().chain(noise).reduce(|a, b| a + b);
            Comparison {
                samples: row.samples.clone(),
                role: row.role,
                bias_band: band.filter(|_| row.medians.is_none()),
                ..Comparison::primary(Vec::new(), row.direction)
            }
        })
        .collect();
    let judged = locklab_judge::judge(&comparisons, &judging.settings)?;
    let row = |(of, mut judged): (Matched, Judged)| {
        let is_invalid = matches!(judged.verdict, Verdict::Invalid(_));
        // A count, or a ratio of simulated runs, is the same by nature.
        if of.identical && of.drifts && !is_invalid {
            judged.verdict = Verdict::Invalid(vec![Reason::SameSamples]);
        } else if of.few.is_some() && judging.process_noise.is_none() && !is_invalid {
            // Neither a difference nor its absence: how processes differ is not known.
            judged.verdict = Verdict::Unclear {
                detectable: None,
                pairs_for_flat: None,
            };
        }
        JudgedRow { of, judged }
    };
    Ok(JudgedSamples {
        compared,
        rows: rows.into_iter().zip(judged).map(row).collect(),
        judging,
        apart,
    })
}

/// Returns the first of the verdicts on which the gate fails, if it fails.
///
/// # Errors
/// [`Error::Failed`] if nothing was judged.
pub fn fails(fail_on: &[FailOn], judged: &JudgedSamples) -> Result<Option<FailOn>, Error> {
    if !fail_on.is_empty() && !judged.primaries().any(|row| row.judged.was_judged()) {
        let why = why_nothing(judged);
        return Err(Error::Failed(format!("--fail-on judged nothing: {why}")));
    }
    let any = |is: fn(&Verdict) -> bool| judged.gating().any(|row| is(&row.judged.verdict));
    let found = |fail_on: &FailOn| match fail_on {
        FailOn::Worse => any(|v| *v == Verdict::Worse),
        FailOn::Unclear => any(|v| matches!(v, Verdict::Unclear { .. })),
        FailOn::Invalid => {
            any(|v| matches!(v, Verdict::Invalid(_))) || judged.unlike().next().is_some()
        }
        FailOn::Incomplete => judged.missing().next().is_some(),
    };
    Ok(FailOn::by_weight(fail_on).find(found))
}

/// Says why no benchmark has a verdict, and what to do.
fn why_nothing(judged: &JudgedSamples) -> String {
    let unlike = judged.unlike().next();
    if judged.primaries().next().is_none() {
        return match unlike.map(|u| &u.why) {
            Some(Why::Setting(what)) => format!(
                "no benchmark was measured in one setting ({what}); measure both sides on one \
                 machine"
            ),
            _ => "no benchmark is in both files; give both the same names (hyperfine \
                  --command-name)"
                .into(),
        };
    }
    if judged.primaries().any(|row| row.of.identical) {
        return "both sides hold the same samples; give two different runs".into();
    }
    let invalid = |row: &JudgedRow| matches!(row.judged.verdict, Verdict::Invalid(_));
    match judged.primaries().all(invalid) {
        true => "every benchmark is invalid; the report says why".into(),
        false => "no benchmark has a verdict; repeat the benchmarks more often".into(),
    }
}
