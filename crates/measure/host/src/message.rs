//! Messages on standard error: notes, warnings and the sentence of a failure.
//!
//! A message accompanies a result and is never one. So a message that cannot
//! be written, because the device is full or the terminal has gone, is lost
//! and nothing else is: `eprintln!` would panic and take the result with it.

use std::fmt::Display;
use std::io::Write as _;

/// Prints `text` as a line of standard error.
pub fn print(text: impl Display) {
    // One write, so that lines of several processes do not mix.
    let line = format!("{text}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
