//! The sections that only programs add to a report: the footprint of two
//! builds, and the results of workloads with many call sites.
//!
//! It must never judge: these figures stand beside the verdicts.

use crate::spec::Spec;
use locklab_document::{Curve, CurvePoint, Curves, Document, Medium, Part, Section};
use locklab_footprint::Footprint;
use locklab_harness::experiment::{Cell, Coordinate, Experiment, Pair};
use locklab_harness::metric::{L1I_MISSES, TEXT, THROUGHPUT};
use locklab_harness::verdicts::Verdicts;
use locklab_host::error::Error;
use serde::Deserialize;
use serde_json::json;

/// Number of symbols in the footprint's table.
const ROWS: usize = 10;

/// The panels of a picture of call sites: title, metric.
const PANELS: [(&str, &str); 3] = [
    ("text [bytes]", TEXT),
    ("L1i misses (model)", L1I_MISSES),
    ("throughput [calls/CPU s]", THROUGHPUT),
];

/// Appends to the report of programs the footprint of two builds and the picture of
/// workloads with many call sites.
pub fn append(experiment: &Experiment, _: &Verdicts, report: &mut Document) {
    let footprint = footprint(experiment);
    match &footprint {
        Ok(Some(footprint)) => report.push(
            Section::new("Footprint").preformatted(locklab_footprint::render(footprint, ROWS)),
        ),
        Ok(None) => {}
        Err(why) => report.push(Section::new("Footprint").prose(format!("{why}."))),
    }
    report.sections.extend(call_sites(&experiment.cells));
    let footprint = footprint.ok().flatten();
    report.data.insert("footprint".into(), json!(footprint));
}

fn footprint(experiment: &Experiment) -> Result<Option<Footprint>, Error> {
    match Spec::deserialize(&experiment.spec) {
        Ok(spec) => spec.footprint(),
        // The experiment is of another version, whose builds are not known.
        Err(_) => Ok(None),
    }
}

/// Returns footprint, modelled misses and throughput against the number of call
/// sites; nothing unless such workloads were measured.
fn call_sites(cells: &[Cell]) -> Option<Section> {
    let mut measured: Vec<(u64, &Cell)> = cells
        .iter()
        .filter(|cell| !cell.pairs.is_empty())
        .filter_map(|cell| {
            let title = cell.key.get("workload").map(Coordinate::to_string)?;
            Some((title.strip_prefix("call-sites:")?.parse().ok()?, cell))
        })
        .collect();
    if measured.is_empty() {
        return None;
    }
    measured.sort_by_key(|(sites, _)| *sites);
    let names: Vec<String> = measured.iter().map(|(n, _)| n.to_string()).collect();
    let curve = |metric: &str, baseline: bool| {
        let points = measured.iter().enumerate();
        Curve {
            points: points
                .filter_map(|(place, (_, cell))| point(place, cell, metric, baseline))
                .collect(),
            baseline,
        }
    };
    let panels = PANELS.map(|(title, metric)| Curves {
        title: title.into(),
        x_title: "call sites".into(),
        names: names.clone(),
        curves: vec![curve(metric, true), curve(metric, false)],
    });
    Some(
        Section::new("Against the number of call sites")
            .note("Medians and quartiles over layouts.")
            .with(Part::Curves(panels.into()))
            .only(Medium::Page),
    )
}

/// Returns the median and quartiles of a metric over the runs of one side.
fn point(place: usize, cell: &Cell, metric: &str, baseline: bool) -> Option<CurvePoint> {
    let side = |pair: &Pair| {
        let sample = if baseline {
            &pair.baseline
        } else {
            &pair.experiment
        };
        sample.values.get(metric).copied()
    };
    let mut values: Vec<f64> = cell.pairs.iter().filter_map(side).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = values.len().checked_sub(1)?;
        values.get((last as f64 * share).round() as usize).copied()
    };
    Some(CurvePoint {
        place,
        value: at(0.5)?,
        limits: at(0.25).zip(at(0.75)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_harness::experiment::{Key, Metric, Order, Sample, Source};

    fn cell(title: &str, figures: &[(&str, f64, f64)]) -> Cell {
        let metric = |(name, ..): &(&str, f64, f64)| Metric::lower(name, "", Source::Output);
        let mut cell = Cell::new(
            Key::workload(title, ""),
            figures.iter().map(metric).collect(),
        );
        let sample = |which: fn(&(&str, f64, f64)) -> f64, scale: f64| Sample {
            values: figures
                .iter()
                .map(|f| (f.0.to_owned(), scale * which(f)))
                .collect(),
            ..Sample::default()
        };
        cell.pairs = (0..8)
            .map(|index| Pair {
                index,
                order: Order::BaselineFirst,
                baseline: sample(|f| f.1, 1.0 + 0.01 * f64::from(index)),
                experiment: sample(|f| f.2, 1.0 + 0.01 * f64::from(index)),
            })
            .collect();
        cell
    }

    #[test]
    fn call_sites_are_drawn_in_order_and_nothing_else_is() {
        let other = cell("gcc", &[("user", 1.0, 1.0)]);
        assert!(call_sites(std::slice::from_ref(&other)).is_none());
        let sites = |n: u32| {
            let n = f64::from(n);
            cell(
                &format!("call-sites:{n}"),
                &[
                    ("throughput", 9e7 / n, 8.8e7 / n),
                    ("l1i-misses", 2e4 * n, 2.4e4 * n),
                    ("text", 100.0 * n, 112.0 * n),
                ],
            )
        };
        let mut unmeasured = sites(512);
        unmeasured.pairs.clear();
        let section = call_sites(&[sites(1024), other, sites(64), unmeasured]).unwrap();
        let [Part::Prose(..), Part::Curves(panels)] = section.parts.as_slice() else {
            panic!("{section:?}");
        };
        assert_eq!(panels.len(), 3);
        assert_eq!(panels[0].names, ["64", "1024"]);
        let text = &panels[0].curves[0];
        assert!(text.baseline && text.points.len() == 2);
        let (low, high) = text.points[0].limits.unwrap();
        assert!(low < text.points[0].value && text.points[0].value < high);
    }
}
