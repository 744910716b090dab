//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod options;
mod programs;

pub use options::CompareArgs;

use super::{kernel, matrix, rank, reproduce};
use crate::arguments::Common;
use crate::comparison::carry_out;
use crate::kinds::{Compared, KINDS};
use crate::output::print;
use locklab_host::error::Error;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_programs::Settings;
use locklab_programs::settings::EXAMPLE;
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
        return carry_out(programs::planned(args, common)?, common);
    };
    let kinds = KINDS.each_ref().map(|kind| kind.file);
    let file = file::read(path)
        .and_then(|text| FileKind::of(&text, &kinds).map_err(|e| e.within(path)))?;
    let kind = KINDS.iter().find(|kind| kind.file == file);
    let compared = kind.map_or(Compared::Programs, |kind| kind.compared);
    if compared != Compared::Programs {
        args.refuse_for_programs(&format!(
            "is for programs, and {} is of kind {}; leave it out",
            path.display(),
            file.word
        ))?;
    }
    let (design, comparing) = (&args.settings.design, &args.comparing);
    match compared {
        Compared::Programs => carry_out(programs::planned(args, common)?, common),
        Compared::Matrix => {
            let settings = matrix::settings(path, design, comparing.aa)?;
            carry_out(matrix::comparison(&settings, comparing, common)?, common)
        }
        Compared::Rank => {
            let settings = rank::settings(path, design)?;
            carry_out(rank::comparison(&settings, comparing, common)?, common)
        }
        Compared::Kernels => kernel::file(path, design, comparing, common),
        Compared::Published => reproduce::file(path, design, comparing, common),
    }
}

impl CompareArgs {
    /// Refuses what only programs have: all but the design.
    fn refuse_for_programs(&self, why: &str) -> Result<(), Error> {
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
        Err(Error::Usage(format!("a command after -- {why}")))
    }
}
