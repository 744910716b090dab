//! `locklab icache -- CMD`: instructions and L1i misses of a program, by the
//! model.

use crate::arguments::Common;
use crate::output::print;
use clap::Args;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_lab::settings::{Limit, Renamed};
use locklab_programs::icache::Model;
use locklab_programs::icache::report::{json, text};
use locklab_programs::output::excerpt;
use locklab_programs::settings::RunLimit;
use serde_json::json as value;
use std::path::PathBuf;
use std::process::ExitCode;

/// The limit of an emulated run, which takes many times as long as another.
const RUN_LIMIT: Limit = Limit::seconds(3600);

/// `locklab icache`.
///
/// Runs a program in QEMU's user mode and counts its instructions and the
/// misses of a modelled L1 instruction cache. The program's own output is not
/// shown. Counts of a single-threaded program repeat exactly.
#[derive(Debug, Args)]
pub struct IcacheArgs {
    /// Bytes of the cache [default: this machine's]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u32>,
    /// Lines of each set [default: this machine's]
    #[arg(long, value_name = "N")]
    pub ways: Option<u32>,
    /// Bytes of each line [default: this machine's]
    #[arg(long, value_name = "BYTES")]
    pub line: Option<u32>,
    /// Model a prefetcher: a miss brings in the next line too
    #[arg(long)]
    pub next_line: bool,
    /// Write the executions of each block, as CSV that footprint reads
    #[arg(long, value_name = "FILE")]
    pub hot: Option<PathBuf>,
    /// Write the program's standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Time limit of the run in seconds, after which it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = RUN_LIMIT)]
    pub run_limit: Limit,
    /// The name of this limit in 0.2, refused with the new one.
    #[arg(long, hide = true)]
    pub time_limit: Option<Renamed<RunLimit>>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Runs `locklab icache`.
///
/// # Errors
/// [`Error::Usage`] if there is no program, or the cache is impossible; [`Error::Failed`] if QEMU or the plugin is missing, the program
/// cannot be emulated or failed, or a file cannot be written;
/// [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &IcacheArgs, common: &Common) -> Result<ExitCode, Error> {
    let model = Model::new(args.size, args.ways, args.line, args.next_line)?;
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Err(Error::Usage("name a program to run, after --".into()));
    };
    if common.dry_run {
        return print(&dry_run(&args.command, &model, common.json));
    }
    let failed = |e: std::io::Error| Error::Failed(format!("cannot make a folder: {e}"));
    let scratch = tempfile::Builder::new()
        .prefix("locklab-")
        .tempdir()
        .map_err(failed)?;
    let folder = std::env::current_dir().map_err(failed)?;
    let interrupt = interrupt::listen()?;
    let log = scratch.path().join("run");
    let hot = args
        .hot
        .as_ref()
        .map(std::path::absolute)
        .transpose()
        .map_err(failed)?;
    let limit = args.run_limit.duration();
    let counted = model.count(
        program,
        arguments,
        &folder,
        &log,
        hot.as_deref(),
        (limit, &interrupt),
    )?;
    if let Some(path) = &args.output {
        std::fs::copy(log.with_extension("out"), path)
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    }
    print(&if common.json {
        format!("{:#}\n", json(&counted, &args.command))
    } else {
        text(&counted, &model, &args.command)
    })?;
    match counted.ended.failure() {
        Some(status) => {
            let log_text = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
            Err(Error::Failed(format!(
                "{program} did not end well ({status}), so the counts are those of a failure; it \
                 said: {}",
                excerpt(&log_text)
            )))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn dry_run(command: &[String], model: &Model, as_json: bool) -> String {
    let geometry = model.geometry.to_string();
    if as_json {
        let document = value!({
            "schema": 1, "dry_run": true, "kind": "icache", "command": command,
            "geometry": geometry,
        });
        return format!("{document:#}\n");
    }
    format!("Would run {} under {geometry}.\n", command.join(" "))
}
