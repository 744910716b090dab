//! Messages to the user, on standard error.

/// Prints an error message of one sentence.
#[cold]
pub(crate) fn say(sentence: &[&str]) {
    for words in [&["locklab: "], sentence, &["\n"]] {
        for word in words {
            // SAFETY: the bytes are there. Nothing helps if it fails.
            unsafe { libc::write(2, word.as_ptr().cast(), word.len()) };
        }
    }
}
