//! A lock to start from, as a file for the user.

use crate::source::{is_cpp, no_language};
use locklab_host::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;

const TEMPLATE: &str = include_str!("../c/template.c");

/// Returns whether [`write_template`] would make this file.
///
/// # Errors
/// [`Error::Usage`] if the file exists already, or its name is not that of a C
/// or C++ file.
pub fn check_template(file: &Path) -> Result<(), Error> {
    if is_cpp(file).is_none() {
        return Err(no_language(file));
    }
    if file.exists() {
        let shown = file.display();
        return Err(Error::Usage(format!(
            "{shown} is there already; name another file"
        )));
    }
    Ok(())
}

/// Writes a commented ticket lock to a new file, whose name appears in its
/// comments.
///
/// # Errors
/// Those of [`check_template`], and [`Error::Failed`] if it cannot be written.
pub fn write_template(file: &Path) -> Result<(), Error> {
    check_template(file)?;
    let shown = file.display();
    let text = TEMPLATE.replace(" FILE ", &format!(" {shown} "));
    File::create_new(file)
        .and_then(|mut new| new.write_all(text.as_bytes()))
        .map_err(|e| Error::Failed(format!("cannot write {shown}: {e}")))
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
        for name in ["mine", "mine.rs"] {
            let file = folder.path().join(name);
            let refused = write_template(&file).unwrap_err().to_string();
            assert!(refused.contains("ends in .c, .cc"), "{refused}");
            assert!(!file.exists(), "{name} could not be read back");
        }
        let nowhere = folder.path().join("no/folder/mine.c");
        let nowhere = write_template(&nowhere).unwrap_err().to_string();
        assert!(nowhere.contains("cannot write"), "{nowhere}");
    }
}
