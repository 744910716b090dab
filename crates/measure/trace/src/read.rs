//! A whole recording.
//!
//! It must never panic: the file may be foreign, cut off or damaged.

mod head;
mod index;
mod records;
mod windows;

pub use records::{Otherwise, Records};

use crate::bytes::{self, Bytes, Part};
use crate::decode::Position;
use crate::header::{FIRST, Source, Stopped, VERSION};
use head::Head;
use records::Events;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::sync::Arc;
use windows::{Windows, WithoutGaps};

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
        /// The share of one CPU that something has on every machine.
        const FEW: f64 = 0.1;
        /// The share of all CPUs from which on one that is free may not be found.
        const FULL: f64 = 0.9;
        let [program, others] = self.cpus_used?;
        let cpus = self.cpus()? as f64;
        (others > FEW && program + others > FULL * cpus).then_some(others)
    }
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

/// A thread of a recording.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number in the recording.
    pub number: u64,
    /// The number of its program image.
    pub image: u64,
    /// The time at which its image ended, and the nanoseconds for which it had had a
    /// CPU then, if it had not ended itself.
    pub ran: Option<(u64, u64)>,
    /// Says where its records are in the file, in order of time, with the time of the
    /// first.
    pieces: Vec<(u64, Range<usize>)>,
}

/// A recording that has been read.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Holds what the header says.
    pub info: Info,
    /// Holds what is not there.
    pub missing: Missing,
    /// The threads, by number.
    pub threads: Vec<Thread>,
    bytes: Bytes,
    /// The time at which it ended, with what is between windows.
    last: u64,
    windows: Option<Windows>,
    /// Says how else the records are seen, one way upon the other.
    otherwise: Vec<Arc<dyn Otherwise>>,
}

impl Trace {
    /// Reads a recording from the bytes of its file, as far as they go.
    ///
    /// # Errors
    /// If they are no recording, or one of another version.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Fault> {
        let bytes: Arc<[u8]> = bytes.into();
        let (head, length) = (Head::of(&bytes)?, bytes.len());
        let index = index::of(head.blocks(length), |range| {
            Cow::Borrowed(bytes.get(range).unwrap_or_default())
        });
        Ok(head.trace(length, index, |_| Bytes::Memory(Arc::clone(&bytes))))
    }

    /// Reads the recording in a file, as far as it goes. Its records stay there, and are read
    /// again whenever they are asked for.
    ///
    /// # Errors
    /// [`Unreadable`] if it cannot be read, is no recording, or is one of another version.
    pub fn open(mut file: File) -> Result<Self, Unreadable> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            // A pipe can be read once.
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(Self::read(bytes)?);
        }
        let mut first = Vec::new();
        (&mut file).take(FIRST as u64).read_to_end(&mut first)?;
        let head = Head::of(&first)?;
        let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        let index = index::of(head.blocks(length), |range| {
            Cow::Owned(bytes::read(&file, range))
        });
        Ok(head.trace(length, index, |payloads| {
            Bytes::File(Arc::new(file), Arc::new(payloads))
        }))
    }

    /// Returns the records of a thread in order, with their times in ticks, up to the end
    /// of the recording.
    #[must_use]
    pub fn events<'a>(&'a self, thread: &'a Thread) -> Records<'a> {
        let events = Events {
            trace: self,
            pieces: thread.pieces.iter(),
            part: Part::Here(&[]),
            position: Position::START,
        };
        let mut records = match &self.windows {
            Some(windows) => Records::Otherwise(Box::new(WithoutGaps::of(events, windows))),
            None => Records::Recorded(events),
        };
        for other in &self.otherwise {
            records = Records::Otherwise(other.records(thread, records));
        }
        records
    }

    /// Returns the nanoseconds of so many ticks.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.info.nanoseconds_per_tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;

    #[test]
    fn round_trips_say_whether_the_cpus_were_moved() {
        let read = |round_trips: [Option<f64>; 2]| {
            let header = Header::new(1.0, 1, 1, "a machine", "program");
            for (end, ns) in [false, true].into_iter().zip(round_trips) {
                if let Some(ns) = ns {
                    header.note_round_trip(end, ns);
                }
            }
            let bytes = crate::write::file(&header, &[], 2).unwrap();
            Trace::read(bytes).unwrap().info
        };
        let info = read([Some(50.0), Some(440.0)]);
        assert_eq!(info.round_trips, [Some(50.0), Some(440.0)]);
        assert_eq!(info.apart(), Apart::Moved([50.0, 440.0]));
        assert_eq!(read([None, None]).apart(), Apart::Unknown);
        // The command was killed before it could measure once more.
        assert_eq!(read([Some(50.0), None]).apart(), Apart::Stayed(50.0));
        assert_eq!(read([Some(60.0), Some(40.0)]).apart(), Apart::Stayed(50.0));
        assert_eq!(read([Some(0.0), Some(f64::NAN)]).apart(), Apart::Unknown);
    }

    #[test]
    fn the_name_of_a_machine_has_its_cpus() {
        let cpus = |machine| {
            let header = Header::new(1.0, 1, 1, machine, "program");
            let bytes = crate::write::file(&header, &[], 2).unwrap();
            Trace::read(bytes).unwrap().info.cpus()
        };
        assert_eq!(cpus("AMD EPYC, 1 socket, 1 core, 2 CPUs"), Some(2));
        assert_eq!(cpus("Neoverse, 64 CPUs, 2 sockets"), Some(64));
        assert_eq!(cpus("one CPU"), None);
        assert_eq!(cpus("a machine"), None);
    }

    #[test]
    fn others_share_the_machine_if_hardly_a_cpu_was_free() {
        let read = |machine, used: Option<(f64, f64)>| {
            let header = Header::new(1.0, 1, 1, machine, "program");
            if let Some((program, others)) = used {
                header.note_cpus_used(program, others);
            }
            let bytes = crate::write::file(&header, &[], 2).unwrap();
            Trace::read(bytes).unwrap().info.shared_with_others()
        };
        let two = "a maker's processor, 2 CPUs, KVM";
        assert_eq!(read(two, Some((1.1, 0.8))), Some(0.8));
        // As much as any system does beside.
        assert_eq!(read(two, Some((1.9, 0.05))), None);
        assert_eq!(read(two, Some((1.0, 0.5))), None);
        assert_eq!(read("64 CPUs", Some((8.0, 40.0))), None);
        assert_eq!(read("64 CPUs", Some((30.0, 33.0))), Some(33.0));
        // These are older recordings, and damaged ones.
        assert_eq!(read(two, None), None);
        assert_eq!(read(two, Some((f64::NAN, 2.0))), None);
        assert_eq!(read("a machine", Some((1.1, 0.8))), None);
    }
}
