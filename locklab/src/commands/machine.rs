//! `locklab machine`: modelled machines, and a model of this one.

mod fitted;
mod locks;

use crate::arguments::Common;
use crate::comparison::show;
use crate::output::{FileFormat, answer, check_writable, print, write_file};
use clap::{Args, Subcommand};
use fitted::{fitted, pairs};
use locklab_document::number;
use locklab_harness::settings::SEED;
use locklab_host::error::Error;
use locklab_native::Native;
use locklab_published::microbenchmarks;
use locklab_published::modelled::machines;
use locklab_sim::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab machine`.
#[derive(Debug, Args)]
pub struct MachineArgs {
    /// The thing to do with machine files.
    #[command(subcommand)]
    pub command: MachineCommand,
}

/// The subcommands of `locklab machine`.
#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// List every machine that ships with Locklab
    List,
    /// Show a machine's figures, each with its source or assumption
    Show {
        /// Its name, or a machine file
        machine: String,
    },
    /// Simulate a machine's published microbenchmarks: the model beside the
    /// source
    Check {
        /// Its name, or a machine file
        machine: String,
        /// Seed of every random choice [default: 1]
        #[arg(long, value_name = "N", default_value_t = SEED, hide_default_value = true)]
        seed: u64,
        /// Locks to try
        ///
        /// Each is measured here and simulated on this file of `machine fit`, with one thread to
        /// as many as CPUs and with two lengths. Both go into a file beside it, and reports on
        /// the model quote the result. Without names: all (`--locks=ticket,mcs` names two, which are the fewest).
        #[arg(long, value_name = "LOCK", value_delimiter = ',', num_args = 0.., require_equals = true)]
        locks: Option<Vec<String>>,
    },
    /// Measure this machine, and write a machine file
    Fit {
        /// The file to write
        file: PathBuf,
    },
}

/// Runs `locklab machine`.
///
/// # Errors
/// [`Error::Usage`] if there is no such machine, its file is invalid, or the
/// file to write exists; [`Error::Failed`] if this machine cannot be measured,
/// or a file or standard output cannot be written.
pub fn run(args: &MachineArgs, common: &Common) -> Result<ExitCode, Error> {
    match &args.command {
        MachineCommand::List => answer(common.json, machines::list_json, machines::list),
        MachineCommand::Show { machine } => {
            let shown = Machine::named(machine)?;
            let text = || machines::show(&shown);
            answer(common.json, || machines::show_json(&shown), text)
        }
        MachineCommand::Check {
            machine,
            seed,
            locks: Some(only),
        } => locks::check(Path::new(machine), only, *seed, common),
        MachineCommand::Check { machine, seed, .. } => show(
            &microbenchmarks::checked(&Machine::named(machine)?, *seed)?,
            common,
        ),
        MachineCommand::Fit { file } => fit(file, common),
    }
}

fn fit(file: &Path, common: &Common) -> Result<ExitCode, Error> {
    check_writable(file, FileFormat::Machine, common.force)?;
    let native = Native::probe();
    let pairs = pairs(&native.topology)?;
    if common.dry_run {
        return print(&format!(
            "Would measure {} of CPUs, and write {}.\n",
            number::count(pairs.len(), "pair"),
            file.display()
        ));
    }
    let (fit, text) = fitted(&native, &pairs, file)?;
    write_file(file, &text)?;
    if common.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let [least, most] = [fit.one_way[0], fit.one_way[fit.one_way.len() - 1]];
    let distance = match fit.one_way.len() {
        1 => format!("{least:.0}"),
        _ => format!("{least:.0} to {most:.0}"),
    };
    print(&format!(
        "Wrote {file}: {} of CPUs, {distance} ns one way, {:.2} cycles a ns.\n\
         What cannot be measured so is marked as an assumption in the file.\n\
         To see how far it is right of locks: locklab machine check {file} --locks\n",
        number::count(fit.one_way.len(), "pair"),
        fit.clock_ghz,
        file = file.display(),
    ))
}
