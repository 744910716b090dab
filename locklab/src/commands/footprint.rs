//! `locklab footprint`: two ELF files or folders, symbol by symbol.
//!
//! Reading, pairing and phrasing are the work of
//! `locklab-footprint`.

use crate::arguments::Common;
use crate::output::{answer, print};
use clap::Args;
use locklab_footprint::{Footprint, HotCounts, Options, Pair, compare, parse_counts, render};
use locklab_harness::progress::Progress;
use locklab_host::error::Error;
use locklab_host::message;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab footprint`.
///
/// Executables, objects, archives, kernel images, or two folders of them.
#[derive(Debug, Args)]
pub struct FootprintArgs {
    /// The file or folder before
    pub old: PathBuf,
    /// The file or folder after
    pub new: PathBuf,
    /// The function whose inlining is asked about: list the call sites at which it was inlined
    #[arg(long, value_name = "FUNCTION")]
    pub inlined: Option<String>,
    /// Rows of each table of symbols; --json has all of them
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Executions of both files, for their hot text: what frontend --hot wrote, or lines of
    /// ADDRESS COUNT
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub counts: Vec<PathBuf>,
}

/// Runs `locklab footprint`.
///
/// # Errors
/// [`Error::Usage`] if an input or a file of counts is missing, damaged or of
/// another format; [`Error::Failed`] if one cannot be read, or standard output
/// cannot be written.
pub fn run(args: &FootprintArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!(
            "Would read {} and {}.\n",
            args.old.display(),
            args.new.display()
        ));
    }
    let hot = hot(args)?;
    let bar = Progress::new(0, "bytes", common.quiet);
    let tell = |behind: u64, of: u64| {
        bar.set(behind, of, "");
    };
    let options = Options {
        inlined: true,
        call_sites_of: args.inlined.clone(),
        hot,
        progress: Some(&tell),
    };
    let footprint = compare(&args.old, &args.new, &options);
    drop(bar);
    let footprint = footprint?;
    if let (Some(wanted), Some(inlined)) = (&args.inlined, &footprint.inlined)
        && inlined
            .call_sites
            .as_ref()
            .is_none_or(|c| c.sites.is_empty())
        && !common.quiet
    {
        message::print(format_args!(
            "'{wanted}' was inlined nowhere on either side, or has another name."
        ));
    }
    let text = || render(&footprint, args.rows);
    answer(common.json, || document(&footprint), text)
}

/// Returns the footprint as JSON.
pub(crate) fn document(footprint: &Footprint) -> Value {
    let mut document = json!({
        "schema": 1,
        "kind": "footprint",
        "tool": locklab_harness::VERSION,
        "provenance": "files: the symbol tables and debug information of both inputs",
    });
    if let (Value::Object(document), Ok(Value::Object(fields))) =
        (&mut document, serde_json::to_value(footprint))
    {
        document.extend(fields);
    }
    document
}

fn hot(args: &FootprintArgs) -> Result<Option<HotCounts>, Error> {
    let [old, new] = args.counts.as_slice() else {
        return Ok(None);
    };
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
        parse_counts(&text).map_err(|e| e.reworded(|why| format!("{}: {why}", path.display())))
    };
    Ok(Some(HotCounts {
        counts: Pair {
            baseline: read(old)?,
            experiment: read(new)?,
        },
        ..HotCounts::default()
    }))
}
