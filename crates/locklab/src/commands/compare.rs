//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod arguments;
mod programs;
mod settings;

pub use arguments::CompareArgs;

use crate::cli::Common;
use crate::output::print;
use locklab_host::error::Error;
use locklab_lab::file::{self, FileKind};
use locklab_programs::file::EXAMPLE;
use std::process::ExitCode;

/// Runs `locklab compare`.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read, is of an unknown kind, or an
/// option does not apply to its kind; otherwise the errors of the comparison of
/// that kind.
pub fn run(args: &CompareArgs, common: &Common) -> Result<ExitCode, Error> {
    if args.example {
        return print(EXAMPLE);
    }
    let Some(path) = &args.file else {
        return programs::run(args, common);
    };
    let kind = file::read(path)
        .and_then(|text| FileKind::of(&text).map_err(|e| format!("{}, {e}", path.display())))
        .map_err(Error::Usage)?;
    if kind != FileKind::Programs
        && let Some(option) = args.given_for_programs()
    {
        return Err(Error::Usage(format!(
            "{option} is for programs, and {} compares {}; leave it out",
            path.display(),
            kind.word()
        )));
    }
    match kind {
        FileKind::Programs => programs::run(args, common),
        FileKind::Matrix => super::matrix::file(path, &args.comparing, common),
        FileKind::Kernels => super::kernel::file(path, &args.comparing, common),
        FileKind::Published => super::reproduce::file(path, &args.comparing, common),
    }
}
