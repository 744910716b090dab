//! Locks of the catalogue whose waiters spin, then sleep, and what they promise.
//!
//! The parking lot itself is [`crate::parking`], which must not know of promises.

use crate::parking::World;
use crate::platform::Loom;
use crate::property::{Property, join_all, promises, spawn, timed};
use crate::subject::{Subject, subject};
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Platform};
use locklab_locks::{
    Info, Mcs, Parking, QSpinlock, RawLock, Ticket, TimedLock, queue::Clh, queue::McsTimeout,
    queue::McsTimeoutNode,
};
use std::sync::Arc;

/// The name under which the parking lot is verified.
pub const SPIN_THEN_PARK: &str = "spin-then-park";

/// Lock `L` of a parking platform as one of the checker's own.
#[derive(Default)]
struct Parked<L, const HEAVY: bool>(L);

// SAFETY: that of `L`.
unsafe impl<L, const HEAVY: bool> RawLock<Loom> for Parked<L, HEAVY>
where
    L: RawLock<Parking<World<HEAVY>>>,
{
    type Ctx = L::Ctx;
    const INFO: Info = Info {
        name: SPIN_THEN_PARK,
        parks: true,
        ..L::INFO
    };

    unsafe fn lock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(ctx) }
    }

    unsafe fn try_lock(&self, ctx: &L::Ctx) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) }
    }
}

// SAFETY: that of `L`.
unsafe impl<L, const HEAVY: bool> TimedLock<Loom> for Parked<L, HEAVY>
where
    L: TimedLock<Parking<World<HEAVY>>>,
{
    unsafe fn lock_until(&self, ctx: &L::Ctx, deadline: u64) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock_until(ctx, deadline) }
    }
}

/// A word whose waiters park.
type Parked32 = <Parking<World<true>> as Platform>::U32;

/// Is what somebody does with it.
type Write = fn(&Parked32);

/// Is the value before it is written, so that each write below changes it.
const BEFORE: u32 = 0x1_0101;

/// Every way to write a word ends the wait of who waits for its change: a lock
/// that joins the catalogue may release by any of them.
const WRITES: [(&str, Write); 11] = [
    ("a store wakes", |word| word.store(0, Ordering::Release)),
    ("a swap wakes", |word| {
        word.swap(0, Ordering::Release);
    }),
    ("an exchange wakes", |word| {
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let changed = word.compare_exchange(BEFORE, 0, success, failure);
        assert_eq!(changed, Ok(BEFORE), "nobody else writes it");
    }),
    ("an addition wakes", |word| {
        word.fetch_add(1, Ordering::Release);
    }),
    ("a subtraction wakes", |word| {
        word.fetch_sub(1, Ordering::Release);
    }),
    ("bits that go wake", |word| {
        word.fetch_and(!1, Ordering::Release);
    }),
    ("bits that come wake", |word| {
        word.fetch_or(2, Ordering::Release);
    }),
    ("a low byte wakes", |word| {
        word.store_low_byte(0, Ordering::Release)
    }),
    ("a low half wakes", |word| {
        word.store_low_half(0, Ordering::Release)
    }),
    ("one more below wakes", |word| {
        word.increment_low_half(Ordering::Release)
    }),
    ("a high half wakes", |word| {
        word.swap_high_half(0, Ordering::Release);
    }),
];

fn writes_wake() -> impl Iterator<Item = Property> {
    const FILES: &[&str] = &["platform/src/parking.rs"];
    WRITES.iter().map(|&(name, write)| {
        Property::of_files(FILES, name, 2, move || {
            let word = Arc::new(Parked32::new(BEFORE));
            let written = word.clone();
            let writer = spawn(1, move || write(&written));
            word.spin_until(Ordering::Acquire, |value| value != BEFORE);
            join_all([writer]);
        })
    })
}

/// Returns no wake-up is lost, whatever a lock's waiters wait for: a counter that all
/// of them watch (ticket), a word of their own (mcs), or one that its writer
/// leaves behind (clh).
pub(crate) fn park_properties() -> Vec<Property> {
    type Heavy = Parking<World<true>>;
    type Without = Parking<World<false>>;
    let mut all = Vec::new();
    let mut add = |lock: Arc<dyn Subject>, names: &[(&str, &'static str)]| {
        let of = promises(&lock);
        for &(name, called) in names {
            let property = of.iter().find(|property| property.name == name);
            all.push(Property {
                name: called,
                // The lock's own are shown needed by its own promises.
                orderings_of: Some("platform/src/parking.rs"),
                ..property.expect("a property of every lock").clone()
            });
        }
    };
    add(
        subject::<Loom, Parked<Ticket<Heavy>, true>>(),
        &[
            ("exclusion", "ticket"),
            ("reuse", "ticket, reuse"),
            ("exclusion of three", "ticket, three"),
            ("waiters sleep", "ticket, waiters sleep"),
        ],
    );
    add(
        subject::<Loom, Parked<Mcs<Heavy>, true>>(),
        &[
            ("exclusion", "mcs"),
            ("reuse", "mcs, reuse"),
            ("exclusion of three", "mcs, three"),
        ],
    );
    add(
        subject::<Loom, Parked<Clh<Heavy>, true>>(),
        &[("reuse", "clh, reuse")],
    );
    // Its word is written in parts.
    add(
        subject::<Loom, Parked<QSpinlock<Heavy>, true>>(),
        &[
            ("exclusion", "qspinlock"),
            ("try_lock races", "qspinlock, try_lock"),
        ],
    );
    add(
        subject::<Loom, Parked<Ticket<Without>, false>>(),
        &[
            ("exclusion", "ticket, no heavy fence"),
            ("exclusion of three", "three, no heavy fence"),
        ],
    );
    add(
        subject::<Loom, Parked<Mcs<Without>, false>>(),
        &[("reuse", "mcs, no heavy fence")],
    );
    all.extend(writes_wake());
    // Whose waits are limited, and so no sleep.
    let limited = timed(&crate::subject::timed::<
        Loom,
        Parked<McsTimeout<Heavy>, true>,
    >(McsTimeoutNode::is_idle));
    let named = |property: &Property| {
        matches!(
            property.name,
            "free, no time left" | "gives up at the deadline"
        )
    };
    all.extend(limited.into_iter().filter(named).map(|property| Property {
        orderings_of: Some("platform/src/parking.rs"),
        structure_of: &["platform/src/parking.rs"],
        ..property
    }));
    all
}
