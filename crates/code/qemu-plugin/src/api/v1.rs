// SPDX-License-Identifier: GPL-2.0-or-later
//! API 1 and 2 (QEMU 4.2 to 9.0): an instruction's bytes are lent.

use std::ffi::c_void;

use super::Insn;

functions! {
    /// Holds the functions that changed after API 2.
    pub(super) struct Functions {
        fn qemu_plugin_insn_data(*const Insn) -> *const c_void;
    }
}

impl Functions {
    /// Copies the first bytes of the instruction.
    ///
    /// # Safety
    /// `insn` is alive and not shorter than `buffer`.
    pub(super) unsafe fn read(&self, insn: *const Insn, buffer: &mut [u8]) {
        // SAFETY: the caller's promise; QEMU lends the whole instruction.
        unsafe {
            let bytes = (self.qemu_plugin_insn_data)(insn).cast::<u8>();
            bytes.copy_to_nonoverlapping(buffer.as_mut_ptr(), buffer.len());
        }
    }
}
