//! Publishes what is made once and then seen by all threads: contents that are
//! written before a word says so.
//!
//! The words lie where their users need them, in a program's mutex or in a
//! static, so these are functions and not a type. They must never be used for
//! contents that change while the word says that they are there.

use crate::guarded::Guarded;
use locklab_locks::Platform;
use locklab_locks::platform::{Atomic, Ordering};

/// Reads a word: who sees what [`publish`] wrote there sees the contents too.
#[inline(always)]
pub fn published<T: Copy, A: Atomic<T>>(word: &A) -> T {
    // P1: pairs with P2.
    word.load(Ordering::Acquire)
}

/// Says by `value` that the contents are there.
#[inline(always)]
pub fn publish<T: Copy, A: Atomic<T>>(word: &A, value: T) {
    // P2: pairs with P1.
    word.store(value, Ordering::Release);
}

/// Reads a word that `is_made` accepts; if it does not, makes the contents
/// under the guard, unless another thread does first. `make` returns what is
/// to be published.
#[inline]
pub fn published_or<T: Copy, A: Atomic<T>, P: Platform>(
    word: &A,
    guard: &Guarded<P>,
    is_made: impl Fn(T) -> bool,
    make: impl FnOnce() -> T,
) -> T {
    let seen = published(word);
    if is_made(seen) {
        return seen;
    }
    make_once(word, guard, is_made, make)
}

#[cold]
#[inline(never)]
fn make_once<T: Copy, A: Atomic<T>, P: Platform>(
    word: &A,
    guard: &Guarded<P>,
    is_made: impl Fn(T) -> bool,
    make: impl FnOnce() -> T,
) -> T {
    guard.with(|| {
        // Whoever has made it since held the guard.
        let seen = word.load(Ordering::Relaxed);
        if is_made(seen) {
            return seen;
        }
        let made = make();
        publish(word, made);
        made
    })
}
