//! Settings of this machine that limit what a comparison of locks shows.
//!
//! Reads them and changes none.

use crate::doctor::check::{Check, LOCKS, State};
use locklab_host::environment::{Environment, Fact};
use locklab_host::topology::Topology;

/// Checks CPUs, hypervisor, nodes, frequency, SMT, clock and load.
pub(super) fn checks(environment: &Environment, topology: &Topology) -> Vec<Check> {
    let cpus = topology.order.len();
    let mut checks = vec![match cpus {
        0 | 1 => Check::new(
            LOCKS,
            "CPUs",
            State::Missing,
            "one CPU: two threads never run at the same time, so the scheduler decides every \
             contention",
        )
        .remedy("allow more CPUs: taskset, or the container's cpuset"),
        n => Check::new(
            LOCKS,
            "CPUs",
            State::Ok,
            format!("{n} may be used; reports mark more threads than that as oversubscribed"),
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
            "one node: this machine cannot show the gain of a NUMA-aware lock",
        )
        .remedy("matrix --on a modelled machine of several nodes; its figures are simulated"),
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
            "on: with more threads than cores, two threads share a core",
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
            format!("{name}: it is slow to read, and --latency adds that to every acquisition"),
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
            format!("{load} over the last minute: other programs run"),
        )
        .remedy("stop them, or --pin to CPUs that they leave alone"),
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

fn unknown(name: &str, fact: &Fact) -> Check {
    let why = match fact {
        Fact::Unknown(why) | Fact::Known(why) => why.clone(),
    };
    Check::new(LOCKS, name, State::Unknown, why)
}
