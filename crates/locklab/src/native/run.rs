//! One run of one lock: makes the memory, starts the workers, tells them
//! when, and turns what they leave behind into a [`Run`].
//!
//! The controller sleeps while the workers work. It wakes twice in a run, at
//! the two ends of the measured time, so it takes no CPU from them between.

use super::arena::{Arena, room};
use super::timeline::Windows;
use super::work::{Critical, Section};
use super::worker::{Control, Desk, Roll, Tally, phase};
use super::{processes, threads};
use crate::matrix::{Invalid, Latency, Run, Work};
use hdrhistogram::Histogram;
use locklab_host::clock::{self, Clocks, nanos};
use locklab_locks::catalogue::Visitor;
use locklab_locks::{NativePlatform, RawLock};
use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long workers may take to come, and to leave: with more threads than
/// CPUs and a fair lock each turn costs a time slice of every thread.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One run, as the machine sees it.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// Workers.
    pub threads: usize,
    /// Processes instead of threads.
    pub processes: bool,
    /// The CPUs to pin them to, round and round.
    pub cpus: &'a [usize],
    /// What the critical section is.
    pub work: Work,
    /// Its units.
    pub critical: u64,
    /// Units outside it.
    pub non_critical: u64,
    /// A file for each worker, for [`Work::Fstat`].
    pub files: &'a [RawFd],
    /// Left out at the start.
    pub warm_up: Duration,
    /// Measured.
    pub run: Duration,
    /// Whether acquisitions are timed.
    pub latency: bool,
    /// Of a look at the clock, in ns.
    pub clock_cost: f64,
    /// Set by a signal: stop soon.
    pub interrupt: &'a AtomicBool,
}

/// Why there is no [`Run`] at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A signal came.
    Interrupted,
    /// The run could not be made, or its threads are stuck and still there:
    /// nothing can be measured after it.
    Fatal(String),
}

/// How the workers of a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All of them left.
    Well,
    /// The run is void, for this reason, and no worker is left.
    Badly(Invalid),
}

impl Visitor<NativePlatform> for &Order<'_> {
    type Output = Result<Run, Stopped>;

    fn visit<L: RawLock<NativePlatform>>(self) -> Self::Output {
        let windows = Windows {
            length: WINDOW,
            count: usize::try_from(nanos(self.run) / WINDOW)
                .unwrap_or(usize::MAX)
                .min(MOST_WINDOWS),
        };
        let mut bench = Bench::<L>::new(self, windows).map_err(Stopped::Fatal)?;
        let desks = bench.desks(self);
        let ending = if self.processes {
            processes::run(self, desks, &bench.stage())?
        } else {
            match threads::run(self, desks, &bench.stage()) {
                Ok(ending) => ending,
                Err(stopped) => {
                    // Its threads may still be in there.
                    std::mem::forget(bench);
                    return Err(stopped);
                }
            }
        };
        bench.result(self, ending)
    }
}

/// Length of a window for fairness, in ns.
const WINDOW: u64 = 1_000_000;
/// A run of more windows than this has its later ones left out.
const MOST_WINDOWS: usize = 60_000;
/// Distinct latencies kept of a worker: all that two significant digits
/// from 1 ns to 100 s can have.
const LATENCIES: usize = 4096;

fn new_histogram() -> Histogram<u64> {
    // 1 ns to 100 s in steps of 1 %. The arguments are valid, so this
    // cannot fail; an automatic one would do as well.
    Histogram::new_with_bounds(1, 100_000_000_000, 2).unwrap_or_else(|_| {
        Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits are legal"))
    })
}

/// Where a run takes place.
struct Bench<L: RawLock<NativePlatform>> {
    lock: NonNull<L>,
    shared: NonNull<Section>,
    control: NonNull<Control>,
    roll: NonNull<Roll>,
    seats: Vec<Seat<L>>,
    windows: Windows,
    /// Last: the rest lies in it.
    _arena: Arena,
}

/// What belongs to one worker.
struct Seat<L: RawLock<NativePlatform>> {
    ctx: NonNull<L::Ctx>,
    private: NonNull<Section>,
    tally: NonNull<UnsafeCell<Tally>>,
    turns_at: NonNull<u64>,
    latencies: Option<NonNull<u64>>,
}

/// The two words between controller and workers.
pub(crate) struct Stage<'a> {
    /// What the workers are told.
    pub(crate) control: &'a Control,
    /// What they tell.
    pub(crate) roll: &'a Roll,
}

impl<L: RawLock<NativePlatform>> Bench<L> {
    fn new(order: &Order, windows: Windows) -> Result<Self, String> {
        let latencies = if order.latency { 2 * LATENCIES } else { 0 };
        let seat = room(size_of::<L::Ctx>().max(1))
            + room(size_of::<Section>())
            + room(size_of::<Tally>())
            + room(8 * windows.count.max(1))
            + room(8 * latencies.max(1));
        let stage = room(size_of::<L>().max(1))
            + room(size_of::<Section>())
            + room(size_of::<Control>())
            + room(size_of::<Roll>());
        let mut arena = Arena::new(stage + seat * order.threads)?;
        Ok(Self {
            lock: arena.put(L::default()),
            shared: arena.put(Section::default()),
            control: arena.put(Control::default()),
            roll: arena.put(Roll::default()),
            seats: (0..order.threads)
                .map(|_| Seat {
                    ctx: arena.put(L::Ctx::default()),
                    private: arena.put(Section::default()),
                    tally: arena.put(UnsafeCell::default()),
                    turns_at: arena.zeroed(windows.count),
                    latencies: (latencies > 0).then(|| arena.zeroed(latencies)),
                })
                .collect(),
            windows,
            _arena: arena,
        })
    }

    fn stage(&self) -> Stage<'_> {
        // SAFETY: in our arena; only atomics inside.
        unsafe {
            Stage {
                control: self.control.as_ref(),
                roll: self.roll.as_ref(),
            }
        }
    }

    fn desks(&mut self, order: &Order) -> Vec<Desk<L>> {
        self.seats
            .iter()
            .enumerate()
            .map(|(index, seat)| Desk {
                index,
                cpu: order.cpus[index % order.cpus.len()],
                lock: self.lock,
                ctx: seat.ctx,
                shared: self.shared,
                private: seat.private,
                control: self.control,
                roll: self.roll,
                tally: seat.tally,
                turns_at: seat.turns_at,
                windows: self.windows,
                latencies: seat.latencies.map(|place| (place, LATENCIES)),
                histogram: order.latency.then(new_histogram),
                critical: match order.work {
                    Work::Units => Critical::Units(order.critical),
                    Work::Fstat => Critical::Fstat(order.files[index]),
                },
                non_critical: order.non_critical,
                clock_cost: order.clock_cost,
            })
            .collect()
    }

    /// After all workers have gone.
    fn result(self, order: &Order, ending: Ending) -> Result<Run, Stopped> {
        if order.interrupt.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        if let Ending::Badly(reason) = ending {
            return Ok(void(order, reason));
        }
        let (control, shared) = (self.stage().control, self.shared);
        let took = control
            .end
            .load(Ordering::Relaxed)
            .saturating_sub(control.start.load(Ordering::Relaxed)) as f64
            * 1e-9;
        // SAFETY: all workers have left (W2), so their tallies, windows and
        // latencies are ours to read; each was given this much room.
        let (tallies, windows, histogram) = unsafe {
            let tallies: Vec<Tally> = self
                .seats
                .iter()
                .map(|seat| *seat.tally.as_ref().get())
                .collect();
            let windows: Vec<&[u64]> = self
                .seats
                .iter()
                .map(|seat| std::slice::from_raw_parts(seat.turns_at.as_ptr(), self.windows.count))
                .collect();
            let mut histogram = new_histogram();
            for (seat, tally) in self.seats.iter().zip(&tallies) {
                let Some(place) = seat.latencies else {
                    continue;
                };
                for i in 0..tally.latency_pairs {
                    let _ =
                        histogram.record_n(place.add(2 * i).read(), place.add(2 * i + 1).read());
                }
            }
            (tallies, windows, histogram)
        };
        // SAFETY: as above.
        let turns_kept = unsafe { shared.as_ref() }.turns();
        let mut run = summarize(&tallies, &windows, took, order);
        run.latency = (order.latency && !histogram.is_empty()).then(|| Latency {
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        });
        let turns_ever: u64 = tallies.iter().map(|t| t.turns_ever).sum();
        let failed: u64 = tallies.iter().map(|t| t.failed_calls).sum();
        if turns_kept != turns_ever {
            run.invalid = Some(Invalid::CheckFailed(format!(
                "mutual exclusion was lost: of {turns_ever} increments under the lock \
                 {turns_kept} were kept"
            )));
        } else if failed > 0 {
            run.invalid = Some(Invalid::CheckFailed(format!(
                "{failed} calls of fstat failed"
            )));
        } else if took <= 0.0 {
            run.invalid = Some(Invalid::Disturbed("no time passed".into()));
        } else if run.per_thread.iter().all(|turns| *turns == 0)
            && run.cpu_share.is_some_and(|share| share < 0.01)
        {
            // Not what the lock did: it was not asked.
            run.invalid = Some(Invalid::Disturbed(
                "no thread had a CPU in the measured time: the machine is overloaded".into(),
            ));
        }
        // SAFETY: idle, ours, and dropped once; contexts and lock together.
        unsafe {
            for seat in &self.seats {
                seat.ctx.drop_in_place();
            }
            self.lock.drop_in_place();
        }
        Ok(run)
    }
}

/// The figures of a run from those of its workers.
fn summarize(tallies: &[Tally], windows: &[&[u64]], took: f64, order: &Order) -> Run {
    let per_thread: Vec<u64> = tallies.iter().map(|t| t.turns).collect();
    let turns: u64 = per_thread.iter().sum();
    let handoffs: u64 = tallies.iter().map(|t| t.handoffs).sum();
    let cpu: u64 = tallies.iter().map(|t| t.cpu_ns).sum();
    let at_once = order.threads.min(order.cpus.len());
    let (jain_1ms, min_over_max_1ms) = window_medians(windows);
    Run {
        started: None,
        ops_per_s: turns as f64 / took.max(1e-9),
        handoffs_per_s: handoffs as f64 / took.max(1e-9),
        // A row ends with a handoff, the last one with the run.
        streak_mean: turns as f64 / handoffs.max(1) as f64,
        streak_max: tallies.iter().map(|t| t.streak_max).max().unwrap_or(0),
        jain: jain(&per_thread),
        min_over_max: min_over_max(&per_thread),
        per_thread,
        jain_1ms,
        min_over_max_1ms,
        latency: None,
        round_trip: None,
        cpu_share: (took > 0.0).then(|| (cpu as f64 * 1e-9 / (took * at_once as f64)).min(1.0)),
        invalid: None,
    }
}

/// A run that gave nothing.
fn void(order: &Order, invalid: Invalid) -> Run {
    let mut run = summarize(&[], &[], 0.0, order);
    run.invalid = Some(invalid);
    run.cpu_share = None;
    run
}

/// Jain, Chiu and Hawe 1984: (Σx)² / (n Σx²). 1 if nothing was done: nobody
/// got more than another.
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|x| *x as f64).sum();
    let squares: f64 = shares.iter().map(|x| (*x as f64).powi(2)).sum();
    if squares > 0.0 {
        sum * sum / (shares.len() as f64 * squares)
    } else {
        1.0
    }
}

fn min_over_max(shares: &[u64]) -> f64 {
    match (shares.iter().min(), shares.iter().max()) {
        (Some(min), Some(max)) if *max > 0 => *min as f64 / *max as f64,
        _ => 1.0,
    }
}

/// Medians over the windows in which anything was done, of Jain's index and
/// of least over greatest share; `at` holds running totals.
fn window_medians(at: &[&[u64]]) -> (Option<f64>, Option<f64>) {
    let count = at.iter().map(|w| w.len()).min().unwrap_or(0);
    let shares: Vec<Vec<u64>> = (0..count)
        .map(|i| {
            at.iter()
                .map(|w| w[i].saturating_sub(if i == 0 { 0 } else { w[i - 1] }))
                .collect::<Vec<u64>>()
        })
        .filter(|shares| shares.iter().any(|x| *x > 0))
        .collect();
    let median = |of: fn(&[u64]) -> f64| {
        let mut values: Vec<f64> = shares.iter().map(|s| of(s)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    (median(jain), median(min_over_max))
}

/// Leads the workers through the phases. `all_left` says whether all of them
/// are done, or what happened to one of them; if something did, they are
/// told to stop and the caller must see to it that they do.
pub(crate) fn conduct(
    order: &Order,
    stage: &Stage,
    mut all_left: impl FnMut() -> Result<bool, String>,
) -> Ending {
    let Stage { control, roll } = stage;
    let mut failed = None;
    let mut disturbed = None;
    let gathering = clock::now();
    while roll.arrived.load(Ordering::Relaxed) < order.threads && failed.is_none() {
        failed = all_left().err();
        if clock::now() - gathering > nanos(PATIENCE) {
            failed = Some(format!(
                "only {} of {} workers started within {} s",
                roll.arrived.load(Ordering::Relaxed),
                order.threads,
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    if failed.is_none() {
        control.phase.store(phase::WARM_UP, Ordering::Relaxed);
        failed = sleep(order.warm_up, order.interrupt, &mut all_left);
    }
    if failed.is_none() {
        let before = Clocks::read();
        control.start.store(clock::now(), Ordering::Relaxed);
        // W1: pairs with the fence of a worker that sees it.
        control.phase.store(phase::MEASURE, Ordering::Release);
        failed = sleep(order.run, order.interrupt, &mut all_left);
        control.end.store(clock::now(), Ordering::Relaxed);
        // Rates are over the time that passed, so a controller that wakes
        // late on a busy machine does no harm; one that was stopped does.
        let grace = order.run + Duration::from_millis(200);
        if failed.is_none() && !order.interrupt.load(Ordering::Relaxed) {
            disturbed = Clocks::read().fault_since(&before, order.run, grace);
        }
    }
    // W1: as above.
    control.phase.store(phase::STOP, Ordering::Release);
    failed
        .map(Invalid::Failed)
        .or(disturbed.map(Invalid::Disturbed))
        .map_or(Ending::Well, Ending::Badly)
}

/// Waits until all workers have left; says whether they did in time.
pub(crate) fn wait_for_all(patience: Duration, mut all_left: impl FnMut() -> bool) -> bool {
    let started = clock::now();
    let mut nap = Duration::from_micros(50);
    while !all_left() {
        if clock::now() - started > nanos(patience) {
            return false;
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(5));
    }
    true
}

/// Sleeps, but looks every 100 ms whether that still makes sense.
fn sleep(
    time: Duration,
    interrupt: &AtomicBool,
    all_left: &mut impl FnMut() -> Result<bool, String>,
) -> Option<String> {
    let end = clock::now().saturating_add(nanos(time));
    loop {
        let left = end.saturating_sub(clock::now());
        if left == 0 || interrupt.load(Ordering::Relaxed) {
            return None;
        }
        std::thread::sleep(Duration::from_nanos(left.min(100_000_000)));
        if let Err(failed) = all_left() {
            return Some(failed);
        }
    }
}

#[cfg(test)]
mod tests;
