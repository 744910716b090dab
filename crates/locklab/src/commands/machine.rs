//! `locklab machine`: modelled machines, and a model of this one.

use crate::cli::Common;
use crate::comparing::show;
use crate::output::print;
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_host::topology::Topology;
use locklab_native::round_trip;
use locklab_sim::Machine;
use locklab_simulated::machines;
use std::hint::{black_box, spin_loop};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    /// Measure how far apart this machine's CPUs are, and write a machine file
    Fit {
        /// Where to
        file: PathBuf,
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
        MachineCommand::Fit { file } => fit(file, common),
    }
}

fn named(name: &str) -> Result<Machine, Error> {
    Machine::named(name).map_err(|e| Error::Usage(e.to_string()))
}

/// Pairs of CPUs measured at most.
const MOST_PAIRS: usize = 64;

fn fit(file: &Path, common: &Common) -> Result<ExitCode, Error> {
    let topology = Topology::read();
    let cpus = topology.order.len();
    if cpus < 2 {
        return Err(Error::Failed(
            "only one CPU may be used, so there is no distance to measure; allow more (taskset)"
                .into(),
        ));
    }
    let pairs: Vec<(usize, usize)> = (0..cpus)
        .flat_map(|a| (a + 1..cpus).map(move |b| (a, b)))
        .collect();
    // Every k-th, so that all distances are among them.
    let step = pairs.len().div_ceil(MOST_PAIRS);
    let pairs: Vec<_> = pairs.into_iter().step_by(step).collect();
    if common.dry_run {
        return print(&format!(
            "Would measure {} pairs of CPUs and write {}.\n",
            pairs.len(),
            file.display()
        ));
    }
    let mut one_way = Vec::new();
    for (a, b) in pairs {
        if let Some(trip) = round_trip::measure(topology.order[a], topology.order[b]) {
            one_way.push(trip / 2.0);
        }
    }
    if one_way.is_empty() {
        return Err(Error::Failed(
            "no two CPUs met within 20 ms; the machine is too busy, try again".into(),
        ));
    }
    one_way.sort_by(f64::total_cmp);
    let at = |part: f64| one_way[((one_way.len() - 1) as f64 * part) as usize].max(1.0);
    let text = machine_file(&topology, &one_way, at(0.25), at(0.5), at(0.9));
    Machine::parse(&file.display().to_string(), &text)
        .map_err(|e| Error::Failed(format!("what was measured makes no machine: {e}")))?;
    std::fs::write(file, &text)
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", file.display())))?;
    print(&format!(
        "Wrote {}: {} pairs of CPUs, {:.0} to {:.0} ns one way.\n\
         What cannot be measured so is marked as an assumption in the file.\n",
        file.display(),
        one_way.len(),
        one_way[0],
        one_way[one_way.len() - 1]
    ))
}

/// Nanoseconds of one of many.
fn nanoseconds(times: u32, mut once: impl FnMut()) -> f64 {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..times {
            once();
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    });
    best.fold(f64::INFINITY, f64::min)
}

fn machine_file(topology: &Topology, one_way: &[f64], near: f64, middle: f64, far: f64) -> String {
    // A dependent chain of additions: one a cycle.
    let mut sum = 1_u64;
    let cycle = nanoseconds(20_000, || {
        for _ in 0..64 {
            sum = black_box(sum.wrapping_add(1));
        }
    }) / 64.0;
    // Through memory or not, a black box costs up to five cycles an addition.
    let clock = (1.0 / cycle).clamp(0.5, 6.0);
    let pause = nanoseconds(20_000, spin_loop);
    let word = AtomicU64::new(0);
    let rmw = nanoseconds(20_000, || {
        black_box(word.fetch_add(1, Ordering::SeqCst));
    });
    let cycles = |ns: f64, most: f64| (ns * clock).round().clamp(1.0, most);
    let threads = topology.order.len().div_ceil(topology.cores.max(1));
    let nodes = topology.nodes.max(1);
    let cores = topology.cores.div_ceil(nodes).max(1);
    let remote = if nodes > 1 { far } else { middle.max(far) };
    format!(
        "# Made by `locklab machine fit`, {version}.\n\
         # One-way latency of {pairs} pairs of CPUs, ns: least {least:.1}, median {median:.1}, greatest {most:.1}.\n\
         name = \"this-machine\"\n\
         description = \"Measured where `locklab machine fit` ran\"\n\
         arch = \"{arch}\"\n\n\
         [topology]\nsource = \"/sys/devices/system/cpu, CPUs that may be used\"\n\
         sockets = {nodes}\ncores = {cores}\nthreads = {threads}\n\n\
         [core]\n\
         clock_ghz = {{ value = {clock:.2}, assumption = \"from a chain of additions; an underestimate where each goes through memory\" }}\n\
         pause_cycles = {{ value = {pause}, source = \"measured: a loop of relaxes\" }}\n\
         rmw_cycles = {{ value = {rmw}, source = \"measured: a loop of fetch_add on one core\" }}\n\
         l1_cycles = {{ value = 5, assumption = \"typical\" }}\n\
         l2_cycles = {{ value = 14, assumption = \"typical\" }}\n\
         store_buffer = {{ value = 56, assumption = \"typical\" }}\n\
         smt_slowdown = {{ value = 1.6, assumption = \"typical\", band = [1.3, 1.9] }}\n\n\
         [transfer]\n\
         cluster_ns = {{ value = {near:.1}, source = \"measured: lower quartile of the one-way latencies\" }}\n\
         socket_ns = {{ value = {middle:.1}, source = \"measured: median\" }}\n\
         remote_ns = {{ value = {remote:.1}, source = \"measured: ninth decile\" }}\n\
         memory_ns = {{ value = 90, assumption = \"typical\" }}\n\n\
         [directory]\n\
         shared_read_ns = {{ value = 5, assumption = \"cannot be measured so\", band = [2, 30] }}\n\
         invalidate_ns = {{ value = 2, assumption = \"cannot be measured so\", band = [0.3, 4] }}\n\
         arbitration = {{ value = \"random\", assumption = \"cannot be measured so\" }}\n",
        version = locklab_lab::VERSION,
        pairs = one_way.len(),
        least = one_way[0],
        median = one_way[one_way.len() / 2],
        most = one_way[one_way.len() - 1],
        arch = if cfg!(target_arch = "aarch64") {
            "aarch64"
        } else {
            "x86_64"
        },
        pause = cycles(pause, 1000.0),
        rmw = cycles(rmw, 200.0),
    )
}
