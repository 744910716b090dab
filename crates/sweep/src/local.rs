//! A sweep on this machine's cores: each core takes the next chunk that is not
//! done, and carries it out as a task of a cluster would.

use crate::folder::Folder;
use crate::kernels::KernelSweep;
use crate::task::run_chunk;
use locklab_host::error::Error;
use locklab_lab::progress::Progress;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The result of carrying out a sweep here.
#[derive(Debug)]
pub struct Local {
    /// A sentence for each chunk that could not be carried out.
    pub failed: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// CPU time of this process and its children over the time of the cores that
    /// it was given, from 0 to 1; `None` if there was nothing to do.
    pub busy: Option<f64>,
}

/// Carries out all chunks that are not done, on `workers` cores.
#[must_use]
pub fn run(folder: &Folder, workers: usize, interrupt: &AtomicBool, progress: &Progress) -> Local {
    let chunks = folder.open_chunks();
    let before: u64 = folder.done();
    let open: u64 = chunks
        .iter()
        .filter_map(|chunk| folder.status(*chunk))
        .map(|status| status.done)
        .sum();
    // The task of an open chunk adds the runs that it finds in its shard.
    let counted = AtomicU64::new(before - open.min(before));
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let workers = workers.clamp(1, chunks.len().max(1));
    let running = AtomicUsize::new(workers);
    let (begun, worked) = (Instant::now(), processor_time());
    let go_on = || !interrupt.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while go_on() {
                    let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    if let Err(why) = run_chunk(folder, *chunk, go_on, &counted)
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push(format!("chunk {chunk}: {why}"));
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        // Acquire pairs with the release above: a worker that has gone has
        // counted all that it did.
        while running.load(Ordering::Acquire) > 0 {
            progress.set(counted.load(Ordering::Relaxed), folder.plan.runs(), "");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let all = begun.elapsed().as_secs_f64() * workers as f64;
    let worked = processor_time().saturating_sub(worked);
    Local {
        failed: failed.into_inner().unwrap_or_default(),
        interrupted: !go_on(),
        busy: (!chunks.is_empty()).then(|| (worked.as_secs_f64() / all).min(1.0)),
    }
}

/// Builds what is missing of a sweep of kernels, then measures the open layouts,
/// each on two cores: both guests of a layout run at the same time.
///
/// # Errors
/// Ctrl-C, or a layout could not be measured; the others were.
pub(crate) fn run_layouts(
    sweep: &KernelSweep,
    cores: usize,
    interrupt: &AtomicBool,
    quiet: bool,
) -> Result<(), Error> {
    let open = sweep.open_layouts();
    if open.is_empty() {
        return Ok(());
    }
    for build in 0..sweep.builds() {
        // What does not build is named again by each layout, and in the report.
        if let Err(why @ Error::Interrupted(_)) = sweep.build(build, interrupt, quiet) {
            return Err(why);
        }
    }
    let progress = Progress::new(open.len() as u64, "layouts", quiet);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..cores.div_ceil(2).min(open.len()) {
            scope.spawn(|| {
                while !interrupt.load(Ordering::Relaxed)
                    && let Some(layout) = open.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let (Err(why), Ok(mut failed)) =
                        (sweep.measure(*layout, interrupt), failed.lock())
                    {
                        failed.get_or_insert(why);
                    }
                    progress.advance(1);
                }
            });
        }
    });
    drop(progress);
    if interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted(
            "interrupted; the layouts that are done are stored, and the same command goes on"
                .into(),
        ));
    }
    let failed = failed.into_inner().unwrap_or_default();
    failed.map_or(Ok(()), Err)
}

/// CPU time of this process and of its finished children, in which locks of the
/// user's own are simulated.
fn processor_time() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .flat_map(|usage| [usage.user_time(), usage.system_time()])
        .map(|time| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0)))
        .sum()
}
