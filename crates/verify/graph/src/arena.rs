//! Holds the memory of a test's allocations: at the same addresses in each execution. It
//! must never know who still uses it.

use crate::event::MAX_THREADS;

/// The bytes that each thread can allocate in one execution.
pub(crate) const ARENA: usize = 1 << 20;

/// The memory of allocations: each thread has the same in every execution.
#[derive(Default)]
pub(crate) struct Arenas {
    memory: Vec<Option<Box<[u64]>>>,
    used: [usize; MAX_THREADS],
}

impl Arenas {
    pub(crate) fn begin(&mut self) {
        self.used = [0; MAX_THREADS];
    }

    /// Returns the address of so many bytes, which hold nothing of use.
    pub(crate) fn allocate(&mut self, thread: usize, size: usize, align: usize) -> Option<u64> {
        if self.memory.len() <= thread {
            self.memory.resize_with(thread + 1, || None);
        }
        let arena = self.memory[thread].get_or_insert_with(|| vec![0; ARENA / 8].into());
        let base = arena.as_mut_ptr().addr();
        let start = (base + self.used[thread]).next_multiple_of(align.max(16)) - base;
        if start + size > ARENA {
            return None;
        }
        self.used[thread] = start + size.max(1);
        let words = start / 8..(start + size).div_ceil(8);
        arena[words].fill(0xa5a5_a5a5_a5a5_a5a5);
        Some((base + start) as u64)
    }
}
