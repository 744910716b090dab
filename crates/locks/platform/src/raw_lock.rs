//! The interface of every lock, and the description that each lock gives of
//! itself.
//!
//! [`RawLock`] is what backends, wrappers and the catalogue use. It never
//! allocates and protects no data by itself: see [`NodeMutex`](crate::mutex::NodeMutex) and the
//! `lock_api` implementations for that.

use crate::platform::Platform;
use crate::qnode::MAX_CPUS;

/// The order in which waiters get the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// First come, first served, from the doorway on.
    Fifo,
    /// A waiter may be overtaken, but not without limit; the text says how
    /// often.
    Bounded(&'static str),
    /// A waiter may be overtaken without limit.
    Unfair,
}

/// Says how often a waiter may be overtaken: [`Fairness::Bounded`] as a number.
///
/// A waiter is overtaken when a CPU that came after it (passed the
/// doorway of `lock` later) acquires before it. The numbers are those of the
/// platform that ships; others may have smaller ones
/// ([`Platform::preferences`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtakes {
    /// The longest waiter is overtaken this often in all.
    InAll(u32),
    /// The longest waiter is overtaken by this many handoffs in a row of each
    /// NUMA node, and once more by the first of them.
    HandoffsOfEachNode(u32),
    /// Any waiter is overtaken this often by each other CPU.
    ByEachCpu(u32),
}

/// The description of a lock: its row of `locklab locks`.
///
/// A lock states its special properties and takes the others from
/// [`Info::BASE`].
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name used on the command line, lower case with dashes.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Order among waiters.
    pub fairness: Fairness,
    /// Says how often a waiter may be overtaken, where that is a number. (`None` for
    /// first come, first served.)
    pub overtakes: Option<Overtakes>,
    /// Is true if a handoff prefers a waiter of the same NUMA node.
    pub numa_aware: bool,
    /// Is true if the holder may acquire it again.
    pub recursive: bool,
    /// Is true if `try_lock` can succeed.
    pub try_lock: bool,
    /// Is true if an acquisition can be given up.
    pub timeout: bool,
    /// Is true if a waiter may sleep instead of spinning.
    pub parks: bool,
    /// Is true if readers share it: [`RawLock::read_lock`] admits several of them
    /// at once. Otherwise a reader locks as a writer does.
    pub readers_share: bool,
    /// Is true if it works in memory that processes share (it holds no
    /// pointers).
    pub shared_memory: bool,
    /// Is true if it needs CPU numbers ([`Platform::cpu`]), so that a build
    /// without `std` must name a [`Host`](crate::native::Host).
    pub cpu_numbers: bool,
    /// Is true if it keeps the table of the locks that each CPU holds
    /// ([`Platform::held_locks`]), where there is one.
    pub held_locks: bool,
    /// Is true if `unlock` still uses the lock's own memory after another CPU may
    /// have acquired it. If so, the last CPU to acquire must not free the lock
    /// (or the object that contains it) before every `unlock` has returned, as
    /// it would with a reference count protected by the lock.
    pub touches_after_release: bool,
    /// The most CPUs that may use one lock at a time.
    pub max_cpus: usize,
    /// Bytes that a waiter adds to the lock itself.
    pub bytes_per_waiter: usize,
    /// Author, title, year.
    pub paper: &'static str,
    /// Names promises that the model checker holds it to, beyond those that the other
    /// fields say, with commas between.
    #[doc(hidden)]
    pub promises: &'static str,
    /// Names promises of every lock that it does not make, or that cannot be explored to
    /// the end.
    #[doc(hidden)]
    pub not_promised: &'static str,
    /// The source file whose orderings it is there to show needed; `None`: all that it runs. A
    /// lock inside it, whose own promises show its orderings needed, may need fewer here.
    #[doc(hidden)]
    pub orderings_of: Option<&'static str>,
    /// The source files whose structure it is there to show needed; none: all that it runs. A
    /// lock inside it has a record of its own, and promises more there.
    #[doc(hidden)]
    pub structure_of: &'static [&'static str],
}

impl Info {
    /// A lock without special properties: unfair, with a `try_lock`, for any
    /// number of CPUs.
    pub const BASE: Self = Self {
        name: "",
        summary: "",
        fairness: Fairness::Unfair,
        overtakes: None,
        numa_aware: false,
        recursive: false,
        try_lock: true,
        timeout: false,
        parks: false,
        readers_share: false,
        shared_memory: false,
        cpu_numbers: false,
        held_locks: false,
        touches_after_release: false,
        max_cpus: MAX_CPUS,
        bytes_per_waiter: 0,
        paper: "",
        promises: "",
        not_promised: "",
        orderings_of: None,
        structure_of: &[],
    };
}

/// A mutual-exclusion lock.
///
/// `Ctx` is what a thread supplies: a queue node, or `()` for a
/// context-free lock. It is taken by `&`, never `&mut`: other CPUs read and
/// write a queue node while its owner holds the reference.
///
/// # Safety
/// An implementation admits one holder at a time, and what one holder wrote
/// before `unlock` is seen by the next after `lock`.
pub unsafe trait RawLock<P: Platform>: Default + Send + Sync + 'static {
    /// The context that a thread supplies for an acquisition.
    type Ctx: Default + 'static;

    /// The description of the lock.
    const INFO: Info;

    /// Is true if it has counters that wrap; see
    /// [`RawLock::about_to_wrap`].
    #[doc(hidden)]
    const COUNTS: bool = false;

    /// Returns a free lock whose counters are at their last value: for the checker,
    /// which cannot count to 65,536 in each of a million executions.
    #[doc(hidden)]
    fn about_to_wrap() -> Self {
        Self::default()
    }

    /// Is called once by the code that places locks for others to measure or
    /// check, when the lock is in its final place and before its first use: a
    /// lock that was not written in Rust may point into itself.
    #[doc(hidden)]
    fn settle(&self) {}

    /// Acquires the lock.
    ///
    /// # Safety
    /// Until the matching [`RawLock::unlock`] returns, `ctx` is used by no
    /// other acquisition, neither it nor the lock moves, and no more than
    /// `INFO.max_cpus` CPUs use the lock. Where nodes circulate (CLH), every
    /// lock and context that have met stay in place until all are idle and
    /// are dropped together.
    unsafe fn lock(&self, ctx: &Self::Ctx);

    /// Acquires the lock if that needs no waiting, and returns whether it did.
    /// A lock with `!INFO.try_lock` always returns `false`.
    ///
    /// # Safety
    /// As [`RawLock::lock`].
    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &Self::Ctx) -> bool {
        let _ = ctx;
        false
    }

    /// Returns whether some CPU holds the lock or waits for it, at the moment of the
    /// call: for assertions and statistics. `None` if this lock cannot tell.
    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        None
    }

    /// Releases the lock, inlined at the call site.
    ///
    /// # Safety
    /// The caller holds the lock, acquired with this `ctx`.
    unsafe fn unlock(&self, ctx: &Self::Ctx);

    /// Acquires the lock for reading. Where `INFO.readers_share`, other readers
    /// may hold it at the same time, and no writer; any other lock has one
    /// holder, who may as well read.
    ///
    /// # Safety
    /// As [`RawLock::lock`]; the matching release is [`RawLock::read_unlock`],
    /// and the caller writes nothing that the lock protects.
    #[inline(always)]
    unsafe fn read_lock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock(ctx) }
    }

    /// Releases a reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading, acquired with this `ctx`.
    #[inline(always)]
    unsafe fn read_unlock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.unlock(ctx) }
    }

    /// Releases the lock by a call: the same code, not inlined. The choice
    /// between the two is the caller's (every inlined copy costs the program
    /// instruction cache); [`Outline`](crate::outline::Outline) makes it by type.
    ///
    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline(never)]
    unsafe fn unlock_outline(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.unlock(ctx) }
    }
}

/// A lock whose acquisition can be given up.
///
/// # Safety
/// `lock_until` returns `true` only to the holder, as [`RawLock::lock`]
/// returns only to it.
pub unsafe trait TimedLock<P: Platform>: RawLock<P> {
    /// Acquires the lock, or gives up when [`Platform::now`] has reached
    /// `deadline` nanoseconds; returns whether it acquired. Tries at least
    /// once.
    ///
    /// # Safety
    /// As [`RawLock::lock`]; and after giving up, `ctx` stays in place and is
    /// used with this lock only, until it is idle by the lock's own
    /// documentation.
    unsafe fn lock_until(&self, ctx: &Self::Ctx, deadline: u64) -> bool;
}
