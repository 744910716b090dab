//! Preconditions of a command: enough stack, and an open standard output.
//!
//! A process that was started without them crashes, or throws its report away
//! and reports success. Both cases are detected here and become an error
//! message. This module must never change a limit: it may have been set on
//! purpose.

use crate::error::Error;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stack that the command line and a report need, in KiB.
const STACK_KIB: u64 = 1024;

/// Is true if standard output was closed when the process began.
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks before Rust's runtime starts, which opens `/dev/null` in place of a
/// closed standard output.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_OUTPUT: extern "C" fn() = {
    extern "C" fn check_output() {
        // SAFETY: asks for the flags of a descriptor, which may be closed.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
        OUTPUT_CLOSED.store(closed, Ordering::Relaxed);
    }
    check_output
};

/// Returns whether there is enough stack.
///
/// # Errors
/// [`Error::Failed`] with the limit and the command that raises it, if the
/// stack is too small.
pub fn check_stack() -> Result<(), Error> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is ours.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    if asked == 0 && limit.rlim_cur < STACK_KIB * 1024 {
        return Err(Error::Failed(format!(
            "the stack is limited to {} KiB and locklab needs {STACK_KIB}: raise the limit \
             ('ulimit -s 8192') and start it again",
            limit.rlim_cur / 1024
        )));
    }
    Ok(())
}

/// Returns whether there is a standard output to print to.
///
/// # Errors
/// [`Error::Failed`] if it was closed when the process began.
pub fn check_output() -> Result<(), Error> {
    if OUTPUT_CLOSED.load(Ordering::Relaxed) {
        return Err(Error::Failed(
            "standard output is closed, so a report could go nowhere; open it, or send it to \
             /dev/null"
                .into(),
        ));
    }
    Ok(())
}

/// Makes a thread that cannot be started end the command with an error message.
pub fn explain_missing_threads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload
            .downcast_ref::<String>()
            .map_or_else(|| payload.downcast_ref::<&str>().copied(), |s| Some(s));
        if let Some(sentence) = text.and_then(missing_thread) {
            let _ = writeln!(std::io::stderr(), "locklab: {sentence}");
            std::process::exit(1);
        }
        usual(panic);
    }));
}

/// Returns the error message for a panic because no thread could be started; `None`
/// for every other panic.
fn missing_thread(panic: &str) -> Option<String> {
    panic.starts_with("failed to spawn thread").then(|| {
        "no further thread can be started; raise the limit on processes ('ulimit -u') or on \
         memory ('ulimit -v', a cgroup), or ask for fewer threads; what was measured is stored"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_thread_is_explained() {
        let panic = "failed to spawn thread: Os { code: 11, kind: WouldBlock }";
        assert!(missing_thread(panic).unwrap().contains("ulimit -u"));
        assert_eq!(missing_thread("index out of bounds"), None);
    }

    #[test]
    fn a_test_has_a_stack_and_an_output() {
        check_stack().unwrap();
        check_output().unwrap();
    }
}
