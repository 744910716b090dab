// SPDX-License-Identifier: GPL-2.0-or-later
//! API 3 and later (from QEMU 9.1): an instruction's bytes are copied out.

use std::ffi::c_void;

use super::Insn;

functions! {
    /// Holds the functions that changed with API 3.
    pub(super) struct Functions {
        fn qemu_plugin_insn_data(*const Insn, *mut c_void, usize) -> usize;
    }
}

impl Functions {
    /// Copies the first bytes of the instruction.
    ///
    /// # Safety
    /// `insn` is alive.
    pub(super) unsafe fn read(&self, insn: *const Insn, buffer: &mut [u8]) {
        // SAFETY: QEMU writes at most the given number of bytes.
        unsafe {
            (self.qemu_plugin_insn_data)(insn, buffer.as_mut_ptr().cast(), buffer.len());
        }
    }
}
