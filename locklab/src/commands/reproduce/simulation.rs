//! Published experiments that are simulated: by name, or by a file of the
//! user's.

use crate::arguments::locks::workers;
use crate::arguments::{Common, ComparingArgs};
use crate::output::print;
use locklab_document::render;
use locklab_host::error::Error;
use locklab_lab::file::read;
use locklab_lab::progress::Progress;
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_modelled::published;
use locklab_published::{Experiment, OwnReference, Reference, Reproduction};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Runs an experiment file of published figures: ours beside theirs. The
/// reference is expected beside the file's folder, as in this project.
///
/// # Errors
/// [`Error::Usage`] if the file or its reference cannot be read or is invalid,
/// or an option is for measured comparisons only; [`Error::Failed`] if a lock
/// does not work in the simulator, or standard output cannot be written.
pub fn file(
    path: &Path,
    design: &DesignSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let measured = DesignSettings {
        seed: None,
        ..design.clone()
    };
    let why = "is for comparisons that are judged; a published experiment is simulated beside its \
               figures";
    refuse(&measured, why)?;
    refuse(comparing, why)?;
    let name = path.display().to_string();
    let text = read(path)?;
    let experiment = Experiment::parse(&name, &text)?;
    let reference = reference_of(path, &experiment.reference)?;
    if common.dry_run {
        return print(&if common.json {
            let document = json!({"schema": 1, "dry_run": true, "kind": "published", "file": name});
            format!("{document:#}\n")
        } else {
            format!("Would simulate {name}: {}.\n", experiment.title)
        });
    }
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let progress = Progress::new(1, "simulations", common.quiet);
    let report = locklab_published::simulate_experiment(
        &title,
        &experiment,
        &reference,
        design.seed(),
        workers(),
        |at, of| progress.set(at as u64, of as u64, &title),
    );
    drop(progress);
    let (value, report) = shown(report?, common)?;
    if common.json {
        print(&format!("{:#}\n", published::json(&[value], &[report])))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Simulates a reference file of the user's own, or an experiment file.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid; otherwise the errors
/// of [`file`].
pub(super) fn own(
    path: &Path,
    design: &DesignSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let name = path.display().to_string();
    let text = read(path)?;
    if locklab_published::is_experiment(&text) {
        return file(path, design, comparing, common);
    }
    let own = OwnReference::parse(&name, &text)?;
    if common.dry_run {
        return print(&if common.json {
            let document = json!({"schema": 1, "dry_run": true, "kind": "reference", "file": name});
            format!("{document:#}\n")
        } else {
            format!("Would simulate {name}: {}.\n", own.title())
        });
    }
    let title = path.file_stem().unwrap_or_default().to_string_lossy();
    let progress = Progress::new(1, "simulations", common.quiet);
    let result = own.simulate(&title, design.seed(), workers(), |at, of| {
        progress.set(at as u64, of as u64, &title);
    });
    drop(progress);
    let (report, times) = result?;
    let (mut value, report) = shown(report, common)?;
    if common.json {
        value["times"] = json!(times);
        value["times_log_error"] = json!(locklab_published::log_error(&times));
        print(&format!("{:#}\n", published::json(&[value], &[report])))?;
    } else if let Some(section) = published::times(&times) {
        let text = render::text(&published::alone(section), render::Colour::for_stdout());
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn reference_of(path: &Path, reference: &str) -> Result<Reference, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = [folder.join(reference), folder.join("..").join(reference)];
    let found = beside.iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Usage(format!(
            "{}: there is no reference {reference} beside it",
            path.display()
        ))
    })?;
    let text = read(found)?;
    Reference::parse(reference, &text)
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
        let text = render::text(&published::document(&report), render::Colour::for_stdout());
        print(&format!("{text}\n"))?;
    }
    Ok((value, report))
}
