//! Simulated memory outside the arena, for a lock that is not of Rust.

use crate::arena::LINE;
use std::ops::Range;

/// Bytes outside the arena that are simulated memory too.
#[derive(Clone, Debug)]
pub struct Region {
    /// Addresses; the first is that of a cache line.
    pub addresses: Range<usize>,
    /// Descriptions of what lies in it: `lock`, `context of CPU 3`.
    pub labels: Vec<(Range<usize>, String)>,
}

impl Region {
    /// Returns a description of the object at an address: `lock+4`.
    pub(crate) fn describe(&self, address: usize) -> String {
        let at = |(range, _): &&(Range<usize>, String)| range.contains(&address);
        match self.labels.iter().find(at) {
            Some((range, label)) if range.start == address => label.clone(),
            Some((range, label)) => format!("{label}+{}", address - range.start),
            None => format!("{address:#x}"),
        }
    }

    /// Returns a description of the object in the line that begins at an address.
    pub(crate) fn describe_line(&self, start: usize) -> String {
        match self.object_of_line(start) {
            Some((label, _)) => label,
            None => format!("the line at {start:#x}"),
        }
    }

    /// Returns the description of the object that lies there, and the index of the line in it; nothing where no object is known.
    pub(crate) fn object_of_line(&self, start: usize) -> Option<(String, usize)> {
        let within =
            |(range, _): &&(Range<usize>, String)| range.start < start + LINE && start < range.end;
        let (range, label) = self.labels.iter().find(within)?;
        Some((label.clone(), start.saturating_sub(range.start) / LINE))
    }
}

/// The memory of a lock that does not live in its Rust type alone.
#[derive(Default)]
pub struct Memory<'a> {
    /// Disjoint regions.
    pub regions: Vec<Region>,
    /// The source line of a site: `mylock.c:12`.
    pub place_of: Option<&'a dyn Fn(usize) -> Option<String>>,
}
