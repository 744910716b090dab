//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod options;
mod programs;

pub use options::CompareArgs;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::output::print;
use locklab_host::error::Error;
use locklab_lab::error::SettingsError;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_programs::Settings;
use locklab_programs::settings::EXAMPLE;
use std::path::Path;
use std::process::ExitCode;

/// Carries out the comparison of a file, with the design of the command line.
type CarryOut = fn(&Path, &DesignSettings, &ComparingArgs, &Common) -> Result<ExitCode, Error>;

/// The kinds of files that are not of programs, each with what carries it out.
const OTHERS: [(FileKind, CarryOut); 4] = [
    (super::matrix::FILE_KIND, super::matrix::file),
    (super::rank::FILE_KIND, super::rank::file),
    (locklab_kernel::recipe::FILE_KIND, super::kernel::file),
    (super::reproduce::FILE_KIND, super::reproduce::file),
];

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
    let kinds: Vec<FileKind> = OTHERS.iter().map(|(kind, _)| *kind).collect();
    let kinds = [&[locklab_programs::settings::FILE_KIND], &kinds[..]].concat();
    let kind = file::read(path)
        .and_then(|text| FileKind::of(&text, &kinds).map_err(|e| e.within(path)))?;
    let Some((_, carry_out)) = OTHERS.iter().find(|(other, _)| *other == kind) else {
        return programs::run(args, common);
    };
    args.refuse_for_programs(&format!(
        "is for programs, and {} is of kind {}; leave it out",
        path.display(),
        kind.word
    ))?;
    carry_out(path, &args.settings.design, &args.comparing, common)
}

impl CompareArgs {
    /// Refuses what only programs have: all but the design.
    fn refuse_for_programs(&self, why: &str) -> Result<(), SettingsError> {
        refuse(
            &Settings {
                design: DesignSettings::default(),
                ..self.settings.clone()
            },
            why,
        )?;
        refuse(&self.programs, why)?;
        if self.command.is_empty() {
            return Ok(());
        }
        let command = "a command after --".into();
        Err(SettingsError::NotUsed(command, why.into()))
    }
}
