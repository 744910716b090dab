//! Finds the line of an address, and what lies there.
//!
//! Only addresses: the state of a line is in `line`.

use crate::arena::{Arena, LINE};
use crate::region::Region;
use std::cell::RefCell;

/// Lines of a CPU's stack, from its beginning, that are simulated memory.
const STACK_LINES: usize = 32;

/// All memory of a simulation, line by line: the arena, then the stacks, then
/// the regions.
pub(crate) struct Memory {
    base: usize,
    pub(crate) arena: Arena,
    cpus: usize,
    /// Simulated memory outside the arena, each with its first line.
    regions: Box<[(Region, usize)]>,
    /// Says where each CPU's stack begins (its highest address), in order.
    pub(crate) stacks: RefCell<Vec<(usize, usize)>>,
}

impl Memory {
    /// Returns the memory of this many CPUs, with this many lines in its arena, and
    /// the number of all its lines.
    pub(crate) fn new(lines: usize, cpus: usize, regions: Vec<Region>) -> (Self, usize) {
        let arena = Arena::new(lines);
        let mut lines = arena.lines() + cpus * STACK_LINES;
        let regions = regions
            .into_iter()
            .map(|region| {
                let first = lines;
                lines += region.addresses.len().div_ceil(LINE);
                (region, first)
            })
            .collect();
        let memory = Self {
            base: arena.base(),
            arena,
            cpus,
            regions,
            stacks: RefCell::new(Vec::new()),
        };
        (memory, lines)
    }

    /// Returns the line of an address in the arena.
    #[inline(always)]
    pub(crate) fn line_in_arena(&self, address: usize) -> Option<usize> {
        let index = address.wrapping_sub(self.base) / LINE;
        (index < self.arena.lines()).then_some(index)
    }

    /// Returns the line of an address, if it is simulated memory.
    pub(crate) fn line_at(&self, address: usize) -> Option<usize> {
        self.line_in_arena(address)
            .or_else(|| self.line_in_region(address))
            .or_else(|| self.line_on_stack(address))
    }

    /// Returns the place of an address in simulated memory, which is the same in every run.
    pub(crate) fn place_of(&self, address: usize) -> usize {
        self.line_at(address).unwrap_or(0) * LINE + address % LINE
    }

    fn line_in_region(&self, address: usize) -> Option<usize> {
        let (region, first) = self
            .regions
            .iter()
            .find(|(region, _)| region.addresses.contains(&address))?;
        Some(first + (address - region.addresses.start) / LINE)
    }

    /// Returns the line of an address on a stack. A lock may keep a waiter's node on
    /// the waiter's stack, whose outermost part is simulated memory too.
    fn line_on_stack(&self, address: usize) -> Option<usize> {
        let stacks = self.stacks.borrow();
        let above = stacks.partition_point(|&(base, _)| base <= address);
        let &(base, cpu) = stacks.get(above)?;
        let depth = (base - 1 - address) / LINE;
        (depth < STACK_LINES).then(|| self.arena.lines() + cpu * STACK_LINES + depth)
    }

    /// Returns a description of what lies at an address.
    pub(crate) fn describe(&self, address: usize) -> String {
        if let Some(line) = self.line_in_region(address) {
            return self.region_of(line).0.describe(address);
        }
        let stacks = self.stacks.borrow();
        let above = stacks.partition_point(|&(base, _)| base <= address);
        match stacks.get(above) {
            Some(&(base, cpu)) if base - address <= STACK_LINES * LINE => {
                format!("stack of CPU {cpu}")
            }
            _ => self.arena.describe(address),
        }
    }

    /// Returns the region of a line that is in one.
    fn region_of(&self, line: usize) -> &(Region, usize) {
        let after = self.regions.partition_point(|&(_, first)| first <= line);
        &self.regions[after - 1]
    }

    /// Returns a description of what lies in a line, and which of its lines that is. A stack is
    /// as one line: which of them a frame has differs from build to build of this program.
    pub(crate) fn object_of_line(&self, line: usize) -> (String, usize) {
        let stacks = self.arena.lines();
        if line < stacks {
            return self.arena.object_of_line(line);
        }
        if line < stacks + self.cpus * STACK_LINES {
            return (self.describe_line(line), 0);
        }
        let (region, first) = self.region_of(line);
        let object = region.object_of_line(region.addresses.start + (line - first) * LINE);
        object.unwrap_or_else(|| ("a region".into(), line - first))
    }

    /// Returns a description of what lies in a line.
    pub(crate) fn describe_line(&self, line: usize) -> String {
        if line >= self.arena.lines() + self.cpus * STACK_LINES {
            let (region, first) = self.region_of(line);
            return region.describe_line(region.addresses.start + (line - first) * LINE);
        }
        match line.checked_sub(self.arena.lines()) {
            Some(stack) => format!("stack of CPU {}", stack / STACK_LINES),
            None => self.arena.describe_line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_by_what_lies_in_it_wherever_that_is() {
        #[repr(align(64))]
        struct Place([u8; 2 * LINE]);
        let place = Place([0; 2 * LINE]);
        let start = place.0.as_ptr() as usize;
        let region = Region {
            addresses: start..start + 2 * LINE,
            labels: vec![(start..start + 2 * LINE, "lock".into())],
        };
        let (memory, lines) = Memory::new(2, 2, vec![region]);
        memory.arena.place("lock", [0_u8; 2 * LINE]);
        let objects: Vec<_> = (0..lines).map(|line| memory.object_of_line(line)).collect();
        assert_eq!(objects[..2], [("lock".into(), 0), ("lock".into(), 1)]);
        assert_eq!(objects[lines - 2..], objects[..2]);
        let (first, second) = objects[2..lines - 2].split_at(STACK_LINES);
        assert!(first.iter().all(|object| *object == first[0]));
        assert!(second.iter().all(|object| *object == second[0]));
        assert_ne!(first[0], second[0]);
    }
}
