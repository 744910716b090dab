//! What each of some equal parts of a recording has: acquisitions, and threads that acquire;
//! and what operations take that the recorder timed.
//!
//! Whatever part becomes a program, these are the same, so they are counted once. It must
//! never choose the part.

use crate::cpus::on_all_cpus;
use crate::reading::median;
use locklab_trace::{Event, Info, Thread, Trace};

/// The number of parts.
pub(crate) const PARTS: usize = 256;

/// Describes what the parts of a recording have.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Acquisitions in each part.
    pub(crate) acquired: [u64; PARTS],
    /// Threads that acquire locks before and after each part, or in it.
    pub(crate) active: [usize; PARTS],
    /// Threads that ever acquire a lock.
    pub(crate) taking: usize,
    /// Holds what the recorder takes of an operation, in ticks.
    pub(crate) recorder: u64,
    /// Holds what an acquisition takes that does not wait, and what such a release, in
    /// ticks.
    pub(crate) free: [u64; 2],
}

/// Describes what one thread does in them.
struct OfThread {
    acquired: [u64; PARTS],
    /// The first and the last part in which it acquires.
    there: Option<(usize, usize)>,
    costs: Vec<u64>,
    free: [Vec<u64>; 2],
}

impl Parts {
    /// Counts what the parts of a recording have.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut parts = Self {
            acquired: [0; PARTS],
            active: [0; PARTS],
            taking: 0,
            recorder: 0,
            free: [0; 2],
        };
        let (mut costs, mut free) = (Vec::new(), [Vec::new(), Vec::new()]);
        for mut of in on_all_cpus(&trace.threads, |thread| of_thread(trace, thread)) {
            for (sum, more) in parts.acquired.iter_mut().zip(of.acquired) {
                *sum += more;
            }
            // A thread that takes a lock only now and then is there all the time.
            if let Some((first, last)) = of.there {
                parts.taking += 1;
                for count in &mut parts.active[first..=last.max(first)] {
                    *count += 1;
                }
            }
            costs.append(&mut of.costs);
            for (all, more) in free.iter_mut().zip(&mut of.free) {
                all.append(more);
            }
        }
        // Some were interrupted.
        parts.recorder = median(&mut costs);
        // Some of them waited.
        parts.free = free.map(|mut ticks| match ticks.len() / 4 {
            0 => 0,
            place => *ticks.select_nth_unstable(place).1,
        });
        parts
    }

    /// Returns the time at which a part begins.
    pub(crate) fn start_of(info: &Info, part: usize) -> u64 {
        let at = u128::from(length(info)) * part as u128 / PARTS as u128;
        info.began.saturating_add(at as u64)
    }
}

fn length(info: &Info) -> u64 {
    info.ended.saturating_sub(info.began).max(1)
}

fn of_thread(trace: &Trace, thread: &Thread) -> OfThread {
    let (began, length) = (trace.info.began, length(&trace.info));
    let part_of = |tick: u64| {
        let at = u128::from(tick.saturating_sub(began)) * PARTS as u128 / u128::from(length);
        (at as usize).min(PARTS - 1)
    };
    let mut of = OfThread {
        acquired: [0; PARTS],
        there: None,
        costs: Vec::new(),
        free: [Vec::new(), Vec::new()],
    };
    // When an operation began, and how long the last one took.
    let (mut since, mut last) = (0, None);
    // Most acquisitions are in the part of the one before.
    let (mut part, mut until) = (0, began);
    for (tick, event) in trace.events(thread) {
        let took = tick - since;
        match event {
            Event::Request { .. } | Event::Release { .. } => since = tick,
            Event::Acquired => {
                last = Some((0, took));
                if tick >= until {
                    part = part_of(tick);
                    until = match part + 1 {
                        PARTS => u64::MAX,
                        next => Parts::start_of(&trace.info, next),
                    };
                }
                of.acquired[part] += 1;
                of.there = Some((of.there.map_or(part, |(first, _)| first.min(part)), part));
            }
            Event::Released => last = Some((1, took)),
            Event::Cost { ticks } => {
                of.costs.push(ticks);
                if let Some((which, took)) = last.take() {
                    of.free[which].push(took);
                }
            }
            _ => last = None,
        }
    }
    of
}
