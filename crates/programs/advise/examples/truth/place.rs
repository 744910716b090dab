//! Finds where the CPUs are while a row is made, and whether others used them.
//!
//! It must never decide what a row says, only whether a part is done again.

use locklab_host::cpu_use::CpuUse;
use locklab_native::{Native, round_trip};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Says how often a part is tried.
pub(crate) const ATTEMPTS: usize = 2;
/// Round trips that differ by more are of another place.
const SAME: f64 = 1.6;
/// The share of one CPU that others may have.
const OTHERS: f64 = 0.10;
/// The time for which the CPUs are waited for before a part, if they are elsewhere.
const PATIENCE: Duration = Duration::from_secs(6);

/// Says how far apart the CPUs are.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    cpus: (usize, usize),
    /// The round trip of a line between two of them, in nanoseconds.
    pub(crate) round_trip: f64,
}

/// Holds what happened while a part was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span {
    /// The round trip after it.
    after: f64,
    /// Says whether that, and the one before, are those of the place.
    stayed: bool,
    /// CPUs that others had.
    others: f64,
}

impl Span {
    /// Returns whether it says something of the place.
    pub(crate) fn counts(&self) -> bool {
        self.stayed && self.others <= OTHERS
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "round_trip": self.after, "stayed": self.stayed, "others": self.others })
    }
}

impl Place {
    /// Returns where they are now.
    pub(crate) fn here() -> Self {
        let cpus = cpus();
        let round_trip = trip(cpus);
        Self { cpus, round_trip }
    }

    /// Says where they were when this was measured.
    pub(crate) fn at(round_trip: f64) -> Self {
        let cpus = cpus();
        Self { cpus, round_trip }
    }

    fn is(&self, round_trip: f64) -> bool {
        let (low, high) = (self.round_trip / SAME, self.round_trip * SAME);
        (low..=high).contains(&round_trip)
    }

    /// Does a part once.
    pub(crate) fn during<T>(&self, what: impl FnOnce() -> T) -> (T, Span) {
        let before = trip(self.cpus);
        let before_it = CpuUse::now();
        let done = what();
        let used = before_it.zip(CpuUse::now());
        let others = used.map_or(0.0, |(from, to)| from.cpus_until(&to).1);
        let after = trip(self.cpus);
        let stayed = self.is(before) && self.is(after);
        let span = Span {
            after,
            stayed,
            others,
        };
        (done, span)
    }

    /// Does a part until it is of this place, or often enough: then the last counts.
    pub(crate) fn repeat<T>(&self, attempts: usize, what: &mut dyn FnMut() -> T) -> (T, Span) {
        let mut last = None;
        for _ in 0..attempts {
            let since = Instant::now();
            while !self.is(trip(self.cpus)) && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(300));
            }
            let (done, span) = self.during(&mut *what);
            let counts = span.counts();
            last = Some((done, span));
            if counts {
                break;
            }
        }
        last.unwrap_or_else(|| self.during(what))
    }
}

/// Returns two of them.
fn cpus() -> (usize, usize) {
    match Native::probe().topology.order[..] {
        [a, b, ..] => (a, b),
        _ => (0, 0),
    }
}

fn trip((a, b): (usize, usize)) -> f64 {
    match a == b {
        true => 0.0,
        false => round_trip::measure(a, b).unwrap_or(0.0),
    }
}
