//! `locklab footprint`: two ELF files or folders, symbol by symbol.
//!
//! Wiring only: the reading, the pairing and the words are
//! `locklab-footprint`'s.

use crate::cli::{Common, FootprintArgs};
use crate::matrix_command::print;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_footprint::{Footprint, HotCounts, Options, Pair, compare, parse_counts, render};
use locklab_host::error::Error;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs it.
///
/// # Errors
/// One sentence.
pub(crate) fn run(args: &FootprintArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!(
            "Would read {} and {}.\n",
            args.old.display(),
            args.new.display()
        ));
    }
    let hot = hot(args)?;
    let bar = bar(common.quiet);
    let tell = |behind: u64, of: u64| {
        bar.set_length(of);
        bar.set_position(behind);
    };
    let options = Options {
        inlined: true,
        call_sites_of: args.call_sites.clone(),
        hot,
        progress: Some(&tell),
    };
    let footprint = compare(&args.old, &args.new, &options);
    bar.finish_and_clear();
    let footprint = footprint.map_err(|e| Error::Failed(e.to_string()))?;
    if let (Some(wanted), Some(inlined)) = (&args.call_sites, &footprint.inlined)
        && inlined
            .call_sites
            .as_ref()
            .is_none_or(|c| c.sites.is_empty())
        && !common.quiet
    {
        eprintln!("'{wanted}' was inlined nowhere on either side, or has another name.");
    }
    print(&if common.json {
        format!("{:#}\n", document(&footprint))
    } else {
        render(&footprint, args.rows)
    })
}

/// The footprint for programs.
pub(crate) fn document(footprint: &Footprint) -> Value {
    let mut document = json!({
        "schema": 1,
        "kind": "footprint",
        "tool": crate::report::VERSION,
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
    let (Some(old), Some(new)) = (&args.old_counts, &args.new_counts) else {
        return Ok(None);
    };
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::Usage(format!("cannot read {}: {e}", path.display())))?;
        parse_counts(&text).map_err(|e| Error::Usage(format!("{}: {e}", path.display())))
    };
    Ok(Some(HotCounts {
        counts: Pair {
            baseline: read(old)?,
            experiment: read(new)?,
        },
        ..HotCounts::default()
    }))
}

fn bar(quiet: bool) -> ProgressBar {
    let target = if quiet {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let style = "{wide_bar} {bytes}/{total_bytes} read, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    // A small file is read before a bar can be.
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
