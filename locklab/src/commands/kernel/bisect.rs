//! `locklab kernel bisect`: the result of a comparison as the exit codes of
//! `git bisect run`.

use super::arguments::KernelRequest;
use super::compare::{PlannedKernels, planned};
use crate::comparison::{Comparison, Options, Planned as _, carry_out};
use locklab_host::error::Error;
use locklab_host::message;
use locklab_judge::Verdict;
use locklab_kernel::cache::Cache;
use std::process::ExitCode;

/// The exit code that `git bisect run` takes as "cannot be tested".
const SKIP: u8 = 125;
/// The exit code that stops it: the fault is not the kernel's.
const ABORT: u8 = 128;

/// Runs the comparison. 0 and 1 are about the kernel, 125 about this revision
/// of it; everything else stops the bisection, because a missing program would
/// be taken for a bad revision.
pub(super) fn bisect(
    args: &KernelRequest<'_>,
    cache: &Cache<'_>,
    options: Options<'_>,
) -> Result<ExitCode, Error> {
    let common = options.common;
    if common.dry_run {
        return carry_out(planned(args, cache, options)?, common);
    }
    let judged = planned(args, cache, options)
        .and_then(PlannedKernels::prepare)
        .and_then(Comparison::run);
    let judged = match judged {
        Ok(judged) => judged,
        Err(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
        Err(why) => {
            message::print(format_args!("locklab: {why}"));
            return Ok(ExitCode::from(ABORT));
        }
    };
    judged.print()?;
    let invalid = |v: &Verdict| matches!(v, Verdict::Invalid(_));
    let code = if judged.trouble.is_some() || judged.verdicts.primaries().any(invalid) {
        SKIP
    } else {
        u8::from(judged.verdicts.primaries().any(|v| *v == Verdict::Worse))
    };
    match judged.trouble {
        Some(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
        Some(why) => message::print(format_args!("locklab: {why}")),
        None => {}
    }
    Ok(ExitCode::from(code))
}
