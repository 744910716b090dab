//! Holders and waiters that are stopped at the worst moments: a signal handler
//! that sleeps, on real threads, for every lock.
//!
//! There are two ways. A separate thread sends the signal at random times to
//! the shipped code: between any two instructions. And each thread sends it to
//! itself after some of its own writes to a lock, so that it is certain to be
//! stopped inside the doorway, between the swap of the tail and the link, and
//! between the two stores of an unlock.
//!
//! A lock may lose time by that. It must lose no update, and must still
//! terminate.
#![cfg(all(target_os = "linux", not(miri)))]

mod common;

use common::yielding::{Tormented, Yielding};
use common::{Sendable, Shared};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{Fairness, NativePlatform, Platform, RawLock};
use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The threads: more than the CPUs of a small machine, so that some thread always waits
/// behind one that does not run.
const THREADS: usize = 4;

/// Says how long each lock is sent signals, and the most acquisitions of a thread.
const TORMENT: Duration = Duration::from_millis(40);
const TURNS: u64 = 20_000;

/// Says how long a signal stops its thread.
static STOPPED: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 50_000,
};

static STOPS: AtomicU64 = AtomicU64::new(0);

extern "C" fn stop(_: libc::c_int) {
    STOPS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: both are async-signal-safe, `errno` stays what the interrupted
    // code left in it, and the time that is left is not asked for.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::nanosleep(&raw const STOPPED, std::ptr::null_mut());
        *errno = before;
    }
}

/// Signal handlers belong to the process: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn install() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero is a valid `sigaction`; the handler is async-signal-safe.
    // SA_RESTART: the locks are tested, not the handling of EINTR.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = stop as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, action, std::ptr::null_mut()),
            0
        );
    }
}

/// Runs `threads` threads on one lock and counts; with `pause`, a separate
/// thread sends each a signal at random times so far apart.
fn run<P: Platform, L: RawLock<P>>(threads: usize, pause: Option<Duration>) {
    let mut shared = Box::new(Shared::new(L::default()));
    let contexts: Vec<Sendable<L::Ctx>> =
        (0..threads).map(|_| Sendable(L::Ctx::default())).collect();
    let ids: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    // The sender starts with them, so that it knows their numbers.
    let start = Barrier::new(threads + 1);
    let made: u64 = std::thread::scope(|scope| {
        let handles: Vec<_> = contexts
            .iter()
            .zip(&ids)
            .map(|(ctx, id)| {
                let (shared, start) = (&shared, &start);
                scope.spawn(move || {
                    let Sendable(ctx) = ctx;
                    // SAFETY: no precondition.
                    id.store(unsafe { libc::pthread_self() }, Ordering::Relaxed);
                    start.wait();
                    let deadline = Instant::now() + TORMENT;
                    // SAFETY: the context is this thread's own; lock and
                    // contexts are dropped after all threads have ended.
                    unsafe { shared.use_lock(ctx, TURNS, deadline) }
                })
            })
            .collect();
        start.wait();
        if let Some(pause) = pause {
            let mut random = fastrand::Rng::with_seed(1);
            while handles.iter().any(|thread| !thread.is_finished()) {
                let victim = ids[random.usize(..threads)].load(Ordering::Relaxed);
                // SAFETY: the thread has not been joined, so its id is valid,
                // even if it has ended.
                unsafe { libc::pthread_kill(victim, libc::SIGUSR1) };
                std::thread::sleep(pause.mul_f64(2.0 * random.f64()));
            }
        }
        handles
            .into_iter()
            .map(|thread| thread.join().expect("a lock that excludes"))
            .sum()
    });
    assert_eq!(shared.counted(), made, "{}: lost updates", L::INFO.name);
    assert!(
        made >= threads as u64,
        "{}: some never got in",
        L::INFO.name
    );
}

/// The shipped code, stopped between any two of its instructions.
struct AtAnyInstruction;

impl Visitor<NativePlatform> for AtAnyInstruction {
    type Output = ();

    fn visit<L: RawLock<NativePlatform>>(self) {
        // A fair lock with more threads than CPUs waits at each handoff for a
        // thread that does not run; a stopped thread has that effect anyway.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if L::INFO.fairness == Fairness::Fifo {
            cpus.clamp(2, THREADS)
        } else {
            THREADS
        };
        run::<NativePlatform, L>(threads, Some(Duration::from_micros(100)));
    }
}

/// Tests the same algorithms, stopped right after a write of their own.
struct BetweenSteps;

impl Visitor<Yielding> for BetweenSteps {
    type Output = ();

    fn visit<L: RawLock<Yielding>>(self) {
        run::<Yielding, L>(THREADS, None);
    }
}

#[test]
fn every_lock_survives_stops_at_any_instruction() {
    let _alone = ONE_AT_A_TIME.lock();
    install();
    let before = STOPS.load(Ordering::Relaxed);
    for entry in catalogue::ALL {
        catalogue::visit(entry.info.name, AtAnyInstruction).expect("a lock");
    }
    assert!(STOPS.load(Ordering::Relaxed) > before, "nobody was stopped");
}

#[test]
fn every_lock_survives_stops_between_its_steps() {
    let _alone = ONE_AT_A_TIME.lock();
    install();
    for entry in catalogue::ALL {
        let before = STOPS.load(Ordering::Relaxed);
        let _torment = Tormented::begin(libc::SIGUSR1);
        // On a busy machine the threads may be done before the first signal.
        while STOPS.load(Ordering::Relaxed) == before {
            catalogue::visit(entry.info.name, BetweenSteps).expect("a lock");
        }
    }
}
