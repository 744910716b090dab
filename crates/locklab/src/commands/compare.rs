//! `locklab compare`: an experiment file of any kind, or programs by the
//! command line.

mod options;
mod programs;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::output::print;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_programs::Settings;
use locklab_programs::settings::EXAMPLE;
use options::ProgramOptions;
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab compare`.
///
/// Workloads: nginx-churn, rocksdb-deleteseq, readwhilewriting, fstat,
/// context-switch (also with :threads, +pipe or both), call-sites, gcc,
/// fs-mark, kernel-build, command.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// An experiment file (TOML) of any kind; options take precedence over it
    pub file: Option<PathBuf>,
    /// Print an experiment file with every setting
    #[arg(long, exclusive = true)]
    pub example: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub settings: Settings,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub programs: ProgramOptions,
    /// One command for both sides, which differ in lock, build or environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

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
    let design = &args.settings.design;
    if kind != FileKind::Programs {
        args.refuse_for_programs(&format!(
            "is for programs, and {} compares {}; leave it out",
            path.display(),
            kind.word()
        ))
        .map_err(Error::Usage)?;
    }
    match kind {
        FileKind::Programs => programs::run(args, common),
        FileKind::Matrix => super::matrix::file(path, design, &args.comparing, common),
        FileKind::Kernels => super::kernel::file(path, design, &args.comparing, common),
        FileKind::Published => super::reproduce::file(path, design, &args.comparing, common),
    }
}

impl CompareArgs {
    /// Refuses what only programs have: all but the design.
    fn refuse_for_programs(&self, why: &str) -> Result<(), String> {
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
        Err(format!("a command after -- {why}"))
    }
}
