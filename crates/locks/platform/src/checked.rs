//! A layer that detects misuse: it records who holds the lock, and in which
//! order locks are acquired.
//!
//! For debug builds and tests, around any context-free lock that is not
//! recursive. It costs two more writes per acquisition, on the lock's line and
//! on one of the CPU's own, and panics at the first mistake instead of
//! deadlocking some day. It must never report correct use as a mistake.

use crate::line::CacheLine;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw_lock::{Info, RawLock};
#[cfg(feature = "std")]
use crate::{native::Native, qnode::MAX_CPUS, threads::Threads};
use core::marker::PhantomData;

/// The ranks of the locks that one CPU holds; see [`Checked`].
pub struct HeldRanks<P: Platform>(CacheLine<P::U32>);

impl<P: Platform> HeldRanks<P> {
    /// No ranks held.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NONE: Self = Self(CacheLine(P::U32::ZERO));
}

/// A platform that can say which locks a CPU holds.
///
/// # Safety
/// Each CPU number has ranks of its own, and always the same ones.
pub unsafe trait CheckedPlatform: Platform {
    /// Returns the ranks that `cpu` holds. A kernel returns an entry of
    /// `static HELD: [HeldRanks<MyPlatform>; CPUS] = [const { HeldRanks::NONE }; CPUS]`.
    fn held_ranks(cpu: usize) -> &'static HeldRanks<Self>;
}

/// The ranks of the checked locks that each thread holds.
#[cfg(feature = "std")]
static HELD: [HeldRanks<Native<Threads>>; MAX_CPUS] = [const { HeldRanks::NONE }; MAX_CPUS];

// SAFETY: an entry of a static for each number.
#[cfg(feature = "std")]
unsafe impl CheckedPlatform for Native<Threads> {
    #[inline(always)]
    fn held_ranks(cpu: usize) -> &'static HeldRanks<Self> {
        &HELD[cpu]
    }
}

/// Value of `holder` when the lock is free.
const NOBODY: u32 = 0;

/// `L` with a panic where it is misused: acquired by the CPU that holds it,
/// released by one that does not, or acquired out of order.
///
/// The order is by `RANK`, 0 to 30: while a CPU holds a lock it may acquire
/// only locks of higher ranks. (`try_lock` is exempt, because it cannot
/// deadlock.) Rank 31 takes no part in the order.
///
/// # Panics
/// `lock` and `try_lock` panic before they have acquired anything, `unlock`
/// before it has released. A panic names the rule that was broken.
pub struct Checked<L, P: Platform, const RANK: u32 = 31> {
    lock: L,
    /// The holder's CPU number + 1.
    holder: P::U32,
    platform: PhantomData<P>,
}

/// The rank of locks that take no part in the order.
const UNRANKED: u32 = 31;

impl<L, P: CheckedPlatform, const RANK: u32> Checked<L, P, RANK> {
    const IN_RANGE: () = assert!(RANK <= UNRANKED, "a rank is 31 at most");

    /// Wraps a free lock.
    pub const fn new(lock: L) -> Self {
        let () = Self::IN_RANGE;
        Self {
            lock,
            holder: P::U32::ZERO,
            platform: PhantomData,
        }
    }

    /// This lock's place among those that a CPU holds.
    const BIT: u32 = if RANK == UNRANKED { 0 } else { 1 << RANK };

    fn me() -> (u32, &'static P::U32) {
        let cpu = P::cpu();
        (cpu as u32 + 1, &P::held_ranks(cpu).0)
    }

    #[track_caller]
    fn check_holder(&self, me: u32) {
        // The holder alone writes our own number there, so Relaxed will do.
        assert!(
            self.holder.load(Ordering::Relaxed) != me,
            "CPU {} acquires a lock that it holds",
            me - 1
        );
    }

    fn acquired(&self, me: u32, ranks: &P::U32) {
        self.holder.store(me, Ordering::Relaxed);
        ranks.store(ranks.load(Ordering::Relaxed) | Self::BIT, Ordering::Relaxed);
    }

    #[track_caller]
    fn check_release(&self) -> &'static P::U32 {
        let (me, ranks) = Self::me();
        match self.holder.load(Ordering::Relaxed) {
            NOBODY => panic!("CPU {} releases a lock that nobody holds", me - 1),
            holder => assert!(
                holder == me,
                "CPU {} releases a lock that CPU {} holds",
                me - 1,
                holder - 1
            ),
        }
        ranks
    }
}

impl<L: Default, P: CheckedPlatform, const RANK: u32> Default for Checked<L, P, RANK> {
    fn default() -> Self {
        let () = Self::IN_RANGE;
        Self {
            lock: L::default(),
            holder: P::U32::new(NOBODY),
            platform: PhantomData,
        }
    }
}

// SAFETY: the lock is `L`.
unsafe impl<P: CheckedPlatform, L: RawLock<P, Ctx = ()>, const RANK: u32> RawLock<P>
    for Checked<L, P, RANK>
{
    type Ctx = ();
    const INFO: Info = Info {
        cpu_numbers: true,
        // It knows of one holder.
        readers_share: false,
        ..L::INFO
    };

    #[track_caller]
    unsafe fn lock(&self, ctx: &()) {
        const {
            assert!(
                !L::INFO.recursive,
                "its holder may acquire a recursive lock"
            )
        };
        let (me, ranks) = Self::me();
        self.check_holder(me);
        let held = ranks.load(Ordering::Relaxed);
        assert!(
            RANK == UNRANKED || held >> RANK == 0,
            "CPU {} acquires a lock of rank {RANK} while it holds one of rank {}",
            me - 1,
            31 - held.leading_zeros()
        );
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.lock(ctx) };
        self.acquired(me, ranks);
    }

    #[track_caller]
    unsafe fn try_lock(&self, ctx: &()) -> bool {
        let (me, ranks) = Self::me();
        self.check_holder(me);
        // Two locks of one rank: the bit could not be given back rightly.
        assert!(
            Self::BIT == 0 || ranks.load(Ordering::Relaxed) & Self::BIT == 0,
            "CPU {} acquires a second lock of rank {RANK}",
            me - 1
        );
        // SAFETY: the caller's promise is the same.
        let acquired = unsafe { self.lock.try_lock(ctx) };
        if acquired {
            self.acquired(me, ranks);
        }
        acquired
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.lock.is_locked()
    }

    #[track_caller]
    unsafe fn unlock(&self, ctx: &()) {
        let ranks = self.check_release();
        self.holder.store(NOBODY, Ordering::Relaxed);
        ranks.store(
            ranks.load(Ordering::Relaxed) & !Self::BIT,
            Ordering::Relaxed,
        );
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.unlock(ctx) };
    }
}

// SAFETY: `L` excludes. Guards stay on their CPU, as those of `L`.
unsafe impl<P, L, const RANK: u32> lock_api::RawMutex for Checked<L, P, RANK>
where
    P: CheckedPlatform,
    L: RawLock<P, Ctx = ()> + lock_api::RawMutex,
{
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new(L::INIT);
    type GuardMarker = lock_api::GuardNoSend;

    #[track_caller]
    fn lock(&self) {
        // SAFETY: no context; borrowed while held.
        unsafe { RawLock::<P>::lock(self, &()) }
    }

    #[track_caller]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { RawLock::<P>::try_lock(self, &()) }
    }

    fn is_locked(&self) -> bool {
        lock_api::RawMutex::is_locked(&self.lock)
    }

    #[track_caller]
    unsafe fn unlock(&self) {
        // SAFETY: of the caller.
        unsafe { RawLock::<P>::unlock(self, &()) }
    }
}
