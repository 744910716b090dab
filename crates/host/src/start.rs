//! What must hold before a command begins: a stack, and standard output.
//!
//! A process that was started without them crashes, or throws its report away
//! and says that all is well. Both are noticed here and become a sentence.
//! Must never change a limit: who set it had a reason.

use crate::error::Error;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stack that the command line and a report need, in KiB.
const STACK_KIB: u64 = 1024;

/// Whether standard output was closed when the process began.
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before Rust's runtime, which opens `/dev/null` in the place of a
/// closed standard output.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: asks for the flags of a descriptor, which may be closed.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
        OUTPUT_CLOSED.store(closed, Ordering::Relaxed);
    }
    look
};

/// Whether there is enough stack.
///
/// # Errors
/// A sentence with the limit and the line that raises it.
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

/// Whether there is a standard output to print to.
///
/// # Errors
/// It was closed when the process began.
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

/// A thread that cannot be started ends the command with a sentence.
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

/// The sentence for a panic that says that no thread could be started; `None`
/// for every other.
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
