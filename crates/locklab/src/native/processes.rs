//! The workers of a run as processes that share memory, as in report 4.
//!
//! Forked and not executed anew: they inherit the arena at the same address
//! and start in a fraction of a millisecond. So a child must do nothing that
//! another thread of ours may have been in the middle of at the fork: it
//! allocates nothing, prints nothing, and leaves by `_exit`. A child that
//! dies never hangs the parent: the others are told to stop and, if they
//! wait for a lock that the dead one held, killed.

use super::run::{Ending, Order, PATIENCE, Stage, Stopped, conduct, wait_for_all};
use super::worker::{Desk, phase};
use crate::matrix::Invalid;
use locklab_host::topology::pin_to;
use locklab_locks::{NativePlatform, RawLock, Threads};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getppid};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Children that live, and what became of those that do not.
struct Children {
    alive: Vec<Pid>,
    failed: Option<String>,
}

impl Children {
    /// Buries the dead.
    fn look(&mut self) {
        let failed = &mut self.failed;
        self.alive.retain(|pid| {
            let how = match waitpid(*pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(WaitStatus::Exited(_, 0)) => return false,
                Ok(WaitStatus::Exited(_, code)) => format!("a process ended with status {code}"),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    format!("a process was killed by {signal}")
                }
                Ok(_) => return true,
                Err(e) => format!("a process was lost: {e}"),
            };
            failed.get_or_insert(how);
            false
        });
    }

    fn kill(&mut self) {
        for pid in &self.alive {
            // It may have ended just now.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        wait_for_all(Duration::from_secs(5), || {
            self.look();
            self.alive.is_empty()
        });
    }
}

/// Runs them all.
///
/// # Errors
/// They could not be started. None is left.
pub(crate) fn run<L: RawLock<NativePlatform>>(
    order: &Order,
    desks: Vec<Desk<L>>,
    stage: &Stage,
) -> Result<Ending, Stopped> {
    let parent = nix::unistd::getpid();
    let mut children = Children {
        alive: Vec::with_capacity(desks.len()),
        failed: None,
    };
    for desk in desks {
        // SAFETY: the child keeps to what this module's head says.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => child(desk, parent),
            Ok(ForkResult::Parent { child }) => children.alive.push(child),
            Err(e) => {
                stage.control.phase.store(phase::STOP, Ordering::Release);
                children.kill();
                return Err(Stopped::Fatal(format!(
                    "cannot start {} processes: {e}; ask for fewer",
                    order.threads
                )));
            }
        }
    }
    let ending = conduct(order, stage, || {
        children.look();
        match &children.failed {
            Some(how) => Err(how.clone()),
            None => Ok(children.alive.is_empty()),
        }
    });
    let patience = match ending {
        // Those who wait for the dead wait for ever.
        Ending::Badly(Invalid::Failed(_)) => Duration::from_secs(1),
        Ending::Well | Ending::Badly(_) => PATIENCE,
    };
    let left = wait_for_all(patience, || {
        children.look();
        children.alive.is_empty() || children.failed.is_some()
    });
    if !children.alive.is_empty() {
        wait_for_all(Duration::from_secs(1), || {
            children.look();
            children.alive.is_empty()
        });
        children.kill();
    }
    Ok(match (children.failed, ending) {
        // Killed by us, after it had failed or had not come out.
        (_, Ending::Badly(how)) => Ending::Badly(how),
        (Some(how), _) if left => Ending::Badly(Invalid::Failed(how)),
        (_, Ending::Well) if !left => Ending::Badly(Invalid::Failed(format!(
            "processes did not come out of the lock within {} s and were killed",
            PATIENCE.as_secs()
        ))),
        (_, ending) => ending,
    })
}

/// The life of a child.
fn child<L: RawLock<NativePlatform>>(desk: Desk<L>, parent: Pid) -> ! {
    // So that nobody spins for a parent that is gone; it may be gone already.
    let _ = set_pdeathsig(Signal::SIGKILL);
    if getppid() != parent {
        // SAFETY: ends this process only.
        unsafe { libc::_exit(0) };
    }
    let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: each child has its own index, and its only thread has taken
        // no number before.
        unsafe { Threads::assume_cpu(desk.index) };
        pin_to(desk.cpu);
        desk.work();
    }));
    // SAFETY: as above; without the parent's exit handlers and buffers.
    unsafe { libc::_exit(i32::from(status.is_err())) }
}
