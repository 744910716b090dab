//! The totals that the kernel's `scripts/bloat-o-meter OLD NEW` prints, so
//! that a report can be checked against the tool that kernel developers
//! know. It differs from [`crate::Footprint`] in what is one symbol: only
//! `.NUMBER` is taken out of a name, so `f.isra` and `f` differ, and
//! functions and data of one name are one. Written from the behaviour of the
//! scripts of Linux 6.1 and 6.12; must never be improved beyond them.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::elf::Symbol;

/// Totals over all symbols, as bloat-o-meter computes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BloatOMeter {
    /// The totals by the rules of the tree that was compared, see [`BloatOMeter::rules`].
    #[serde(flatten)]
    pub totals: BloatTotals,
    /// The version of the rules, in words for a report.
    #[serde(default)]
    pub rules: String,
    /// Counts as Linux 6.6 and later do: code, data, bss, read-only data and weak
    /// symbols.
    #[serde(default)]
    pub with_weak: BloatTotals,
    /// Counts as Linux before 6.6 does: without weak symbols.
    pub without_weak: BloatTotals,
}

/// The version from which on the script counts weak symbols.
const WEAK_SINCE: (u32, u32) = (6, 6);

/// Holds the figures of the first and the last line of bloat-o-meter's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BloatTotals {
    /// Symbols only in the new file.
    pub added: u64,
    /// Symbols only in the old file.
    pub removed: u64,
    /// Symbols that became larger.
    pub grown: u64,
    /// Symbols that became smaller.
    pub shrunk: u64,
    /// Bytes added, by new and by grown symbols.
    pub up: u64,
    /// Bytes removed, by lost and by shrunk symbols.
    pub down: u64,
    /// Bytes of all symbols of the old file.
    pub before: u64,
    /// Bytes of all symbols of the new file.
    pub after: u64,
}

/// Two lines, worded as bloat-o-meter words them, so that the two can be
/// compared by eye or by `diff`.
impl fmt::Display for BloatTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (up, down) = (i128::from(self.up), i128::from(self.down));
        writeln!(
            f,
            "add/remove: {}/{} grow/shrink: {}/{} up/down: {up}/{} ({})",
            self.added,
            self.removed,
            self.grown,
            self.shrunk,
            -down,
            up - down
        )?;
        let percent = if self.before == 0 {
            0.0
        } else {
            (self.after as f64 - self.before as f64) * 100.0 / self.before as f64
        };
        write!(
            f,
            "Total: Before={}, After={}, chg {percent:+.2}%",
            self.before, self.after
        )
    }
}

/// Bytes under each of bloat-o-meter's names.
#[derive(Default)]
pub(crate) struct BloatSizes(HashMap<String, Sizes>);

#[derive(Clone, Copy, Default)]
struct Sizes {
    strong: u64,
    weak: u64,
}

impl BloatSizes {
    pub(crate) fn add(&mut self, symbol: &Symbol<'_>) {
        let weak = matches!(symbol.letter, 'w' | 'W' | 'v' | 'V');
        let strong = matches!(symbol.letter.to_ascii_lowercase(), 't' | 'd' | 'b' | 'r');
        if !(weak || strong) || is_generated(&symbol.name) {
            return;
        }
        let name = without_numbers(&symbol.name);
        let sizes = self.0.entry(name).or_default();
        let sum = if weak {
            &mut sizes.weak
        } else {
            &mut sizes.strong
        };
        *sum = sum.saturating_add(symbol.bytes);
    }
}

/// Returns the totals, by the rules of the version of Linux that the old side names.
pub(crate) fn totals(
    BloatSizes(old): &BloatSizes,
    BloatSizes(new): &BloatSizes,
    linux: Option<(u32, u32)>,
) -> BloatOMeter {
    let mut all = BloatTotals::default();
    let mut without_weak = BloatTotals::default();
    let none = Sizes::default();
    let fresh = new.iter().filter(|(name, _)| !old.contains_key(*name));
    let pairs = old
        .iter()
        .map(|(name, before)| (before, new.get(name).unwrap_or(&none)))
        .chain(fresh.map(|(_, after)| (&none, after)));
    for (before, after) in pairs {
        without_weak.add(before.strong, after.strong);
        all.add(
            before.strong.saturating_add(before.weak),
            after.strong.saturating_add(after.weak),
        );
    }
    let (totals, rules) = match linux {
        Some(version) if version < WEAK_SINCE => (without_weak, of(version)),
        Some(version) => (all, of(version)),
        None => (all, "Linux 6.6 and later (no kernel named)".into()),
    };
    BloatOMeter {
        totals,
        rules,
        with_weak: all,
        without_weak,
    }
}

fn of((major, minor): (u32, u32)) -> String {
    format!("Linux {major}.{minor} (of the old image)")
}

impl BloatTotals {
    fn add(&mut self, before: u64, after: u64) {
        // `nm --size-sort` prints no symbol of size 0: 0 is "not there".
        match (before, after) {
            (0, 0) => {}
            (0, _) => self.added += 1,
            (_, 0) => self.removed += 1,
            _ if before < after => self.grown += 1,
            _ if before > after => self.shrunk += 1,
            _ => {}
        }
        self.up = self.up.saturating_add(after.saturating_sub(before));
        self.down = self.down.saturating_add(before.saturating_sub(after));
        self.before = self.before.saturating_add(before);
        self.after = self.after.saturating_add(after);
    }
}

/// Symbols that the kernel's build makes and that say nothing of its size,
/// and names that the script cannot tell from `nm`'s heading of a member.
fn is_generated(name: &str) -> bool {
    ["__mod_", "__se_sys", "__se_compat_sys", "__addressable_"]
        .iter()
        .any(|start| name.starts_with(start))
        || name == "linux_banner"
        || name == "vermagic"
        || name.contains(':')
}

/// Returns a name with each `.` that starts a number, and that number, taken out.
fn without_numbers(name: &str) -> String {
    let mut rest = name;
    let mut kept = String::with_capacity(name.len());
    while let Some(dot) = rest.find('.') {
        let after = rest[dot + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = after.len() < rest.len() - dot - 1;
        kept.push_str(&rest[..if is_number { dot } else { dot + 1 }]);
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_out_wherever_they_are() {
        for (name, kept) in [
            ("f", "f"),
            ("f.12", "f"),
            ("f.isra.0", "f.isra"),
            ("f.isra.0.cold", "f.isra.cold"),
            ("f.1x", "fx"),
            ("f..2", "f."),
            ("a.b", "a.b"),
            ("f.", "f."),
        ] {
            assert_eq!(without_numbers(name), kept, "{name}");
        }
    }

    #[test]
    fn totals_read_like_the_script() {
        let mut totals = BloatTotals::default();
        for (before, after) in [(10, 30), (7, 0), (0, 5), (9, 9), (8, 6)] {
            totals.add(before, after);
        }
        assert_eq!(
            totals.to_string(),
            "add/remove: 1/1 grow/shrink: 1/1 up/down: 25/-9 (16)\n\
             Total: Before=34, After=50, chg +47.06%"
        );
        // Nothing before: the script prints 0 %, not an error.
        let mut totals = BloatTotals::default();
        totals.add(0, 5);
        assert!(totals.to_string().ends_with("chg +0.00%"));
    }
}
