//! Examines what this machine can measure, what it cannot, and the remedy.
//!
//! Reads and probes; changes no setting, and opens no device that might not
//! answer. A device node that exists does not prove that the device works, so
//! a device that was not probed is reported as not probed.

mod check;
mod counters;
#[cfg(test)]
#[path = "../../harness/tests/common/golden.rs"]
mod golden;
mod placement;
mod programs;
mod report;
mod settings;

pub use check::{Check, State};
pub use report::{json, text};

use check::STORE;
use locklab_harness::store::Store;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::topology::Topology;
use std::path::{Path, PathBuf};

/// Runs every check, including whether samples can be stored in `store` (or why
/// there is no store). Takes about a second: the placement of the CPUs
/// is measured several times, since it may move.
#[must_use]
pub fn examine(store: Result<PathBuf, Error>) -> Vec<Check> {
    let environment = Environment::read();
    let topology = Topology::read();
    let mut checks = settings::checks(&environment, &topology);
    checks.push(placement::check(&topology.order));
    checks.extend(counters::checks(&environment));
    checks.extend(programs::models(Path::new("/")));
    checks.extend(programs::workloads());
    checks.push(samples(store));
    checks
}

fn samples(path: Result<PathBuf, Error>) -> Check {
    let opened = path.and_then(|path| Store::open(&path).map(|_| path));
    match opened {
        Ok(path) => Check::new(
            STORE,
            "Store",
            State::Ok,
            format!("{} can be written", path.display()),
        ),
        Err(why) => Check::new(STORE, "Store", State::Missing, why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::WORKLOADS;

    #[test]
    fn every_check_that_is_not_ok_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let checks = examine(Ok(folder.path().join("store.sqlite")));
        for check in &checks {
            assert!(!check.found.is_empty(), "{check:?}");
            if check.state == State::Missing && check.part == WORKLOADS {
                assert!(check.remedy.as_ref().unwrap().contains("apt-get install"));
            }
        }
        for name in ["CPUs", "Placement", "Store", "NMI watchdog", "KVM"] {
            assert!(checks.iter().any(|c| c.name == name), "{name}");
        }
        let text = text(&checks, "a machine");
        for line in text.lines() {
            assert!(line.len() <= 72, "{line}");
        }
        assert_eq!(json(&checks, "a machine")["schema"], 1);
    }

    #[test]
    fn a_store_that_cannot_be_written_is_missing() {
        let check = samples(Ok("/proc/no/such/store.sqlite".into()));
        assert_eq!(check.state, State::Missing);
        assert!(check.found.contains("/proc/no"), "{check:?}");
    }

    #[test]
    fn one_cpu_has_no_placement() {
        assert_eq!(placement::check(&[0]).state, State::Unknown);
        let root = tempfile::tempdir().unwrap();
        let environment = Environment::read_from(root.path());
        let checks = settings::checks(&environment, &Topology::of(&[0], root.path()));
        assert_eq!(
            (checks[0].name.as_str(), checks[0].state),
            ("CPUs", State::Missing)
        );
    }
}
