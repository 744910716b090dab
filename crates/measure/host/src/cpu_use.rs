//! Measures who had the CPUs: this process with its children, or others.
//!
//! Figures of a machine that others used too say less of the program. Reads the
//! kernel's counts only; must never decide what that means for a figure.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::time::Duration;

/// CPU time until a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUse {
    /// The moment, on [`clock::now`](crate::clock::now), in nanoseconds.
    pub at_ns: u64,
    /// The time of all programs, with what a hypervisor took from this machine.
    pub all: Duration,
    /// The time of this process and of its children that have ended and been waited for.
    pub own: Duration,
}

impl CpuUse {
    /// Returns the use until now; `None` where the kernel does not say, as without `/proc`.
    #[must_use]
    pub fn now() -> Option<Self> {
        let all = all(&fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self {
            at_ns: crate::clock::now(),
            all,
            own: own(),
        })
    }

    /// Returns how many CPUs this process with its children, and how many others, had on average
    /// until a later moment.
    #[must_use]
    pub fn cpus_until(&self, later: &Self) -> (f64, f64) {
        let seconds = later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let own = later.own.saturating_sub(self.own);
        let others = later.all.saturating_sub(self.all).saturating_sub(own);
        let cpus = |time: Duration| time.as_secs_f64() / seconds.max(1e-3);
        (cpus(own), cpus(others))
    }
}

/// Returns CPU time of this process and of its children that have ended and been waited for.
#[must_use]
pub fn own() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .flat_map(|usage| [usage.user_time(), usage.system_time()])
        .map(|time| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0)))
        .sum()
}

/// Returns the first line of `/proc/stat`: time as a user, nice, in the kernel, idle, waiting
/// for a disk, in two kinds of interrupts, and stolen by a hypervisor.
fn all(stat: &str) -> Option<Duration> {
    let counts = stat.lines().next()?.strip_prefix("cpu ")?;
    let counts: Vec<u64> = counts
        .split_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    let stolen = counts.get(7).copied().unwrap_or(0);
    let ticks: u64 = counts.get(..3)?.iter().sum::<u64>() + stolen;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_had_is_what_this_process_had_not() {
        let of = |ms: [u64; 3]| CpuUse {
            at_ns: 1_000_000 * ms[0],
            all: Duration::from_millis(ms[1]),
            own: Duration::from_millis(ms[2]),
        };
        let (from, to) = (of([500, 9000, 100]), of([2500, 12_500, 1100]));
        assert_eq!(from.cpus_until(&to), (0.5, 1.25));
        // The kernel counts the two in different ways, which may differ by a tick.
        assert_eq!(from.cpus_until(&of([1500, 9990, 1100])), (1.0, 0.0));
        assert_eq!(from.cpus_until(&from), (0.0, 0.0));
    }

    #[test]
    fn what_a_hypervisor_took_is_of_others_and_idle_time_is_not() {
        let ticks = |stat: &str| all(stat).map(|time| time.as_secs_f64());
        let second = sysconf(SysconfVar::CLK_TCK).unwrap().unwrap();
        let stat =
            format!("cpu  {second} {second} {second} 999 999 999 999 {second} 0 0\ncpu0 1\n");
        assert_eq!(ticks(&stat), Some(4.0));
        // Before Linux 2.6.11 no column was of a hypervisor.
        let older = format!("cpu {second} 0 0 99\n");
        assert_eq!(ticks(&older), Some(1.0));
        for none in ["", "cpu 1 2", "intr 5 5 5 5"] {
            assert_eq!(ticks(none), None, "{none}");
        }
    }
}
