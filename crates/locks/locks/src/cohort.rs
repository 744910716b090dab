//! Lock cohorting: a lock for each NUMA node, and a global one that a node
//! holds.

use crate::line::CacheLine;
use crate::mcs::{Mcs, McsNode};
use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use crate::ticket::Ticket;
use crate::virt_spin::VirtSpinBackoff;
use core::marker::PhantomData;

/// Handoffs within a NUMA node before the global lock is released.
const PASSES: u32 = 64;

/// A lock that knows whether others wait.
///
/// # Safety
/// It excludes, as [`RawLock`]; and if `others_wait` returns true, another CPU
/// acquires after this one's release without waiting for another arrival.
pub unsafe trait Local<P: Platform>: Default + Send + Sync + 'static {
    /// The context that a CPU supplies for an acquisition.
    type Ctx: Default + 'static;

    /// A free lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self;

    /// Acquires the lock.
    ///
    /// # Safety
    /// Does the same as [`RawLock::lock`].
    unsafe fn lock(&self, ctx: &Self::Ctx);

    /// Returns whether a CPU is waiting that will acquire next.
    ///
    /// # Safety
    /// The caller holds the lock with `ctx`.
    unsafe fn others_wait(&self, ctx: &Self::Ctx) -> bool;

    /// Releases the lock.
    ///
    /// # Safety
    /// Does the same as [`RawLock::unlock`].
    unsafe fn unlock(&self, ctx: &Self::Ctx);
}

// SAFETY: a linked successor spins on our grant.
unsafe impl<P: Platform> Local<P> for Mcs<P> {
    type Ctx = McsNode<P>;
    const FREE: Self = Self::new();

    #[inline(always)]
    unsafe fn lock(&self, ctx: &McsNode<P>) {
        // SAFETY: of the caller.
        unsafe { RawLock::lock(self, ctx) }
    }

    #[inline(always)]
    unsafe fn others_wait(&self, ctx: &McsNode<P>) -> bool {
        ctx.has_successor()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &McsNode<P>) {
        // SAFETY: of the caller.
        unsafe { RawLock::unlock(self, ctx) }
    }
}

// SAFETY: a ticket beyond ours has been given out.
unsafe impl<P: Platform> Local<P> for Ticket<P> {
    type Ctx = ();
    const FREE: Self = Self::new();

    #[inline(always)]
    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: of the caller.
        unsafe { RawLock::lock(self, ctx) }
    }

    #[inline(always)]
    unsafe fn others_wait(&self, (): &()) -> bool {
        self.waiters() > 0
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: of the caller.
        unsafe { RawLock::unlock(self, ctx) }
    }
}

/// The locks that a [`Cohort`] is made of.
///
/// # Safety
/// [`Recipe::GLOBAL`] is free, and the holder of a lock of [`Recipe::Global`]
/// may let another CPU release it in its stead.
pub unsafe trait Recipe<P: Platform>: Send + Sync + 'static {
    /// The lock among NUMA nodes.
    type Global: RawLock<P, Ctx = ()>;
    /// The lock within a NUMA node.
    type Local: Local<P>;
    /// A free global lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const GLOBAL: Self::Global;
    /// Name of the composition.
    const NAME: &'static str;
    /// A one-line description.
    const SUMMARY: &'static str;
    /// Order among waiters of different NUMA nodes.
    const FAIRNESS: Fairness;
    /// Size of a waiter's context in bytes.
    const BYTES_PER_WAITER: usize;
}

/// C-BO-MCS: test-and-set with backoff above, MCS within.
pub struct BoMcs;

// SAFETY: a word that any CPU may write; new, so free.
unsafe impl<P: Platform> Recipe<P> for BoMcs {
    type Global = VirtSpinBackoff<P, 64>;
    type Local = Mcs<P>;
    const GLOBAL: Self::Global = VirtSpinBackoff::new();
    const NAME: &'static str = "c-bo-mcs";
    const SUMMARY: &'static str = "cohort: backoff among NUMA nodes, MCS within";
    // A NUMA node lets go after so many handoffs, but nothing keeps it from
    // coming back before the others.
    const FAIRNESS: Fairness = Fairness::Unfair;
    const BYTES_PER_WAITER: usize = 64;
}

/// C-TKT-TKT: tickets above, tickets within.
pub struct TktTkt;

// SAFETY: a word that any CPU may write; new, so free.
unsafe impl<P: Platform> Recipe<P> for TktTkt {
    type Global = Ticket<P>;
    type Local = Ticket<P>;
    const GLOBAL: Self::Global = Ticket::new();
    const NAME: &'static str = "c-tkt-tkt";
    const SUMMARY: &'static str = "cohort: tickets among NUMA nodes and within";
    const FAIRNESS: Fairness =
        Fairness::Bounded("after 64 handoffs within one NUMA node the next one comes");
    const BYTES_PER_WAITER: usize = 0;
}

/// The part of the lock that belongs to one NUMA node.
struct Branch<P: Platform, L> {
    lock: L,
    /// Written by the holder of `lock`: how often the global lock was passed on
    /// here since it was acquired, plus one; 0 if this NUMA node does not have
    /// it.
    passes: P::U32,
}

/// A cohort lock for up to `NODES` NUMA nodes; more share branches.
///
/// **Paper:** D. Dice, V. J. Marathe and N. Shavit, "Lock Cohorting: A General
/// Technique for Designing NUMA Locks", PPoPP 2012.
///
/// [`Cohort`] is the composition; a [`Recipe`] names its two parts:
/// [`BoMcs`] (C-BO-MCS) and [`TktTkt`] (C-TKT-TKT). The global part may be
/// released by a CPU other than the one that acquired it, so it must be
/// context-free; the local part must be able to tell whether others of the NUMA
/// node wait.
///
/// **Size:** a line for the global lock, and one for each NUMA node. **Per waiter:**
/// what the local lock needs. **Fairness:** within a NUMA node that of the local
/// lock; a node keeps the lock for at most 64 handoffs, and the global lock
/// decides who is next: the next in line for C-TKT-TKT, any waiter for
/// C-BO-MCS.
#[repr(C)]
pub struct Cohort<P: Platform, R: Recipe<P>, const NODES: usize = 8> {
    global: CacheLine<R::Global>,
    branches: [CacheLine<Branch<P, R::Local>>; NODES],
    recipe: PhantomData<R>,
}

/// C-BO-MCS for eight NUMA nodes.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::CohortBoMcs;
///
/// static COUNT: NodeMutex<CohortBoMcs, u32> = NodeMutex::new(CohortBoMcs::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`CohortBoMcsMutex`](crate::queue::CohortBoMcsMutex) lists them.
pub type CohortBoMcs<P = NativePlatform> = Cohort<P, BoMcs>;
/// C-TKT-TKT for eight NUMA nodes.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::CohortTktTkt;
///
/// static COUNT: NodeMutex<CohortTktTkt, u32> = NodeMutex::new(CohortTktTkt::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`CohortTktTktMutex`](crate::queue::CohortTktTktMutex) lists them.
pub type CohortTktTkt<P = NativePlatform> = Cohort<P, TktTkt>;

/// The context that a CPU supplies to a [`Cohort`].
pub struct CohortCtx<P: Platform, C> {
    /// The NUMA node in which it has acquired, for the release.
    numa: P::Usize,
    local: C,
}

impl<P: Platform, C: Default> Default for CohortCtx<P, C> {
    fn default() -> Self {
        Self {
            numa: P::Usize::new(0),
            local: C::default(),
        }
    }
}

impl<P: Platform, R: Recipe<P>, const NODES: usize> Cohort<P, R, NODES> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            global: CacheLine(R::GLOBAL),
            branches: [const {
                CacheLine(Branch {
                    lock: R::Local::FREE,
                    passes: P::U32::ZERO,
                })
            }; NODES],
            recipe: PhantomData,
        }
    }
}

impl<P: Platform, R: Recipe<P>, const NODES: usize> Default for Cohort<P, R, NODES> {
    fn default() -> Self {
        Self {
            global: CacheLine(R::Global::default()),
            branches: core::array::from_fn(|_| {
                CacheLine(Branch {
                    lock: R::Local::default(),
                    passes: P::U32::new(0),
                })
            }),
            recipe: PhantomData,
        }
    }
}

// SAFETY: the holder holds its NUMA node's lock, and the global lock is held
// for it: by itself, or by a CPU of its NUMA node that has passed it on.
unsafe impl<P: Platform, R: Recipe<P>, const NODES: usize> RawLock<P> for Cohort<P, R, NODES> {
    type Ctx = CohortCtx<P, <R::Local as Local<P>>::Ctx>;

    const INFO: Info = Info {
        name: R::NAME,
        summary: R::SUMMARY,
        fairness: R::FAIRNESS,
        overtakes: match R::FAIRNESS {
            Fairness::Unfair => None,
            _ => Some(Overtakes::HandoffsOfEachNode(PASSES)),
        },
        numa_aware: true,
        try_lock: false,
        touches_after_release: true,
        bytes_per_waiter: R::BYTES_PER_WAITER,
        paper: "Dice, Marathe and Shavit 2012",
        promises: match R::FAIRNESS {
            Fairness::Unfair => {
                "short-lived, lets others in, short-lived in one node, prefers \
                its node"
            }
            _ => "short-lived, in order within a node, prefers its node",
        },
        structure_of: &["locks/src/cohort.rs", "P::preferences()"],
        ..Info::BASE
    };

    #[inline]
    unsafe fn lock(&self, ctx: &Self::Ctx) {
        let numa = P::node() % NODES;
        ctx.numa.store(numa, Ordering::Relaxed);
        let branch = &self.branches[numa];
        // SAFETY: of the caller; the global lock has no context.
        unsafe {
            branch.lock.lock(&ctx.local);
            // `passes` is ordered by the local lock.
            if branch.passes.load(Ordering::Relaxed) == 0 {
                self.global.lock(&());
                branch.passes.store(1, Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.global.is_locked()
    }

    #[inline]
    unsafe fn unlock(&self, ctx: &Self::Ctx) {
        let branch = &self.branches[ctx.numa.load(Ordering::Relaxed)];
        // SAFETY: of the caller: we hold the local lock, and our NUMA node
        // the global one.
        unsafe {
            let passes = branch.passes.load(Ordering::Relaxed);
            if passes <= P::preferences(PASSES) && branch.lock.others_wait(&ctx.local) {
                branch.passes.store(passes + 1, Ordering::Relaxed);
            } else {
                branch.passes.store(0, Ordering::Relaxed);
                self.global.unlock(&());
            }
            branch.lock.unlock(&ctx.local);
        }
    }
}

// SAFETY: both recipes here; a recipe of CLH-like locks would not be.
unsafe impl<P: Platform> crate::mutex::StackContext for Cohort<P, BoMcs> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Cohort<P, BoMcs> {}
// SAFETY: as above.
unsafe impl<P: Platform> crate::mutex::StackContext for Cohort<P, TktTkt> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Cohort<P, TktTkt> {}
