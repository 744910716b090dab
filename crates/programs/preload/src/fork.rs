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

use crate::host::{SpinThenPark, reset_nodes, reset_sleepers};
use crate::own::Guarded;
use crate::{
    chosen, cond, futex, generation, memory, real, report, rwlock, short, side, spin, thread,
};

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

/// Returns the internal locks, in the order in which they nest.
fn guards() -> [&'static Guarded; 7] {
    [
        chosen::guard(),
        generation::guard(),
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
    generation::advance();
    futex::register_membarrier();
    SpinThenPark::forget_sleepers();
    reset_sleepers();
    SpinThenPark::start();
    cond::forget();
    thread::forget_others(reset_nodes);
    rwlock::forked();
    report::forked();
    short::allow();
}
