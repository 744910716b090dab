//! A program of a run that has ended: its output, and the figures that any
//! program has.

use crate::fault::Fault;
use crate::icache::{self, Counted};
use crate::output::excerpt;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::{ELAPSED, INSTRUCTIONS_MODELLED, L1I_MISSES};
use locklab_host::error::Error;
use locklab_host::process::{Ended, Usage};
use std::path::Path;

/// A program of a run that has ended.
#[derive(Debug)]
pub struct Completed {
    /// Says how it ended.
    pub ended: Ended,
    /// The end of its standard output.
    pub out: String,
    /// The end of its standard error.
    pub err: String,
    /// The counts of the counters.
    pub counts: Values,
}

impl Completed {
    /// Checks that it ended with success.
    ///
    /// # Errors
    /// [`Fault::Failed`] with its status and its last output, if it failed.
    pub fn check(&self) -> Result<(), Fault> {
        match self.ended.failure() {
            None => Ok(()),
            Some(status) => {
                let output = if self.err.trim().is_empty() {
                    &self.out
                } else {
                    &self.err
                };
                let output = excerpt(output);
                Err(Fault::Failed(format!("{status}; it said: {output}")))
            }
        }
    }

    /// Returns the kernel's accounting for it, and the counts.
    #[must_use]
    pub fn figures(&self) -> Values {
        let mut figures = process_figures(&self.ended.usage);
        figures.extend(self.counts.clone());
        figures
    }
}

/// Returns the model's figures for what a program executed by itself.
pub(crate) fn modelled(log: &Path, ended: &Ended) -> Result<Values, Error> {
    let counted = Counted {
        report: icache::report("the program", log, ended)?,
        ended: ended.clone(),
        places: None,
    };
    let (instructions, misses) = (counted.instructions() as f64, counted.misses() as f64);
    let values = [
        (INSTRUCTIONS_MODELLED, instructions),
        (L1I_MISSES, misses),
        ("l1i-mpki-modelled", 1000.0 * misses / instructions.max(1.0)),
    ];
    Ok(values.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Returns the figures of a process by the names that [`process_metrics`] gives them.
fn process_figures(usage: &Usage) -> Values {
    [
        (ELAPSED, usage.elapsed),
        ("user", usage.user),
        ("sys", usage.system),
        ("max-rss", usage.max_rss_kib),
        ("minor-faults", usage.minor_faults),
        ("major-faults", usage.major_faults),
        ("switches-voluntary", usage.voluntary_switches),
        ("switches-involuntary", usage.involuntary_switches),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Returns the metrics of the kernel's accounting for any process.
#[must_use]
pub fn process_metrics() -> Vec<Metric> {
    [
        (ELAPSED, "s"),
        ("user", "s"),
        ("sys", "s"),
        ("max-rss", "KiB"),
        ("minor-faults", ""),
        ("major-faults", ""),
        ("switches-voluntary", ""),
        ("switches-involuntary", ""),
    ]
    .map(|(name, unit)| Metric::lower(name, unit, Source::Process))
    .into()
}
