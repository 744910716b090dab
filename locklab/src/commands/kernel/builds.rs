//! `locklab kernel build` and `locklab kernel inlined`: builds kernels, and
//! lists where a function was inlined in them.

use super::arguments::FileArgs;
use crate::arguments::Common;
use crate::output::answer;
use clap::Args;
use locklab_footprint::{CallSite, Footprint};
use locklab_host::error::Error;
use locklab_judge::Side;
use locklab_kernel::cache::Cache;
use locklab_kernel::{equipped, made};
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;

/// `locklab kernel inlined`.
#[derive(Debug, Args)]
pub struct InlinedArgs {
    /// The function, such as finish_task_switch
    pub function: String,
    #[command(flatten)]
    pub(crate) file: FileArgs,
}

pub(super) fn build_only(
    args: &FileArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let experiment = equipped(cache, &args.experiment()?, [])?;
    let mut text = String::new();
    let mut list = Vec::new();
    for variant in experiment.variants() {
        for which in Side::BOTH {
            if common.dry_run {
                let recipe = experiment.recipe(which, Some(&variant));
                let _ = writeln!(text, "Would build {} {which}: {recipe:?}", variant.name);
                continue;
            }
            let (made, _) = made(cache, &experiment, &variant, which)?;
            let took = made
                .seconds
                .map_or("from the cache".into(), |s| format!("{s:.0} s"));
            let _ = writeln!(
                text,
                "{} {which} {}: {} ({took})",
                variant.name,
                made.release,
                made.vmlinux.display()
            );
            list.push(json!({
                "variant": variant.name, "side": which, "release": made.release,
                "vmlinux": made.vmlinux, "bzimage": made.bzimage, "compiler": made.compiler,
                "seconds": made.seconds,
            }));
        }
    }
    let json = || json!({"schema": 1, "kind": "kernel-build", "builds": list});
    answer(common.json && !common.dry_run, json, || text)
}

pub(super) fn inlined(
    args: &InlinedArgs,
    common: &Common,
    cache: &Cache<'_>,
) -> Result<ExitCode, Error> {
    let experiment = equipped(cache, &args.file.experiment()?, [])?;
    let mut text = String::new();
    let mut list = Vec::new();
    for variant in experiment.variants() {
        let (old, _) = made(cache, &experiment, &variant, Side::Baseline)?;
        let (new, _) = made(cache, &experiment, &variant, Side::Experiment)?;
        let options = locklab_footprint::Options {
            call_sites_of: Some(args.function.clone()),
            ..locklab_footprint::Options::default()
        };
        let footprint = locklab_footprint::compare(&old.vmlinux, &new.vmlinux, &options)
            .map_err(|e| Error::Failed(e.to_string()))?;
        let sites = call_sites(footprint, &args.function)?;
        let total = |pick: fn(&CallSite) -> u64| sites.iter().map(pick).sum::<u64>();
        let _ = writeln!(
            text,
            "{}{}{} was inlined {} times in the baseline, {} times in the experiment",
            variant.name,
            if variant.name.is_empty() { "" } else { ": " },
            args.function,
            total(|site| site.copies.baseline),
            total(|site| site.copies.experiment)
        );
        for site in &sites {
            let through = site
                .through
                .as_ref()
                .map_or(String::new(), |t| format!(" through {t}"));
            let _ = writeln!(
                text,
                "  {:>3} -> {:>3}  {}{through} ({}:{})",
                site.copies.baseline, site.copies.experiment, site.caller, site.file, site.line
            );
        }
        list.push(json!({"variant": variant.name, "call_sites": sites}));
    }
    let json = || {
        json!({"schema": 1, "kind": "kernel-inlined", "function": args.function,
               "variants": list})
    };
    answer(common.json, json, || text)
}

/// Returns the places where the function was inlined on either side.
///
/// # Errors
/// [`Error::Failed`] if a kernel has no debug information that says it: none would
/// then mean nothing.
fn call_sites(footprint: Footprint, function: &str) -> Result<Vec<CallSite>, Error> {
    match footprint.inlined.and_then(|inlined| inlined.call_sites) {
        Some(found) => Ok(found.sites),
        None => {
            let missing = footprint.notes.iter().find(|note| note.contains("debug"));
            let missing = missing.map_or("", |note| note.trim_end_matches('.'));
            Err(Error::Failed(format!(
                "where {function} was inlined is not known; {missing} (for a kernel, \
                 CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y)"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_debug_information_is_not_one_that_inlines_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("kernel.c");
        std::fs::write(
            &source,
            "static inline __attribute__((always_inline)) int f(int n) { return n * 3; }
             int g(int n) { return f(n); }",
        )
        .unwrap();
        let build = |option: &str| {
            let object = folder.path().join(format!("{option}.o"));
            let built = std::process::Command::new("gcc")
                .args(["-O1", option, "-c", "-o"])
                .args([&object, &source])
                .status();
            assert!(built.expect("gcc (apt-get install gcc)").success());
            object
        };
        let options = locklab_footprint::Options {
            call_sites_of: Some("f".into()),
            ..locklab_footprint::Options::default()
        };
        let (with, without) = (build("-g"), build("-g0"));
        let sites = |old, new| {
            let footprint = locklab_footprint::compare(old, new, &options).unwrap();
            call_sites(footprint, "f")
        };
        assert_eq!(sites(&with, &with).unwrap().len(), 1);
        let error = sites(&with, &without).unwrap_err().to_string();
        assert!(
            error.starts_with("where f was inlined is not known; ")
                && error.contains("-g0.o has no debug information")
                && error.lines().count() == 1,
            "{error}"
        );
    }
}
