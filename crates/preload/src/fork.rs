//! The child of a fork: one thread, and what it inherits.
//!
//! The child may use the mutexes that its thread held in the parent. Threads
//! that waited for them are not in the child, but are still in the queues; a
//! handoff to one of them would never end. So each process has a
//! generation, each mutex remembers in which it was last touched, and one of
//! an older generation is repaired before it is used: if it is held it stays
//! held, and no thread waits.
//!
//! In the first process every mutex is of generation 0, and this costs
//! nothing: the comparison is the one that recognises a plain mutex.

use crate::futex;
use crate::host::Guarded;
use crate::host::{SpinThenPark, reset_nodes};
use crate::mutex::Mutex;
use crate::{choice, cond, memory, real, report, side, spin, thread};
use core::sync::atomic::{AtomicU32, Ordering};
use locklab_locks::platform::Atomic;
use locklab_pthread_protocols::publication::published_or;

static GENERATION: AtomicU32 = AtomicU32::new(0);
static REPAIR: Guarded = Guarded::new();

/// The number of forks between this process and the program's first.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Repairs a mutex of the interposer that was last touched before the fork.
#[inline]
pub(crate) fn refresh(mutex: &Mutex) {
    let generation = generation();
    renew(
        &mutex.state,
        |state| Mutex::generation_of(state) == generation,
        || {
            // SAFETY: a mutex of ours, and all others wait for this.
            unsafe { (choice::ops().repair)(mutex) };
            mutex.waiters.store(0, Ordering::Relaxed);
            mutex.with_generation(generation)
        },
    );
}

/// Repairs what was last touched before a fork: `word` says of which process
/// it is, and `repair` returns what it says from then on.
#[inline]
pub(crate) fn renew<T: Copy, A: Atomic<T>>(
    word: &A,
    is_of_now: impl Fn(T) -> bool,
    repair: impl FnOnce() -> T,
) {
    published_or(word, &REPAIR, is_of_now, repair);
}

/// Registers the handlers below, before any other code in the program registers
/// any: so they run first in the child, and the program's
/// handlers find the mutexes repaired. (`exports` ensures that.)
pub(crate) fn start() {
    // SAFETY: three functions that stay. It fails only without memory; then
    // a fork is as if there were no handlers.
    unsafe {
        (real::REGISTER_ATFORK.get())(
            Some(prepare),
            Some(parent),
            Some(child),
            core::ptr::null_mut(),
        );
    }
}

/// The internal locks, in the order in which they nest.
fn guards() -> [&'static Guarded; 7] {
    [
        choice::guard(),
        &REPAIR,
        spin::guard(),
        side::guard(),
        thread::guard(),
        memory::guard(),
        report::guard(),
    ]
}

unsafe extern "C" fn prepare() {
    for guard in guards() {
        guard.lock();
    }
}

unsafe extern "C" fn parent() {
    for guard in guards() {
        guard.unlock();
    }
}

unsafe extern "C" fn child() {
    for guard in guards() {
        // SAFETY: just forked: there is no other thread.
        unsafe { guard.reset() };
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
    futex::register_membarrier();
    SpinThenPark::forget_sleepers();
    SpinThenPark::start();
    cond::forget();
    thread::forget_others(reset_nodes);
    report::forked();
    choice::allow_short_way();
}
