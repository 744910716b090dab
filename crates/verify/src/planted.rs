//! Bugs that people make, by name: `planted.txt` lists them.
//!
//! Some the platform makes, as a [`Mutation`] of one line; for the others the
//! build makes a copy of the lock's source with one edit. Each must break a
//! promise of its lock, or say why it breaks none.

use crate::models::{more_properties, orderings_of};
use crate::mutation::Mutation;
use crate::property::{Property, promises};
use crate::source;
use crate::subject::{self, Subject};
use std::sync::Arc;

/// One bug of one lock.
pub(crate) struct Planted {
    pub(crate) lock: &'static str,
    pub(crate) file: &'static str,
    pub(crate) what: &'static str,
    /// Why it breaks no promise.
    pub(crate) because: Option<&'static str>,
    pub(crate) made: Made,
}

/// How a bug is made.
pub(crate) enum Made {
    /// By this change of a line that has this part.
    ByPlatform {
        change: &'static str,
        line: &'static str,
    },
    /// In a copy of the source.
    InSource(fn() -> Arc<dyn Subject>),
    /// Its place is no longer in the source.
    #[allow(dead_code, reason = "made by the build, when it must")]
    Nowhere,
}

impl Planted {
    /// The promises of the lock that has the bug; none if the platform makes
    /// it.
    pub(crate) fn properties(&self) -> Vec<Property> {
        let Made::InSource(make) = self.made else {
            return Vec::new();
        };
        let lock = make();
        let mut all = promises(&lock);
        all.extend(more_properties(self.lock, &lock));
        for property in &mut all {
            property.orderings_of = orderings_of(self.lock);
        }
        all
    }

    /// Whether this mutant is the bug, if its statement stands on this line.
    fn is_at(&self, mutation: &Mutation, number: u32) -> bool {
        let Made::ByPlatform { change, line } = self.made else {
            return false;
        };
        let file = mutation.place.file;
        let has_it = || {
            file.ends_with(self.file)
                && source::line(file, number).is_some_and(|text| text.contains(line))
        };
        (file == line || has_it()) && mutation.description() == change
    }
}

/// The bugs of the lock called `name` that are planted in its source.
pub(crate) fn in_source(name: &str) -> impl Iterator<Item = &'static Planted> + use<> {
    let name = name.to_owned();
    ALL.iter()
        .filter(move |bug| bug.lock == name && matches!(bug.made, Made::InSource(_)))
}

/// The names of the bugs of the lock called `name`.
pub(crate) fn names(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let name = name.to_owned();
    let of_lock = ALL.iter().filter(move |bug| bug.lock == name);
    of_lock.map(|bug| bug.what)
}

/// The name of a mutant of the lock called `name`, if it is a bug that has
/// one. What stands on its line comes before what stands on the line above,
/// where a call may begin.
pub(crate) fn name_of(name: &str, mutation: &Mutation) -> Option<&'static str> {
    let line = mutation.place.line;
    let bug = [line, line.saturating_sub(1)]
        .into_iter()
        .find_map(|number| {
            ALL.iter()
                .find(|bug| bug.lock == name && bug.is_at(mutation, number))
        });
    bug.map(|bug| bug.what)
}

/// What `crate` is to the source of a lock. build.rs has the list of what is
/// here: a lock whose source asks for more is not planted until that is
/// added.
#[allow(unused_imports)]
mod world {
    pub(crate) use locklab_locks::{MAX_CPUS, platform};

    pub(crate) mod raw {
        use locklab_locks::Platform;
        use locklab_locks::platform::{Atomic, Ordering};
        pub(crate) use locklab_locks::{Fairness, Info, Overtakes, RawLock, TimedLock};

        /// As that of [`locklab_locks`].
        pub(crate) fn take_until<P: Platform, T: Copy + PartialEq + Default, A: Atomic<T>>(
            word: &A,
            deadline: u64,
            take: impl Fn() -> bool,
        ) -> bool {
            loop {
                if word.load(Ordering::Relaxed) == T::default() && take() {
                    return true;
                }
                if P::now() >= deadline {
                    return false;
                }
            }
        }
    }
    pub(crate) mod ticket {
        /// As that of the ticket lock, without its check of the number.
        pub(crate) fn before(ticket: u16, word: u32) -> u16 {
            ticket.wrapping_sub(word as u16)
        }
    }
    pub(crate) mod native {
        pub(crate) use locklab_locks::NativePlatform;
    }
    pub(crate) mod line {
        pub(crate) use locklab_locks::CacheLine;
    }
    pub(crate) mod mutex {
        pub(crate) use locklab_locks::{LeakableGuard, StackContext};
    }
    pub(crate) mod qspinlock {
        pub(crate) use locklab_locks::QSpinlock;
    }
    pub(crate) mod cna {
        pub(crate) use locklab_locks::{Cna, CnaNode};
    }
    pub(crate) mod lock_api_impl {
        macro_rules! nothing {
            ($($lock:tt)*) => {};
        }
        /// As that of the locks, without its downgrade.
        macro_rules! shared {
            ($lock:ident) => {
                // SAFETY: as the lock's own.
                unsafe impl<P: Platform> lock_api::RawRwLock for $lock<P> {
                    #[allow(clippy::declare_interior_mutable_const)]
                    const INIT: Self = Self::new();
                    type GuardMarker = lock_api::GuardNoSend;
                    fn lock_shared(&self) {
                        self.read();
                    }
                    fn try_lock_shared(&self) -> bool {
                        self.try_read()
                    }
                    unsafe fn unlock_shared(&self) {
                        unsafe { self.read_unlock() }
                    }
                    fn lock_exclusive(&self) {
                        unsafe { RawLock::lock(self, &()) }
                    }
                    fn try_lock_exclusive(&self) -> bool {
                        unsafe { RawLock::try_lock(self, &()) }
                    }
                    unsafe fn unlock_exclusive(&self) {
                        unsafe { RawLock::unlock(self, &()) }
                    }
                }
            };
        }
        pub(crate) use {nothing as context_free, nothing as fair, nothing as timed, shared};
    }
}

include!(concat!(env!("OUT_DIR"), "/planted.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_place_in_the_source_of_now() {
        for bug in ALL {
            let placed = match bug.made {
                Made::Nowhere => false,
                Made::InSource(_) => true,
                Made::ByPlatform { line, .. } => {
                    line.starts_with("P::") && line.ends_with("()")
                        || source::contains(&format!("src/{}", bug.file), line)
                }
            };
            assert!(
                placed,
                "planted.txt: {}, {}: not in the source",
                bug.lock, bug.what
            );
        }
    }
}
