//! `locklab reproduce` of a report about kernels.

use super::compare::{dry_run, loads, measure};
use crate::cli::{Common, ReproduceArgs};
use crate::kernel::published;
use crate::kernel::recipe::Experiment;
use locklab_host::error::Error;
use locklab_host::interrupt;
use serde_json::{Value, json};

/// The names of the reports.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    published::names()
}

/// Builds, boots and judges a report's kernels: the report as a document and
/// as text, and what is missing from it.
///
/// # Errors
/// Nothing could be measured at all.
pub(crate) fn reproduce(
    name: &str,
    args: &ReproduceArgs,
    common: &Common,
) -> Result<(Value, String, Result<(), Error>), Error> {
    let interrupt = interrupt::listen()?;
    let lab = super::lab(args.cache.cache.as_deref(), common, &interrupt)?;
    let mut experiment = Experiment::read(&published::unpack(&lab, name)?)?;
    experiment.keep_variants(&args.variant)?;
    let loads = loads(&args.runs, &experiment)?;
    if common.dry_run {
        let text = format!("{name}: {}", dry_run(&args.runs, &experiment, &loads));
        return Ok((Value::Null, text, Ok(())));
    }
    let report = measure(&args.runs, common, &lab, &experiment, &loads)?;
    let figures = published::beside(&report, name)?;
    let (same, of) = published::agreement(&figures);
    let mut document = report.json();
    document["provenance"] = json!({"source": report.provenance()});
    document["figures"] = json!(figures);
    document["agreement"] = json!({
        "direction": (of > 0).then(|| same as f64 / of as f64),
        "directed": of,
    });
    let text = report.text() + &published::text(&figures) + "\n";
    Ok((document, text, report.complete()))
}
