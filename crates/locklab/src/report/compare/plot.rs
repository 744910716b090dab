//! Footprint, modelled misses and throughput against the number of call
//! sites, as one picture.

use crate::compare::{Measured, Measurement};
use crate::report::chart::{self, Curve, CurvePoint};
use maud::html;

/// Panels: title, metric.
const PANELS: [(&str, &str); 3] = [
    ("text [bytes]", "text"),
    ("L1i misses (model)", "l1i-misses"),
    ("throughput [calls/s]", "throughput"),
];

/// The picture; `None` unless workloads of call sites were measured.
#[must_use]
pub fn call_sites_svg(measured: &Measured) -> Option<String> {
    let mut sites: Vec<(u64, &Measurement)> = measured
        .workloads
        .iter()
        .filter(|m| !m.pairs.is_empty())
        .filter_map(|m| Some((m.name.strip_prefix("call-sites:")?.parse().ok()?, m)))
        .collect();
    if sites.is_empty() {
        return None;
    }
    sites.sort_by_key(|(n, _)| *n);
    let names: Vec<String> = sites.iter().map(|(n, _)| n.to_string()).collect();
    let curve = |metric: &str, baseline: bool| Curve {
        baseline,
        points: sites
            .iter()
            .enumerate()
            .filter_map(|(place, (_, m))| {
                let mut values: Vec<f64> = m
                    .pairs
                    .iter()
                    .map(|p| if baseline { &p.baseline } else { &p.experiment })
                    .filter_map(|run| run.values.get(metric).copied())
                    .collect();
                values.sort_by(f64::total_cmp);
                // The spread over layouts: its quartiles.
                let at = |share: f64| {
                    let last = values.len().checked_sub(1)?;
                    values.get((last as f64 * share).round() as usize).copied()
                };
                Some(CurvePoint {
                    place,
                    value: at(0.5)?,
                    limits: at(0.25).zip(at(0.75)),
                })
            })
            .collect(),
    };
    let body = html! {
        @for (n, (title, metric)) in PANELS.iter().enumerate() {
            svg x=(270 * n) y="0" width="260" height="172" {
                (chart::curves(title, "call sites", &names, &[curve(metric, true), curve(metric, false)]))
            }
        }
        text.soft.small x="10" y="190" {
            "dashed, squares: " (measured.spec.baseline.label())
            "; line, circles: " (measured.spec.experiment.label())
            "; medians and quartiles over layouts"
        }
    };
    Some(chart::picture(810, 200, body))
}
