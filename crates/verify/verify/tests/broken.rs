//! The checker can fail: locks with one known fault each are caught.

use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_locks::{Fairness, Info, RawLock};
use locklab_verify::random::{self, Random};
use locklab_verify::{Limits, Loom, Outcome, check, properties};
use std::ptr;

const INFO: Info = Info {
    name: "broken",
    summary: "has a fault",
    try_lock: false,
    max_cpus: 4,
    paper: "none",
    ..Info::BASE
};

/// Returns the properties that fail, and how.
fn failures<L: RawLock<Loom>>() -> Vec<(&'static str, String)> {
    let mut failures = Vec::new();
    for property in properties::<L>() {
        let limits = Limits {
            executions: 20_000,
            ..Limits::default()
        };
        if let Outcome::Fails(failure) = check(&property, limits, None).outcome {
            assert!(
                !failure.trace.is_empty(),
                "a failure is shown with its steps"
            );
            failures.push((property.name, failure.message));
        }
    }
    failures
}

/// A lock of one word, whose acquire and release are the parameters' faults.
struct OneWord<P: Platform, const FAULT: u8>(P::U32);

const SPLIT_TEST_AND_SET: u8 = 1;
const RELAXED_UNLOCK: u8 = 2;
const RELAXED_LOCK: u8 = 3;
const WAKE_BEFORE_STORE: u8 = 4;
const SLEEP_WITHOUT_MARK: u8 = 5;
const TRY_LOCK_WAITS: u8 = 6;
const CLAIMS_FIFO: u8 = 7;
const SOUND: u8 = 0;

impl<P: Platform, const FAULT: u8> Default for OneWord<P, FAULT> {
    fn default() -> Self {
        Self(P::U32::new(0))
    }
}

// SAFETY: not one of them is safe but the sound one; that is their purpose.
unsafe impl<P: Platform, const FAULT: u8> RawLock<P> for OneWord<P, FAULT> {
    type Ctx = ();
    const INFO: Info = Info {
        try_lock: FAULT == TRY_LOCK_WAITS,
        fairness: if FAULT == CLAIMS_FIFO {
            Fairness::Fifo
        } else {
            Fairness::Unfair
        },
        ..INFO
    };

    unsafe fn lock(&self, _: &()) {
        let word = &self.0;
        match FAULT {
            SPLIT_TEST_AND_SET => {
                word.spin_until(Ordering::Acquire, |word| word == 0);
                word.store(1, Ordering::Relaxed);
            }
            WAKE_BEFORE_STORE => {
                while word.swap(1, Ordering::Acquire) != 0 {
                    P::wait(word, 1);
                }
            }
            // 1: held; 2: held, and somebody sleeps.
            SLEEP_WITHOUT_MARK => {
                while word
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_err()
                {
                    P::wait(word, 1);
                }
            }
            _ => {
                let order = if FAULT == RELAXED_LOCK {
                    Ordering::Relaxed
                } else {
                    Ordering::Acquire
                };
                while word
                    .compare_exchange(0, 1, order, Ordering::Relaxed)
                    .is_err()
                {
                    word.spin_until(Ordering::Relaxed, |word| word == 0);
                }
            }
        }
    }

    unsafe fn try_lock(&self, ctx: &()) -> bool {
        if FAULT == TRY_LOCK_WAITS {
            // SAFETY: as the caller promises.
            unsafe { self.lock(ctx) };
        }
        FAULT == TRY_LOCK_WAITS
    }

    unsafe fn unlock(&self, _: &()) {
        let order = if FAULT == RELAXED_UNLOCK {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        match FAULT {
            WAKE_BEFORE_STORE => {
                P::wake(&self.0);
                self.0.store(0, order);
            }
            SLEEP_WITHOUT_MARK => {
                if self.0.swap(0, order) == 2 {
                    P::wake(&self.0);
                }
            }
            _ => self.0.store(0, order),
        }
    }
}

#[test]
fn the_sound_one_is_sound() {
    assert_eq!(failures::<OneWord<Loom, SOUND>>(), []);
}

#[test]
fn a_test_and_a_set_are_not_a_test_and_set() {
    assert_eq!(
        failures::<OneWord<Loom, SPLIT_TEST_AND_SET>>()[0].0,
        "exclusion"
    );
}

#[test]
fn relaxed_orderings_lose_the_data() {
    for (name, message) in [
        failures::<OneWord<Loom, RELAXED_UNLOCK>>().remove(0),
        failures::<OneWord<Loom, RELAXED_LOCK>>().remove(0),
    ] {
        assert_eq!(name, "exclusion");
        assert!(message.contains("does not see"), "{message}");
    }
}

#[test]
fn lost_wakeups_are_deadlocks() {
    for (name, message) in [
        failures::<OneWord<Loom, WAKE_BEFORE_STORE>>().remove(0),
        failures::<OneWord<Loom, SLEEP_WITHOUT_MARK>>().remove(0),
    ] {
        assert_eq!(name, "exclusion");
        assert!(message.starts_with("deadlock"), "{message}");
    }
}

#[test]
fn a_try_lock_that_waits_is_caught() {
    let failures = failures::<OneWord<Loom, TRY_LOCK_WAITS>>();
    assert!(
        failures
            .iter()
            .any(|(_, message)| message.starts_with("an attempt waits")),
        "{failures:?}"
    );
}

#[test]
fn a_lock_that_is_not_fifo_cannot_say_so() {
    let failures = failures::<OneWord<Loom, CLAIMS_FIFO>>();
    assert_eq!(failures[0].0, "fifo", "{failures:?}");
}

/// A ticket lock whose unlock releases nothing.
struct RelaxedTicket<P: Platform> {
    next: P::U32,
    owner: P::U32,
}

impl<P: Platform> Default for RelaxedTicket<P> {
    fn default() -> Self {
        Self {
            next: P::U32::new(0),
            owner: P::U32::new(0),
        }
    }
}

// SAFETY: it is not; see `relaxed_ticket_and_mcs_are_caught`.
unsafe impl<P: Platform> RawLock<P> for RelaxedTicket<P> {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        let mine = self.next.fetch_add(1, Ordering::AcqRel);
        self.owner
            .spin_until(Ordering::Acquire, |owner| owner == mine);
    }

    unsafe fn unlock(&self, _: &()) {
        self.owner.fetch_add(1, Ordering::Relaxed);
    }
}

/// An MCS lock whose orderings are the parameter's fault.
struct BrokenMcs<P: Platform, const FAULT: u8>(P::Ptr<Node<P>>);

/// The link to the predecessor.
const RELAXED_LINK: u8 = 8;
/// The queueing: the predecessor's reset of its link may come after our link.
const ACQUIRE_TAIL: u8 = 9;

struct Node<P: Platform> {
    next: P::Ptr<Node<P>>,
    granted: P::U32,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            granted: P::U32::new(0),
        }
    }
}

impl<P: Platform, const FAULT: u8> Default for BrokenMcs<P, FAULT> {
    fn default() -> Self {
        Self(P::Ptr::new(ptr::null_mut()))
    }
}

// SAFETY: it is not; see `relaxed_ticket_and_mcs_are_caught`.
unsafe impl<P: Platform, const FAULT: u8> RawLock<P> for BrokenMcs<P, FAULT> {
    type Ctx = Node<P>;
    const INFO: Info = INFO;

    unsafe fn lock(&self, node: &Node<P>) {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.granted.store(0, Ordering::Relaxed);
        let node_pointer = ptr::from_ref(node).cast_mut();
        let order = match FAULT {
            ACQUIRE_TAIL => Ordering::Acquire,
            _ => Ordering::AcqRel,
        };
        let before = self.0.swap(node_pointer, order);
        // SAFETY: the predecessor waits for our link before it leaves.
        if let Some(before) = unsafe { before.as_ref() } {
            let order = match FAULT {
                RELAXED_LINK => Ordering::Relaxed,
                _ => Ordering::Release,
            };
            before.next.store(node_pointer, order);
            node.granted.spin_until(Ordering::Acquire, |g| g != 0);
        }
    }

    unsafe fn unlock(&self, node: &Node<P>) {
        let node_pointer = ptr::from_ref(node).cast_mut();
        if self
            .0
            .compare_exchange(
                node_pointer,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_err()
        {
            let next = node.next.spin_until(Ordering::Acquire, |n| !n.is_null());
            // SAFETY: the successor waits until it is granted.
            unsafe { &*next }.granted.store(1, Ordering::Release);
        }
    }
}

#[test]
fn relaxed_ticket_and_mcs_are_caught() {
    assert_eq!(failures::<RelaxedTicket<Loom>>()[0].0, "exclusion");
    assert_eq!(
        failures::<BrokenMcs<Loom, RELAXED_LINK>>()[0].0,
        "exclusion"
    );
}

/// The only fault is the order of two stores: a reset may come after the link
/// that it wipes out.
#[test]
fn a_link_that_a_reset_wipes_out_is_caught() {
    assert_eq!(failures::<BrokenMcs<Loom, SOUND>>(), []);
    let (name, message) = failures::<BrokenMcs<Loom, ACQUIRE_TAIL>>().remove(0);
    assert_eq!(name, "exclusion");
    assert!(message.starts_with("deadlock"), "{message}");
}

/// Asserts the same under random schedules, which know nothing of weak memory.
#[test]
fn random_schedules_catch_what_is_wrong_without_weak_memory() {
    let failure = |drawn: random::Drawn| drawn.failure.map(|failure| failure.message);
    for (broken, said) in [
        (
            random::draw_lock::<OneWord<Random, SPLIT_TEST_AND_SET>>(1, 100),
            "two holders at once",
        ),
        (
            random::draw_lock::<OneWord<Random, WAKE_BEFORE_STORE>>(1, 100),
            "deadlock",
        ),
        (
            random::draw_lock::<OneWord<Random, SLEEP_WITHOUT_MARK>>(1, 100),
            "deadlock",
        ),
    ] {
        let message = failure(broken).expect("a fault is found");
        assert!(message.contains(said), "{message}");
    }
    assert_eq!(
        failure(random::draw_lock::<OneWord<Random, SOUND>>(1, 100)),
        None
    );
}
