//! Messages of the libraries in a program, on its standard error. Must allocate
//! nothing and take no lock: either may be what is being replaced.

/// Prints an error message of one sentence.
#[cold]
pub fn say(sentence: &[&str]) {
    for words in [&["locklab: "], sentence, &["\n"]] {
        for word in words {
            // SAFETY: the bytes are there. Nothing helps if it fails.
            unsafe { libc::write(2, word.as_ptr().cast(), word.len()) };
        }
    }
}

/// Prints an error message of one sentence, and ends the process.
#[cold]
pub fn die(sentence: &[&str]) -> ! {
    say(sentence);
    // SAFETY: ends the process without running anything of the program's, which
    // could take the very lock that failed.
    unsafe { libc::_exit(2) }
}
