//! Says in one sentence how a child process ended that ran a user's code.
//!
//! It must not start or end one.

use crate::isolate::{Death, Lost};
use crate::lines::Lines;
use locklab_host::error::Error;
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

/// Sets how long the code of a lock may run without an access, unless the caller says
/// otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Names what the code of a lock runs on, in a sentence about its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    /// A simulated CPU, whose number the child notes.
    Cpu,
    /// A thread of this machine.
    Thread,
}

/// Describes how a child ended, in one sentence with the line of the file.
pub(crate) fn explain(
    name: &str,
    patience: Duration,
    lost: Lost,
    runner: Runner,
    library: &Path,
) -> Error {
    let death = match lost {
        Lost::Died(death) => death,
        Lost::GaveUp(why) => return Error::Failed(format!("{name}: {why}")),
        Lost::Broken(what) => return Error::Failed(format!("{name}: {what}")),
    };
    let line = line_of(library, &death).unwrap_or_else(|| format!("an unknown line of {name}"));
    let who = match runner {
        Runner::Cpu => format!("CPU {}", death.cpu),
        Runner::Thread => "a thread".to_owned(),
    };
    let of_stack = match runner {
        Runner::Cpu => " of 32 KiB",
        Runner::Thread => "",
    };
    Error::Failed(match death.signal {
        libc::SIGALRM => format!(
            "{name}: {who} hangs: no access for {} s, at {line}",
            patience.as_secs().max(1)
        ),
        libc::SIGSEGV | libc::SIGBUS if death.address.abs_diff(death.stack) < 64 * 1024 => {
            format!(
                "{name}: {who} overflowed its stack{of_stack} at {line}; keep large \
                 data in the lock or the context"
            )
        }
        signal @ (libc::SIGSEGV | libc::SIGBUS) => format!(
            "{name}: {who} crashed at {line} ({}, address {:#x})",
            name_of(signal),
            death.address
        ),
        libc::SIGFPE => format!("{name}: {who} divided by zero at {line} (SIGFPE)"),
        signal => format!("{name}: {who} was ended by {} at {line}", name_of(signal)),
    })
}

/// Returns "SIGSEGV", or "signal 40" of one that has no name.
fn name_of(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |s| s.to_string())
}

/// Returns the source line at which a child died.
fn line_of(library: &Path, death: &Death) -> Option<String> {
    let lines = Lines::of(library);
    if death.instruction != 0 {
        return lines.at(death.instruction - death.base);
    }
    // It died in Locklab's own code, called from there.
    lines.of_call(death.site.checked_sub(death.base)?)
}
