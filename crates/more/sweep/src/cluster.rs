//! A sweep on a Slurm cluster, as the submitting command sees it: it submits the
//! open tasks, waits, and explains what is missing. Nothing is lost if the
//! command is killed.

use crate::folder::Folder;
use crate::kinds::Sweep;
use crate::slurm::{self, Options};
use crate::task::{Missing, Task};
use locklab_host::error::Error;
use locklab_lab::progress::Progress;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two calls of `squeue`.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Submits the tasks that are neither done nor in the queue, and returns a
/// sentence about it.
///
/// # Errors
/// Those of [`slurm::queued`] and [`slurm::submit`]; jobs that were submitted
/// before the error continue.
pub(crate) fn submit_open<S: Sweep>(sweep: &S, options: &Options) -> Result<String, Error> {
    let (folder, all, noun) = (sweep.folder(), sweep.tasks(), S::NOUNS.0);
    let queued = slurm::queued(folder, &all)?;
    let open = folder.open_tasks(&all);
    let rest: Vec<Task> = open.iter().filter(|t| !queued.has(t)).cloned().collect();
    if open.is_empty() {
        return Ok(format!("All {noun}s are done."));
    }
    if rest.is_empty() {
        return Ok(format!(
            "The tasks of all {} open {noun}s are in Slurm's queue; waiting for them.",
            open.len()
        ));
    }
    let (mut jobs, mut after) = (Vec::new(), None);
    for batch in slurm::batches(&sweep.before()) {
        let job = slurm::submit(folder, batch, None, options)?;
        let kind = batch[0].words().0;
        jobs.push(format!("job {}: {} {kind}s, then", job.id, batch.len()));
        after = Some(job.id);
    }
    for batch in slurm::batches(&rest) {
        let job = slurm::submit(folder, batch, after.as_deref(), options)?;
        jobs.push(match &batch[0] {
            Task::Node(feature) => format!("job {}: {feature}", job.id),
            _ => format!("job {}: {} of {} {noun}s", job.id, batch.len(), all.len()),
        });
    }
    Ok(format!("Submitted {}; one task each.", jobs.join("; ")).replace("then; ", "then "))
}

/// Waits until no task of a sweep is in the queue; returns false if it was
/// interrupted. The tasks do not depend on this wait.
pub(crate) fn wait<S: Sweep>(sweep: &S, interrupt: &AtomicBool, progress: &Progress) -> bool {
    let (folder, tasks) = (sweep.folder(), sweep.tasks());
    let is_empty = || -> Result<bool, Error> {
        let queued = slurm::queued(folder, &tasks)?;
        let (running, pending) = (queued.running.len(), queued.pending.len());
        let now = format!("{running} tasks run, {pending} wait");
        progress.set(folder.done(&tasks), sweep.units(), &now);
        Ok(queued.is_empty())
    };
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

/// Adds Slurm's state and the end of the log to what is missing of each task.
pub(crate) fn explain(folder: &Folder, missing: &mut [Missing]) {
    // Each call is a request to the controller.
    const MOST_CALLS: usize = 20;
    for (number, missing) in missing.iter_mut().enumerate() {
        if number < MOST_CALLS
            && let Some(account) = slurm::account(folder, &missing.task)
        {
            missing.why += &format!("; Slurm says {account}");
        }
        missing.why += &format!("; {}", last_words(&folder.log(&missing.task)));
    }
}

/// Returns the last line of a task's log, or why there is none.
fn last_words(log: &Path) -> String {
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

/// Returns the command that submits only the tasks of which something is missing.
pub(crate) fn again(folder: &Folder, options: &Options, missing: &[Missing]) -> String {
    let tasks: Vec<Task> = missing.iter().map(|missing| missing.task.clone()).collect();
    let jobs = slurm::batches(&tasks)
        .map(|batch| slurm::submission(folder, batch, None, options).join(" "));
    jobs.collect::<Vec<_>>().join("; ")
}
