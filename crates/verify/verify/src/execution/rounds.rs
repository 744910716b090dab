//! Loops that are no waits, for they count or write each time round: how far they are
//! followed, and what is left out.
//!
//! Such a loop may end by itself (a bounded retry), or by what it writes (a counter
//! that wraps around), so its rounds differ. A wait has none of that, and is pruned by
//! the platform. Must never leave anything out unsaid.

use super::setting::MAX_THREADS;
use crate::journal::Place;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Says how far such loops are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// It is followed for [`FEW`] rounds, after which the others have their turn.
    #[default]
    Few,
    /// It is followed to its end, or for [`MANY`] rounds, with no other thread in between.
    AtOnce,
    /// Means as far as that, with all that others may do between any two rounds.
    Each,
}

/// Rounds that are explored in any case.
pub(crate) const FEW: u32 = 2;

/// Rounds after which a loop goes on in turn with the others: more than the values of
/// a byte.
pub(crate) const MANY: u32 = 300;

/// Turns of every thread, without an operation that ends, after which none will.
const LIVELOCK: u32 = 100;

/// Loops whose further rounds were left out: in how many executions.
pub(crate) type RoundsLeftOut = BTreeMap<Place, u64>;

/// The state of one exploration, and of its execution.
#[derive(Default)]
pub(super) struct Going {
    rounds: Cell<Rounds>,
    left_out: RefCell<RoundsLeftOut>,
    /// Says whether loops have further rounds that all end as the explored ones do.
    alike: Cell<bool>,
    /// Says whether a thread goes on with no other in between.
    alone: [Cell<bool>; MAX_THREADS],
    /// Turns of each thread since an operation of a model last ended; `None`: it counts.
    turns: [Cell<Option<u32>>; MAX_THREADS],
    /// Says where a loop of this execution has gone round last.
    last: Cell<Option<Place>>,
}

impl Going {
    pub(super) fn begin(&self) {
        self.alone.iter().for_each(|alone| alone.set(false));
        self.progress();
        self.last.set(None);
    }

    /// Notes that an operation has ended.
    pub(super) fn progress(&self) {
        self.turns.iter().for_each(|turns| turns.set(Some(0)));
    }

    /// Notes that this thread has a turn, in vain.
    pub(super) fn turn(&self, cpu: usize) {
        self.turns[cpu].set(self.turns[cpu].get().map(|turns| turns + 1));
    }

    /// Returns whether these threads go round for ever, in turn, with what they write each time
    /// taken back.
    pub(super) fn is_livelock(&self, mut takes_part: impl FnMut(usize) -> bool) -> bool {
        let for_ever = |turns: Option<u32>| turns.is_some_and(|turns| turns >= LIVELOCK);
        self.last.get().is_some()
            && (0..MAX_THREADS).all(|cpu| !takes_part(cpu) || for_ever(self.turns[cpu].get()))
    }

    /// Follows loops so far, from the next execution on.
    pub(super) fn follow(&self, rounds: Rounds) {
        self.rounds.set(rounds);
        self.left_out.borrow_mut().clear();
        self.alike.set(false);
    }

    pub(super) fn rounds(&self) -> Rounds {
        self.rounds.get()
    }

    /// Returns what was left out since then.
    pub(super) fn take_left_out(&self) -> RoundsLeftOut {
        self.left_out.take()
    }

    /// Returns whether since then a loop went on of which it is only known how its rounds end
    /// if another thread ends them.
    pub(super) fn take_alike(&self) -> bool {
        self.alike.take()
    }

    /// Rounds of the loop here are left out.
    pub(super) fn leave_out(&self, here: Place) {
        *self.left_out.borrow_mut().entry(here).or_default() += 1;
    }

    /// Returns where a loop of this execution that is no wait has gone round last.
    pub(super) fn last(&self) -> Option<Place> {
        self.last.get()
    }

    pub(super) fn is_alone(&self, cpu: usize) -> bool {
        self.alone[cpu].get()
    }

    /// Sets whether a thread goes on with no other in between; returns whether it did.
    pub(super) fn set_alone(&self, cpu: usize, alone: bool) -> bool {
        self.alone[cpu].replace(alone)
    }

    /// Ends a round of a thread's loop; `left` says that what follows is not explored.
    pub(super) fn round_ends(
        &self,
        (cpu, here): (usize, Place),
        round: u32,
        rounding: Rounding,
        left: bool,
    ) -> Next {
        self.last.set(Some(here));
        if rounding == Rounding::Counts {
            self.turns[cpu].set(None);
        }
        let few = self.rounds.get() == Rounds::Few;
        match round {
            ..=FEW => Next::Explore,
            _ if left => Next::TakeTurn,
            _ if !few && round <= MANY => match self.rounds.get() {
                Rounds::AtOnce => Next::GoAlone,
                _ => Next::Explore,
            },
            _ if rounding == Rounding::Counts && round <= MANY => {
                self.alike.set(true);
                Next::Prune(Onward::Alike)
            }
            _ => {
                self.leave_out(here);
                Next::Prune(Onward::LeftOut)
            }
        }
    }
}

/// Tells what follows the end of a round.
pub(super) enum Next {
    Explore,
    /// Explores the next round, with no other thread in between.
    GoAlone,
    /// The others have their turn.
    TakeTurn,
    /// Gives the others their turn, and explores no further branches.
    Prune(Onward),
}

/// Tells what a loop does each time round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// It writes.
    Writes,
    /// It reads the same in another state, as a counter.
    Counts,
}

/// Tells what becomes of a loop after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// Its next round is explored.
    Explored,
    /// It goes on, and further rounds are not explored. The caller calls
    /// [`may_end_otherwise`](super::may_end_otherwise) if one of them may end in another way than the explored ones.
    Alike,
    /// They are not, and that was noted.
    LeftOut,
}
