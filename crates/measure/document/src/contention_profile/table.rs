//! The table: locks, and the call sites at which they were acquired.

use crate::contention_profile::bound::{Bound, Seen};
use crate::contention_profile::counts::Counts;
use crate::contention_profile::spent::Spent;
use crate::contention_profile::times::Times;
use crate::number::{percent, time, whole};
use crate::page::COLUMNS;
use crate::{Column, ColumnGroup, Section, Table};

/// The longest name that has a column; with a longer one names are listed below.
const NAME_IN_TABLE: usize = 24;

/// The title of the column of names.
const NAME: &str = "lock";

/// A lock, a group of locks of one name, or a call site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// Its name in every report.
    pub name: String,
    /// Holds what kind of lock it is, where there are several: `mutex`, `SPIN`.
    pub kind: Option<String>,
    /// Number of locks of that name; 0 of a call site.
    pub locks: u64,
    /// Holds what was counted.
    pub counts: Counts,
    /// Says where the time of its waits went, if that is known.
    pub spent: Option<Spent>,
}

/// Holds who waited for which lock, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContentionProfile {
    /// Holds what threads did, all together.
    pub times: Times,
    /// Holds the same of parts of the recording that are equally long; none if it was not
    /// observed over time.
    pub windows: Vec<Times>,
    /// Says how completely it was observed.
    pub seen: Seen,
    /// The locks, by name; the one that was waited for the longest first.
    pub locks: Vec<Used>,
    /// The call sites that acquired them, in the same order.
    pub sites: Vec<Used>,
}

impl ContentionProfile {
    /// Returns the locks and sites in order, with those of one name and kind in one row.
    #[must_use]
    pub fn new(times: Times, locks: Vec<Used>, sites: Vec<Used>) -> Self {
        Self {
            times,
            windows: Vec::new(),
            seen: Seen::default(),
            locks: grouped(locks),
            sites: grouped(sites),
        }
    }

    /// Returns what no other lock can exceed.
    #[must_use]
    pub fn bound(&self) -> Bound {
        Bound::of(&self.times, &self.windows, self.seen)
    }

    /// Returns where the time of all waits went, if that is known.
    #[must_use]
    pub fn spent(&self) -> Option<Spent> {
        let mut spent: Option<Spent> = None;
        for more in self.locks.iter().filter_map(|lock| lock.spent) {
            spent.get_or_insert_default().add(&more);
        }
        spent
    }

    /// Returns the section of the first `most` rows, with their names.
    #[must_use]
    pub fn section(heading: &str, rows: &[Used], most: usize) -> Section {
        let shown = &rows[..rows.len().min(most)];
        let table = Self::table(rows, most);
        let named = table.groups[0].columns[0].title == NAME;
        let section = Section::new(heading).with(crate::Part::Table(table));
        if named {
            return section;
        }
        let names = shown.iter().enumerate();
        let names = names.map(|(number, row)| format!("#{} {}", number + 1, row.name));
        section.items(names.collect())
    }

    /// Returns the table of the first `most` rows; shares are of the waiting of all. A
    /// column that nobody could fill is left out; names that are too long are numbers.
    #[must_use]
    pub fn table(rows: &[Used], most: usize) -> Table {
        Self::fitting(rows, most, true)
    }

    /// Returns the same table without times, of a machine whose times mean nothing.
    #[must_use]
    pub fn table_of_shares(rows: &[Used], most: usize) -> Table {
        Self::fitting(rows, most, false)
    }

    /// Returns the table with names, if a page has room for them and for the widest group
    /// of columns beside them, else with numbers.
    fn fitting(rows: &[Used], most: usize, timed: bool) -> Table {
        let shown = &rows[..rows.len().min(most)];
        let short = |row: &Used| row.name.chars().count() <= NAME_IN_TABLE;
        let table = Self::columns(rows, most, timed, shown.iter().all(short));
        let width = |group: &ColumnGroup| {
            let columns = group.columns.iter();
            columns.map(|column| column.width + 1).sum::<usize>()
        };
        let (first, others) = table.groups.split_at(1);
        let widest = others.iter().map(width).max().unwrap_or(0);
        match first.iter().map(width).sum::<usize>() + widest <= COLUMNS {
            true => table,
            false => Self::columns(rows, most, timed, false),
        }
    }

    fn columns(rows: &[Used], most: usize, timed: bool, named: bool) -> Table {
        let all: f64 = rows.iter().filter_map(|row| row.counts.waited_ns).sum();
        let shown = &rows[..rows.len().min(most)];
        let has = |what: fn(&Used) -> bool| shown.iter().any(what);
        let width = shown.iter().map(|row| row.name.chars().count()).max();
        // Some observers count acquisitions only, and the time of all of them.
        let waits = all <= 0.0 || rows.iter().any(|row| row.counts.contended > 0);
        let mut table = Columns::default();
        match named {
            true => table.add(
                "",
                Column::words(NAME, width.unwrap_or(4).max(4)),
                |_, row| row.name.clone(),
            ),
            false => table.add("", Column::new("#", 3), |number, _| {
                format!("{}", number + 1)
            }),
        }
        if has(|row| row.kind.is_some()) {
            table.add("", Column::words("kind", 8), |_, row| {
                row.kind.clone().unwrap_or_default()
            });
        }
        if has(|row| row.locks > 1) {
            table.add("", Column::new("locks", 5), |_, row| whole(row.locks));
        }
        if has(|row| row.counts.acquired.is_some()) {
            table.add("", Column::new("acquired", 8), |_, row| {
                row.counts.acquired.map_or_else(|| "-".into(), whole)
            });
        }
        if waits {
            table.add("", Column::new("contended", 9), |_, row| {
                whole(row.counts.contended)
            });
        }
        if has(|row| row.counts.waited_ns.is_some()) {
            table.add("waited", Column::new("of all", 7), move |_, row| {
                let share = row
                    .counts
                    .waited_ns
                    .filter(|_| all > 0.0)
                    .map(|ns| ns / all);
                or_dash(share, |share| format!("{} %", percent(100.0 * share)))
            });
        }
        if timed && has(|row| row.counts.waited_ns.is_some()) {
            table.add("waited", Column::new("mean", 7), move |_, row| {
                let acquired = || row.counts.acquired.unwrap_or(0);
                let of = if waits {
                    row.counts.contended
                } else {
                    acquired()
                };
                mean(row.counts.waited_ns, of)
            });
        }
        if timed && has(|row| row.counts.longest_ns.is_some()) {
            table.add("waited", Column::new("longest", 7), |_, row| {
                or_dash(row.counts.longest_ns, time)
            });
        }
        if timed && has(|row| row.counts.held_ns.is_some()) {
            table.add("held", Column::new("mean", 7), |_, row| {
                mean(row.counts.held_ns, row.counts.acquired.unwrap_or(0))
            });
        }
        table.of(shown)
    }
}

/// Returns the rows of one name and kind as one, the most waited for first.
fn grouped(rows: Vec<Used>) -> Vec<Used> {
    let mut grouped: Vec<Used> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in rows {
        let key = (row.name.clone(), row.kind.clone());
        let place = *places.entry(key).or_insert(grouped.len());
        match grouped.get_mut(place) {
            Some(group) => {
                group.locks += row.locks;
                group.counts.add(&row.counts);
                if let (Some(spent), Some(more)) = (&mut group.spent, &row.spent) {
                    spent.add(more);
                }
            }
            None => grouped.push(row),
        }
    }
    grouped.sort_by(|one, two| {
        let heat = two.counts.heat().partial_cmp(&one.counts.heat());
        // Alike between runs where two are as hot.
        heat.unwrap_or(std::cmp::Ordering::Equal)
            .then_with(|| one.name.cmp(&two.name))
    });
    grouped
}

pub(crate) fn or_dash(value: Option<f64>, words: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".into(), words)
}

pub(crate) fn mean(sum: Option<f64>, count: u64) -> String {
    or_dash(sum.filter(|_| count > 0), |sum| time(sum / count as f64))
}

/// Holds what fills a column, from the row and its place.
type Fill = Box<dyn Fn(usize, &Used) -> String>;

/// The columns of a table while they are chosen.
#[derive(Default)]
struct Columns(Vec<(&'static str, Column, Fill)>);

impl Columns {
    fn add(
        &mut self,
        group: &'static str,
        column: Column,
        fill: impl Fn(usize, &Used) -> String + 'static,
    ) {
        self.0.push((group, column, Box::new(fill)));
    }

    fn of(self, rows: &[Used]) -> Table {
        let fill = |(place, row): (usize, &Used)| {
            let cells = self.0.iter().map(|(_, _, fill)| fill(place, row));
            cells.collect()
        };
        let rows = rows.iter().enumerate().map(fill).collect();
        let mut groups: Vec<ColumnGroup> = Vec::new();
        for (title, column, _) in self.0 {
            match groups.last_mut() {
                Some(last) if last.title == title => last.columns.push(column),
                _ => groups.push(ColumnGroup::new(title, vec![column])),
            }
        }
        Table { groups, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    fn used(name: &str, waited: f64, contended: u64) -> Used {
        Used {
            name: name.into(),
            locks: 1,
            counts: Counts {
                acquired: Some(1000),
                contended,
                waited_ns: Some(waited),
                longest_ns: None,
                held_ns: Some(5e5),
            },
            ..Used::default()
        }
    }

    #[test]
    fn locks_of_one_name_are_one_row_and_the_most_waited_for_is_first() {
        let rows = vec![
            used("cold", 0.0, 0),
            used("shard[ ]", 1e6, 10),
            used("shard[ ]", 2e6, 20),
        ];
        let table = ContentionProfile::new(Times::default(), rows, Vec::new());
        let [first, second] = &table.locks[..] else {
            panic!("{table:?}");
        };
        assert_eq!((first.locks, first.counts.contended), (2, 30));
        assert_eq!(second.name, "cold");
        let text = render::table(&ContentionProfile::table(&table.locks, 5));
        for words in ["shard[ ]", "100 %", "100 µs", "500 ns"] {
            assert!(text.contains(words), "no {words}:\n{text}");
        }
        assert!(
            !text.contains("kind") && !text.contains("longest"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_seen_has_no_column_and_no_key() {
        let wait = Used {
            counts: Counts {
                contended: 3,
                waited_ns: Some(6e3),
                ..Counts::default()
            },
            ..Used::default()
        };
        let text = render::table(&ContentionProfile::table(std::slice::from_ref(&wait), 5));
        assert!(
            !text.contains("acquired") && !text.contains("held"),
            "{text}"
        );
        let json = wait.counts.json();
        assert_eq!(json["contended"], 3);
        assert!(json.get("acquired").is_none(), "{json}");
        // Of a sum of both nothing more is known than of either.
        let mut sum = used("a", 1e3, 1).counts;
        sum.add(&wait.counts);
        assert_eq!((sum.acquired, sum.contended), (None, 4));
    }

    #[test]
    fn long_names_stand_below_the_table() {
        let long = "A::very_long_name_of_a_function file.cc:10 (server)";
        let rows = [used(long, 1.0, 1)];
        let section = ContentionProfile::section("Locks", &rows, 5);
        assert_eq!(section.parts.len(), 2);
        let table = render::table(&ContentionProfile::table(&rows, 5));
        assert!(!table.contains(long), "{table}");
    }
}
