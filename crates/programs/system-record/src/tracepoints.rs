//! The numbers of the kernel's tracepoints, from the file system that lists them.
//!
//! It need not be mounted: a mount that no folder shows is made for the moment. It must
//! never change what others see of this machine.

use crate::fault::{RIGHTS, no_tracepoint};
use locklab_host::error::Error;
use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// Describes where the kernel lists its tracepoints.
pub(crate) struct Tracepoints {
    folder: PathBuf,
    /// Keeps a mount of our own.
    _mount: Option<OwnedFd>,
}

/// Says where they are usually mounted.
const FOLDERS: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

impl Tracepoints {
    /// Finds the list.
    ///
    /// # Errors
    /// [`Error::Failed`] if this user may not read it, or the kernel has none.
    pub(crate) fn find() -> Result<Self, Error> {
        for folder in FOLDERS {
            if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
                return Ok(Self {
                    folder: folder.into(),
                    _mount: None,
                });
            }
        }
        match mounted() {
            Ok(mount) => Ok(Self {
                folder: format!("/proc/self/fd/{}/events", mount.as_raw_fd()).into(),
                _mount: Some(mount),
            }),
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Err(Error::Failed(
                "this kernel has no tracepoints (tracefs); it needs one with CONFIG_FTRACE".into(),
            )),
            Err(e) => Err(Error::Failed(format!(
                "the kernel's tracepoints cannot be read ({e}): {RIGHTS}"
            ))),
        }
    }

    /// Returns the number of the tracepoint `group/name`.
    ///
    /// # Errors
    /// [`Error::Failed`] if the kernel has none of this name.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Error> {
        let text = fs::read_to_string(self.folder.join(name).join("id"));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| no_tracepoint(name))
    }
}

/// Returns a mount of tracefs that is in no folder.
fn mounted() -> std::io::Result<OwnedFd> {
    const KIND: &CStr = c"tracefs";
    /// `FSCONFIG_CMD_CREATE` of the kernel's interface.
    const CREATE: libc::c_uint = 6;
    let opened = |number: libc::c_long| -> std::io::Result<OwnedFd> {
        let number = i32::try_from(number).unwrap_or(-1);
        if number < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened it for nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    };
    // SAFETY: a system call with a string that ends in a zero.
    let context = opened(unsafe { libc::syscall(libc::SYS_fsopen, KIND.as_ptr(), 1) })?;
    let none = std::ptr::null::<u8>();
    // SAFETY: a system call with a file of ours, and no strings.
    let made = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            CREATE,
            none,
            none,
            0,
        )
    };
    if made < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a system call with a file of ours.
    opened(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}
