// SPDX-License-Identifier: GPL-2.0-or-later
//! A TCG plugin for QEMU that counts instructions and, with the model of
//! `locklab-frontend::icache`, fetches and misses of the L1 instruction cache, or, with that of
//! `locklab-frontend`, what the whole front end of a processor loses. Its
//! README describes how to run it and its limits.
//!
//! It only watches: nothing here may change what the guest does, print
//! anything but errors, or slow a block down by more than one callback.

mod api;
mod arguments;
mod hot;
mod output;
mod report;
mod sampling;
mod seen;
mod session;
mod sites;
mod translate;
mod vcpu;
mod x86;

use std::ffi::{CStr, c_char, c_int};
use std::fs;

use api::{Id, Info, Qemu};
use arguments::Arguments;
use report::Target;

/// Is called by QEMU when it has loaded the plugin; QEMU exits if it returns
/// anything but 0.
///
/// # Safety
/// For QEMU only: `info` is its description of itself, `argv` its `argc`
/// arguments for the plugin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (info, arguments) = unsafe {
        let argv = (0..argc as usize).map(|index| *argv.add(index));
        (
            &*info,
            argv.map(|argument| CStr::from_ptr(argument).to_str())
                .collect::<Vec<_>>(),
        )
    };
    match install(id, info, arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("locklab: {error}");
            1
        }
    }
}

fn install(
    id: Id,
    info: &Info,
    arguments: Vec<Result<&str, std::str::Utf8Error>>,
) -> Result<(), String> {
    let arguments: Result<Vec<_>, _> = arguments.into_iter().collect();
    let arguments = arguments.map_err(|_| "the plugin's arguments are not UTF-8".to_string())?;
    let arguments = Arguments::parse(arguments, info.system_emulation)?;
    // SAFETY: QEMU gives a string that lives during the call.
    let architecture = unsafe { CStr::from_ptr(info.target_name) }
        .to_string_lossy()
        .into_owned();
    if !matches!(&*architecture, "x86_64" | "i386") {
        return Err(format!(
            "the guest's architecture is {architecture}, but only x86_64 and i386 are modelled"
        ));
    }
    let qemu = Qemu::find(info.api, &api::exported).map_err(|missing| {
        format!(
            "this QEMU (plugin API {}, oldest {}) has no {missing}; \
             use a version that the plugin was tested with: 7.2 or 10.0",
            info.api, info.api_min
        )
    })?;
    // An empty report until the end: the path is known to be good, and what
    // an earlier run left is not taken for this one's.
    for path in [
        Some(&arguments.out),
        arguments.hot.as_ref(),
        arguments.sites.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        fs::write(path, "").map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }

    let target = Target {
        architecture,
        system: info.system_emulation,
        plugin_api: info.api,
    };
    session::start(arguments, target);
    let qemu = api::set(qemu);
    qemu.on_vcpu_init(id, vcpu::on_init);
    qemu.on_translate(id, translate::on_translate);
    qemu.on_exit(id, session::on_exit);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_that_lacks_a_function_is_one_sentence() {
        // Nothing here exports a function of QEMU.
        let info = Info {
            target_name: c"x86_64".as_ptr(),
            api_min: 0,
            api: 1,
            system_emulation: false,
        };
        let folder = std::env::temp_dir();
        let out = format!("out={}", folder.join("never-written").display());
        let said = install(0, &info, vec![Ok(&out)]).unwrap_err();
        assert_eq!(
            said,
            "this QEMU (plugin API 1, oldest 0) has no qemu_plugin_insn_data; use a version that \
             the plugin was tested with: 7.2 or 10.0"
        );
    }
}
