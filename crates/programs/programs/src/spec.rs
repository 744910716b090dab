//! The specification of a comparison of programs, with every choice made.
//!
//! It comes from an experiment file and the command line ([`crate::settings`]);
//! it determines the samples, so it is part of the fingerprint. It must
//! never run anything.

use crate::counters::Mode;
use crate::subject::{PTHREAD, Subject};
use crate::workloads::{WorkloadSpec, names};
use locklab_footprint::Footprint;
use locklab_harness::experiment::Labels;
use locklab_harness::settings::Limit;
use locklab_host::error::Error;
use locklab_host::topology::{Topology, ranges};
use locklab_judge::Side;
use serde::{Deserialize, Serialize};

/// Both subjects, the workloads, and how each run is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Holds what the other subject is compared with.
    pub baseline: Subject,
    /// The subject that is compared with it.
    pub experiment: Subject,
    /// Workloads in the order in which they run.
    pub workloads: Vec<WorkloadSpec>,
    /// Warm-up runs of each side before the first pair.
    pub warm_up: u32,
    /// Limit of one run, in seconds.
    #[serde(alias = "time_limit")]
    pub run_limit: Limit,
    /// CPUs to use; the workload's own choice if empty.
    pub pin: Vec<usize>,
    /// The counters to read.
    pub counters: Mode,
}

impl Spec {
    /// Returns both subjects, the baseline first.
    #[must_use]
    pub fn subjects(&self) -> [&Subject; 2] {
        [&self.baseline, &self.experiment]
    }

    /// Returns the subject of a side.
    #[must_use]
    pub fn subject(&self, side: Side) -> &Subject {
        match side {
            Side::Baseline => &self.baseline,
            Side::Experiment => &self.experiment,
        }
    }

    /// Returns the names of the two sides in reports.
    #[must_use]
    pub fn labels(&self) -> Labels {
        Labels::new(self.baseline.label(), self.experiment.label())
    }

    /// Checks that it can be carried out on these CPUs, as far as that is known
    /// without running anything.
    ///
    /// # Errors
    /// If there is nothing to run, a build folder does not exist, two workloads
    /// have one title, or a CPU cannot be used.
    /// The message says what to change.
    pub fn check(&self, topology: &Topology) -> Result<(), Error> {
        for subject in self.subjects() {
            if let Some(build) = &subject.build
                && !build.is_dir()
            {
                return Err(Error::Usage(format!(
                    "there is no folder {}; a build is the folder with its programs",
                    build.display()
                )));
            }
        }
        if self.workloads.is_empty() {
            return Err(Error::Usage(format!(
                "nothing to run; give --workload ({}), or --baseline CMD --experiment CMD, or an \
                 experiment file ('locklab results schema example' prints one)",
                names()
            )));
        }
        for (n, workload) in self.workloads.iter().enumerate() {
            workload.workload()?;
            for subject in self.subjects() {
                workload.check_command(subject)?;
            }
            let title = workload.title();
            if self.workloads[..n].iter().any(|w| w.title() == title) {
                return Err(Error::Usage(format!(
                    "there are two workloads '{title}'; give one of them another title"
                )));
            }
        }
        if let Some(cpu) = self.pin.iter().find(|cpu| !topology.order.contains(cpu)) {
            return Err(Error::Usage(format!(
                "CPU {} cannot be pinned to; this process may use {}",
                *cpu,
                ranges(&topology.order)
            )));
        }
        Ok(())
    }

    /// Returns the caveats about these two subjects, which an A/A comparison has on
    /// purpose alike.
    #[must_use]
    pub fn caveats(&self, aa: bool) -> Vec<String> {
        if self.baseline == self.experiment && !aa {
            return vec![
                "Both sides are the same, so any difference is chance; --aa counts how often that \
                 is called one."
                    .into(),
            ];
        }
        let bare = |s: &Subject| s.lock.as_deref().is_none_or(|lock| lock == PTHREAD);
        if bare(&self.baseline) == bare(&self.experiment) {
            return Vec::new();
        }
        vec![
            "One side's lock is interposed and the other's is glibc's own: the difference \
             includes the interposer. 'pthread-interposed' on the other side takes that out."
                .into(),
        ]
    }

    /// Returns the footprint of the programs of two build folders; `None` unless both
    /// sides have one.
    ///
    /// # Errors
    /// If a folder has no program that can be read.
    pub fn footprint(&self) -> Result<Option<Footprint>, Error> {
        let (Some(old), Some(new)) = (&self.baseline.build, &self.experiment.build) else {
            return Ok(None);
        };
        let options = locklab_footprint::Options::default();
        locklab_footprint::compare(old, new, &options)
            .map(Some)
            .map_err(|e| Error::Usage(format!("There is no footprint: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn topology() -> Topology {
        Topology {
            order: vec![0, 1],
            ..Topology::read()
        }
    }

    #[test]
    fn what_cannot_be_carried_out_is_a_sentence() {
        let spec = |text: &str| Settings::parse(text).unwrap().spec();
        let two = "[[workload]]\nname = 'fstat'\n[[workload]]\nname = 'fstat'\n";
        for (text, part) in [
            ("", "nothing to run; give --workload (nginx-churn"),
            (
                "baseline.command = 'true'\n[[workload]]\nname = 'command'",
                "there is no command to run; give --baseline and --experiment",
            ),
            (
                "[[workload]]\nname = 'command'\ncommand = '\"x'",
                "'\"x' is no command: a quote is open, or it is empty",
            ),
            (two, "two workloads 'fstat'; give one of them another title"),
            (
                "pin = [1, 7]\n[[workload]]\nname = 'gcc'",
                "CPU 7 cannot be pinned to",
            ),
            (
                "[baseline]\nbuild = '/no/such/folder'\n[[workload]]\nname = 'gcc'",
                "there is no folder /no/such/folder",
            ),
        ] {
            let error = spec(text).check(&topology()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let sound = "pin = [1]\n[[workload]]\nname = 'gcc'";
        assert_eq!(spec(sound).check(&topology()), Ok(()));
    }

    #[test]
    fn one_interposed_side_is_a_caveat() {
        let spec = |baseline: &str, experiment: &str| {
            let text = format!("baseline.lock = '{baseline}'\nexperiment.lock = '{experiment}'");
            Settings::parse(&text).unwrap().spec()
        };
        assert_eq!(spec("pthread", "mcs").caveats(false).len(), 1);
        assert!(spec("mcs", "mcs").caveats(false)[0].starts_with("Both sides are the same"));
        assert!(spec("pthread-interposed", "mcs").caveats(false).is_empty());
        assert_eq!(spec("ticket", "mcs").labels().experiment, "mcs");
    }
}
