//! `pthread_rwlock_t`: its contents, and what POSIX and glibc say of it.
//!
//! It begins like a mutex of the interposer: a pointer to the lock beside it
//! ([`crate::shared`]), the thread that writes, the fork generation. A rwlock
//! of zeros is free. Process-shared ones stay glibc's, which marks them in a
//! field that nothing here touches. The kind (who is preferred) is glibc's as
//! well: the chosen lock has an order of its own. A thread that reads may
//! always read again ([`crate::reads`]).

use crate::deadline::Deadline;
use crate::host::reset_reader;
use crate::locking::{is_clock, poll};
use crate::mutex::{Errno, Mutex, this_thread};
use crate::reads::{Place, Reads};
use crate::shared::{self, Held, SharedOps};
use crate::{generation, report, site, thread};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use libc::{
    EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, clockid_t, pthread_rwlock_t, timespec,
};

/// The interposer's view of a `pthread_rwlock_t`.
#[repr(C)]
pub(crate) struct Rwlock {
    /// Holds what a mutex has too; `owner` is the thread that writes. The high half of
    /// `slot` is glibc's mark of those that processes share.
    head: Mutex,
    /// Time of the writer's acquisition in ticks, with a profile.
    since: AtomicU64,
    /// The kind, which glibc's initialisers set.
    _kind: AtomicU32,
}

const _: () = assert!(size_of::<Rwlock>() <= size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<Rwlock>() <= align_of::<pthread_rwlock_t>());
const _: () = assert!(offset_of!(Rwlock, _kind) == 48 && offset_of!(Mutex, slot) == 24);

/// Says whether an acquisition admits other readers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

impl Rwlock {
    /// Returns the rwlock of ours that lies in the place of glibc's.
    ///
    /// # Safety
    /// `rwlock` is one in the sense of POSIX, for as long as the reference is
    /// used.
    #[inline(always)]
    pub(crate) unsafe fn of<'a>(rwlock: *mut pthread_rwlock_t) -> &'a Self {
        // SAFETY: same size or smaller, all fields atomic.
        unsafe { &*rwlock.cast() }
    }

    pub(crate) fn as_glibc(&self) -> *mut pthread_rwlock_t {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Begins its life, as glibc has initialised it.
    pub(crate) fn begin(&self, caller: usize) {
        if self.is_shared_between_processes() {
            report::kept_rwlock_by_glibc();
            return;
        }
        self.head.adopt(generation::generation(), 0);
        if report::profiling() {
            site::set(&self.head, report::site(&self.head, caller));
        }
    }

    /// Ends its life. As in glibc, one that is held can be destroyed.
    pub(crate) fn end(&self, ops: &SharedOps) {
        (ops.retire)(&self.head);
        self.head.owner.store(0, Ordering::Relaxed);
    }

    fn is_shared_between_processes(&self) -> bool {
        self.head.slot.load(Ordering::Relaxed).addr() >> 32 != 0
    }

    /// Returns the chosen lock, if this rwlock is the interposer's; it is then as it was
    /// repaired after a fork.
    #[inline]
    pub(crate) fn ours(&self) -> Option<&'static SharedOps> {
        let Some(ops) = shared::ops() else {
            report::rwlocks_of_glibc();
            return None;
        };
        if self.is_shared_between_processes() {
            report::kept_by_glibc();
            return None;
        }
        let generation = generation::generation();
        generation::renew(
            &self.head.state,
            |state| Mutex::generation_of(state) == generation,
            || {
                // SAFETY: a rwlock of ours, and all others wait for this.
                unsafe { (ops.repair)(&self.head, self.held_after_fork()) };
                self.head.waiters.store(0, Ordering::Relaxed);
                self.head.with_generation(generation)
            },
        );
        Some(ops)
    }

    /// Returns how it is held in the child of a fork. Readers that stayed in the parent
    /// read no more; what one of its writers left may be half written, and stays held.
    /// (What the child's thread reads, [`forked`] repairs before any other thread is
    /// there.)
    fn held_after_fork(&self) -> Held {
        if self.head.owner.load(Ordering::Relaxed) != 0 {
            Held::Writing
        } else if self.read_by_this_thread().is_some() {
            Held::Reading
        } else {
            Held::Not
        }
    }

    #[inline]
    fn read_by_this_thread(&self) -> Option<Place> {
        Reads::find(reads(), ptr::from_ref(self).addr())
    }

    #[inline]
    fn is_written_by_this_thread(&self) -> bool {
        // Only the writer finds itself here, so no other thread writes meanwhile.
        self.head.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Returns `Some(result)` if the thread holds it already, in a way that answers the
    /// request: `refused` where it writes.
    #[inline]
    fn again(&self, mode: Mode, refused: Errno) -> Option<Errno> {
        if self.is_written_by_this_thread() {
            return Some(refused);
        }
        if mode == Mode::Write {
            return None;
        }
        let place = self.read_by_this_thread()?;
        Some(if place.deepen() { 0 } else { EAGAIN })
    }

    /// Records that the thread holds it.
    #[inline]
    fn own(&self, mode: Mode) -> Errno {
        match mode {
            Mode::Read => Reads::add(reads(), ptr::from_ref(self).expose_provenance()),
            Mode::Write => self.head.owner.store(this_thread(), Ordering::Relaxed),
        }
        0
    }

    /// Notes, with a profile, an acquisition, after a wait if `began` is set.
    fn acquired(&self, mode: Mode, caller: usize, began: Option<u64>) {
        let now = report::counted(&self.head, caller, began);
        if mode == Mode::Write {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// Acquires the rwlock, to read or to write.
    ///
    /// # Safety
    /// A rwlock of ours.
    #[inline]
    pub(crate) unsafe fn lock(&self, ops: &SharedOps, caller: usize, mode: Mode) -> Errno {
        if let Some(result) = self.again(mode, EDEADLK) {
            return result;
        }
        let for_rwlock = &thread::header().for_rwlock;
        for_rwlock.store(true, Ordering::Relaxed);
        let wait = || {
            // SAFETY: of the caller.
            unsafe {
                match mode {
                    Mode::Read => (ops.read)(&self.head),
                    Mode::Write => (ops.write)(&self.head),
                }
            }
        };
        if report::profiling() {
            // SAFETY: of the caller.
            let first = || unsafe { self.attempt(ops, mode) };
            let began = report::wait_for(&self.head, first, wait);
            self.acquired(mode, caller, began);
        } else {
            wait();
        }
        for_rwlock.store(false, Ordering::Relaxed);
        self.own(mode)
    }

    /// Tries once, as if the thread did not hold it.
    ///
    /// # Safety
    /// A rwlock of ours.
    #[inline]
    unsafe fn attempt(&self, ops: &SharedOps, mode: Mode) -> bool {
        // SAFETY: of the caller.
        unsafe {
            match mode {
                Mode::Read => (ops.try_read)(&self.head),
                Mode::Write => (ops.try_write)(&self.head),
            }
        }
    }

    /// Acquires the rwlock, to read or to write, if that needs no waiting.
    ///
    /// # Safety
    /// A rwlock of ours.
    #[inline]
    pub(crate) unsafe fn try_lock(&self, ops: &SharedOps, caller: usize, mode: Mode) -> Errno {
        if let Some(result) = self.again(mode, EBUSY) {
            return result;
        }
        // SAFETY: of the caller.
        if !unsafe { self.attempt(ops, mode) } {
            return EBUSY;
        }
        if report::profiling() {
            self.acquired(mode, caller, None);
        }
        self.own(mode)
    }

    /// Tries until the time `until` of `clock`. It has no place in a queue
    /// meanwhile.
    ///
    /// # Safety
    /// A rwlock of ours; `until` points to a time.
    pub(crate) unsafe fn timed_lock(
        &self,
        ops: &SharedOps,
        caller: usize,
        mode: Mode,
        clock: clockid_t,
        until: *const timespec,
    ) -> Errno {
        // SAFETY: of the caller.
        let until = unsafe { *until };
        // Unlike with mutexes, glibc looks at the time first.
        if !is_clock(clock) || !(0..1_000_000_000).contains(&until.tv_nsec) {
            return EINVAL;
        }
        if let Some(result) = self.again(mode, EDEADLK) {
            return result;
        }
        let deadline = Deadline { clock, until };
        // SAFETY: of the caller.
        let attempt = || unsafe { self.attempt(ops, mode) };
        let began = report::profiling().then(report::ticks);
        let at_once = attempt();
        if !at_once && !poll(&deadline, attempt) {
            return ETIMEDOUT;
        }
        if report::profiling() {
            self.acquired(mode, caller, began.filter(|_| !at_once));
        }
        self.own(mode)
    }

    /// Releases the rwlock.
    ///
    /// # Safety
    /// A rwlock of ours.
    #[inline]
    pub(crate) unsafe fn release(&self, ops: &SharedOps, caller: usize) -> Errno {
        let profiling = report::profiling();
        if self.is_written_by_this_thread() {
            let released = profiling
                .then(|| report::releasing_since(&self.head, self.since.swap(0, Ordering::Relaxed)))
                .flatten();
            self.head.owner.store(0, Ordering::Relaxed);
            // SAFETY: this thread writes.
            unsafe { (ops.write_unlock)(&self.head) };
            report::released(released, caller);
            return 0;
        }
        let Some(place) = self.read_by_this_thread() else {
            return EPERM;
        };
        if place.leave() {
            let released = profiling
                .then(|| report::releasing_reader(&self.head))
                .flatten();
            // SAFETY: this thread reads.
            unsafe { (ops.read_unlock)(&self.head) };
            report::released(released, caller);
        }
        0
    }
}

/// Repairs, in a process just forked, the rwlocks that its thread reads, which
/// are read in the child as well.
pub(crate) fn forked() {
    if shared::ops().is_some() {
        reset_reader(thread::number());
        Reads::each(reads(), |rwlock| {
            // SAFETY: it is held, and so it is there.
            unsafe { Rwlock::of(ptr::with_exposed_provenance_mut(rwlock)) }.ours();
        });
    }
}

/// Returns the list of the rwlocks that this thread reads.
#[inline]
fn reads() -> &'static AtomicPtr<Reads> {
    &thread::header().reads
}
