//! A worker that replays its script of a recorded program: the others post to its
//! channels, and the slice ends while it waits.
//!
//! A worker that computes, sleeps or waits for long looks at the clock
//! meanwhile, and leaves as soon as the slice is over. It allocates nothing.

use crate::clockwork::Clockwork;
use crate::rendezvous::{wait, wake_all};
use crate::script::{Entry, Script};
use crate::work::steps;
use locklab_host::clock;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Describes what a worker replays, with whom.
#[derive(Clone, Copy)]
pub(crate) struct Replayer<'a> {
    pub(crate) script: &'a Script,
    /// Says where it begins.
    pub(crate) entry: Entry,
    pub(crate) clockwork: &'a Clockwork,
    pub(crate) channels: &'a [Channel],
}

/// A semaphore of the program.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Channel {
    posts: AtomicU32,
    waiters: AtomicU32,
}

impl Channel {
    /// Resets it to the state where a slice begins, with so many posts.
    pub(crate) fn reset(&self, posts: u32) {
        self.posts.store(posts, Ordering::Relaxed);
        self.waiters.store(0, Ordering::Relaxed);
    }

    pub(crate) fn post(&self, times: u32) {
        // R1: SeqCst, with the waiter's two accesses: it sees the post, or we
        // see the waiter.
        self.posts.fetch_add(times, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            wake_all(&self.posts);
        }
    }

    /// Takes a post, if there is one.
    fn take(&self) -> bool {
        let taken = self
            .posts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |posts| {
                posts.checked_sub(1)
            });
        taken.is_ok()
    }
}

/// Sets how long a worker waits or sleeps between two looks at the clock.
const LOOK: Duration = Duration::from_micros(500);
/// Sets how much it computes between them.
const STEPS: u64 = 20_000;

/// Lets this thread sleep for as long as it asks, and not for up to 50 µs longer, which
/// is the system's default: recorded sleeps are often that short.
pub(crate) fn sleep_exactly() {
    // SAFETY: no pointers. It does not fail, and if it did, sleeps would be longer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Returns by how much later than it has asked a thread wakes up here, in nanoseconds: the
/// median of short sleeps.
pub(crate) fn late_ns() -> u64 {
    const ASKED: u64 = 20_000;
    const SLEEPS: usize = 21;
    let late = || {
        sleep_exactly();
        let one = |_| {
            let since = clock::now();
            std::thread::sleep(Duration::from_nanos(ASKED));
            (clock::now() - since).saturating_sub(ASKED)
        };
        let mut all: Vec<u64> = (0..SLEEPS).map(one).collect();
        all.sort_unstable();
        all[SLEEPS / 2]
    };
    // In a thread of its own, whose sleeps alone become exact.
    std::thread::scope(|scope| scope.spawn(late).join().unwrap_or_default())
}

impl Replayer<'_> {
    /// Returns whether the slice is over, after a look at the clock.
    fn over(&self) -> bool {
        self.clockwork.advance(clock::now());
        self.clockwork.is_over()
    }

    pub(crate) fn compute(&self, mut count: u64) {
        while count > STEPS {
            black_box(steps(STEPS));
            count -= STEPS;
            if self.over() {
                return;
            }
        }
        black_box(steps(count));
    }

    pub(crate) fn idle(&self, ns: u64) {
        let end = clock::now().saturating_add(ns);
        loop {
            let left = end.saturating_sub(clock::now());
            if left == 0 || self.over() {
                return;
            }
            // The rest is too short to sleep through.
            match left.saturating_sub(self.script.late_ns) {
                0 => std::thread::yield_now(),
                sleep => std::thread::sleep(LOOK.min(Duration::from_nanos(sleep))),
            }
        }
    }

    pub(crate) fn receive(&self, channel: u32) {
        let channel = &self.channels[channel as usize];
        while !channel.take() {
            // R1: as above.
            channel.waiters.fetch_add(1, Ordering::SeqCst);
            wait(&channel.posts, 0, Some(LOOK));
            channel.waiters.fetch_sub(1, Ordering::SeqCst);
            if self.over() {
                return;
            }
        }
    }
}
