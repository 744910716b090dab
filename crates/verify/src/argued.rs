//! Mutants that break no promise, and why: each is as good as the source, or
//! costs speed and nothing else.
//!
//! A reason is bound to the text of the source line, so that it does not
//! outlive what it speaks of. One that stands here and is killed nevertheless
//! counts as killed: the reason is wrong then.

use crate::mutation::Mutation;
use crate::source;

/// The file, a part of the line (of the line above where the call stands on
/// one of its own), what is changed, and why no promise breaks.
type Reason = (&'static str, &'static str, &'static str, &'static str);

const BEFORE_LINK: &str = "nobody grants a node before its owner has linked it";
const SPEED_OF_NODE: &str = "a wrong NUMA node costs speed (contract of `Platform::node`)";
const SLEEPS_LESS: &str =
    "a count that is too high makes writers look for sleepers: it costs speed";
const LATER_STEPS: &str =
    "two Relaxed stores to one CPU's node: an interrupt between them uses another node";
const PLACE_OF_OLD: &str =
    "an acquisition writes its place before anybody reads it, interrupts being off meanwhile";

const REASONS: &[Reason] = &[
    (
        "cohort.rs",
        "branch.passes.store(0",
        "store after what follows it",
        "the count is the local lock's, whose release comes later and orders it",
    ),
    (
        "cna.rs",
        "own.numa.store(P::node()",
        "write left out",
        SPEED_OF_NODE,
    ),
    (
        "cna.rs",
        "own.numa.store(P::node()",
        "store after what follows it",
        SPEED_OF_NODE,
    ),
    (
        "cna.rs",
        "own.grant.store(ptr::null_mut()",
        "store after what follows it",
        BEFORE_LINK,
    ),
    (
        "cna.rs",
        "own.local.store(0",
        "write left out",
        "a count left from an earlier turn is not above the bound: the others come sooner",
    ),
    (
        "futex.rs",
        "self.expected.store(",
        "write left out",
        "an old expectation changes how long waiters spin before they sleep: it costs speed",
    ),
    (
        "mplock/ticket.rs",
        "cpu.state().ticket.store(0",
        "write left out",
        PLACE_OF_OLD,
    ),
    (
        "mplock/anderson.rs",
        "cpu.slot.store(0",
        "write left out",
        PLACE_OF_OLD,
    ),
    (
        "bravo.rs",
        "self.inhibited.store(until",
        "write left out",
        "readers bias the lock again sooner than the paper has it: it costs speed",
    ),
    (
        "qspinlock_cna.rs",
        ".compare_exchange(word, held, Ordering::Release",
        "Release -> Relaxed",
        "C11 needs it: the null before it could overwrite the link of who queues behind; loom \
         orders stores of a word as they were executed",
    ),
    (
        "hmcs.rs",
        "node.status.store(WAIT",
        "store after what follows it",
        BEFORE_LINK,
    ),
    (
        "malthusian.rs",
        "node.state.store(WAITING",
        "store after what follows it",
        BEFORE_LINK,
    ),
    (
        "malthusian.rs",
        "self.turns.store(0",
        "write left out",
        "the next eldest come back at once: sooner than promised",
    ),
    (
        "mcs_timeout.rs",
        "node.state.store(WAITING",
        "store after what follows it",
        BEFORE_LINK,
    ),
    (
        "mcs_timeout.rs",
        "node.state.store(GRANTED",
        "write left out",
        "nobody reads the state of the node of a holder who never waited",
    ),
    (
        "mcs_timeout.rs",
        ".spin_until(Ordering::Relaxed, |state| state == IDLE)",
        "wait left out",
        "the loop around it looks again: it costs speed",
    ),
    (
        "mcs_timeout.rs",
        ".spin_until(Ordering::Relaxed, |state| state == IDLE)",
        "condition of the wait negated",
        "the loop around it looks again: it costs speed",
    ),
    (
        "qspinlock.rs",
        ".spin(Ordering::Relaxed, Patience::Reads(PENDING_READS)",
        "patience without end",
        "pending without locked ends when its owner, who waits for nobody, has entered",
    ),
    (
        "qspinlock.rs",
        "node.next.store(ptr::null_mut()",
        "store after what follows it",
        LATER_STEPS,
    ),
    (
        "qspinlock.rs",
        "node.granted.store(0",
        "store after what follows it",
        "the look at the word that follows is of another word, and nobody knows the node yet",
    ),
    (
        "qspinlock.rs",
        "node.granted.store(0",
        "store after the two that follow it",
        "the same; and if the lock was free, the node is not in use until it is reset again",
    ),
    (
        "qspinlock.rs",
        "next.granted.store(1",
        "write made twice",
        "the next head waits for our unlock, which comes later, before it leaves with its node",
    ),
    (
        "qspinlock.rs",
        "depth.store(level + 1",
        "store after what follows it",
        "an interrupt before it is over before the node is reset; see the mutant with two",
    ),
    (
        "qspinlock.rs",
        "self.word.store_low_byte(LOCKED",
        "store after what follows it",
        "while the tail names a waiter only the head takes the lock, and the grant comes later",
    ),
    (
        "qspinlock.rs",
        "next.granted.store(1",
        "store after what follows it",
        "our node is not used any more when its level is given back",
    ),
    (
        "virt_spin.rs",
        "word.spin(Ordering::Relaxed, Patience::Forever",
        "wait left out",
        "the compare-and-swap that follows looks again: it costs speed",
    ),
    (
        "mplock/mod.rs",
        "depth",
        "store after what follows it",
        "the depth is its CPU's own",
    ),
    (
        "twa.rs",
        ".fetch_add(1, Ordering::Release)",
        "write made twice",
        "a slot that changes says only: look again",
    ),
    (
        "parking.rs",
        "bucket.epoch.fetch_add(1",
        "write made twice",
        "an epoch that changes twice has changed",
    ),
    (
        "parking.rs",
        "bucket.parked.fetch_add(1",
        "write made twice",
        SLEEPS_LESS,
    ),
    (
        "parking.rs",
        "W::parked().fetch_add(1",
        "write made twice",
        SLEEPS_LESS,
    ),
    (
        "parking.rs",
        "W::parked().fetch_sub(1",
        "write left out",
        SLEEPS_LESS,
    ),
    (
        "parking.rs",
        "bucket.parked.fetch_sub(1",
        "write left out",
        SLEEPS_LESS,
    ),
];

/// Why this mutant breaks no promise, if that is known.
pub(crate) fn because(mutation: &Mutation) -> Option<&'static str> {
    let place = mutation.place;
    let description = mutation.description();
    let text = source::line(place.file, place.line).unwrap_or("");
    let above = source::line(place.file, place.line.saturating_sub(1)).unwrap_or("");
    let about = |line: &str| {
        let reason = REASONS.iter().find(|(file, part, change, _)| {
            place.file.ends_with(file) && line.contains(part) && description == *change
        });
        reason.map(|&(_, _, _, why)| why)
    };
    about(text).or_else(|| about(above))
}
