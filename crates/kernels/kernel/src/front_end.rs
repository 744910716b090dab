//! The section of a report on what a modelled front end lost in a boot, in both modes and
//! within the spans that a patch marks. Exists for reports whose published figures are
//! times; must never call a cycle measured.

use crate::counts::BRANCHES;
use crate::guests::measured;
use locklab_document::{Column, Part, Section, Table};
use locklab_frontend::Cause;
use locklab_harness::experiment::{Cell, Experiment};
use locklab_judge::Side;

/// Returns a section for each cell whose front end was modelled.
pub(crate) fn sections(experiment: &Experiment) -> Vec<Section> {
    experiment.cells.iter().filter_map(section).collect()
}

fn section(cell: &Cell) -> Option<Section> {
    // The mean over the pairs of each side: causes then add up to all cycles.
    let mut sums: [Vec<Vec<f64>>; 2] = Default::default();
    let (mut processor, mut unit) = (String::new(), String::new());
    for pair in &cell.pairs {
        for side in Side::BOTH {
            let sample = match side {
                Side::Baseline => &pair.baseline,
                Side::Experiment => &pair.experiment,
            };
            let Some(measured) = measured(sample) else {
                continue;
            };
            let Some(front) = &measured.frontend else {
                continue;
            };
            processor.clone_from(&front.processor);
            unit.clone_from(&measured.unit);
            let mut columns = vec![front.rows(measured.work)];
            let spans = measured.spans.as_ref();
            if let Some((spans, front)) = spans.and_then(|s| Some((s, s.frontend.as_ref()?))) {
                columns.push(front.rows(spans.count));
            }
            let sum = &mut sums[usize::from(side == Side::Experiment)];
            sum.push(columns.concat());
        }
    }
    let mean = |rows: &[Vec<f64>]| -> Option<Vec<f64>> {
        let length = rows.iter().map(Vec::len).min()?;
        let of = |index: usize| rows.iter().map(|row| row[index]).sum::<f64>() / rows.len() as f64;
        Some((0..length).map(of).collect())
    };
    let [Some(old), Some(new)] = sums.each_ref().map(|rows| mean(rows)) else {
        return None;
    };
    let causes = Cause::ALL.map(|(_, name)| name);
    let cycles: Vec<&str> = [&["dispatch"][..], &causes, &["all cycles"]].concat();
    let branches = BRANCHES.map(|(name, _)| name);
    let mut section = Section::new(format!("Modelled cycles, {}", cell.key));
    let mut from = 0;
    for stretch in [unit.as_str(), "span"] {
        for (what, names) in [("Cycles", &cycles[..]), ("Branches", &branches[..])] {
            let until = from + names.len();
            let (Some(old), Some(new)) = (old.get(from..until), new.get(from..until)) else {
                break;
            };
            from = until;
            let rows = names.iter().zip(old.iter().zip(new)).map(|(name, (a, b))| {
                vec![
                    (*name).to_owned(),
                    format!("{a:.2}"),
                    format!("{b:.2}"),
                    format!("{:+.2}", b - a),
                ]
            });
            let columns = vec![
                Column::words(format!("{what} a {stretch}"), 24),
                Column::new("Baseline", 12),
                Column::new("Experiment", 12),
                Column::new("Change", 10),
            ];
            section = section.with(Part::Table(Table::new(columns, rows.collect())));
        }
    }
    Some(section.note(format!(
        "Means over the pairs, by the model of {processor}: not measured."
    )))
}
