//! Time, and whether it can be trusted.
//!
//! Runs are timed by CLOCK_MONOTONIC, which no administrator can set. It
//! stands still while the machine sleeps, and a hypervisor may stop or shift
//! it; two other clocks show that. Never waits and never sets anything.

use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::Duration;

/// Returns the nanoseconds of CLOCK_MONOTONIC.
#[inline]
#[must_use]
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the nanoseconds that the calling thread has had a CPU.
#[must_use]
pub fn thread_cpu_time() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    // These clocks exist on every Linux, and a valid id cannot fail.
    clock_gettime(clock).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

/// Returns a tick of the kernel, in ns: the step of its coarse clock.
#[must_use]
pub fn tick() -> u64 {
    nix::time::clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)
        .map_or(4_000_000, |t| {
            t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
        })
        // Ticks of 100 to 10,000 a second; one of 250 where the kernel does not say.
        .clamp(100_000, 20_000_000)
}

/// Returns the cost of one clock read, in ns: the least of many.
#[must_use]
pub fn cost() -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..20 {
        let start = now();
        for _ in 0..50 {
            std::hint::black_box(now());
        }
        least = least.min((now() - start) as f64 / 51.0);
    }
    least
}

/// All clocks at one moment, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    monotonic: u64,
    /// Goes on while the machine sleeps.
    boot: u64,
    /// The clock that NTP does not discipline.
    raw: u64,
}

impl Clocks {
    /// Reads all clocks now.
    #[must_use]
    pub fn read() -> Self {
        Self {
            monotonic: now(),
            boot: read(ClockId::CLOCK_BOOTTIME),
            raw: read(ClockId::CLOCK_MONOTONIC_RAW),
        }
    }

    /// Returns the fault of the clocks since `before`, if there is one.
    #[must_use]
    pub fn fault_since(&self, before: &Self) -> Option<Fault> {
        let Some(took) = self.monotonic.checked_sub(before.monotonic) else {
            return Some(Fault::WentBack);
        };
        let slept = (self.boot.saturating_sub(before.boot)).saturating_sub(took);
        // Reading three clocks one after the other takes microseconds, more
        // if the thread is preempted between two of them.
        if slept > 20_000_000 {
            return Some(Fault::Slept(slept / 1_000_000));
        }
        // NTP slews by 0.05 % at most.
        let apart = self.raw.saturating_sub(before.raw).abs_diff(took);
        if apart > 20_000_000.max(took / 100) {
            return Some(Fault::Apart(apart / 1_000_000));
        }
        None
    }
}

/// Names the reason why the clock of a run cannot be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It showed less at the end than at the start.
    WentBack,
    /// The machine was suspended for so many ms.
    Slept(u64),
    /// It and one that nobody disciplines came so many ms apart.
    Apart(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WentBack => f.write_str("the clock went back"),
            Self::Slept(ms) => write!(f, "the machine slept for {ms} ms"),
            Self::Apart(ms) => write!(f, "two clocks came {ms} ms apart"),
        }
    }
}

/// Converts to whole nanoseconds, at most 584 years of them.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn clocks(monotonic: u64, boot: u64, raw: u64) -> Clocks {
        Clocks {
            monotonic,
            boot,
            raw,
        }
    }

    #[test]
    fn a_clock_that_jumps_is_noticed() {
        let before = clocks(1000 * MS, 5000 * MS, 900 * MS);
        let fault = |m, b, r| clocks(m, b, r).fault_since(&before);
        assert_eq!(fault(1051 * MS, 5051 * MS, 951 * MS), None);
        // A loaded machine is late by a little.
        assert_eq!(fault(1120 * MS, 5120 * MS, 1020 * MS), None);
        assert_eq!(fault(999 * MS, 5051 * MS, 951 * MS), Some(Fault::WentBack));
        assert_eq!(
            fault(1051 * MS, 65_051 * MS, 951 * MS),
            Some(Fault::Slept(60_000))
        );
        let apart = fault(1051 * MS, 5051 * MS, 1951 * MS).unwrap();
        assert_eq!(apart.to_string(), "two clocks came 1000 ms apart");
    }
}
