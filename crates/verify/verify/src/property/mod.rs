//! Checks what every lock promises; each promise is a model that loom explores.
//!
//! The models take a lock as a value ([`Subject`]): one that joins the
//! catalogue, or comes at run time, is held to them without a line here.
//! What a lock does not promise (FIFO, `try_lock`) is left out by what its
//! `INFO` says, never by its name.

mod big;
mod deadlock;
mod definition;
mod exclusion;
mod fairness;
mod interrupts;
mod newcomers;
mod preemption;
mod programs;
mod readers;
mod running;
mod special;
mod table;

use crate::platform::Loom;
use crate::subject::{Subject, subject};
pub(crate) use big::big_properties;
pub(crate) use deadlock::resilient;
use definition::Lock;
pub use definition::Property;
use locklab_locks::{Fairness, RawLock};
pub(crate) use readers::{
    biased, read_write, reader_asks, reader_without_number, readers_at_the_limit,
    readers_looked_before, readers_of_each_count, readers_of_one_count, readers_wrap,
    refused_beside_another, writer_tries,
};
pub(crate) use special::{
    both_sleep, comes_to_a_sleeper, given_up, just_made, one_context, one_starves,
    passes_a_sleeping_head, short_lived, short_lived_in_one_node, timed, virtualized,
};
use std::sync::Arc;

pub(crate) use exclusion::{
    after_a_failed_try, called_back, exclusion_of_four, many_turns, moves_between_nodes,
    passed_over_in_queue, sent_off_and_called, wraps_during_preemption,
};
pub(crate) use fairness::{
    announced, handed_over, in_order_again_and_again, in_order_within_a_node, lets_others_in,
    one_writer_between, overtaking_in_one_order, overtaking_in_queue, passed_while_it_sleeps,
    prefers_again, prefers_again_in_queue, prefers_its_node, readers_try_behind, readers_wait,
};
pub(crate) use interrupts::{
    interrupted, interrupted_by_another, interrupted_in_queue, interrupted_twice, last_cpus,
    neighbour_in_interrupt,
};
pub(crate) use newcomers::newcomers_wait;
pub(crate) use preemption::{
    loses_races, queue_advances_during_preemption, queue_during_preemption,
    returns_during_preemption, taken_during_preemption, without_node,
};
pub(crate) use programs::{Operations, programs};
pub(crate) use running::{place_kept, running_keep_place};
pub(crate) use table::{Shared, join_all, spawn};

/// Returns the promises of lock `L`, the cheapest first.
pub fn properties<L: RawLock<Loom>>() -> Vec<Property> {
    promises(&subject::<Loom, L>())
}

/// Returns the promises of a lock, the cheapest first.
pub fn promises(lock: &Arc<dyn Subject>) -> Vec<Property> {
    use exclusion::{
        exclusion, one_comes_back, one_comes_to_two, queue_formed_before, try_lock_after_a_queue,
        try_lock_again, try_lock_alone, try_lock_late, try_lock_never_waits, try_lock_races,
        wrap_around,
    };
    let info = lock.info();
    let mut all: Vec<Property> = Vec::new();
    let mut add = |name, threads, model: fn(&Lock)| {
        all.push(Property::new(name, threads, lock, model));
    };
    add("exclusion", 2, |lock| exclusion(lock, 2, 1));
    add("reuse", 2, |lock| exclusion(lock, 2, 2));
    add("exclusion of three", 3, |lock| exclusion(lock, 3, 1));
    add("try_lock alone", 1, |lock| try_lock_alone(lock, false));
    if info.try_lock {
        add("try_lock does not wait", 2, try_lock_never_waits);
        add("try_lock races", 2, |lock| try_lock_races(lock, 2));
        add("try_lock, late", 2, try_lock_late);
        add("try_lock, again", 2, try_lock_again);
        add("try_lock races of three", 3, |lock| try_lock_races(lock, 3));
        if info.bytes_per_waiter > 0 {
            add("try_lock after a queue", 4, try_lock_after_a_queue);
        }
    }
    if info.fairness == Fairness::Fifo {
        add("fifo", 3, fairness::fifo);
        if info.try_lock {
            add("fifo, one tries", 3, fairness::fifo_beside_an_attempt);
        }
    }
    if info.fairness != Fairness::Unfair {
        add("a place in the end", 2, fairness::place_in_the_end);
    }
    if info.overtakes.is_some() {
        add("overtaking", 3, fairness::overtaking);
    }
    if info.parks {
        add("waiters sleep", 2, special::waiters_sleep);
    }
    if lock.counts() {
        add("wrap-around", 2, wrap_around);
        add("alone, at the wrap", 1, |lock| try_lock_alone(lock, true));
    }
    add("queue formed before", 3, queue_formed_before);
    add("one comes back", 3, one_comes_back);
    add("one comes to two", 4, one_comes_to_two);
    if info.numa_aware || info.overtakes.is_some() {
        let passed = Property::new("passed over twice", 4, lock, exclusion::passed_over);
        all.push(passed.with(|setting| setting.preferences = 2));
        if info.overtakes.is_some() {
            let model = fairness::overtaking_a_used_lock;
            let used = Property::new("overtaking, used before", 3, lock, model);
            all.push(used.with(|setting| setting.preferences = 2));
        }
    }
    if info.numa_aware {
        let alone = Property::new("one NUMA node", 3, lock, one_comes_back);
        all.push(alone.with(|setting| setting.numa_nodes = 1));
    }
    let nesting = Property::new("nesting", 3, lock, interrupts::nesting);
    all.push(Property {
        aim: 1,
        levels: 2,
        ..nesting
    });
    all.push(Property::new("reuse by three", 3, lock, |lock| {
        exclusion(lock, 3, 2);
    }));
    for property in &mut all {
        if property.name == "waiters sleep" {
            property.setting.choices = false;
        }
    }
    all
}
