//! `locklab compare` with kernels: builds, boots and judges two of them.

use super::arguments::KernelRequest;
use crate::comparison::{Comparison, Options, Planned};
use locklab_harness::backend::Backend;
use locklab_harness::settings::{DesignSettings, over};
use locklab_host::error::Error;
use locklab_judge::Family;
use locklab_kernel::cache::Cache;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::settings::{GuestSettings, TestMachineSettings};
use locklab_kernel::workload::{Load, Workload};
use locklab_kernel::{Plan, prepare};
use serde_json::json;

/// The default number of link orders: the fewest that are judged.
const LAYOUTS: u32 = 8;

/// A comparison of two kernels, before anything is built.
pub(super) struct PlannedKernels<'a> {
    /// Holds what is built and booted.
    pub plan: Plan,
    /// Sources and builds.
    pub cache: &'a Cache<'a>,
    /// Says how it is carried out.
    pub options: Options<'a>,
}

/// Returns the comparison that the command line asks for.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid, or a number is
/// out of range.
pub(super) fn planned<'a>(
    args: &KernelRequest<'_>,
    cache: &'a Cache<'a>,
    options: Options<'a>,
) -> Result<PlannedKernels<'a>, Error> {
    options.args.check(options.common)?;
    let mut experiment = args.experiment()?;
    if args.kernels.host.is_some() {
        experiment.machine.on.clone_from(&args.kernels.host);
    }
    let disk = &args.kernels.scratch_disk;
    experiment.machine.typed_disk.clone_from(disk);
    let settings = (args.design, &args.kernels.guests);
    let plan = plan(experiment, &args.workloads()?, settings, options.args.aa)?;
    Ok(PlannedKernels {
        plan,
        cache,
        options,
    })
}

/// Returns the plan of a comparison of two kernels; the settings of the command line
/// take precedence over those of the file.
///
/// # Errors
/// [`Error::Usage`] if a number is out of range, or a load needs KVM that
/// `tcg` excludes.
fn plan(
    mut experiment: Experiment,
    workloads: &[Workload],
    (design, guests): (&DesignSettings, &GuestSettings),
    aa: bool,
) -> Result<Plan, Error> {
    let design = over(design, &experiment.design)?;
    let design = design.design(LAYOUTS, Family::Holm, aa)?;
    let typed = guests.processor.is_some();
    let guests = over(guests, &experiment.guests)?;
    if experiment.machine.on.is_some() {
        guests.refuse_on_a_test_machine()?;
        // A file may have a processor for the guests that it also runs in.
        if typed {
            return Err(Error::Usage(
                "--processor is modelled in guests of QEMU, and these kernels run on a test \
                 machine, which counts its own cycles; leave it out"
                    .into(),
            ));
        }
    }
    let vcpus = guests.vcpus();
    experiment.guests.lock_profile = guests.lock_profile;
    experiment.guests.next_line = guests.next_line;
    experiment.guests.processor = guests.processor()?.map(str::to_owned);
    let mut loads = experiment.loads(workloads, guests.operations, vcpus)?;
    guests.check(&loads)?;
    disk(&experiment.machine, &mut loads)?;
    Ok(Plan {
        loads,
        experiment,
        vcpus,
        probe: guests.probe_options(),
        limit: guests.limit(),
        design,
        layouts: true,
    })
}

/// Gives fs-mark the disk that the file and the command line name.
fn disk(machine: &TestMachineSettings, loads: &mut [Load]) -> Result<(), Error> {
    let is_fs_mark = |load: &Load| load.workload == Workload::FsMark;
    if !loads.iter().any(is_fs_mark) {
        return match &machine.typed_disk {
            Some(_) => Err(Error::Usage(
                "--scratch-disk is for fs-mark, which does not run here".into(),
            )),
            None => Ok(()),
        };
    }
    let disk = machine.disk()?.map(str::to_owned);
    for load in loads.iter_mut().filter(|load| is_fs_mark(load)) {
        load.disk.clone_from(&disk);
    }
    Ok(())
}

impl<'a> Planned<'a> for PlannedKernels<'a> {
    fn would_run(&self, json: bool) -> Result<String, Error> {
        Ok(would_run(&self.plan, self.cache, json))
    }

    /// Builds the kernels.
    fn prepare(self) -> Result<Comparison<'a>, Error> {
        let Self {
            plan,
            cache,
            options,
        } = self;
        let (backend, experiment): (Box<dyn Backend + 'a>, _) = match &plan.experiment.machine.on {
            Some(target) => {
                let (kernels, experiment) =
                    locklab_kernel::test_machine::prepare(cache, &plan, target)?;
                (Box::new(kernels), experiment)
            }
            None => {
                let (kernels, experiment) = prepare(cache, &plan)?;
                (Box::new(kernels), experiment)
            }
        };
        Ok(Comparison {
            backend,
            experiment,
            options,
            note: None,
        })
    }
}

/// Returns what would be built and booted.
fn would_run(plan: &Plan, cache: &Cache<'_>, json: bool) -> String {
    if let Some(target) = &plan.experiment.machine.on {
        return match json {
            true => format!(
                "{:#}\n",
                locklab_kernel::test_machine::dry_run::json(plan, target, cache)
            ),
            false => locklab_kernel::test_machine::dry_run::text(plan, target, cache),
        };
    }
    let variants = plan.experiment.variants();
    let booted = variants.iter().filter(|v| !v.size_only).count() as u64;
    let runs = 1 + u64::from(plan.experiment.guests.lock_profile);
    let boots = booted * 2 * runs * u64::from(plan.design.pairs) * plan.loads.len() as u64;
    if json {
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        let document = json!({
            "schema": 1,
            "dry_run": true,
            "kind": "kernel",
            "name": plan.experiment.name,
            "design": plan.design,
            "variants": names,
            "kernels": 2 * variants.len(),
            "pairs": plan.design.pairs,
            "boots": boots,
            "workloads": plan.loads,
        });
        return format!("{document:#}\n");
    }
    let mut text = format!(
        "{}: would build {} kernels, link each in {} orders, and boot {boots} times:\n",
        plan.experiment.name,
        2 * variants.len(),
        plan.design.pairs
    );
    for load in &plan.loads {
        let many = if load.processes == 1 { "" } else { "es" };
        text.push_str(&format!(
            "  {} with {} operations, {} process{many}\n",
            load.workload.name(),
            load.operations,
            load.processes
        ));
    }
    text
}
