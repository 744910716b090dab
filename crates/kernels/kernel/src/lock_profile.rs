//! Finds by a kernel's own tracepoints which of its locks were waited for, and how
//! long. It is a profile beside the figures, from a run of its own.
//!
//! Tracepoints take time, so nothing of such a run may ever be a figure of the
//! comparison. A lock is called by the symbol that it lies in; what the kernel
//! allocated has no name, and is called by the function that waited for it.

use locklab_trace::{KernelWait, kernel_caller, kernel_waits};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Options of a kernel that can be profiled: tracing of events, without that of
/// functions, and symbols of data.
pub(crate) const OPTIONS: [&str; 3] = [
    "CONFIG_FTRACE=y",
    "CONFIG_ENABLE_DEFAULT_TRACERS=y",
    "CONFIG_KALLSYMS_ALL=y",
];

/// Functions that wait, and the kind of lock that they wait for: some kernels write
/// no flags into their events.
const KINDS: [(&str, &str); 10] = [
    ("queued_read_lock_", "SPIN|READ"),
    ("queued_write_lock_", "SPIN|WRITE"),
    ("native_queued_spin_", "SPIN"),
    ("__pv_queued_spin_", "SPIN"),
    ("rwsem_down_read_", "READ"),
    ("rwsem_down_write_", "WRITE"),
    ("__mutex_lock", "MUTEX"),
    ("__ww_mutex_lock", "MUTEX"),
    ("rt_mutex_slowlock", "RT_MUTEX"),
    ("percpu_rwsem_wait", "PERCPU"),
];

/// Symbols lie no further apart than this from what belongs to them.
const LARGEST: u64 = 1 << 20;

/// The waits of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockProfile {
    /// Locks, the one that was waited for the longest first.
    pub locks: Vec<LockWaits>,
    /// Events that found no room.
    pub lost: u64,
    /// Ends of waits without a begin.
    pub unmatched: u64,
}

/// The waits for the locks of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWaits {
    /// A symbol, or `in FUNCTION`.
    pub name: String,
    /// Holds what the kernel says of the lock: `SPIN`, `MUTEX`, `READ`.
    pub kind: String,
    /// Locks of that name.
    pub locks: u64,
    /// Says how many acquisitions of them had to wait.
    pub waits: u64,
    /// The time of all waits, by the kernel's clock.
    pub nanoseconds: u64,
    /// The longest of them.
    pub longest: u64,
}

impl LockProfile {
    /// Reads it from the lines of a run's results; `None` if it was not asked for.
    ///
    /// # Errors
    /// If a line is none that a kernel writes.
    pub(crate) fn read(results: &str) -> Result<Option<Self>, String> {
        let after = |word: &'static str| {
            let lines = results.lines();
            lines.filter_map(move |line| line.strip_prefix(word))
        };
        let Some(lost) = after("locks-lost ").next() else {
            return Ok(None);
        };
        let text: String = after("trace ").flat_map(|line| [line, "\n"]).collect();
        let mut symbols = BTreeMap::new();
        for line in after("symbol ") {
            let Some((address, name)) = line.split_once(' ') else {
                continue;
            };
            if let Ok(address) = u64::from_str_radix(address, 16) {
                symbols.entry(address).or_insert(name);
            }
        }
        let found = kernel_waits(&text)
            .map_err(|why| format!("what the kernel wrote of its locks cannot be read: {why}"))?;
        let mut all: BTreeMap<(String, String), (LockWaits, BTreeSet<u64>)> = BTreeMap::new();
        for wait in &found.waits {
            let key = (name(wait, &symbols), kind(wait).to_owned());
            let (sum, locks) = all.entry(key).or_default();
            sum.waits += 1;
            sum.nanoseconds += wait.nanoseconds;
            sum.longest = sum.longest.max(wait.nanoseconds);
            locks.insert(wait.lock);
        }
        let mut locks: Vec<LockWaits> = all
            .into_iter()
            .map(|((name, kind), (sum, locks))| LockWaits {
                name,
                kind,
                locks: locks.len() as u64,
                ..sum
            })
            .collect();
        locks.sort_by_key(|lock| std::cmp::Reverse((lock.nanoseconds, lock.waits)));
        Ok(Some(Self {
            locks,
            lost: lost.trim().parse().unwrap_or(0),
            unmatched: found.unmatched as u64,
        }))
    }

    /// Returns the time of all waits.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        self.locks.iter().map(|lock| lock.nanoseconds).sum()
    }
}

/// Returns whether a line of results belongs to a profile, and is no figure.
pub(crate) fn is_line(line: &str) -> bool {
    line.starts_with("trace ") || line.starts_with("symbol ")
}

/// Returns what kind of lock it is.
fn kind(wait: &KernelWait) -> &str {
    if !wait.kind.is_empty() {
        return &wait.kind;
    }
    let first = wait.calls.first().map_or("", String::as_str);
    let found = KINDS.iter().find(|(start, _)| first.starts_with(start));
    found.map_or("", |(_, kind)| kind)
}

/// Returns what the lock of a wait is called.
fn name(wait: &KernelWait, symbols: &BTreeMap<u64, &str>) -> String {
    let plain = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let below = symbols
        .range(wait.lock.saturating_sub(LARGEST)..=wait.lock)
        .next_back();
    // The last symbol has no end: what lies behind it was allocated.
    let bounded = symbols
        .range(wait.lock.saturating_add(1)..)
        .next()
        .is_some();
    if let Some((_, symbol)) = below.filter(|_| bounded) {
        return plain(symbol);
    }
    match kernel_caller(&wait.calls) {
        Some(call) => format!("in {}", plain(call)),
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = "booted-ms 5\nlocks-lost 3\n\
        trace      a-7    [001] d..2.     3.219781: contention_begin: ffffffff82a0b0c4 (flags=SPIN)\n\
        trace      a-7    [001] d..2.     3.219785: contention_end: ffffffff82a0b0c4 (ret=0)\n\
        trace      b-8    [000] d..2.     3.300000: contention_begin: ffff888627c2ba80 (flags=)\n\
        trace      b-8    [000] d..2.     3.300000: <stack trace>\n\
        trace  => __mutex_lock.constprop.0+0x1f8/0x2c0 <ffffffff810f8a18>\n\
        trace  => pipe_read+0x2a/0x60 <ffffffff810fff18>\n\
        trace      b-8    [000] d..2.     3.300009: contention_end: ffff888627c2ba80 (ret=0)\n\
        symbol ffffffff82a0b000 jiffies_lock\nsymbol ffffffff82a0c000 _end\ndone\n";

    #[test]
    fn a_lock_is_called_by_its_symbol_or_by_who_waits() {
        let profile = LockProfile::read(RESULTS).unwrap().unwrap();
        let names: Vec<_> = profile
            .locks
            .iter()
            .map(|lock| (lock.name.as_str(), lock.kind.as_str(), lock.nanoseconds))
            .collect();
        assert_eq!(
            names,
            [
                ("in pipe_read", "MUTEX", 9_000),
                ("jiffies_lock", "SPIN", 4_000)
            ]
        );
        assert_eq!((profile.lost, profile.nanoseconds()), (3, 13_000));
    }

    #[test]
    fn a_run_without_a_profile_has_none_and_a_damaged_one_is_no_result() {
        assert_eq!(LockProfile::read("work 1\ndone\n").unwrap(), None);
        let why = LockProfile::read("locks-lost 0\ntrace hello\n").unwrap_err();
        assert!(why.contains("line 1"), "{why}");
    }
}
