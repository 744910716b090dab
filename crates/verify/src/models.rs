//! Which type stands for a lock in a model.
//!
//! Every lock of the catalogue, by its name. Where a type holds an array for
//! hundreds of CPUs, the model has the same code with room for four: making
//! five hundred atomics for each of a million executions would be the whole
//! cost, and a small array goes round within one.

use crate::platform::Loom;
use crate::property::{
    Property, big_properties, properties, read_write, short_lived, timed, virtualized,
};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{
    Anderson, Cna, CohortBoMcs, CohortTktTkt, Hemlock, Hmcs, Malthusian, Mcs, McsTimeout,
    MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded, QSpinlockVirt, RawLock,
    Reciprocating, Twa,
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

/// What some locks promise beyond what every lock does, which the catalogue
/// cannot say of a type that is known only by name.
pub(crate) fn more_properties(name: &str) -> Vec<Property> {
    match name {
        "anderson" => {
            let mut all = two_slots::<Anderson<Loom, 2>>();
            all.push(short_lived::<Anderson<Loom, 2>>());
            all
        }
        "mplock-ticket" => big_properties::<MplockTicket<Loom, ROOM>>(),
        "mplock-ticket-padded" => big_properties::<MplockTicketPadded<Loom, ROOM>>(),
        "mplock-anderson" => {
            let mut all = big_properties::<MplockAnderson<Loom, ROOM>>();
            all.extend(two_slots::<MplockAnderson<Loom, 2>>());
            all
        }
        "mplock-clh" => big_properties::<MplockClh<Loom, ROOM>>(),
        "mplock-mcs" => big_properties::<MplockMcs<Loom, ROOM>>(),
        "mcs" => vec![short_lived::<Mcs<Loom>>()],
        "cna" => vec![short_lived::<Cna<Loom>>()],
        "c-bo-mcs" => vec![short_lived::<CohortBoMcs<Loom>>()],
        "c-tkt-tkt" => vec![short_lived::<CohortTktTkt<Loom>>()],
        "hemlock" => vec![short_lived::<Hemlock<Loom>>()],
        "hmcs" => vec![short_lived::<Hmcs<Loom, 8>>()],
        "malthusian" => vec![short_lived::<Malthusian<Loom>>()],
        "reciprocating" => vec![short_lived::<Reciprocating<Loom>>()],
        "qspinlock-virt" => virtualized::<QSpinlockVirt<Loom>>(),
        "mcs-timeout" => timed::<McsTimeout<Loom>>(),
        "rw-queued" => read_write(),
        _ => Vec::new(),
    }
}

/// With room for two, the slots go round with the second acquisition.
fn two_slots<L: RawLock<Loom>>() -> Vec<Property> {
    properties::<L>()
        .into_iter()
        .filter_map(|property| {
            let name = match property.name {
                "reuse" => "reuse, two slots",
                "try_lock, late" => "try_lock, late, two slots",
                "try_lock, again" => "try_lock, again, 2 slots",
                _ => return None,
            };
            Some(Property { name, ..property })
        })
        .collect()
}
