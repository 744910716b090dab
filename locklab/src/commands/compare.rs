//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod options;
mod programs;

pub use options::CompareArgs;

use super::{kernel, matrix, rank, reproduce};
use crate::arguments::Common;
use crate::comparison::carry_out;
use crate::output::print;
use locklab_host::error::Error;
use locklab_lab::error::SettingsError;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_programs::Settings;
use locklab_programs::settings::EXAMPLE;
use std::process::ExitCode;

/// The kinds of files.
const KINDS: [FileKind; 5] = [
    locklab_programs::settings::FILE_KIND,
    matrix::FILE_KIND,
    rank::FILE_KIND,
    locklab_kernel::recipe::FILE_KIND,
    reproduce::FILE_KIND,
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
        return carry_out(programs::planned(args, common)?, common);
    };
    let kind = file::read(path)
        .and_then(|text| FileKind::of(&text, &KINDS).map_err(|e| e.within(path)))?;
    if kind == locklab_programs::settings::FILE_KIND {
        return carry_out(programs::planned(args, common)?, common);
    }
    args.refuse_for_programs(&format!(
        "is for programs, and {} is of kind {}; leave it out",
        path.display(),
        kind.word
    ))?;
    let (design, comparing) = (&args.settings.design, &args.comparing);
    if kind == matrix::FILE_KIND {
        let settings = matrix::settings(path, design, comparing.aa)?;
        carry_out(matrix::comparison(&settings, comparing, common)?, common)
    } else if kind == rank::FILE_KIND {
        let settings = rank::settings(path, design)?;
        carry_out(rank::comparison(&settings, comparing, common)?, common)
    } else if kind == locklab_kernel::recipe::FILE_KIND {
        kernel::file(path, design, comparing, common)
    } else {
        reproduce::file(path, design, comparing, common)
    }
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
