//! Which type stands for a lock in a model.
//!
//! Every lock of the catalogue, by its name. Where a type holds an array for
//! hundreds of CPUs, the model has the same code with room for four: making
//! five hundred atomics for each of a million executions would be the whole
//! cost, and a small array goes round within one.

use crate::platform::Loom;
use crate::property::{
    Property, big_properties, given_up, properties, read_write, short_lived, short_lived_three,
    timed, virtualized,
};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::platform::Platform;
use locklab_locks::{
    Anderson, Cna, CohortBoMcs, CohortTktTkt, Hemlock, Hmcs, Malthusian, Mcs, McsTimeout,
    MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded, QSpinlockVirt, RawLock,
    Reciprocating, Twa,
};

/// CPUs, slots: no less than the threads of any model.
pub(crate) const ROOM: usize = 4;

/// Visits the model of the lock called `name`, with room for `CPUS` CPUs, a
/// power of two.
pub(crate) fn visit<P: Platform, V: Visitor<P>, const CPUS: usize>(
    name: &str,
    visitor: V,
) -> Option<V::Output> {
    Some(match name {
        "anderson" => visitor.visit::<Anderson<P, CPUS>>(),
        "twa" => visitor.visit::<Twa<P, 2>>(),
        "mplock-ticket" => visitor.visit::<MplockTicket<P, CPUS>>(),
        "mplock-ticket-padded" => visitor.visit::<MplockTicketPadded<P, CPUS>>(),
        "mplock-anderson" => visitor.visit::<MplockAnderson<P, CPUS>>(),
        "mplock-clh" => visitor.visit::<MplockClh<P, CPUS>>(),
        "mplock-mcs" => visitor.visit::<MplockMcs<P, CPUS>>(),
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
        "malthusian" => vec![
            short_lived::<Malthusian<Loom>>(),
            short_lived_three::<Malthusian<Loom>>(),
        ],
        "reciprocating" => vec![short_lived::<Reciprocating<Loom>>()],
        "qspinlock-virt" => virtualized::<QSpinlockVirt<Loom>>(),
        "mcs-timeout" => {
            let mut all = timed::<McsTimeout<Loom>>();
            all.extend(given_up());
            all
        }
        "rw-queued" => read_write(),
        _ => Vec::new(),
    }
}

/// The source file whose orderings a lock is there to show needed, if not
/// those of all that it runs: a lock inside it, whose orderings its own
/// promises show needed, may need fewer here, where it only orders who
/// watches a word next.
pub(crate) fn orderings_of(name: &str) -> Option<&'static str> {
    (name == "rw-queued").then_some("locks/src/rwlock.rs")
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
