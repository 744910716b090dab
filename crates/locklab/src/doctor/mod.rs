//! What this machine can measure, what it cannot, and the remedy.
//!
//! Looks and tries; changes no setting, and opens no device that might not
//! answer. A device node that exists is no proof that what is behind it
//! works, so what was not tried is called not tried.

mod counters;
mod programs;
mod report;

pub use report::{json, text};

use crate::cli::Common;
use crate::output::store_path;
use locklab_host::environment::{Environment, Fact};
use locklab_host::topology::Topology;
use locklab_lab::store::Store;
use locklab_native::round_trip;
use serde::Serialize;
use std::path::Path;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, and what is measured means less than it could.
    Limited,
    /// Not there; what needs it cannot be measured.
    Missing,
    /// Cannot be known from here, or was not tried on purpose.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The part of the laboratory that depends on it.
    pub part: &'static str,
    /// What was looked at.
    pub name: String,
    /// How it came out.
    pub state: State,
    /// What was found and what it means.
    pub found: String,
    /// What to do about it, if anything can be done.
    pub remedy: Option<String>,
}

impl Check {
    fn new(part: &'static str, name: &str, state: State, found: impl Into<String>) -> Self {
        Self {
            part,
            name: name.into(),
            state,
            found: found.into(),
            remedy: None,
        }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

const LOCKS: &str = "Locks on this machine";
const COUNTERS: &str = "Hardware counters";
const MODELS: &str = "Other kernels and machines";
const WORKLOADS: &str = "Workloads";
const STORE: &str = "Samples";

/// `locklab doctor`: what to print.
pub(crate) fn run(common: &Common) -> String {
    let machine = Environment::read().name();
    if common.dry_run {
        return "would look at this machine's settings, try its counters, time its CPUs for a \
                second and look for programs; nothing would be changed\n"
            .into();
    }
    let checks = examine(common);
    if common.json {
        format!("{:#}\n", json(&checks, &machine))
    } else {
        text(&checks, &machine)
    }
}

/// Looks at everything. Takes about a second: the placement of the CPUs is
/// measured several times, since it may move.
#[must_use]
pub fn examine(common: &Common) -> Vec<Check> {
    let environment = Environment::read();
    let mut checks = locks(&environment, &Topology::read());
    checks.push(placement(&Topology::read().order));
    checks.extend(counters::checks(&environment));
    checks.extend(programs::models(Path::new("/")));
    checks.extend(programs::workloads());
    checks.push(samples(common));
    checks
}

fn locks(environment: &Environment, topology: &Topology) -> Vec<Check> {
    let cpus = topology.order.len();
    let mut checks = vec![match cpus {
        0 | 1 => Check::new(
            LOCKS,
            "CPUs",
            State::Missing,
            "one CPU: two threads never run at the same time, so contention is the \
             scheduler's work",
        )
        .remedy("allow more CPUs: taskset, or the container's cpuset"),
        n => Check::new(
            LOCKS,
            "CPUs",
            State::Ok,
            format!("{n} may be used; more threads than that are marked oversubscribed"),
        ),
    }];
    checks.push(match &environment.hypervisor {
        Fact::Known(name) if name == "none" => {
            Check::new(LOCKS, "Hypervisor", State::Ok, "none was seen")
        }
        Fact::Known(name) => Check::new(
            LOCKS,
            "Hypervisor",
            State::Limited,
            format!("{name}: the host may move and preempt these CPUs during a run"),
        )
        .remedy("for figures about hardware, measure on a machine of your own"),
        Fact::Unknown(why) => Check::new(LOCKS, "Hypervisor", State::Unknown, why.clone()),
    });
    checks.push(match &environment.numa {
        Fact::Known(nodes) if nodes.contains(';') => {
            Check::new(LOCKS, "NUMA", State::Ok, nodes.clone())
        }
        Fact::Known(_) => Check::new(
            LOCKS,
            "NUMA",
            State::Limited,
            "one node: what a NUMA-aware lock gains does not show here",
        )
        .remedy(if offered(&["matrix", "--on"]) {
            "matrix --on a modelled machine of several nodes; its figures are simulated"
        } else {
            "measure on a machine of several nodes"
        }),
        Fact::Unknown(why) => Check::new(LOCKS, "NUMA", State::Unknown, why.clone()),
    });
    checks.push(match &environment.governor {
        Fact::Known(name) if name == "performance" => {
            Check::new(LOCKS, "Governor", State::Ok, name.clone())
        }
        Fact::Known(name) => Check::new(
            LOCKS,
            "Governor",
            State::Limited,
            format!("{name}: the frequency changes during runs"),
        )
        .remedy("cpupower frequency-set -g performance (as root)"),
        Fact::Unknown(why) => Check::new(LOCKS, "Governor", State::Unknown, why.clone()),
    });
    checks.push(match environment.turbo.known() {
        Some("off") => Check::new(LOCKS, "Turbo", State::Ok, "off"),
        Some(_) => Check::new(
            LOCKS,
            "Turbo",
            State::Limited,
            "on: the frequency depends on heat and on how many cores are busy",
        )
        .remedy(
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost (as root)",
        ),
        None => unknown("Turbo", &environment.turbo),
    });
    checks.push(match environment.smt.known() {
        Some("on") => Check::new(
            LOCKS,
            "SMT",
            State::Limited,
            "on: threads beyond the number of cores share one",
        )
        .remedy(
            "keep to as many threads as cores, or echo off > /sys/devices/system/cpu/smt/control",
        ),
        Some(state) => Check::new(LOCKS, "SMT", State::Ok, state),
        None => unknown("SMT", &environment.smt),
    });
    checks.push(match environment.clock_source.known() {
        Some(name @ ("tsc" | "arch_sys_counter")) => {
            Check::new(LOCKS, "Clock source", State::Ok, name)
        }
        Some(name) => Check::new(
            LOCKS,
            "Clock source",
            State::Limited,
            format!("{name}: reading the time is slow, which --latency adds to every acquisition"),
        )
        .remedy("boot with clocksource=tsc if the kernel trusts it"),
        None => unknown("Clock source", &environment.clock_source),
    });
    let load = |text: &str| text.split(' ').next().and_then(|x| x.parse::<f64>().ok());
    checks.push(match environment.load.known().and_then(load) {
        Some(load) if load >= 0.5 => Check::new(
            LOCKS,
            "Load",
            State::Limited,
            format!("{load} over the last minute: something else runs"),
        )
        .remedy("stop it, or --pin to CPUs that it leaves alone"),
        Some(load) => Check::new(
            LOCKS,
            "Load",
            State::Ok,
            format!("{load} over the last minute"),
        ),
        None => unknown("Load", &environment.load),
    });
    checks
}

/// Whether this version has a command, or a command an option: a remedy must
/// exist.
fn offered(words: &[&str]) -> bool {
    let command = <crate::cli::Cli as clap::CommandFactory>::command();
    match words {
        [name] => command.find_subcommand(name).is_some(),
        [name, option] => command.find_subcommand(name).is_some_and(|c| {
            c.get_arguments()
                .any(|a| a.get_long() == Some(option.trim_start_matches('-')))
        }),
        _ => false,
    }
}

fn unknown(name: &str, fact: &Fact) -> Check {
    let why = match fact {
        Fact::Unknown(why) | Fact::Known(why) => why.clone(),
    };
    Check::new(LOCKS, name, State::Unknown, why)
}

/// Whether the CPUs stay where they are.
fn placement(cpus: &[usize]) -> Check {
    const LOOKS: u32 = 6;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
    // Neighbours in pin order stand for all pairs.
    let links: Vec<(usize, usize)> = cpus.windows(2).map(|w| (w[0], w[1])).take(8).collect();
    if links.is_empty() {
        return Check::new(
            LOCKS,
            "Placement",
            State::Unknown,
            "one CPU has no distance",
        );
    }
    let mut least = f64::INFINITY;
    let mut most: f64 = 0.0;
    // How far one link moved, at worst.
    let mut moved: f64 = 1.0;
    let looks: Vec<Vec<f64>> = (0..LOOKS)
        .map(|i| {
            if i > 0 {
                std::thread::sleep(PAUSE);
            }
            let trips = links.iter().map(|(a, b)| round_trip::measure(*a, *b));
            trips.collect::<Option<_>>().unwrap_or_default()
        })
        .collect();
    for link in 0..links.len() {
        let trips = looks.iter().filter_map(|look| look.get(link).copied());
        let (low, high) = trips
            .filter(|t| t.is_finite() && *t > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        if high > 0.0 {
            (least, most) = (least.min(low), most.max(high));
            moved = moved.max(high / low);
        }
    }
    if most == 0.0 {
        return Check::new(
            LOCKS,
            "Placement",
            State::Missing,
            "two threads on two CPUs did not meet within 20 ms: the machine is too busy, or the \
             host runs one CPU at a time",
        )
        .remedy("stop what else runs");
    }
    let span = format!("a cache line goes there and back in {least:.0} to {most:.0} ns");
    if moved > 1.5 {
        return Check::new(
            LOCKS,
            "Placement",
            State::Limited,
            format!("{span}, and one way changed {moved:.1} times within a second: CPUs move"),
        )
        .remedy("none needed: pairs are kept by placement class; it takes more of them");
    }
    Check::new(
        LOCKS,
        "Placement",
        State::Ok,
        format!("{span}; it held for a second"),
    )
}

fn samples(common: &Common) -> Check {
    let path = match store_path(common) {
        Ok(path) => path,
        Err(why) => return Check::new(STORE, "Store", State::Missing, why.to_string()),
    };
    match Store::open(&path) {
        Ok(_) => Check::new(
            STORE,
            "Store",
            State::Ok,
            format!("{} can be written", path.display()),
        ),
        Err(why) => Check::new(STORE, "Store", State::Missing, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn with_store(path: &Path) -> Common {
        let words = [
            "locklab".as_ref(),
            "doctor".as_ref(),
            "--store".as_ref(),
            path.as_os_str(),
        ];
        crate::cli::Cli::parse_from(words).common
    }

    #[test]
    fn every_check_that_is_not_ok_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.sqlite");
        let words = [
            "locklab".as_ref(),
            "doctor".as_ref(),
            "--store".as_ref(),
            store.as_os_str(),
        ];
        let checks = examine(&crate::cli::Cli::parse_from(words).common);
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
    fn a_remedy_that_is_offered_exists() {
        assert!(offered(&["matrix"]) && offered(&["matrix", "--pin"]));
        assert!(!offered(&["no-such"]) && !offered(&["matrix", "--no-such"]));
    }

    #[test]
    fn a_store_that_cannot_be_written_is_missing() {
        let check = samples(&with_store(Path::new("/proc/no/such/store.sqlite")));
        assert_eq!(check.state, State::Missing);
        assert!(check.found.contains("/proc/no"), "{check:?}");
    }

    #[test]
    fn one_cpu_has_no_placement() {
        assert_eq!(placement(&[0]).state, State::Unknown);
        let root = tempfile::tempdir().unwrap();
        let environment = Environment::read_from(root.path());
        let checks = locks(&environment, &Topology::of(&[0], root.path()));
        assert_eq!(
            (checks[0].name.as_str(), checks[0].state),
            ("CPUs", State::Missing)
        );
    }
}
