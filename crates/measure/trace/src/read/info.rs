//! What a recording says of itself, and why a file is none or lacks something.
//!
//! Must never read a record.

use crate::header::{Source, Stopped, VERSION};
use std::fmt;
use std::io;

/// Says why a file cannot be read as a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is something else.
    Foreign,
    /// It ends before its first record.
    Short,
    /// Another version of Locklab wrote it, in this version of the format.
    Version(u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(f, "it is no recording of 'locklab record'"),
            Self::Short => write!(f, "it is cut off before its first record"),
            Self::Version(found) => write!(
                f,
                "it is a recording of format {found}, and this locklab reads format {VERSION}: \
                 record again, or use the locklab that recorded it"
            ),
        }
    }
}

/// Says why a file cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The system does not let it be read.
    System(io::Error),
    /// It cannot be read as a recording.
    Fault(Fault),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "cannot be read: {error}"),
            Self::Fault(fault) => write!(f, "{fault}"),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Describes what the header says.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Nanoseconds in a tick.
    pub nanoseconds_per_tick: f64,
    /// The time at which the recording began, in ticks.
    pub began: u64,
    /// The time at which it ended, in ticks: at its stop, or at its last record.
    pub ended: u64,
    /// Says why the recording ended.
    pub stopped: Stopped,
    /// Says whose locks were recorded, and by what.
    pub source: Source,
    /// Number of program images that were recorded.
    pub images: u32,
    /// The name of the machine that recorded, with its processor.
    pub machine: String,
    /// The command line of the program.
    pub command: String,
    /// The folder in which the program was started; empty if that is not known.
    pub folder: String,
    /// Holds what a round trip between two of the machine's CPUs took when the recording
    /// began and when it ended, in nanoseconds, where that is known.
    pub round_trips: [Option<f64>; 2],
    /// Counts how many CPUs the program and how many others had on average, if that is
    /// known.
    pub cpus_used: Option<[f64; 2]>,
    /// Says in which part of the time all operations were recorded, if not always. The times
    /// above are without the rest.
    pub windows: Option<InWindows>,
}

/// Describes a recording in windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InWindows {
    /// The number of windows.
    pub count: usize,
    /// The part of the time that they have.
    pub share: f64,
}

/// Says how far apart a machine's CPUs were: the round trip of a cache line between two,
/// in nanoseconds. The host of a virtual machine moves them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Apart {
    /// It was not measured.
    Unknown,
    /// They are so far apart, at two times.
    Stayed(f64),
    /// They are at first as far apart as the one, and later as the other.
    Moved([f64; 2]),
}

impl Apart {
    /// Round trips that differ by more are of CPUs in other places.
    const SAME: f64 = 1.6;

    /// Returns what was measured at two times, or at one of them.
    #[must_use]
    pub fn of(round_trips: [Option<f64>; 2]) -> Self {
        match round_trips {
            [None, None] => Self::Unknown,
            [Some(one), None] | [None, Some(one)] => Self::Stayed(one),
            [Some(one), Some(two)] if one > Self::SAME * two || two > Self::SAME * one => {
                Self::Moved([one, two])
            }
            [Some(one), Some(two)] => Self::Stayed((one + two) / 2.0),
        }
    }
}

impl Info {
    /// Returns how far apart the machine's CPUs were while it recorded.
    #[must_use]
    pub fn apart(&self) -> Apart {
        Apart::of(self.round_trips)
    }

    /// Returns the number of CPUs in the name of the machine that recorded.
    #[must_use]
    pub fn cpus(&self) -> Option<usize> {
        let mut words = self.machine.split([' ', ',']).rev();
        while let Some(word) = words.next() {
            if matches!(word, "CPU" | "CPUs") {
                return words.next()?.parse().ok().filter(|&cpus| cpus > 0);
            }
        }
        None
    }

    /// Returns how many CPUs others had, if the program had to share the machine's with
    /// them: so many that hardly any was free.
    #[must_use]
    pub fn shared_with_others(&self) -> Option<f64> {
        let used = self.cpus_used?;
        is_crowded(used, self.cpus()?).then_some(used[1])
    }
}

/// Returns whether a program that used so many CPUs, beside others, had to share the machine's
/// with them.
#[must_use]
pub fn is_crowded([program, others]: [f64; 2], cpus: usize) -> bool {
    /// The share of one CPU that something has on every machine.
    const FEW: f64 = 0.1;
    /// The share of all CPUs from which on one that is free may not be found.
    const FULL: f64 = 0.9;
    others > FEW && program + others > FULL * cpus as f64
}

/// Describes what a file lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Number of blocks that were claimed and are not there, or in part: the
    /// file is cut off.
    pub blocks: u32,
    /// Number of blocks that end in bytes that are no record.
    pub damaged: u32,
}
