//! Ctrl-C: running work ends soon, and samples that were measured are kept.
//!
//! The handler only sets a flag, which the running work checks. A second
//! signal ends the process at once.

use crate::error::Error;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Installs the handler; the returned flag is set by SIGINT or SIGTERM.
///
/// # Errors
/// [`Error::Failed`] if the kernel refuses the handler.
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

/// Installs a handler for SIGUSR1, by which a batch system announces that the
/// time of a job is nearly up: it sets `interrupt`, and the returned flag,
/// which gives the reason.
///
/// # Errors
/// [`Error::Failed`] if the kernel refuses the handler.
pub fn time_is_nearly_up(interrupt: &Arc<AtomicBool>) -> Result<Arc<AtomicBool>, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&flag))
        .and_then(|_| flag::register(SIGUSR1, Arc::clone(interrupt)))
        .map_err(|e| Error::Failed(format!("cannot listen for SIGUSR1: {e}")))?;
    Ok(flag)
}
