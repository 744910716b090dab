//! Published experiments that are simulated: by name, or by a file of the
//! user's.

use crate::arguments::Common;
use crate::arguments::workers;
use crate::output::{answer, print};
use locklab_document::render;
use locklab_harness::progress::Progress;
use locklab_host::error::Error;
use locklab_published::{File, Reproduction, log_error, report, simulate_experiment};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Simulates a file beside its figures: an experiment, or figures of the user's own.
///
/// # Errors
/// [`Error::Usage`] if the file or its reference cannot be read or is invalid,
/// or an option is for measured comparisons only; [`Error::Failed`] if a lock
/// does not work in the simulator, or standard output cannot be written.
pub fn file(path: &Path, seed: u64, common: &Common) -> Result<ExitCode, Error> {
    let file = File::read(path)?;
    if common.dry_run {
        return dry_run(path, &file, common);
    }
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let progress = Progress::new(1, "simulations", common.quiet);
    let shows = |at, of| progress.set(at as u64, of as u64, &title);
    let workers = workers();
    let (report, times) = match &file {
        File::Experiment(both) => {
            let (experiment, reference) = &**both;
            let report = simulate_experiment(&title, experiment, reference, seed, workers, shows)?;
            (report, None)
        }
        File::Own(own) => {
            let (report, times) = own.simulate(&title, seed, workers, shows)?;
            (report, Some(times))
        }
    };
    drop(progress);
    let (mut value, report) = shown(report, common)?;
    if common.json {
        if let Some(times) = times {
            value["times"] = json!(times);
            value["times_log_error"] = json!(log_error(&times));
        }
        print(&format!("{:#}\n", report::json(&[value], &[report])))?;
    } else if let Some(section) = times.as_deref().and_then(report::times) {
        let document = report::alone(section);
        print(&render::text(&document, render::Colour::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what would be simulated.
fn dry_run(path: &Path, file: &File, common: &Common) -> Result<ExitCode, Error> {
    let name = path.display().to_string();
    let (kind, title) = match file {
        File::Experiment(both) => ("published", both.0.title.as_str()),
        File::Own(own) => ("reference", own.title()),
    };
    let json = || json!({"schema": 1, "dry_run": true, "kind": kind, "file": name});
    let text = || format!("Would simulate {name}: {title}.\n");
    answer(common.json, json, text)
}

/// Simulates the experiment of this name and prints it.
///
/// # Errors
/// If it cannot be simulated, or standard output cannot be written.
pub(super) fn simulate(
    name: &str,
    seed: u64,
    common: &Common,
) -> Result<(Value, Reproduction), Error> {
    let progress = Progress::new(1, "simulations", common.quiet);
    let result = locklab_published::reproduce(name, seed, workers(), |at, of| {
        progress.set(at as u64, of as u64, name);
    });
    drop(progress);
    shown(result?, common)
}

/// Prints a simulated experiment as text, and returns it as JSON too.
fn shown(report: Reproduction, common: &Common) -> Result<(Value, Reproduction), Error> {
    let mut value = serde_json::to_value(&report)
        .map_err(|e| Error::Failed(format!("cannot write the report: {e}")))?;
    value["provenance"] = json!({"source": "simulation"});
    if !common.json {
        let text = render::text(&report::document(&report), render::Colour::for_stdout());
        print(&format!("{text}\n"))?;
    }
    Ok((value, report))
}
