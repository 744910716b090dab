//! The mutants that the platform can make: an ordering one step weaker, a
//! store left out, a wait that does not wait.
//!
//! Every operation of a lock asks here what to do. Normally that is what the
//! source says; during a mutation run, one operation at one place of the
//! source does something else. The locks know nothing of it. What the
//! platform cannot make is planted in the source ([`crate::planted`]).
//!
//! Must never make what the source cannot express: a weakening is one step
//! down of what stands there, and a structural mutant is an edit of one
//! statement.

use crate::execution::{self, MAX_THREADS};
use crate::journal::Place;
use crate::source;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Says which ordering of an operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The ordering of a load, or of the loads of a spin.
    Load,
    /// The ordering of a store.
    Store,
    /// The ordering of a read-modify-write that always writes.
    Update,
    /// The ordering of a compare-and-swap that writes.
    Success,
    /// The ordering of a compare-and-swap that does not.
    Failure,
    /// The ordering of a fence.
    Fence,
}

/// Says what is different in a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Change {
    /// An ordering is one step weaker; a fence may be gone.
    Weaken {
        /// The ordering that changes.
        part: Part,
        /// Its place in `NAMES`.
        from: u8,
        /// Gives the place in `NAMES` of the ordering that stands there now.
        to: u8,
    },
    /// A write is left out; what was there is still returned.
    Omit,
    /// A write is made twice.
    Repeat,
    /// A store comes after the operation that follows it.
    Delay,
    /// A store comes after the two stores that follow it.
    DelayMore,
    /// A read-modify-write is a load and a store.
    Split,
    /// A compare-and-swap says that it has written, and has not.
    Pretend,
    /// A compare-and-swap takes failure for success, and success for
    /// failure.
    Invert,
    /// A wait takes the first value that it reads.
    NoWait,
    /// A wait ends when it should go on, and goes on when it should end.
    NegateWait,
    /// A wait with limited patience has no limit.
    Patient,
    /// Nobody is woken.
    NoWake,
    /// Keeps the count of how long some may be preferred from reaching the bound.
    Unbounded,
    /// The bound on how long some may be preferred is one higher.
    OneMore,
    /// Every CPU has the number 0.
    OneNumber,
}

impl Change {
    fn description(self) -> String {
        match self {
            Self::Weaken { part, from, to } => {
                let (from, to) = (NAMES[usize::from(from)], NAMES[usize::from(to)]);
                if part == Part::Fence && to == Ordering::Relaxed {
                    return format!("{from:?} removed");
                }
                format!("{from:?} -> {to:?}")
            }
            Self::Omit => "write left out".into(),
            Self::Repeat => "write made twice".into(),
            Self::Delay => "store after what follows it".into(),
            Self::DelayMore => "store after the two that follow it".into(),
            Self::Split => "not one step: a load, then a store".into(),
            Self::Pretend => "says it has written, and has not".into(),
            Self::Invert => "success and failure confused".into(),
            Self::NoWait => "wait left out".into(),
            Self::NegateWait => "condition of the wait negated".into(),
            Self::Patient => "patience without end".into(),
            Self::NoWake => "wake-up left out".into(),
            Self::Unbounded => "bound never reached".into(),
            Self::OneMore => "bound one higher".into(),
            Self::OneNumber => "every CPU has the number 0".into(),
        }
    }
}

/// A kind of operation, as far as it matters to how it can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Load,
    Store,
    Swap,
    Add,
    Bits,
    CompareExchange,
    Wait,
    PatientWait,
    Fence,
    Wake,
    Preference,
    Number,
}

impl Kind {
    fn changes(self, order: Ordering) -> &'static [Change] {
        use Change::{
            Invert, NegateWait, NoWait, NoWake, Omit, OneMore, OneNumber, Patient, Pretend, Repeat,
            Split, Unbounded,
        };
        match self {
            // A Relaxed store made twice is the same: it orders nothing.
            Self::Store if order == Ordering::Relaxed => &[Omit],
            Self::Store => &[Omit, Repeat],
            Self::Swap => &[Omit, Split],
            Self::Add => &[Omit, Repeat, Split],
            // Bits that are set are set.
            Self::Bits => &[Omit, Split],
            Self::CompareExchange => &[Pretend, Invert, Split],
            Self::Wait => &[NoWait, NegateWait],
            Self::PatientWait => &[Patient],
            Self::Wake => &[NoWake],
            Self::Preference => &[Unbounded, OneMore],
            Self::Number => &[OneNumber],
            // A sleep may end at any time, so it may be left out too.
            Self::Load | Self::Fence => &[],
        }
    }
}

/// One change at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mutation {
    /// The operation that is changed.
    pub place: Place,
    /// Says what is different there.
    pub change: Change,
}

/// `Ordering` has no order of its own; this is its place in reports.
const NAMES: [Ordering; 5] = [
    Ordering::Relaxed,
    Ordering::Acquire,
    Ordering::Release,
    Ordering::AcqRel,
    Ordering::SeqCst,
];

fn index(order: Ordering) -> u8 {
    NAMES.iter().position(|&o| o == order).unwrap_or(4) as u8
}

impl Mutation {
    /// Returns whether it is an ordering that is weakened, and not the structure of the code
    /// that is changed.
    pub fn is_ordering(&self) -> bool {
        matches!(self.change, Change::Weaken { .. })
    }

    /// Says what was there and what is, as "Acquire -> Relaxed".
    pub fn description(&self) -> String {
        self.change.description()
    }

    /// Returns what is called at its place, in one line; the name of what is no access of
    /// memory.
    pub(crate) fn text(&self) -> String {
        let Place { file, line, .. } = self.place;
        let text = |line| source::line(file, line).unwrap_or("").trim();
        match text(line) {
            "" => file.to_owned(),
            // The call stands below what it is a method of.
            here if here.starts_with('.') => text(line.saturating_sub(1)).to_owned() + here,
            here => here.to_owned(),
        }
    }

    /// Returns source file, line, column and kind of ordering.
    pub fn site(&self) -> String {
        let Place { file, line, column } = self.place;
        let file = file.rsplit('/').next().unwrap_or(file);
        let part = match self.change {
            Change::Weaken { part, .. } => match part {
                Part::Load => " (load)",
                Part::Store => " (store)",
                Part::Update => " (read-modify-write)",
                Part::Success => " (compare-and-swap, success)",
                Part::Failure => " (compare-and-swap, failure)",
                Part::Fence => " (fence)",
            },
            _ => "",
        };
        if line == 0 {
            return file.to_owned();
        }
        format!("{file}:{line}:{column}{part}")
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.site(), self.description())
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.file, self.line, self.column).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Each name once, for ever.
        static FILES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let (file, line, column) = <(String, u32, u32)>::deserialize(deserializer)?;
        let mut files = FILES.lock().expect("no holder panics");
        let known = files.get(file.as_str()).copied();
        let file = known.unwrap_or_else(|| {
            let name: &'static str = Box::leak(file.into_boxed_str());
            files.insert(name);
            name
        });
        Ok(Self { file, line, column })
    }
}

/// Returns the orderings one step weaker than `order`, where `part` may have them.
fn weaker(part: Part, order: Ordering) -> &'static [Ordering] {
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    match (part, order) {
        (Part::Load | Part::Failure, SeqCst) => &[Acquire],
        (Part::Store, SeqCst) => &[Release],
        // Both: a weaker fence may be enough, and none at all may be.
        (Part::Fence, SeqCst) => &[AcqRel, Relaxed],
        (Part::Fence, AcqRel) => &[Acquire, Release, Relaxed],
        (_, SeqCst) => &[AcqRel],
        (_, AcqRel) => &[Acquire, Release],
        (_, Acquire | Release) => &[Relaxed],
        _ => &[],
    }
}

/// Holds what the executions of a model have passed.
#[derive(Default)]
struct Seen {
    orderings: BTreeSet<(Place, Part, u8)>,
    operations: BTreeMap<(Place, Kind), u8>,
    /// Stores that something follows which they must come before.
    in_order: BTreeSet<Place>,
    /// Stores that two others follow, where an interrupt may come between.
    before_two: BTreeSet<Place>,
    /// The last operation of each thread, if it was a store.
    last: [Option<(Place, usize)>; MAX_THREADS],
    /// The one before, if it was one too.
    last_but_one: [Option<Place>; MAX_THREADS],
}

thread_local! {
    static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

/// Returns the ordering to use for `part` of the operation at `here`.
pub fn effective(here: Place, part: Part, order: Ordering) -> Ordering {
    if order == Ordering::Relaxed {
        return order;
    }
    if let Some(mutation) = ACTIVE.get() {
        return match mutation.change {
            Change::Weaken { part: p, from, to }
                if p == part && NAMES[usize::from(from)] == order && mutation.place == here =>
            {
                NAMES[usize::from(to)]
            }
            _ => order,
        };
    }
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.orderings.insert((here, part, index(order)));
        }
    });
    order
}

/// Returns whether and how the operation of this kind at `here` is changed. `order` is that of
/// the source, of what writes; `word` is what it accesses.
pub(crate) fn change(here: Place, kind: Kind, order: Ordering, word: usize) -> Option<Change> {
    if let Some(Mutation { place, change }) = ACTIVE.get() {
        let changed = place == here
            && (kind.changes(order).contains(&change)
                || kind == Kind::Store && matches!(change, Change::Delay | Change::DelayMore));
        return changed.then_some(change);
    }
    SEEN.with_borrow_mut(|seen| {
        let Some(seen) = seen else { return };
        seen.operations.insert((here, kind), index(order));
        let before = seen.last_but_one[execution::cpu()].take();
        if let (Some(store), Kind::Store, true) = (before, kind, execution::is_interrupted()) {
            seen.before_two.insert(store);
        }
        let last = &mut seen.last[execution::cpu()];
        seen.last_but_one[execution::cpu()] = last.map(|(store, _)| store);
        if let Some((store, to)) = last.take() {
            // C11 lets a store trade places with what follows, unless that
            // is of the same word, or releases, or is a fence; and nobody
            // can tell, unless an interrupt comes between.
            let releases = matches!(
                order,
                Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
            );
            if to == word || releases || execution::is_interrupted() {
                seen.in_order.insert(store);
            }
        }
        if kind == Kind::Store {
            *last = Some((here, word));
        }
    });
    None
}

/// Ends a call of the lock here: what the thread does next is not part of it.
pub(crate) fn boundary() {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.last[execution::cpu()] = None;
            seen.last_but_one[execution::cpu()] = None;
        }
    });
}

/// Notes every operation that this OS thread passes from here on.
pub(crate) fn start_recording() {
    SEEN.set(Some(Seen::default()));
}

/// Returns every mutant of the operations passed since the recording began.
pub(crate) fn stop_recording() -> Vec<Mutation> {
    let seen = SEEN.take().unwrap_or_default();
    let mut mutations = Vec::new();
    for (place, part, from) in seen.orderings {
        for &to in weaker(part, NAMES[usize::from(from)]) {
            let to = index(to);
            let change = Change::Weaken { part, from, to };
            mutations.push(Mutation { place, change });
        }
    }
    for ((place, kind), order) in seen.operations {
        for &change in kind.changes(NAMES[usize::from(order)]) {
            mutations.push(Mutation { place, change });
        }
    }
    for place in seen.in_order {
        let change = Change::Delay;
        mutations.push(Mutation { place, change });
    }
    for place in seen.before_two {
        let change = Change::DelayMore;
        mutations.push(Mutation { place, change });
    }
    mutations
}

/// Runs `f` with one operation changed on this OS thread.
pub(crate) fn with<R>(mutation: Option<Mutation>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Mutation>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ACTIVE.set(self.0);
        }
    }
    let _restore = Restore(ACTIVE.replace(mutation));
    f()
}

/// Returns whether a change that the platform makes has this description.
#[cfg(test)]
pub(crate) fn is_described_as(text: &str) -> bool {
    use Kind::{Add, CompareExchange, Number, PatientWait, Preference, Store, Swap, Wait, Wake};
    let kinds = [
        Store,
        Swap,
        Add,
        CompareExchange,
        Wait,
        PatientWait,
        Wake,
        Preference,
        Number,
    ];
    let of_kinds = kinds
        .iter()
        .flat_map(|kind| kind.changes(Ordering::Release));
    let mut structure = of_kinds.chain(&[Change::Delay, Change::DelayMore]);
    let mut orderings = text.split(" -> ");
    let is_ordering = |name: &str| NAMES.iter().any(|order| format!("{order:?}") == name);
    structure.any(|change| change.description() == text) || orderings.all(is_ordering)
}

#[cfg(test)]
#[path = "../tests/unit/mutation.rs"]
mod tests;
