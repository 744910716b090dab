//! The arguments of comparisons of locks, two or many, here or on a modelled
//! machine.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use locklab_host::error::Error;
use locklab_lab::list::Cpus;
use locklab_lab::settings::{Limit, refuse};
use locklab_lab::workload::check_readers;
use locklab_native::subject::{self, Subject};
use locklab_sim::Placement;
use locklab_workload::Mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a matrix on this machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On this machine")]
#[serde(default)]
pub(crate) struct NativeSettings {
    /// Time of all cells together, in seconds [default: 60; in a ranking 2 for
    /// each lock, but at least 10 and at most 60]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u32>,
    /// Stop after this many seconds, and report what was measured
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<Limit>,
    /// Measured part of a slice, in microseconds [default: found for each cell]
    #[arg(long, value_name = "US")]
    pub slice_us: Option<u32>,
    /// Code layout of all locks [default: drawn for each slice]
    #[arg(long, value_name = "N")]
    pub layout: Option<usize>,
    /// CPUs to pin to, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Cpus>,
    /// Use processes that share memory instead of threads
    #[arg(long)]
    pub processes: bool,
}

/// Settings of runs on a simulated machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On a modelled machine")]
#[serde(default)]
pub(crate) struct ModelledSettings {
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    // It is never refused, so it is not among what was given.
    #[serde(skip_serializing)]
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
    /// Which CPUs simulated threads get
    #[arg(long, value_name = "WHERE", value_parser = placement())]
    #[schemars(with = "Option<String>")]
    pub placement: Option<Placement>,
    /// Acquisitions of a simulated run, all threads together [default: as many
    /// as its precision requires]
    #[arg(long, value_name = "N")]
    pub acquisitions: Option<u64>,
}

/// Returns the placements, by name.
fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(Placement::ALL.map(|(name, _)| name))
        .try_map(|name| Placement::named(&name))
}

/// Says why settings of a simulation are refused where nothing is simulated.
pub(crate) const NOT_MODELLED: &str = "is for simulated machines; say which, with --on MACHINE";

impl ModelledSettings {
    /// Returns the modelled machine; `None` for this one. Settings that the other has
    /// are refused.
    ///
    /// # Errors
    /// [`Error::Usage`] with the first such setting.
    pub(crate) fn machine(&self, here: &NativeSettings) -> Result<Option<&str>, Error> {
        let machine = self.on.as_deref().filter(|machine| *machine != "native");
        match machine {
            Some(_) => refuse(here, "is for this machine; leave it out with --on")?,
            None => refuse(self, NOT_MODELLED)?,
        }
        Ok(machine)
    }
}

/// Returns the number of threads to simulate on. The results do not depend on it.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Checks that readers share one of these locks, where `mix` has readers.
///
/// # Errors
/// [`Error::Usage`] if they share none.
pub(crate) fn check_shared<'a>(
    mix: &Mix,
    locks: impl Iterator<Item = &'a Subject>,
) -> Result<(), Error> {
    let all = subject::all();
    let able: Vec<&str> = all
        .iter()
        .filter(|subject| subject.info.readers_share)
        .map(|subject| subject.info.name)
        .collect();
    let shared = locks.map(|lock| lock.info.readers_share);
    check_readers(mix, shared, &able)
}
