//! Two threads on a lock, and how far apart their CPUs are.

use locklab_peers::{Contestant, Counts};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Length of one measurement with contention.
const CONTENDED: Duration = Duration::from_millis(1);

/// Nails this thread to the `index`-th CPU that the process may use.
#[cfg(target_os = "linux")]
pub(crate) fn pin(index: usize) {
    // SAFETY: a zeroed set is an empty one; the calls read and write it.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
            return;
        }
        let cpus = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        if let Some(cpu) = cpus.clone().nth(index).or(cpus.clone().next()) {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut one);
            libc::sched_setaffinity(0, size, &raw const one);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_: usize) {}

/// Returns how often this thread was taken off its CPU against its will.
#[cfg(target_os = "linux")]
pub(crate) fn preemptions() -> libc::c_long {
    // SAFETY: a zeroed rusage is a valid one, and the call writes it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn preemptions() -> i64 {
    0
}

/// Counts what two threads did with a lock, each a second.
#[derive(Clone, Copy)]
pub(crate) struct Contended {
    pub(crate) operations: f64,
    /// Twice the operations of the slower thread. One that had none counts as if it
    /// had had one, so that there is a ratio; in a millisecond that is next to none.
    pub(crate) at_equal_share: f64,
    /// Changes of owner.
    pub(crate) handoffs: f64,
}

impl Contended {
    /// Returns the share of acquisitions that follow one of the same thread.
    pub(crate) fn kept(&self) -> f64 {
        1.0 - self.handoffs / self.operations
    }
}

/// Runs two threads on a lock. Returns `None` if one of them was preempted on the way:
/// then the other had the lock to itself, or waited.
pub(crate) fn contend(contestant: &dyn Contestant) -> Option<Contended> {
    let mut counts = Counts::default();
    let stop = AtomicBool::new(false);
    let arrived = AtomicU32::new(0);
    let arrive = || {
        arrived.fetch_add(1, Ordering::AcqRel);
        // They spin and do not sleep: both run when it begins.
        while arrived.load(Ordering::Acquire) < 2 {
            core::hint::spin_loop();
        }
    };
    let work = |me| {
        pin(me as usize);
        arrive();
        let before = preemptions();
        let begin = Instant::now();
        let pairs = contestant.contended(me, &counts, &stop);
        (pairs, begin.elapsed().as_secs_f64(), preemptions() - before)
    };
    let work = &work;
    let [a, b] = std::thread::scope(|scope| {
        let threads = [0, 1].map(|me| scope.spawn(move || work(me)));
        // Once: each waking may take one of them off its CPU.
        std::thread::sleep(CONTENDED);
        stop.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().unwrap())
    });
    let seconds = f64::midpoint(a.1, b.1);
    let late = seconds < CONTENDED.as_secs_f64() / 2.0;
    // On a machine of two CPUs this thread takes one of them to end it all.
    (!late && a.2 + b.2 <= 1).then(|| Contended {
        operations: (a.0 + b.0) as f64 / seconds,
        at_equal_share: 2.0 * a.0.min(b.0).max(1) as f64 / seconds,
        handoffs: counts.handoffs() as f64 / seconds,
    })
}

/// Returns the round trip of a cache line between the two CPUs, in ns: what
/// contended figures depend on most.
pub(crate) fn round_trip() -> f64 {
    const TRIPS: u32 = 2_000;
    #[repr(align(64))]
    struct Line(AtomicU32);
    let ball = &Line(AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for trip in 0..TRIPS {
                while ball.0.load(Ordering::Acquire) != 2 * trip + 1 {
                    core::hint::spin_loop();
                }
                ball.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        scope
            .spawn(|| {
                pin(0);
                let mut shortest = f64::INFINITY;
                for batch in 0..TRIPS / 100 {
                    let begin = Instant::now();
                    for trip in batch * 100..(batch + 1) * 100 {
                        ball.0.store(2 * trip + 1, Ordering::Release);
                        while ball.0.load(Ordering::Acquire) != 2 * trip + 2 {
                            core::hint::spin_loop();
                        }
                    }
                    shortest = shortest.min(begin.elapsed().as_nanos() as f64 / 100.0);
                }
                shortest
            })
            .join()
            .unwrap()
    })
}
