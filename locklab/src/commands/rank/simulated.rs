//! `locklab rank --on MACHINE`: the machines drawn from the band are the
//! blocks.

use super::arguments::{NO_RETRY, RankSettings};
use super::locks::{Place, question};
use crate::arguments::{Common, ComparingArgs, workers};
use crate::comparison::{Comparison, Options};
use locklab_harness::backend::Backend as _;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_published::modelled::{Ranked, with_vcpus};
use locklab_sim::{Machine, can_be_simulated};
use locklab_workload::Cells;
use std::sync::Arc;

/// The default number of blocks: with fewer, nothing can be shown of fifty
/// locks.
const BLOCKS: u32 = 12;

/// Returns the comparison of many locks on the modelled machine `on`.
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
    let machine = with_vcpus(Machine::named(on)?, args.locks.modelled.vcpus)?;
    let cells = Cells {
        latency: true,
        ..args.cells_on(machine.cpus(), || args.locks.threads_on(&machine))
    };
    let place = Place {
        threads: cells.most_threads(),
        works: &|subject| match can_be_simulated(subject.info.name) {
            true => Ok(()),
            false => Err("it cannot be simulated".into()),
        },
    };
    let question = question(args, comparing.aa, &place)?;
    let design =
        args.locks
            .design
            .without_retry(NO_RETRY)?
            .design(BLOCKS, Family::FalseDiscovery, false)?;
    let names = [0, 1].map(|i| question.subjects[i].lock.as_str());
    let spec = args.locks.spec_modelled(names, cells);
    let interrupt = interrupt::listen()?;
    let (seed, stop) = (design.seed, Arc::clone(&interrupt));
    let backend = Ranked::new(spec, question, machine, seed, workers(), stop)?;
    Ok(Comparison {
        experiment: backend.experiment(design),
        backend: Box::new(backend),
        options: Options::new(comparing, common, &interrupt),
        note: None,
    })
}
