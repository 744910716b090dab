//! The choice of the lock, made once, at the first call of any function here.
//!
//! `LOCKLAB_LOCK` names it, `LOCKLAB_WAIT` is `barging`, `spin-then-park` or
//! `spin`. `LOCKLAB_RWLOCK` names the lock of rwlocks; without it that is the
//! same lock if it has readers, and otherwise glibc's.
//! `pthread` means glibc's own mutexes, through the interposer.

use crate::alone::Alone;
use crate::chosen::{BARGES, MAKING, OPS, PARKS, SHORT, SHORT_ALONE, VIRTUALIZED};
use crate::host::{SpinThenPark, Spinning};
use crate::operations::{AloneOpsOf, OpsOf};
use crate::process::{die, variable};
use crate::shared::{self, SharedOpsOf};
use crate::{cond, fork, futex, real, report, short, thread};
use core::sync::atomic::{AtomicUsize, Ordering};
use locklab_locks::catalogue;
use locklab_pthread_protocols::publication::{published, published_or};

/// 1 once the choice is made.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Makes the choice if it has not been made.
#[inline]
pub(crate) fn make() {
    if published(&MADE) == 0 {
        make_now();
    }
}

#[cold]
#[inline(never)]
fn make_now() {
    let mut made = false;
    published_or(
        &MADE,
        &MAKING,
        |made| made != 0,
        || {
            choose();
            made = true;
            1
        },
    );
    if made {
        // This may allocate, and so re-enter; therefore it is last.
        fork::start();
    }
}

fn choose() {
    real::find_all();
    let name = variable(c"LOCKLAB_LOCK").unwrap_or_else(|| {
        die(&["LOCKLAB_LOCK is not set: name a lock (locklab locks), or use 'locklab run'"])
    });
    let (ops, alone) = match variable(c"LOCKLAB_WAIT") {
        _ if name == "pthread" => (None, None),
        None | Some("barging") => (
            catalogue::visit::<SpinThenPark, _>(name, OpsOf::<true>),
            catalogue::visit::<Alone, _>(name, AloneOpsOf::<true>),
        ),
        Some("spin-then-park") => (
            catalogue::visit::<SpinThenPark, _>(name, OpsOf::<false>),
            catalogue::visit::<Alone, _>(name, AloneOpsOf::<false>),
        ),
        Some("spin") => (
            catalogue::visit::<Spinning, _>(name, OpsOf::<false>),
            catalogue::visit::<Alone, _>(name, AloneOpsOf::<false>),
        ),
        Some(other) => die(&[
            "LOCKLAB_WAIT is '",
            other,
            "'; it can be barging, spin-then-park or spin",
        ]),
    };
    PARKS.store(variable(c"LOCKLAB_WAIT") != Some("spin"), Ordering::Relaxed);
    let barges = matches!(variable(c"LOCKLAB_WAIT"), None | Some("barging"));
    BARGES.store(barges, Ordering::Relaxed);
    if name == "pthread" {
        SHORT.set(short::GLIBC);
        SHORT_ALONE.set(short::GLIBC);
    } else {
        let Some(ops) = ops else {
            die(&["there is no lock '", name, "'; 'locklab locks' lists them"]);
        };
        OPS.store(core::ptr::from_ref(ops).cast_mut(), Ordering::Relaxed);
        SHORT.set([ops.lock, ops.try_lock, ops.unlock]);
        if let Some(alone) = alone {
            SHORT_ALONE.set(alone);
        }
    }
    choose_shared(name);
    #[cfg(target_arch = "x86_64")]
    {
        // Bit 31 means that there is a hypervisor.
        let yes = core::arch::x86_64::__cpuid(1).ecx >> 31 != 0;
        VIRTUALIZED.store(yes, Ordering::Relaxed);
    }
    futex::find_membarrier();
    futex::register_membarrier();
    SpinThenPark::start();
    thread::start();
    cond::start();
    report::start();
    short::allow();
}

/// Chooses the lock of rwlocks, where `mutexes` is the lock of mutexes.
fn choose_shared(mutexes: &str) {
    let named = variable(c"LOCKLAB_RWLOCK");
    let name = named.unwrap_or(mutexes);
    let ops = match variable(c"LOCKLAB_WAIT") {
        Some("spin") => catalogue::visit_shared::<Spinning, _>(name, SharedOpsOf),
        _ => catalogue::visit_shared::<SpinThenPark, _>(name, SharedOpsOf),
    };
    match ops {
        Some(ops) => shared::set(ops),
        None if named.is_none() || name == "pthread" => {}
        None => die(&[
            "LOCKLAB_RWLOCK is '",
            name,
            "', which is no lock with readers; 'locklab locks' lists them, and 'pthread' leaves \
             rwlocks to glibc",
        ]),
    }
}

/// Runs early, so that a wrong name is reported before the program starts.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = {
    extern "C" fn start() {
        make();
    }
    start
};
