//! Samples of the kernel lab: a line of JSON for each run, written as it ends.
//!
//! A comparison that was interrupted goes on after the pairs that are there.
//! One that came to its end is never read again: the same command measures
//! anew, or "the same counts twice" would compare a file with itself.

use crate::kernel::outcome::{Measured, Outcome};
use crate::kernel::recipe::Side;
use crate::kernel::tools::Lab;
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// The samples of one experiment.
#[derive(Clone, Debug)]
pub struct Samples {
    path: PathBuf,
}

/// One run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// What was run, on which kernels: a hash.
    pub(crate) run: String,
    pub(crate) workload: String,
    pub(crate) variant: String,
    pub(crate) side: String,
    pub(crate) image: String,
    pub(crate) seed: u64,
    pub(crate) measured: Option<Measured>,
    pub(crate) invalid: Option<String>,
}

/// What stands behind the last run of a comparison that came to its end.
const ENDED: &str = "ended";

impl Samples {
    /// Those of the experiment of this name.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn of(lab: &Lab<'_>, experiment: &str) -> Result<Self, Error> {
        let path = lab.folder("samples")?.join(format!("{experiment}.jsonl"));
        Ok(Self { path })
    }

    /// Both sides of the pair with this hash, if it was measured by a
    /// comparison that did not come to its end.
    pub(crate) fn pair(&self, run: &str) -> Option<[Outcome; 2]> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut sides = [None, None];
        // The last line may have been cut, by a full disk or a kill.
        for line in text.lines().rev() {
            if serde_json::from_str(line).is_ok_and(|line: serde_json::Value| line[ENDED] == true) {
                break;
            }
            let Ok(sample) = serde_json::from_str::<Sample>(line) else {
                continue;
            };
            if sample.run == run {
                let side = usize::from(sample.side == Side::Experiment.word());
                sides[side] = sides[side].take().or(sample.measured);
            }
        }
        let [Some(baseline), Some(experiment)] = sides else {
            return None;
        };
        Some([Ok(baseline), Ok(experiment)])
    }

    pub(crate) fn write(&self, lab: &Lab<'_>, samples: &[Sample]) -> Result<(), Error> {
        let mut text = String::new();
        for sample in samples {
            let line = serde_json::to_string(sample)
                .map_err(|e| Error::Failed(format!("cannot write a sample: {e}")))?;
            text.push_str(&line);
            text.push('\n');
        }
        self.append(lab, &text)
    }

    /// The comparison has come to its end.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn end(&self, lab: &Lab<'_>) -> Result<(), Error> {
        if !self.path.is_file() {
            return Ok(());
        }
        self.append(lab, &format!("{}\n", json!({ ENDED: true })))
    }

    fn append(&self, lab: &Lab<'_>, text: &str) -> Result<(), Error> {
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| lab.cannot_write(&self.path, &e))
    }
}
