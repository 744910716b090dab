//! `locklab machine`: modelled machines, and a model of this one.

use crate::cli::Common;
use crate::comparing::show;
use crate::output::{check_writable, print};
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_host::topology::Topology;
use locklab_lab::number;
use locklab_native::Native;
use locklab_native::fit::{self, Fit};
use locklab_sim::Machine;
use locklab_simulated::machines;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab machine`.
#[derive(Debug, Args)]
pub struct MachineArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: MachineCommand,
}

/// What to do with machines.
#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Every machine that comes with Locklab
    List,
    /// A machine's figures, each with its source or assumption
    Show {
        /// Its name, or a machine file
        machine: String,
    },
    /// Simulate a machine's published microbenchmarks: the model beside the
    /// source
    Check {
        /// Its name, or a machine file
        machine: String,
    },
    /// Measure this machine, write a machine file, and hold the two side by side
    Fit {
        /// Where to
        file: PathBuf,
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub fn run(args: &MachineArgs, common: &Common) -> Result<ExitCode, Error> {
    match &args.command {
        MachineCommand::List => print(&machines::list()),
        MachineCommand::Show { machine } => print(&machines::show(&named(machine)?)),
        MachineCommand::Check { machine } => {
            let document = machines::checked(&named(machine)?, common.seed);
            show(&document.map_err(Error::Failed)?, common)
        }
        MachineCommand::Fit { file, force } => fit(file, *force, common),
    }
}

fn named(name: &str) -> Result<Machine, Error> {
    Machine::named(name).map_err(|e| Error::Usage(e.to_string()))
}

/// Locks whose rates here are held against those on the modelled machine, in
/// pairs that run in turn.
const HELD: [[&str; 2]; 3] = [["ticket", "mcs"], ["clh", "qspinlock"], ["ttas", "ttas"]];
/// Blocks of slices of each pair.
const BLOCKS: u32 = 5;

fn fit(file: &Path, force: bool, common: &Common) -> Result<ExitCode, Error> {
    if file.exists() && !force {
        return Err(Error::Usage(format!(
            "{} is there already; --force writes over it, or name another",
            file.display()
        )));
    }
    check_writable(file)?;
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
    let fit = fit::measure(&native, &pairs).map_err(Error::Failed)?;
    let text = machine_file(topology, &fit);
    let machine = Machine::parse(&file.display().to_string(), &text)
        .map_err(|e| Error::Failed(format!("what was measured makes no machine: {e}")))?;
    let beside = beside(&native, &machine)?;
    let comment: String = beside.lines().map(|line| format!("# {line}\n")).collect();
    std::fs::write(file, format!("{text}\n{comment}"))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", file.display())))?;
    if common.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "Wrote {}: {} of CPUs, {:.0} to {:.0} ns one way, {:.2} cycles a ns.\n\
         What cannot be measured so is marked as an assumption in the file.\n\n{beside}",
        file.display(),
        number::count(fit.one_way.len(), "pair"),
        fit.one_way[0],
        fit.one_way[fit.one_way.len() - 1],
        fit.clock_ghz,
    ))
}

/// The rates of five locks, measured here and simulated on `machine`.
fn beside(native: &Native, machine: &Machine) -> Result<String, Error> {
    let threads = native.topology.order.len().min(machine.cpus()) as u64;
    let place = [threads, 8, 32];
    let mut text = format!(
        "Million acquisitions a second, {threads} threads, critical 8, non-critical 32:\n\
         {:<12} {:>10} {:>10} {:>15}\n",
        "lock", "here", "simulated", "simulated/here"
    );
    for pair in HELD {
        let measured = fit::rates(native, pair, place, BLOCKS).map_err(Error::Failed)?;
        let one = if pair[0] == pair[1] { 1 } else { 2 };
        for (lock, here) in pair.into_iter().zip(measured).take(one) {
            let spec = locklab_simulated::Spec {
                baseline: lock.into(),
                experiment: lock.into(),
                threads: vec![place[0] as usize],
                critical: vec![place[1]],
                non_critical: vec![place[2]],
                work: locklab_simulated::Work::Units,
                latency: false,
                acquisitions: None,
                physical: None,
                placement: None,
            };
            let scenario = spec.scenario(machine, place, lock, 1);
            let simulated = locklab_sim::run(&scenario)
                .map_err(|e| Error::Failed(format!("{lock} cannot be simulated: {e}")))?
                .ops_per_s;
            let _ = match here {
                Some(here) => writeln!(
                    text,
                    "{lock:<12} {:>10.3} {:>10.3} {:>15.2}",
                    here / 1e6,
                    simulated / 1e6,
                    simulated / here
                ),
                None => writeln!(
                    text,
                    "{lock:<12} {:>10} {:>10.3} {:>15}",
                    "disturbed",
                    simulated / 1e6,
                    "-"
                ),
            };
        }
    }
    Ok(text)
}

fn machine_file(topology: &Topology, fit: &Fit) -> String {
    let cycles = |ns: f64, most: f64| (ns * fit.clock_ghz).round().clamp(1.0, most);
    let threads = topology.order.len().div_ceil(topology.cores.max(1));
    let nodes = topology.nodes.max(1);
    let cores = topology.cores.div_ceil(nodes).max(1);
    let (near, middle) = (fit.near.max(1.0), fit.middle.max(1.0));
    let remote = fit.far.max(middle);
    format!(
        "# Made by `locklab machine fit`, {version}.\n\
         # One-way latency of {pairs} of CPUs, ns: least {least:.1}, median {median:.1}, greatest {most:.1}.\n\
         # Measured three times; moved meanwhile: {moved}.\n\
         name = \"this-machine\"\n\
         description = \"Measured where `locklab machine fit` ran\"\n\
         arch = \"{arch}\"\n\n\
         [topology]\nsource = \"/sys/devices/system/cpu, CPUs that may be used\"\n\
         sockets = {nodes}\ncores = {cores}\nthreads = {threads}\n\n\
         [core]\n\
         clock_ghz = {{ value = {clock:.2}, source = \"measured: a chain of dependent complements, as the matrix takes its cycle\" }}\n\
         pause_cycles = {{ value = {pause}, source = \"measured: a loop of relaxes\" }}\n\
         rmw_cycles = {{ value = {rmw}, source = \"measured: a loop of fetch_add on one core\" }}\n\
         l1_cycles = {{ value = 5, assumption = \"typical\" }}\n\
         l2_cycles = {{ value = 14, assumption = \"typical\" }}\n\
         store_buffer = {{ value = 56, assumption = \"typical\" }}\n\
         smt_slowdown = {{ value = 1.6, assumption = \"typical\", band = [1.3, 1.9] }}\n\n\
         [transfer]\n\
         cluster_ns = {{ value = {near:.1}, source = \"measured: pairs with a round trip to 40 ns, or the nearest\" }}\n\
         socket_ns = {{ value = {middle:.1}, source = \"measured: pairs with a round trip of 40 to 145 ns, or the next\" }}\n\
         remote_ns = {{ value = {remote:.1}, source = \"measured: pairs with a round trip over 145 ns, or the farthest\" }}\n\
         memory_ns = {{ value = 90, assumption = \"typical\" }}\n\n\
         [directory]\n\
         shared_read_ns = {{ value = 5, assumption = \"cannot be measured so\", band = [2, 30] }}\n\
         invalidate_ns = {{ value = 2, assumption = \"cannot be measured so\", band = [0.3, 4] }}\n\
         arbitration = {{ value = \"random\", assumption = \"cannot be measured so\" }}\n",
        version = locklab_lab::VERSION,
        pairs = number::count(fit.one_way.len(), "pair"),
        moved = number::count(fit.moved, "pair"),
        clock = fit.clock_ghz,
        least = fit.one_way[0],
        median = fit.one_way[fit.one_way.len() / 2],
        most = fit.one_way[fit.one_way.len() - 1],
        arch = if cfg!(target_arch = "aarch64") {
            "aarch64"
        } else {
            "x86_64"
        },
        pause = cycles(fit.pause, 1000.0),
        rmw = cycles(fit.rmw, 200.0),
    )
}
