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
    /// Says whether acquisitions that did not wait are counted too.
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
    /// Holds what kind of lock it is, such as `spinlock`; empty where it is not said.
    pub kind: String,
    /// The lock that the longest wait was for, where it is said.
    pub lock: String,
    /// The slab cache of the object that the lock is in, where it is said.
    pub slab: String,
    /// Waits, or all acquisitions.
    pub count: u64,
    /// The time of all waits, in nanoseconds.
    pub waited_ns: f64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: f64,
}

/// Returns the table in a text, if it has the titles of one.
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
            (Titles::Contention(behind), words) => match contention(words, *behind) {
                Some(row) => table.rows.push(row),
                // A call chain stands below its row.
                None if words[0].starts_with("0x") => {}
                None => table.unread += 1,
            },
            (Titles::Csv(behind), _) => match csv(line, *behind) {
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
    Contention(Behind),
    Csv(Behind),
    Klockstat,
    /// Holds, which are not waits.
    Other,
}

impl Titles {
    fn of(line: &str) -> Option<Self> {
        let has = |all: &[&str]| all.iter().all(|title| line.contains(title));
        if line.starts_with('#') && has(&["contended", "total wait", "max wait"]) {
            return Some(Self::Csv(Behind::of(line)));
        }
        if has(&["contended", "total wait", "max wait", "avg wait"]) {
            return Some(Self::Contention(Behind::of(line)));
        }
        if has(&["Caller", "Avg Wait", "Count", "Max Wait", "Total Wait"]) {
            return Some(Self::Klockstat);
        }
        has(&["Caller", "Avg Hold", "Count"]).then_some(Self::Other)
    }

    fn program(self) -> &'static str {
        match self {
            Self::Contention(_) | Self::Csv(_) => "perf lock contention",
            Self::Klockstat | Self::Other => "klockstat",
        }
    }
}

/// Names what stands behind the times of a row of `perf lock contention`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behind {
    /// `spinlock CALLER`: rows by call site.
    Caller,
    /// `ffff8881002a3b00 &task_struct (mutex)`: rows by lock (`-l`).
    Address,
    /// A thread or a cgroup: rows by who waited.
    Waiter,
}

impl Behind {
    fn of(titles: &str) -> Self {
        let has = |title| titles.contains(title);
        match (has("caller"), has("address")) {
            (true, _) => Self::Caller,
            (_, true) => Self::Address,
            _ => Self::Waiter,
        }
    }
}

/// Reads `2214 129.63 ms 1.94 ms 58.55 us`, and what stands behind.
fn contention(words: &[&str], behind: Behind) -> Option<LockRow> {
    let times = LockRow {
        count: words.first()?.parse().ok()?,
        waited_ns: time(words.get(1..3)?)?,
        longest_ns: time(words.get(3..5)?)?,
        ..LockRow::default()
    };
    time(words.get(5..7)?)?;
    let (first, rest) = words.get(7..)?.split_first()?;
    let kind = rest
        .last()
        .and_then(|word| word.strip_prefix('(')?.strip_suffix(')'));
    Some(match behind {
        Behind::Caller if !rest.is_empty() => LockRow {
            kind: (*first).to_owned(),
            name: rest.join(" "),
            ..times
        },
        Behind::Address => match kind {
            Some(kind) => by_address(first, &rest[..rest.len() - 1].join(" "), kind, times),
            None => by_address(first, &rest.join(" "), "", times),
        },
        Behind::Caller | Behind::Waiter => LockRow {
            name: words[7..].join(" "),
            ..times
        },
    })
}

/// Returns the same with commas (`-x ,`), times in nanoseconds.
fn csv(line: &str, behind: Behind) -> Option<LockRow> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [count, waited, longest, _, rest @ ..] = fields.as_slice() else {
        return None;
    };
    let times = LockRow {
        count: count.parse().ok()?,
        waited_ns: waited.parse().ok()?,
        longest_ns: longest.parse().ok()?,
        ..LockRow::default()
    };
    Some(match (behind, rest) {
        (_, []) => return None,
        (Behind::Caller, [kind, name, ..]) => LockRow {
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
            ..times
        },
        (Behind::Address, [address, name @ .., kind]) => {
            by_address(address, &name.join(","), kind, times)
        }
        (_, rest) => LockRow {
            name: rest.join(" "),
            ..times
        },
    })
}

/// Returns a lock by its address: by its symbol, or by the slab cache of the object that it is
/// in, which perf calls `&CACHE`. One without a name is called by its address.
fn by_address(address: &str, symbol: &str, kind: &str, times: LockRow) -> LockRow {
    let slab = symbol.strip_prefix('&').filter(|name| !name.contains("->"));
    LockRow {
        name: match symbol {
            "" => format!("0x{}", address.trim_start_matches("0x")),
            symbol => symbol.to_owned(),
        },
        kind: kind.to_owned(),
        slab: slab.unwrap_or_default().to_owned(),
        ..times
    }
}

/// Reads `CALLER 155 ns 33052 115.5 us 5.1 ms`.
fn klockstat(words: &[&str]) -> Option<LockRow> {
    let [name, mean, unit, count, longest @ .., waited, of_waited] = words else {
        return None;
    };
    time(&[mean, unit])?;
    Some(LockRow {
        name: (*name).to_owned(),
        count: count.parse().ok()?,
        waited_ns: time(&[waited, of_waited])?,
        longest_ns: time(longest)?,
        ..LockRow::default()
    })
}

/// Returns a number with its unit, in nanoseconds.
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

    /// By lock, as `perf lock contention -b -l` prints it: symbols, the slab cache of an
    /// object where the kernel says it, and nothing.
    #[test]
    fn a_lock_in_a_slab_object_has_the_name_of_its_cache() {
        let text = " contended   total wait     max wait     avg wait            address   symbol

         4     13.60 us      5.11 us      3.40 us   ffffffffb1c3a8c0   rtnl_mutex (mutex)
         9     11.20 us      3.00 us      1.24 us   ffff9d0409d6f9a8   &task_struct (spinlock)
         2      2.16 us      1.93 us      1.08 us   ffff9d7804b992d8    (mutex)
         1       845 ns       845 ns       845 ns   ffff9d78036e6e00   &mm->mmap_lock (rwsem)
";
        let csv = "# output: contended, total wait, max wait, avg wait, address, symbol, type
4, 13600, 5110, 3400, ffffffffb1c3a8c0, rtnl_mutex, mutex
9, 11200, 3000, 1240, ffff9d0409d6f9a8, &task_struct, spinlock
2, 2160, 1930, 1080, ffff9d7804b992d8, , mutex
1, 845, 845, 845, ffff9d78036e6e00, &mm->mmap_lock, rwsem
";
        for text in [text, csv] {
            let rows = lock_table(text).unwrap().rows;
            let of = |row: &LockRow| [&row.name, &row.kind, &row.slab].map(String::clone);
            let found: Vec<[String; 3]> = rows.iter().map(of).collect();
            assert_eq!(
                found,
                [
                    ["rtnl_mutex", "mutex", ""],
                    ["&task_struct", "spinlock", "task_struct"],
                    ["0xffff9d7804b992d8", "mutex", ""],
                    ["&mm->mmap_lock", "rwsem", ""],
                ]
            );
        }
        let by_thread = " contended   total wait     max wait     avg wait          pid   comm
         5     12.00 us      4.00 us      2.40 us         4711   worker two
";
        assert_eq!(
            lock_table(by_thread).unwrap().rows[0].name,
            "4711 worker two"
        );
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
