//! The sections that only kernels add to a report: the question, sizes of
//! images, inlined copies, and the change itself. They are made from the stored
//! experiment, so that a stored report has them too. This module must never
//! judge.

use crate::front_end;
use crate::lock_report;
use crate::spec::{Spec, VariantSizes, percent};
use locklab_document::{Document, Section};
use locklab_harness::experiment::Experiment;
use locklab_harness::verdicts::Verdicts;
use locklab_published::KernelReference;
use locklab_published::kernels::{self, KernelFigure};
use serde_json::{Map, Value, json};

/// The caveat about counts.
pub(crate) const MODEL: &str = "QEMU counts the instructions, and a model of the L1i (32 KiB, \
                                8 ways, 64-byte lines) its misses; micro-op cache, speculation and L2 \
                                are not in it. vCPUs take turns: no lock is contended.";

/// The caveat of an L1i without a prefetcher.
pub(crate) const NO_PREFETCH: &str =
    "No prefetch of instructions is modelled (--next-line models one).";

/// The caveat of one CPU, and that of a server with a CPU of its own.
pub(crate) const SHARED_CPU: &str =
    "There is one vCPU: client and server share the cache and the predictors.";
pub(crate) const SERVER_CPU: &str = "Counts and cycles are of the server's vCPU alone; its \
                                     client has another, with a cache and predictors of its own.";

/// The caveat where a front end is modelled too.
pub(crate) const FRONT_END: &str = "Cycles are counted by a modelled front end: what data and \
                                    dependences cost is not in them.";

/// The longest change that is printed, in lines.
const LONGEST_PATCH: usize = 60;

/// Appends to the report of kernels the sections and the figures that only they have.
pub fn append(experiment: &Experiment, verdicts: &Verdicts, report: &mut Document) {
    let spec = Spec::of(experiment);
    let figures = published(experiment, verdicts);
    report.sections.extend(sections(&spec));
    report.sections.extend(front_end::sections(experiment));
    report.sections.extend(lock_report::sections(experiment));
    report.sections.extend(kernels::section(&figures));
    report.data.extend(data(&spec));
    report.data.insert("figures".into(), json!(figures));
    if !figures.is_empty() {
        let agreement = json!(kernels::agreement(&figures));
        report.data.insert("agreement".into(), agreement);
    }
    report.data.extend(lock_report::data(experiment));
}

/// Returns the published figures beside ours; none if the report has no published figures.
#[must_use]
pub fn published(experiment: &Experiment, verdicts: &Verdicts) -> Vec<KernelFigure> {
    let spec = Spec::of(experiment);
    let name = spec.reference.as_deref().unwrap_or_default();
    match KernelReference::named(name) {
        Ok(Some(reference)) => {
            let sizes: Vec<_> = spec.sizes.iter().map(VariantSizes::published).collect();
            reference.beside(experiment, verdicts, &sizes)
        }
        Ok(None) | Err(_) => Vec::new(),
    }
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
            section = section.note(format!(
                "Counted as bloat-o-meter does, with the rules of {rules}."
            ));
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

/// Returns the additional JSON fields of a comparison of kernels.
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
