//! What a comparison of two kernels says, for people and for programs.
//!
//! Words and tables only. Every report says that its counts are a model's,
//! and what the model leaves out.

use crate::kernel::boot::Accelerator;
use crate::kernel::cells::{self, Cell};
use crate::kernel::recipe::Experiment;
use crate::kernel::session::RunPair;
use crate::report::comparison::{LEGEND, Row, json as rows_json, table};
use crate::report::page::Page;
use locklab_footprint::Footprint;
use locklab_host::error::Error;
use serde_json::{Value, json};

/// One workload in one variant.
pub(crate) struct Part {
    pub(crate) variant: String,
    pub(crate) workload: String,
    pub(crate) unit: String,
    pub(crate) pairs: usize,
    pub(crate) rows: Vec<Row>,
    /// Of a workload that is a matrix.
    pub(crate) cells: Vec<Cell>,
}

/// Sizes of one variant.
pub(crate) struct Sizes {
    pub(crate) variant: String,
    pub(crate) footprint: Footprint,
    pub(crate) bzimage: [Option<u64>; 2],
}

/// All of it.
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) question: String,
    pub(crate) accelerator: Accelerator,
    pub(crate) vcpus: u64,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) parts: Vec<Part>,
    pub(crate) sizes: Vec<Sizes>,
    pub(crate) patch: String,
    /// Variants that are not here, or not to be trusted, and why.
    pub(crate) missing: Vec<(String, Error)>,
}

const MODEL: &str = "Counts are of instructions in QEMU and of a modelled L1i (32 KiB, 8 ways, \
                     64-byte lines); prefetch, micro-op cache, speculation and L2 are not \
                     modelled. One vCPU: a lock is never contended, and client and server share \
                     the cache.";

impl Report {
    /// Of nothing yet.
    pub(crate) fn new(experiment: &Experiment, qemu: &str) -> Self {
        Self {
            name: experiment.name.clone(),
            question: experiment.question.clone(),
            accelerator: Accelerator::Tcg,
            vcpus: 1,
            facts: vec![("QEMU".into(), qemu.into())],
            parts: Vec::new(),
            sizes: Vec::new(),
            patch: String::new(),
            missing: Vec::new(),
        }
    }

    /// Adds a fact about the whole, or about a variant.
    pub(crate) fn fact(&mut self, name: &str, variant: &str, text: String) {
        self.facts
            .push((format!("{name}{}", in_variant(variant)), text));
    }

    /// The kernel's own check of its locks: one that fails is said, and
    /// fails the whole.
    pub(crate) fn checked(&mut self, variant: &str, pairs: &[RunPair]) {
        let all = || {
            pairs
                .iter()
                .flat_map(|pair| [&pair.baseline, &pair.experiment])
        };
        let passed = all().filter(|outcome| outcome.is_ok()).count();
        let text = format!("passed in {passed} of {} boots", all().count());
        self.fact("Locktorture", variant, text);
        if let Some(invalid) = all().find_map(|outcome| outcome.as_ref().err()) {
            let why = Error::Failed(format!("locktorture: {invalid}"));
            self.missing.push((variant.into(), why));
        }
    }

    /// What is missing, as an error.
    ///
    /// # Errors
    /// Something is.
    pub(crate) fn complete(&self) -> Result<(), Error> {
        let Some((_, first)) = self.missing.first() else {
            return Ok(());
        };
        for (_, error) in &self.missing {
            if let Error::Interrupted(why) = error {
                return Err(Error::Interrupted(why.clone()));
            }
        }
        Err(Error::Failed(if self.missing.len() == 1 {
            first.to_string()
        } else {
            format!("{first} (and {} more)", self.missing.len() - 1)
        }))
    }

    pub(crate) fn provenance(&self) -> &'static str {
        match self.accelerator {
            Accelerator::Tcg => "model",
            Accelerator::Kvm => "hardware",
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut page = Page::default();
        page.title(&format!("Kernel lab: {}", self.name));
        if !self.question.is_empty() {
            page.paragraph(&self.question);
        }
        page.blank();
        page.facts(&self.facts);
        if self.accelerator == Accelerator::Tcg {
            page.blank();
            page.paragraph(MODEL);
        }
        for part in &self.parts {
            page.heading(&format!("{}{}", part.workload, in_variant(&part.variant)));
            page.paragraph(&format!(
                "{} pairs, each another link order and seed; per {}.",
                part.pairs, part.unit
            ));
            for line in table(&part.rows).lines() {
                page.row(line, line.chars().count());
            }
            cells::show(&mut page, &part.cells, self.accelerator.clock_unit());
        }
        if !self.parts.is_empty() {
            page.blank();
            page.paragraph(LEGEND);
        }
        for sizes in &self.sizes {
            page.heading(&format!("Footprint{}", in_variant(&sizes.variant)));
            for line in sizes.footprint.bloat_o_meter.totals.to_string().lines() {
                page.paragraph(line);
            }
            if let [Some(old), Some(new)] = sizes.bzimage {
                page.paragraph(&format!(
                    "bzImage: {old} -> {new} bytes ({:+.2}%)",
                    percent(old, new)
                ));
            }
            let copies = sizes
                .footprint
                .inlined
                .as_ref()
                .map_or(&[][..], |i| &i.functions);
            for copy in copies.iter().filter(|c| c.call_sites.delta() != 0).take(8) {
                let line = format!(
                    "{:<40} {:>6} -> {:>6} inlined copies",
                    copy.name, copy.call_sites.baseline, copy.call_sites.experiment
                );
                page.row(&line, line.len());
            }
        }
        if !self.missing.is_empty() {
            page.heading("Not in this report");
            for (variant, why) in &self.missing {
                let name = if variant.is_empty() { "all" } else { variant };
                page.paragraph(&format!("{name}: {why}"));
            }
        }
        let mut text = page.finish();
        if !self.patch.is_empty() && self.patch.lines().count() <= 60 {
            text.push_str("\nThe experiment's change:\n");
            text.push_str(&self.patch);
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "schema": 1,
            "kind": "kernel",
            "tool": crate::report::VERSION,
            "provenance": self.provenance(),
            "vcpus": self.vcpus,
            "name": self.name,
            "facts": self.facts.iter().map(|(k, v)| json!({"name": k, "value": v}))
                .collect::<Vec<_>>(),
            "workloads": self.parts.iter().map(|part| json!({
                "name": part.workload,
                "variant": part.variant,
                "unit": part.unit,
                "pairs": part.pairs,
                "metrics": rows_json(&part.rows),
                "cells": cells::json(&part.cells),
            })).collect::<Vec<_>>(),
            "footprint": self.sizes.iter().map(|sizes| json!({
                "variant": sizes.variant,
                "bloat_o_meter": sizes.footprint.bloat_o_meter,
                "text": sizes.footprint.text,
                "bzimage": {"baseline": sizes.bzimage[0], "experiment": sizes.bzimage[1]},
            })).collect::<Vec<_>>(),
            "missing": self.missing.iter().map(|(variant, why)| json!({
                "variant": variant, "why": why.to_string(),
            })).collect::<Vec<_>>(),
            "patch": self.patch,
        })
    }
}

fn in_variant(variant: &str) -> String {
    if variant.is_empty() {
        String::new()
    } else {
        format!(", {variant}")
    }
}

/// The change in percent.
pub(crate) fn percent(old: u64, new: u64) -> f64 {
    (new as f64 / old as f64 - 1.0) * 100.0
}
