//! `pthread_spinlock_t`: four bytes, which name one of the interposer's
//! mutexes.
//!
//! Process-shared ones stay glibc's. Four bytes have no room for a mark, so
//! their addresses are remembered; a process that meets one without having
//! initialised it, or inherited it by fork, takes it for the interposer's.

use crate::chosen;
use crate::mutex::Mutex;
use crate::own::Guarded;
use crate::process::die;
use crate::{locking, memory, real, report, short};
use core::alloc::Layout;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::{EINVAL, c_int};
use locklab_pthread_protocols::publication::{publish, published};

/// Number of mutexes per chunk.
const CHUNK: usize = 1024;
const CHUNKS: usize = 4096;

/// Guards the four below.
static GUARD: Guarded = Guarded::new();
static POOL: [AtomicPtr<Mutex>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
/// The highest number given out so far.
static LAST: AtomicU32 = AtomicU32::new(0);
/// The first free number; the depth of its mutex holds the next.
static FREE: AtomicU32 = AtomicU32::new(0);
/// Addresses of process-shared ones; 0 for none.
static SHARED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
/// The number of places of [`SHARED`] that were ever used.
static SHARED_LEN: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn guard() -> &'static Guarded {
    &GUARD
}

/// Returns the mutex of a number, if it is one.
fn mutex(number: u32) -> Option<&'static Mutex> {
    let chunk = published(POOL.get(number as usize / CHUNK)?);
    if chunk.is_null() {
        return None;
    }
    // SAFETY: a chunk has that many, and is never unmapped.
    Some(unsafe { &*chunk.add(number as usize % CHUNK) })
}

/// Takes a number for a free mutex; requires the guard.
fn number() -> u32 {
    let free = FREE.load(Ordering::Relaxed);
    if let Some(mutex) = mutex(free).filter(|_| free != 0) {
        FREE.store(mutex.depth.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        return free;
    }
    let number = LAST.load(Ordering::Relaxed) + 1;
    let Some(chunk) = POOL.get(number as usize / CHUNK) else {
        die(&["more than 4 million spinlocks are in use"]);
    };
    if chunk.load(Ordering::Relaxed).is_null() {
        let layout = Layout::new::<[Mutex; CHUNK]>();
        publish(chunk, memory::allocate(layout).cast());
    }
    LAST.store(number, Ordering::Relaxed);
    number
}

enum Kind {
    Ours(&'static Mutex),
    Glibc,
    Neither,
}

unsafe fn find(spin: *mut c_int) -> Kind {
    if chosen::is_glibc() || is_shared(spin) {
        return Kind::Glibc;
    }
    // SAFETY: of the caller.
    let word = unsafe { AtomicU32::from_ptr(spin.cast()) };
    let mut name = word.load(Ordering::Relaxed);
    if name == 0 {
        // It was never initialised, as static ones in some programs.
        name = GUARD.with(|| {
            if word.load(Ordering::Relaxed) == 0 {
                word.store(number(), Ordering::Relaxed);
            }
            word.load(Ordering::Relaxed)
        });
    }
    match mutex(name) {
        Some(mutex) => Kind::Ours(mutex),
        None => Kind::Neither,
    }
}

fn is_shared(spin: *mut c_int) -> bool {
    let shared = SHARED_LEN.load(Ordering::Relaxed);
    shared != 0
        && SHARED[..shared.min(SHARED.len())]
            .iter()
            .any(|address| address.load(Ordering::Relaxed) == spin.addr())
}

/// Initialises a spinlock.
///
/// # Safety
/// The conditions of POSIX for `pthread_spin_*`; they also apply to the
/// functions below.
pub(crate) unsafe fn init(spin: *mut c_int, shared: c_int) -> c_int {
    if chosen::is_glibc() {
        // SAFETY: of the caller.
        return unsafe { (real::SPIN_INIT.get())(spin, shared) };
    }
    if shared == libc::PTHREAD_PROCESS_SHARED {
        report::kept_one_by_glibc();
        GUARD.with(|| {
            if is_shared(spin) {
                return;
            }
            let Some(place) = SHARED
                .iter()
                .position(|address| address.load(Ordering::Relaxed) == 0)
            else {
                die(&["more than 64 process-shared spinlocks are in use; run this program without an interposer"]);
            };
            SHARED[place].store(spin.addr(), Ordering::Relaxed);
            SHARED_LEN.fetch_max(place + 1, Ordering::Relaxed);
        });
        // SAFETY: of the caller.
        return unsafe { (real::SPIN_INIT.get())(spin, shared) };
    }
    GUARD.with(|| {
        forget_shared(spin);
        // SAFETY: of the caller.
        unsafe { AtomicU32::from_ptr(spin.cast()) }.store(number(), Ordering::Relaxed);
    });
    0
}

fn forget_shared(spin: *mut c_int) {
    for address in &SHARED {
        // Fails where another is.
        let _ = address.compare_exchange(spin.addr(), 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

pub(crate) unsafe fn destroy(spin: *mut c_int) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        match find(spin) {
            Kind::Glibc => {
                if !chosen::is_glibc() {
                    GUARD.with(|| forget_shared(spin));
                }
                (real::SPIN_DESTROY.get())(spin)
            }
            Kind::Neither => EINVAL,
            Kind::Ours(mutex) => {
                let number = AtomicU32::from_ptr(spin.cast()).swap(0, Ordering::Relaxed);
                GUARD.with(|| {
                    mutex
                        .depth
                        .store(FREE.load(Ordering::Relaxed), Ordering::Relaxed);
                    FREE.store(number, Ordering::Relaxed);
                });
                0
            }
        }
    }
}

pub(crate) unsafe extern "C" fn lock(spin: *mut c_int, caller: usize) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        match find(spin) {
            Kind::Glibc => (real::SPIN_LOCK.get())(spin),
            Kind::Neither => EINVAL,
            Kind::Ours(mutex) => short::lock(mutex.as_glibc(), caller, locking::lock),
        }
    }
}

pub(crate) unsafe extern "C" fn try_lock(spin: *mut c_int, caller: usize) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        match find(spin) {
            Kind::Glibc => (real::SPIN_TRYLOCK.get())(spin),
            Kind::Neither => EINVAL,
            Kind::Ours(mutex) => locking::try_lock(mutex, caller),
        }
    }
}

pub(crate) unsafe extern "C" fn unlock(spin: *mut c_int, caller: usize) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        match find(spin) {
            Kind::Glibc => (real::SPIN_UNLOCK.get())(spin),
            Kind::Neither => EINVAL,
            Kind::Ours(mutex) => short::unlock(mutex.as_glibc(), caller, locking::unlock),
        }
    }
}
