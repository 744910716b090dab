//! The choice of the lock, made once, at the first call of any function here.
//!
//! `LOCKLAB_LOCK` names it, `LOCKLAB_WAIT` is `barging`, `spin-then-park` or
//! `spin`.
//! `pthread` means glibc's own mutexes, through the interposer.

use crate::alone::Alone;
use crate::host::Guarded;
use crate::host::{SpinThenPark, Spinning};
use crate::plain::{AloneOpsOf, Entries, Entry, Ops, OpsOf};
use crate::{cond, fork, futex, plain, real, report, thread};
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use locklab_locks::catalogue;
use locklab_pthread_protocols::publication::{publish, published, published_or};

/// `Mutex::state` of the mutexes that take the fast path: of the plain type,
/// last touched since the last fork. Until there is a choice, none.
pub(crate) static PLAIN: AtomicUsize = AtomicUsize::new(NONE);
/// A value that no mutex has.
const NONE: usize = usize::MAX - 1;

/// The targets of the fast path. Valid once a mutex equals [`PLAIN`].
pub(crate) static SHORT: Short = Short::new();
/// The same while the process has one thread; see [`crate::alone`].
pub(crate) static SHORT_ALONE: Short = Short::new();

/// Functions of the type [`Entry`].
pub(crate) struct Short {
    pub(crate) lock: AtomicPtr<()>,
    pub(crate) try_lock: AtomicPtr<()>,
    pub(crate) unlock: AtomicPtr<()>,
}

impl Short {
    const fn new() -> Self {
        Self {
            lock: AtomicPtr::new(core::ptr::null_mut()),
            try_lock: AtomicPtr::new(core::ptr::null_mut()),
            unlock: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn set(&self, [lock, try_lock, unlock]: Entries) {
        let set = |place: &AtomicPtr<()>, entry: Entry| {
            place.store((entry as *const ()).cast_mut(), Ordering::Relaxed);
        };
        set(&self.lock, lock);
        set(&self.try_lock, try_lock);
        set(&self.unlock, unlock);
    }
}

static OPS: AtomicPtr<Ops> = AtomicPtr::new(core::ptr::null_mut());
/// 1 once the choice is made.
static MADE: AtomicUsize = AtomicUsize::new(0);
static MAKING: Guarded = Guarded::new();
static VIRTUALIZED: AtomicBool = AtomicBool::new(false);
static PARKS: AtomicBool = AtomicBool::new(false);

/// The chosen lock. Only after [`make`], and not if [`is_glibc`].
#[inline(always)]
pub(crate) fn ops() -> &'static Ops {
    // SAFETY: set by `make` to a constant, before anything else is reached.
    unsafe { &*OPS.load(Ordering::Relaxed) }
}

/// Whether every mutex stays glibc's.
#[inline]
pub(crate) fn is_glibc() -> bool {
    OPS.load(Ordering::Relaxed).is_null()
}

/// Gives this thread a record, which has no queue nodes under glibc.
pub(crate) fn enter() -> *mut thread::Header {
    if is_glibc() {
        thread::enter::<()>()
    } else {
        (ops().enter)()
    }
}

/// The most threads that may use a lock at a time.
pub(crate) fn max_cpus() -> usize {
    ops().info.max_cpus
}

/// The name of the lock.
pub(crate) fn name() -> &'static str {
    ops().info.name
}

/// Whether a release of the lock hands it to a waiter.
pub(crate) fn hands_over() -> bool {
    plain::hands_over(&ops().info)
}

/// Whether waiters sleep after spinning.
pub(crate) fn parks() -> bool {
    PARKS.load(Ordering::Relaxed)
}

pub(crate) fn virtualized() -> bool {
    VIRTUALIZED.load(Ordering::Relaxed)
}

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
    if name != "pthread" {
        let Some(ops) = ops else {
            die(&["there is no lock '", name, "'; 'locklab locks' lists them"]);
        };
        OPS.store(core::ptr::from_ref(ops).cast_mut(), Ordering::Relaxed);
        SHORT.set([ops.lock, ops.try_lock, ops.unlock]);
        if let Some(alone) = alone {
            SHORT_ALONE.set(alone);
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        // Bit 31 means that there is a hypervisor.
        let yes = core::arch::x86_64::__cpuid(1).ecx >> 31 != 0;
        VIRTUALIZED.store(yes, Ordering::Relaxed);
    }
    futex::register_membarrier();
    SpinThenPark::start();
    thread::start();
    cond::start();
    report::start();
    allow_short_way();
}

/// Lets mutexes of the plain type, touched since the last fork, take the fast
/// path.
pub(crate) fn allow_short_way() {
    if !is_glibc() && !report::profiling() {
        publish(&PLAIN, (fork::generation() as usize) << 32);
    }
}

pub(crate) fn guard() -> &'static Guarded {
    &MAKING
}

/// A variable of the environment, read without allocation.
pub(crate) fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: a C string; the value stays, since the program has not had the
    // time to change its environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string.
    unsafe { CStr::from_ptr(value) }
        .to_str()
        .ok()
        .filter(|value| !value.is_empty())
}

/// Prints an error message of one sentence, and ends the process.
#[cold]
pub(crate) fn die(sentence: &[&str]) -> ! {
    say(&["locklab: "]);
    say(sentence);
    say(&["\n"]);
    // SAFETY: ends the process without running anything of the program's,
    // which could take the very lock that failed.
    unsafe { libc::_exit(2) }
}

fn say(words: &[&str]) {
    for word in words {
        // SAFETY: the bytes are there. Nothing helps if it fails.
        unsafe { libc::write(2, word.as_ptr().cast(), word.len()) };
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
