//! The output of a command: standard output and files.
//!
//! This is the only place that writes to standard output.

use locklab_host::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

pub use locklab_document::number::duration;

/// Writes to standard output. A closed pipe is not a failure.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written because the disk is full or it is
/// closed.
pub fn print(text: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write the report: {e}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a requested file.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text)
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// Appends to a file that others append to as well.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written.
pub fn append_file(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// Checks that a file can be written, before long work. Leaves an existing
/// file unchanged.
///
/// # Errors
/// [`Error::Usage`] if it cannot be written.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let there = path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|e| Error::Usage(format!("cannot write {}: {e}", path.display())))?;
    if !there {
        // An empty file would look like a report.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Returns the command line, with the program's name without its path, which does not
/// belong in a report.
pub fn command_line() -> String {
    let mut words = vec!["locklab".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| {
        if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"$\\".contains(c)) {
            format!("'{}'", word.replace('\'', "'\\''"))
        } else {
            word
        }
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_leaves_no_file_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        check_writable(&file).unwrap();
        assert!(!file.exists());
        let missing = folder.path().join("no/such/report.html");
        assert!(
            check_writable(&missing)
                .unwrap_err()
                .to_string()
                .contains("no/such")
        );
    }
}
