//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod options;
mod programs;

pub use options::CompareArgs;

use super::{kernel, matrix, rank, reproduce};
use crate::arguments::Common;
use crate::comparison::carry_out;
use crate::kinds::{Compared, KINDS};
use locklab_harness::file::{self, FileKind};
use locklab_harness::settings::{DesignSettings, refuse};
use locklab_host::error::Error;
use locklab_programs::Settings;
use options::Named;
use std::path::Path;
use std::process::ExitCode;

/// Runs `locklab compare`.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read, is of an unknown kind, or an
/// option does not apply to its kind; otherwise the errors of the comparison of
/// that kind.
pub fn run(args: &CompareArgs, common: &Common) -> Result<ExitCode, Error> {
    let Named::File(path) = args.named()? else {
        return of_programs(args, common);
    };
    let (design, comparing) = (&args.settings.design, &args.comparing);
    let compared = match path.to_str().is_some_and(kernel::is_report) {
        true => Compared::Kernels,
        false => compared(path)?,
    };
    let why = |whom: &str| {
        format!(
            "is for {whom}, which {} does not compare; leave it out",
            path.display()
        )
    };
    if compared != Compared::Programs {
        args.refuse_for_programs(&why("programs"), compared == Compared::Kernels)?;
    }
    if compared != Compared::Kernels {
        args.kernels.refuse(&why("kernels"))?;
    }
    match compared {
        Compared::Programs => of_programs(args, common),
        Compared::Matrix => {
            let settings = matrix::settings(path, design, comparing)?;
            carry_out(matrix::comparison(&settings, comparing, common)?, common)
        }
        Compared::Rank => {
            let settings = rank::settings(path, design, &comparing.set)?;
            carry_out(rank::comparison(settings, comparing, common)?, common)
        }
        Compared::Kernels => {
            let asked = kernel::KernelRequest {
                file: path,
                workload: &args.programs.workload,
                design,
                kernels: &args.kernels,
                set: &comparing.set,
            };
            kernel::compare(&asked, comparing, common)
        }
        Compared::Published => {
            let why = "is for comparisons that are judged; a published experiment is simulated \
                       beside its figures";
            let measured = DesignSettings {
                seed: None,
                ..design.clone()
            };
            refuse(&measured, why)?;
            refuse(comparing, why)?;
            reproduce::file(path, design.seed(), common)
        }
    }
}

fn of_programs(args: &CompareArgs, common: &Common) -> Result<ExitCode, Error> {
    args.kernels
        .refuse("is for kernels, and programs are compared; leave it out")?;
    carry_out(programs::planned(args, common)?, common)
}

/// Returns what an experiment file compares.
fn compared(path: &Path) -> Result<Compared, Error> {
    let kinds = KINDS.each_ref().map(|kind| kind.file);
    let file = file::read(path)
        .and_then(|text| FileKind::of(&text, &kinds).map_err(|e| e.within(path)))?;
    let kind = KINDS.iter().find(|kind| kind.file == file);
    Ok(kind.map_or(Compared::Programs, |kind| kind.compared))
}

impl CompareArgs {
    /// Refuses what only programs have: all but the design, and of kernels the workloads.
    fn refuse_for_programs(&self, why: &str, kernels: bool) -> Result<(), Error> {
        refuse(
            &Settings {
                design: DesignSettings::default(),
                ..self.settings.clone()
            },
            why,
        )?;
        let mut programs = self.programs.clone();
        if kernels {
            programs.workload.clear();
        }
        refuse(&programs, why)?;
        if self.command.is_empty() {
            return Ok(());
        }
        Err(Error::Usage(format!("a command after -- {why}")))
    }
}
