//! The process itself: a variable of its environment, and its end with an error
//! message.

use core::ffi::CStr;

/// A variable of the environment, read without allocation.
pub(crate) fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: a C string; the value stays, since the program has not had the
    // time to change its environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string.
    unsafe { CStr::from_ptr(value) }
        .to_str()
        .ok()
        .filter(|value| !value.is_empty())
}

/// Prints an error message of one sentence, and ends the process.
#[cold]
pub(crate) fn die(sentence: &[&str]) -> ! {
    say(&["locklab: "]);
    say(sentence);
    say(&["\n"]);
    // SAFETY: ends the process without running anything of the program's,
    // which could take the very lock that failed.
    unsafe { libc::_exit(2) }
}

fn say(words: &[&str]) {
    for word in words {
        // SAFETY: the bytes are there. Nothing helps if it fails.
        unsafe { libc::write(2, word.as_ptr().cast(), word.len()) };
    }
}
