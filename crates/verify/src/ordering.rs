//! Memory orderings as things that can be weakened: the mutants.
//!
//! Every atomic operation of a lock asks here which ordering to use. Normally
//! that is the one in the source; during a mutation run, one part of one
//! source location gets the next weaker one. The locks know nothing of it.
//!
//! Must never invent an ordering that the source cannot express: a weakening
//! is one step down of what stands there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::Ordering;

/// Which ordering of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Of a load, or of the loads of a spin.
    Load,
    /// Of a store.
    Store,
    /// Of a read-modify-write that always writes.
    Update,
    /// Of a compare-and-swap that writes.
    Success,
    /// Of a compare-and-swap that does not.
    Failure,
    /// Of a fence.
    Fence,
}

/// A place in a lock's source that carries an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The source file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Which ordering there.
    pub part: Part,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Load => "load",
            Part::Store => "store",
            Part::Update => "read-modify-write",
            Part::Success => "compare-and-swap, success",
            Part::Failure => "compare-and-swap, failure",
            Part::Fence => "fence",
        };
        let file = self.file.rsplit('/').next().unwrap_or(self.file);
        write!(f, "{file}:{}:{} ({part})", self.line, self.column)
    }
}

/// One ordering of one site, one step weaker; or a fence removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mutation {
    /// Where.
    pub site: Site,
    from: u8,
    to: u8,
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
    /// What the source says.
    pub fn from(&self) -> Ordering {
        NAMES[usize::from(self.from)]
    }

    /// What it says in the mutant. A fence with `Relaxed` is no fence.
    pub fn to(&self) -> Ordering {
        NAMES[usize::from(self.to)]
    }
}

impl Mutation {
    /// What was there and what is, as "Acquire -> Relaxed".
    pub fn weakening(&self) -> String {
        if self.site.part == Part::Fence && self.to() == Ordering::Relaxed {
            format!("{:?} removed", self.from())
        } else {
            format!("{:?} -> {:?}", self.from(), self.to())
        }
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.site, self.weakening())
    }
}

/// The orderings one step weaker than `order`, where `part` may have them.
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

thread_local! {
    static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    static SEEN: RefCell<Option<BTreeSet<(Site, u8)>>> = const { RefCell::new(None) };
}

/// The ordering to use for `part` of the operation at `location`.
pub(crate) fn effective(
    location: &'static Location<'static>,
    part: Part,
    order: Ordering,
) -> Ordering {
    if order == Ordering::Relaxed {
        return order;
    }
    if let Some(mutation) = ACTIVE.get() {
        let site = mutation.site;
        if site.line == location.line()
            && site.column == location.column()
            && site.part == part
            && mutation.from() == order
            && site.file == location.file()
        {
            return mutation.to();
        }
        return order;
    }
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.insert((
                Site {
                    file: location.file(),
                    line: location.line(),
                    column: location.column(),
                    part,
                },
                index(order),
            ));
        }
    });
    order
}

/// Notes every site that this OS thread passes from here on.
pub(crate) fn start_recording() {
    SEEN.set(Some(BTreeSet::new()));
}

/// Every one-step weakening of the sites passed since the recording began.
pub(crate) fn stop_recording() -> Vec<Mutation> {
    let seen = SEEN.take().unwrap_or_default();
    let mut mutations = Vec::new();
    for (site, from) in seen {
        for &to in weaker(site.part, NAMES[usize::from(from)]) {
            mutations.push(Mutation {
                site,
                from,
                to: index(to),
            });
        }
    }
    mutations
}

/// Runs `f` with one ordering weakened on this OS thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_goes_down_by_one() {
        use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        assert_eq!(weaker(Part::Update, AcqRel), [Acquire, Release]);
        assert_eq!(weaker(Part::Update, SeqCst), [AcqRel]);
        assert_eq!(weaker(Part::Load, SeqCst), [Acquire]);
        assert_eq!(weaker(Part::Store, Release), [Relaxed]);
        assert_eq!(weaker(Part::Fence, SeqCst), [AcqRel, Relaxed]);
        assert!(weaker(Part::Failure, Relaxed).is_empty());
    }
}
