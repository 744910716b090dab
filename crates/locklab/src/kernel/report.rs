//! What a comparison of two kernels says, for people and for programs.
//!
//! Words and tables only. Every report says that its counts are a model's,
//! and what the model leaves out.

use crate::kernel::boot::Accelerator;
use crate::report::comparison::{LEGEND, Row, json as rows_json, table};
use crate::report::number;
use crate::report::page::Page;
use locklab_footprint::Footprint;
use serde_json::{Value, json};

/// One workload in one variant.
pub(crate) struct Part {
    pub(crate) variant: String,
    pub(crate) workload: String,
    pub(crate) unit: String,
    pub(crate) pairs: usize,
    pub(crate) rows: Vec<Row>,
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
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) parts: Vec<Part>,
    pub(crate) sizes: Vec<Sizes>,
    pub(crate) patch: String,
}

const MODEL: &str = "Counts are of instructions in QEMU and of a modelled L1i (32 KiB, 8 ways, \
                     64-byte lines); prefetch, micro-op cache, speculation and L2 are not \
                     modelled. One vCPU: a lock is never contended, and client and server share \
                     the cache.";

impl Report {
    pub(crate) fn provenance(&self) -> &'static str {
        match self.accelerator {
            Accelerator::Tcg => "model",
            Accelerator::Kvm => "hardware",
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut page = Page::default();
        page.title(&format!("Kernel lab: {}", self.name));
        if !self.question.is_empty() {
            page.paragraph(&self.question);
        }
        page.facts(&self.facts);
        if self.accelerator == Accelerator::Tcg {
            page.paragraph(MODEL);
        }
        text.push_str(&page.finish());
        for part in &self.parts {
            let mut page = Page::default();
            page.blank();
            page.heading(&format!("{}{}", part.workload, in_variant(&part.variant)));
            page.paragraph(&format!(
                "{} pairs, each another link order and seed; per {}.",
                part.pairs, part.unit
            ));
            text.push_str(&page.finish());
            text.push_str(&table(&part.rows));
        }
        let mut page = Page::default();
        if !self.parts.is_empty() {
            page.paragraph(LEGEND);
        }
        for sizes in &self.sizes {
            page.blank();
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
        text.push_str(&page.finish());
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
            "name": self.name,
            "facts": self.facts.iter().map(|(k, v)| json!({"name": k, "value": v}))
                .collect::<Vec<_>>(),
            "workloads": self.parts.iter().map(|part| json!({
                "name": part.workload,
                "variant": part.variant,
                "unit": part.unit,
                "pairs": part.pairs,
                "metrics": rows_json(&part.rows),
            })).collect::<Vec<_>>(),
            "footprint": self.sizes.iter().map(|sizes| json!({
                "variant": sizes.variant,
                "bloat_o_meter": sizes.footprint.bloat_o_meter,
                "text": sizes.footprint.text,
                "bzimage": {"baseline": sizes.bzimage[0], "experiment": sizes.bzimage[1]},
            })).collect::<Vec<_>>(),
            "patch": self.patch,
        })
    }

    /// Our figure for a published one, in percent.
    pub(crate) fn delta(&self, workload: &str, metric: &str) -> Option<(f64, &'static str)> {
        let part = self.parts.iter().find(|part| part.workload == workload)?;
        let row = part.rows.iter().find(|row| row.name == metric)?;
        let delta = row.judged.estimate.map(|e| e.delta_percent().value)?;
        Some((delta, row.sig()))
    }

    /// Ours beside theirs: the published table's workloads that ran here.
    pub(crate) fn beside(&self, reference: &toml::Table) -> Vec<Value> {
        let mut figures = Vec::new();
        let change = |pointer: &str| reference.get("footprint")?.get(pointer)?.as_float();
        if let (Some(published), Some(sizes)) = (change("change_percent"), self.sizes.first()) {
            let totals = &sizes.footprint.bloat_o_meter.totals;
            figures.push(json!({
                "name": "footprint.change_percent",
                "published": published,
                "ours": percent(totals.before, totals.after),
                "sig": "",
            }));
        }
        let workloads = reference.get("workload").and_then(|w| w.as_array());
        for workload in workloads.into_iter().flatten() {
            let name = workload
                .get("name")
                .and_then(|n| n.as_str())
                .unwrap_or_default();
            if !self.parts.iter().any(|part| part.workload == name) {
                continue;
            }
            for metric in workload
                .get("metric")
                .and_then(|m| m.as_array())
                .into_iter()
                .flatten()
            {
                let key = metric
                    .get("name")
                    .and_then(|n| n.as_str())
                    .unwrap_or_default();
                let published = metric.get("delta").and_then(toml::Value::as_float);
                let ours = self.delta(name, key);
                figures.push(json!({
                    "name": format!("{name}.{key}.delta"),
                    "published": published,
                    "ours": ours.map(|(delta, _)| delta),
                    "sig": ours.map_or("", |(_, sig)| sig),
                }));
            }
        }
        figures
    }
}

/// The table of [`Report::beside`] for people.
pub(crate) fn beside_text(figures: &[Value]) -> String {
    let mut page = Page::default();
    page.blank();
    page.heading("Published beside ours, change in percent");
    let line = |name: &str, theirs: &str, ours: &str, sig: &str| {
        format!("{name:<38} {theirs:>11} {ours:>11}  {sig:<6}")
    };
    let head = line("Figure", "Published", "Ours", "Sig");
    page.row(&head, head.len());
    for figure in figures {
        let number = |key: &str| number::or_dash(figure[key].as_f64(), |x| format!("{x:+.2}"));
        let text = line(
            figure["name"].as_str().unwrap_or_default(),
            &number("published"),
            &number("ours"),
            figure["sig"].as_str().unwrap_or_default(),
        );
        page.row(&text, text.len());
    }
    page.paragraph("A dash: not measured here (no hardware counter or clock without KVM).");
    page.finish()
}

fn in_variant(variant: &str) -> String {
    if variant.is_empty() {
        String::new()
    } else {
        format!(", {variant}")
    }
}

fn percent(old: u64, new: u64) -> f64 {
    (new as f64 / old as f64 - 1.0) * 100.0
}
