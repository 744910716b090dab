//! The machine's disk that may be overwritten, as its own system sees it.
//!
//! It only looks; the measured kernel looks again before it writes. A disk that is
//! in use must never get so far.

use crate::home::Home;

/// A disk that may be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// What the report says of it.
    pub(crate) fact: String,
    /// Modules of the disk and its buses, the outermost bus last, and of XFS.
    pub(crate) drivers: Vec<String>,
}

impl Disk {
    /// The disk with this serial number.
    ///
    /// # Errors
    /// If there is none, several, or one that is in use.
    pub(crate) fn find(home: &Home, serial: &str) -> Result<Self, String> {
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
                return Err(format!(
                    "no disk there has the serial number {serial}; {}",
                    match known.is_empty() {
                        true => "none has any".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    }
                ));
            }
            _ => {
                return Err(format!(
                    "several disks there have the serial number {serial}"
                ));
            }
        };
        let in_use = match state {
            "free" => None,
            "partitions" => Some("it has partitions"),
            "mounted" => Some("it is mounted, or swapped to"),
            _ => Some("it is part of another device"),
        };
        if let Some(why) = in_use {
            return Err(format!(
                "the disk {serial} ({name}) is not overwritten: {why}"
            ));
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
            fact: format!("{serial} ({name}, {} MiB)", sectors / 2048),
            drivers,
        })
    }
}

/// `NAME STATE SECTORS SERIAL`, where a serial number may have spaces.
fn parts(line: &str) -> Option<(&str, &str, u64, &str)> {
    let mut words = line.splitn(4, ' ');
    let (name, state) = (words.next()?, words.next()?);
    let sectors = words.next()?.parse().ok()?;
    Some((name, state, sectors, words.next()?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(disks: &str) -> Home {
        Home::read(&format!("{disks}disk-driver vdb virtio_blk\nend yes\n"))
    }

    #[test]
    fn a_disk_is_found_by_its_serial_number_only_if_it_is_free() {
        let disks = "disk vda mounted 131072 system\ndisk vdb free 2097152 S3EW NX0K\n";
        let disk = Disk::find(&home(disks), "S3EW NX0K").unwrap();
        assert_eq!(disk.fact, "S3EW NX0K (vdb, 1024 MiB)");
        assert_eq!(disk.drivers, ["virtio_blk", "crc32c_generic", "xfs"]);
        let why = |disks: &str, serial: &str| Disk::find(&home(disks), serial).unwrap_err();
        assert!(why(disks, "system").contains("it is mounted"));
        assert!(why(disks, "vdb").ends_with("there are system (vda), S3EW NX0K (vdb)"));
        assert!(why("", "x").ends_with("none has any"));
        let twice = "disk sda free 4096 x\ndisk sdb free 4096 x\n";
        assert!(why(twice, "x").contains("several disks"));
        assert!(why("disk sda partitions 4096 x\n", "x").contains("partitions"));
        assert!(why("disk sda held 4096 x\n", "x").contains("another device"));
    }
}
