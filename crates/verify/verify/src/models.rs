//! Says which value stands for a lock in a model.
//!
//! Every lock of the catalogue, by its name; compiled for the locks, and again
//! for their copies with switches ([`super`]). Where a type holds an array for
//! hundreds of CPUs, the model has the same code with room for four: making
//! five hundred atomics for each of a million executions would be the whole
//! cost, and a small array goes round within one.

use super::locks::catalogue::{self, KindVisitor};
use super::locks::lock_api::RawRwLockDowngrade;
use super::locks::platform::Platform;
use super::locks::{
    Anderson, BigLock, McsTimeoutNode, MplockAnderson, RawLock, RqSpinlock, RwPerCpu, TimedLock,
    Twa,
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
        _ => catalogue::visit_model::<P, CPUS, _>(name, ToSubject),
    }
}

/// Returns what the lock called `name` promises, the cheapest first; `None` if there is no such
/// lock.
pub(crate) fn properties_of(name: &str) -> Option<Vec<Property>> {
    Some(properties_of_model(name, &model::<Loom, ROOM>(name)?))
}

/// Returns what `lock`, which is that called `name` or one with a bug, promises.
pub(crate) fn properties_of_model(name: &str, lock: &Arc<dyn Subject>) -> Vec<Property> {
    let mut all = promises(lock);
    let swaps_until_it_sleeps = matches!(
        name,
        "parkinglot-mutex" | "go-mutex" | "parkinglot-rw" | "srw" | "abseil-mutex"
    );
    if name == "mcs-k42" || swaps_until_it_sleeps {
        // Who comes swaps the tail for its own in a loop, which may lose every race, or
        // says so that it will sleep.
        all.retain(|property| property.name != "a place in the end");
    }
    if name == "mcs-tp" {
        // Its waiters read the clock and each other's times at every turn, so
        // that not even one preemption of four threads ends within the limit.
        all.retain(|property| property.name != "one comes to two");
        // For the same reason no time passes in this one.
        for property in all.iter_mut().filter(|p| p.name == "nesting") {
            property.setting.clock = false;
        }
    }
    if name == "abseil-mutex" {
        // Its waiters and its releases retry each step that another's forestalls, so that not
        // even one preemption of four threads ends within the limit. What only four show is in
        // "one comes to a sleeper".
        all.retain(|property| property.name != "one comes to two");
    }
    if lock.info().timeout {
        all.extend(timed(lock));
    }
    if lock.info().readers_share {
        all.extend(read_write(lock));
    }
    if lock.info().recursive {
        all.extend(big_properties(lock));
    }
    all.extend(more_properties(name, lock));
    if name.starts_with("qspinlock") || name == "rqspinlock" {
        all.extend(without_node(lock));
        if !lock.info().parks {
            all.extend(queue_advances_during_preemption(lock));
        }
    }
    if matches!(name, "qspinlock" | "qspinlock-virt") {
        all.push(taken_during_preemption(lock));
    }
    if matches!(name, "qspinlock" | "qspinlock-pv" | "qspinlock-cna") {
        all.push(neighbour_in_interrupt(lock));
    }
    let races = [
        "tas",
        "tas-word",
        "ttas",
        "ttas-word",
        "virt-spin",
        "virt-spin-delay",
        "virt-spin-backoff",
        "fissile",
        "mcs-k42",
        "malthusian",
        "futex",
        "futex-adaptive",
        "musl-mutex",
        "std-mutex",
        "glibc-adaptive",
        "parkinglot-mutex",
        "go-mutex",
        "swift-mutex",
        "abseil-mutex",
        "std-rw",
        "parkinglot-rw",
        "glibc-rw",
        "glibc-rw-w",
        "srw",
    ];
    if races.contains(&name) {
        all.push(loses_races(lock));
    }
    if matches!(name, "mcs-timeout" | "mcs-tp") {
        all.push(after_a_failed_try(lock));
    }
    if matches!(
        name,
        "twa"
            | "phase-fair"
            | "bravo"
            | "mplock-ticket"
            | "mplock-ticket-padded"
            | "mplock-anderson"
    ) {
        all.push(wraps_during_preemption(lock));
    }
    if matches!(name, "bravo" | "rw-per-cpu") {
        all.push(reader_without_number(lock));
    }
    if lock.info().numa_aware {
        all.push(moves_between_nodes(lock));
    }
    if matches!(name, "cna" | "hmcs" | "c-bo-mcs") {
        all.push(short_lived_in_one_node(lock));
    }
    if name == "cna" {
        all.push(prefers_again(lock));
    }
    if matches!(name, "cna" | "hmcs" | "c-tkt-tkt") {
        all.push(in_order_within_a_node(lock));
    }
    // Whose places are used again by others, or are their CPU's.
    if matches!(
        name,
        "qspinlock" | "mcs-timeout" | "twa" | "mplock-anderson" | "mplock-mcs"
    ) {
        all.push(in_order_again_and_again(lock));
    }
    if matches!(name, "qspinlock" | "qspinlock-virt" | "qspinlock-pv") {
        all.extend([interrupted_twice(lock), last_cpus(lock)]);
    }
    if let Some(other) = of_another_kind(name) {
        all.push(interrupted_by_another(lock, &other));
    }
    if matches!(name, "cna" | "hmcs" | "c-bo-mcs" | "c-tkt-tkt") {
        all.push(prefers_its_node(lock));
    }
    all.push(programs(lock, operations(name, lock)));
    for property in &mut all {
        property.orderings_of = property.orderings_of.or(orderings_of(name));
        property.structure_of = structure_of(name);
    }
    all
}

/// Returns what can be asked of a lock in any program.
fn operations(name: &str, lock: &Arc<dyn Subject>) -> Operations {
    let info = lock.info();
    Operations {
        reads: info.readers_share,
        try_read: info.readers_share,
        downgrade: info.readers_share,
        timed: info.timeout,
        fails: name == "rqspinlock",
        big: info.recursive,
        // Of the others the count of readers is at its limit.
        wraps: lock.counts(),
        ..Operations::default()
    }
}

/// Returns a lock with code of its own that takes the same queue nodes of a CPU.
fn of_another_kind(name: &str) -> Option<Arc<dyn Subject>> {
    match name {
        "qspinlock" => model::<Loom, ROOM>("qspinlock-pv"),
        "qspinlock-pv" => model::<Loom, ROOM>("qspinlock"),
        _ => None,
    }
}

/// Returns what some locks promise beyond what every lock does, and their `INFO` does not say.
fn more_properties(name: &str, lock: &Arc<dyn Subject>) -> Vec<Property> {
    match name {
        "anderson" => {
            let two = subject::<Loom, Anderson<Loom, 2>>();
            let mut all = two_slots(&two);
            all.extend(more_turns_than_slots(&two));
            all.extend([short_lived(&two, 2), just_made(&two)]);
            all
        }
        "mplock-anderson" => {
            let two = subject::<Loom, MplockAnderson<Loom, 2>>();
            let mut all = two_slots(&two);
            all.push(Property {
                name: "goes round meanwhile, 2",
                ..wraps_during_preemption(&two)
            });
            all
        }
        "hemlock" => vec![short_lived(lock, 2), just_made(lock), one_context(lock)],
        "mcs" | "cna" | "c-tkt-tkt" | "hmcs" | "reciprocating" => {
            vec![short_lived(lock, 2), just_made(lock)]
        }
        "c-bo-mcs" => vec![short_lived(lock, 2), just_made(lock), lets_others_in(lock)],
        "malthusian" => {
            let mut all = Vec::from(many_turns(lock));
            all.extend(sent_off_and_called(lock));
            all.extend([
                called_back(lock),
                short_lived(lock, 2),
                short_lived(lock, 3),
                just_made(lock),
            ]);
            all
        }
        "twa" => {
            // Two slots are one another's neighbours on both sides.
            let four = promises(&subject::<Loom, Twa<Loom, 4>>());
            let named = |property: &Property| property.name == "one comes to two";
            let of_four = four.into_iter().filter(named);
            of_four
                .map(|property| Property {
                    name: "one to two, four slots",
                    ..property
                })
                .collect()
        }
        "fissile" => Vec::from(announced(lock)),
        "qspinlock" => vec![interrupted(lock), queue_during_preemption(lock)],
        "qspinlock-pv" => vec![
            both_sleep(lock),
            passes_a_sleeping_head(lock),
            interrupted(lock),
            interrupted_in_queue(lock),
            queue_during_preemption(lock),
            returns_during_preemption(lock),
        ],
        "qspinlock-virt" => {
            let mut all = virtualized(lock);
            all.extend([interrupted(lock), queue_during_preemption(lock)]);
            all
        }
        "qspinlock-cna" => {
            let mut all = Vec::from(many_turns(lock));
            all.extend([
                interrupted(lock),
                overtaking_in_queue(lock),
                overtaking_in_one_order(lock),
                passed_over_in_queue(lock),
                prefers_again_in_queue(lock),
                queue_during_preemption(lock),
            ]);
            all
        }
        "mcs-timeout" | "mcs-tp" => {
            let mut all = given_up(lock);
            match name {
                "mcs-tp" => all.extend(running_keep_place(lock)),
                _ => all.push(place_kept(lock)),
            }
            all
        }
        "rqspinlock" => [resilient(lock), vec![interrupted(lock)]].concat(),
        "rw-queued" => {
            let mut all = Vec::from(announced(lock));
            all.extend([
                readers_wait(lock),
                readers_try_behind(lock),
                reader_asks(lock),
                readers_at_the_limit(lock),
                refused_beside_another(lock),
            ]);
            all
        }
        "phase-fair" => {
            let mut all = Vec::from(announced(lock));
            all.extend([
                readers_wait(lock),
                readers_try_behind(lock),
                reader_asks(lock),
                one_writer_between(lock),
            ]);
            all.extend(readers_wrap(lock));
            all.extend(writer_tries(lock));
            all
        }
        "std-rw" => {
            let mut all = writer_tries(lock);
            all.push(reader_asks(lock));
            all
        }
        "glibc-rw" | "glibc-rw-w" => {
            let mut all = writer_tries(lock);
            all.extend([reader_asks(lock), readers_at_the_limit(lock)]);
            if name == "glibc-rw-w" {
                all.extend([
                    readers_wait(lock),
                    readers_try_behind(lock),
                    readers_looked_before(lock),
                ]);
            }
            all
        }
        "srw" => {
            let mut all = writer_tries(lock);
            all.extend([
                readers_try_behind(lock),
                reader_asks(lock),
                readers_at_the_limit(lock),
            ]);
            all
        }
        "parkinglot-mutex" => vec![handed_over(lock, 0)],
        "abseil-mutex" => {
            let mut all = writer_tries(lock);
            all.extend([
                comes_to_a_sleeper(lock),
                readers_try_behind(lock),
                reader_asks(lock),
                readers_at_the_limit(lock),
            ]);
            all.extend(newcomers_wait(lock));
            all
        }
        // Who has waited for long says so when it sleeps again.
        "go-mutex" => {
            let mut all = vec![handed_over(lock, 1)];
            all.extend(one_starves(lock));
            all
        }
        // Who waits for readers has closed the lock to others.
        "parkinglot-rw" => {
            let mut all = writer_tries(lock);
            all.extend([
                handed_over(lock, 0),
                readers_wait(lock),
                readers_try_behind(lock),
                reader_asks(lock),
                readers_at_the_limit(lock),
            ]);
            all
        }
        // Its readers pass a writer that waits for the lock inside.
        "bravo" => biased(lock),
        "rw-per-cpu" => {
            let mut all = Vec::from(announced(lock));
            all.extend([
                readers_wait(lock),
                readers_try_behind(lock),
                reader_asks(lock),
                readers_of_each_count(lock),
            ]);
            all.extend(writer_tries(lock));
            // Where no CPU has an entry, all share one count.
            all.extend(readers_of_one_count(&subject::shared::<
                Loom,
                RwPerCpu<Loom, 0>,
            >()));
            all
        }
        _ => Vec::new(),
    }
}

/// Returns the source file whose orderings a lock is there to show needed, if not
/// those of all that it runs: a lock inside it, whose orderings its own
/// promises show needed, may need fewer here, where it only orders who
/// watches a word next.
fn orderings_of(name: &str) -> Option<&'static str> {
    match name {
        "rw-queued" => Some("locks/src/rwlock.rs"),
        "bravo" => Some("locks/src/bravo.rs"),
        "rw-per-cpu" => Some("locks/src/rw_per_cpu.rs"),
        "rqspinlock" => Some("locks/src/rqspinlock.rs"),
        "glibc-adaptive" => Some("locks/src/glibc_adaptive.rs"),
        "parkinglot-rw" => Some("locks/src/parking_lot_rw.rs"),
        "go-mutex" => Some("locks/src/go_mutex.rs"),
        "qspinlock" => Some("locks/src/qspinlock.rs"),
        "qspinlock-pv" => Some("locks/src/qspinlock_pv.rs"),
        "qspinlock-cna" => Some("locks/src/qspinlock_cna.rs"),
        _ => None,
    }
}

/// Returns the source files whose structure a lock is there to show needed, if it has
/// another lock inside, or beside it in a model: that one has a row of its own, and
/// promises more there. None named: all.
fn structure_of(name: &str) -> &'static [&'static str] {
    match name {
        "fissile" => &["locks/src/fissile.rs"],
        "c-bo-mcs" | "c-tkt-tkt" => &["locks/src/cohort.rs", "P::preferences()"],
        "rw-queued" => &["locks/src/rwlock.rs"],
        "bravo" => &["locks/src/bravo.rs"],
        "rw-per-cpu" => &["locks/src/rw_per_cpu.rs"],
        "rqspinlock" => &["locks/src/rqspinlock.rs"],
        "glibc-adaptive" => &["locks/src/glibc_adaptive.rs"],
        "parkinglot-rw" => &["locks/src/parking_lot_rw.rs"],
        "go-mutex" => &["locks/src/go_mutex.rs"],
        "qspinlock-cna" => &["locks/src/qspinlock_cna.rs", "P::preferences()"],
        "qspinlock" => &["locks/src/qspinlock.rs", "P::cpu()"],
        "qspinlock-pv" => &["locks/src/qspinlock_pv.rs", "P::cpu()"],
        "qspinlock-virt" => &["locks/src/qspinlock_virt.rs", "locks/src/virt_spin.rs"],
        _ => &[],
    }
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
