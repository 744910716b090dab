//! Follows what part of which file is mapped where, in each process.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A mapped part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Offset in the file of the first address.
    pub(crate) offset: u64,
    pub(crate) path: Arc<PathBuf>,
}

/// The mappings of a process, by their first addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space(BTreeMap<u64, Mapping>);

impl Space {
    /// Adds a mapping in place of what is there.
    pub(crate) fn map(&mut self, mapping: Mapping) {
        let (from, to) = (mapping.from, mapping.to);
        self.0
            .retain(|_, other| other.to <= from || other.from >= to);
        self.0.insert(from, mapping);
    }

    /// Returns the mapping of an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.0.range(..=address).next_back()?;
        (address < mapping.to).then_some(mapping)
    }

    pub(crate) fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.0.values()
    }
}

/// The spaces of all processes, as the records change them.
#[derive(Debug, Default)]
pub(crate) struct Spaces(HashMap<u32, Space>);

impl Spaces {
    pub(crate) fn of(&mut self, process: u32) -> &mut Space {
        self.0.entry(process).or_default()
    }

    /// Gives a fork what its parent has.
    pub(crate) fn forked(&mut self, parent: u32, process: u32) {
        if let Some(space) = self.0.get(&parent).cloned() {
            self.0.insert(process, space);
        }
    }

    /// Empties the addresses of a process with a new image.
    pub(crate) fn exec(&mut self, process: u32) {
        self.0.remove(&process);
    }
}

/// Returns what can be run of a process that runs now, from `/proc`.
pub(crate) fn mapped_now(process: u32) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines().filter_map(line).collect()
}

/// Reads `FROM-TO r-xp OFFSET DEVICE INODE  PATH`.
fn line(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    if !words.next()?.contains('x') {
        return None;
    }
    let offset = number(words.next()?)?;
    // The path may have spaces, and begins at the first slash.
    let path = &line[line.find('/')?..];
    Some(Mapping {
        from: number(from)?,
        to: number(to)?,
        offset,
        path: Arc::new(PathBuf::from(path)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(from: u64, to: u64, path: &str) -> Mapping {
        Mapping {
            from,
            to,
            offset: 0,
            path: Arc::new(path.into()),
        }
    }

    #[test]
    fn a_new_mapping_replaces_what_is_under_it() {
        let mut space = Space::default();
        space.map(mapping(0x1000, 0x3000, "/a"));
        space.map(mapping(0x5000, 0x6000, "/b"));
        assert!(space.find(0x2fff).is_some());
        space.map(mapping(0x2000, 0x4000, "/c"));
        assert!(space.find(0x1800).is_none());
        assert_eq!(**space.find(0x2000).unwrap().path, *"/c");
        assert!(space.find(0x4000).is_none());
        assert!(space.find(0x5fff).is_some());
    }

    #[test]
    fn a_line_of_proc_is_read() {
        let text = "7f00-8f00 r-xp 00001000 fe:00 12   /usr/lib/lib a.so";
        let read = line(text).unwrap();
        assert_eq!(*read.path, PathBuf::from("/usr/lib/lib a.so"));
        assert_eq!((read.from, read.to, read.offset), (0x7f00, 0x8f00, 0x1000));
        assert!(line("7f00-8f00 rw-p 00001000 fe:00 12   /x").is_none());
        assert!(line("7f00-8f00 r-xp 00000000 00:00 0").is_none());
    }
}
