//! Sentences for what this machine, or this user, does not permit.

use locklab_host::error::Error;
use std::fs;
use std::io;

/// The rights that recording by the kernel needs.
pub(crate) const RIGHTS: &str = "recording by the kernel's events needs root, or CAP_PERFMON with \
     tracefs readable (or kernel.perf_event_paranoid -1)";

pub(crate) fn no_tracepoint(name: &str) -> Error {
    let needs = match name.split('/').next() {
        Some("lock") => "Linux 5.19 or later, with CONFIG_FTRACE",
        Some("syscalls") => "CONFIG_FTRACE_SYSCALLS",
        _ => "CONFIG_FTRACE",
    };
    Error::Failed(format!(
        "this kernel has no tracepoint {}; it needs {needs}",
        name.replace('/', ":")
    ))
}

/// Returns why the kernel does not open an event.
pub(crate) fn not_opened(what: &str, why: &io::Error) -> Error {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.as_deref().map_or("unknown", str::trim);
    Error::Failed(match why.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => format!(
            "the kernel does not let this user record {what} (kernel.perf_event_paranoid is \
             {paranoid}): {RIGHTS}"
        ),
        Some(libc::EMFILE | libc::ENFILE) => format!(
            "{what} has too many threads for the open files of a process; record its cgroup with \
             --cgroup, or raise 'ulimit -n'"
        ),
        Some(libc::EBADF | libc::EINVAL) if what.starts_with("cgroup ") => format!(
            "{what} is of a controller whose events cannot be recorded; name the folder of \
             version 2 (in /proc/PID/cgroup the line that begins with 0::)"
        ),
        Some(libc::ESRCH) => format!("{what} has ended before it could be recorded"),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open; it needs CONFIG_PERF_EVENTS, \
             and a container that permits the call"
            .into(),
        _ => format!("the kernel does not record {what}: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_controller_is_said_in_a_sentence() {
        let why = io::Error::from_raw_os_error(libc::EBADF);
        let said = not_opened("cgroup /sys/fs/cgroup/cpu", &why).to_string();
        assert!(said.contains("name the folder of version 2"), "{said}");
        assert!(!said.contains("os error"), "{said}");
    }
}
