//! Notes what the models of a lock reach while they run: the calls and what they
//! answer, the operations of the source and how each of them ends, and which kinds of
//! values its words take.
//!
//! A bug in what no model reaches is found by none. What is not reached is
//! listed, with the reason where one is known (`coverage.tsv`). Must never note
//! what did not happen in an execution of the lock as it is.

use crate::journal::{Operation, Place};
use crate::source;
use crate::specification::{Answer, Operation as Call};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Tells how an operation of the source has ended, or what it has read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Reached {
    /// It was executed.
    Done,
    /// A compare-and-swap has written.
    Succeeds,
    /// A compare-and-swap has not written.
    Fails,
    /// A wait saw what it waits for.
    Seen,
    /// A wait did not, at first or for as long as it had patience.
    InVain,
    /// This value, if it is a small one; more than the greatest of them: some
    /// other.
    Value(u8),
    /// The greatest value of a byte or more.
    Last,
    /// A sum has passed the last value.
    Wrapped,
}

/// Values up to this one are told apart: the levels of queue nodes.
const SMALL: u8 = 4;

/// Holds what the models have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    calls: BTreeSet<(String, bool)>,
    places: BTreeSet<(Place, Reached)>,
}

thread_local! {
    static NOTED: RefCell<Option<Coverage>> = const { RefCell::new(None) };
}

/// Notes all that this OS thread's models reach from here on.
pub(crate) fn start() {
    NOTED.set(Some(Coverage::default()));
}

/// Returns what they have reached since.
pub(crate) fn stop() -> Coverage {
    NOTED.take().unwrap_or_default()
}

/// Notes that a lock has answered.
pub(crate) fn called(call: Call, answer: Answer) {
    NOTED.with_borrow_mut(|noted| {
        let Some(noted) = noted else { return };
        let name = match call {
            Call::Lock => "lock",
            Call::TryLock => "try_lock",
            Call::LockUntil => "lock_until",
            Call::Unlock => "unlock",
            Call::ReleaseAll => "release_all",
            Call::AcquireCount(_) => "acquire_count",
            Call::Held => "held",
            Call::Read => "read",
            Call::TryRead => "try_read",
            Call::ReadUnlock => "read_unlock",
            Call::Downgrade => "downgrade",
        };
        let yes = answer != Answer::No && answer != Answer::Levels(0);
        noted.calls.insert((name.to_owned(), yes));
    });
}

/// Notes that an operation of the source has been executed: `old` was there, and `new` is.
pub(crate) fn step(here: Place, operation: Operation, pointer: bool, old: u64, new: u64) {
    let note = |reached| reach(here, reached);
    note(Reached::Done);
    match operation {
        Operation::CompareExchange => note(Reached::Succeeds),
        Operation::CompareFailed => note(Reached::Fails),
        Operation::Seen => note(Reached::Seen),
        Operation::InVain => note(Reached::InVain),
        _ => {}
    }
    let value = if operation == Operation::CompareFailed {
        old
    } else {
        new
    };
    note(Reached::Value(match u8::try_from(value) {
        Ok(small) if small <= SMALL && (!pointer || small == 0) => small,
        _ => SMALL + 1,
    }));
    if pointer {
        return;
    }
    if [
        u64::from(u8::MAX),
        u16::MAX.into(),
        u32::MAX.into(),
        u64::MAX,
    ]
    .contains(&value)
    {
        note(Reached::Last);
    }
    let (old, new) = (old as u32, new as u32);
    if operation == Operation::Update && old.leading_ones() >= 8 && new.leading_zeros() >= 8 {
        note(Reached::Wrapped);
    }
}

/// Notes that a wait has read a value that it does not wait for.
pub(crate) fn fruitless_read(here: Place) {
    reach(here, Reached::InVain);
}

/// Notes that this was reached there.
fn reach(here: Place, reached: Reached) {
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted {
            noted.places.insert((here, reached));
        }
    });
}

/// An access of a user's lock, whose models run in an engine of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read, or a write.
    Plain,
    /// A read-modify-write.
    Update,
    /// A compare-and-swap that has written.
    Succeeds,
    /// A compare-and-swap that has not.
    Fails,
    /// The read that ends a wait.
    Ends,
    /// A read of a wait that goes on.
    InVain,
}

/// Notes an access of a user's lock: `old` was there, and `new` is.
pub fn note_access(here: Place, access: Access, old: u64, new: u64) {
    let operation = match access {
        Access::Plain => Operation::Load,
        Access::Update => Operation::Update,
        Access::Succeeds => Operation::CompareExchange,
        Access::Fails => Operation::CompareFailed,
        Access::Ends => Operation::Seen,
        Access::InVain => return fruitless_read(here),
    };
    step(here, operation, false, old, new);
}

/// Notes that a user's lock has answered a call of this name.
pub fn note_call(name: &str, yes: bool) {
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted {
            noted.calls.insert((name.to_owned(), yes));
        }
    });
}

/// Describes what no model reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The place in the source; the name of a call.
    pub line: String,
    /// The source text there.
    pub source: String,
    /// Says what is not reached.
    pub what: &'static str,
    /// The reason why not, if that is known.
    pub because: Option<&'static str>,
    /// The source file; none of a call.
    #[serde(skip)]
    pub(crate) file: String,
    /// The line that begins the block around it.
    #[serde(skip)]
    pub(crate) block: &'static str,
}

/// Says how much of something is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Counts those that some execution reached.
    pub reached: usize,
    /// Counts all of them.
    pub of: usize,
}

/// Tells what the models have found of a branch of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    /// No model comes there.
    NotReached,
    /// One does; it has no condition, or one of which more is not noted.
    Reached,
    /// Its condition is never true.
    NeverTrue,
    /// Its condition is never false.
    NeverFalse,
    /// Its condition is true, and false.
    BothWays,
}

/// The table of one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Covered {
    /// Calls, each with every answer that it can give.
    pub calls: Share,
    /// Operations of the source.
    pub operations: Share,
    /// The share of those that end in both ways, of those that can.
    pub both_ways: Share,
    /// Branches of the source: conditions that are true and false, and what is
    /// entered without a condition, as an arm of a `match`. None, unless they were
    /// asked for ([`crate::Options::branches`]).
    pub branches: Share,
    /// The words by the names of the source, and what values each has had.
    pub values: Vec<(String, String)>,
    /// Lists what is not reached.
    pub holes: Vec<Hole>,
}

impl Covered {
    /// Adds branches of the lock's source, with what its models have found there.
    pub(crate) fn add_branches(
        &mut self,
        lock: &str,
        branches: impl IntoIterator<Item = (Place, Branch)>,
    ) {
        for (place, found) in branches {
            self.branches.of += 1;
            let what = match found {
                Branch::Reached | Branch::BothWays => {
                    self.branches.reached += 1;
                    continue;
                }
                Branch::NotReached => "is executed",
                Branch::NeverTrue => "is true",
                Branch::NeverFalse => "is false",
            };
            let mut hole = hole(place.file, place.line, what);
            let known = self.holes.iter();
            if known
                .map(|hole| (&hole.line, hole.what))
                .any(|known| known == (&hole.line, what))
            {
                continue;
            }
            hole.because = because(lock, &hole);
            self.holes.push(hole);
        }
    }
}

/// Calls of which a lock has all or none; with those that can say no.
const INTERFACES: [&[(&str, &[bool])]; 5] = [
    &[("lock", &[true]), ("unlock", &[true])],
    &[("try_lock", &[true, false])],
    &[("lock_until", &[true, false])],
    &[
        ("read", &[true]),
        ("try_read", &[true, false]),
        ("read_unlock", &[true]),
        ("downgrade", &[true]),
    ],
    &[
        ("held", &[true, false]),
        ("release_all", &[true, false]),
        ("acquire_count", &[true]),
    ],
];

/// One line a reason: the locks, the file, a part of the line (after "in ": of
/// the line that begins the block around it), what is not reached, and why.
const REASONS: &str = include_str!("../coverage.tsv");

fn because(lock: &str, hole: &Hole) -> Option<&'static str> {
    let Hole {
        file,
        source: text,
        what,
        ..
    } = hole;
    let stands = |part: &str| match part.strip_prefix("in ") {
        Some(head) => hole.block.contains(head),
        None => text.contains(part),
    };
    REASONS.lines().skip(1).find_map(|reason| {
        let mut fields = reason.split('\t');
        let (locks, of, part) = (fields.next()?, fields.next()?, fields.next()?);
        let (not, why) = (fields.next()?, fields.next()?);
        let is_it = locks.split(' ').any(|of| of == lock)
            && Path::new(file).ends_with(of)
            && stands(part)
            && not == *what;
        is_it.then_some(why)
    })
}

impl Coverage {
    /// Adds what other models have reached.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls.extend(other.calls.iter().cloned());
        self.places.extend(&other.places);
    }

    /// Returns the places of these files (by the ends of their names) only.
    fn of_files<'a>(&self, files: &'a [String]) -> impl Iterator<Item = (Place, Reached)> + 'a
    where
        Self: 'a,
    {
        let places = self.places.clone();
        places.into_iter().filter(|(place, _)| {
            let is_it = |file: &String| Path::new(place.file).ends_with(file);
            files.iter().any(is_it)
        })
    }

    /// Returns what is reached of the lock called so, whose own source these files are.
    pub(crate) fn covered(&self, lock: &str, files: &[String]) -> Covered {
        let mut covered = Covered::default();
        // Of a user's file the models call what it has.
        let ours = files.iter().any(|file| source::name_of(file).is_some());
        self.calls(ours, &mut covered);
        let mut by_place: BTreeMap<Place, BTreeSet<Reached>> = BTreeMap::new();
        for (place, reached) in self.of_files(files) {
            by_place.entry(place).or_default().insert(reached);
        }
        both_ways(&by_place, &mut covered);
        covered.operations.reached = by_place.len();
        covered.operations.of = by_place.len();
        let places: Vec<Place> = by_place.keys().copied().collect();
        for file in files {
            lines_not_reached(file, &places, &mut covered);
        }
        covered.values = values(&by_place);
        for hole in &mut covered.holes {
            hole.because = because(lock, hole);
        }
        covered
    }

    fn calls(&self, ours: bool, covered: &mut Covered) {
        let called = |name: &str, yes| self.calls.contains(&(name.to_owned(), yes));
        for interface in INTERFACES {
            let has_it = |&&(name, _): &&(&str, _)| called(name, true) || called(name, false);
            if !interface.iter().any(|call| has_it(&call)) {
                continue;
            }
            for &(name, answers) in interface.iter().filter(|call| ours || has_it(call)) {
                for &yes in answers {
                    covered.calls.of += 1;
                    if called(name, yes) {
                        covered.calls.reached += 1;
                        continue;
                    }
                    let what = if yes { "succeeds" } else { "fails" };
                    covered.holes.push(Hole {
                        line: name.to_owned(),
                        source: format!("{name}()"),
                        what,
                        because: None,
                        file: String::new(),
                        block: "",
                    });
                }
            }
        }
    }
}

/// Adds which of compare-and-swaps and waits went both ways.
fn both_ways(by_place: &BTreeMap<Place, BTreeSet<Reached>>, covered: &mut Covered) {
    use Reached::{Fails, InVain, Seen, Succeeds};
    for (place, reached) in by_place {
        for (ways, names) in [
            ([Succeeds, Fails], ["succeeds", "fails"]),
            ([Seen, InVain], ["ends", "waits"]),
        ] {
            if !ways.iter().any(|way| reached.contains(way)) {
                continue;
            }
            covered.both_ways.of += 1;
            let missing = ways.iter().position(|way| !reached.contains(way));
            match missing {
                None => covered.both_ways.reached += 1,
                Some(missing) => covered
                    .holes
                    .push(hole(place.file, place.line, names[missing])),
            }
        }
    }
}

fn hole(file: &str, line: u32, what: &'static str) -> Hole {
    let source = source::line(file, line).unwrap_or("").trim();
    let above = source::line(file, line.saturating_sub(1))
        .unwrap_or("")
        .trim();
    // The call stands below what it is a method of.
    let source = if source.starts_with('.') {
        above.to_owned() + source
    } else {
        source.to_owned()
    };
    Hole {
        line: format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
        because: None,
        file: file.to_owned(),
        block: source::block(file, line),
        source,
        what,
    }
}

/// The methods of words: what is called by such a name is an operation. In C it is
/// what begins with `atomic_`, and is called.
const OPERATIONS: [&str; 16] = [
    "load",
    "store",
    "swap",
    "compare_exchange",
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "spin",
    "spin_until",
    "take_if_zero",
    "draw_ticket",
    "store_low_byte",
    "store_low_half",
    "increment_low_half",
    "swap_high_half",
];

/// Adds the operations of a source file, its tests not counted, that no model reaches.
fn lines_not_reached(file: &str, places: &[Place], covered: &mut Covered) {
    for (number, line) in source::code(file) {
        let calls_one = if Path::new(file).extension().is_some_and(|end| end == "rs") {
            let called = |name| line.contains(&format!(".{name}("));
            OPERATIONS.iter().any(called) && !line.contains("fn ")
        } else {
            source::calls_in_c(line).any(|name| name.trim_start_matches('_').starts_with("atomic_"))
        };
        let here = |place: &Place| place.line == number && Path::new(place.file).ends_with(file);
        if calls_one && !places.iter().any(here) {
            covered.operations.of += 1;
            covered.holes.push(hole(file, number, "is executed"));
        }
    }
}

/// Returns the words by their names, and what values they have had.
fn values(by_place: &BTreeMap<Place, BTreeSet<Reached>>) -> Vec<(String, String)> {
    let mut of_names: BTreeMap<String, BTreeSet<Reached>> = BTreeMap::new();
    for (place, reached) in by_place {
        let name = source::field(place.file, place.line, place.column);
        let name = name.unwrap_or_else(|| "?".to_owned());
        of_names.entry(name).or_default().extend(reached);
    }
    let shown = |reached: &BTreeSet<Reached>| {
        let words = reached.iter().filter_map(|reached| match reached {
            Reached::Value(small) if *small <= SMALL => Some(small.to_string()),
            Reached::Value(_) => Some("more".to_owned()),
            Reached::Last => Some("last".to_owned()),
            Reached::Wrapped => Some("wrapped".to_owned()),
            _ => None,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    of_names
        .into_iter()
        .map(|(name, reached)| (name, shown(&reached)))
        .collect()
}
