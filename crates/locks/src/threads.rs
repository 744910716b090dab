//! The host of ordinary programs: each thread is a CPU.
//!
//! A thread gets the lowest free number when it first asks and gives it back
//! when it ends, so a program may start any number of threads one after the
//! other. At most [`crate::MAX_CPUS`] live at once; the next one that uses a
//! lock that needs numbers aborts the process with a message. Nothing here
//! allocates.

use crate::native::{Host, Native};
use crate::qnode::{MAX_CPUS, QueueNodes};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::{eprintln, thread_local};

/// Threads of this process (or, with [`Threads::assume_cpu`], of several
/// that share memory).
pub struct Threads;

const NO_CPU: usize = usize::MAX;
const WORDS: usize = MAX_CPUS.div_ceil(64);

/// Bit set: the number is taken.
static TAKEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static NODES: [QueueNodes<Native<Threads>>; MAX_CPUS] = [const { QueueNodes::NEW }; MAX_CPUS];
static VIRTUALIZED: AtomicBool = AtomicBool::new(false);

/// Gives the number back when its thread ends. `NO_CPU`: none was taken.
struct Lease(Cell<usize>);

impl Drop for Lease {
    fn drop(&mut self) {
        let cpu = self.0.get();
        if cpu < MAX_CPUS {
            if CPU.get() == cpu {
                CPU.set(NO_CPU);
            }
            // L2: pairs with L1: our last use of the number's queue nodes
            // comes before the next owner's first.
            TAKEN[cpu / 64].fetch_and(!(1 << (cpu % 64)), Ordering::Release);
        }
    }
}

thread_local! {
    // Without a destructor, so that it can be read at any point of a
    // thread's end.
    static CPU: Cell<usize> = const { Cell::new(NO_CPU) };
    static NODE: Cell<usize> = const { Cell::new(usize::MAX) };
    static LEASE: Lease = const { Lease(Cell::new(NO_CPU)) };
}

impl Threads {
    /// Makes this thread CPU `cpu` from now on, for processes that share a
    /// lock in memory and number themselves. Such a number is not given
    /// back.
    ///
    /// # Safety
    /// No other thread that uses one lock with this one has the number, in
    /// this process or another: neither assumed nor taken by itself. (A number
    /// that a thread of this process assumes is given to no other later on.)
    /// The calling thread holds and awaits no lock.
    ///
    /// # Panics
    /// If `cpu` is [`MAX_CPUS`] or more.
    pub unsafe fn assume_cpu(cpu: usize) {
        assert!(cpu < MAX_CPUS, "cpu {cpu} is not below {MAX_CPUS}");
        TAKEN[cpu / 64].fetch_or(1 << (cpu % 64), Ordering::Relaxed);
        CPU.set(cpu);
    }

    /// Tells every lock whether this is a virtual machine whose hypervisor
    /// does not help waiting CPUs.
    pub fn set_virtualized(yes: bool) {
        VIRTUALIZED.store(yes, Ordering::Relaxed);
    }

    #[cold]
    fn take_number() -> usize {
        for (word, taken) in TAKEN.iter().enumerate() {
            loop {
                let free = taken.load(Ordering::Relaxed).trailing_ones() as usize;
                let cpu = word * 64 + free;
                if free == 64 || cpu >= MAX_CPUS {
                    break;
                }
                // L1: pairs with L2.
                if taken.fetch_or(1 << free, Ordering::Acquire) & (1 << free) == 0 {
                    CPU.set(cpu);
                    // A thread past its destructors keeps the number.
                    let _ = LEASE.try_with(|lease| lease.0.set(cpu));
                    return cpu;
                }
            }
        }
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
            Self::take_number()
        } else {
            cpu
        }
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
        &NODES[cpu]
    }

    fn node() -> usize {
        // Asked once a thread: a thread that locks much is pinned or stays.
        let known = NODE.get();
        if known != usize::MAX {
            return known;
        }
        let node = numa_node();
        NODE.set(node);
        node
    }

    fn now() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is ours and of the type that the call writes.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[cfg(target_os = "linux")]
    fn wait(word: &AtomicU32, expected: u32) {
        // Not FUTEX_PRIVATE: the lock may be shared with other processes.
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
    fn wake(word: &AtomicU32) {
        // SAFETY: only the address of the word is used.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(_: &AtomicU32, _: u32) {
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
        // More than there are numbers; Miri would take an hour.
        let threads = if cfg!(miri) { 4 * FEW } else { MAX_CPUS + 1 };
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
                // SAFETY: no other test assumes it, and none uses so many.
                unsafe { Threads::assume_cpu(MAX_CPUS - 1) };
                assert_eq!(Threads::cpu(), MAX_CPUS - 1);
                taken
            });
            assert!(taken < FEW, "number {taken} although few threads live");
        }
        let assumed = MAX_CPUS - 1;
        let bit = TAKEN[assumed / 64].load(Ordering::Relaxed) >> (assumed % 64) & 1;
        assert_eq!(bit, 1, "no thread is given an assumed number");
    }
}
