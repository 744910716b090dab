//! The workers of a run as threads of this process.

use super::run::{Ending, Order, PATIENCE, Stage, Stopped, conduct, wait_for_all};
use super::worker::{Desk, phase};
use crate::matrix::Invalid;
use locklab_host::topology::pin_to;
use locklab_locks::{NativePlatform, RawLock};
use std::sync::atomic::Ordering;

/// Runs them all.
///
/// # Errors
/// They could not be started, or are stuck in the lock; then they are still
/// there, and so must be all that they use.
pub(crate) fn run<L: RawLock<NativePlatform>>(
    order: &Order,
    desks: Vec<Desk<L>>,
    stage: &Stage,
) -> Result<Ending, Stopped> {
    let mut handles = Vec::with_capacity(desks.len());
    for desk in desks {
        let spawned = std::thread::Builder::new()
            .name(format!("worker {}", desk.index))
            .spawn(move || {
                pin_to(desk.cpu);
                desk.work();
            });
        match spawned {
            Ok(handle) => handles.push(handle),
            Err(e) => {
                stage.control.phase.store(phase::STOP, Ordering::Release);
                for handle in handles {
                    let _ = handle.join();
                }
                return Err(Stopped::Fatal(format!(
                    "cannot start {} threads: {e}; ask for fewer",
                    order.threads
                )));
            }
        }
    }
    // W2: Acquire pairs with the workers' Release.
    let all_left = || stage.roll.left.load(Ordering::Acquire) == order.threads;
    let ending = conduct(order, stage, || Ok(all_left()));
    if !wait_for_all(PATIENCE, all_left) {
        return Err(Stopped::Fatal(format!(
            "{} of {} threads did not come out of the lock within {} s: it is deadlocked, or \
             its waiters starve; nothing more can be measured in this process",
            order.threads - stage.roll.left.load(Ordering::Relaxed),
            order.threads,
            PATIENCE.as_secs()
        )));
    }
    for handle in handles {
        if handle.join().is_err() {
            return Ok(Ending::Badly(Invalid::Failed("a thread panicked".into())));
        }
    }
    Ok(ending)
}
