//! A Rust program that uses pthread mutexes: threads that count together,
//! some of which panic while they hold the lock.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;

#[repr(C, align(8))]
struct Mutex(UnsafeCell<[u8; 64]>);

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut [u8; 64]) -> c_int;
    fn pthread_mutex_trylock(mutex: *mut [u8; 64]) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut [u8; 64]) -> c_int;
}

struct Counter {
    mutex: Mutex,
    count: UnsafeCell<u64>,
}

// SAFETY: the count is touched under the mutex.
unsafe impl Sync for Counter {}
unsafe impl Send for Counter {}

struct Guard<'a>(&'a Counter);

impl Counter {
    fn lock(&self) -> Guard<'_> {
        // SAFETY: a mutex of zeros, which is a valid initial state.
        assert_eq!(unsafe { pthread_mutex_lock(self.mutex.0.get()) }, 0);
        Guard(self)
    }
}

impl Guard<'_> {
    fn add(&mut self) {
        // SAFETY: we hold the mutex.
        unsafe { *self.0.count.get() += 1 };
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: we hold the mutex.
        assert_eq!(unsafe { pthread_mutex_unlock(self.0.mutex.0.get()) }, 0);
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let counter = Arc::new(Counter {
        mutex: Mutex(UnsafeCell::new([0; 64])),
        count: UnsafeCell::new(0),
    });
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                for i in 0..2000 {
                    let mut guard = counter.lock();
                    guard.add();
                    if t == 0 && i == 1999 {
                        panic!("while holding");
                    }
                }
            })
        })
        .collect();
    let panics = threads.into_iter().filter_map(|t| t.join().err()).count();
    assert_eq!(panics, 1);
    let guard = counter.lock();
    // SAFETY: as above.
    assert_ne!(unsafe { pthread_mutex_trylock(counter.mutex.0.get()) }, 0);
    // SAFETY: we hold the mutex.
    println!("{}", unsafe { *guard.0.count.get() });
}
