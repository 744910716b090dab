//! A sweep on a Slurm cluster, as the submitting command sees it: it submits the
//! open chunks, waits, and explains what is missing. Nothing is lost if the
//! command is killed.

use crate::collect::{Collected, Missing};
use crate::folder::Folder;
use crate::hardware::Fleet;
use crate::kernels::KernelSweep;
use crate::slurm::{self, Array, Options, Work};
use locklab_lab::progress::Progress;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two calls of `squeue`.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Submits the chunks that are neither done nor in the queue, and returns a
/// sentence about it.
///
/// # Errors
/// Those of [`slurm::queued`] and [`slurm::submit`].
pub(crate) fn submit_open(folder: &Folder, options: &Options) -> Result<String, String> {
    let all = folder.open_chunks();
    submit_rest(folder.path(), &all, "chunks", |open| {
        let array = chunks(folder, open);
        let job = slurm::submit(&array, options)?;
        Ok(format!(
            "Submitted job {}: {} of {} chunks, one task each.",
            job.id,
            open.len(),
            folder.chunks()
        ))
    })
}

/// The same for the layouts of a sweep of kernels, and for its builds, which
/// they wait for.
///
/// # Errors
/// Those of [`slurm::queued`] and [`slurm::submit`].
pub(crate) fn submit_layouts(sweep: &KernelSweep, options: &Options) -> Result<String, String> {
    let all = sweep.open_layouts();
    submit_rest(sweep.path(), &all, "layouts", |open| {
        let array = |work, tasks, after| Array {
            folder: sweep.path(),
            work,
            tasks,
            after,
        };
        let builds: Vec<usize> = (0..sweep.builds()).collect();
        let built = slurm::submit(&array(Work::Build, &builds, None), options)?;
        let job = slurm::submit(&array(Work::Layout, open, Some(&built.id)), options)?;
        Ok(format!(
            "Submitted job {}: {} builds; and job {} after it: {} of {} layouts; one task each.",
            built.id,
            builds.len(),
            job.id,
            open.len(),
            sweep.layouts()
        ))
    })
}

/// Submits those of the `open` tasks that are not in the queue.
fn submit_rest(
    folder: &Path,
    open: &[usize],
    noun: &str,
    submit: impl FnOnce(&[usize]) -> Result<String, String>,
) -> Result<String, String> {
    let queued = slurm::queued(folder)?;
    let is_queued = |task: &usize| queued.pending.contains(task) || queued.running.contains(task);
    let rest: Vec<usize> = open.iter().copied().filter(|t| !is_queued(t)).collect();
    if open.is_empty() {
        return Ok(format!("All {noun} are done."));
    }
    if rest.is_empty() {
        return Ok(format!(
            "The tasks of all {} open {noun} are in Slurm's queue; waiting for them.",
            open.len()
        ));
    }
    submit(&rest)
}

/// Chunks of a sweep of models as a job array.
fn chunks<'a>(folder: &'a Folder, tasks: &'a [usize]) -> Array<'a> {
    Array {
        folder: folder.path(),
        work: Work::Chunk,
        tasks,
        after: None,
    }
}

/// The same for the nodes of a sweep over machines.
///
/// # Errors
/// Those of [`slurm::queued_features`] and [`slurm::submit_node`]; nodes that were
/// submitted before the error continue.
pub(crate) fn submit_nodes(fleet: &Fleet, options: &Options) -> Result<String, String> {
    let queued = slurm::queued_features(fleet)?;
    let mut said = Vec::new();
    for feature in fleet.open_features() {
        if queued.contains(&feature) {
            said.push(format!("{feature} is in Slurm's queue"));
        } else {
            let job = slurm::submit_node(fleet, options, &feature)?;
            said.push(format!("{feature} is job {}", job.id));
        }
    }
    Ok(if said.is_empty() {
        "All nodes are done.".into()
    } else {
        format!("One node each: {}.", said.join(", "))
    })
}

/// Waits until no task of a sweep is in the queue; returns false if it was
/// interrupted. The tasks do not depend on this wait.
pub(crate) fn wait(folder: &Folder, interrupt: &AtomicBool, progress: &Progress) -> bool {
    until_queue_is_empty(folder.path(), interrupt, progress, || {
        (folder.done(), folder.plan.runs())
    })
}

/// The same for the layouts of a sweep of kernels.
pub(crate) fn wait_for_layouts(
    sweep: &KernelSweep,
    interrupt: &AtomicBool,
    progress: &Progress,
) -> bool {
    let of = sweep.layouts();
    until_queue_is_empty(sweep.path(), interrupt, progress, || {
        ((of - sweep.open_layouts().len()) as u64, of as u64)
    })
}

/// Waits for the tasks of the sweep in a folder; `done` counts what is done, and
/// of how much.
fn until_queue_is_empty(
    folder: &Path,
    interrupt: &AtomicBool,
    progress: &Progress,
    done: impl Fn() -> (u64, u64),
) -> bool {
    until_empty(interrupt, progress, || {
        let queued = slurm::queued(folder)?;
        let now = format!(
            "{} tasks run, {} wait",
            queued.running.len(),
            queued.pending.len()
        );
        let (done, of) = done();
        progress.set(done, of, &now);
        Ok(queued.is_empty())
    })
}

/// The same for the nodes of a sweep over machines.
pub(crate) fn wait_for_nodes(fleet: &Fleet, interrupt: &AtomicBool, progress: &Progress) -> bool {
    until_empty(interrupt, progress, || {
        let queued = slurm::queued_features(fleet)?;
        progress.set(fleet.done(), fleet.of(), &queued.join(", "));
        Ok(queued.is_empty())
    })
}

fn until_empty(
    interrupt: &AtomicBool,
    progress: &Progress,
    is_empty: impl Fn() -> Result<bool, String>,
) -> bool {
    let mut polled: Option<Instant> = None;
    let mut silent = false;
    while !interrupt.load(Ordering::Relaxed) {
        if polled.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
            match is_empty() {
                Ok(true) => return true,
                Ok(false) => silent = false,
                // The controller may be restarting, so its silence is no failure.
                Err(why) if !silent => {
                    progress.note(&format!("{why}. Asking again until it answers."));
                    silent = true;
                }
                Err(_) => {}
            }
            polled = Some(Instant::now());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Adds Slurm's state and the end of the log to each missing chunk.
pub(crate) fn explain(folder: &Folder, collected: &mut Collected) {
    // Each call is a request to the controller.
    const MOST_CALLS: usize = 20;
    for missing in collected.missing.iter_mut().take(MOST_CALLS) {
        if let Some(account) = slurm::account(folder.path(), missing.chunk) {
            missing.why += &format!("; Slurm says {account}");
        }
    }
    for missing in &mut collected.missing {
        missing.why += &format!("; {}", last_words(&folder.log(missing.chunk)));
    }
}

/// The last line of a task's log, or why there is none.
pub(crate) fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{} ends: {}", log.display(), line.trim()),
        None if log.exists() => format!("{} is empty", log.display()),
        None => format!(
            "there is no {}, which its node must be able to write",
            log.display()
        ),
    }
}

/// The command that submits only the missing chunks.
#[must_use]
pub(crate) fn again(folder: &Folder, options: &Options, missing: &[Missing]) -> String {
    let numbers: Vec<usize> = missing.iter().map(|missing| missing.chunk).collect();
    slurm::submission(&chunks(folder, &numbers), options).join(" ")
}
