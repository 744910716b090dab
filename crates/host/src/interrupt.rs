//! Ctrl-C: what is running ends soon, and what was measured is kept.
//!
//! A handler that only sets a flag; whoever works looks at it. A second
//! signal ends the process at once.

use crate::error::Error;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Listens from now on; the flag is set by SIGINT or SIGTERM.
///
/// # Errors
/// The kernel refused the handler.
pub fn listen() -> Result<Arc<AtomicBool>, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and sets it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| flag::register(signal, Arc::clone(&flag)))
            .map_err(|e| Error::Failed(format!("cannot listen for Ctrl-C: {e}")))?;
    }
    Ok(flag)
}

/// Listens for SIGUSR1 from now on, by which a batch system says that the
/// time of a job is nearly up: it sets `interrupt`, and the flag that says why.
///
/// # Errors
/// The kernel refused the handler.
pub fn time_is_nearly_up(interrupt: &Arc<AtomicBool>) -> Result<Arc<AtomicBool>, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&flag))
        .and_then(|_| flag::register(SIGUSR1, Arc::clone(interrupt)))
        .map_err(|e| Error::Failed(format!("cannot listen for SIGUSR1: {e}")))?;
    Ok(flag)
}
