//! The host of the locks: the threads of an unmodified process.

use crate::process::die;
use crate::{chosen, futex, sleep, thread};
use core::sync::atomic::{AtomicU32, Ordering};
use locklab_locks::{
    Host, MAX_CPUS, Native, Parking, QueueNodes, Sleepers, VisibleReader, host::ParkingHost,
    host::place_of,
};

/// The threads of the program.
pub(crate) struct Process;

/// The platform on which waiters spin.
pub(crate) type Spinning = Native<Process>;
/// The platform on which waiters spin, then park.
pub(crate) type SpinThenPark = Parking<Process>;

static NODES: [QueueNodes<Spinning>; MAX_CPUS] = [const { QueueNodes::NEW }; MAX_CPUS];
static PARKING_NODES: [QueueNodes<SpinThenPark>; MAX_CPUS] = [const { QueueNodes::NEW }; MAX_CPUS];

/// Number of threads whose reads of a `bravo` lock are visible; the others
/// acquire the lock inside it.
const READERS: usize = 512;
static READING: [VisibleReader<Spinning>; READERS] = [const { VisibleReader::NONE }; READERS];
static PARKING_READING: [VisibleReader<SpinThenPark>; READERS] =
    [const { VisibleReader::NONE }; READERS];

/// Places where threads sleep by the address of their lock.
const PLACES: usize = 256;
static SLEEPERS: [Sleepers<Spinning>; PLACES] = [const { Sleepers::NONE }; PLACES];
static PARKING_SLEEPERS: [Sleepers<SpinThenPark>; PLACES] = [const { Sleepers::NONE }; PLACES];

/// Forgets who sleeps by the address of a lock, in a process that was just forked.
pub(crate) fn reset_sleepers() {
    for place in 0..PLACES {
        // SAFETY: statics of atomics are writable; nobody else is in this process.
        unsafe {
            (&raw const SLEEPERS[place])
                .cast_mut()
                .write(Sleepers::NONE);
            (&raw const PARKING_SLEEPERS[place])
                .cast_mut()
                .write(Sleepers::NONE);
        }
    }
}

/// Resets the queue nodes of a thread that no longer exists, and what it reads.
pub(crate) fn reset_nodes(cpu: usize) {
    if cpu < MAX_CPUS {
        // SAFETY: statics of atomics are writable; the process has just been
        // forked, and nobody else is in it.
        unsafe {
            (&raw const NODES[cpu]).cast_mut().write(QueueNodes::NEW);
            (&raw const PARKING_NODES[cpu])
                .cast_mut()
                .write(QueueNodes::NEW);
        }
    }
    reset_reader(cpu);
}

/// Resets what a thread reads by the table of visible readers.
pub(crate) fn reset_reader(cpu: usize) {
    if cpu < READERS {
        // SAFETY: as in `reset_nodes`.
        unsafe {
            (&raw const READING[cpu])
                .cast_mut()
                .write(VisibleReader::NONE);
            (&raw const PARKING_READING[cpu])
                .cast_mut()
                .write(VisibleReader::NONE);
        }
    }
}

// SAFETY: `thread` numbers the threads, and each number below the limit has its
// entry of a static array.
unsafe impl Host for Process {
    #[inline]
    fn cpu() -> usize {
        let cpu = thread::number();
        if cpu >= chosen::max_cpus() {
            die(&[
                "more threads live than the lock '",
                chosen::name(),
                "' can tell apart; choose one without that limit (locklab locks)",
            ]);
        }
        cpu
    }

    #[inline]
    fn try_cpu() -> Option<usize> {
        Some(thread::number()).filter(|&cpu| cpu < MAX_CPUS)
    }

    #[inline]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Spinning> {
        &NODES[cpu]
    }

    #[inline]
    fn visible_readers() -> &'static [VisibleReader<Spinning>] {
        &READING
    }

    fn node() -> usize {
        // It is determined once per thread: a thread that locks much is pinned or
        // stays.
        let node = &thread::header().node;
        let known = node.load(Ordering::Relaxed);
        if known != 0 {
            return known as usize - 1;
        }
        let mut found: libc::c_uint = 0;
        // SAFETY: getcpu writes one number to `found`; null is allowed for
        // the other two. If it fails, node 0 is as good.
        futex::keep_errno(|| unsafe {
            libc::syscall(
                libc::SYS_getcpu,
                core::ptr::null_mut::<libc::c_uint>(),
                &raw mut found,
                core::ptr::null_mut::<libc::c_void>(),
            );
        });
        node.store(found + 1, Ordering::Relaxed);
        found as usize
    }

    fn now() -> u64 {
        let now = futex::now(libc::CLOCK_MONOTONIC);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn wait(word: &AtomicU32, expected: u32) {
        sleep::sleep(word, expected);
    }

    fn wake(word: &AtomicU32) {
        futex::wake(core::ptr::from_ref(word), 1);
    }

    fn wake_if_any(word: &AtomicU32) -> bool {
        futex::wake(core::ptr::from_ref(word), 1) > 0
    }

    fn wake_all(word: &AtomicU32) {
        sleep::wake_all(word);
    }

    fn yield_cpu() {
        // SAFETY: it cannot fail.
        unsafe { libc::sched_yield() };
    }

    #[inline]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Spinning>> {
        SLEEPERS.get(place_of(address, PLACES))
    }

    fn virtualized() -> bool {
        chosen::virtualized()
    }
}

// SAFETY: membarrier fences every thread of the process or reports that it
// cannot; an array of its own for the nodes.
unsafe impl ParkingHost for Process {
    fn heavy_fence() -> bool {
        futex::keep_errno(futex::membarrier)
    }

    fn wake_all(word: &AtomicU32) {
        sleep::wake_all(word);
    }

    #[inline]
    fn parking_queue_nodes(cpu: usize) -> &'static QueueNodes<SpinThenPark> {
        &PARKING_NODES[cpu]
    }

    #[inline]
    fn parking_visible_readers() -> &'static [VisibleReader<SpinThenPark>] {
        &PARKING_READING
    }

    #[inline]
    fn parking_sleepers(address: usize) -> Option<&'static Sleepers<SpinThenPark>> {
        PARKING_SLEEPERS.get(place_of(address, PLACES))
    }
}
