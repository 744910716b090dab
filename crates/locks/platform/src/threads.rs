//! The host of ordinary programs: each thread is a CPU.
//!
//! A thread gets the lowest free number when it first needs one and gives it
//! back when it ends, so a program may start any number of threads one after
//! the other. At most [`MAX_CPUS`] have numbers at once. A thread beyond
//! that waits for a `QSpinlock` without a queue node, and for a lock
//! that cannot do without a number (the big locks) ends the process with a
//! message. Nothing here allocates.

use crate::held_locks::HeldLocks;
use crate::native::{AtomicU32 as Word, Host, Native};
use crate::numbers::Numbers;
use crate::qnode::{MAX_CPUS, QueueNodes};
use crate::sleepers::{Sleepers, place_of};
use crate::visible_reader::VisibleReader;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{eprintln, thread_local};

/// Threads of this process (or, with [`Threads::assume_cpu`], of several
/// that share memory).
pub struct Threads;

const NO_CPU: usize = usize::MAX;
const WORDS: usize = MAX_CPUS.div_ceil(32);

static NUMBERS: Numbers<Native<Threads>, WORDS> = Numbers::new();
static NODES: [QueueNodes<Native<Threads>>; MAX_CPUS] = [const { QueueNodes::NEW }; MAX_CPUS];
/// The entries of the first 512 threads; the others read without being visible.
static READERS: [VisibleReader<Native<Threads>>; 512] = [const { VisibleReader::NONE }; 512];
/// The tables of the first 512 threads; with the others no deadlock is detected.
static HELD: [HeldLocks<Native<Threads>>; 512] = [const { HeldLocks::NONE }; 512];
/// The places in which threads sleep by address: as many places as a parking lot has.
static SLEEPERS: [Sleepers<Native<Threads>>; 256] = [const { Sleepers::NONE }; 256];
static VIRTUALIZED: AtomicBool = AtomicBool::new(false);

thread_local! {
    // Without destructors, so that they can be read at any point of a
    // thread's end.
    static CPU: Cell<usize> = const { Cell::new(NO_CPU) };
    static NODE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Gives back the number that this thread took, when it ends.
fn give_back(cpu: usize) {
    if CPU.get() == cpu {
        CPU.set(NO_CPU);
    }
    NUMBERS.give_back(cpu);
}

/// Arranges for a number to be given back when this thread ends.
///
/// It uses a pthread key and no thread-local variable with a destructor: the
/// destructor of a key runs after those, and runs once more if a
/// later one asks for a number again. Where no key is left, the number
/// is never given back.
#[cfg(unix)]
fn give_back_at_end(cpu: usize) {
    use core::ffi::c_void;
    use core::ptr::without_provenance_mut;

    /// The key + 1; 0 if it has not been made yet. It is not behind a lock,
    /// because a signal handler may request the number that its thread was just
    /// requesting.
    static KEY: AtomicU32 = AtomicU32::new(0);

    /// Destroys the key's value. `number` is the number + 1, because destructors
    /// are not called for null.
    unsafe extern "C" fn end(number: *mut c_void) {
        give_back(number.addr() - 1);
    }

    let mut key = KEY.load(Ordering::Relaxed);
    if key == 0 {
        let mut made: libc::pthread_key_t = 0;
        // SAFETY: `made` is ours; `end` takes what is stored below.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(end)) } != 0 {
            return;
        }
        let ours = made as u32 + 1;
        // Relaxed: a key is a number, nothing lies behind it.
        match KEY.compare_exchange(0, ours, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => key = ours,
            Err(theirs) => {
                // SAFETY: our own key, which nobody else has seen.
                unsafe { libc::pthread_key_delete(made) };
                key = theirs;
            }
        }
    }
    // SAFETY: a key that was made above and is never deleted. If there is no
    // memory for the value, the number is not given back.
    unsafe { libc::pthread_setspecific((key - 1) as _, without_provenance_mut::<c_void>(cpu + 1)) };
}

/// Does the same. A number taken by a destructor that runs after this one's is
/// never given back.
#[cfg(not(unix))]
fn give_back_at_end(cpu: usize) {
    struct Lease(Cell<usize>);

    impl Drop for Lease {
        fn drop(&mut self) {
            if self.0.get() != NO_CPU {
                give_back(self.0.get());
            }
        }
    }

    thread_local! {
        static LEASE: Lease = const { Lease(Cell::new(NO_CPU)) };
    }
    let _ = LEASE.try_with(|lease| lease.0.set(cpu));
}

impl Threads {
    /// Makes this thread CPU `cpu` from now on, for processes that share a
    /// lock in memory and number themselves. Such a number is not given
    /// back.
    ///
    /// # Safety
    /// No other thread that uses a lock together with this one has the number,
    /// in this process or another, whether assumed or taken. (A number that a
    /// thread of this process assumes is later given to no other thread.)
    /// The calling thread holds and awaits no lock.
    ///
    /// # Panics
    /// If `cpu` is [`MAX_CPUS`] or more.
    pub unsafe fn assume_cpu(cpu: usize) {
        assert!(cpu < MAX_CPUS, "cpu {cpu} is not below {MAX_CPUS}");
        NUMBERS.assume(cpu);
        CPU.set(cpu);
    }

    /// Sets for every lock whether this is a virtual machine whose hypervisor
    /// does not help waiting CPUs.
    pub fn set_virtualized(yes: bool) {
        VIRTUALIZED.store(yes, Ordering::Relaxed);
    }

    /// Takes a number for this thread, unless all are taken.
    #[cold]
    fn take_number() -> Option<usize> {
        let cpu = NUMBERS.take(MAX_CPUS)?;
        CPU.set(cpu);
        give_back_at_end(cpu);
        Some(cpu)
    }

    #[cold]
    fn no_number_left() -> ! {
        eprintln!(
            "locklab: more than {MAX_CPUS} threads use locks at once; use a lock that needs no thread numbers"
        );
        std::process::abort()
    }
}

// SAFETY: a number is taken by one thread at a time, by an atomic exchange of
// its bit, or is the caller's own by the contract of `assume_cpu`; each has
// its entry of a static array.
unsafe impl Host for Threads {
    #[inline(always)]
    fn cpu() -> usize {
        let cpu = CPU.get();
        if cpu == NO_CPU {
            Self::take_number().unwrap_or_else(|| Self::no_number_left())
        } else {
            cpu
        }
    }

    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        let cpu = CPU.get();
        if cpu == NO_CPU {
            Self::take_number()
        } else {
            Some(cpu)
        }
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
        &NODES[cpu]
    }

    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Native<Self>>] {
        &READERS
    }

    #[inline(always)]
    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Native<Self>>> {
        HELD.get(cpu)
    }

    fn node() -> usize {
        // It is asked once a thread: a thread that locks much is pinned or stays.
        let known = NODE.get();
        if known != usize::MAX {
            return known;
        }
        let node = numa_node();
        NODE.set(node);
        node
    }

    #[cfg(unix)]
    fn now() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is ours and of the type that the call writes.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[cfg(not(unix))]
    fn now() -> u64 {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START
            .get_or_init(std::time::Instant::now)
            .elapsed()
            .as_nanos() as u64
    }

    #[cfg(target_os = "linux")]
    fn wait(word: &Word, expected: u32) {
        // It is not FUTEX_PRIVATE: the lock may be shared with other processes.
        // SAFETY: the word outlives the call; any result is a legal wake-up.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT,
                expected,
                core::ptr::null::<libc::timespec>(),
            );
        }
    }

    #[cfg(target_os = "linux")]
    fn wake(word: &Word) {
        // SAFETY: only the address of the word is used.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1);
        }
    }

    #[cfg(target_os = "linux")]
    fn wake_if_any(word: &Word) -> bool {
        // SAFETY: as `wake`.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) > 0 }
    }

    #[cfg(target_os = "linux")]
    fn wake_all(word: &Word) {
        // SAFETY: as `wake`.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
        }
    }

    // `wait` does not sleep.
    #[cfg(not(target_os = "linux"))]
    fn wake_all(_: &Word) {}

    fn yield_cpu() {
        std::thread::yield_now();
    }

    #[inline]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Native<Self>>> {
        SLEEPERS.get(place_of(address, SLEEPERS.len()))
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(_: &Word, _: u32) {
        std::thread::yield_now();
    }

    fn virtualized() -> bool {
        VIRTUALIZED.load(Ordering::Relaxed)
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn numa_node() -> usize {
    let mut node: libc::c_uint = 0;
    // SAFETY: getcpu writes one unsigned int to `node`; null is allowed for
    // the other two.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            core::ptr::null_mut::<libc::c_uint>(),
            &raw mut node,
            core::ptr::null_mut::<libc::c_void>(),
        )
    };
    if failed == 0 { node as usize } else { 0 }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn numa_node() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests' threads take numbers too, so none is expected exactly.
    const FEW: usize = 64;

    fn on_a_thread(f: fn() -> usize) -> usize {
        std::thread::Builder::new()
            .stack_size(16 << 10)
            .spawn(f)
            .unwrap()
            .join()
            .unwrap()
    }

    #[test]
    fn threads_one_after_another_reuse_numbers() {
        // More than there are numbers; Miri would take an hour, and an emulated
        // processor minutes.
        let threads = if cfg!(any(miri, not(target_arch = "x86_64"))) {
            4 * FEW
        } else {
            MAX_CPUS + 1
        };
        for _ in 0..threads {
            let cpu = on_a_thread(Threads::cpu);
            assert!(cpu < FEW, "number {cpu} although few threads live");
        }
    }

    #[test]
    fn an_assumed_number_stays_and_a_taken_one_goes_back() {
        for _ in 0..2 * FEW {
            let taken = on_a_thread(|| {
                let taken = Threads::cpu();
                // SAFETY: no other test assumes it, and none uses so many at once.
                unsafe { Threads::assume_cpu(MAX_CPUS - 1) };
                assert_eq!(Threads::cpu(), MAX_CPUS - 1);
                taken
            });
            assert!(taken < FEW, "number {taken} although few threads live");
        }
        let assumed = MAX_CPUS - 1;
        let is_taken = NUMBERS.is_taken(assumed);
        assert!(is_taken, "no thread is given an assumed number");
    }

    /// A variable whose destructor uses a lock that needs a number, when the
    /// thread's own number may have gone back already.
    struct Late;

    impl Drop for Late {
        fn drop(&mut self) {
            assert!(Threads::cpu() < FEW, "a number for a destructor");
        }
    }

    #[test]
    fn a_number_taken_by_a_late_destructor_goes_back_too() {
        thread_local! {
            static FIRST: Late = const { Late };
            static LAST: Late = const { Late };
        }
        for _ in 0..2 * FEW {
            let taken = on_a_thread(|| {
                // One destructor is registered before the number's own would
                // be, one after: they run in either order.
                FIRST.with(|_| ());
                let taken = Threads::cpu();
                LAST.with(|_| ());
                taken
            });
            assert!(taken < FEW, "number {taken} although few threads live");
        }
    }
}
