//! Starts the workers of a block, waits for them, and ensures that none is
//! left: threads of this process, or processes that share memory as in report
//! 4.
//!
//! Processes are forked and not executed anew: they inherit the block at the
//! same address. So a child must do nothing that another thread of the process
//! may have been in the middle of at the fork: it allocates nothing, prints
//! nothing, and ends by `_exit`. A child that dies never hangs the parent: the
//! others are killed if they wait for a lock that the dead one held.

use crate::block::Block;
use crate::crash::{Watch, park};
use crate::latency::Latencies;
use crate::rendezvous::wait;
use locklab_harness::backend::Stopped;
use locklab_harness::experiment::Invalid;
use locklab_host::child;
use locklab_host::clock::{self, Clocks, Fault, nanos};
use locklab_host::environment;
use locklab_host::topology::pin_to;
use locklab_locks::Threads;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sets how long a block may go without a slice: with more workers than CPUs and a fair
/// lock, each turn costs a time slice of every worker.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says how a block ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All workers have left.
    Well,
    /// The block is void, for this reason, and no worker is left.
    Badly(Invalid),
    /// The block is void, because the code of a lock is faulty. Its workers are
    /// gone, or parked with their memory.
    Fault(LockFault),
}

/// A fault of a lock that ended its block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LockFault {
    /// The lock, by its number in the block.
    pub(crate) side: usize,
    /// Holds what it did, in one sentence.
    pub(crate) why: String,
}

/// Whoever carries blocks out: the workers of this machine, or, in tests, a
/// machine of known behaviour with a clock of its own.
pub(crate) trait Workers: Send {
    /// Runs a block to its end.
    ///
    /// # Errors
    /// If the workers cannot be started.
    fn run(&mut self, block: &Arc<Block>) -> Result<Ending, Stopped>;

    /// Returns the time, by which a run keeps its limit.
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// The workers of this machine.
pub(crate) struct OfThisMachine {
    /// Processes that share memory instead of threads.
    pub(crate) processes: bool,
    /// Says whether a CPU quota may stop them.
    pub(crate) quota: bool,
    /// Ends a block soon when it is set.
    pub(crate) interrupt: Arc<AtomicBool>,
}

impl Workers for OfThisMachine {
    fn run(&mut self, block: &Arc<Block>) -> Result<Ending, Stopped> {
        let clocks = Clocks::read();
        let throttled = || self.quota.then(environment::throttled).flatten();
        let before = throttled();
        let ending = if self.processes {
            run_processes(block, &self.interrupt)?
        } else {
            run_threads(block, &self.interrupt)?
        };
        if let Ending::Fault(_) = ending {
            return Ok(ending);
        }
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        if let Some((before, after)) = before.zip(throttled()) {
            block.note_throttled(after.saturating_sub(before));
        }
        Ok(match Clocks::read().fault_since(&clocks) {
            None => ending,
            Some(fault @ Fault::WentBack) => Ending::Badly(Invalid::Failed(fault.to_string())),
            Some(fault) => Ending::Badly(Invalid::Disturbed(fault.to_string())),
        })
    }
}

fn latencies(block: &Block) -> Option<Latencies> {
    let request = &block.request;
    let sides = request.codes.len();
    request
        .latency
        .then(|| Latencies::new(sides, request.histograms()))
}

fn cpu_of(block: &Block, worker: usize) -> usize {
    block.request.cpus[worker % block.request.cpus.len()]
}

/// Says why waiting ended.
#[derive(PartialEq, Eq)]
enum Waited {
    AllLeft,
    Stuck,
    Failed(String),
}

/// Waits until all workers have left, no progress has been made for too long,
/// or `check` finds one that failed. Sleeps while it waits.
fn wait_for_all(
    block: &Block,
    interrupt: &AtomicBool,
    mut check: impl FnMut() -> Result<(), String>,
) -> Waited {
    let control = block.control();
    let patience = nanos(PATIENCE) + 10 * block.request.longest();
    let (mut progress, mut since) = (u32::MAX, clock::now());
    loop {
        // B4: Acquire pairs with the workers' Release.
        let left = control.left.load(Ordering::Acquire);
        if left as usize >= block.request.threads {
            return Waited::AllLeft;
        }
        if let Err(failed) = check() {
            return Waited::Failed(failed);
        }
        if interrupt.load(Ordering::Relaxed) {
            control.stop.store(true, Ordering::Relaxed);
        }
        let now = control.progress.load(Ordering::Relaxed);
        if now != progress {
            (progress, since) = (now, clock::now());
        } else if clock::now() - since > patience {
            return Waited::Stuck;
        }
        wait(&control.left, left, Some(Duration::from_millis(50)));
    }
}

fn run_threads(block: &Arc<Block>, interrupt: &AtomicBool) -> Result<Ending, Stopped> {
    let threads = block.request.threads;
    let watch = Watch::of(&block.control().crashed);
    let mut handles = Vec::with_capacity(threads);
    for worker in 0..threads {
        // Stuck threads keep the block.
        let (own, latencies) = (Arc::clone(block), latencies(block));
        let spawned = std::thread::Builder::new()
            .name(format!("worker {worker}"))
            .spawn(move || {
                pin_to(cpu_of(&own, worker));
                own.work(worker, latencies);
            });
        match spawned {
            Ok(handle) => handles.push(handle),
            Err(e) => {
                block.abandon();
                for handle in handles {
                    let _ = handle.join();
                }
                return Err(Stopped::Fatal(format!(
                    "cannot start {threads} threads: {e}; ask for fewer"
                )));
            }
        }
    }
    let waited = wait_for_all(block, interrupt, || watch.crash().map_or(Ok(()), Err));
    let why = match waited {
        Waited::AllLeft => None,
        Waited::Failed(why) => Some(why),
        Waited::Stuck => Some(format!(
            "{} of {threads} threads did not come out of the lock within {} s: it is deadlocked, or \
             its waiters starve",
            threads - block.control().left.load(Ordering::Relaxed) as usize,
            PATIENCE.as_secs()
        )),
    };
    if let Some(why) = why {
        park(handles);
        return Ok(Ending::Fault(LockFault {
            side: block.side(),
            why,
        }));
    }
    for handle in handles {
        if handle.join().is_err() {
            return Ok(Ending::Badly(Invalid::Failed("a thread panicked".into())));
        }
    }
    Ok(Ending::Well)
}

/// Living children, and how the others ended.
struct Children {
    alive: Vec<Pid>,
    failed: Option<String>,
}

impl Children {
    /// Reaps ended children; returns how the first that failed ended.
    fn reap(&mut self) -> Result<(), String> {
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
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Waits until all have ended, for at most `patience`.
    fn bury(&mut self, patience: Duration) {
        let started = clock::now();
        while !self.alive.is_empty() && clock::now() - started < nanos(patience) {
            let _ = self.reap();
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn kill(&mut self) {
        for pid in &self.alive {
            // It may have ended just now.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        let failed = self.failed.take();
        self.bury(Duration::from_secs(5));
        self.failed = failed;
    }
}

fn run_processes(block: &Arc<Block>, interrupt: &AtomicBool) -> Result<Ending, Stopped> {
    let threads = block.request.threads;
    let mut children = Children {
        alive: Vec::with_capacity(threads),
        failed: None,
    };
    for worker in 0..threads {
        let latencies = latencies(block);
        let work = || {
            // SAFETY: each child has its own index, and its only thread has taken
            // no number before.
            unsafe { Threads::assume_cpu(worker) };
            pin_to(cpu_of(block, worker));
            block.work(worker, latencies);
            0
        };
        // SAFETY: the child keeps to what this module's head says.
        match unsafe { child::start(None, work) } {
            Ok(child) => children.alive.push(child),
            Err(e) => {
                block.abandon();
                children.kill();
                return Err(Stopped::Fatal(format!(
                    "cannot start {threads} processes: {e}; ask for fewer"
                )));
            }
        }
    }
    let waited = wait_for_all(block, interrupt, || children.reap());
    if waited == Waited::AllLeft {
        children.bury(Duration::from_secs(1));
    }
    // Workers that wait for a dead one would wait for ever.
    children.kill();
    Ok(match waited {
        Waited::Failed(how) => Ending::Badly(Invalid::Failed(how)),
        Waited::Stuck => Ending::Badly(Invalid::Failed(format!(
            "processes did not come out of the lock within {} s and were killed",
            PATIENCE.as_secs()
        ))),
        Waited::AllLeft => match children.failed {
            Some(how) => Ending::Badly(Invalid::Failed(how)),
            None => Ending::Well,
        },
    })
}
