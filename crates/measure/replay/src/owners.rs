//! Follows who holds each lock, reads it or waits for it, while the records of a recording are
//! read in order.
//!
//! Whoever reads a recording asks this, so that all agree on what was a wait. It must never
//! know what threads do besides.

use foldhash::{HashMap, HashSet};
use locklab_trace::{Access, Attempt, Event, LockKind};

/// Holds who uses a lock.
#[derive(Default)]
pub(crate) struct Use {
    /// The thread that holds it alone, and how often.
    owner: Option<(usize, u32)>,
    readers: u32,
    waiters: u32,
    /// Says when it was acquired last.
    acquired: u64,
    /// The thread that held it alone last.
    last: Option<usize>,
    /// The thread that asked for it, acquired or released it last, also as a reader: whose
    /// CPU has its line.
    touched: Option<usize>,
}

/// Describes what is known of a request when it is made.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Says whether another thread held the lock or waited for it, and this one is to
    /// wait.
    pub(crate) contended: bool,
    /// The thread that had the line of the lock before.
    pub(crate) touched: Option<usize>,
}

/// Describes what is known of an acquisition when it succeeds.
#[derive(Clone, Copy)]
pub(crate) struct Had {
    /// Says whether another thread came later, and first.
    pub(crate) overtaken: bool,
    /// Says whether the thread held it alone already.
    pub(crate) again: bool,
    /// The thread that held it alone before, of an acquisition alone.
    pub(crate) last: Option<usize>,
}

/// The locks of a recording in the order in which they are first used.
#[derive(Default)]
pub(crate) struct Owners {
    uses: Vec<Use>,
    places: HashMap<(u64, u64), usize>,
    /// The locks that processes share, by the image whose forks have them at this address.
    shared: HashSet<(u64, u64)>,
    /// The image that runs in each process, and that of which each image is a fork.
    runs: HashMap<u64, u64>,
    forked_from: HashMap<u64, u64>,
}

impl Owners {
    /// Takes a record that says which images and locks there are, of a thread of `image`.
    pub(crate) fn learns(&mut self, image: u64, event: &Event<'_>) {
        match *event {
            Event::Image {
                process,
                parent,
                forked,
            } => {
                if let Some(from) = self.runs.get(&parent).filter(|_| forked) {
                    self.forked_from.insert(image, *from);
                }
                self.runs.insert(process, image);
            }
            Event::Kind { lock, kind } if kind.is(LockKind::SHARED) => {
                self.shared.insert((self.first_of(image), lock));
            }
            _ => {}
        }
    }

    /// Returns the image of which this one is a fork, or a fork of a fork.
    fn first_of(&self, mut image: u64) -> u64 {
        // No recording has longer lines of processes; a damaged one may have a circle.
        for _ in 0..self.forked_from.len() {
            match self.forked_from.get(&image) {
                Some(from) => image = *from,
                None => break,
            }
        }
        image
    }

    /// Returns the image and the address by which a lock is known: a process-shared lock that
    /// a fork has at its parent's address is its parent's.
    pub(crate) fn key(&self, image: u64, address: u64) -> (u64, u64) {
        if self.shared.is_empty() {
            return (image, address);
        }
        let first = self.first_of(image);
        match self.shared.contains(&(first, address)) {
            true => (first, address),
            false => (image, address),
        }
    }

    /// Returns the place of a lock by what it is known by ([`Owners::key`]), and whether it is
    /// new.
    pub(crate) fn lock(&mut self, image: u64, address: u64) -> (usize, bool) {
        let next = self.uses.len();
        let place = *self.places.entry((image, address)).or_insert(next);
        if place == next {
            self.uses.push(Use::default());
        }
        (place, place == next)
    }

    /// Takes a request.
    pub(crate) fn asks(&mut self, thread: usize, lock: usize, access: Access) -> Arrival {
        let used = &mut self.uses[lock];
        let others = used.owner.is_some_and(|(owner, _)| owner != thread);
        let contended = access.attempt == Attempt::FoundHeld
            || others
            || used.waiters > 0
            || (!access.shared && used.readers > 0);
        used.waiters += 1;
        Arrival {
            contended: contended && access.attempt != Attempt::Once,
            touched: used.touched.replace(thread),
        }
    }

    /// Takes the success of a request made at `since`.
    pub(crate) fn had(
        &mut self,
        thread: usize,
        lock: usize,
        (since, tick): (u64, u64),
        shared: bool,
    ) -> Had {
        let used = &mut self.uses[lock];
        used.waiters = used.waiters.saturating_sub(1);
        let overtaken = used.acquired >= since && used.acquired > 0;
        used.acquired = tick;
        used.touched = Some(thread);
        let mut had = Had {
            overtaken,
            again: false,
            last: None,
        };
        if shared {
            used.readers += 1;
        } else {
            had.last = used.last.replace(thread);
            let depth = match used.owner {
                Some((owner, depth)) if owner == thread => depth.saturating_add(1),
                _ => 1,
            };
            had.again = depth > 1;
            used.owner = Some((thread, depth));
        }
        had
    }

    /// Takes the failure of a request.
    pub(crate) fn refused(&mut self, lock: usize) {
        let used = &mut self.uses[lock];
        used.waiters = used.waiters.saturating_sub(1);
    }

    /// Takes the failure of a release: who releases keeps the lock.
    pub(crate) fn keeps(&mut self, thread: usize, lock: usize) {
        self.uses[lock].owner.get_or_insert((thread, 1));
    }

    /// Takes a release; returns whether another thread asked for the lock meanwhile.
    pub(crate) fn given_up(&mut self, thread: usize, lock: usize) -> bool {
        let used = &mut self.uses[lock];
        match used.owner {
            Some((owner, depth)) if depth > 1 => used.owner = Some((owner, depth - 1)),
            Some(_) => used.owner = None,
            None => used.readers = used.readers.saturating_sub(1),
        }
        used.touched.replace(thread) != Some(thread)
    }

    /// Takes the end of a wait for a condition, behind which a thread has the lock again.
    pub(crate) fn has_again(&mut self, thread: usize, lock: usize, tick: u64) {
        let used = &mut self.uses[lock];
        used.owner = Some((thread, 1));
        used.acquired = tick;
        used.last = Some(thread);
        used.touched = Some(thread);
    }

    /// Returns whether threads wait for a lock.
    pub(crate) fn is_awaited(&self, lock: usize) -> bool {
        self.uses[lock].waiters > 0
    }

    /// Returns whether a lock was acquired at this time or later.
    pub(crate) fn was_acquired(&self, lock: usize, since: u64) -> bool {
        self.uses[lock].acquired >= since
    }

    /// Returns the thread whose CPU has the line of a lock.
    pub(crate) fn touched(&self, lock: usize) -> Option<usize> {
        self.uses[lock].touched
    }
}
