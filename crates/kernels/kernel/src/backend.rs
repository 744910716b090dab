//! The backend of kernels: a pair is one link order and
//! one seed, the same for both.
//!
//! Under TCG both guests of a pair run at the same time, as counts do not
//! depend on the machine; under KVM, where time is measured, one after the
//! other.

use crate::boot::{Accelerator, Qemu};
use crate::cache::{Cache, key};
use crate::check::Check;
use crate::guests::{GuestRun, Guests, measured};
use crate::lock_report;
use crate::making::ReadyVariant;
use crate::metrics::{Figured, source, values};
use crate::outcome::Outcome;
use crate::ready::ReadyCells;
use crate::workload::Load;
use locklab_document::number::count;
use locklab_harness::backend::{Backend, Pairing, Stopped, Turn};
use locklab_harness::experiment::{Cell, Design, Experiment, Invalid, Sample};
use locklab_host::error::Error;
use locklab_judge::Side;
use serde_json::{Value, json};
use std::time::Duration;

/// Two kernels, in every variant, under every load.
#[derive(Clone)]
pub struct Kernels<'a> {
    pub(crate) cache: &'a Cache<'a>,
    pub(crate) qemu: Qemu,
    pub(crate) accelerator: Accelerator,
    /// Says whether the kernels mark spans.
    pub(crate) spans: bool,
    pub(crate) limit: Duration,
    /// Seed of the first link order.
    pub(crate) seed: u64,
    /// The kernels and the load of each cell.
    pub(crate) cells: ReadyCells,
    /// Says whether the first run has been repeated.
    pub(crate) checked: bool,
    /// Says whether locks are profiled beside each run.
    pub(crate) lock_profile: bool,
    /// The experiment that was prepared.
    pub(crate) prepared: Experiment,
}

impl Kernels<'_> {
    fn guests(&self) -> Guests<'_> {
        Guests {
            cache: self.cache,
            qemu: &self.qemu,
            accelerator: self.accelerator,
            limit: self.limit,
        }
    }

    /// Returns the same kernels with one layout, whose pair has the number 0.
    #[must_use]
    pub fn only(mut self, layout: u32) -> Self {
        for (variant, _) in self.cells.iter_mut() {
            for kernel in &mut variant.kernels {
                let image = kernel.images.get(layout as usize).cloned();
                kernel.images = image.into_iter().collect();
            }
        }
        self.seed = self.seed_of(layout);
        self
    }

    fn ready(&self, turn: &Turn) -> Result<&(ReadyVariant, Load), Stopped> {
        let ready = self.cells.get(turn.cell);
        ready.ok_or_else(|| Stopped::Cell("its kernels could not be made".into()))
    }

    /// Returns the seed of a pair's link order and guest.
    fn seed_of(&self, pair: u32) -> u64 {
        self.seed.wrapping_add(pair.into())
    }

    fn boot(&self, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
        let (variant, load) = self.ready(turn)?;
        let kernel = &variant.kernels[usize::from(side == Side::Experiment)];
        let seed = self.seed_of(turn.pair);
        let outcome = self
            .guests()
            .run(&GuestRun {
                kernel,
                layout: turn.pair as usize,
                load,
                seed,
                counted: true,
                alone: false,
            })
            .map_err(stopped)?;
        let figured = Figured {
            accelerator: self.accelerator,
            front_end: self.qemu.processor.is_some(),
            spans: self.spans,
        };
        let mut sample = sample(&outcome, figured, seed);
        if self.lock_profile && outcome.is_ok() {
            let load = profiled(load, self.accelerator);
            let outcome = self.guests().run(&GuestRun {
                kernel,
                layout: turn.pair as usize,
                load: &load,
                seed,
                counted: false,
                alone: false,
            });
            let outcome = outcome.map_err(stopped)?.map_err(|invalid| invalid.why);
            sample.detail[lock_report::KEY] =
                lock_report::detail(&load, outcome, is_model(self.accelerator));
        }
        Ok(sample)
    }
}

/// CPUs of a translated guest while its locks are profiled: what one CPU runs alone
/// never waits for another.
const PROFILED_CPUS: u64 = 2;

/// Returns the load whose run is profiled: in the translator on more CPUs, and with a
/// process for each.
#[must_use]
pub fn profiled(load: &Load, accelerator: Accelerator) -> Load {
    let least = match accelerator {
        Accelerator::Tcg => PROFILED_CPUS,
        Accelerator::Kvm => 1,
    };
    Load {
        vcpus: load.vcpus.max(least),
        processes: load.processes.max(least),
        profile: true,
        ..load.clone()
    }
}

/// Converts a command's error for the runner.
fn stopped(error: Error) -> Stopped {
    match error {
        Error::Interrupted(_) => Stopped::Interrupted,
        Error::Usage(why) | Error::Failed(why) => Stopped::Cell(why),
    }
}

/// Returns the sample of one boot; the whole outcome is kept beside the figures.
fn sample(outcome: &Outcome, figured: Figured, seed: u64) -> Sample {
    match outcome {
        Ok(measured) => Sample {
            values: values(measured, figured),
            detail: json!({"seed": seed, "measured": measured}),
            ..Sample::default()
        },
        Err(invalid) => Sample {
            detail: json!({"seed": seed, "console": invalid.console}),
            ..Sample::invalid(Invalid::Failed(invalid.why.clone()))
        },
    }
}

impl Backend for Kernels<'_> {
    /// Returns the experiment of the design for which the kernels were linked.
    fn experiment(&self, design: Design) -> Experiment {
        Experiment {
            design,
            ..self.prepared.clone()
        }
    }

    fn fingerprint(&self) -> Value {
        let cells = self.cells.fingerprint(|path| json!(path));
        let mut all = vec![
            json!(cells),
            json!(self.accelerator),
            json!(self.qemu.version),
            json!(plugin_hash(&self.qemu)),
        ];
        if let Some(processor) = &self.qemu.processor {
            all.push(json!([processor, self.spans]));
        }
        if self.qemu.next_line {
            all.push(json!("next-line"));
        }
        if self.lock_profile {
            all.push(json!(lock_report::KEY));
        }
        json!(all)
    }

    /// Returns nothing: counts of a model repeat exactly, and both sides of a pair have the
    /// same link order: no bias that an A/A run could show. Under KVM time is
    /// measured.
    fn bias_fingerprint(&self, cell: &Cell) -> Option<Value> {
        match self.accelerator {
            Accelerator::Tcg => None,
            Accelerator::Kvm => Some(json!([self.fingerprint(), cell.key])),
        }
    }

    fn pairing(&self) -> Pairing {
        match self.accelerator {
            Accelerator::Tcg => Pairing::Together,
            Accelerator::Kvm => Pairing::InTurn,
        }
    }

    fn run(&mut self, _: &Cell, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
        self.boot(turn, side)
    }

    fn run_together(&mut self, _: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.boot(turn, Side::Experiment));
            let baseline = self.boot(turn, Side::Baseline);
            let experiment = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok([baseline?, experiment?])
        })
    }

    /// Repeats the first cell once, and runs it without the plugin, so that a
    /// report says whether its counts repeat and what the plugin costs.
    fn end(&mut self, cell: &mut Cell) {
        let first = cell.pairs.first().and_then(|pair| measured(&pair.baseline));
        if let Some(first) = &first {
            cell.about = format!(
                "{}, each another link order and seed; per {}.",
                count(cell.pairs.len(), "pair"),
                first.unit
            );
        }
        if self.checked || self.accelerator != Accelerator::Tcg {
            return;
        }
        self.checked = true;
        let Some(index) = cell.pairs.first().map(|pair| pair.index) else {
            return;
        };
        let found = self
            .cells
            .iter()
            .find(|(variant, load)| crate::workload::cell_key(load, &variant.name) == cell.key);
        let Some((variant, load)) = found else { return };
        let run = GuestRun {
            kernel: &variant.kernels[0],
            layout: index as usize,
            load,
            seed: self.seed_of(index),
            counted: true,
            alone: false,
        };
        match Check::of(&self.guests(), &run, first, &cell.pairs) {
            Ok(check) => {
                let facts = check.facts().into_iter();
                cell.facts
                    .extend(facts.map(|(name, text)| (name.into(), text)));
                if let Some(why) = check.differs() {
                    cell.stopped = Some(why);
                }
            }
            Err(error) => cell
                .facts
                .push(("Repeated".into(), format!("not: {error}"))),
        }
    }
}

/// Returns a hash of the plugin, which decides what is counted.
fn plugin_hash(qemu: &Qemu) -> String {
    let bytes = std::fs::read(&qemu.plugin).unwrap_or_default();
    key([bytes.as_slice()])
}

/// Returns whether the figures of an accelerator are a model's.
pub(crate) fn is_model(accelerator: Accelerator) -> bool {
    source(accelerator) == locklab_harness::experiment::Source::Model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn a_translated_guest_is_profiled_on_two_cpus() {
        let load = Load::new(Workload::Fstat);
        let two = profiled(&load, Accelerator::Tcg);
        assert_eq!((two.vcpus, two.processes), (2, 2));
        assert!(two.plan().ends_with("vcpus 2\nprofile locks\n"));
        assert_eq!(profiled(&load, Accelerator::Kvm).vcpus, 1);
    }
}
