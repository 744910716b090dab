//! Checks that hardware counters count.
//!
//! A counter that opens is no proof: under some hypervisors it opens and
//! stays at zero. So each is opened alone and pinned, run over a loop, and
//! read; it must have counted, and must have run all the time.

use crate::doctor::check::{COUNTERS, Check, State};
use locklab_host::environment::{Environment, Fact};

/// Checks each counter that reports need, then the settings that affect them.
pub(super) fn checks(environment: &Environment) -> Vec<Check> {
    let mut checks = events();
    let any = checks
        .iter()
        .any(|c| c.state == State::Ok && c.name != SOFTWARE);
    checks.push(match environment.nmi_watchdog.known() {
        Some("off") => Check::new(COUNTERS, "NMI watchdog", State::Ok, "off"),
        Some(_) => Check::new(
            COUNTERS,
            "NMI watchdog",
            State::Limited,
            "on: it occupies a counter, so three events may not fit",
        )
        .remedy("sysctl kernel.nmi_watchdog=0 (as root)"),
        None => Check::new(
            COUNTERS,
            "NMI watchdog",
            State::Unknown,
            environment.nmi_watchdog.to_string(),
        ),
    });
    checks.push(paranoid(environment));
    if !any {
        let check = Check::new(
            COUNTERS,
            "no hardware events",
            State::Limited,
            "no hardware event counts here, so cycles and misses cannot be measured",
        );
        checks
            .push(check.remedy(
                "locklab frontend -- CMD models them; such figures are marked as modelled",
            ));
    }
    checks
}

fn paranoid(environment: &Environment) -> Check {
    let level = match &environment.perf_paranoid {
        Fact::Known(level) => level,
        Fact::Unknown(why) => return Check::new(COUNTERS, "Paranoid", State::Unknown, why.clone()),
    };
    let remedy = "sysctl kernel.perf_event_paranoid=1 (as root), or run as root";
    let limited = |meaning: &str| {
        Check::new(
            COUNTERS,
            "Paranoid",
            State::Limited,
            format!("{level}: {meaning}"),
        )
        .remedy(remedy)
    };
    match level.parse::<i32>() {
        Ok(n) if n <= 1 => Check::new(
            COUNTERS,
            "Paranoid",
            State::Ok,
            format!("{level}: user and kernel may be counted"),
        ),
        _ if nix::unistd::Uid::effective().is_root() => Check::new(
            COUNTERS,
            "Paranoid",
            State::Ok,
            format!("{level}, which does not bind root"),
        ),
        Ok(2) => limited("without privileges only user space may be counted"),
        _ => limited("without privileges nothing may be counted"),
    }
}

const SOFTWARE: &str = "task-clock";

#[cfg(not(target_os = "linux"))]
fn events() -> Vec<Check> {
    vec![Check::new(
        COUNTERS,
        SOFTWARE,
        State::Missing,
        "perf_event_open is Linux only",
    )]
}

#[cfg(target_os = "linux")]
fn events() -> Vec<Check> {
    use perf_event::Builder;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Software};

    let misses = || Cache {
        which: CacheId::L1I,
        operation: CacheOp::READ,
        result: CacheResult::MISS,
    };
    let builders = [
        ("cycles:u", true, Builder::new(Hardware::CPU_CYCLES)),
        ("cycles:k", false, Builder::new(Hardware::CPU_CYCLES)),
        ("instructions:u", true, Builder::new(Hardware::INSTRUCTIONS)),
        ("l1i-misses:u", true, Builder::new(misses())),
        ("l1i-misses:k", false, Builder::new(misses())),
    ];
    let mut checks: Vec<Check> = builders
        .into_iter()
        .map(|(name, user, mut builder)| {
            builder
                .exclude_user(!user)
                .exclude_kernel(user)
                .exclude_hv(true)
                .pinned(true);
            tried(name, &builder)
        })
        .collect();
    checks.push(tried(SOFTWARE, &Builder::new(Software::TASK_CLOCK)));
    checks
}

#[cfg(target_os = "linux")]
fn tried(name: &str, builder: &perf_event::Builder) -> Check {
    use std::io::ErrorKind;

    match count(builder) {
        Ok((0, _)) => Check::new(
            COUNTERS,
            name,
            State::Missing,
            "it opens but counts nothing; the hypervisor may hide it",
        )
        .remedy("ask for a virtual PMU, or measure on hardware"),
        Ok((_, false)) => Check::new(
            COUNTERS,
            name,
            State::Limited,
            "it did not run all the time: another program holds the counter",
        )
        .remedy("stop other profilers; sysctl kernel.nmi_watchdog=0 (as root)"),
        Ok((_, true)) => Check::new(COUNTERS, name, State::Ok, "it counts all the time"),
        Err(error) => {
            // By kind: the crate wraps the kernel's number with advice.
            let (why, remedy) = match error.kind() {
                ErrorKind::NotFound | ErrorKind::Unsupported => (
                    "the kernel knows no such event on this machine".into(),
                    "ask for a virtual PMU, or measure on hardware",
                ),
                ErrorKind::PermissionDenied => (
                    "not permitted".into(),
                    "sysctl kernel.perf_event_paranoid=1 (as root), or run as root; in a \
                     container allow perf_event_open",
                ),
                _ => (
                    format!("does not open: {error}"),
                    "perf stat -e cycles true may say more (Debian: linux-perf)",
                ),
            };
            Check::new(COUNTERS, name, State::Missing, why).remedy(remedy)
        }
    }
}

/// Returns what a loop counts, and whether the counter ran all the time.
#[cfg(target_os = "linux")]
fn count(builder: &perf_event::Builder) -> std::io::Result<(u64, bool)> {
    let mut counter = builder.build()?;
    counter.enable()?;
    // Some work in user space, and in the kernel.
    let mut sum = 0_u64;
    for i in 0..2_000_u64 {
        sum = std::hint::black_box(sum.wrapping_mul(31) ^ i);
        if i.is_multiple_of(20) {
            std::hint::black_box(std::fs::metadata("/").is_ok());
        }
    }
    counter.disable()?;
    let read = counter.read_count_and_time()?;
    Ok((read.count, read.time_running == read.time_enabled))
}
