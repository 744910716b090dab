//! A matrix of two locks as an experiment file: the settings of the command
//! line, by the same names.

use super::MatrixArgs;
use super::arguments::{NativeArgs, SimulatedArgs, UnitArg};
use crate::cli::{Common, named};
use crate::comparing::ComparingArgs;
use crate::list::{Lengths, Threads};
use locklab_host::error::Error;
use locklab_lab::file;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::process::ExitCode;

/// The settings of a file; each is the option of the same name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatrixFile {
    /// Locks are compared in a matrix.
    #[serde(rename = "kind")]
    _kind: Kind,
    baseline: String,
    experiment: String,
    threads: Option<Vec<usize>>,
    critical: Option<Vec<u64>>,
    non_critical: Option<Vec<u64>>,
    workload: Option<String>,
    #[serde(default)]
    latency: bool,
    pairs: Option<u32>,
    delta: Option<f64>,
    seed: Option<u64>,
    /// A matrix on this machine.
    time: Option<u32>,
    slice_us: Option<u32>,
    layout: Option<usize>,
    pin: Option<Vec<u64>>,
    unit: Option<String>,
    #[serde(default)]
    processes: bool,
    /// A modelled machine, and its options.
    on: Option<String>,
    vcpus: Option<usize>,
    physical: Option<usize>,
    acquisitions: Option<u64>,
    placement: Option<String>,
    #[serde(default)]
    band: bool,
}

/// The only `kind` of these files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Matrix,
}

/// Runs an experiment file.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid; otherwise the
/// same errors as [`super::run`].
pub fn file(path: &Path, comparing: &ComparingArgs, common: &Common) -> Result<ExitCode, Error> {
    let text = file::read(path).map_err(Error::Usage)?;
    let located = |e: String| Error::Usage(format!("{}, {e}", path.display()));
    let file: MatrixFile = file::parse(&text).map_err(located)?;
    let mut common = common.clone();
    // The option has a default, so only a different value takes precedence.
    if let (1, Some(seed)) = (common.seed, file.seed) {
        common.seed = seed;
    }
    let args = arguments(file, comparing).map_err(located)?;
    super::run(&args, &common)
}

/// The equivalent command line; options that were given take precedence.
fn arguments(file: MatrixFile, comparing: &ComparingArgs) -> Result<MatrixArgs, String> {
    let mut comparing = comparing.clone();
    comparing.pairs = comparing.pairs.or(file.pairs);
    comparing.delta = comparing.delta.or(file.delta);
    Ok(MatrixArgs {
        baseline: file.baseline,
        experiment: Some(file.experiment),
        threads: file.threads.map(Threads),
        critical: file.critical.map(Lengths),
        non_critical: file.non_critical.map(Lengths),
        workload: named(file.workload.as_deref().unwrap_or("units"))?,
        latency: file.latency,
        comparing,
        here: NativeArgs {
            time: file.time,
            time_limit: None,
            slice_us: file.slice_us,
            layout: file.layout,
            pin: file.pin.map(Lengths),
            unit: file.unit.as_deref().map(named::<UnitArg>).transpose()?,
            processes: file.processes,
        },
        on: file.on,
        modelled: SimulatedArgs {
            vcpus: file.vcpus,
            physical: file.physical,
            acquisitions: file.acquisitions,
            placement: file.placement,
            band: file.band,
            trace: None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MatrixArgs, String> {
        arguments(file::parse(text)?, &ComparingArgs::default())
    }

    #[test]
    fn a_file_says_what_the_command_line_can() {
        let args = read(
            "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\nthreads = [1, 8]\n\
             on = 'flat-16'\npairs = 8\nacquisitions = 500\n",
        )
        .unwrap();
        assert_eq!(args.experiment(), "mcs");
        assert_eq!(args.threads.unwrap().0, [1, 8]);
        assert_eq!(args.comparing.pairs, Some(8));
        assert_eq!(args.modelled.acquisitions, Some(500));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let head = "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\n";
        for (text, part) in [
            ("unit = 'furlongs'", "none of units, ns"),
            ("threds = [1]", "line 4: unknown field `threds`"),
        ] {
            let error = read(&format!("{head}{text}\n")).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
