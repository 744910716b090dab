//! Every lock of the catalogue for C, by name.

use crate::host::P;
use core::ffi::{CStr, c_char, c_int, c_void};
use locklab_locks::catalogue::{self, KindVisitor};
use locklab_locks::lock_api::{RawRwLock, RawRwLockDowngrade};
use locklab_locks::{BigLock, Fairness, Platform, RawLock, TimedLock, queue::McsTimeoutNode};

/// A lock algorithm: its requirements and its functions. All pointers to a lock
/// are to `size` bytes aligned to `align`, those to a context (a queue node)
/// to `context_size` bytes aligned to `context_align`; where `context_size`
/// is 0 the context may be NULL.
///
/// Locks and contexts stay in place while in use. The nodes of some queue
/// locks (those that say so in `locklab locks`) pass from one context to
/// another: free a lock only together with all contexts used with it.
#[repr(C)]
pub struct locklab_type {
    /// The name, ending in a zero byte.
    pub name: [c_char; 32],
    /// Bytes of a lock.
    pub size: usize,
    /// Alignment of a lock.
    pub align: usize,
    /// Bytes of a context; 0 if none is needed.
    pub context_size: usize,
    /// Alignment of a context.
    pub context_align: usize,
    /// The largest number of CPUs (threads) that may use a lock at a time.
    pub max_cpus: usize,
    /// First come, first served.
    pub fifo: bool,
    /// Prefers a waiter of the same NUMA node.
    pub numa_aware: bool,
    /// The holder may acquire it again.
    pub recursive: bool,
    /// `try_lock` can succeed.
    pub has_try_lock: bool,
    /// Makes a free lock of uninitialised memory.
    pub init: unsafe extern "C" fn(lock: *mut c_void),
    /// Makes an idle context of uninitialised memory.
    pub init_context: unsafe extern "C" fn(context: *mut c_void),
    /// Waits until it has the lock.
    pub lock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void),
    /// Acquires if that needs no waiting; returns whether it did.
    pub try_lock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void) -> bool,
    /// Releases, with the context of the acquisition.
    pub unlock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void),
    /// A waiter may sleep.
    pub parks: bool,
    /// Works in memory that processes share.
    pub shared_memory: bool,
    /// `unlock` still uses the lock after another may have acquired it: do
    /// not free a lock, having acquired it last, before every other `unlock`
    /// has returned.
    pub touches_after_release: bool,
    /// 1 if some CPU holds the lock or waits for it at the moment of the call,
    /// 0 if not, -1 if the lock cannot tell.
    pub is_locked: unsafe extern "C" fn(lock: *mut c_void) -> c_int,
    /// Acquires, or gives up when `locklab_now()` has reached `deadline`;
    /// returns whether it acquired. NULL if the lock cannot be given up.
    pub lock_until: Option<
        unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void, deadline: u64) -> bool,
    >,
    /// Returns whether a context with which `lock_until` has given up may be freed, or
    /// used with another lock. NULL if it always may.
    pub context_is_idle: Option<unsafe extern "C" fn(context: *mut c_void) -> bool>,
    /// Acquires for reading, together with other readers. NULL, as the next
    /// three, if the lock is exclusive only; `lock` and `unlock` are for
    /// writing.
    pub read_lock: Option<unsafe extern "C" fn(lock: *mut c_void)>,
    /// Acquires for reading if that needs no waiting; returns whether it did.
    pub try_read_lock: Option<unsafe extern "C" fn(lock: *mut c_void) -> bool>,
    /// Releases one reader.
    pub read_unlock: Option<unsafe extern "C" fn(lock: *mut c_void)>,
    /// Makes the writer a reader, without any other holder in between.
    pub downgrade: Option<unsafe extern "C" fn(lock: *mut c_void)>,
    /// Returns whether this CPU holds the lock. NULL, as the next two, if the lock is
    /// not recursive.
    pub held: Option<unsafe extern "C" fn(lock: *mut c_void) -> bool>,
    /// Releases every level that this CPU holds, and returns how many there
    /// were.
    pub release_all: Option<unsafe extern "C" fn(lock: *mut c_void) -> u32>,
    /// Acquires `depth` levels: the inverse of `release_all`.
    pub acquire_count: Option<unsafe extern "C" fn(lock: *mut c_void, depth: u32)>,
}

const fn name_bytes(name: &str) -> [c_char; 32] {
    let mut bytes = [0; 32];
    let mut i = 0;
    // One byte stays zero; a longer name does not compile.
    assert!(name.len() < bytes.len());
    while i < name.len() {
        bytes[i] = name.as_bytes()[i] as c_char;
        i += 1;
    }
    bytes
}

unsafe extern "C" fn init<T: Default>(place: *mut c_void) {
    // SAFETY: the caller gives memory of T's size and alignment, except that
    // a context of size zero may be NULL.
    unsafe {
        if size_of::<T>() != 0 {
            place.cast::<T>().write(T::default());
        }
    }
}

/// Returns a context from C: NULL is allowed where its size is zero.
unsafe fn context<'a, C>(pointer: *mut c_void) -> &'a C {
    let pointer = if size_of::<C>() == 0 {
        core::ptr::NonNull::<C>::dangling().as_ptr()
    } else {
        pointer.cast()
    };
    // SAFETY: of the caller; a type of size zero is valid at any aligned
    // address.
    unsafe { &*pointer }
}

unsafe extern "C" fn lock<L: RawLock<P>>(lock: *mut c_void, ctx: *mut c_void) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).lock(context(ctx)) }
}

unsafe extern "C" fn try_lock<L: RawLock<P>>(lock: *mut c_void, ctx: *mut c_void) -> bool {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).try_lock(context(ctx)) }
}

unsafe extern "C" fn unlock<L: RawLock<P>>(lock: *mut c_void, ctx: *mut c_void) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).unlock(context(ctx)) }
}

unsafe extern "C" fn is_locked<L: RawLock<P>>(lock: *mut c_void) -> c_int {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).is_locked() }.map_or(-1, c_int::from)
}

unsafe extern "C" fn lock_until<L: TimedLock<P>>(
    lock: *mut c_void,
    ctx: *mut c_void,
    deadline: u64,
) -> bool {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).lock_until(context(ctx), deadline) }
}

unsafe extern "C" fn is_idle(ctx: *mut c_void) -> bool {
    // SAFETY: of the caller.
    unsafe { context::<McsTimeoutNode<P>>(ctx) }.is_idle()
}

unsafe extern "C" fn read_lock<L: RawRwLock>(lock: *mut c_void) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).lock_shared() }
}

unsafe extern "C" fn try_read_lock<L: RawRwLock>(lock: *mut c_void) -> bool {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).try_lock_shared() }
}

unsafe extern "C" fn read_unlock<L: RawRwLock>(lock: *mut c_void) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).unlock_shared() }
}

unsafe extern "C" fn downgrade<L: RawRwLockDowngrade>(lock: *mut c_void) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).downgrade() }
}

unsafe extern "C" fn held<L: BigLock<P>>(lock: *mut c_void) -> bool {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).held() }
}

unsafe extern "C" fn release_all<L: BigLock<P>>(lock: *mut c_void) -> u32 {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).release_all() }
}

unsafe extern "C" fn acquire_count<L: BigLock<P>>(lock: *mut c_void, depth: u32) {
    // SAFETY: of the caller.
    unsafe { (*lock.cast::<L>()).acquire_count(depth) }
}

/// Returns the members that every lock has.
const fn every<L: RawLock<P>>() -> locklab_type {
    locklab_type {
        name: name_bytes(L::INFO.name),
        size: size_of::<L>(),
        align: align_of::<L>(),
        context_size: size_of::<L::Ctx>(),
        context_align: align_of::<L::Ctx>(),
        max_cpus: L::INFO.max_cpus,
        fifo: matches!(L::INFO.fairness, Fairness::Fifo),
        numa_aware: L::INFO.numa_aware,
        recursive: L::INFO.recursive,
        has_try_lock: L::INFO.try_lock,
        init: init::<L>,
        init_context: init::<L::Ctx>,
        lock: lock::<L>,
        try_lock: try_lock::<L>,
        unlock: unlock::<L>,
        parks: L::INFO.parks,
        shared_memory: L::INFO.shared_memory,
        touches_after_release: L::INFO.touches_after_release,
        is_locked: is_locked::<L>,
        lock_until: None,
        context_is_idle: None,
        read_lock: None,
        try_read_lock: None,
        read_unlock: None,
        downgrade: None,
        held: None,
        release_all: None,
        acquire_count: None,
    }
}

/// Describes each lock by what it can do.
struct Describe;

impl KindVisitor<P> for Describe {
    type Output = &'static locklab_type;

    fn visit<L: RawLock<P>>(self) -> &'static locklab_type {
        const { &every::<L>() }
    }

    fn visit_timed<L: TimedLock<P>>(self) -> &'static locklab_type {
        const {
            &locklab_type {
                lock_until: Some(lock_until::<L>),
                ..every::<L>()
            }
        }
    }

    fn visit_timed_in_queue<L: TimedLock<P, Ctx = McsTimeoutNode<P>>>(
        self,
    ) -> &'static locklab_type {
        const {
            &locklab_type {
                lock_until: Some(lock_until::<L>),
                context_is_idle: Some(is_idle),
                ..every::<L>()
            }
        }
    }

    fn visit_shared<L: RawLock<P, Ctx = ()> + RawRwLockDowngrade>(self) -> &'static locklab_type {
        const {
            &locklab_type {
                read_lock: Some(read_lock::<L>),
                try_read_lock: Some(try_read_lock::<L>),
                read_unlock: Some(read_unlock::<L>),
                downgrade: Some(downgrade::<L>),
                ..every::<L>()
            }
        }
    }

    fn visit_big<L: BigLock<P>>(self) -> &'static locklab_type {
        const {
            &locklab_type {
                held: Some(held::<L>),
                release_all: Some(release_all::<L>),
                acquire_count: Some(acquire_count::<L>),
                ..every::<L>()
            }
        }
    }
}

/// Returns the description of the lock of this name.
fn describe(name: &str) -> Option<&'static locklab_type> {
    catalogue::visit_kind::<P, _>(name, Describe)
}

/// Returns the version of this library: `LOCKLAB_VERSION` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_version() -> u32 {
    const fn number(text: &str) -> u32 {
        match u8::from_str_radix(text, 10) {
            Ok(number) => number as u32,
            Err(_) => panic!("a part of a version is below 256"),
        }
    }
    const {
        number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
            | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
            | number(env!("CARGO_PKG_VERSION_PATCH"))
    }
}

/// Returns the nanoseconds of a clock that never goes back, by which deadlines are
/// measured: CLOCK_MONOTONIC on unix; in a freestanding build the host's.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_now() -> u64 {
    P::now()
}

/// Returns the lock of this name (as `locklab locks` lists them), or NULL.
///
/// # Safety
/// `name` points to a string that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_find(name: *const c_char) -> Option<&'static locklab_type> {
    // SAFETY: of the caller.
    let name = unsafe { CStr::from_ptr(name) };
    describe(name.to_str().ok()?)
}

/// Returns the number of locks.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_count() -> usize {
    catalogue::ALL.len()
}

/// Returns the lock number `index` of `locklab_count()`, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_at(index: usize) -> Option<&'static locklab_type> {
    let entry = catalogue::ALL.get(index)?;
    describe(entry.info.name)
}
