// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of QEMU's plugin API that is used, declared from its
//! documentation. Functions are looked up in the QEMU that loads the plugin,
//! so one library serves every API version: what differs between versions is
//! in one file each (`api/v1.rs`, `api/v3.rs`), chosen by what is found. Must never
//! need what only new versions have, such as the guest's registers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// QEMU's number for a loaded plugin.
pub(crate) type Id = u64;

/// A block during its translation (`struct qemu_plugin_tb`).
#[repr(C)]
pub(crate) struct Tb([u8; 0]);

/// An instruction of a [`Tb`] (`struct qemu_plugin_insn`).
#[repr(C)]
pub(crate) struct Insn([u8; 0]);

/// Holds what QEMU reports about itself (`qemu_info_t`, as far as it is read).
#[repr(C)]
pub struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) api_min: c_int,
    pub(crate) api: c_int,
    pub(crate) system_emulation: bool,
}

/// Runs when a vCPU executes a block or an instruction.
pub(crate) type OnExec = extern "C" fn(vcpu: c_uint, userdata: *mut c_void);
/// Runs when a block is translated.
pub(crate) type OnTranslate = unsafe extern "C" fn(Id, *mut Tb);
/// Runs when a vCPU appears.
pub(crate) type OnVcpu = extern "C" fn(Id, vcpu: c_uint);
/// Runs when QEMU ends.
pub(crate) type OnExit = extern "C" fn(Id, *mut c_void);

/// "The callback reads no guest registers" (`QEMU_PLUGIN_CB_NO_REGS`).
const NO_REGS: c_int = 0;

/// Returns the function of this name, which ends with a null byte, or the name if there is none.
pub(crate) type Find<'a> = &'a dyn Fn(&'static str) -> Result<*mut c_void, &'static str>;

/// A struct of pointers to QEMU's functions under their own names, and a way
/// to find them.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        $visibility:vis struct $name:ident {
            $(fn $function:ident($($argument:ty),*) $(-> $returned:ty)?;)*
        }
    ) => {
        $(#[$doc])*
        $visibility struct $name {
            $($function: unsafe extern "C" fn($($argument),*) $(-> $returned)?,)*
        }

        impl $name {
            /// Finds the functions, or returns the name of a missing one.
            $visibility fn find(find: crate::api::Find<'_>) -> Result<Self, &'static str> {
                Ok($name {
                    $($function: {
                        let symbol = find(concat!(stringify!($function), "\0"))?;
                        // SAFETY: the documented type of this function.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $returned)?,
                            >(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

mod v1;
mod v3;

functions! {
    /// Holds the functions that are the same in every version.
    struct Common {
        fn qemu_plugin_register_vcpu_tb_trans_cb(Id, OnTranslate);
        fn qemu_plugin_register_vcpu_init_cb(Id, OnVcpu);
        fn qemu_plugin_register_atexit_cb(Id, OnExit, *mut c_void);
        fn qemu_plugin_register_vcpu_tb_exec_cb(*mut Tb, OnExec, c_int, *mut c_void);
        fn qemu_plugin_register_vcpu_insn_exec_cb(*mut Insn, OnExec, c_int, *mut c_void);
        fn qemu_plugin_tb_n_insns(*const Tb) -> usize;
        fn qemu_plugin_tb_get_insn(*const Tb, usize) -> *mut Insn;
        fn qemu_plugin_insn_vaddr(*const Insn) -> u64;
        fn qemu_plugin_insn_haddr(*const Insn) -> *mut c_void;
        fn qemu_plugin_insn_size(*const Insn) -> usize;
    }
}

/// Access to an instruction's bytes, which is not.
enum Bytes {
    Lent(v1::Functions),
    Copied(v3::Functions),
}

/// The QEMU that loaded the plugin.
pub(crate) struct Qemu {
    functions: Common,
    bytes: Bytes,
}

impl Qemu {
    /// Finds the functions of a QEMU with this API version.
    ///
    /// # Errors
    /// The name of a function that is missing.
    pub(crate) fn find(api: c_int, find: Find<'_>) -> Result<Self, &'static str> {
        let bytes = match api {
            ..3 => Bytes::Lent(v1::Functions::find(find)?),
            3.. => Bytes::Copied(v3::Functions::find(find)?),
        };
        Ok(Qemu {
            functions: Common::find(find)?,
            bytes,
        })
    }

    pub(crate) fn on_translate(&self, id: Id, run: OnTranslate) {
        // SAFETY: `id` is the plugin's own, `run` is static.
        unsafe { (self.functions.qemu_plugin_register_vcpu_tb_trans_cb)(id, run) }
    }

    pub(crate) fn on_vcpu_init(&self, id: Id, run: OnVcpu) {
        // SAFETY: as above.
        unsafe { (self.functions.qemu_plugin_register_vcpu_init_cb)(id, run) }
    }

    pub(crate) fn on_exit(&self, id: Id, run: OnExit) {
        // SAFETY: as above; `run` gets the null pointer and ignores it.
        unsafe { (self.functions.qemu_plugin_register_atexit_cb)(id, run, ptr::null_mut()) }
    }

    /// Returns a view of the block that `on_translate` was called with.
    ///
    /// # Safety
    /// `tb` is that block, and the view does not outlive the callback.
    pub(crate) unsafe fn block(&self, tb: *mut Tb) -> Translation<'_> {
        Translation { qemu: self, tb }
    }
}

/// A block that is being translated.
pub(crate) struct Translation<'a> {
    qemu: &'a Qemu,
    tb: *mut Tb,
}

impl Translation<'_> {
    pub(crate) fn len(&self) -> usize {
        // SAFETY: `tb` is alive (see `Qemu::block`).
        unsafe { (self.qemu.functions.qemu_plugin_tb_n_insns)(self.tb) }
    }

    pub(crate) fn instruction(&self, index: usize) -> Instruction<'_> {
        assert!(index < self.len());
        // SAFETY: `tb` is alive and has such an instruction.
        let insn = unsafe { (self.qemu.functions.qemu_plugin_tb_get_insn)(self.tb, index) };
        Instruction {
            qemu: self.qemu,
            insn,
        }
    }

    /// Registers `run` to be called with `userdata` whenever the block is
    /// executed.
    pub(crate) fn on_exec(&self, run: OnExec, userdata: u64) {
        let register = self.qemu.functions.qemu_plugin_register_vcpu_tb_exec_cb;
        // SAFETY: `tb` is alive; QEMU does not look into `userdata`.
        unsafe { register(self.tb, run, NO_REGS, userdata as *mut c_void) }
    }
}

/// An instruction of a block that is being translated.
pub(crate) struct Instruction<'a> {
    qemu: &'a Qemu,
    insn: *mut Insn,
}

impl Instruction<'_> {
    pub(crate) fn virtual_address(&self) -> u64 {
        // SAFETY: `insn` lives as long as its block.
        unsafe { (self.qemu.functions.qemu_plugin_insn_vaddr)(self.insn) }
    }

    /// Returns where the bytes lie in QEMU's own memory: for a whole machine, a
    /// stand-in for the physical address. `None` for code that is not in RAM.
    pub(crate) fn host_address(&self) -> Option<u64> {
        // SAFETY: as above.
        let address = unsafe { (self.qemu.functions.qemu_plugin_insn_haddr)(self.insn) };
        (!address.is_null()).then_some(address as u64)
    }

    pub(crate) fn size(&self) -> usize {
        // SAFETY: as above.
        unsafe { (self.qemu.functions.qemu_plugin_insn_size)(self.insn) }
    }

    /// Returns the instruction's bytes, in `buffer` (x86 has at most 15).
    pub(crate) fn bytes<'b>(&self, buffer: &'b mut [u8; 16]) -> &'b [u8] {
        let buffer = &mut buffer[..self.size().min(16)];
        // SAFETY: `insn` lives and has at least as many bytes as the buffer.
        unsafe {
            match &self.qemu.bytes {
                Bytes::Lent(functions) => functions.read(self.insn, buffer),
                Bytes::Copied(functions) => functions.read(self.insn, buffer),
            }
        }
        buffer
    }

    /// Registers `run` to be called with `userdata` before the instruction is
    /// executed.
    pub(crate) fn on_exec(&self, run: OnExec, userdata: u64) {
        let register = self.qemu.functions.qemu_plugin_register_vcpu_insn_exec_cb;
        // SAFETY: `insn` lives; QEMU does not look into `userdata`.
        unsafe { register(self.insn, run, NO_REGS, userdata as *mut c_void) }
    }
}

/// Returns a symbol of the running program, or its name when there is none.
pub(crate) fn exported(name: &'static str) -> Result<*mut c_void, &'static str> {
    let c_name = CStr::from_bytes_with_nul(name.as_bytes()).expect("ends with a null byte");
    // SAFETY: a valid string; looking up a symbol has no effect.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c_name.as_ptr()) };
    if symbol.is_null() {
        Err(name.trim_end_matches('\0'))
    } else {
        Ok(symbol)
    }
}

/// The API version that the plugin declares: QEMU reads it after loading the
/// library and before calling it, and refuses one out of its range.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = declare_version;

/// Declares the version of the QEMU that loaded the plugin: no version is accepted by every
/// QEMU.
extern "C" fn declare_version() {
    qemu_plugin_version.store(version(&exported), Relaxed);
}

/// Returns the API version to declare, determined by the functions that QEMU has.
fn version(find: Find<'_>) -> i32 {
    if find("qemu_plugin_set_pc\0").is_ok() {
        6 // QEMU 11
    } else if find("qemu_plugin_scoreboard_new\0").is_ok() {
        2 // QEMU 9 to 10.2
    } else {
        1 // to QEMU 8
    }
}

static QEMU: OnceLock<Qemu> = OnceLock::new();

/// Keeps the functions for the callbacks.
pub(crate) fn set(qemu: Qemu) -> &'static Qemu {
    QEMU.get_or_init(|| qemu)
}

/// Returns the functions, once the plugin is installed.
pub(crate) fn get() -> Option<&'static Qemu> {
    QEMU.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What QEMU 7.2 exports of what plugins may use: nothing of registers.
    const OLD: [&str; 11] = [
        "qemu_plugin_insn_data",
        "qemu_plugin_insn_haddr",
        "qemu_plugin_insn_size",
        "qemu_plugin_insn_vaddr",
        "qemu_plugin_register_atexit_cb",
        "qemu_plugin_register_vcpu_init_cb",
        "qemu_plugin_register_vcpu_insn_exec_cb",
        "qemu_plugin_register_vcpu_tb_exec_cb",
        "qemu_plugin_register_vcpu_tb_trans_cb",
        "qemu_plugin_tb_get_insn",
        "qemu_plugin_tb_n_insns",
    ];

    /// Looks a name up among those that a QEMU has.
    fn among(has: &[&str], name: &'static str) -> Result<*mut c_void, &'static str> {
        let name = name.trim_end_matches('\0');
        has.contains(&name)
            .then_some(ptr::dangling_mut::<c_void>())
            .ok_or(name)
    }

    #[test]
    fn a_qemu_without_the_register_interface_is_enough() {
        assert_eq!(version(&|name| among(&OLD, name)), 1);
        assert!(Qemu::find(1, &|name| among(&OLD, name)).is_ok());
    }

    #[test]
    fn newer_versions_are_told_by_their_functions() {
        let nine = [&OLD[..], &["qemu_plugin_scoreboard_new"]].concat();
        assert_eq!(version(&|name| among(&nine, name)), 2);
        let eleven = [&nine[..], &["qemu_plugin_set_pc"]].concat();
        assert_eq!(version(&|name| among(&eleven, name)), 6);
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        for missing in OLD {
            let rest: Vec<&str> = OLD.into_iter().filter(|name| *name != missing).collect();
            for api in [1, 4] {
                let found = Qemu::find(api, &|name| among(&rest, name));
                assert_eq!(found.err(), Some(missing), "API {api}");
            }
        }
    }
}
