//! The sections that only kernels add to a report: the question, sizes of
//! images, inlined copies, and the change itself. They are made from the stored
//! experiment, so that a stored report has them too. This module must never
//! judge.

use crate::build::Build;
use crate::recipe::Variant;
use locklab_document::Section;
use locklab_footprint::Footprint;
use locklab_host::error::Error;
use locklab_lab::experiment::Experiment;
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

/// The sizes that an experiment holds.
#[must_use]
pub fn sizes_of(experiment: &Experiment) -> Vec<VariantSizes> {
    serde_json::from_value(experiment.spec["sizes"].clone()).unwrap_or_default()
}

/// Sections after the workloads.
#[must_use]
pub fn sections(experiment: &Experiment) -> Vec<Section> {
    let mut sections = Vec::new();
    let question = experiment.spec["question"].as_str().unwrap_or_default();
    if !question.is_empty() {
        sections.push(Section::new("Question").prose(question));
    }
    for sizes in sizes_of(experiment) {
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
    let patch = experiment.spec["patch"].as_str().unwrap_or_default();
    if !patch.is_empty() && patch.lines().count() <= LONGEST_PATCH {
        sections.push(Section::new("The experiment's change").preformatted(patch));
    }
    sections
}

/// The additional JSON fields of a comparison of kernels.
#[must_use]
pub fn data(experiment: &Experiment) -> Map<String, Value> {
    let footprint: Vec<Value> = sizes_of(experiment)
        .into_iter()
        .map(|sizes| {
            json!({
                "variant": sizes.variant,
                "bloat_o_meter": sizes.bloat_o_meter,
                "text": sizes.text,
                "bzimage": {"baseline": sizes.bzimage[0], "experiment": sizes.bzimage[1]},
            })
        })
        .collect();
    let spec = &experiment.spec;
    Map::from_iter([
        ("name".to_owned(), spec["name"].clone()),
        ("vcpus".to_owned(), spec["vcpus"].clone()),
        ("footprint".to_owned(), json!(footprint)),
        ("patch".to_owned(), spec["patch"].clone()),
    ])
}

/// The change in percent.
pub(crate) fn percent(old: u64, new: u64) -> f64 {
    (new as f64 / old as f64 - 1.0) * 100.0
}
