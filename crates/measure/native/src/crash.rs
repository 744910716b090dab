//! A crash in the code of a lock while a block runs: the block ends, and the
//! process goes on with the other locks.
//!
//! Whoever loads code that may crash installs a handler, which asks here
//! whether a block is under way ([`claim`]) and later says what it found
//! ([`hand_over`]). The crashed worker stays in its handler. The others may wait
//! for it for ever, so they are parked by a signal: they keep their memory and
//! use no CPU. A worker allocates nothing and holds nothing of the process, so
//! that nobody misses them. What runs in a handler uses atomics only.

use locklab_host::clock::{self, nanos};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::ffi::c_int;
use std::os::unix::thread::JoinHandleExt as _;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sets how long a crash is waited for whose handler has begun, and a thread that is to
/// be parked.
const PATIENCE: Duration = Duration::from_secs(5);

/// The word of the block under way, by which one crash of a block is told;
/// null between blocks, and where the workers are processes, since no lock that
/// may crash here works between those.
static CLAIM: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// Holds what was handed over about the block under way.
static HANDED: Mutex<Option<String>> = Mutex::new(None);

/// Number of threads that have been parked, ever.
static PARKED: AtomicU32 = AtomicU32::new(0);

/// Says whose crash a handler has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The first of this block, whose handler says what it found.
    First,
    /// Another one of the same block: its handler waits and says nothing.
    Another,
    /// No block is under way: the process cannot go on.
    NoBlock,
}

/// Is called by the handler of a fault in a lock's code.
pub fn claim() -> Claim {
    // Acquire pairs with the Release of `Watch::of`. A worker was started after
    // that, and its block is in place as long as it runs.
    match NonNull::new(CLAIM.load(Ordering::Acquire)) {
        None => Claim::NoBlock,
        // SAFETY: as above.
        Some(word) => match unsafe { word.as_ref() }.swap(1, Ordering::Relaxed) {
            0 => Claim::First,
            _ => Claim::Another,
        },
    }
}

/// Tells the controller of the block under way, in one sentence, what its first
/// crash was. Not to be called in a handler.
///
/// # Errors
/// Gives the sentence back if no block is under way.
pub fn hand_over(why: String) -> Result<(), String> {
    let mut handed = HANDED.lock().unwrap_or_else(PoisonError::into_inner);
    if CLAIM.load(Ordering::Relaxed).is_null() {
        return Err(why);
    }
    *handed = Some(why);
    Ok(())
}

/// Makes crashes belong to one block while it exists.
pub(crate) struct Watch<'a>(&'a AtomicU32);

impl<'a> Watch<'a> {
    /// Begins with a block that has this word, which is zero.
    pub(crate) fn of(word: &'a AtomicU32) -> Self {
        // Release pairs with the Acquire of `claim`.
        CLAIM.store(std::ptr::from_ref(word).cast_mut(), Ordering::Release);
        Self(word)
    }

    /// Returns what the crash of this block was, if there was one.
    pub(crate) fn crash(&self) -> Option<String> {
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let started = clock::now();
        loop {
            let mut handed = HANDED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = handed.take() {
                return Some(why);
            }
            drop(handed);
            if clock::now() - started > nanos(PATIENCE) {
                return Some("it crashed".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut handed = HANDED.lock().unwrap_or_else(PoisonError::into_inner);
        CLAIM.store(null_mut(), Ordering::Relaxed);
        *handed = None;
    }
}

/// Stops threads for ever, which are left behind. None of them may own anything
/// that the rest of the process needs.
pub(crate) fn park(threads: Vec<JoinHandle<()>>) {
    static ONCE: Once = Once::new();
    // A signal that nothing else here uses, and that interrupts every sleep.
    let signal = Signal::SIGUSR2;
    ONCE.call_once(|| {
        let handler = SigHandler::Handler(parked);
        let action = SigAction::new(handler, SaFlags::SA_ONSTACK, SigSet::all());
        // SAFETY: `parked` uses an atomic and sleeps.
        let _ = unsafe { sigaction(signal, &action) };
    });
    let before = PARKED.load(Ordering::Relaxed);
    let mut sent = 0;
    for thread in threads {
        if thread.is_finished() {
            continue;
        }
        // A number in the standard library, and a pointer in musl's headers.
        let number = thread.as_pthread_t() as libc::pthread_t;
        // SAFETY: the handle is ours, so that the thread's number is its own
        // even if it has ended.
        let failed = unsafe { libc::pthread_kill(number, signal as c_int) };
        sent += u32::from(failed == 0);
        // A handle that is dropped leaves its thread alone; one that ended
        // after the signal was sent never takes it.
    }
    let started = clock::now();
    while PARKED.load(Ordering::Relaxed).wrapping_sub(before) < sent
        && clock::now() - started < nanos(PATIENCE)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

extern "C" fn parked(_: c_int) {
    PARKED.fetch_add(1, Ordering::Relaxed);
    loop {
        // SAFETY: it may be called in a handler.
        unsafe { libc::pause() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn one_crash_of_a_block_is_told_and_none_is_left_for_the_next() {
        assert_eq!(claim(), Claim::NoBlock);
        assert!(hand_over("early".into()).is_err());
        let word = AtomicU32::new(0);
        let watch = Watch::of(&word);
        assert_eq!(watch.crash(), None);
        assert_eq!([claim(), claim()], [Claim::First, Claim::Another]);
        hand_over("a fault".into()).unwrap();
        assert_eq!(watch.crash(), Some("a fault".into()));
        drop(watch);
        assert_eq!(claim(), Claim::NoBlock);
        let word = AtomicU32::new(0);
        assert_eq!(Watch::of(&word).crash(), None);
    }

    #[test]
    fn a_parked_thread_does_nothing_more() {
        let count = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let own = (Arc::clone(&count), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !own.1.load(Ordering::Relaxed) {
                own.0.fetch_add(1, Ordering::Relaxed);
            }
        });
        while count.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        park(vec![thread]);
        let then = count.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(count.load(Ordering::Relaxed), then);
    }
}
