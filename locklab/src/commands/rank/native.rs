//! `locklab rank` on this machine: all locks of a point share a block.

use super::arguments::{NO_RETRY, RankSettings};
use super::locks::{Place, question};
use super::replayed;
use crate::arguments::{Common, ComparingArgs};
use crate::comparison::{Comparison, Options};
use locklab_harness::settings::Limit;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_judge::Family;
use locklab_native::{Native, default_threads};
use std::sync::Arc;
use std::time::Duration;

/// The default number of blocks. Many short ones: the address of a block and the
/// place of its CPUs are worth more than the slices within it scatter.
const BLOCKS: u32 = 72;

/// Returns the comparison of many locks on this machine.
///
/// # Errors
/// [`Error::Usage`] if a lock does not exist or an option cannot be carried
/// out, [`Error::Failed`] if the machine fails.
pub(super) fn comparison<'a>(
    args: &RankSettings,
    comparing: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    let native = Native::probe();
    let cpus = args.locks.cpus(native.topology.order.len());
    let cells = args.cells_on(cpus, || default_threads(cpus));
    let mut spec = args.locks.spec_here(["", ""], cells, Duration::ZERO);
    let replay = match &args.wanted.replay {
        Some(file) => {
            let replay = replayed::replay(file)?;
            spec.cells.threads = replayed::workers(args, &replay)?;
            Some(replay)
        }
        None => None,
    };
    let place = Place {
        threads: spec.cells.most_threads(),
        works: &|subject| match (spec.processes, subject.info.shared_memory) {
            (true, false) => Err("it does not work between processes".into()),
            _ => subject.check_measured().map_err(|e| e.to_string()),
        },
    };
    let mut question = question(args, comparing.aa, &place)?;
    question.early = true;
    let locks = question.subjects.len();
    let seconds = (2 * locks).clamp(10, 60) as u64;
    spec.time = Duration::from_secs(args.locks.here.time.map_or(seconds, u64::from));
    spec.baseline = question.subjects[0].lock.clone();
    spec.experiment = question.subjects[1].lock.clone();
    let plan = replayed::plan(spec, replay, &native)?;
    // Of many copies none has a bias to be stored.
    let design =
        args.locks
            .design
            .without_retry(NO_RETRY)?
            .design(BLOCKS, Family::FalseDiscovery, false)?;
    let interrupt = interrupt::listen()?;
    let (backend, experiment) = native.ranking(question, plan, design, Arc::clone(&interrupt))?;
    let mut options = Options::new(comparing, common, &interrupt);
    options.time_limit = args.locks.here.time_limit.map(Limit::duration);
    Ok(Comparison {
        backend: Box::new(backend),
        experiment,
        options,
        note: None,
    })
}
