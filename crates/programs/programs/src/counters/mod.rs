//! Reliable counters: few enough to run all the time, checked
//! to have done so, and left out where there are none.
//!
//! With a PMU: cycles, instructions and one L1i-miss event in one group; the
//! miss event counts user or kernel mode, in separate runs. Without: software
//! events of the kernel. A counter follows the program that the opening
//! thread starts next, and its children; it begins with their exec. Must
//! never scale a count: one that did not run all the time is invalid.

mod topdown;

use clap::ValueEnum;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::{INSTRUCTIONS, L1I_MISSES_KERNEL, L1I_MISSES_USER};
use locklab_host::error::Error;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Raw, Software};
use perf_event::{Builder, Counter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

/// The counters that a user selects.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Hardware counters where there are any, else software events
    #[default]
    Auto,
    /// Hardware counters or nothing
    Hardware,
    /// Software events of the kernel
    Software,
    /// Nothing
    None,
    /// Slots that the front end left empty, for `locklab screen`
    #[serde(skip)]
    #[value(skip)]
    Frontend,
}

/// The processor mode whose misses a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Misses in user mode.
    User,
    /// Misses in the kernel.
    Kernel,
}

/// The counters of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    kind: Kind,
    /// Says why there are fewer counters than requested, if so.
    pub why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hardware,
    Frontend,
    Software,
    None,
}

const SOFTWARE: [(&str, &str, Software, f64); 2] = [
    // It counts nanoseconds; reports use milliseconds.
    ("task-clock", "ms", Software::TASK_CLOCK, 1e-6),
    ("cpu-migrations", "", Software::CPU_MIGRATIONS, 1.0),
];

/// Counters that wait for a program.
#[derive(Debug)]
pub struct Counting {
    counters: Vec<(&'static str, f64, Counter)>,
}

impl Counters {
    /// Returns no counters at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            kind: Kind::None,
            why: None,
        }
    }

    /// Opens the counters of `mode`, each with a test that it counts.
    ///
    /// # Errors
    /// If hardware or software counters were requested by name and are not
    /// available; the message says what to set.
    pub fn probe(mode: Mode) -> Result<Self, Error> {
        let none = |why: Option<String>| Self {
            kind: Kind::None,
            why,
        };
        let hardware = || test(Kind::Hardware).map_err(|e| reason(&e, "hardware counters"));
        let software = || test(Kind::Software).map_err(|e| reason(&e, "software events"));
        Ok(match mode {
            Mode::None => none(None),
            Mode::Frontend => {
                hardware()?;
                if topdown::events().is_none() {
                    return Err(Error::Usage(
                        "This processor's top-down events are not known here".into(),
                    ));
                }
                Self {
                    kind: Kind::Frontend,
                    why: None,
                }
            }
            Mode::Hardware => {
                hardware()?;
                Self {
                    kind: Kind::Hardware,
                    why: None,
                }
            }
            Mode::Software => {
                software()?;
                Self {
                    kind: Kind::Software,
                    why: None,
                }
            }
            Mode::Auto => match hardware() {
                Ok(()) => Self {
                    kind: Kind::Hardware,
                    why: None,
                },
                Err(why) => match software() {
                    Ok(()) => Self {
                        kind: Kind::Software,
                        why: Some(format!(
                            "{why}. Software events stand in; instructions and L1i misses can be \
                             modelled with 'locklab frontend -- CMD'."
                        )),
                    },
                    Err(_) => none(Some(format!("{why}; nothing is counted."))),
                },
            },
        })
    }

    /// Returns the metrics that they add to those of the workload and the kernel.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let lower = |name: &str| Metric::lower(name, "", Source::Hardware);
        match self.kind {
            Kind::None => Vec::new(),
            Kind::Frontend => vec![lower("front-end-bound")],
            Kind::Software => SOFTWARE
                .map(|(name, unit, ..)| Metric::lower(name, unit, Source::Software))
                .into(),
            Kind::Hardware => vec![
                lower(INSTRUCTIONS),
                lower("cycles"),
                Metric::higher("ipc", "", Source::Hardware),
                lower(L1I_MISSES_KERNEL),
                lower(L1I_MISSES_USER),
                lower("l1i-mpki:k"),
                lower("l1i-mpki:u"),
            ],
        }
    }

    /// Makes counters for the program that this thread starts next.
    ///
    /// # Errors
    /// If the kernel refuses to open a counter.
    pub fn open(&self, filter: Filter) -> Result<Option<Counting>, Error> {
        if self.kind == Kind::None {
            return Ok(None);
        }
        Counting::open(self.kind, filter, true)
            .map(Some)
            .map_err(|e| reason(&e, "counters"))
    }
}

/// Returns the L1i misses of either mode.
fn misses() -> Cache {
    Cache {
        which: CacheId::L1I,
        operation: CacheOp::READ,
        result: CacheResult::MISS,
    }
}

fn builder<E: Event>(event: E, of_child: bool) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder.include_kernel();
    if of_child {
        builder.inherit(true);
    }
    builder
}

impl Counting {
    fn open(kind: Kind, filter: Filter, of_child: bool) -> io::Result<Self> {
        let mut counters = Vec::new();
        match kind {
            Kind::None => {}
            Kind::Frontend => {
                let events = topdown::events().ok_or(io::ErrorKind::Unsupported)?;
                let mut leader = builder(Raw::new(events.slots), of_child)
                    .pinned(true)
                    .enable_on_exec(of_child)
                    .build()?;
                let empty = builder(Raw::new(events.empty), of_child)
                    .enabled(true)
                    .build_with_group(&mut leader)?;
                counters.push(("slots", events.slots_each, leader));
                counters.push(("front-end-empty", 1.0, empty));
            }
            Kind::Software => {
                for (name, _, event, scale) in SOFTWARE {
                    let counter = builder(event, of_child).enable_on_exec(of_child).build()?;
                    counters.push((name, scale, counter));
                }
            }
            Kind::Hardware => {
                // A pinned counter is on the PMU all the time, or in an error
                // state.
                let mut leader = builder(Hardware::CPU_CYCLES, of_child)
                    .pinned(true)
                    .enable_on_exec(of_child)
                    .build()?;
                let instructions = builder(Hardware::INSTRUCTIONS, of_child)
                    .enabled(true)
                    .build_with_group(&mut leader)?;
                let name = match filter {
                    Filter::User => L1I_MISSES_USER,
                    Filter::Kernel => L1I_MISSES_KERNEL,
                };
                let missed = builder(misses(), of_child)
                    .enabled(true)
                    .exclude_kernel(filter == Filter::User)
                    .exclude_user(filter == Filter::Kernel)
                    .build_with_group(&mut leader)?;
                counters.push(("cycles", 1.0, leader));
                counters.push((INSTRUCTIONS, 1.0, instructions));
                counters.push((name, 1.0, missed));
            }
        }
        Ok(Self { counters })
    }

    /// Reads the counts when the program has ended.
    ///
    /// # Errors
    /// If one of them did not run all the time, or not at all.
    pub fn read(mut self) -> Result<Values, Error> {
        let mut figures = Values::new();
        for (name, scale, counter) in &mut self.counters {
            let read = counter.read_count_and_time().map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => Error::Usage(format!(
                    "{name} found no free counter on the PMU; something else counts (the NMI \
                     watchdog?)"
                )),
                _ => Error::Failed(format!("{name} cannot be read: {e}")),
            })?;
            if read.time_enabled == 0 {
                return Err(Error::Failed(format!("{name} was never enabled")));
            }
            if read.time_running != read.time_enabled {
                let share = read.time_running as f64 / read.time_enabled as f64;
                return Err(Error::Failed(format!(
                    "{name} ran for {:.1} % of the time",
                    100.0 * share
                )));
            }
            figures.insert((*name).into(), read.count as f64 * *scale);
        }
        derive(&mut figures);
        Ok(figures)
    }
}

/// Adds instructions per cycle, and misses per thousand instructions.
fn derive(figures: &mut Values) {
    let get = |figures: &Values, name: &str| figures.get(name).copied().filter(|x| *x > 0.0);
    if let (Some(slots), Some(empty)) = (get(figures, "slots"), get(figures, "front-end-empty")) {
        figures.insert("front-end-bound".into(), empty / slots);
    }
    let Some(instructions) = get(figures, INSTRUCTIONS) else {
        return;
    };
    if let Some(cycles) = get(figures, "cycles") {
        figures.insert("ipc".into(), instructions / cycles);
    }
    for mode in ["u", "k"] {
        if let Some(misses) = get(figures, &format!("l1i-misses:{mode}")) {
            figures.insert(format!("l1i-mpki:{mode}"), 1000.0 * misses / instructions);
        }
    }
}

/// Tests that a counter opens, and counts more for more work.
fn test(kind: Kind) -> io::Result<()> {
    for filter in [Filter::User, Filter::Kernel] {
        Counting::open(kind, filter, true)?;
    }
    let work = |rounds: u64| -> io::Result<u64> {
        let mut counter = match kind {
            Kind::Hardware => builder(Hardware::INSTRUCTIONS, false).build()?,
            _ => builder(Software::TASK_CLOCK, false).build()?,
        };
        counter.enable()?;
        let mut x = 1_u64;
        for i in 0..rounds {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005) ^ i);
        }
        counter.disable()?;
        counter.read()
    };
    let (some, many) = (work(20_000)?, work(2_000_000)?);
    // A hundred times the work; a counter that stands still, or counts
    // something else, does not see ten.
    if some == 0 || many < 10 * some {
        return Err(io::Error::other(format!(
            "a hundred times the work made {some} into {many}"
        )));
    }
    Ok(())
}

/// Returns the meaning of a refusal, and the remedy.
fn reason(e: &io::Error, what: &'static str) -> Error {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let set = paranoid.as_deref().map_or("unknown", str::trim);
            Error::Usage(format!(
                "There is no permission for {what}: kernel.perf_event_paranoid is {set}; 'sysctl \
                 kernel.perf_event_paranoid=1' as root allows them"
            ))
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Error::Usage(format!(
            "This machine has no {what} (no PMU, as in many virtual machines)"
        )),
        Some(libc::ENOSYS) => Error::Usage(format!(
            "This kernel has no {what} (perf_event_open is missing)"
        )),
        _ => Error::Usage(format!("There are no {what} to trust: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_metrics_are_those_of_the_report() {
        let mut figures: Values = [
            ("instructions", 5.86e9),
            ("cycles", 4.82e9),
            ("l1i-misses:k", 0.41e9),
        ]
        .map(|(n, v)| (n.to_owned(), v))
        .into();
        derive(&mut figures);
        assert!((figures["ipc"] - 1.2158).abs() < 1e-3);
        assert!((figures["l1i-mpki:k"] - 69.97).abs() < 0.01);
        assert!(!figures.contains_key("l1i-mpki:u"));
    }

    #[test]
    fn a_refusal_says_what_to_set() {
        let refused = |code| reason(&io::Error::from_raw_os_error(code), "hardware counters");
        let of = |code| refused(code).to_string();
        assert!(of(libc::EACCES).contains("sysctl kernel.perf_event_paranoid=1"));
        assert!(of(libc::ENOENT).contains("no PMU"));
    }

    #[test]
    fn software_events_follow_a_program_and_only_it() {
        if test(Kind::Software).is_err() {
            println!("skipped: software events cannot be counted here");
            return;
        }
        let counters = Counters {
            kind: Kind::Software,
            why: None,
        };
        let counting = counters.open(Filter::User).unwrap().unwrap();
        let status = std::process::Command::new("/bin/sh")
            .args([
                "-c",
                "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; true | cat",
            ])
            .status()
            .unwrap();
        assert!(status.success());
        let figures = counting.read().unwrap();
        assert!(figures["task-clock"] > 0.0);
        // Nothing was started: nothing was enabled.
        let idle = counters.open(Filter::User).unwrap().unwrap();
        let error = idle.read().unwrap_err().to_string();
        assert!(error.ends_with("was never enabled"), "{error}");
    }
}
