// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts how often each block was executed while it was measured. The hot-text
//! footprint is made of that.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::output;

/// A counter for each block, by its address, size and instructions.
#[derive(Default)]
pub(crate) struct Hot {
    blocks: BTreeMap<(u64, u64, usize), &'static AtomicU64>,
}

impl Hot {
    /// Returns the counter of a block, the same one when it is translated again.
    /// All vCPUs share it; it is added to atomically.
    pub(crate) fn counter(
        &mut self,
        address: u64,
        bytes: u64,
        instructions: usize,
    ) -> &'static AtomicU64 {
        self.blocks
            .entry((address, bytes, instructions))
            .or_insert_with(|| Box::leak(Box::default()))
    }

    /// Writes the blocks that were executed, as CSV in the order of their
    /// addresses.
    ///
    /// # Errors
    /// A message for the user when the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let mut csv = String::from("address,bytes,instructions,executions\n");
        for ((address, bytes, instructions), executions) in &self.blocks {
            let executions = executions.load(Relaxed);
            if executions > 0 {
                writeln!(csv, "{address:#x},{bytes},{instructions},{executions}")
                    .expect("a string takes any text");
            }
        }
        output::replace(path, &csv)
    }
}
