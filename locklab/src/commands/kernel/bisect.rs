//! `locklab kernel bisect`: the result of a comparison as the exit codes of
//! `git bisect run`.

use super::arguments::CompareArgs;
use super::compare::{dry_run, measure, plan_of};
use crate::cli::Common;
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
    args: &CompareArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let measured = (|| {
        let plan = plan_of(args)?;
        if common.dry_run {
            return dry_run(&plan, common, cache).map(|_| None);
        }
        measure(&plan, &args.comparing, common, cache).map(Some)
    })();
    let (judged, comparing) = match measured {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(measured)) => measured,
        Err(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
        Err(why) => {
            message::print(format_args!("locklab: {why}"));
            return Ok(ExitCode::from(ABORT));
        }
    };
    comparing.print(&judged)?;
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
