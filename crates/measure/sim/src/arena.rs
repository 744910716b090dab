//! The memory that simulated CPUs share.
//!
//! Locks, contexts, queue nodes and buffers are placed here, so that their
//! real layout decides which of them share a cache line. Every object starts
//! on a line of its own and keeps a label for reports. The arena never frees
//! one object, and never runs its destructor: all go with the arena.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ops::Range;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

#[repr(C, align(64))]
struct Memory(UnsafeCell<[u8; LINE]>);

/// Line-aligned memory with labels.
pub(crate) struct Arena {
    memory: Box<[Memory]>,
    used: Cell<usize>,
    labels: RefCell<Vec<(Range<usize>, String)>>,
}

impl Arena {
    /// Makes an arena of `lines` lines.
    pub(crate) fn new(lines: usize) -> Self {
        Self {
            memory: (0..lines)
                .map(|_| Memory(UnsafeCell::new([0; LINE])))
                .collect(),
            used: Cell::new(0),
            labels: RefCell::new(Vec::new()),
        }
    }

    /// Returns the number of lines that an object of type `T` occupies.
    pub(crate) const fn lines_for<T>() -> usize {
        size_of::<T>().div_ceil(LINE)
    }

    /// Returns the address of the first byte.
    pub(crate) fn base(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.memory.len()
    }

    /// Moves `value` to a line of its own.
    ///
    /// # Panics
    /// If the arena, whose size the caller computed, is full. A type that wants more
    /// than a line's alignment does not compile.
    pub(crate) fn place<T>(&self, label: impl Into<String>, value: T) -> &T {
        const { assert!(align_of::<T>() <= LINE) };
        let place = self.reserve(label.into(), size_of::<T>()).cast::<T>();
        // SAFETY: in bounds (asserted), aligned, inside `UnsafeCell`s that
        // were not handed out before.
        unsafe {
            place.write(value);
            &*place
        }
    }

    /// Reserves lines for an object of `size` bytes, and returns where they begin.
    /// Apart from [`Arena::place`], because that is compiled for each type of each lock.
    fn reserve(&self, label: String, size: usize) -> *mut u8 {
        let start = self.used.get();
        let lines = size.div_ceil(LINE);
        assert!(start + lines <= self.memory.len(), "the arena is full");
        self.used.set(start + lines);
        if lines > 0 {
            let bytes = start * LINE..start * LINE + size;
            self.labels.borrow_mut().push((bytes, label));
        }
        // From the pointer to the whole, so that it may reach every line.
        let whole = self.memory.as_ptr().cast_mut();
        whole.wrapping_add(start).cast::<u8>()
    }

    /// Returns a description of the object in a line: `lock`.
    pub(crate) fn describe_line(&self, line: usize) -> String {
        self.object_of_line(line).0
    }

    /// Returns a description of the object in a line, and which of its lines that is.
    pub(crate) fn object_of_line(&self, line: usize) -> (String, usize) {
        let start = line * LINE;
        let labels = self.labels.borrow();
        let found = labels
            .iter()
            .find(|(range, _)| range.start < start + LINE && start < range.end);
        match found {
            Some((range, label)) => (label.clone(), line - range.start / LINE),
            None => (format!("line {line}"), 0),
        }
    }

    /// Returns a description of the object at an address: `lock+4`.
    pub(crate) fn describe(&self, address: usize) -> String {
        let offset = address.wrapping_sub(self.base());
        for (range, label) in self.labels.borrow().iter() {
            if range.contains(&offset) {
                return match offset - range.start {
                    0 => label.clone(),
                    within => format!("{label}+{within}"),
                };
            }
        }
        format!("an address outside simulated memory ({address:#x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_lines_and_labels() {
        let arena = Arena::new(4);
        let a = arena.place("a", 1u32);
        let b = arena.place("b", [2u64; 9]);
        assert_eq!(std::ptr::from_ref(a) as usize, arena.base());
        assert_eq!(std::ptr::from_ref(b) as usize, arena.base() + LINE);
        assert_eq!(arena.describe(arena.base() + LINE + 8), "b+8");
        assert!(arena.describe(1).starts_with("an address outside"));
    }
}
