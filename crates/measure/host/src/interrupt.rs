//! Ctrl-C: running work ends soon, and samples that were measured are kept.
//!
//! The handler only sets a flag, which the running work checks. A second
//! signal ends the process at once, after its last words, if there are any: how
//! to undo by hand what the work would have undone.

use crate::error::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Holds what the process says when a second signal ends it.
static LAST_WORDS: AtomicPtr<String> = AtomicPtr::new(std::ptr::null_mut());

/// Sets what a second Ctrl-C prints, or nothing.
pub fn last_words(text: Option<String>) {
    let words = text.map_or(std::ptr::null_mut(), |text| {
        Box::into_raw(Box::new(format!("\nlocklab: {text}\n")))
    });
    // Release pairs with the handler's Acquire: it sees the whole text. The one
    // before is not freed, because a handler may be reading it; there are a few
    // in a session.
    LAST_WORDS.store(words, Ordering::Release);
}

/// Ends the process with its last words. Called in a signal handler: it only
/// reads memory and makes system calls.
fn end_at_once() -> ! {
    // Acquire pairs with the Release of `last_words`.
    let words = LAST_WORDS.load(Ordering::Acquire);
    // SAFETY: what `last_words` stores is never freed or changed.
    if let Some(words) = unsafe { words.as_ref() } {
        // SAFETY: the text is valid for its length; nothing can be done about a
        // failure.
        unsafe { libc::write(2, words.as_ptr().cast(), words.len()) };
    }
    low_level::exit(130)
}

/// Installs the handler; the returned flag is set by SIGINT or SIGTERM.
///
/// # Errors
/// [`Error::Failed`] if the kernel refuses the handler.
pub fn listen() -> Result<Arc<AtomicBool>, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let seen = Arc::clone(&flag);
        let handler = move || {
            // SeqCst as signal_hook's own flags: the first signal sets it, a
            // second of either kind finds it set.
            if seen.swap(true, Ordering::SeqCst) {
                end_at_once();
            }
        };
        // SAFETY: the handler only uses atomics, write and _exit.
        unsafe { low_level::register(signal, handler) }
            .map_err(|e| Error::Failed(format!("cannot listen for Ctrl-C: {e}")))?;
    }
    Ok(flag)
}
