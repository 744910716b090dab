//! `locklab rank --on MACHINE`: the machines drawn from the band are the
//! blocks.

use super::arguments::{RankSettings, lengths};
use super::locks::{Place, question};
use crate::cli::Common;
use crate::commands::matrix::workers;
use crate::comparing::{Comparing, ComparingArgs};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_lab::instrument::Instrument as _;
use locklab_lab::ranking::Question;
use locklab_lab::workload::Work;
use locklab_sim::{Machine, can_be_simulated};
use locklab_sim_instrument::{Ranked, Spec, default_threads, with_vcpus};
use std::process::ExitCode;

/// The default number of blocks: with fewer, nothing can be shown of fifty
/// locks.
const BLOCKS: u32 = 12;

/// Simulates a ranking.
///
/// # Errors
/// [`Error::Usage`] if a lock or a machine does not exist, or cannot do what is
/// asked; [`Error::Failed`] if the store fails, [`Error::Interrupted`] after
/// Ctrl-C.
pub(super) fn run(
    args: &RankSettings,
    comparing: &ComparingArgs,
    common: &Common,
    on: &str,
) -> Result<ExitCode, Error> {
    let machine = Machine::named(on)
        .map_err(|e| e.to_string())
        .and_then(|machine| with_vcpus(machine, args.modelled.vcpus))
        .map_err(Error::Usage)?;
    let threads = match (&args.threads, args.modelled.vcpus) {
        (Some(threads), _) => threads.distinct(),
        (None, Some(vcpus)) => vec![vcpus],
        (None, None) => default_threads(&machine),
    };
    let place = Place {
        threads: threads.iter().copied().max().unwrap_or(1),
        works: &|subject| match can_be_simulated(subject.info.name) {
            true => Ok(()),
            false => Err("it cannot be simulated".into()),
        },
    };
    let question = question(args, comparing.aa, &place)?;
    let design = args.design.design(BLOCKS, Family::FalseDiscovery, false)?;
    let spec = spec(args, threads, &question);
    let interrupt = interrupt::listen()?;
    let mut instrument = Ranked::new(spec, question, machine, design.seed, workers(), &interrupt)
        .map_err(Error::Usage)?;
    let experiment = instrument.experiment(design);
    Comparing {
        args: comparing,
        common,
        interrupt: &interrupt,
        time_limit: None,
        file: None,
    }
    .carry_out(&mut instrument, experiment)
}

fn spec(args: &RankSettings, threads: Vec<usize>, question: &Question) -> Spec {
    let lock = |i: usize| question.subjects[i].lock.clone();
    Spec {
        baseline: lock(0),
        experiment: lock(1),
        threads,
        critical: lengths(&args.critical, 1),
        non_critical: lengths(&args.non_critical, 32),
        unit: args.turns.unit(),
        locks: args.turns.locks(),
        mix: args.turns.mix(),
        work: Work::Units,
        latency: true,
        acquisitions: args.modelled.acquisitions,
        placement: args.modelled.placement,
        physical: args.modelled.physical,
    }
}
