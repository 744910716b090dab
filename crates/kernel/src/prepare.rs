//! From an experiment file to kernels that can be booted: both kernels of
//! every variant built, linked in as many orders as there are pairs, and the
//! accelerator found.
//!
//! The report names what could not be made, beside what could: a
//! comparison of many builds must not lose the finished ones.

use crate::boot::{Accelerator, Qemu};
use crate::build::{Build, build};
use crate::cache::{Cache, find};
use crate::instrument::{GuestRun, Guests, Kernel, Kernels, ReadyVariant, is_model};
use crate::kvm::{ProbeOptions, choose};
use crate::layout::{self, layout};
use crate::metrics::metrics;
use crate::recipe::{Experiment, Side, Variant};
use crate::report::{MODEL, Spec, VariantSizes, sizes};
use crate::source::{Tree, tree};
use crate::workload::{Load, Workload};
use locklab_host::error::Error;
use locklab_lab::experiment::{self as lab, Cell, Design, Key, Labels, Provenance};
use locklab_lab::instrument::Instrument as _;
use locklab_lab::progress::Progress;
use serde_json::json;
use std::time::Duration;

/// The plan of an experiment with two kernels.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment file, with the options of the command line applied.
    pub experiment: Experiment,
    /// The loads of the guests.
    pub loads: Vec<Load>,
    /// CPUs of a guest.
    pub vcpus: u64,
    /// Whether to use KVM.
    pub probe: ProbeOptions,
    /// The time limit of a boot.
    pub limit: Duration,
    /// Its pairs are link orders, each with a seed of its own, of which the
    /// design's is the first.
    pub design: Design,
    /// Which part of the experiment this process carries out.
    pub scope: Scope,
}

/// A part of an experiment, so that its layouts can be measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Whole,
    /// One layout: no other is linked, and what only a report needs (sizes,
    /// locktorture, the repetition of the first run) is left out.
    Layout(u32),
    /// What only a report needs: no layout is linked.
    Report,
}

impl Scope {
    /// Whether this layout is linked.
    fn links(self, layout: u32) -> bool {
        match self {
            Self::Whole => true,
            Self::Layout(only) => layout == only,
            Self::Report => false,
        }
    }

    fn reports(self) -> bool {
        !matches!(self, Self::Layout(_))
    }
}

/// Adds to an experiment what its workloads, and the requested ones, need in
/// both kernels: a patch of Locklab and the option that enables it.
///
/// # Errors
/// If the cache cannot be written.
pub fn equipped(
    cache: &Cache<'_>,
    experiment: &Experiment,
    asked: impl IntoIterator<Item = Workload>,
) -> Result<Experiment, Error> {
    let mut experiment = experiment.clone();
    // Those of the file are always added, because otherwise the same file would
    // be built twice.
    let of_file: Vec<Workload> = experiment.workload.iter().map(|entry| entry.name).collect();
    for workload in of_file.into_iter().chain(asked) {
        let Some([name, text, option]) = workload.needs() else {
            continue;
        };
        let patch = cache.folder("patches")?.join(name);
        std::fs::write(&patch, text).map_err(|e| cache.cannot_write(&patch, &e))?;
        experiment.kernel.equip(patch, option);
    }
    Ok(experiment)
}

/// The key of a load in a variant.
pub(crate) fn cell_key(load: &Load, variant: &str) -> Key {
    Key::workload(load.workload.name(), variant)
}

/// Makes one side of a variant: its tree, and its image if it is not in the
/// cache.
///
/// # Errors
/// The errors of [`build`], such as a missing tool, a patch that does not apply
/// or a failed build; also after Ctrl-C.
pub fn made(
    cache: &Cache<'_>,
    experiment: &Experiment,
    variant: &Variant,
    side: Side,
) -> Result<(Build, Tree), Error> {
    let recipe = experiment.recipe(side, Some(variant));
    let tree = tree(cache, &recipe, &experiment.folder)?;
    let label = [&experiment.name, variant.name.as_str(), side.word()];
    let label: Vec<&str> = label.into_iter().filter(|word| !word.is_empty()).collect();
    let made = build(cache, &recipe, &tree, &experiment.folder, &label.join(" "))?;
    Ok((made, tree))
}

/// Makes everything that `plan` needs: the instrument, and the experiment
/// that it will carry out.
///
/// # Errors
/// If a program is missing, which is found before anything is built, or there
/// is no KVM for several vCPUs; also after Ctrl-C.
pub fn prepare<'a>(
    cache: &'a Cache<'a>,
    plan: &Plan,
) -> Result<(Kernels<'a>, lab::Experiment), Error> {
    let qemu = Qemu::find()?;
    // Checked before a build of many minutes.
    for load in &plan.loads {
        for (program, package) in load.workload.programs() {
            find(program, package)?;
        }
    }
    let asked = plan.loads.iter().map(|load| load.workload);
    let experiment = equipped(cache, &plan.experiment, asked)?;
    let mut preparing = Preparing {
        cache,
        plan,
        experiment: &experiment,
        qemu: &qemu,
        accelerator: None,
        facts: vec![("QEMU".into(), qemu.version.clone())],
        caveats: Vec::new(),
        patch: String::new(),
        sizes: Vec::new(),
    };
    let mut cells = Vec::new();
    let mut ready = Vec::new();
    for variant in experiment.variants() {
        let made = match preparing.variant(&variant) {
            Err(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
            Err(error) => {
                cache.note(&error.to_string());
                Err(error.to_string())
            }
            Ok(kernels) => Ok(kernels),
        };
        for load in &plan.loads {
            if variant.size_only || load.workload == Workload::Locktorture {
                continue;
            }
            let mut cell = Cell::new(cell_key(load, &variant.name), Vec::new());
            match &made {
                Ok(Some(kernels)) => ready.push(Some((kernels.clone(), load.clone()))),
                Ok(None) => continue,
                Err(why) => {
                    cell.stopped = Some(why.clone());
                    ready.push(None);
                }
            }
            cells.push((cell, load));
        }
        if let (Err(why), true) = (made, variant.size_only || plan.loads.is_empty()) {
            preparing
                .caveats
                .push(format!("Not in this report: {}: {why}", variant.name));
        }
    }
    let accelerator = preparing.accelerator.unwrap_or(Accelerator::Tcg);
    let cells = cells
        .into_iter()
        .map(|(cell, load)| Cell {
            metrics: metrics(load, accelerator),
            ..cell
        })
        .collect();
    let prepared = preparing.experiment(accelerator, cells);
    let instrument = Kernels {
        cache,
        accelerator,
        limit: plan.limit,
        seed: plan.design.seed,
        cells: ready,
        checked: !plan.scope.reports(),
        qemu,
        prepared,
    };
    let experiment = instrument.experiment(plan.design.clone());
    Ok((instrument, experiment))
}

/// The state of the preparation.
struct Preparing<'a> {
    cache: &'a Cache<'a>,
    plan: &'a Plan,
    experiment: &'a Experiment,
    qemu: &'a Qemu,
    /// The accelerator, once it is known.
    accelerator: Option<Accelerator>,
    facts: lab::Facts,
    caveats: Vec<String>,
    /// The change of the experiment, as a patch.
    patch: String,
    sizes: Vec<VariantSizes>,
}

impl Preparing<'_> {
    /// Makes both kernels of a variant; returns `None` if only their sizes are
    /// needed.
    fn variant(&mut self, variant: &Variant) -> Result<Option<ReadyVariant>, Error> {
        let (cache, plan) = (self.cache, self.plan);
        let (old, old_tree) = made(cache, self.experiment, variant, Side::Baseline)?;
        // An A/A comparison boots the baseline twice.
        let (new, tree) = if plan.design.aa {
            (old.clone(), old_tree.clone())
        } else {
            made(cache, self.experiment, variant, Side::Experiment)?
        };
        // Facts that both have come first.
        let change = tree.patch.strip_prefix(&old_tree.patch);
        self.patch = change.unwrap_or(&tree.patch).to_owned();
        self.fact(
            "Kernel",
            &variant.name,
            format!("Linux {}, {}", old.release, old.compiler),
        );
        if plan.scope.reports() {
            self.sizes.push(sizes(variant, &old, &new)?);
        }
        if variant.size_only || plan.loads.is_empty() {
            return Ok(None);
        }
        let ready = ReadyVariant {
            name: variant.name.clone(),
            kernels: [
                self.kernel(variant, Side::Baseline, &old)?,
                self.kernel(variant, Side::Experiment, &new)?,
            ],
        };
        if self.accelerator.is_none() {
            let (known, why) = choose(cache, self.qemu, &ready.kernels[0], plan.probe, plan.vcpus)?;
            self.fact("Accelerator", "", why);
            self.accelerator = Some(known);
            for load in &plan.loads {
                let lengths = load.lengths.as_ref();
                if let Some(out) = lengths.and_then(|l| l.left_out(load.vcpus)) {
                    self.fact("Left out", "", out);
                }
            }
        }
        for load in &plan.loads {
            if load.workload == Workload::Locktorture && plan.scope.reports() {
                self.torture(variant, [&old, &new], &ready, load)?;
            }
        }
        Ok(Some(ready))
    }

    fn fact(&mut self, name: &str, variant: &str, text: String) {
        let comma = if variant.is_empty() { "" } else { ", " };
        self.facts.push((format!("{name}{comma}{variant}"), text));
    }

    /// Links a build in all its orders that belong to the scope, and names the
    /// images of the others.
    fn kernel(&self, variant: &Variant, side: Side, made: &Build) -> Result<Kernel, Error> {
        let (plan, noun) = (self.plan, format!("link orders of the {}", side.word()));
        let progress = Progress::new(plan.design.pairs.into(), &noun, self.cache.quiet);
        let images = (0..plan.design.pairs)
            .map(|pair| {
                let seed = plan.design.seed.wrapping_add(pair.into());
                let image = match plan.scope.links(pair) {
                    true => layout(self.cache, made, seed),
                    false => Ok(layout::path(made, seed)),
                };
                progress.advance(1);
                image
            })
            .collect::<Result<_, _>>()?;
        Ok(Kernel {
            images,
            modules: Some(made.objects.clone()),
            cmdline: self.experiment.recipe(side, Some(variant)).cmdline,
        })
    }

    /// Runs the kernel's own check of its locks, once on each side: it shows
    /// whether the locks hold, and compares nothing. It loads modules, which a
    /// kernel in another link order does not take, so it runs in the order of
    /// the build.
    fn torture(
        &mut self,
        variant: &Variant,
        builds: [&Build; 2],
        ready: &ReadyVariant,
        load: &Load,
    ) -> Result<(), Error> {
        let guests = Guests {
            cache: self.cache,
            qemu: self.qemu,
            accelerator: self.accelerator.unwrap_or(Accelerator::Tcg),
            limit: self.plan.limit,
        };
        let mut passed = 0;
        for (build, kernel) in builds.into_iter().zip(&ready.kernels) {
            let plain = Kernel {
                images: vec![build.vmlinux.clone()],
                ..kernel.clone()
            };
            let outcome = guests.run(&GuestRun {
                kernel: &plain,
                layout: 0,
                load,
                seed: self.plan.design.seed,
                counted: true,
            })?;
            match outcome {
                Ok(_) => passed += 1,
                Err(invalid) => return Err(Error::Failed(format!("locktorture: {invalid}"))),
            }
        }
        self.fact(
            "Locktorture",
            &variant.name,
            format!("passed in {passed} of 2 boots"),
        );
        Ok(())
    }

    fn experiment(self, accelerator: Accelerator, cells: Vec<Cell>) -> lab::Experiment {
        let plan = self.plan;
        let mut caveats = self.caveats;
        if is_model(accelerator) {
            caveats.insert(0, MODEL.into());
        }
        let name = &plan.experiment.name;
        let experiment = if plan.design.aa {
            format!("{name}, baseline again")
        } else {
            name.clone()
        };
        let machine = self.qemu.version.clone();
        lab::Experiment {
            kind: crate::recipe::KIND.into(),
            labels: Labels {
                baseline: format!("{name}, baseline"),
                experiment,
            },
            spec: json!(Spec {
                name: name.clone(),
                question: plan.experiment.question.clone(),
                reference: plan.experiment.reference.clone(),
                loads: json!(plan.loads),
                vcpus: plan.vcpus,
                clock_unit: accelerator.clock_unit().into(),
                sizes: self.sizes,
                patch: self.patch,
            }),
            design: plan.design.clone(),
            provenance: if is_model(accelerator) {
                Provenance::Model(machine)
            } else {
                Provenance::Hardware(machine)
            },
            facts: self.facts,
            caveats,
            cells,
            interrupted: None,
        }
    }
}
