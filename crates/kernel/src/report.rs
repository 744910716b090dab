//! The sections that only kernels add to a report: the question, sizes of
//! images, inlined copies, and the change itself. They are made from the stored
//! experiment, so that a stored report has them too. This module must never
//! judge.

use crate::build::Build;
use crate::lock_report;
use crate::published;
use crate::recipe::Variant;
use locklab_document::Section;
use locklab_footprint::Footprint;
use locklab_host::error::Error;
use locklab_lab::experiment::Experiment;
use locklab_lab::report::{Additions, Reporter};
use locklab_lab::verdicts::Verdicts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The caveat about counts.
pub(crate) const MODEL: &str = "Counts are of instructions in QEMU and of a modelled L1i (32 KiB, \
                                8 ways, 64-byte lines); prefetch, micro-op cache, speculation \
                                and L2 are not modelled. One vCPU: a lock is never contended, and \
                                client and server share the cache.";

/// The longest change that is printed, in lines.
const LONGEST_PATCH: usize = 60;
/// The most functions whose inlined copies are listed.
const MOST_COPIES: usize = 8;

/// Sizes of the two kernels of a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantSizes {
    /// Its name; empty for the only one.
    pub variant: String,
    /// Totals by the rules of bloat-o-meter, in one line.
    pub totals: String,
    /// Bytes of all functions and objects, by the same rules.
    pub bytes: [u64; 2],
    /// The same as JSON.
    pub bloat_o_meter: Value,
    /// Bytes of function symbols.
    pub text: Value,
    /// bzImage, in bytes.
    pub bzimage: [Option<u64>; 2],
    /// Inlined copies of a function: its name, and their number in each kernel.
    pub inlined: Vec<(String, [u64; 2])>,
}

/// The sizes of two builds.
///
/// # Errors
/// [`Error::Failed`] if an image cannot be read.
pub(crate) fn sizes(variant: &Variant, old: &Build, new: &Build) -> Result<VariantSizes, Error> {
    let options = locklab_footprint::Options::default();
    let footprint: Footprint = locklab_footprint::compare(&old.vmlinux, &new.vmlinux, &options)
        .map_err(|e| Error::Failed(e.to_string()))?;
    let bytes = |path: &Path| path.metadata().ok().map(|facts| facts.len());
    let totals = &footprint.bloat_o_meter.totals;
    let functions = footprint.inlined.as_ref().map_or(&[][..], |i| &i.functions);
    let changed = functions.iter().filter(|c| c.call_sites.delta() != 0);
    Ok(VariantSizes {
        variant: variant.name.clone(),
        totals: totals.to_string(),
        bytes: [totals.before, totals.after],
        inlined: changed
            .take(MOST_COPIES)
            .map(|c| {
                (
                    c.name.clone(),
                    [c.call_sites.baseline, c.call_sites.experiment],
                )
            })
            .collect(),
        bloat_o_meter: json!(footprint.bloat_o_meter),
        text: json!(footprint.text),
        bzimage: [bytes(&old.bzimage), bytes(&new.bzimage)],
    })
}

/// The specification of a comparison of kernels, as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// The question in one line.
    pub(crate) question: String,
    /// Name of the published report.
    pub(crate) reference: Option<String>,
    pub(crate) loads: Value,
    pub(crate) vcpus: u64,
    /// The unit of the guests' clock.
    pub(crate) clock_unit: String,
    pub(crate) sizes: Vec<VariantSizes>,
    /// The experiment's change.
    pub(crate) patch: String,
}

impl Spec {
    /// That of an experiment; an empty one if another version stored it.
    fn of(experiment: &Experiment) -> Self {
        Self::deserialize(&experiment.spec).unwrap_or_default()
    }
}

/// The sizes that an experiment holds.
#[must_use]
pub fn sizes_of(experiment: &Experiment) -> Vec<VariantSizes> {
    Spec::of(experiment).sizes
}

/// What kernels add to a report.
pub const REPORTER: Reporter = Reporter {
    kind: crate::recipe::KIND,
    of: |_| true,
    additions,
};

fn additions(experiment: &Experiment, verdicts: &Verdicts) -> Additions {
    let spec = Spec::of(experiment);
    let reference = spec.reference.as_deref().unwrap_or_default();
    let figures = published::beside(experiment, verdicts, reference).unwrap_or_default();
    let mut sections = sections(&spec);
    sections.extend(lock_report::sections(experiment));
    sections.extend(published::section(&figures));
    let mut data = data(&spec);
    data.insert("figures".into(), json!(figures));
    data.extend(lock_report::data(experiment));
    Additions { sections, data }
}

/// Sections after the workloads.
fn sections(spec: &Spec) -> Vec<Section> {
    let mut sections = Vec::new();
    if !spec.question.is_empty() {
        sections.push(Section::new("Question").prose(spec.question.as_str()));
    }
    for sizes in &spec.sizes {
        let comma = if sizes.variant.is_empty() { "" } else { ", " };
        let mut section = Section::new(format!("Footprint{comma}{}", sizes.variant));
        for line in sizes.totals.lines() {
            section = section.prose(line);
        }
        if let Some(rules) = sizes.bloat_o_meter["rules"].as_str() {
            section = section.note(format!("As bloat-o-meter counts, rules of {rules}."));
        }
        if let [Some(old), Some(new)] = sizes.bzimage {
            section = section.prose(format!(
                "bzImage: {old} -> {new} bytes ({:+.2} %)",
                percent(old, new)
            ));
        }
        let copies: Vec<String> = sizes
            .inlined
            .iter()
            .map(|(name, [old, new])| format!("{name:<40} {old:>6} -> {new:>6} inlined copies"))
            .collect();
        if !copies.is_empty() {
            section = section.preformatted(copies.join("\n"));
        }
        sections.push(section);
    }
    let patch = spec.patch.as_str();
    if !patch.is_empty() && patch.lines().count() <= LONGEST_PATCH {
        sections.push(Section::new("The experiment's change").preformatted(patch));
    }
    sections
}

/// The additional JSON fields of a comparison of kernels.
fn data(spec: &Spec) -> Map<String, Value> {
    let footprint = spec.sizes.iter().map(|sizes| {
        json!({
            "variant": sizes.variant,
            "bloat_o_meter": sizes.bloat_o_meter,
            "text": sizes.text,
            "bzimage": {"baseline": sizes.bzimage[0], "experiment": sizes.bzimage[1]},
        })
    });
    Map::from_iter([
        ("name".to_owned(), json!(spec.name)),
        ("vcpus".to_owned(), json!(spec.vcpus)),
        ("footprint".to_owned(), footprint.collect()),
        ("patch".to_owned(), json!(spec.patch)),
    ])
}

/// The change in percent.
pub(crate) fn percent(old: u64, new: u64) -> f64 {
    (new as f64 / old as f64 - 1.0) * 100.0
}
