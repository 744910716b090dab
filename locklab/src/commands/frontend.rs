//! `locklab frontend -- CMD`: instructions, L1i misses and cycles that the front end loses, by
//! the model; for one build or for two; and workloads, ranked by what inlining can cost.

mod screen;

use crate::arguments::Common;
use crate::output::{FileFormat, answer, check_writable};
use clap::Args;
use locklab_harness::settings::Limit;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_programs::icache::change::{Change, change, counted};
use locklab_programs::icache::places::Symbols;
use locklab_programs::icache::report::{changed, json, text};
use locklab_programs::icache::{Counted, Model};
use locklab_programs::output::excerpt;
use serde_json::json as value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// The limit of an emulated run, which takes many times as long as another.
const RUN_LIMIT: Limit = Limit::seconds(3600);

/// `locklab frontend`.
///
/// Runs a program in QEMU's user mode and counts its instructions, the
/// misses of a modelled L1 instruction cache, and the cycles that the rest of
/// a processor's front end loses. The program's own output is not
/// shown. Counts of a single-threaded program repeat exactly.
#[derive(Debug, Args)]
pub struct FrontendArgs {
    /// The processor whose front end is modelled: a name, a file that ends in .toml, or
    /// none, for the L1 instruction cache only [default: this machine's]
    #[arg(long, value_name = "NAME")]
    pub processor: Option<String>,
    /// Another build of the program, run first with the same arguments: what it costs less
    #[arg(long, value_name = "PROGRAM")]
    pub before: Option<String>,
    /// The function whose inlining is asked about: it differs between the two builds
    #[arg(long, value_name = "FUNCTION", requires = "before")]
    pub inlined: Option<String>,
    /// The L1 instruction cache that is modelled: its bytes, the lines of a set, the bytes of a
    /// line, each of which may be empty, such as 65536,4 or ,,128 [default: this machine's]
    #[arg(long, value_name = "BYTES,WAYS,LINE")]
    pub l1i: Option<Cache>,
    /// Model a prefetcher of the L1i: a miss brings in the next line too
    #[arg(long)]
    pub next_line: bool,
    /// Simulate every block, which takes several times as long as a sample of them; always so
    /// with --before
    #[arg(long)]
    pub exact: bool,
    /// Write the executions of each block, as CSV that footprint reads
    #[arg(long, value_name = "FILE")]
    pub hot: Option<PathBuf>,
    /// The file to write: the program's standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Time limit of one run in seconds, after which it is killed [default: 3600; with
    /// --workload 120]
    #[arg(long, value_name = "SECONDS")]
    pub run_limit: Option<Limit>,
    /// Workloads to run, separated by commas: rank them by what inlining could cost them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<String>,
    /// Runs of each workload, after one warm-up run [default: 3]
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Amount of work in a run, relative to the default
    #[arg(long, value_name = "FACTOR", requires = "workload")]
    pub scale: Option<f64>,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present = "workload",
        conflicts_with = "workload",
        value_name = "CMD"
    )]
    pub command: Vec<String>,
}

/// The parts of a cache that are not this machine's: bytes, ways, and bytes of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cache([Option<u32>; 3]);

impl FromStr for Cache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cache = Self::default();
        let wrong = || format!("'{text}' is no cache; write BYTES,WAYS,LINE, such as 32768,8,64");
        for (at, part) in text.split(',').enumerate() {
            let part = part.trim();
            let place = cache.0.get_mut(at).ok_or_else(wrong)?;
            if !part.is_empty() {
                *place = Some(part.parse().map_err(|_| wrong())?);
            }
        }
        Ok(cache)
    }
}

/// Runs `locklab frontend`.
///
/// # Errors
/// [`Error::Usage`] if there is no program, or the cache is impossible; [`Error::Failed`] if QEMU or the plugin is missing, the program
/// cannot be emulated or failed, or a file cannot be written;
/// [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &FrontendArgs, common: &Common) -> Result<ExitCode, Error> {
    if !args.workload.is_empty() {
        return screen::run(args, common);
    }
    let two = args.before.is_some();
    let model = model(args)?
        .sampled(!args.exact && !two)
        .with_other_hashes(two);
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Err(Error::Usage("name a program to run, after --".into()));
    };
    check_inline(args, program)?;
    if common.dry_run {
        let (command, geometry) = (&args.command, model.geometry.to_string());
        let json = || value!({"schema": 1, "dry_run": true, "kind": "icache", "command": command, "geometry": geometry});
        let text = || format!("Would run {} under {geometry}.\n", command.join(" "));
        return answer(common.json, json, text);
    }
    for (path, format) in [
        (&args.hot, FileFormat::Blocks),
        (&args.output, FileFormat::Printed),
    ] {
        if let Some(path) = path {
            check_writable(path, format, common.force)?;
        }
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
    let limit = args.run_limit.unwrap_or(RUN_LIMIT).duration();
    let before = match &args.before {
        Some(baseline) => {
            let log = scratch.path().join("baseline");
            let counted = model.count(
                baseline,
                arguments,
                &folder,
                &log,
                None,
                (limit, &interrupt),
            )?;
            if let Some(status) = counted.ended.failure() {
                return Err(Error::Failed(format!(
                    "the baseline {baseline} did not end well ({status}), so there is nothing to \
                     compare with"
                )));
            }
            Some(counted)
        }
        None => None,
    };
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
    let change = before
        .as_ref()
        .and_then(|before| compared(&model, before, &counted));
    let inline = args.inlined.as_deref();
    let document = || {
        let mut document = json(&counted, &args.command);
        if let Some(change) = &change {
            document["change"] = value!(change);
            document["change"]["inline"] = value!(inline);
        }
        document
    };
    answer(common.json, document, || {
        let change = change.as_ref().map(|change| changed(change, inline));
        text(&counted, &model, &args.command) + &change.unwrap_or_default()
    })?;
    match counted.ended.failure() {
        Some(status) => {
            let log_text = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
            Err(Error::Failed(format!(
                "{program} did not end well ({status}), so the counts describe a failed run; it \
                 said: {}",
                excerpt(&log_text)
            )))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the model that is asked for. A processor that is not known, and not asked
/// for, leaves that of the cache.
fn model(args: &FrontendArgs) -> Result<Model, Error> {
    let Cache([size, ways, line]) = args.l1i.unwrap_or_default();
    let model = Model::new(size, ways, line, args.next_line)?;
    let given = args.l1i.is_some_and(|cache| cache != Cache::default());
    match args.processor.as_deref() {
        Some("none") if args.before.is_some() => Err(Error::Usage(
            "--before compares cycles, which --processor none does not model".into(),
        )),
        Some("none") => Ok(model),
        None if args.before.is_none() => match model.clone().with_processor(None, given) {
            Ok(model) => Ok(model),
            // The report says that only the cache was modelled.
            Err(_) => Ok(model),
        },
        name => model.with_processor(name, given),
    }
}

/// Checks that the function whose inlining is asked about is in one of the builds.
fn check_inline(args: &FrontendArgs, program: &str) -> Result<(), Error> {
    let (Some(symbol), Some(baseline)) = (&args.inlined, &args.before) else {
        return Ok(());
    };
    for program in [program, baseline] {
        if let Some(file) = locklab_host::process::find(program, &[])
            && Symbols::read(&file)?.has(symbol)
        {
            return Ok(());
        }
    }
    Err(Error::Usage(format!(
        "neither {baseline} nor {program} has a function '{symbol}': give its name in the symbol \
         table, or builds that have one"
    )))
}

/// Returns what the second run costs more than the first.
fn compared(model: &Model, before: &Counted, after: &Counted) -> Option<Change> {
    let (old_instructions, old) = counted(&before.report)?;
    let (new_instructions, new) = counted(&after.report)?;
    Some(change(
        model.processor()?,
        (old_instructions, &old),
        (new_instructions, &new),
    ))
}
