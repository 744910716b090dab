//! `locklab doctor`: what this machine can measure, and the remedy for the
//! rest.

use crate::arguments::{Common, StoreArgs};
use crate::commands::kernel::{self, CacheArgs};
use crate::output::{answer, print};
use clap::Args;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::{interrupt, message};
use locklab_kernel::settings::{Target, TestMachineSettings};
use locklab_native::doctor::{examine, json, text};
use locklab_native::{Native, resolution};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// `locklab doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Measure, in 10 s, how small a difference this machine shows in a minute,
    /// and store that: `matrix --dry-run` then predicts how many cells are decided
    #[arg(long)]
    pub calibrate: bool,
    /// A test machine for kernels, such as ssh:root@testhost: examine it instead of this
    /// machine; nothing on it is changed
    #[arg(long, value_name = "ssh:HOST", conflicts_with_all = ["calibrate", "store"])]
    pub host: Option<Target>,
    /// Serial number of the test machine's disk that fs-mark overwrites: report whether it may
    /// [default: report on each disk]
    #[arg(long, value_name = "SERIAL", requires = "host")]
    pub scratch_disk: Option<String>,
}

/// The time in which the resolution of a machine is measured.
const MEASURED: Duration = Duration::from_secs(10);

/// Examines the machine, and prints the findings.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &DoctorArgs, common: &Common) -> Result<ExitCode, Error> {
    if let Some(target) = &args.host {
        return test_machine(target, args.scratch_disk.clone(), common);
    }
    if common.dry_run {
        return print(
            "would look at this machine's settings, try its counters, time its CPUs for a second \
             and look for programs; nothing would be changed\n",
        );
    }
    if args.calibrate {
        return calibrate(args, common);
    }
    let machine = Environment::read().name();
    let checks = examine(args.store.path());
    let shown = || text(&checks, &machine);
    answer(common.json, || json(&checks, &machine), shown)
}

/// Examines a test machine for kernels.
fn test_machine(
    target: &Target,
    scratch_disk: Option<String>,
    common: &Common,
) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&format!(
            "would ask {} by ssh what it is; nothing on it would be changed\n",
            target.destination()
        ));
    }
    let interrupt = interrupt::listen()?;
    let cache = kernel::cache(&CacheArgs::default(), common, &interrupt)?;
    let settings = TestMachineSettings {
        scratch_disk,
        ..TestMachineSettings::default()
    };
    let (machine, checks) = locklab_kernel::test_machine::doctor(&cache, target, &settings)?;
    let shown = || text(&checks, &machine);
    answer(common.json, || json(&checks, &machine), shown)
}

/// Measures the resolution of a machine, keeps it and prints it.
fn calibrate(args: &DoctorArgs, common: &Common) -> Result<ExitCode, Error> {
    let store = args.store.path()?;
    let interrupt = interrupt::listen()?;
    if !common.quiet {
        message::print(format_args!(
            "Measuring what this machine resolves: {} s.",
            MEASURED.as_secs()
        ));
    }
    let native = Native::probe();
    let resolution = resolution::measure(&native, MEASURED, &interrupt)?;
    if let Some(path) = resolution::path(&store) {
        resolution::write(&resolution, &path)?;
    }
    let json = || serde_json::json!({ "schema": 1, "machine_card": resolution });
    let mut text = format!("Machine card of {}\n", resolution.machine.name);
    for (name, value) in resolution.facts() {
        let _ = writeln!(text, "{name:<12}  {value}");
    }
    answer(common.json, json, || text)
}
