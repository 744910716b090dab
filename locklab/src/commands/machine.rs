//! `locklab machine`: modelled machines, and a model of this one.

use crate::arguments::Common;
use crate::comparison::show;
use crate::output::{FileFormat, check_writable, print, write_file};
use clap::{Args, Subcommand};
use locklab_document::number;
use locklab_harness::settings::SEED;
use locklab_host::error::Error;
use locklab_native::Native;
use locklab_native::{fit, scheduling};
use locklab_published::microbenchmarks;
use locklab_published::modelled::machines;
use locklab_sim::Machine;
use locklab_workload::{Cells, Unit};
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
    },
    /// Measure this machine, write a machine file, and compare the two
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
        MachineCommand::List if common.json => print(&format!("{:#}\n", machines::list_json())),
        MachineCommand::List => print(&machines::list()),
        MachineCommand::Show { machine } if common.json => {
            let document = machines::show_json(&Machine::named(machine)?);
            print(&format!("{document:#}\n"))
        }
        MachineCommand::Show { machine } => print(&machines::show(&Machine::named(machine)?)),
        MachineCommand::Check { machine, seed } => show(
            &microbenchmarks::checked(&Machine::named(machine)?, *seed)?,
            common,
        ),
        MachineCommand::Fit { file } => fit(file, common),
    }
}

fn fit(file: &Path, common: &Common) -> Result<ExitCode, Error> {
    check_writable(file, FileFormat::Machine, common.force)?;
    let native = Native::probe();
    let topology = &native.topology;
    let pairs = fit::pairs(&topology.order);
    if pairs.is_empty() {
        return Err(Error::Failed(
            "only one CPU may be used, so there is no distance to measure; allow more (taskset)"
                .into(),
        ));
    }
    if common.dry_run {
        return print(&format!(
            "Would measure {} of CPUs and five locks, and write {}.\n",
            number::count(pairs.len(), "pair"),
            file.display()
        ));
    }
    let fit = fit::measure(&native, &pairs)?;
    let mut text = fit.machine_file(topology);
    let (a, b) = pairs[0];
    if let Some(scheduling) = scheduling::measure(a, b) {
        text.push_str(&scheduling.table());
    }
    let machine = Machine::parse(&file.display().to_string(), &text)
        .map_err(|e| Error::Failed(format!("what was measured makes no machine: {e}")))?;
    let cells = Cells {
        threads: vec![topology.order.len().min(machine.cpus())],
        critical: vec![100],
        non_critical: vec![200],
        unit: Unit::Nanoseconds,
        ..Cells::default()
    };
    let measured = fit::rates(&native, &cells)?;
    let beside = machines::side_by_side(&machine, &cells, &measured)?;
    let comment: String = beside.lines().map(|line| format!("# {line}\n")).collect();
    write_file(file, &format!("{text}\n{comment}"))?;
    if common.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let [least, most] = [fit.one_way[0], fit.one_way[fit.one_way.len() - 1]];
    let distance = match fit.one_way.len() {
        1 => format!("{least:.0}"),
        _ => format!("{least:.0} to {most:.0}"),
    };
    print(&format!(
        "Wrote {}: {} of CPUs, {distance} ns one way, {:.2} cycles a ns.\n\
         What cannot be measured so is marked as an assumption in the file.\n\n{beside}",
        file.display(),
        number::count(fit.one_way.len(), "pair"),
        fit.clock_ghz,
    ))
}
