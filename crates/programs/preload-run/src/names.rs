//! Names of locks for `locklab run`: those of the catalogue, and those of LiTL.
//!
//! LiTL (H. Guiroux, R. Lachaize and V. Quéma, "Multicore Locks: The Case Is
//! Not Closed Yet", USENIX ATC 2016) names an algorithm with a waiting policy
//! `mcs_spinlock`, `mcs_spin_then_park`, `ticket_original`. Such a name means
//! the same here; a name whose algorithm is not in the catalogue is refused.

use crate::wait::Wait;
use locklab_host::error::Error;
use locklab_locks::catalogue;

/// The name that leaves every mutex to glibc.
pub(crate) const GLIBC: &str = "pthread";

/// A lock of the interposer, and how its waiters wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) lock: &'static str,
    pub(crate) wait: Wait,
    /// The lock of rwlocks, which is glibc's own where it is not said and `lock`
    /// has no readers.
    pub(crate) rwlock: &'static str,
    /// Says whether the user named the lock of rwlocks.
    pub(crate) rwlock_is_named: bool,
}

impl Chosen {
    fn new(lock: &'static str, wait: Wait) -> Self {
        Self {
            lock,
            wait,
            rwlock: with_readers(lock).unwrap_or(GLIBC),
            rwlock_is_named: false,
        }
    }

    /// Returns the choice with the lock called `name` for rwlocks.
    pub(crate) fn with_rwlock(self, name: &str) -> Result<Self, Error> {
        let rwlock = if ours(name) == Some(GLIBC) {
            Some(GLIBC)
        } else {
            with_readers(name)
        };
        match rwlock {
            Some(rwlock) => Ok(Self {
                rwlock,
                rwlock_is_named: true,
                ..self
            }),
            None if ours(name).is_some() => Err(Error::Usage(format!(
                "'{name}' has no readers, so it is no lock for --rwlock; {} have, and \
                 '{GLIBC}' is glibc's",
                all_with_readers().join(", ")
            ))),
            None => Err(Error::Usage(unknown(name))),
        }
    }
}

/// Returns the locks that several readers can hold.
pub(crate) fn all_with_readers() -> Vec<&'static str> {
    catalogue::ALL
        .iter()
        .filter(|entry| entry.info.readers_share)
        .map(|entry| entry.info.name)
        .collect()
}

fn with_readers(name: &str) -> Option<&'static str> {
    all_with_readers().into_iter().find(|lock| *lock == name)
}

/// LiTL's algorithms that are in the catalogue, by LiTL's name.
const LITL: &[(&str, &str)] = &[
    ("alockepfl", "anderson"),
    ("cbomcs", "c-bo-mcs"),
    ("clh", "clh"),
    ("ctkttkt", "c-tkt-tkt"),
    ("hmcs", "hmcs"),
    ("malthusian", "malthusian"),
    ("mcs", "mcs"),
    ("pthreadinterpose", GLIBC),
    ("spinlock", "tas"),
    ("ticket", "ticket"),
    ("ttas", "ttas"),
];

const LITL_WAITS: &[(&str, Wait)] = &[
    ("_spin_then_park", Wait::SpinThenPark),
    ("_spinlock", Wait::Spin),
    ("_original", Wait::Spin),
];

/// Finds the lock called `name`, with the policy `wait`, or that of its LiTL
/// name, or barging.
pub(crate) fn choose(name: &str, wait: Option<Wait>) -> Result<Chosen, Error> {
    if let Some(lock) = ours(name) {
        let wait = wait.unwrap_or(Wait::Barging);
        return Ok(Chosen::new(lock, wait));
    }
    let litl = LITL_WAITS.iter().find_map(|(suffix, wait)| {
        let algorithm = name.strip_suffix(suffix)?;
        let (_, lock) = LITL.iter().find(|(theirs, _)| *theirs == algorithm)?;
        Some((ours(lock)?, *wait))
    });
    match (litl, wait) {
        (Some((_, named)), Some(wait)) if wait != named => Err(Error::Usage(format!(
            "'{name}' is LiTL's name of a lock that waits by {}; leave out --wait {}",
            named.name(),
            wait.name()
        ))),
        (Some((lock, wait)), _) => Ok(Chosen::new(lock, wait)),
        (None, _) => Err(Error::Usage(unknown(name))),
    }
}

fn ours(name: &str) -> Option<&'static str> {
    // This is its name in `locklab compare`, where plain `pthread` interposes
    // nothing.
    if name == "pthread-interposed" {
        return Some(GLIBC);
    }
    catalogue::ALL
        .iter()
        .map(|entry| entry.info.name)
        .chain([GLIBC])
        .find(|lock| *lock == name)
}

fn unknown(name: &str) -> String {
    let near = catalogue::ALL
        .iter()
        .map(|entry| entry.info.name)
        .map(|lock| (strsim::jaro_winkler(lock, &name.to_lowercase()), lock))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.8);
    let meant = near.map_or(String::new(), |(_, lock)| {
        format!(" Did you mean '{lock}'?")
    });
    format!(
        "there is no lock '{name}' for programs;{meant} 'locklab locks' lists ours, and \
         '{GLIBC}' is glibc's"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lock: &'static str, wait: Wait) -> Chosen {
        Chosen::new(lock, wait)
    }

    #[test]
    fn rwlocks_get_the_lock_if_it_has_readers_or_the_named_one() {
        let rwlock = |lock: &str, named: Option<&str>| {
            let chosen = choose(lock, None).unwrap();
            match named {
                Some(name) => chosen.with_rwlock(name),
                None => Ok(chosen),
            }
            .map(|chosen| chosen.rwlock)
            .map_err(|e| e.to_string())
        };
        assert_eq!(rwlock("mcs", None), Ok(GLIBC));
        assert_eq!(rwlock("bravo", None), Ok("bravo"));
        assert_eq!(rwlock("mcs", Some("phase-fair")), Ok("phase-fair"));
        assert_eq!(rwlock("bravo", Some("pthread")), Ok(GLIBC));
        let wrong = rwlock("mcs", Some("ticket")).unwrap_err();
        assert!(
            wrong.starts_with("'ticket' has no readers, so it is no lock for --rwlock; rw-queued,"),
            "{wrong}"
        );
        let wrong = rwlock("mcs", Some("brave")).unwrap_err();
        assert!(wrong.contains("Did you mean 'bravo'?"), "{wrong}");
    }

    #[test]
    fn a_name_of_litl_keeps_its_meaning() {
        for (name, lock, wait) in [
            ("mcs_spinlock", "mcs", Wait::Spin),
            ("mcs_spin_then_park", "mcs", Wait::SpinThenPark),
            ("clh_spin_then_park", "clh", Wait::SpinThenPark),
            ("ticket_original", "ticket", Wait::Spin),
            ("ttas_original", "ttas", Wait::Spin),
            ("spinlock_spinlock", "tas", Wait::Spin),
            ("alockepfl_original", "anderson", Wait::Spin),
            ("pthreadinterpose_original", "pthread", Wait::Spin),
        ] {
            assert_eq!(choose(name, None).unwrap(), chosen(lock, wait), "{name}");
        }
        let both = choose("mcs_spinlock", Some(Wait::SpinThenPark)).unwrap_err();
        assert_eq!(
            both.to_string(),
            "'mcs_spinlock' is LiTL's name of a lock that waits by spin; leave out --wait \
             spin-then-park"
        );
        assert!(choose("partitioned_original", None).is_err());
    }

    #[test]
    fn our_names_wait_as_asked() {
        assert_eq!(choose("mcs", None).unwrap(), chosen("mcs", Wait::Barging));
        assert_eq!(
            choose("mcs", Some(Wait::Spin)).unwrap(),
            chosen("mcs", Wait::Spin)
        );
        let wrong = choose("tickett", None).unwrap_err().to_string();
        assert!(wrong.contains("Did you mean 'ticket'?"), "{wrong}");
    }
}
