//! The tables of `perf lock contention` and of klockstat: what is left of a kernel's
//! waits where nobody kept the events.
//!
//! A table has sums, so neither the order of waits nor who held the lock is known.
//! It must never be made into a recording.

use crate::kernel_callers::is_locking;

/// A table of waits for locks of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockTable {
    /// The program that wrote it.
    pub program: &'static str,
    /// Whether acquisitions that did not wait are counted too.
    pub counts_all: bool,
    /// Its rows, in order.
    pub rows: Vec<LockRow>,
    /// Lines that could not be read.
    pub unread: usize,
}

/// A row of a table: a call site, or a lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockRow {
    /// The first call that is not of the lock itself, or the name of the lock.
    pub name: String,
    /// What kind of lock it is, such as `spinlock`; empty where it is not said.
    pub kind: String,
    /// The lock that the longest wait was for, where it is said.
    pub lock: String,
    /// Waits, or all acquisitions.
    pub count: u64,
    /// The time of all waits, in nanoseconds.
    pub waited_ns: f64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: f64,
}

/// The table in a text, if it has the titles of one.
#[must_use]
pub fn lock_table(text: &str) -> Option<LockTable> {
    let mut table = LockTable::default();
    let mut titles: Option<Titles> = None;
    for line in text.lines() {
        if let Some(found) = Titles::of(line) {
            table.program = found.program();
            table.counts_all = found == Titles::Klockstat;
            titles = Some(found);
            continue;
        }
        let Some(titles) = &titles else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        match (titles, words.as_slice()) {
            (_, []) => {}
            (Titles::Other, _) => {}
            (Titles::Contention, words) => match contention(words) {
                Some(row) => table.rows.push(row),
                // A call chain stands below its row.
                None if words[0].starts_with("0x") => {}
                None => table.unread += 1,
            },
            (Titles::Csv, _) => match csv(line) {
                Some(row) => table.rows.push(row),
                None => table.unread += 1,
            },
            (Titles::Klockstat, words) => {
                if let Some(row) = klockstat(words) {
                    table.rows.push(row);
                } else if let (Some(row), [call]) = (table.rows.last_mut(), words) {
                    // The callers of a function of the lock stand below it.
                    if is_locking(&row.name) {
                        row.name = (*call).to_owned();
                    }
                } else if let Some((_, lock)) = line.split_once(", Lock ") {
                    if let Some(row) = table.rows.last_mut() {
                        row.lock = lock.trim().to_owned();
                    }
                } else {
                    table.unread += 1;
                }
            }
        }
    }
    titles.map(|_| table)
}

/// The titles of a table.
#[derive(Clone, Copy, PartialEq)]
enum Titles {
    Contention,
    Csv,
    Klockstat,
    /// Holds, which are not waits.
    Other,
}

impl Titles {
    fn of(line: &str) -> Option<Self> {
        let has = |all: &[&str]| all.iter().all(|title| line.contains(title));
        if line.starts_with('#') && has(&["contended", "total wait", "max wait"]) {
            return Some(Self::Csv);
        }
        if has(&["contended", "total wait", "max wait", "avg wait"]) {
            return Some(Self::Contention);
        }
        if has(&["Caller", "Avg Wait", "Count", "Max Wait", "Total Wait"]) {
            return Some(Self::Klockstat);
        }
        has(&["Caller", "Avg Hold", "Count"]).then_some(Self::Other)
    }

    fn program(self) -> &'static str {
        match self {
            Self::Contention | Self::Csv => "perf lock contention",
            Self::Klockstat | Self::Other => "klockstat",
        }
    }
}

/// `2214 129.63 ms 1.94 ms 58.55 us spinlock CALLER`, or behind the times an
/// address and a name.
fn contention(words: &[&str]) -> Option<LockRow> {
    let count = words.first()?.parse().ok()?;
    let waited_ns = time(words.get(1..3)?)?;
    let longest_ns = time(words.get(3..5)?)?;
    time(words.get(5..7)?)?;
    let (first, rest) = words.get(7..)?.split_first()?;
    let is_address = first.len() >= 12 && first.bytes().all(|b| b.is_ascii_hexdigit());
    let (kind, name) = match (is_address, rest) {
        // A lock without a name is called by its address.
        (true, []) => ("", format!("0x{first}")),
        (true, rest) => ("", rest.join(" ")),
        (false, []) => ("", (*first).to_owned()),
        (false, rest) => (*first, rest.join(" ")),
    };
    Some(LockRow {
        name,
        kind: kind.to_owned(),
        lock: String::new(),
        count,
        waited_ns,
        longest_ns,
    })
}

/// The same with commas (`-x ,`), times in nanoseconds.
fn csv(line: &str) -> Option<LockRow> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [count, waited, longest, _, kind, name, ..] = fields.as_slice() else {
        return None;
    };
    Some(LockRow {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        lock: String::new(),
        count: count.parse().ok()?,
        waited_ns: waited.parse().ok()?,
        longest_ns: longest.parse().ok()?,
    })
}

/// `CALLER 155 ns 33052 115.5 us 5.1 ms`.
fn klockstat(words: &[&str]) -> Option<LockRow> {
    let [name, mean, unit, count, longest @ .., waited, of_waited] = words else {
        return None;
    };
    time(&[mean, unit])?;
    Some(LockRow {
        name: (*name).to_owned(),
        kind: String::new(),
        lock: String::new(),
        count: count.parse().ok()?,
        waited_ns: time(&[waited, of_waited])?,
        longest_ns: time(longest)?,
    })
}

/// A number with its unit, in nanoseconds.
fn time(words: &[&str]) -> Option<f64> {
    let [number, unit] = words else {
        return None;
    };
    let scale = match *unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_perf_has_callers_or_locks() {
        let table = lock_table(
            " contended   total wait     max wait     avg wait         type   caller

      2214    129.63 ms     1.94 ms     58.55 us     spinlock   raw_spin_rq_lock_nested+0x1b
                        0xffffffff81c0 native_queued_spin_lock_slowpath+0x1b
       118     41.02 ms     3.11 ms    347.63 us      rwsem:R   do_user_addr_fault+0x1e2
 what is this
",
        )
        .unwrap();
        assert_eq!(
            (table.program, table.counts_all),
            ("perf lock contention", false)
        );
        assert_eq!((table.rows.len(), table.unread), (2, 1));
        let row = &table.rows[1];
        assert_eq!(
            (row.name.as_str(), row.kind.as_str()),
            ("do_user_addr_fault+0x1e2", "rwsem:R")
        );
        assert!((row.waited_ns - 41.02e6).abs() < 1.0 && (row.longest_ns - 3.11e6).abs() < 1.0);
        let locks = lock_table(
            " contended   total wait     max wait     avg wait            address   symbol
         5     12.00 us      4.00 us      2.40 us   ffff8881002a3b00   &mm->mmap_lock
         2      1.00 us      1.00 us       500 ns   ffff8881002a3b40
",
        )
        .unwrap();
        let names: Vec<&str> = locks.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["&mm->mmap_lock", "0xffff8881002a3b40"]);
        let csv = lock_table("# output: contended, total wait, max wait, avg wait, type, caller\n7, 700, 200, 100, mutex, pipe_read+0x6a\n").unwrap();
        assert_eq!((csv.rows[0].count, csv.rows[0].waited_ns), (7, 700.0));
    }

    #[test]
    fn a_table_of_klockstat_is_called_by_who_asks() {
        let table = lock_table(
            "Tracing mutex/sem lock events...  Hit Ctrl-C to end

                               Caller  Avg Wait    Count   Max Wait   Total Wait
                        down_read+0x5    155 ns    33052   115.5 us       5.1 ms
             kernfs_fop_readdir+0x115
                              Max PID 4711, COMM worker, Lock kernfs_rwsem (0xffffffff89f87e00)

                               Caller  Avg Hold    Count   Max Hold   Total Hold
                        down_read+0x5    100 ns    33052   115.5 us       5.1 ms
",
        )
        .unwrap();
        assert_eq!((table.program, table.rows.len()), ("klockstat", 1));
        let row = &table.rows[0];
        assert_eq!(row.name, "kernfs_fop_readdir+0x115");
        assert_eq!(row.lock, "kernfs_rwsem (0xffffffff89f87e00)");
        assert_eq!((row.count, row.longest_ns), (33052, 115.5e3));
        assert_eq!(lock_table("hello\n"), None);
    }
}
