//! Says which value stands for a lock in a model.
//!
//! Every lock of the catalogue, by its name; compiled for the locks, and again
//! for their copies with switches ([`super`]). Where a type holds an array for
//! hundreds of CPUs, the model has the same code with room for four: making
//! five hundred atomics for each of a million executions would be the whole
//! cost, and a small array goes round within one.

use super::library_models;
use super::locks::catalogue::{self, KindVisitor};
use super::locks::lock_api::RawRwLockDowngrade;
use super::locks::platform::Platform;
use super::locks::{
    BigLock, RawLock, RqSpinlock, TimedLock, kernel::MplockAnderson, queue::Anderson,
    queue::McsTimeoutNode, rw::RwPerCpu, spin::Twa,
};
use crate::platform::Loom;
use crate::property::{
    Operations, Property, after_a_failed_try, announced, biased, big_properties, both_sleep,
    called_back, comes_to_a_sleeper, given_up, handed_over, in_order_again_and_again,
    in_order_within_a_node, interrupted, interrupted_by_another, interrupted_in_queue,
    interrupted_twice, just_made, last_cpus, lets_others_in, loses_races, many_turns,
    moves_between_nodes, neighbour_in_interrupt, newcomers_wait, one_context, one_starves,
    one_writer_between, overtaking_in_one_order, overtaking_in_queue, passed_over_in_queue,
    passes_a_sleeping_head, place_kept, prefers_again, prefers_again_in_queue, prefers_its_node,
    programs, promises, queue_advances_during_preemption, queue_during_preemption, read_write,
    reader_asks, reader_without_number, readers_at_the_limit, readers_looked_before,
    readers_of_each_count, readers_of_one_count, readers_try_behind, readers_wait, readers_wrap,
    refused_beside_another, resilient, returns_during_preemption, running_keep_place,
    sent_off_and_called, short_lived, short_lived_in_one_node, taken_during_preemption, timed,
    virtualized, without_node, wraps_during_preemption, writer_tries,
};
use crate::subject::{self, Subject, subject};
use std::sync::Arc;

/// CPUs, slots: no less than the threads of any model.
pub(crate) const ROOM: usize = 4;

struct ToSubject;

impl<P: Platform> KindVisitor<P> for ToSubject {
    type Output = Arc<dyn Subject>;

    fn visit<L: RawLock<P>>(self) -> Arc<dyn Subject> {
        subject::<P, L>()
    }

    fn visit_timed<L: TimedLock<P>>(self) -> Arc<dyn Subject> {
        subject::timed::<P, L>(|_| true)
    }

    fn visit_timed_in_queue<L: TimedLock<P, Ctx = McsTimeoutNode<P>>>(self) -> Arc<dyn Subject> {
        subject::timed::<P, L>(McsTimeoutNode::is_idle)
    }

    fn visit_shared<L: RawLock<P, Ctx = ()> + RawRwLockDowngrade>(self) -> Arc<dyn Subject> {
        subject::shared::<P, L>()
    }

    fn visit_big<L: BigLock<P>>(self) -> Arc<dyn Subject> {
        subject::big::<P, L>()
    }
}

/// Returns the lock called `name`, with room for `CPUS` CPUs, a power of two.
pub(crate) fn model<P: Platform, const CPUS: usize>(name: &str) -> Option<Arc<dyn Subject>> {
    match name {
        "rqspinlock" => Some(subject::failing::<P, RqSpinlock<P>>(|lock| {
            lock.lock_or_fail().is_ok()
        })),
        _ => catalogue::visit_model::<P, CPUS, _>(name, ToSubject)
            .or_else(|| library_models::catalogue::visit_model::<P, _>(name, ToSubject)),
    }
}

/// Returns what the lock called `name` promises, the cheapest first; `None` if there is no such
/// lock.
pub(crate) fn properties_of(name: &str) -> Option<Vec<Property>> {
    Some(properties_of_model(&model::<Loom, ROOM>(name)?))
}

/// Returns what `lock`, or one with a bug, promises: all by what its `INFO` says.
pub(crate) fn properties_of_model(lock: &Arc<dyn Subject>) -> Vec<Property> {
    let info = lock.info();
    let mut all = promises(lock);
    let is_left_out = |name: &str| names(info.not_promised).any(|left_out| left_out == name);
    all.retain(|property| !is_left_out(property.name));
    if is_left_out("time in nesting") {
        for property in all.iter_mut().filter(|p| p.name == "nesting") {
            property.setting.clock = false;
        }
    }
    if info.timeout {
        all.extend(timed(lock));
    }
    if info.readers_share {
        all.extend(read_write(lock));
    }
    if info.recursive {
        all.extend(big_properties(lock));
    }
    for name in names(info.promises) {
        let made = MORE.iter().find(|(known, _)| *known == name);
        let (_, make) = made.unwrap_or_else(|| panic!("{}: no promise is '{name}'", info.name));
        all.extend(make(lock));
    }
    if info.numa_aware {
        all.push(moves_between_nodes(lock));
    }
    all.push(programs(lock, operations(lock)));
    for property in &mut all {
        property.orderings_of = property.orderings_of.or(info.orderings_of);
        property.structure_of = info.structure_of;
    }
    all
}

/// Returns the names in a list of an [`locklab_locks::Info`].
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ").filter(|name| !name.is_empty())
}

/// Returns what can be asked of a lock in any program.
fn operations(lock: &Arc<dyn Subject>) -> Operations {
    let info = lock.info();
    Operations {
        reads: info.readers_share,
        try_read: info.readers_share,
        downgrade: info.readers_share,
        timed: info.timeout,
        fails: names(info.promises).any(|name| name == "resilient"),
        big: info.recursive,
        // Of the others the count of readers is at its limit.
        wraps: lock.counts(),
        ..Operations::default()
    }
}

/// Makes promises of a lock.
type Make = fn(&Arc<dyn Subject>) -> Vec<Property>;

/// The promises that a lock's `INFO` names, and how each is made.
const MORE: &[(&str, Make)] = &[
    ("after a failed try", |lock| vec![after_a_failed_try(lock)]),
    ("anderson of two slots", |_| {
        let two = subject::<Loom, Anderson<Loom, 2>>();
        let mut all = two_slots(&two);
        all.extend(more_turns_than_slots(&two));
        all.extend([short_lived(&two, 2), just_made(&two)]);
        all
    }),
    ("announced", |lock| announced(lock).into()),
    ("biased", |lock| biased(lock)),
    ("both sleep", |lock| vec![both_sleep(lock)]),
    ("called back", |lock| vec![called_back(lock)]),
    ("comes to a sleeper", |lock| vec![comes_to_a_sleeper(lock)]),
    ("given up", |lock| given_up(lock)),
    ("handed over", |lock| vec![handed_over(lock, 0)]),
    // Who has waited for long says so when it sleeps again.
    ("handed over by starvation", |lock| {
        let mut all = vec![handed_over(lock, 1)];
        all.extend(one_starves(lock));
        all
    }),
    ("in order again", |lock| {
        vec![in_order_again_and_again(lock)]
    }),
    ("in order within a node", |lock| {
        vec![in_order_within_a_node(lock)]
    }),
    ("interrupted", |lock| vec![interrupted(lock)]),
    ("interrupted by qspinlock", |lock| {
        interrupted_by("qspinlock", lock)
    }),
    ("interrupted by qspinlock-pv", |lock| {
        interrupted_by("qspinlock-pv", lock)
    }),
    ("interrupted in queue", |lock| {
        vec![interrupted_in_queue(lock)]
    }),
    ("interrupted twice", |lock| {
        vec![interrupted_twice(lock), last_cpus(lock)]
    }),
    ("lets others in", |lock| vec![lets_others_in(lock)]),
    ("loses races", |lock| vec![loses_races(lock)]),
    ("many turns", |lock| many_turns(lock).into()),
    ("mplock-anderson of two slots", |_| {
        let two = subject::<Loom, MplockAnderson<Loom, 2>>();
        let mut all = two_slots(&two);
        all.push(Property {
            name: "goes round meanwhile, 2",
            ..wraps_during_preemption(&two)
        });
        all
    }),
    ("neighbour in interrupt", |lock| {
        vec![neighbour_in_interrupt(lock)]
    }),
    ("newcomers wait", |lock| {
        newcomers_wait(lock).into_iter().collect()
    }),
    ("one context", |lock| vec![one_context(lock)]),
    ("one writer between", |lock| vec![one_writer_between(lock)]),
    ("overtaking in queue", |lock| {
        vec![
            overtaking_in_queue(lock),
            overtaking_in_one_order(lock),
            passed_over_in_queue(lock),
            prefers_again_in_queue(lock),
        ]
    }),
    ("passes a sleeping head", |lock| {
        vec![passes_a_sleeping_head(lock)]
    }),
    ("place kept", |lock| vec![place_kept(lock)]),
    ("prefers again", |lock| vec![prefers_again(lock)]),
    ("prefers its node", |lock| vec![prefers_its_node(lock)]),
    ("queue advances", |lock| {
        queue_advances_during_preemption(lock).into_iter().collect()
    }),
    ("queue while preempted", |lock| {
        vec![queue_during_preemption(lock)]
    }),
    ("reader asks", |lock| vec![reader_asks(lock)]),
    ("reader without number", |lock| {
        vec![reader_without_number(lock)]
    }),
    ("readers at the limit", |lock| {
        vec![readers_at_the_limit(lock)]
    }),
    ("readers looked before", |lock| {
        vec![readers_looked_before(lock)]
    }),
    ("readers of each count", |lock| {
        vec![readers_of_each_count(lock)]
    }),
    // Where no CPU has an entry, all share one count.
    ("readers of one count", |_| {
        let none = subject::shared::<Loom, RwPerCpu<Loom, 0>>();
        readers_of_one_count(&none).into_iter().collect()
    }),
    ("readers try behind", |lock| vec![readers_try_behind(lock)]),
    ("readers wait", |lock| vec![readers_wait(lock)]),
    ("readers wrap", |lock| {
        readers_wrap(lock).into_iter().collect()
    }),
    ("refused beside another", |lock| {
        vec![refused_beside_another(lock)]
    }),
    ("resilient", |lock| resilient(lock)),
    ("returns while preempted", |lock| {
        vec![returns_during_preemption(lock)]
    }),
    ("running keep their place", |lock| {
        running_keep_place(lock).into_iter().collect()
    }),
    ("sent off and called", |lock| {
        sent_off_and_called(lock).into_iter().collect()
    }),
    ("short-lived", |lock| {
        vec![short_lived(lock, 2), just_made(lock)]
    }),
    ("short-lived among three", |lock| vec![short_lived(lock, 3)]),
    ("short-lived in one node", |lock| {
        vec![short_lived_in_one_node(lock)]
    }),
    ("taken while preempted", |lock| {
        vec![taken_during_preemption(lock)]
    }),
    // Two slots are one another's neighbours on both sides.
    ("twa of four slots", |_| {
        let four = promises(&subject::<Loom, Twa<Loom, 4>>()).into_iter();
        four.filter(|property| property.name == "one comes to two")
            .map(|property| Property {
                name: "one to two, four slots",
                ..property
            })
            .collect()
    }),
    ("virtualized", |lock| virtualized(lock)),
    ("without node", |lock| {
        without_node(lock).into_iter().collect()
    }),
    ("wraps", |lock| vec![wraps_during_preemption(lock)]),
    ("writer tries", |lock| writer_tries(lock)),
];

/// Returns the promise of a lock whose queue nodes of a CPU another kind takes too, in an
/// interrupt.
fn interrupted_by(other: &str, lock: &Arc<dyn Subject>) -> Vec<Property> {
    let other = model::<Loom, ROOM>(other).into_iter();
    other
        .map(|other| interrupted_by_another(lock, &other))
        .collect()
}

/// Returns promises of a lock with room for two, whose slots go round with the second
/// acquisition.
fn two_slots(lock: &Arc<dyn Subject>) -> Vec<Property> {
    promises(lock)
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

/// Returns promises with three turns at once on two slots: two of them wait at one.
fn more_turns_than_slots(lock: &Arc<dyn Subject>) -> Vec<Property> {
    promises(lock)
        .into_iter()
        .filter_map(|property| {
            let name = match property.name {
                "exclusion of three" => "three on two slots",
                "try_lock races of three" => "try_lock, three on two",
                "fifo" => "fifo, three on two slots",
                "one comes to two" => "four on two slots",
                _ => return None,
            };
            Some(Property { name, ..property })
        })
        .collect()
}
