//! Published experiments with kernels that are built and booted.

use super::arguments::ReproduceArgs;
use crate::cli::Common;
use crate::commands::kernel::{cache, compare};
use locklab_document::render;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::{Plan, published};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The plan of a report, restricted by the arguments.
fn plan(name: &str, args: &ReproduceArgs, cache: &Cache<'_>) -> Result<Plan, Error> {
    let mut experiment = Experiment::read(&published::unpack(cache, name)?)?;
    experiment.keep_variants(&args.variant)?;
    compare::plan(
        experiment,
        &args.workload,
        (&args.design, &args.guests),
        args.comparing.aa,
    )
}

/// Prints which kernels would be built and booted.
///
/// # Errors
/// If the report's file cannot be read, or standard output cannot be written.
pub(super) fn dry_run(
    name: &str,
    args: &ReproduceArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&args.cache, common, &interrupt)?;
    compare::dry_run(&plan(name, args, &cache)?, common, &cache)
}

/// Builds, boots and judges a report's kernels; returns the report as JSON, and
/// the error if something is missing from it.
///
/// # Errors
/// If nothing could be measured at all.
pub(super) fn reproduce(
    name: &str,
    args: &ReproduceArgs,
    common: &Common,
) -> Result<(Value, Option<Error>), Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&args.cache, common, &interrupt)?;
    let plan = plan(name, args, &cache)?;
    let (judged, comparing) = compare::measure(&plan, &args.comparing, common, &cache)?;
    let figures = published::beside(&judged.experiment, &judged.verdicts, name)?;
    let (same, of) = published::agreement(&figures);
    let mut value = render::json(&judged.document);
    value["name"] = json!(name);
    value["provenance"] = json!(judged.experiment.provenance);
    value["figures"] = json!(figures);
    value["agreement"] = json!({
        "direction": (of > 0).then(|| same as f64 / of as f64),
        "directed": of,
    });
    if !common.json {
        comparing.print(&judged)?;
    }
    Ok((value, judged.trouble))
}
