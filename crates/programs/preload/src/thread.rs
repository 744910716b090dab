//! The record of a thread: its number, and slots for queue nodes.
//!
//! A thread's record comes from a pool at its first acquisition and goes back
//! when it ends, so any number of threads may follow one another. A
//! slot is in use from before `lock` until after `unlock`, whichever thread
//! unlocks; a record whose thread ended while holding keeps that slot in use.
//! Records are never unmapped: see [`crate::memory`].

use crate::chosen;
use crate::memory;
use crate::own::{Guarded, Own};
use crate::process::die;
use crate::reads::Reads;
use core::alloc::Layout;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use libc::c_void;
use locklab_pthread_protocols::slot::Use;

/// Slots in the record itself: the number of locks that a thread holds at once
/// before it needs a [`Block`].
const SLOTS: usize = 8;

/// A context (queue node) and whether an acquisition uses it.
#[repr(C)]
pub(crate) struct Slot<C> {
    used: Use<Own>,
    /// Time of the acquisition in ticks, with a profile.
    pub(crate) since: AtomicU64,
    pub(crate) ctx: C,
}

impl<C> Slot<C> {
    /// Frees the slot; called by any thread, after `unlock`.
    #[inline(always)]
    pub(crate) fn free(&self) {
        self.used.free();
    }

    /// Keeps the slot from use until [`reclaim`] finds its context idle; called
    /// by the owner of the record.
    pub(crate) fn set_aside(&self) {
        self.used.set_aside();
    }
}

/// The part that does not depend on the type of the context.
#[repr(C)]
pub(crate) struct Header {
    /// The record made before this one.
    older: *mut Header,
    /// The next record in the pool.
    next_free: AtomicPtr<Header>,
    /// The number: 0, 1, 2... in the order of creation.
    pub(crate) number: u32,
    /// One more than the NUMA node where the thread first used it, or 0.
    pub(crate) node: AtomicU32,
    /// Further blocks of slots.
    more: AtomicPtr<c_void>,
    /// Says whether it waits for a rwlock.
    pub(crate) for_rwlock: AtomicBool,
    /// The rwlocks that it reads, or null if it never read one.
    pub(crate) reads: AtomicPtr<Reads>,
    /// Is 1 while its stack is walked, where there is a profile; then the state of sampling.
    pub(crate) walking: AtomicU32,
    pub(crate) walks: AtomicU32,
    /// The site of the last mutex that it waited for, and for how long, in
    /// ticks, until the release.
    pub(crate) waited_at: AtomicU32,
    pub(crate) waited: AtomicU64,
}

#[repr(C, align(64))]
struct Record<C> {
    header: Header,
    slots: [Slot<C>; SLOTS],
}

/// Further slots of a record.
#[repr(C, align(64))]
struct Block<C> {
    next: AtomicPtr<c_void>,
    slots: [Slot<C>; SLOTS],
}

/// Guards the two below.
static GUARD: Guarded = Guarded::new();
static NEWEST: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
static FREE: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
static KEY: AtomicU32 = AtomicU32::new(0);

// The pointer to the thread's record. A `thread_local!` of a shared library
// costs a call of `__tls_get_addr`; a preloaded one may use the static block,
// which stable Rust cannot ask for but in assembly.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".section .tbss.locklab_record,\"awT\",@nobits",
    ".p2align 3",
    ".globl locklab_record",
    ".hidden locklab_record",
    ".type locklab_record, @object",
    ".size locklab_record, 8",
    "locklab_record:",
    ".zero 8",
    ".text",
);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn current() -> *mut Header {
    let record: *mut Header;
    // SAFETY: reads the thread's own word; the symbol is in the static block
    // because the library is there from the start (initial-exec).
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + locklab_record@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) record,
            options(nostack, readonly, preserves_flags)
        );
    }
    record
}

#[cfg(target_arch = "x86_64")]
fn set_current(record: *mut Header) {
    // SAFETY: as in `current`.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + locklab_record@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) record,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
std::thread_local! {
    static RECORD: core::cell::Cell<*mut Header> = const { core::cell::Cell::new(ptr::null_mut()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn current() -> *mut Header {
    RECORD.get()
}

#[cfg(not(target_arch = "x86_64"))]
fn set_current(record: *mut Header) {
    RECORD.set(record);
}

/// Makes the key whose destructor notices the end of a thread.
pub(crate) fn start() {
    let mut key = 0;
    // SAFETY: `key` is ours.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) } != 0 {
        die(&["no thread-specific key is left"]);
    }
    KEY.store(key, Ordering::Relaxed);
}

/// Handles the end of a thread. Other destructors may acquire locks after this
/// one; then the thread has a record again, and this runs again.
unsafe extern "C" fn leave(record: *mut c_void) {
    set_current(ptr::null_mut());
    let record = record.cast::<Header>();
    // SAFETY: records are never unmapped.
    Reads::forget(unsafe { &(*record).reads });
    GUARD.with(|| {
        // SAFETY: records are never unmapped.
        unsafe {
            (*record)
                .next_free
                .store(FREE.load(Ordering::Relaxed), Ordering::Relaxed)
        };
        FREE.store(record, Ordering::Relaxed);
    });
}

/// Returns the record of this thread, whose slots are for contexts `C`.
fn record<C: Default>() -> *mut Header {
    let record = current();
    if record.is_null() {
        enter::<C>()
    } else {
        record
    }
}

/// Returns the record of this thread, for code that does not know the type of contexts.
pub(crate) fn header() -> &'static Header {
    let record = current();
    let record = if record.is_null() {
        // Under glibc's mutexes a record has no queue nodes.
        if chosen::is_glibc() {
            enter::<()>();
        } else {
            (chosen::ops().enter)();
        }
        current()
    } else {
        record
    };
    // SAFETY: records are never unmapped.
    unsafe { &*record }
}

/// Returns the number of this thread.
#[inline]
pub(crate) fn number() -> usize {
    header().number as usize
}

#[cold]
#[inline(never)]
pub(crate) fn enter<C: Default>() -> *mut Header {
    let record = GUARD.with(|| {
        let free = FREE.load(Ordering::Relaxed);
        if !free.is_null() {
            // SAFETY: records are never unmapped.
            FREE.store(
                unsafe { (*free).next_free.load(Ordering::Relaxed) },
                Ordering::Relaxed,
            );
            return free;
        }
        let older = NEWEST.load(Ordering::Relaxed);
        let record: *mut Record<C> = memory::allocate(Layout::new::<Record<C>>()).cast();
        // SAFETY: fresh memory of that size and alignment.
        unsafe {
            (&raw mut (*record).header).write(Header {
                older,
                next_free: AtomicPtr::new(ptr::null_mut()),
                // SAFETY: as above.
                number: if older.is_null() {
                    0
                } else {
                    (*older).number + 1
                },
                node: AtomicU32::new(0),
                more: AtomicPtr::new(ptr::null_mut()),
                for_rwlock: AtomicBool::new(false),
                reads: AtomicPtr::new(ptr::null_mut()),
                walking: AtomicU32::new(0),
                walks: AtomicU32::new(0),
                waited_at: AtomicU32::new(0),
                waited: AtomicU64::new(0),
            });
            init_slots(&raw mut (*record).slots);
        }
        NEWEST.store(record.cast(), Ordering::Relaxed);
        record.cast()
    });
    set_current(record);
    // Beyond the first 32 keys of a process this may allocate, which may take
    // a lock: that finds the record set. It fails only without memory; the
    // record is then lost when the thread ends.
    // SAFETY: the key exists since `start`.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), record.cast()) };
    record
}

/// Makes each slot a free one.
///
/// # Safety
/// The memory is fresh.
unsafe fn init_slots<C: Default>(slots: *mut [Slot<C>; SLOTS]) {
    for i in 0..SLOTS {
        // SAFETY: within the array.
        unsafe {
            slots.cast::<Slot<C>>().add(i).write(Slot {
                used: Use::new(),
                since: AtomicU64::new(0),
                ctx: C::default(),
            });
        }
    }
}

/// Takes a free slot of this thread.
#[inline(always)]
pub(crate) fn take<C: Default>() -> &'static Slot<C> {
    let record = current().cast::<Record<C>>();
    if !record.is_null() {
        // SAFETY: ours, and never unmapped; C is the same in all records.
        let first = unsafe { &(*record).slots[0] };
        if first.used.take() {
            return first;
        }
    }
    take_further()
}

#[cold]
#[inline(never)]
fn take_further<C: Default>() -> &'static Slot<C> {
    let record = record::<C>().cast::<Record<C>>();
    // SAFETY: ours, and never unmapped.
    let (mut slots, mut next) = unsafe { (&(*record).slots, &(*record).header.more) };
    loop {
        if let Some(slot) = slots.iter().find(|slot| slot.used.take()) {
            return slot;
        }
        let mut block = next.load(Ordering::Relaxed).cast::<Block<C>>();
        if block.is_null() {
            block = memory::allocate(Layout::new::<Block<C>>()).cast();
            // SAFETY: fresh memory; zero is a null pointer.
            unsafe { init_slots(&raw mut (*block).slots) };
            // Only this thread grows its list.
            next.store(block.cast(), Ordering::Relaxed);
        }
        // SAFETY: never unmapped.
        (slots, next) = unsafe { (&(*block).slots, &(*block).next) };
    }
}

/// Takes a node as [`take`] does, from the other end: for an acquisition that may be abandoned,
/// so that a slot set aside is not the first that each acquisition tries.
pub(crate) fn take_last<C: Default>() -> &'static Slot<C> {
    let record = record::<C>().cast::<Record<C>>();
    // SAFETY: ours, and never unmapped.
    let slots = unsafe { &(*record).slots };
    match slots.iter().rev().find(|slot| slot.used.take()) {
        Some(slot) => slot,
        None => take_further(),
    }
}

/// Frees those slots of this thread that were set aside and are `idle` now.
pub(crate) fn reclaim<C: Default>(idle: impl Fn(&C) -> bool) {
    let record = record::<C>().cast::<Record<C>>();
    // SAFETY: ours, and never unmapped; likewise the blocks.
    let (mut slots, mut next) = unsafe { (&(*record).slots, &(*record).header.more) };
    loop {
        for slot in slots {
            if slot.used.is_aside() && idle(&slot.ctx) {
                slot.free();
            }
        }
        let block = next.load(Ordering::Relaxed).cast::<Block<C>>();
        if block.is_null() {
            return;
        }
        // SAFETY: as above.
        (slots, next) = unsafe { (&(*block).slots, &(*block).next) };
    }
}

pub(crate) fn guard() -> &'static Guarded {
    &GUARD
}

/// Moves the records of the threads that stayed in the parent to the pool, in a newly
/// forked process. `each` gets their numbers. Slots in use stay in use: their contexts
/// are as an acquisition left them that will never end.
pub(crate) fn forget_others(each: fn(usize)) {
    let this = current();
    FREE.store(ptr::null_mut(), Ordering::Relaxed);
    let mut record = NEWEST.load(Ordering::Relaxed);
    while !record.is_null() {
        // SAFETY: records are never unmapped; we are alone.
        let header = unsafe { &*record };
        if record != this {
            each(header.number as usize);
            Reads::forget(&header.reads);
            header
                .next_free
                .store(FREE.load(Ordering::Relaxed), Ordering::Relaxed);
            FREE.store(record, Ordering::Relaxed);
        }
        record = header.older;
    }
}
