//! Words as a shell reads them back, for commands that are printed to be pasted. It must
//! never run one.

use std::borrow::Cow;

/// Returns a word as a shell reads it: between quotes if the shell would otherwise change
/// it.
#[must_use]
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+./:@%,=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")).into(),
    }
}

/// Returns words as one line that a shell reads.
pub fn line<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = words
        .into_iter()
        .map(|word| quoted(word.as_ref()).into_owned())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_every_word() {
        let words = [
            "plain-1,2",
            "",
            "a b",
            "it's",
            "\"",
            "a;b",
            "a&b",
            "a|b",
            "a<b",
            "a>b",
            "(a)",
            "*",
            "?",
            "#a",
            "~",
            "a~b",
            "`true`",
            "$HOME",
            "\\n",
            "{a,b}",
            "[ab]",
            "!1",
            "a=b",
            "-n",
            "é",
            "a\nb",
            "\t",
        ];
        let script = format!("printf '%s\\0' {}", line(words));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = text.split_terminator('\0').collect();
        assert_eq!(read, words, "{script}");
        assert_eq!(quoted("--threads=1,4"), "--threads=1,4");
    }
}
