//! The locks that have a name: those of the catalogue, their peers, and those of libraries
//! of which there is a model and nothing to measure.

#[cfg(target_env = "gnu")]
use super::peers::PthreadAdaptive;
use super::peers::{ParkingLot, Pthread, Std};
#[cfg(target_env = "gnu")]
use super::peers_with_readers::PthreadWriters;
use super::peers_with_readers::{ParkingLotRwLock, PthreadReaders, StdRwLock};
use crate::lock_code::LockCode;
use locklab_host::error::Error;
use locklab_library_models::catalogue::{self as models, current_name};
use locklab_locks::catalogue::{self, Entry, Visitor};
use locklab_locks::{Info, NativePlatform, RawLock};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// A lock that can be named.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The description of the lock.
    pub info: Info,
    /// Its size in bytes.
    pub bytes: usize,
    /// Says whether an acquisition needs nothing but the lock.
    pub context_free: bool,
    /// Says whether it belongs to another library, for comparison only.
    pub peer: bool,
    /// Says whether its code can run here; of others there is a model.
    pub measured: bool,
}

/// The commands under which a lock works, and their letters in a table.
pub const WORLDS: [(char, &str); 4] = [
    ('m', "matrix"),
    ('s', "matrix --on"),
    ('v', "verify"),
    ('r', "run"),
];

impl Subject {
    /// Returns which of [`WORLDS`] it works in: a lock of the catalogue in all, a library's
    /// where its own code runs, and where the simulator and the checker have a model of it.
    #[must_use]
    pub fn works_in(&self, simulated: bool, verified: bool) -> [bool; 4] {
        let interposed =
            !self.peer || self.info.name == <Pthread as RawLock<NativePlatform>>::INFO.name;
        let ours = !self.peer;
        [
            self.measured,
            ours || simulated,
            ours || verified,
            interposed,
        ]
    }

    /// Checks that its code can run here.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is only a model of it.
    pub fn check_measured(&self) -> Result<(), Error> {
        match self.measured {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "'{}' is a model of another library's lock, which only a simulation runs; add \
                 --on MACHINE",
                self.info.name
            ))),
        }
    }

    const fn listed(entry: &Entry, peer: bool, measured: bool) -> Self {
        Self {
            info: entry.info,
            bytes: entry.bytes,
            context_free: entry.context_free,
            peer,
            measured,
        }
    }
}

fn peer<L: RawLock<NativePlatform>>() -> Subject {
    Subject::listed(&Entry::of::<L>(), true, true)
}

/// Returns all of them, in the order in which tables show them.
#[must_use]
pub fn all() -> Vec<Subject> {
    let ours = catalogue::ALL.iter();
    let ours = ours.map(|entry| Subject::listed(entry, false, true));
    let mut all: Vec<Subject> = ours.chain(peers()).collect();
    for model in models::ALL {
        if all.iter().all(|lock| lock.info.name != model.info.name) {
            all.push(Subject::listed(model, true, false));
        }
    }
    all
}

/// Locks that are not in the catalogue, such as a user's own.
static REGISTERED: RwLock<BTreeMap<String, (Subject, LockCode)>> = RwLock::new(BTreeMap::new());

/// Registers a lock that is not in the catalogue under the name of its
/// subject.
pub fn register(subject: Subject, code: LockCode) {
    let name = subject.info.name.to_owned();
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.insert(name, (subject, code));
}

/// Returns the lock that was registered under this name.
fn registered(name: &str) -> Option<(Subject, LockCode)> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.get(name).copied()
}

/// Returns the code of the lock called `name`; `None` if there is none.
pub(crate) fn code(name: &str) -> Option<LockCode> {
    struct Find;
    impl Visitor<NativePlatform> for Find {
        type Output = LockCode;
        fn visit<L: RawLock<NativePlatform>>(self) -> LockCode {
            LockCode::of::<L>()
        }
    }
    let registered = registered(name).map(|(_, code)| code);
    registered.or_else(|| visit(name, Find))
}

/// Returns the lock called `name`, now or in an earlier version.
///
/// # Errors
/// If there is no such lock; the message names the closest ones.
pub fn find(name: &str) -> Result<Subject, Error> {
    if let Some((subject, _)) = registered(name) {
        return Ok(subject);
    }
    let all = all();
    let name = current_name(name);
    if let Some(subject) = all.iter().find(|s| s.info.name == name) {
        return Ok(*subject);
    }
    let mut close: Vec<(f64, &'static str)> = all
        .iter()
        .map(|s| {
            // A shared prefix counts for more than in Jaro-Winkler:
            // 'qspin' means qspinlock.
            let starts = s.info.name.starts_with(name) && !name.is_empty();
            let likeness = strsim::jaro_winkler(s.info.name, &name.to_lowercase());
            (if starts { likeness + 1.0 } else { likeness }, s.info.name)
        })
        .filter(|(likeness, _)| *likeness > 0.75)
        .collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0));
    let close: Vec<&str> = close.iter().take(3).map(|(_, name)| *name).collect();
    Err(unknown(name, &close))
}

/// Says that no lock has this name, and which names are the closest, the best
/// first.
pub(crate) fn unknown(name: &str, close: &[&str]) -> Error {
    let next = match close {
        _ if name.ends_with(".toml") => {
            format!("'locklab compare {name}' runs the file of an experiment")
        }
        [] => "'locklab locks' lists them all".to_owned(),
        [one] => format!("did you mean {one}? ('locklab locks' lists them all)"),
        [first @ .., last] => format!(
            "the closest are {} and {last} ('locklab locks' lists them all)",
            first.join(", ")
        ),
    };
    Error::Usage(format!("there is no lock called '{name}'; {next}"))
}

/// Lists the peers by type.
macro_rules! peers {
    ($($(#[$only:meta])? $lock:ident,)*) => {
        fn peers() -> impl Iterator<Item = Subject> {
            [$($(#[$only])? peer::<$lock>()),*].into_iter()
        }

        /// Visits the lock called `name`; `None` if there is none.
        pub fn visit<V: Visitor<NativePlatform>>(name: &str, visitor: V) -> Option<V::Output> {
            $($(#[$only])? {
                if name == <$lock as RawLock<NativePlatform>>::INFO.name {
                    return Some(visitor.visit::<$lock>());
                }
            })*
            catalogue::visit(name, visitor)
        }
    };
}

peers! {
    Std,
    ParkingLot,
    Pthread,
    #[cfg(target_env = "gnu")]
    PthreadAdaptive,
    StdRwLock,
    ParkingLotRwLock,
    PthreadReaders,
    #[cfg(target_env = "gnu")]
    PthreadWriters,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told_the_closest() {
        assert!(find("ticket").is_ok());
        assert!(find("pthread").is_ok());
        for (wrong, meant) in [
            ("tiket", "ticket"),
            ("MCS", "mcs"),
            ("qspin", "qspinlock"),
            ("parking-lot", "parking_lot"),
        ] {
            let text = find(wrong).unwrap_err().to_string();
            assert!(text.contains(meant), "{text}");
        }
        let text = find("zzzzzz").unwrap_err().to_string();
        assert!(text.contains("'locklab locks'"), "{text}");
    }

    #[test]
    fn a_lock_that_was_registered_is_found() {
        let like = find("ticket").unwrap();
        let info = Info {
            name: "./mine.c",
            ..like.info
        };
        assert!(find(info.name).is_err());
        register(Subject { info, ..like }, code("ticket").unwrap());
        assert_eq!(find(info.name).unwrap().info.name, info.name);
        assert_eq!(code(info.name).unwrap().info.name, "ticket");
    }

    #[test]
    fn every_lock_that_is_listed_can_be_visited() {
        struct Name;
        impl Visitor<NativePlatform> for Name {
            type Output = &'static str;
            fn visit<L: RawLock<NativePlatform>>(self) -> &'static str {
                L::INFO.name
            }
        }
        for subject in all() {
            let name = subject.info.name;
            let visited = visit(name, Name);
            assert_eq!(visited, subject.measured.then_some(name));
            assert_eq!(subject.check_measured().is_ok(), subject.measured);
        }
    }

    #[test]
    fn a_lock_has_one_name_and_is_found_by_its_earlier_ones() {
        let all = all();
        for (before, now) in models::RENAMED {
            let listed = |name| all.iter().filter(|lock| lock.info.name == name).count();
            assert_eq!((listed(before), listed(now)), (0, 1), "{before}, {now}");
            assert_eq!(find(before).unwrap().info.name, now);
        }
    }
}
