//! `locklab rank --on MACHINE`: the machines drawn from the band are the
//! blocks.

use super::arguments::{RankSettings, lengths};
use super::locks::{Place, question};
use crate::arguments::locks::workers;
use crate::arguments::{Common, ComparingArgs};
use crate::comparison::{Comparison, Options};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_lab::instrument::Instrument as _;
use locklab_lab::ranking::Question;
use locklab_lab::workload::Work;
use locklab_sim::{Machine, can_be_simulated};
use locklab_sim_instrument::{Ranked, Spec, default_threads, with_vcpus};
use std::sync::Arc;

/// The default number of blocks: with fewer, nothing can be shown of fifty
/// locks.
const BLOCKS: u32 = 12;

/// The comparison of many locks on the modelled machine `on`.
///
/// # Errors
/// [`Error::Usage`] if a lock or a machine does not exist, or cannot do what is
/// asked.
pub(super) fn comparison<'a>(
    args: &RankSettings,
    comparing: &'a ComparingArgs,
    common: &'a Common,
    on: &str,
) -> Result<Comparison<'a>, Error> {
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
    let (seed, stop) = (design.seed, Arc::clone(&interrupt));
    let instrument = Ranked::new(spec, question, machine, seed, workers(), stop);
    let instrument = instrument.map_err(Error::Usage)?;
    Ok(Comparison {
        experiment: instrument.experiment(design),
        instrument: Box::new(instrument),
        options: Options::new(comparing, common, &interrupt),
        note: None,
    })
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
