//! A sweep on this machine's cores: whichever is free takes the next task that
//! is not done, and carries it out as a node of a cluster would.

use crate::kinds::{Sweep, Worker};
use locklab_host::cpu_use;
use locklab_host::error::Error;
use locklab_lab::progress::Progress;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Carries out all tasks that are not done, on so many cores. Returns the CPU
/// time of this process and its children over the time of the cores that it was
/// given, from 0 to 1; `None` if there was nothing to do. A task that fails is
/// named; the others go on.
///
/// # Errors
/// Ctrl-C.
pub(crate) fn run<S: Sweep>(
    sweep: &S,
    cores: usize,
    interrupt: &Arc<AtomicBool>,
    quiet: bool,
) -> Result<Option<f64>, Error> {
    let (folder, all) = (sweep.folder(), sweep.tasks());
    let open = folder.open_tasks(&all);
    if open.is_empty() {
        return Ok(None);
    }
    // The task of an open one adds what it finds in its shard.
    let counted = AtomicU64::new(folder.done(&all).saturating_sub(folder.done(&open)));
    let worker = Worker {
        interrupt,
        counted: &counted,
        quiet,
    };
    for task in sweep.before() {
        // What fails here is named again by each task that needs it.
        let _ = sweep.carry_out(&task, &worker);
    }
    let progress = Progress::new(0, S::NOUNS.1, quiet || S::SHOWS_PROGRESS);
    let workers = cores.div_ceil(open[0].cores()).clamp(1, open.len());
    let (next, running) = (AtomicUsize::new(0), AtomicUsize::new(workers));
    let failed = Mutex::new(Vec::new());
    let go_on = || !interrupt.load(Ordering::Relaxed);
    let (begun, worked) = (Instant::now(), cpu_use::own());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while go_on()
                    && let Some(task) = open.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let (Err(why), Ok(mut failed)) =
                        (sweep.carry_out(task, &worker), failed.lock())
                    {
                        failed.push(format!("{task}: {why}"));
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        // Acquire pairs with the release above: a worker that has gone has
        // counted all that it did.
        while running.load(Ordering::Acquire) > 0 {
            progress.set(counted.load(Ordering::Relaxed), sweep.units(), "");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let all = begun.elapsed().as_secs_f64() * (workers * open[0].cores()) as f64;
    let worked = cpu_use::own().saturating_sub(worked);
    for why in failed.into_inner().unwrap_or_default() {
        progress.note(&format!("locklab: {why}"));
    }
    if !go_on() {
        return Err(Error::Interrupted(
            "interrupted; what was run is stored, and the same command continues".into(),
        ));
    }
    Ok(Some((worked.as_secs_f64() / all).min(1.0)))
}
