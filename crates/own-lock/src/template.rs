//! A lock to start from, as a file for the user.

use crate::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

const TEMPLATE: &str = include_str!("../c/template.c");

/// Writes a commented ticket lock to a new file, whose name appears in its
/// comments.
///
/// # Errors
/// [`Error::Usage`] if the file exists already, [`Error::Failed`] if it cannot
/// be written.
pub fn write_template(file: &Path) -> Result<(), Error> {
    let shown = file.display();
    let text = TEMPLATE.replace(" FILE ", &format!(" {shown} "));
    File::create_new(file)
        .and_then(|mut new| new.write_all(text.as_bytes()))
        .map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => {
                Error::Usage(format!("{shown} is there already; name another file"))
            }
            _ => Error::Failed(format!("cannot write {shown}: {e}")),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.c");
        write_template(&file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("LOCKLAB_LOCK") && !text.contains(" FILE "));
        let again = write_template(&file).unwrap_err().to_string();
        assert!(again.contains("already"), "{again}");
        let nowhere = folder.path().join("no/folder/mine.c");
        let nowhere = write_template(&nowhere).unwrap_err().to_string();
        assert!(nowhere.contains("cannot write"), "{nowhere}");
    }
}
