//! Options of a matrix that hold for one kind of machine only.

use crate::list::Lengths;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of a matrix on this machine.
#[derive(Debug, Args)]
pub struct NativeArgs {
    /// Time of all cells together, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u32>,
    /// Stop after this many seconds, and report what was measured
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u32>,
    /// Measured part of a slice, in microseconds [default: found for each cell]
    #[arg(long, value_name = "US")]
    pub slice_us: Option<u32>,
    /// Code layout of both locks [default: drawn for each block of slices]
    #[arg(long, value_name = "N")]
    pub layout: Option<usize>,
    /// CPUs to pin to, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Lengths>,
    /// Unit of lengths: n + 1 units of about 15 cycles, or nanoseconds
    #[arg(long, value_enum)]
    pub unit: Option<UnitArg>,
    /// Use processes that share memory instead of threads
    #[arg(long)]
    pub processes: bool,
}

/// `--unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// n means n + 1 units of about 15 cycles
    Units,
    /// Nanoseconds, by a calibration at start
    Ns,
}

impl NativeArgs {
    /// The first option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.time.is_some(), "--time"),
            (self.time_limit.is_some(), "--time-limit"),
            (self.slice_us.is_some(), "--slice-us"),
            (self.layout.is_some(), "--layout"),
            (self.pin.is_some(), "--pin"),
            (self.unit.is_some(), "--unit"),
            (self.processes, "--processes"),
        ];
        all.into_iter()
            .find_map(|(given, name)| given.then_some(name))
    }
}

/// Options of a simulated machine.
#[derive(Debug, Args)]
pub struct SimulatedArgs {
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
    /// CPUs that simulated threads get
    #[arg(long, value_name = "WHERE", value_parser = ["compact", "spread", "random", "numbered"])]
    pub placement: Option<String>,
    /// Acquisitions of a simulated run, all threads together [default: as many
    /// as its precision requires]
    #[arg(long, value_name = "N")]
    pub acquisitions: Option<u64>,
    /// Show which of the model's assumptions a simulated ratio depends on
    #[arg(long)]
    pub band: bool,
    /// Write a trace of a short simulated run, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

impl SimulatedArgs {
    /// The first option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.vcpus.is_some(), "--vcpus"),
            (self.physical.is_some(), "--physical"),
            (self.placement.is_some(), "--placement"),
            (self.acquisitions.is_some(), "--acquisitions"),
            (self.trace.is_some(), "--trace"),
            (self.band, "--band"),
        ];
        all.into_iter()
            .find_map(|(given, name)| given.then_some(name))
    }
}
