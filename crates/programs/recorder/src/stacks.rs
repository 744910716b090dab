//! Numbers of call stacks.
//!
//! A walk of the stack takes microseconds, so each is walked once: a call is
//! known again by the address that it returns to and the depth of the stack
//! there. Two ways to one place that are equally deep get the number of the
//! first; that is rare, and a name of a place is all that it costs.
//!
//! The walk is outside of the lock that the call is for. It must never wait:
//! where the unwinder would take the loader's lock (before glibc 2.35), only
//! the call itself is recorded.

use core::sync::atomic::{AtomicU32, Ordering};
use locklab_profile::unwind::Walk;

/// The most frames of a stack.
const FRAMES: usize = 12;
/// Number of stacks that a thread remembers; a power of two.
const REMEMBERED: usize = 256;
/// Sets how far from its place a stack may be.
const PROBES: usize = 4;
/// The most walks of a thread: a program may have any number of stacks.
const WALKS: u32 = 4096;

/// Describes where the program calls.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    /// The address that the call returns to.
    pub(crate) caller: usize,
    /// The stack pointer there.
    pub(crate) stack: usize,
}

impl Site {
    #[inline(always)]
    fn key(self) -> u64 {
        (self.caller as u64) ^ (self.stack as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The stacks that a thread remembers, by place.
pub(crate) struct Stacks {
    keys: [u64; REMEMBERED],
    numbers: [u64; REMEMBERED],
    last: u64,
    walks: u32,
}

impl Stacks {
    /// Returns the number of a stack, if it is remembered.
    #[inline(always)]
    pub(crate) fn find(&self, site: Site) -> Option<u64> {
        self.find_key(site.key())
    }

    #[inline(always)]
    fn find_key(&self, key: u64) -> Option<u64> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..PROBES)
            .map(|step| (first + step) % REMEMBERED)
            .find(|&place| self.keys[place] == key)
            .map(|place| self.numbers[place])
    }

    /// Begins anew, for another thread.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            keys: [0; REMEMBERED],
            numbers: [0; REMEMBERED],
            last: 0,
            walks: 0,
        };
    }

    /// Returns a new number for a stack. It may take the place of another's.
    pub(crate) fn add(&mut self, new: &New) -> u64 {
        let key = new.key;
        self.last += 1;
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let places = (0..PROBES).map(|step| (first + step) % REMEMBERED);
        let free = places.clone().find(|&place| self.keys[place] == 0);
        let place = free.unwrap_or((first + self.last as usize % PROBES) % REMEMBERED);
        self.keys[place] = key;
        self.numbers[place] = self.last;
        self.last
    }
}

/// Names what a walk found.
pub(crate) enum Walked {
    /// The number that stands for the call.
    Known(u64),
    /// A stack without a number.
    New(New),
}

/// The frames of a call that is not remembered.
pub(crate) struct New {
    key: u64,
    frames: [[u8; 8]; FRAMES],
    depth: usize,
}

impl New {
    /// Returns the addresses after the calls, from the call of the lock outwards.
    pub(crate) fn frames(&self) -> &[[u8; 8]] {
        &self.frames[..self.depth]
    }
}

/// Walks the stack of a call, or gives the number of what stands for it.
#[cold]
#[inline(never)]
pub(crate) fn walk(stacks: &mut Stacks, site: Site) -> Walked {
    let may_walk = stacks.walks < WALKS && walks_without_locks();
    let key = if may_walk {
        site.key()
    } else {
        // Only the call itself is told apart.
        let key = Site { stack: 0, ..site }.key();
        if let Some(number) = stacks.find_key(key) {
            return Walked::Known(number);
        }
        key
    };
    let mut walk = Walk::new(site.caller);
    if may_walk {
        stacks.walks += 1;
        walk = walk.walked();
    }
    let (frames, depth) = walk.into_frames();
    Walked::New(New { key, frames, depth })
}

/// Returns whether the unwinder finds its tables without a lock.
fn walks_without_locks() -> bool {
    /// 1 for no, 2 for yes.
    static ANSWER: AtomicU32 = AtomicU32::new(0);
    match ANSWER.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a C string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
            ANSWER.store(1 + u32::from(!found.is_null()), Ordering::Relaxed);
            !found.is_null()
        }
        answer => answer == 2,
    }
}
