//! Whether the machine disturbed a pair of slices.
//!
//! It uses the machine's accounting only: the behaviour of a lock never decides
//! whether its slice counts. With more workers than CPUs, time-slicing is part
//! of what is measured, so nothing is dropped here.

use crate::block::WorkerRecord;
use locklab_host::clock;
use serde::Serialize;

/// The disturbance of a pair of slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(u8)]
pub(crate) enum Disturbance {
    /// No disturbance.
    #[default]
    None = 0,
    /// A worker lost its CPU to another program (an involuntary context
    /// switch).
    Preempted,
    /// A worker had its CPU for less than the elapsed time, and nothing else
    /// ran: the hypervisor or interrupts took it.
    Stolen,
}

/// The kernel's accounting for a thread, or its part in a slice.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Usage {
    /// Time that passed, in ns.
    pub(crate) wall: u64,
    /// Time with a CPU, in ns.
    pub(crate) cpu: u64,
    /// Context switches because it waited.
    pub(crate) voluntary: u64,
    /// Context switches because another thread was scheduled.
    pub(crate) involuntary: u64,
}

impl Usage {
    /// Reads the usage of the calling thread until now.
    pub(crate) fn read() -> Self {
        // SAFETY: a zeroed rusage is a valid one, and the call writes it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        Self {
            wall: clock::now(),
            cpu: clock::thread_cpu_time(),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    /// The usage since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            wall: self.wall.saturating_sub(before.wall),
            cpu: self.cpu.saturating_sub(before.cpu),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }

    /// Time without a CPU that a worker which did not wait cannot explain:
    /// more than 30 µs, and more than 3 %.
    fn stolen(&self) -> bool {
        let without = self.wall.saturating_sub(self.cpu);
        self.voluntary == 0 && without > 30_000.max(self.wall / 33)
    }
}

/// The disturbance of the two slices of a pair.
pub(crate) fn of(slices: [&[WorkerRecord]; 2], oversubscribed: bool) -> Disturbance {
    if oversubscribed {
        return Disturbance::None;
    }
    let usages = || slices.iter().copied().flatten().map(|w| w.usage);
    if usages().any(|u| u.involuntary > 0) {
        Disturbance::Preempted
    } else if usages().any(|u| u.stolen()) {
        Disturbance::Stolen
    } else {
        Disturbance::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(usage: Usage) -> WorkerRecord {
        WorkerRecord {
            usage,
            ..WorkerRecord::default()
        }
    }

    #[test]
    fn only_the_machine_disturbs() {
        let quiet = record(Usage {
            wall: 1_000_000,
            cpu: 999_000,
            ..Usage::default()
        });
        let preempted = record(Usage {
            involuntary: 1,
            ..quiet.usage
        });
        let stolen = record(Usage {
            cpu: 900_000,
            ..quiet.usage
        });
        // It slept in the lock, which is part of the lock's behaviour.
        let slept = record(Usage {
            cpu: 100_000,
            voluntary: 9,
            ..quiet.usage
        });
        let of_two = |a, b| of([&[quiet, a], &[b, quiet]], false);
        assert_eq!(of_two(quiet, quiet), Disturbance::None);
        assert_eq!(of_two(quiet, preempted), Disturbance::Preempted);
        assert_eq!(of_two(stolen, quiet), Disturbance::Stolen);
        assert_eq!(of_two(slept, quiet), Disturbance::None);
        assert_eq!(of([&[preempted], &[stolen]], true), Disturbance::None);
    }
}
