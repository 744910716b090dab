//! Holds what a program wrote: the end of it, as much as is read or shown.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The most of an output that is read: its end.
const MOST_OUTPUT: u64 = 8 << 20;

/// Returns the end of a file, with any bytes.
pub(crate) fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST_OUTPUT)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// Returns the end of an output, in one line.
#[must_use]
pub fn excerpt(output: &str) -> String {
    let words: Vec<&str> = output.split_whitespace().collect();
    let line = words.join(" ");
    let chars = line.chars().count();
    match chars {
        0 => "(nothing)".into(),
        1..=240 => line,
        _ => format!("... {}", line.chars().skip(chars - 240).collect::<String>()),
    }
}
