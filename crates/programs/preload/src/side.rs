//! Locks that do not fit into a mutex or rwlock, or must outlive it.
//!
//! They are made at the first use of a mutex and reused after its destruction.
//! C++ mutexes are never destroyed, only their memory is reused: a mutex that
//! is made at the address of an earlier one gets the earlier one's lock, so
//! that memory does not grow with every `std::mutex` that ever was.

use crate::host::Process;
use crate::memory;
use crate::mutex::Mutex;
use crate::own::Guarded;
use core::alloc::Layout;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use locklab_locks::Platform;
use locklab_pthread_protocols::gate::{self, Gate};
use locklab_pthread_protocols::publication::{published, published_or};

/// A lock beside its mutex, or with `RW` beside its rwlock. Fresh memory is
/// zero, and zero is free.
#[repr(C)]
pub(crate) struct Side<L, const RW: bool = false> {
    header: Header,
    pub(crate) lock: L,
}

#[repr(C)]
struct Header {
    /// Says whether the head of the queue holds it, or is about to. Also reveals a mutex
    /// whose memory was freed while it was held.
    held: AtomicU32,
    /// Serves the locks that `try_lock` must go round: see [`gate`].
    gate: AtomicU32,
    gated: AtomicU32,
    /// The holder's slot. It is here and not in the mutex, whose
    /// line every thread reads first: so that line is not written.
    slot: AtomicPtr<()>,
    /// Time of the acquisition in ticks, with a profile.
    since: AtomicU64,
    /// The mutex, or 0 in the pool.
    mutex: AtomicUsize,
    /// The next of the same bucket, or in the pool.
    next: AtomicPtr<Header>,
}

const BUCKETS: usize = 1 << 14;

/// Guards the pools below.
static GUARD: Guarded = Guarded::new();

/// Locks of one type.
struct Pool {
    /// The sides in use, placed by the address of their mutex.
    table: [AtomicPtr<Header>; BUCKETS],
    free: AtomicPtr<Header>,
}

impl Pool {
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Self = Self {
        table: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS],
        free: AtomicPtr::new(ptr::null_mut()),
    };

    fn bucket(&self, mutex: usize) -> &AtomicPtr<Header> {
        let hash = (mutex as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.table[(hash >> 50) as usize % BUCKETS]
    }

    /// Removes the lock of the mutex at `address` from the table; requires the
    /// guard.
    fn detach(&self, address: usize) -> *mut Header {
        let mut link = self.bucket(address);
        loop {
            let side = link.load(Ordering::Relaxed);
            if side.is_null() {
                return side;
            }
            // SAFETY: never unmapped.
            let header = unsafe { &*side };
            if header.mutex.load(Ordering::Relaxed) == address {
                link.store(header.next.load(Ordering::Relaxed), Ordering::Relaxed);
                return side;
            }
            link = &header.next;
        }
    }

    /// Takes a lock from the pool; requires the guard.
    fn take_free(&self) -> *mut Header {
        let side = self.free.load(Ordering::Relaxed);
        if !side.is_null() {
            // SAFETY: never unmapped.
            let next = unsafe { (*side).next.load(Ordering::Relaxed) };
            self.free.store(next, Ordering::Relaxed);
        }
        side
    }
}

static MUTEXES: Pool = Pool::EMPTY;
static RWLOCKS: Pool = Pool::EMPTY;

impl<L: 'static, const RW: bool> Side<L, RW> {
    const POOL: &'static Pool = if RW { &RWLOCKS } else { &MUTEXES };

    /// Returns the lock of `mutex`, if it has one.
    #[inline(always)]
    pub(crate) fn known(mutex: &Mutex) -> Option<&'static Self> {
        // SAFETY: only `make` writes pointers there, to what is never unmapped.
        unsafe { ptr::with_exposed_provenance::<Self>(published(&mutex.word)).as_ref() }
    }

    /// Returns the lock of `mutex`.
    #[inline(always)]
    pub(crate) fn of(mutex: &Mutex) -> &'static Self {
        match Self::known(mutex) {
            Some(side) => side,
            None => Self::make(mutex, |side| side.header.idle()),
        }
    }

    /// Finds the side as [`Side::of`] does, for a lock that itself says whether it is `idle`.
    #[inline(always)]
    pub(crate) fn of_idle(mutex: &Mutex, idle: impl Fn(&L) -> bool) -> &'static Self {
        match Self::known(mutex) {
            Some(side) => side,
            None => Self::make(mutex, |side| idle(&side.lock)),
        }
    }

    /// Replaces a lock for which threads that no longer exist wait by a free
    /// one.
    pub(crate) fn replace(mutex: &Mutex) -> &'static Self {
        mutex.word.store(0, Ordering::Relaxed);
        Self::make(mutex, |_| false)
    }

    #[cold]
    #[inline(never)]
    fn make(mutex: &Mutex, inherit: impl Fn(&Self) -> bool) -> &'static Self {
        let address = ptr::from_ref(mutex).addr();
        let make = || {
            let mut side = Self::POOL.detach(address);
            let mut fresh = false;
            // SAFETY: in the table are locks of this one type.
            if side.is_null() || !inherit(unsafe { &*side.cast() }) {
                // A lock that is held by no living thread is lost; so is its
                // memory, once for each such mutex.
                side = Self::POOL.take_free();
                fresh = true;
            }
            if side.is_null() {
                side = memory::allocate(Layout::new::<Self>()).cast();
            }
            // SAFETY: never unmapped.
            let header = unsafe { &*side };
            header.mutex.store(address, Ordering::Relaxed);
            header.slot.store(ptr::null_mut(), Ordering::Relaxed);
            if fresh {
                let gated = gate::at_first::<Process>();
                header.gated.store(gated, Ordering::Relaxed);
            }
            let bucket = Self::POOL.bucket(address);
            header
                .next
                .store(bucket.load(Ordering::Relaxed), Ordering::Relaxed);
            bucket.store(side, Ordering::Relaxed);
            side.expose_provenance()
        };
        let side = published_or(&mutex.word, &GUARD, |side| side != 0, make);
        // SAFETY: as in `known`; the header is the start of a `Self`.
        unsafe { &*ptr::with_exposed_provenance::<Self>(side) }
    }

    /// Returns the lock of a mutex that is being destroyed to the pool.
    pub(crate) fn retire(mutex: &Mutex) {
        Self::retire_idle(mutex, |side| side.header.idle());
    }

    /// Retires the side as [`Side::retire`] does; one that is not `idle` is lost.
    pub(crate) fn retire_idle(mutex: &Mutex, idle: impl Fn(&Self) -> bool) {
        if mutex.word.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        GUARD.with(|| {
            let side = Self::POOL.detach(ptr::from_ref(mutex).addr());
            // SAFETY: never unmapped; in the table are locks of this one type.
            if !side.is_null() && idle(unsafe { &*side.cast() }) {
                // SAFETY: as above.
                let header = unsafe { &*side };
                header.mutex.store(0, Ordering::Relaxed);
                let free = &Self::POOL.free;
                header
                    .next
                    .store(free.load(Ordering::Relaxed), Ordering::Relaxed);
                free.store(side, Ordering::Relaxed);
            }
        });
    }

    /// Returns whether a thread holds it. A `try_lock` that only checks does not.
    pub(crate) fn is_held(&self) -> bool {
        self.header.held.load(Ordering::Relaxed) != 0
            || gate::is_held(self.header.gate.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn slot(&self) -> &AtomicPtr<()> {
        &self.header.slot
    }

    pub(crate) fn since(&self) -> &AtomicU64 {
        &self.header.since
    }

    /// Returns whether a thread holds it, for locks without a gate; whether there is a
    /// head of the queue, for those behind a word.
    #[inline(always)]
    pub(crate) fn held(&self) -> &AtomicU32 {
        &self.header.held
    }

    /// Returns the gate that separates the head of the queue from a `try_lock`.
    #[inline(always)]
    pub(crate) fn gate<P: Platform>(&self) -> Gate<'_, Process, P> {
        const { assert!(size_of::<P::U32>() == size_of::<AtomicU32>()) };
        // SAFETY: the word of each platform here is a transparent wrapper of
        // this one.
        let gate = unsafe { &*(&raw const self.header.gate).cast() };
        Gate::new(&self.header.held, gate, &self.header.gated)
    }
}

impl Header {
    fn idle(&self) -> bool {
        self.held.load(Ordering::Relaxed) == 0 && self.gate.load(Ordering::Relaxed) == 0
    }
}

pub(crate) fn guard() -> &'static Guarded {
    &GUARD
}
