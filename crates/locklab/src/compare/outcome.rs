//! From what was measured, or stored, to a printed report and its files.
//!
//! Must never measure: a report can be made again at any time.

use super::{Measured, Spec, verdicts};
use crate::cli::Common;
use crate::matrix_command::print;
use crate::report::{Context, compare as report};
use locklab_footprint::Footprint;
use locklab_host::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Of two builds, which are folders of ELF files.
pub(super) fn footprint(spec: &Spec, caveats: &mut Vec<String>) -> Option<Footprint> {
    let (Some(old), Some(new)) = (&spec.baseline.build, &spec.experiment.build) else {
        return None;
    };
    let options = locklab_footprint::Options::default();
    match locklab_footprint::compare(old, new, &options) {
        Ok(footprint) => Some(footprint),
        Err(e) => {
            caveats.push(format!("There is no footprint: {e}"));
            None
        }
    }
}

/// Judges and prints; says whether something is worse.
///
/// # Errors
/// It cannot be judged, or the HTML cannot be written.
pub(super) fn render(
    measured: &Measured,
    footprint: Option<&Footprint>,
    context: &Context,
    common: &Common,
    html: Option<&Path>,
) -> Result<bool, Error> {
    let verdicts = verdicts::judge(measured).map_err(|e| Error::Failed(e.to_string()))?;
    let report = report::Report {
        measured,
        verdicts: &verdicts,
        footprint,
        context,
    };
    print(&if common.json {
        format!("{:#}\n", report::json(&report))
    } else {
        report::text(&report)
    })?;
    if let Some(path) = html {
        std::fs::write(path, report::html(&report)).map_err(|e| {
            Error::Failed(format!(
                "cannot write {}: {e}; the samples are stored, so 'locklab results show' with \
                 another --html FILE makes it again",
                path.display()
            ))
        })?;
    }
    Ok(verdicts
        .workloads
        .iter()
        .any(verdicts::JudgedWorkload::is_worse))
}

/// The report of a stored comparison again.
///
/// # Errors
/// As of a new one.
pub(crate) fn show(
    measured: &mut Measured,
    context: &Context,
    common: &Common,
    html: Option<&Path>,
) -> Result<ExitCode, Error> {
    let footprint = footprint(&measured.spec, &mut measured.caveats);
    render(measured, footprint.as_ref(), context, common, html)?;
    Ok(ExitCode::SUCCESS)
}
