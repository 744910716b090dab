//! The locks to try in the place of a program's own, and how their waiters wait.
//! It must know no recording.

use locklab_sim::{Machine, Subject, Waiters, can_be_simulated, current_name, library_locks};

/// Holds what today's mutex is called: glibc's normal one is a word in three states,
/// which is the catalogue's `futex`.
pub(crate) const BASELINE_LOCKS: [&str; 2] = ["futex", "pthread"];

/// The end of a candidate's name whose waiters never sleep.
const SPINS: &str = ":spin";
/// The end of the name of one whose waiters running threads may pass.
const BARGES: &str = ":barging";

/// A lock to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name in the catalogue.
    pub lock: String,
    /// Says how its waiters wait.
    pub waiters: Waiters,
}

/// Tried everywhere: one of each family.
const USUAL: [&str; 8] = [
    "futex-adaptive",
    "mcs",
    "qspinlock",
    "reciprocating",
    "malthusian",
    "mcs:spin",
    "ticket:spin",
    "ttas:spin",
];
/// Tried too where there are several sockets.
const OF_SOCKETS: [&str; 2] = ["cna", "c-bo-mcs"];
/// Tried too where a lock has readers.
const OF_READERS: [&str; 2] = ["rw-queued", "bravo"];

impl Candidate {
    /// Returns the lock of this name, whose waiters spin and then sleep; with `:spin` at
    /// the end they only spin, and with `:barging` running threads may pass them, as under
    /// `locklab run` by default. Those of a library, such as `parking_lot`, wait as they do.
    /// `None` if none of that name can be simulated.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (lock, waiters) = match (name.strip_suffix(SPINS), name.strip_suffix(BARGES)) {
            (Some(lock), _) => (lock, Waiters::Spin),
            (_, Some(lock)) => (lock, Waiters::Barging),
            _ => (name, Waiters::SpinThenPark),
        };
        let candidate = Self {
            lock: current_name(lock).to_owned(),
            waiters,
        };
        let waits = waiters == Waiters::SpinThenPark || candidate.can_be_tried();
        (can_be_simulated(lock) && waits).then_some(candidate)
    }

    /// Returns its name in reports.
    #[must_use]
    pub fn name(&self) -> String {
        match self.waiters {
            Waiters::Spin => format!("{}{SPINS}", self.lock),
            Waiters::Barging => format!("{}{BARGES}", self.lock),
            Waiters::SpinThenPark => self.lock.clone(),
        }
    }

    /// Returns whether it can take the place of a program's locks: a library's cannot.
    pub(crate) fn can_be_tried(&self) -> bool {
        library_locks().all(|of_library| of_library != self.lock)
    }

    /// Returns whether the lock's own code sleeps, so that its waiters have no other way.
    pub(crate) fn sleeps_by_itself(&self) -> bool {
        self.lock.starts_with("futex")
    }

    /// Returns the same for the simulator.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject::Lock(&self.lock, self.waiters)
    }
}

/// Returns the locks that are tried where none is named.
#[must_use]
pub(crate) fn candidates(machines: &[Machine], readers: bool) -> Vec<Candidate> {
    let sockets = machines.iter().any(|machine| machine.sockets() > 1);
    let more = [(sockets, OF_SOCKETS), (readers, OF_READERS)];
    let more = more.iter().filter(|(there, _)| *there);
    let names = USUAL.iter().chain(more.flat_map(|(_, names)| names));
    names.filter_map(|name| Candidate::named(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_can_be_simulated_and_says_how_it_waits() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        let all = candidates(&[machine], true);
        assert_eq!(all.len(), USUAL.len() + 4);
        for candidate in all {
            assert_eq!(Candidate::named(&candidate.name()), Some(candidate));
        }
        assert_eq!(Candidate::named("cardboard"), None);
        let parking_lot = Candidate::named("parking_lot").unwrap();
        assert!(!parking_lot.can_be_tried() && Candidate::named("mcs").unwrap().can_be_tried());
        assert_eq!(Candidate::named("parking_lot:spin"), None, "it sleeps");
    }
}
