//! The machine's disk that may be overwritten, as its own system sees it.
//!
//! It only looks; the measured kernel looks again before it writes. A disk that is
//! in use must never get so far.

use crate::test_machine::home::Home;
use crate::test_machine::home::checks::check;
use locklab_host::error::Error;
use locklab_native::doctor::{Check, State};

const PART: &str = "A disk for fs-mark";

/// A disk that may be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    name: String,
    /// Holds what the report says of it.
    pub(crate) fact: String,
    /// Modules of the disk and its buses, the outermost bus last, and of XFS.
    pub(crate) drivers: Vec<String>,
}

impl Disk {
    /// Returns the disk with this serial number.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none, several, or one that is in use.
    pub(crate) fn find(home: &Home, serial: &str) -> Result<Self, Error> {
        let disks: Vec<(&str, &str, u64, &str)> = home
            .all("disk")
            .iter()
            .filter_map(|line| parts(line))
            .collect();
        let found: Vec<_> = disks.iter().filter(|disk| disk.3 == serial).collect();
        let (name, state, sectors) = match found.as_slice() {
            [(name, state, sectors, _)] => (*name, *state, *sectors),
            [] => {
                let known: Vec<String> = disks
                    .iter()
                    .map(|(name, _, _, serial)| format!("{serial} ({name})"))
                    .collect();
                return Err(Error::Usage(format!(
                    "no disk there has the serial number {serial}; {}",
                    match known.is_empty() {
                        true => "none has any".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    }
                )));
            }
            _ => {
                return Err(Error::Usage(format!(
                    "several disks there have the serial number {serial}"
                )));
            }
        };
        if let Some(why) = in_use(state) {
            return Err(Error::Usage(format!(
                "the disk {serial} ({name}) is not overwritten: {why}"
            )));
        }
        let drivers = home.all("disk-driver").iter();
        let mut drivers: Vec<String> = drivers
            .filter_map(|line| line.split_once(' '))
            .filter(|(disk, _)| *disk == name)
            .map(|(_, module)| module.to_owned())
            .collect();
        // XFS asks for its checksum by name, and nothing here loads it then.
        drivers.extend(["crc32c_generic", "xfs"].map(str::to_owned));
        Ok(Self {
            name: name.to_owned(),
            fact: format!("{serial} ({name}, {} MiB)", sectors / 2048),
            drivers,
        })
    }
}

/// Returns why a disk in this state is never overwritten, if so.
fn in_use(state: &str) -> Option<&'static str> {
    match state {
        "free" => None,
        "partitions" => Some("it has partitions"),
        "mounted" => Some("it is mounted, or swapped to"),
        _ => Some("it is part of another device"),
    }
}

/// Returns what the doctor says of the machine's disks: of the one with this serial number,
/// or of each if none is asked for.
pub(crate) fn checks(home: &Home, asked: Option<&str>) -> Vec<Check> {
    if let Some(serial) = asked {
        return match Disk::find(home, serial) {
            Ok(disk) => {
                let (state, what) = held(home, &disk.name);
                let found = format!("{}: {what}", disk.fact);
                vec![check(PART, "Scratch disk", state, found, EMPTY_IT)]
            }
            Err(why) => vec![check(
                PART,
                "Scratch disk",
                State::Missing,
                why.into(),
                ANOTHER,
            )],
        };
    }
    let disks = home.all("disk").iter().filter_map(|line| parts(line));
    let mut checks: Vec<Check> = disks
        .map(|(name, state, sectors, serial)| {
            let (state, what) = match in_use(state) {
                Some(why) => (State::Ok, format!("never overwritten: {why}")),
                None => held(home, name),
            };
            let found = format!("{serial}, {} MiB: {what}", sectors / 2048);
            check(PART, &format!("Disk {name}"), state, found, EMPTY_IT)
        })
        .collect();
    if checks.is_empty() {
        let found = "none has a serial number: fs-mark has a RAM disk";
        checks.push(check(PART, "Disks", State::Ok, found.into(), ""));
    }
    checks
}

const EMPTY_IT: &str = "if nothing on it is wanted, empty it by hand (wipefs -a, and dd if=/dev/zero \
                        of its first and last MiB)";
const ANOTHER: &str = "name another by [test_machine] scratch_disk and --scratch-disk";

/// Returns what is on a disk that nothing uses, by its first and last MiB.
fn held(home: &Home, disk: &str) -> (State, String) {
    let mut lines = home.all("disk-holds").iter();
    let holds = lines
        .find_map(|line| line.split_once(' ').filter(|(name, _)| *name == disk))
        .map(|(_, holds)| holds);
    match holds {
        Some("nothing") => (State::Ok, "empty; fs-mark may overwrite it".into()),
        Some("ours") => (
            State::Ok,
            "a file system of an earlier comparison; fs-mark may overwrite it".into(),
        ),
        Some(_) => (
            State::Limited,
            "something is on it, so it is not overwritten".into(),
        ),
        None => (
            State::Unknown,
            "what is on it could not be read; measured kernels look before they write".into(),
        ),
    }
}

/// Reads `NAME STATE SECTORS SERIAL`, where a serial number may have spaces.
fn parts(line: &str) -> Option<(&str, &str, u64, &str)> {
    let mut words = line.splitn(4, ' ');
    let (name, state) = (words.next()?, words.next()?);
    let sectors = words.next()?.parse().ok()?;
    Some((name, state, sectors, words.next()?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_says_what_each_disk_is_and_whether_it_may_be_overwritten() {
        let home = home(
            "disk vda mounted 131072 system\ndisk vdb free 2097152 S3EW-1\n\
             disk-holds vdb nothing\ndisk vdc free 4096 S3EW-2\ndisk-holds vdc data\n\
             disk vdd free 4096 S3EW-3\ndisk-holds vdd ours\ndisk vde free 4096 S3EW-4\n",
        );
        let found = |checks: Vec<Check>| -> Vec<(String, State, String)> {
            let one = |check: Check| (check.name, check.state, check.found);
            checks.into_iter().map(one).collect()
        };
        let all = found(checks(&home, None));
        assert_eq!(all.len(), 5);
        assert_eq!(
            all[0].2,
            "system, 64 MiB: never overwritten: it is mounted, or swapped to"
        );
        assert_eq!(all[1].0, "Disk vdb");
        assert_eq!(
            all[1].2,
            "S3EW-1, 1024 MiB: empty; fs-mark may overwrite it"
        );
        assert_eq!(all[2].1, State::Limited);
        assert!(all[3].2.contains("of an earlier comparison"));
        assert_eq!(all[4].1, State::Unknown);
        let one = checks(&home, Some("S3EW-2")).pop().unwrap();
        assert_eq!(
            one.found,
            "S3EW-2 (vdc, 2 MiB): something is on it, so it is not overwritten"
        );
        assert!(one.remedy.unwrap().contains("wipefs"));
        let none = checks(&home, Some("S3EW-9")).pop().unwrap();
        assert_eq!(none.state, State::Missing);
        let bare = checks(&Home::read("end yes\n"), None).pop().unwrap();
        assert!(bare.found.contains("RAM disk"));
    }

    fn home(disks: &str) -> Home {
        Home::read(&format!("{disks}disk-driver vdb virtio_blk\nend yes\n"))
    }

    #[test]
    fn a_disk_is_found_by_its_serial_number_only_if_it_is_free() {
        let disks = "disk vda mounted 131072 system\ndisk vdb free 2097152 S3EW NX0K\n";
        let disk = Disk::find(&home(disks), "S3EW NX0K").unwrap();
        assert_eq!(disk.fact, "S3EW NX0K (vdb, 1024 MiB)");
        assert_eq!(disk.drivers, ["virtio_blk", "crc32c_generic", "xfs"]);
        let why = |disks: &str, serial: &str| {
            let refused = Disk::find(&home(disks), serial).unwrap_err();
            refused.to_string()
        };
        assert!(why(disks, "system").contains("it is mounted"));
        assert!(why(disks, "vdb").ends_with("there are system (vda), S3EW NX0K (vdb)"));
        assert!(why("", "x").ends_with("none has any"));
        let twice = "disk sda free 4096 x\ndisk sdb free 4096 x\n";
        assert!(why(twice, "x").contains("several disks"));
        assert!(why("disk sda partitions 4096 x\n", "x").contains("partitions"));
        assert!(why("disk sda held 4096 x\n", "x").contains("another device"));
    }
}
