//! Published experiments with kernels that are built and booted.

use super::arguments::ReproduceArgs;
use crate::arguments::Common;
use crate::commands::kernel::cache;
use crate::commands::kernel::compare::{self, PlannedKernels};
use crate::comparison::{Options, Planned as _};
use crate::output::print;
use locklab_document::render;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::{report, reports};
use locklab_published::kernels;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Returns the comparison of a report, restricted by the arguments.
fn planned<'a>(
    name: &str,
    args: &ReproduceArgs,
    cache: &'a Cache<'a>,
    options: Options<'a>,
) -> Result<PlannedKernels<'a>, Error> {
    let mut experiment = Experiment::read(&reports::unpack(cache, name)?)?;
    experiment.keep_variants(&args.variant)?;
    let plan = compare::plan(
        experiment,
        &args.workload,
        (&args.design, &args.guests),
        args.comparing.aa,
    )?;
    Ok(PlannedKernels {
        plan,
        cache,
        options,
    })
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
    let options = Options::new(&args.comparing, common, &interrupt);
    print(&planned(name, args, &cache, options)?.would_run(common.json)?)
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
    args.comparing.check()?;
    let options = Options::new(&args.comparing, common, &interrupt);
    let judged = planned(name, args, &cache, options)?.prepare()?.run()?;
    let figures = report::published(&judged.experiment, &judged.verdicts);
    let mut value = render::json(&judged.document);
    value["name"] = json!(name);
    value["provenance"] = json!(judged.experiment.provenance);
    value["figures"] = json!(figures);
    value["agreement"] = json!(kernels::agreement(&figures));
    if !common.json {
        judged.print()?;
    }
    Ok((value, judged.trouble))
}
