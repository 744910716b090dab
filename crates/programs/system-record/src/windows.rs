//! Decides when the kernel's events are recorded and when they pause, so that recording
//! takes no more of the machine's busy time than a small part.
//!
//! What a record costs the program was measured before; this thread's own time is counted. It
//! must never decide by what the machine is.

use crate::acquire::{Gap, Known};
use crate::open::Open;
use locklab_host::clock;
use locklab_host::cpu_use::CpuUse;
use locklab_preload_run::gap;
use std::time::{Duration, Instant};

/// The length of a window: a short program has several, and what a thread waits for over more
/// than one is known of the time before.
const WINDOW: Duration = Duration::from_millis(10);

/// Windows of recording, and the times between them.
pub(crate) struct Windows<'a> {
    /// The nanoseconds for which a record keeps a CPU busy that the program could have had.
    record_ns: f64,
    /// Says which processes are recorded.
    processes: &'a (dyn Fn() -> Vec<u32> + Sync),
    /// The end of the window, or of the gap.
    until: Instant,
    /// Since when this one is recorded, and the records and this thread's time until then.
    since: Option<(CpuUse, u64, Duration)>,
    /// When the gap began.
    paused: Option<u64>,
    gaps: Vec<Gap>,
}

impl<'a> Windows<'a> {
    /// Begins the first.
    pub(crate) fn begin(record_ns: f64, processes: &'a (dyn Fn() -> Vec<u32> + Sync)) -> Self {
        Self {
            record_ns,
            processes,
            until: Instant::now() + WINDOW,
            since: CpuUse::now().map(|now| (now, 0, collecting())),
            paused: None,
            gaps: Vec::new(),
        }
    }

    /// Pauses or resumes where it is time to; `records` were collected until now.
    pub(crate) fn turn(&mut self, open: &mut Open, records: u64) {
        if Instant::now() < self.until {
            return;
        }
        let now = CpuUse::now();
        if let Some(begin) = self.paused.take() {
            open.follow_threads();
            let known = (clock::now(), Known::of(&(self.processes)()));
            open.resume();
            self.gaps.push(Gap {
                begin,
                end: clock::now(),
                known,
            });
        } else {
            let gap = match (&self.since, &now) {
                (Some((then, before, mine)), Some(now)) => {
                    let mine = collecting().saturating_sub(*mine).as_secs_f64();
                    let spent = (records - before) as f64 * self.record_ns / 1e9 + mine;
                    let active = now.all.saturating_sub(then.all).as_secs_f64();
                    gap(WINDOW, spent, active)
                }
                _ => Duration::ZERO,
            };
            if !gap.is_zero() {
                self.paused = Some(clock::now());
                open.pause();
                self.until = Instant::now() + gap;
                return;
            }
        }
        self.since = now.map(|now| (now, records, collecting()));
        self.until = Instant::now() + WINDOW;
    }

    /// Returns how long this one, or the gap, still is.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Ends, in a gap or not. Returns the gaps.
    pub(crate) fn end(mut self) -> Vec<Gap> {
        if let Some(begin) = self.paused.take() {
            let end = clock::now();
            let known = (end, Known::default());
            self.gaps.push(Gap { begin, end, known });
        }
        self.gaps
    }
}

/// Returns the CPU time of this thread until now, that of writing the file too.
fn collecting() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return Duration::ZERO;
    };
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}
