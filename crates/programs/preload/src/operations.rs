//! The operations of a lock of the catalogue, as the choice keeps them.

use crate::alone::Alone;
use crate::chosen::{Entries, Ops};
use crate::plain::Plain;
use crate::timed;
use locklab_locks::catalogue::Visitor;
use locklab_locks::{Platform, RawLock};

/// Makes [`Ops`] of a lock of the catalogue, whose waiters may be passed if
/// `BARGING`.
pub(crate) struct OpsOf<const BARGING: bool>;

impl<P: Platform, const BARGING: bool> Visitor<P> for OpsOf<BARGING> {
    type Output = &'static Ops;

    fn visit<L: RawLock<P>>(self) -> &'static Ops {
        const {
            &Ops {
                info: L::INFO,
                lock: Plain::<P, L, BARGING>::lock_entry,
                try_lock: Plain::<P, L, BARGING>::try_lock_entry,
                unlock: Plain::<P, L, BARGING>::unlock_entry,
                lock_if_free: Plain::<P, L, BARGING>::lock_if_free,
                // The place in the queue that this keeps is not the lock.
                timed_lock: if BARGING {
                    None
                } else {
                    timed::of::<P>(&L::INFO)
                },
                busy: Plain::<P, L, BARGING>::busy,
                since: Plain::<P, L, BARGING>::since,
                repair: Plain::<P, L, BARGING>::repair,
                retire: Plain::<P, L, BARGING>::retire,
                enter: Plain::<P, L, BARGING>::give_record,
            }
        }
    }
}

/// Makes the fast paths of a process with one thread.
pub(crate) struct AloneOpsOf<const BARGING: bool>;

impl<const BARGING: bool> Visitor<Alone> for AloneOpsOf<BARGING> {
    type Output = Entries;

    fn visit<L: RawLock<Alone>>(self) -> Entries {
        [
            Plain::<Alone, L, BARGING>::lock_alone_entry,
            Plain::<Alone, L, BARGING>::try_lock_entry,
            Plain::<Alone, L, BARGING>::unlock_alone_entry,
        ]
    }
}
