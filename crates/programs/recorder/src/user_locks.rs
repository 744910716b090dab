//! Records what a program says of locks of its own, by the crate `locklab-record` or
//! the header `locklab_record.h`: they call these functions if this library is
//! loaded.
//!
//! An operation is recorded as one of the C library's. What a lock is made of is not
//! recorded while an operation of it goes on. It must never assume that a program calls
//! them in pairs.

use crate::exports::{between_windows, cost, past_deadline};
use crate::stacks::Site;
use crate::thread::{State, current, leaves_user_lock};
use core::ffi::c_void;
use core::ptr::NonNull;
use libc::c_int;
use locklab_profile::clock::ticks;
use locklab_trace::{Access, Attempt, Event, LockKind};

/// Returns the state of this thread, which has an operation of this lock to record.
fn of(lock: *const c_void) -> Option<NonNull<State>> {
    let mut state = current()?;
    // SAFETY: this thread's.
    unsafe { state.as_mut() }.note_kind(lock as u64, LockKind::OWN);
    Some(state)
}

fn request(lock: *const c_void, shared: c_int, stack: u64) -> Event<'static> {
    Event::Request {
        lock: lock as u64,
        stack,
        access: Access {
            shared: shared != 0,
            attempt: Attempt::Waits,
        },
    }
}

/// Records that the thread asks for a lock that may not be free.
extern "C" fn asks(lock: *const c_void, shared: c_int, caller: usize, stack: usize) {
    let Some(mut state) = of(lock) else { return };
    // SAFETY: this thread's, and used by nothing else until the return.
    let own = unsafe { state.as_mut() };
    let stack = own.stack(Site { caller, stack });
    let from = ticks();
    own.put(from, &request(lock, shared, stack));
    past_deadline(from);
    own.enters_user_lock();
}

/// Records that the thread has got a lock without asking twice, as an operation that took
/// no time.
extern "C" fn took(lock: *const c_void, shared: c_int, caller: usize, stack: usize) {
    if between_windows() {
        return;
    }
    let to = ticks();
    let Some(mut state) = of(lock) else { return };
    // SAFETY: this thread's, and used by nothing else until the return.
    let own = unsafe { state.as_mut() };
    let timed = own.is_timed();
    let stack = own.stack(Site { caller, stack });
    past_deadline(to);
    let event = request(lock, shared, stack);
    own.put_whole(to, &event);
    if timed {
        cost(state, to, to, to);
    }
}

/// Records that the thread has the lock that it asked for, or does not get it.
#[unsafe(no_mangle)]
extern "C" fn locklab_record_answered(got: c_int) {
    let to = ticks();
    if let Some(mut state) = leaves_user_lock() {
        let answer = match got {
            0 => Event::Refused,
            _ => Event::Acquired,
        };
        // SAFETY: this thread's.
        unsafe { state.as_mut() }.put(to, &answer);
    }
}

/// Notes that the thread begins to release a lock.
#[unsafe(no_mangle)]
extern "C" fn locklab_record_releases(lock: *const c_void) {
    if between_windows() {
        return;
    }
    if let Some(mut state) = of(lock) {
        // SAFETY: this thread's, and used by nothing else until the return.
        let own = unsafe { state.as_mut() };
        let from = ticks();
        own.put(from, &Event::Release { lock: lock as u64 });
        past_deadline(from);
        own.enters_user_lock();
    }
}

/// Records that the thread has released the lock.
#[unsafe(no_mangle)]
extern "C" fn locklab_record_released() {
    let to = ticks();
    if let Some(mut state) = leaves_user_lock() {
        // SAFETY: this thread's, and used by nothing else until `cost`.
        let own = unsafe { state.as_mut() };
        let timed = own.is_timed();
        own.put(to, &Event::Released);
        if timed {
            cost(state, to, to, to);
        }
    }
}

/// Exports a function of two arguments that wants to know where it is called from.
macro_rules! export {
    ($($symbol:ident => $body:ident;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $symbol(lock: *const c_void, shared: c_int) {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "mov rdx, qword ptr [rsp]",
                "mov rcx, rsp",
                "jmp {}",
                sym $body
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("mov x2, x30", "mov x3, sp", "b {}", sym $body);
        }
    )*};
}

export! {
    locklab_record_asks => asks;
    locklab_record_took => took;
}
