//! `Mutex` and `RwLock` of the standard library, recorded: the names and results of
//! `std::sync`, poison included.

use crate::hooks::Lock;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// A mutex of the standard library.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// A lock for readers and writers of the standard library.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

/// A guard of the standard library, whose end is recorded.
pub struct Guard<G> {
    lock: Lock,
    guard: ManuallyDrop<G>,
}

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = Guard<sync::MutexGuard<'a, T>>;
/// The guard of a reader of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = Guard<sync::RwLockReadGuard<'a, T>>;
/// The guard of a writer of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = Guard<sync::RwLockWriteGuard<'a, T>>;

impl<G> Drop for Guard<G> {
    fn drop(&mut self) {
        let guard = &mut self.guard;
        // SAFETY: nothing uses the guard after this.
        self.lock.release(|| unsafe { ManuallyDrop::drop(guard) });
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G: fmt::Debug> fmt::Debug for Guard<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

impl<G> Guard<G> {
    fn of(lock: Lock, guard: G) -> Self {
        Self {
            lock,
            guard: ManuallyDrop::new(guard),
        }
    }
}

/// Acquires the lock. It tries that first, because the recorder wants to know whether
/// it had to wait.
fn acquire<G>(
    lock: Lock,
    shared: bool,
    once: impl FnOnce() -> TryLockResult<G>,
    waits: impl FnOnce() -> LockResult<G>,
) -> LockResult<Guard<G>> {
    let found = std::cell::Cell::new(None);
    let keep = |result: LockResult<G>| {
        found.set(Some(result));
        true
    };
    lock.acquire(
        shared,
        || match once() {
            Ok(guard) => keep(Ok(guard)),
            Err(TryLockError::Poisoned(poisoned)) => keep(Err(poisoned)),
            Err(TryLockError::WouldBlock) => false,
        },
        || keep(waits()),
    );
    match found.into_inner() {
        Some(Ok(guard)) => Ok(Guard::of(lock, guard)),
        Some(Err(poisoned)) => Err(PoisonError::new(Guard::of(lock, poisoned.into_inner()))),
        None => unreachable!("one of the two has kept its result"),
    }
}

fn attempt<G>(
    lock: Lock,
    shared: bool,
    once: impl FnOnce() -> TryLockResult<G>,
) -> TryLockResult<Guard<G>> {
    let result = once();
    let got = !matches!(result, Err(TryLockError::WouldBlock));
    lock.attempt(shared, || got);
    match result {
        Ok(guard) => Ok(Guard::of(lock, guard)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(poisoned)) => {
            let guard = Guard::of(lock, poisoned.into_inner());
            Err(TryLockError::Poisoned(PoisonError::new(guard)))
        }
    }
}

impl<T> Mutex<T> {
    /// Makes a free mutex around a value.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`PoisonError`], with the value, if a thread panicked with the mutex.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the mutex, and waits for it if another thread has it.
    ///
    /// # Errors
    /// [`PoisonError`], with the guard, if a thread panicked with the mutex.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        acquire(
            Lock::at(self),
            false,
            || self.0.try_lock(),
            || self.0.lock(),
        )
    }

    /// Acquires the mutex if no thread has it.
    ///
    /// # Errors
    /// [`TryLockError`] if a thread has it, or panicked with it.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        attempt(Lock::at(self), false, || self.0.try_lock())
    }

    /// Returns whether a thread panicked with the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// Returns the value of a mutex that nobody else can have.
    ///
    /// # Errors
    /// [`PoisonError`], with the value, if a thread panicked with the mutex.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

impl<T> RwLock<T> {
    /// Makes a free lock around a value.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`PoisonError`], with the value, if a writer panicked.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Acquires the lock to read.
    ///
    /// # Errors
    /// [`PoisonError`], with the guard, if a writer panicked.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        acquire(Lock::at(self), true, || self.0.try_read(), || self.0.read())
    }

    /// Acquires the lock to write.
    ///
    /// # Errors
    /// [`PoisonError`], with the guard, if a writer panicked.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        acquire(
            Lock::at(self),
            false,
            || self.0.try_write(),
            || self.0.write(),
        )
    }

    /// Acquires the lock to read if no writer has it.
    ///
    /// # Errors
    /// [`TryLockError`] if a writer has it, or panicked.
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        attempt(Lock::at(self), true, || self.0.try_read())
    }

    /// Acquires the lock to write if no thread has it.
    ///
    /// # Errors
    /// [`TryLockError`] if a thread has it, or a writer panicked.
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        attempt(Lock::at(self), false, || self.0.try_write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_give_the_lock_back_and_poison_stays() {
        let mutex = Mutex::new(1);
        let held = mutex.lock().unwrap();
        assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        *mutex.try_lock().unwrap() += 1;
        assert_eq!(*mutex.lock().unwrap(), 2);
        let panics = std::panic::catch_unwind(|| {
            let _held = mutex.lock().unwrap();
            panic!("with the mutex");
        });
        assert!(panics.is_err() && mutex.is_poisoned());
        assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
        assert_eq!(*mutex.lock().unwrap_or_else(PoisonError::into_inner), 2);
    }

    #[test]
    fn readers_share_and_a_writer_does_not() {
        let lock = RwLock::new(1);
        let (one, two) = (lock.read().unwrap(), lock.try_read().unwrap());
        assert_eq!(*one + *two, 2);
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        drop((one, two));
        *lock.write().unwrap() = 3;
        assert_eq!(lock.into_inner().unwrap(), 3);
    }
}
