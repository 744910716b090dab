//! A whole recording.
//!
//! It must never panic: the file may be foreign, cut off or damaged.

mod head;
mod index;
mod info;
mod records;
mod windows;

pub use info::{Apart, Fault, InWindows, Info, Missing, Unreadable, is_crowded};
pub use records::{Otherwise, Records, Thread, Trace};

use crate::bytes::{self, Bytes};
use crate::header::FIRST;
use head::Head;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

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
