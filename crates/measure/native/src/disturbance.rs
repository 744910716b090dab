//! Decides whether the machine disturbed a pair of slices: by how much of its time a
//! worker lost, not by what happened.
//!
//! It uses the machine's accounting only: the behaviour of a lock never decides
//! whether its slice counts. With more workers than CPUs, time-slicing is part
//! of what is measured, so nothing is dropped here.

use crate::request::Request;
use locklab_host::clock;
use serde::Serialize;
use std::os::fd::RawFd;

/// The share of its time that a worker may lose: as much as the margin within
/// which a difference does not matter, in one slice of the hundreds that are
/// averaged.
const SHARE: f64 = 0.01;

/// The disturbance of a pair of slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(u8)]
pub(crate) enum Disturbance {
    /// No disturbance, or so little that it counts.
    #[default]
    None = 0,
    /// A worker lost more than [`SHARE`] of its time to other programs (there
    /// were involuntary context switches).
    Preempted,
    /// Means the same, and nothing else ran: the hypervisor or interrupts took it.
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
    /// Time in which it could have run and another thread had its CPU, in ns;
    /// zero where the kernel does not say.
    pub(crate) waited: u64,
    /// Context switches because it waited.
    pub(crate) voluntary: u64,
    /// Context switches because another thread was scheduled.
    pub(crate) involuntary: u64,
}

/// The accounts of the calling thread.
pub(crate) struct Account {
    /// `/proc/thread-self/schedstat`; negative where there is none.
    schedstat: RawFd,
}

impl Account {
    /// Opens the accounts of the calling thread. It allocates nothing, because
    /// the thread may be the child of a fork.
    pub(crate) fn open() -> Self {
        // SAFETY: a path that ends with a zero; a failure is a negative number.
        let schedstat = unsafe {
            libc::open(
                c"/proc/thread-self/schedstat".as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        Self { schedstat }
    }

    /// Reads the usage of the calling thread until now.
    pub(crate) fn read(&self) -> Usage {
        // SAFETY: a zeroed rusage is a valid one, and the call writes it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        Usage {
            waited: self.waited(),
            wall: clock::now(),
            cpu: clock::thread_cpu_time(),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    /// Returns the second figure of schedstat.
    fn waited(&self) -> u64 {
        let mut text = [0_u8; 64];
        // SAFETY: writes at most this many bytes, into ours; a failure, as of
        // a file that was not opened, is a negative number.
        let got = unsafe { libc::pread(self.schedstat, text.as_mut_ptr().cast(), text.len(), 0) };
        let text = &text[..usize::try_from(got).unwrap_or(0)];
        let mut words = text.split(|c| c.is_ascii_whitespace());
        let digits = words.nth(1).unwrap_or_default();
        digits.iter().fold(0, |n: u64, digit| {
            n.wrapping_mul(10)
                .wrapping_add(u64::from(digit.wrapping_sub(b'0')))
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.schedstat >= 0 {
            // SAFETY: ours, and closed once.
            unsafe { libc::close(self.schedstat) };
        }
    }
}

impl Usage {
    /// Returns the usage since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            wall: self.wall.saturating_sub(before.wall),
            cpu: self.cpu.saturating_sub(before.cpu),
            waited: self.waited.saturating_sub(before.waited),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }

    /// Returns the time that the machine took from a worker, in ns: time without a CPU, or,
    /// where the worker slept in the lock, that in which it was ready and
    /// another program had its CPU.
    pub(crate) fn lost(&self) -> u64 {
        match (self.voluntary, self.involuntary) {
            (0, _) => self.wall.saturating_sub(self.cpu),
            // Waiting for a CPU after each sleep is the lock's own.
            (_, 0) => 0,
            // A kernel that does not say how long: it may have been all of it.
            _ if self.waited == 0 => self.wall,
            _ => self.waited,
        }
    }

    /// Returns the share of its time that a worker lost, beyond the grain of the
    /// accounting.
    fn share(&self, grain: u64) -> f64 {
        self.lost().saturating_sub(grain) as f64 / self.wall.max(1) as f64
    }
}

/// Returns the time without a CPU, in ns, that the accounting of this machine shows for
/// a thread that loses nothing: the reads themselves take some, and clocks have
/// steps. The greatest of nine tenths of many short intervals; what is greater
/// is interrupts.
#[must_use]
pub(crate) fn grain() -> u64 {
    const INTERVALS: usize = 200;
    let account = Account::open();
    let mut seen: Vec<u64> = (0..INTERVALS)
        .map(|_| {
            let before = account.read();
            for _ in 0..100 {
                std::hint::spin_loop();
            }
            account.read().since(&before).lost()
        })
        .collect();
    seen.sort_unstable();
    seen[INTERVALS * 9 / 10]
}

/// Returns the disturbance of slices that count together, from what each worker got in
/// each.
pub(crate) fn of(usages: impl Iterator<Item = Usage>, request: &Request) -> Disturbance {
    if request.oversubscribed() {
        return Disturbance::None;
    }
    let worst = usages.max_by(|a, b| a.share(request.grain).total_cmp(&b.share(request.grain)));
    match worst {
        Some(usage) if usage.share(request.grain) > SHARE => {
            if usage.involuntary > 0 {
                Disturbance::Preempted
            } else {
                Disturbance::Stolen
            }
        }
        _ => Disturbance::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::request;

    #[test]
    fn only_time_that_the_machine_took_disturbs() {
        let quiet = Usage {
            wall: 1_000_000,
            cpu: 999_000,
            ..Usage::default()
        };
        let taken = |us: u64, involuntary| Usage {
            cpu: 1_000_000 - 1000 * us,
            involuntary,
            ..quiet
        };
        // It slept in the lock, which is part of the lock's behaviour, and
        // waited for its CPU after it woke.
        let slept = Usage {
            cpu: 100_000,
            waited: 90_000,
            voluntary: 9,
            ..quiet
        };
        let cut = Usage {
            involuntary: 1,
            ..slept
        };
        let [two, four] = [2, 4].map(|threads| request(threads, &[0, 1]));
        let of_two = |a, b| of([quiet, a, b, quiet].into_iter(), &two);
        assert_eq!(of_two(quiet, quiet), Disturbance::None);
        // A kernel thread that runs for 5 us, and one for 30.
        assert_eq!(of_two(quiet, taken(5, 1)), Disturbance::None);
        assert_eq!(of_two(quiet, taken(30, 1)), Disturbance::Preempted);
        assert_eq!(of_two(taken(30, 0), quiet), Disturbance::Stolen);
        assert_eq!(of_two(slept, quiet), Disturbance::None);
        assert_eq!(of_two(cut, quiet), Disturbance::Preempted);
        assert_eq!(
            of([taken(30, 1), quiet].into_iter(), &four),
            Disturbance::None
        );
    }

    #[test]
    fn the_accounts_of_a_thread_grow_with_its_time() {
        let account = Account::open();
        let before = account.read();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let usage = account.read().since(&before);
        assert!(usage.wall >= 2_000_000 && usage.cpu < usage.wall);
        assert!(usage.voluntary > 0);
        // A thread that slept was not robbed, unless another ran meanwhile.
        assert!(usage.involuntary > 0 || usage.lost() == 0);
        assert!(grain() < 1_000_000);
    }
}
