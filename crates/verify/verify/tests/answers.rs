//! Tests that the specification refuses each wrong answer and accepts each right one.

use locklab_verify::specification::{Answer, Interface, Operation, Reference, Wrong};

use Answer::{Done, Levels, No};
use Operation::{Downgrade, Held, Lock, LockUntil, Read, ReadUnlock, ReleaseAll, TryLock, Unlock};

const MUTEX: Interface = Interface {
    recursive: false,
    detects_deadlocks: false,
    sequentially_consistent: true,
    accesses: None,
    overtakes: Some(0),
};

/// Makes one operation after the other.
fn call(
    lock: &mut Reference,
    who: usize,
    operation: Operation,
    answer: Answer,
) -> Result<(), Wrong> {
    lock.begin(who, operation)?;
    lock.end(who, answer, true)
}

fn lock(interface: Interface) -> Reference {
    Reference::new(interface, 3)
}

#[test]
fn one_holder_at_a_time() {
    let mut lock = lock(MUTEX);
    call(&mut lock, 0, Lock, Done).unwrap();
    assert_eq!(call(&mut lock, 1, TryLock, Done), Err(Wrong::TwoHolders));
}

#[test]
fn only_its_holder_releases() {
    assert_eq!(call(&mut lock(MUTEX), 0, Unlock, Done), Err(Wrong::NotHeld));
    assert_eq!(
        call(&mut lock(MUTEX), 0, ReadUnlock, Done),
        Err(Wrong::NotHeld)
    );
    assert_eq!(
        call(&mut lock(MUTEX), 0, Downgrade, Done),
        Err(Wrong::NotHeld)
    );
}

#[test]
fn an_attempt_fails_only_by_others() {
    let mut free = lock(MUTEX);
    assert_eq!(call(&mut free, 0, TryLock, No), Err(Wrong::FailsOnFree));
    let mut held = lock(MUTEX);
    call(&mut held, 0, Lock, Done).unwrap();
    call(&mut held, 1, TryLock, No).unwrap();
    // It is on its way out while the attempt begins.
    held.begin(0, Unlock).unwrap();
    held.begin(1, TryLock).unwrap();
    held.end(0, Done, true).unwrap();
    held.end(1, No, true).unwrap();
    assert_eq!(call(&mut held, 1, TryLock, No), Err(Wrong::FailsOnFree));
}

#[test]
fn a_thread_may_not_have_seen_what_has_ended() {
    let weak = Interface {
        sequentially_consistent: false,
        ..MUTEX
    };
    let mut lock = lock(weak);
    call(&mut lock, 0, Lock, Done).unwrap();
    call(&mut lock, 0, Unlock, Done).unwrap();
    call(&mut lock, 1, TryLock, No).unwrap();
    call(&mut lock, 1, Lock, Done).unwrap();
    call(&mut lock, 1, Unlock, Done).unwrap();
    assert_eq!(call(&mut lock, 1, TryLock, No), Err(Wrong::FailsOnFree));
}

#[test]
fn time_is_up_before_a_waiter_gives_up() {
    let mut lock = lock(MUTEX);
    call(&mut lock, 0, Lock, Done).unwrap();
    assert_eq!(call(&mut lock, 1, LockUntil, No), Err(Wrong::GivesUpEarly));
    lock.begin(1, LockUntil).unwrap();
    lock.end(1, No, false).unwrap();
}

#[test]
fn levels_are_counted() {
    let recursive = Interface {
        recursive: true,
        ..MUTEX
    };
    let mut lock = lock(recursive);
    call(&mut lock, 0, Held, No).unwrap();
    call(&mut lock, 0, Lock, Done).unwrap();
    call(&mut lock, 0, TryLock, Done).unwrap();
    assert_eq!(call(&mut lock, 0, TryLock, No), Err(Wrong::FailsForHolder));
    assert_eq!(call(&mut lock, 0, Held, No), Err(Wrong::Held));
    assert_eq!(call(&mut lock, 1, Held, Done), Err(Wrong::Held));
    call(&mut lock, 0, ReleaseAll, Levels(2)).unwrap();
    assert_eq!(
        call(&mut lock, 0, ReleaseAll, Levels(1)),
        Err(Wrong::Levels)
    );
    call(&mut lock, 0, Operation::AcquireCount(2), Done).unwrap();
    call(&mut lock, 0, Unlock, Done).unwrap();
    assert_eq!(call(&mut lock, 1, TryLock, Done), Err(Wrong::TwoHolders));
}

#[test]
fn readers_share_and_a_downgrade_lets_them_in() {
    let mut lock = lock(MUTEX);
    call(&mut lock, 0, Lock, Done).unwrap();
    let mut beside = lock.clone();
    assert_eq!(call(&mut beside, 1, Read, Done), Err(Wrong::TwoHolders));
    call(&mut lock, 0, Downgrade, Done).unwrap();
    call(&mut lock, 1, Read, Done).unwrap();
    assert_eq!(
        call(&mut lock.clone(), 2, Lock, Done),
        Err(Wrong::TwoHolders)
    );
    call(&mut lock, 0, ReadUnlock, Done).unwrap();
    call(&mut lock, 1, ReadUnlock, Done).unwrap();
    call(&mut lock, 2, Lock, Done).unwrap();
}

#[test]
fn who_comes_later_enters_later() {
    let mut lock = lock(MUTEX);
    call(&mut lock, 0, Lock, Done).unwrap();
    lock.begin(1, Lock).unwrap();
    lock.waits(1);
    call(&mut lock, 0, Unlock, Done).unwrap();
    let overtaken = Wrong::Overtaken { times: 1, most: 0 };
    assert_eq!(call(&mut lock, 2, TryLock, Done), Err(overtaken));
}

#[test]
fn who_comes_keeps_a_place_after_so_many_accesses() {
    let bounded = Interface {
        accesses: Some(2),
        overtakes: None,
        ..MUTEX
    };
    let mut waits = lock(bounded);
    waits.begin(0, Lock).unwrap();
    waits.accesses(0).unwrap();
    waits.accesses(0).unwrap();
    let mut goes_on = waits.clone();
    assert_eq!(goes_on.accesses(0), Err(Wrong::NoPlace { most: 2 }));
    // One that waits may look as often as it likes, and so may one that has it.
    waits.waits(0);
    (0..9).for_each(|_| waits.accesses(0).unwrap());
    waits.end(0, Done, true).unwrap();
    (0..9).for_each(|_| waits.accesses(0).unwrap());
    // An attempt is over by itself.
    waits.begin(1, TryLock).unwrap();
    (0..9).for_each(|_| waits.accesses(1).unwrap());
}
