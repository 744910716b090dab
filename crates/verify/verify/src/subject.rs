//! A lock as the models use it: a value, not a type.
//!
//! So the models are compiled once, and a lock that nobody knew when they
//! were can be checked by them.

use crate::graphs::Graphs;
use locklab_locks::lock_api::RawRwLockDowngrade;
use locklab_locks::platform::Platform;
use locklab_locks::{BigLock, Info, RawLock, TimedLock};
use std::any::{Any, TypeId};
use std::marker::PhantomData;

/// Is what a thread brings to an acquisition. Its contents stay in place.
pub type Context = Box<dyn Any>;

/// A lock that can be made, again for each execution.
pub trait Subject: Send + Sync {
    /// Returns what it says of itself.
    fn info(&self) -> Info;

    /// Returns whether it counts with numbers that wrap.
    fn counts(&self) -> bool {
        false
    }

    /// Returns whether its words are those of `locklab_graph`, and not loom's.
    fn is_of_graphs(&self) -> bool {
        false
    }

    /// Returns a free one; with `about_to_wrap`, with its counters at their last
    /// value.
    fn make(&self, about_to_wrap: bool) -> Box<dyn Instance>;
}

/// One lock. What a lock does not have panics.
///
/// The methods that are unsafe want what those of [`RawLock`],
/// [`TimedLock`], [`BigLock`] and [`locklab_locks::lock_api::RawRwLock`] want that have their names.
#[allow(clippy::missing_safety_doc, reason = "said once, above")]
pub trait Instance {
    /// Returns the lock's own memory: its address and size.
    fn memory(&self) -> (usize, usize);

    /// Returns a context, its address, and its size.
    fn context(&self) -> (Context, usize, usize);

    /// Does what [`RawLock::lock`] does.
    unsafe fn lock(&self, context: &Context);

    /// Does what [`RawLock::try_lock`] does.
    unsafe fn try_lock(&self, context: &Context) -> bool;

    /// Does what [`RawLock::unlock`] does.
    unsafe fn unlock(&self, context: &Context);

    /// Does what [`RawLock::is_locked`] does.
    fn is_locked(&self) -> Option<bool> {
        None
    }

    /// Returns how a program in the form of a lock ([`crate::litmus`]) has ended.
    fn outcome(&self) -> u64 {
        unimplemented!("no program")
    }

    /// Does what [`TimedLock::lock_until`] does.
    unsafe fn lock_until(&self, _: &Context, _: u64) -> bool {
        unimplemented!("no timeout")
    }

    /// Acquires, or fails for a reason of its own: a deadlock, or a limit of time.
    ///
    /// # Safety
    /// As [`RawLock::lock`], of a lock without contexts.
    unsafe fn lock_or_fail(&self) -> bool {
        unimplemented!("never fails")
    }

    /// Returns whether a context that was given up may go.
    fn is_idle(&self, _: &Context) -> bool {
        unimplemented!("no timeout")
    }

    /// Does what [`locklab_locks::lock_api::RawRwLock::lock_shared`] does.
    unsafe fn read(&self, _: &Context) {
        unimplemented!("no readers")
    }

    /// Does what [`locklab_locks::lock_api::RawRwLock::try_lock_shared`] does.
    unsafe fn try_read(&self, _: &Context) -> bool {
        unimplemented!("no readers")
    }

    /// Does what [`locklab_locks::lock_api::RawRwLock::unlock_shared`] does.
    unsafe fn read_unlock(&self, _: &Context) {
        unimplemented!("no readers")
    }

    /// Does what [`RawRwLockDowngrade::downgrade`] does.
    unsafe fn downgrade(&self) {
        unimplemented!("no readers")
    }

    /// Does what [`BigLock::init`] does.
    unsafe fn init(&self) {
        unimplemented!("no big lock")
    }

    /// Does what [`BigLock::held`] does.
    fn held(&self) -> bool {
        unimplemented!("no big lock")
    }

    /// Does what [`BigLock::release_all`] does.
    unsafe fn release_all(&self) -> u32 {
        unimplemented!("no big lock")
    }

    /// Does what [`BigLock::acquire_count`] does.
    unsafe fn acquire_count(&self, _: u32) {
        unimplemented!("no big lock")
    }
}

/// Tells whether a context that was given up may go.
type Idle<P, L> = fn(&<L as RawLock<P>>::Ctx) -> bool;

/// Acquires, or fails for a reason of its own.
type OrFail<L> = fn(&L) -> bool;

/// A lock of a type.
pub(crate) struct Plain<P, L>(PhantomData<fn() -> (P, L)>);
/// One whose acquisition can be given up.
pub(crate) struct Timed<P, L: TimedLock<P>>(Idle<P, L>, Option<OrFail<L>>)
where
    P: Platform;
/// One that readers share.
pub(crate) struct Shared<P, L>(PhantomData<fn() -> (P, L)>);
/// One over a whole kernel.
pub(crate) struct Big<P, L>(PhantomData<fn() -> (P, L)>);

struct PlainInstance<P, L>(L, PhantomData<fn() -> P>);
struct TimedInstance<P: Platform, L: TimedLock<P>>(L, Idle<P, L>, Option<OrFail<L>>);
struct SharedInstance<P, L>(L, PhantomData<fn() -> P>);
struct BigInstance<P, L>(L, PhantomData<fn() -> P>);

fn of<C: 'static>(context: &Context) -> &C {
    context.downcast_ref().expect("a context of this lock")
}

/// The part of [`Instance`] that every lock has.
macro_rules! raw_lock {
    ($lock:ty, $platform:ty) => {
        fn memory(&self) -> (usize, usize) {
            (std::ptr::from_ref(&self.0).addr(), size_of_val(&self.0))
        }

        fn context(&self) -> (Context, usize, usize) {
            type Ctx<P, L> = <L as RawLock<P>>::Ctx;
            let context = Box::new(Ctx::<$platform, $lock>::default());
            let address = std::ptr::from_ref(&*context).addr();
            (context, address, size_of::<Ctx<$platform, $lock>>())
        }

        unsafe fn lock(&self, context: &Context) {
            // SAFETY: the caller's promise is the same.
            unsafe { RawLock::<$platform>::lock(&self.0, of(context)) }
        }

        unsafe fn try_lock(&self, context: &Context) -> bool {
            // SAFETY: the caller's promise is the same.
            unsafe { RawLock::<$platform>::try_lock(&self.0, of(context)) }
        }

        unsafe fn unlock(&self, context: &Context) {
            // SAFETY: the caller's promise is the same.
            unsafe { RawLock::<$platform>::unlock(&self.0, of(context)) }
        }

        fn is_locked(&self) -> Option<bool> {
            RawLock::<$platform>::is_locked(&self.0)
        }
    };
}

/// Says what a lock's type says of it.
macro_rules! subject {
    ($lock:ty, $platform:ty, $instance:expr) => {
        fn info(&self) -> Info {
            <$lock as RawLock<$platform>>::INFO
        }

        fn counts(&self) -> bool {
            <$lock as RawLock<$platform>>::COUNTS
        }

        fn is_of_graphs(&self) -> bool {
            TypeId::of::<$platform>() == TypeId::of::<Graphs>()
        }

        fn make(&self, about_to_wrap: bool) -> Box<dyn Instance> {
            let lock = if about_to_wrap {
                <$lock as RawLock<$platform>>::about_to_wrap()
            } else {
                <$lock>::default()
            };
            Box::new($instance(lock))
        }
    };
}

impl<P: Platform, L: RawLock<P>> Subject for Plain<P, L> {
    subject!(L, P, |lock| PlainInstance::<P, L>(lock, PhantomData));
}

impl<P: Platform, L: RawLock<P>> Instance for PlainInstance<P, L> {
    raw_lock!(L, P);
}

impl<P: Platform, L: TimedLock<P>> Subject for Timed<P, L> {
    fn info(&self) -> Info {
        L::INFO
    }

    fn is_of_graphs(&self) -> bool {
        TypeId::of::<P>() == TypeId::of::<Graphs>()
    }

    fn make(&self, _: bool) -> Box<dyn Instance> {
        Box::new(TimedInstance::<P, L>(L::default(), self.0, self.1))
    }
}

impl<P: Platform, L: TimedLock<P>> Instance for TimedInstance<P, L> {
    raw_lock!(L, P);

    unsafe fn lock_until(&self, context: &Context, deadline: u64) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { TimedLock::lock_until(&self.0, of(context), deadline) }
    }

    unsafe fn lock_or_fail(&self) -> bool {
        self.2.expect("a lock that fails")(&self.0)
    }

    fn is_idle(&self, context: &Context) -> bool {
        (self.1)(of(context))
    }
}

impl<P: Platform, L: RawLock<P> + RawRwLockDowngrade> Subject for Shared<P, L> {
    subject!(L, P, |lock| SharedInstance::<P, L>(lock, PhantomData));
}

impl<P: Platform, L: RawLock<P> + RawRwLockDowngrade> Instance for SharedInstance<P, L> {
    raw_lock!(L, P);

    unsafe fn read(&self, _: &Context) {
        self.0.lock_shared();
    }

    unsafe fn try_read(&self, _: &Context) -> bool {
        self.0.try_lock_shared()
    }

    unsafe fn read_unlock(&self, _: &Context) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock_shared() }
    }

    unsafe fn downgrade(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.downgrade() }
    }
}

impl<P: Platform, L: BigLock<P>> Subject for Big<P, L> {
    subject!(L, P, |lock| BigInstance::<P, L>(lock, PhantomData));
}

impl<P: Platform, L: BigLock<P>> Instance for BigInstance<P, L> {
    raw_lock!(L, P);

    unsafe fn init(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.init() }
    }

    fn held(&self) -> bool {
        self.0.held()
    }

    unsafe fn release_all(&self) -> u32 {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.release_all() }
    }

    unsafe fn acquire_count(&self, depth: u32) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.acquire_count(depth) }
    }
}

/// Returns the lock type `L` as a value.
pub fn subject<P: Platform, L: RawLock<P>>() -> std::sync::Arc<dyn Subject> {
    std::sync::Arc::new(Plain::<P, L>(PhantomData))
}

/// Returns a lock whose acquisition can be given up; `idle` says whether a context
/// that was may go.
pub(crate) fn timed<P: Platform, L: TimedLock<P>>(idle: Idle<P, L>) -> std::sync::Arc<dyn Subject> {
    std::sync::Arc::new(Timed::<P, L>(idle, None))
}

/// Makes the same without contexts; `or_fail` acquires it, or fails for a reason of its own.
pub(crate) fn failing<P: Platform, L: TimedLock<P>>(
    or_fail: OrFail<L>,
) -> std::sync::Arc<dyn Subject> {
    std::sync::Arc::new(Timed::<P, L>(|_| true, Some(or_fail)))
}

/// Returns a lock that readers share.
pub(crate) fn shared<P: Platform, L: RawLock<P> + RawRwLockDowngrade>()
-> std::sync::Arc<dyn Subject> {
    std::sync::Arc::new(Shared::<P, L>(PhantomData))
}

/// Returns a big lock.
pub(crate) fn big<P: Platform, L: BigLock<P>>() -> std::sync::Arc<dyn Subject> {
    std::sync::Arc::new(Big::<P, L>(PhantomData))
}
