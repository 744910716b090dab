//! Every lock of the catalogue for C, by name.

use crate::P;
use core::ffi::{CStr, c_char, c_void};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{Fairness, RawLock};

/// A lock algorithm: what it needs and what it does. All pointers to a lock
/// are to `size` bytes aligned to `align`, those to a context (a queue node)
/// to `context_size` bytes aligned to `context_align`; where `context_size`
/// is 0 the context may be NULL.
///
/// Locks and contexts stay in place while in use. The nodes of some queue
/// locks (those that say so in `locklab locks`) pass from one context to
/// another: free a lock and the contexts that it has met together.
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
    /// Most CPUs (threads) that may use one lock at a time.
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
    /// Acquires.
    pub lock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void),
    /// Acquires if that needs no waiting; says whether.
    pub try_lock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void) -> bool,
    /// Releases, with the context of the acquisition.
    pub unlock: unsafe extern "C" fn(lock: *mut c_void, context: *mut c_void),
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
    // a context of no size may come as NULL.
    unsafe {
        if size_of::<T>() != 0 {
            place.cast::<T>().write(T::default());
        }
    }
}

/// A context from C: NULL is allowed where it has no size.
unsafe fn context<'a, C>(pointer: *mut c_void) -> &'a C {
    let pointer = if size_of::<C>() == 0 {
        core::ptr::NonNull::<C>::dangling().as_ptr()
    } else {
        pointer.cast()
    };
    // SAFETY: of the caller; a type of no size is valid at any aligned address.
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

struct Describe;

impl Visitor<P> for Describe {
    type Output = &'static locklab_type;

    fn visit<L: RawLock<P>>(self) -> &'static locklab_type {
        const {
            &locklab_type {
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
            }
        }
    }
}

/// The lock of this name (as `locklab locks` lists them), or NULL.
///
/// # Safety
/// `name` points to a string that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn locklab_find(name: *const c_char) -> Option<&'static locklab_type> {
    // SAFETY: of the caller.
    let name = unsafe { CStr::from_ptr(name) };
    catalogue::visit::<P, _>(name.to_str().ok()?, Describe)
}

/// How many locks there are.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_count() -> usize {
    catalogue::ALL.len()
}

/// The lock number `index` of `locklab_count()`, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn locklab_at(index: usize) -> Option<&'static locklab_type> {
    let entry = catalogue::ALL.get(index)?;
    catalogue::visit::<P, _>(entry.info.name, Describe)
}
