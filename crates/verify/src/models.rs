//! Which type stands for a lock in a model.
//!
//! Every lock of the catalogue, by its name. Where a type holds an array for
//! hundreds of CPUs, the model has the same code with room for four: making
//! five hundred atomics for each of a million executions would be the whole
//! cost, and a small array goes round within one.

use crate::platform::Loom;
use locklab_locks::catalogue::{self, BigVisitor, Visitor};
use locklab_locks::{
    Anderson, MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded, Twa,
};

/// CPUs, slots: a power of two, no less than the threads of any model.
const ROOM: usize = 4;

/// Visits the model of the lock called `name`.
pub(crate) fn visit<V: Visitor<Loom>>(name: &str, visitor: V) -> Option<V::Output> {
    Some(match name {
        "anderson" => visitor.visit::<Anderson<Loom, ROOM>>(),
        "twa" => visitor.visit::<Twa<Loom, 2>>(),
        "mplock-ticket" => visitor.visit::<MplockTicket<Loom, ROOM>>(),
        "mplock-ticket-padded" => visitor.visit::<MplockTicketPadded<Loom, ROOM>>(),
        "mplock-anderson" => visitor.visit::<MplockAnderson<Loom, ROOM>>(),
        "mplock-clh" => visitor.visit::<MplockClh<Loom, ROOM>>(),
        "mplock-mcs" => visitor.visit::<MplockMcs<Loom, ROOM>>(),
        _ => return catalogue::visit(name, visitor),
    })
}

/// Visits the model of the big lock called `name`; none for other locks.
pub(crate) fn visit_big<V: BigVisitor<Loom>>(name: &str, visitor: V) -> Option<V::Output> {
    Some(match name {
        "mplock-ticket" => visitor.visit::<MplockTicket<Loom, ROOM>>(),
        "mplock-ticket-padded" => visitor.visit::<MplockTicketPadded<Loom, ROOM>>(),
        "mplock-anderson" => visitor.visit::<MplockAnderson<Loom, ROOM>>(),
        "mplock-clh" => visitor.visit::<MplockClh<Loom, ROOM>>(),
        "mplock-mcs" => visitor.visit::<MplockMcs<Loom, ROOM>>(),
        _ => return catalogue::visit_big(name, visitor),
    })
}
