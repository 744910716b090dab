//! A recording made of what `perf script` writes of a kernel's lock tracepoints, as
//! a file. The text is read by `locklab_trace`; this must never look into it.

use crate::recorded::Recorded;
use crate::recording::check_file;
use locklab_host::error::Error;
use locklab_trace::recording_of_perf;
use std::fs;
use std::path::{Path, PathBuf};

/// A text of `perf script` to make a recording of.
#[derive(Clone, Debug)]
pub struct FromPerf {
    /// The file with the text.
    pub text: PathBuf,
    /// The file for the recording.
    pub file: PathBuf,
}

impl FromPerf {
    /// Makes the recording, and reads it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file is there and no recording; [`Error::Failed`]
    /// if the text cannot be read, is none of `perf script` or has no lock event,
    /// or the file cannot be written.
    pub fn run(&self) -> Result<Recorded, Error> {
        check_file(&self.file)?;
        let of = |path: &Path, why: String| Error::Failed(format!("{}: {why}", path.display()));
        let bytes =
            fs::read(&self.text).map_err(|e| of(&self.text, format!("cannot be read: {e}")))?;
        let bad = |why| of(&self.text, why);
        if bytes.starts_with(b"PERFILE2") {
            return Err(bad(
                "it is what 'perf record' wrote; 'perf script -i' makes text of it".into(),
            ));
        }
        let text = String::from_utf8_lossy(&bytes);
        let (bytes, missed) =
            recording_of_perf(&text, &self.text).map_err(|e| bad(e.to_string()))?;
        fs::write(&self.file, bytes)
            .map_err(|e| of(&self.file, format!("cannot be written: {e}")))?;
        Ok(Recorded::read(&self.file)?.with_notes(missed.into_iter().collect()))
    }
}
