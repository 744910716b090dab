//! Both kernels of every variant, made for whatever runs them: built or found,
//! and linked in as many orders as there are pairs.
//!
//! The report names what could not be made, beside what could: a comparison of
//! many builds must not lose the finished ones. It must never run a kernel.

use crate::build::{Build, build};
use crate::cache::Cache;
use crate::layout::{self, Form};
use crate::plan::Plan;
use crate::recipe::{Experiment, Variant};
use crate::source::{Tree, tree};
use crate::spec::{Spec, VariantSizes, sizes};
use crate::workload::{Load, Workload, cell_key};
use locklab_harness::experiment::{self as lab, Cell, Labels, Provenance};
use locklab_harness::progress::Progress;
use locklab_host::error::Error;
use locklab_judge::Side;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// One image for each layout.
    pub images: Vec<PathBuf>,
    /// Its modules, if it has any.
    pub modules: Option<PathBuf>,
    /// The objects of the baseline's build, whose source a guest compiles; none of
    /// a kernel that existed.
    pub source: Option<PathBuf>,
    /// Holds what the kernel is booted with.
    pub cmdline: String,
}

impl Kernel {
    /// Returns the image of a layout; the first if there is only one.
    ///
    /// # Errors
    /// [`Error::Failed`] if it has no image.
    pub fn image(&self, layout: usize) -> Result<&Path, Error> {
        let image = self.images.get(layout).or(self.images.first());
        image
            .map(PathBuf::as_path)
            .ok_or_else(|| Error::Failed("there is no image to boot".into()))
    }
}

/// One variant of an experiment, ready to be booted.
#[derive(Clone, Debug)]
pub struct ReadyVariant {
    /// Its name; empty for the only one.
    pub name: String,
    /// Baseline, then experiment.
    pub kernels: [Kernel; 2],
    /// Their builds, the baseline's first; `None` where the images existed.
    pub builds: Option<[Build; 2]>,
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
    let side_word = side.to_string();
    let label = [&experiment.name, variant.name.as_str(), &side_word];
    let label: Vec<&str> = label.into_iter().filter(|word| !word.is_empty()).collect();
    let made = build(cache, &recipe, &tree, &experiment.folder, &label.join(" "))?;
    Ok((made, tree))
}

/// A cell, its load, and the kernels that it measures; `None` where they could
/// not be made.
pub type Made<'a> = (Cell, &'a Load, Option<ReadyVariant>);

/// The state of the making.
pub struct Making<'a> {
    cache: &'a Cache<'a>,
    plan: &'a Plan,
    experiment: &'a Experiment,
    form: Form,
    facts: lab::Facts,
    caveats: Vec<String>,
    /// The change of the experiment, as a patch.
    patch: String,
    sizes: Vec<VariantSizes>,
}

impl<'a> Making<'a> {
    /// Returns a state in which nothing is made yet, of an experiment that has what its
    /// workloads need.
    #[must_use]
    pub fn new(
        cache: &'a Cache<'a>,
        plan: &'a Plan,
        experiment: &'a Experiment,
        form: Form,
    ) -> Self {
        Self {
            cache,
            plan,
            experiment,
            form,
            facts: Vec::new(),
            caveats: Vec::new(),
            patch: String::new(),
            sizes: Vec::new(),
        }
    }

    /// Makes every variant, calls `made` with each that will be booted, and
    /// returns the cells with their kernels.
    ///
    /// # Errors
    /// After Ctrl-C. What could not be made otherwise is the reason why its
    /// cells are stopped.
    pub fn cells(
        &mut self,
        mut made: impl FnMut(&mut Self, &Variant, &ReadyVariant) -> Result<(), Error>,
    ) -> Result<Vec<Made<'a>>, Error> {
        let (plan, experiment) = (self.plan, self.experiment);
        let mut cells = Vec::new();
        for variant in experiment.variants() {
            let ready = self.variant(&variant).and_then(|ready| {
                if let Some(ready) = &ready {
                    made(self, &variant, ready)?;
                }
                Ok(ready)
            });
            let ready = match ready {
                Err(Error::Interrupted(why)) => return Err(Error::Interrupted(why)),
                Err(error) => {
                    self.cache.note(&error.to_string());
                    Err(error.to_string())
                }
                Ok(ready) => Ok(ready),
            };
            for load in &plan.loads {
                if variant.size_only || load.workload == Workload::Locktorture {
                    continue;
                }
                let mut cell = Cell::new(cell_key(load, &variant.name), Vec::new());
                match &ready {
                    Ok(Some(kernels)) => cells.push((cell, load, Some(kernels.clone()))),
                    Ok(None) => {}
                    Err(why) => {
                        cell.stopped = Some(why.clone());
                        cells.push((cell, load, None));
                    }
                }
            }
            if let (Err(why), true) = (ready, variant.size_only || plan.loads.is_empty()) {
                self.caveats
                    .push(format!("Not in this report: {}: {why}", variant.name));
            }
        }
        Ok(cells)
    }

    /// Makes both kernels of a variant; returns `None` if only their sizes are
    /// needed.
    fn variant(&mut self, variant: &Variant) -> Result<Option<ReadyVariant>, Error> {
        let (cache, plan) = (self.cache, self.plan);
        let recipes = Side::BOTH.map(|side| self.experiment.recipe(side, Some(variant)));
        let builds = if recipes.iter().any(|recipe| recipe.image.is_some()) {
            self.fact("Kernel", &variant.name, "images that existed".into());
            None
        } else {
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
            self.sizes.push(sizes(variant, &old, &new)?);
            Some([old, new])
        };
        if variant.size_only || plan.loads.is_empty() {
            return Ok(None);
        }
        let mut kernels = Vec::new();
        for (at, side) in Side::BOTH.into_iter().enumerate() {
            // An A/A comparison of images that exist boots the baseline's twice.
            let recipe = &recipes[if plan.design.aa { 0 } else { at }];
            kernels.push(match (&builds, &recipe.image) {
                (Some(builds), _) => Kernel {
                    images: self.images(side, &builds[at])?,
                    modules: Some(builds[at].objects.clone()),
                    source: Some(builds[0].objects.clone()),
                    cmdline: recipe.cmdline.clone(),
                },
                (None, Some(image)) => Kernel {
                    images: vec![self.existing(image)?],
                    modules: match &recipe.modules {
                        Some(modules) => Some(self.existing(modules)?),
                        None => None,
                    },
                    source: None,
                    cmdline: recipe.cmdline.clone(),
                },
                (None, None) => {
                    return Err(Error::Usage(format!(
                        "the {side} has no image, and the other side has; give both, or neither"
                    )));
                }
            });
        }
        let [experiment, baseline] = [kernels.pop(), kernels.pop()];
        Ok(baseline
            .zip(experiment)
            .map(|(baseline, experiment)| ReadyVariant {
                name: variant.name.clone(),
                kernels: [baseline, experiment],
                builds,
            }))
    }

    /// Returns a file or folder that the experiment file names.
    fn existing(&self, path: &Path) -> Result<PathBuf, Error> {
        let path = self.experiment.folder.join(path);
        if path.exists() {
            return Ok(path);
        }
        Err(Error::Usage(format!("there is no {}", path.display())))
    }

    /// Adds a fact to the head of the report.
    pub fn fact(&mut self, name: &str, variant: &str, text: String) {
        let comma = if variant.is_empty() { "" } else { ", " };
        self.facts.push((format!("{name}{comma}{variant}"), text));
    }

    /// Returns the facts, where no experiment follows.
    pub(crate) fn into_facts(self) -> lab::Facts {
        self.facts
    }

    /// Links a build in all its orders, or only names the images.
    fn images(&self, side: Side, made: &Build) -> Result<Vec<PathBuf>, Error> {
        let (plan, noun) = (self.plan, format!("link orders of the {side}"));
        let progress = Progress::new(plan.design.pairs.into(), &noun, self.cache.quiet);
        (0..plan.design.pairs)
            .map(|pair| {
                let seed = plan.design.seed.wrapping_add(pair.into());
                let image = match plan.layouts {
                    true => layout::layout(self.cache, made, seed, self.form),
                    false => Ok(layout::path(made, seed, self.form)),
                };
                progress.advance(1);
                image
            })
            .collect()
    }

    /// Returns the experiment of what was made: `setting` is what runs the kernels.
    #[must_use]
    pub fn experiment(self, setting: Setting, cells: Vec<Cell>) -> lab::Experiment {
        let plan = self.plan;
        let name = &plan.experiment.name;
        let experiment = if plan.design.aa {
            format!("{name}, baseline again")
        } else {
            name.clone()
        };
        let mut caveats = setting.caveats;
        caveats.extend(self.caveats);
        let mut facts = setting.facts;
        facts.extend(self.facts);
        lab::Experiment {
            kind: crate::recipe::KIND.into(),
            labels: Labels::new(format!("{name}, baseline"), experiment),
            spec: json!(Spec {
                name: name.clone(),
                question: plan.experiment.question.clone(),
                reference: plan.experiment.reference.clone(),
                loads: json!(plan.loads),
                vcpus: plan.vcpus,
                clock_unit: setting.clock_unit.into(),
                sizes: self.sizes,
                patch: self.patch,
            }),
            design: plan.design.clone(),
            provenance: setting.provenance,
            facts,
            caveats,
            cells,
            interrupted: None,
        }
    }
}

/// Holds what runs the kernels, for the head of a report.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Facts that come first.
    pub facts: lab::Facts,
    /// Caveats that come first.
    pub caveats: Vec<String>,
    /// The source of all figures.
    pub provenance: Provenance,
    /// The meaning of a nanosecond of the measured kernel's clock.
    pub clock_unit: &'static str,
}
