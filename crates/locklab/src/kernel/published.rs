//! The reports about kernels that come with Locklab: their experiment files,
//! and their published figures beside ours.
//!
//! Only reads what was measured. Where theirs and ours are not the same
//! quantity, both units stand beside the figures; a figure that we did not
//! measure is a dash, never a guess.

use crate::kernel::report::{Report, percent};
use crate::kernel::tools::Lab;
use crate::report::number;
use crate::report::page::Page;
use locklab_host::error::Error;
use serde::Serialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// A report: its name, experiment, published figures if it has any, and the
/// patches that the experiment names.
struct Published {
    name: &'static str,
    experiment: &'static str,
    figures: Option<&'static str>,
    patches: &'static [(&'static str, &'static str)],
}

macro_rules! file {
    ($($path:literal),*) => { include_str!(concat!("../../../../", $($path),*)) };
}

const PUBLISHED: &[Published] = &[
    Published {
        name: "inline-unlock",
        experiment: file!("experiments/inline-unlock.toml"),
        figures: Some(file!("reference/inline-unlock.toml")),
        patches: &[],
    },
    Published {
        name: "finish-task-switch",
        experiment: file!("experiments/finish-task-switch.toml"),
        figures: Some(file!("reference/finish-task-switch.toml")),
        patches: &[(
            "guest-has-ibpb.patch",
            file!("experiments/patches/guest-has-ibpb.patch"),
        )],
    },
];

/// The names of the reports.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PUBLISHED.iter().map(|report| report.name)
}

/// Writes a report's experiment into the cache, with its patches.
///
/// # Errors
/// The cache cannot be written.
pub(crate) fn unpack(lab: &Lab<'_>, name: &str) -> Result<PathBuf, Error> {
    let report = find(name)?;
    let folder = lab.folder(&format!("reports/{name}"))?;
    lab.folder(&format!("reports/{name}/patches"))?;
    let file = folder.join(format!("{name}.toml"));
    let mut texts = vec![(file.clone(), report.experiment)];
    for (patch, text) in report.patches {
        texts.push((folder.join("patches").join(patch), text));
    }
    for (path, text) in texts {
        std::fs::write(&path, text).map_err(|e| lab.cannot_write(&path, &e))?;
    }
    Ok(file)
}

fn find(name: &str) -> Result<&'static Published, Error> {
    PUBLISHED
        .iter()
        .find(|report| report.name == name)
        .ok_or_else(|| {
            Error::Usage(format!(
                "there is no published report '{name}' about a kernel; there are {}",
                names().collect::<Vec<_>>().join(", ")
            ))
        })
}

/// A published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// By the keys of the reference file.
    name: String,
    published: Option<f64>,
    ours: Option<f64>,
    /// Units, theirs and ours.
    published_unit: &'static str,
    unit: &'static str,
    /// Published as beyond noise.
    published_sig: bool,
    /// Our verdict, as in the tables.
    sig: &'static str,
}

/// Theirs beside ours, where we have something to say.
///
/// # Errors
/// There is no such report.
pub(crate) fn beside(report: &Report, name: &str) -> Result<Vec<Figure>, Error> {
    let Some(text) = find(name)?.figures else {
        return Ok(Vec::new());
    };
    let table: Table = text
        .parse()
        .map_err(|e| Error::Failed(format!("the published figures cannot be read: {e}")))?;
    let mut figures: Vec<Figure> = footprint(report, &table).into_iter().collect();
    figures.extend(workloads(report, &table));
    figures.extend(switches(report, &table));
    figures.extend(images(report, &table));
    Ok(figures)
}

fn footprint(report: &Report, table: &Table) -> Option<Figure> {
    let published = table.get("footprint")?.get("change_percent")?.as_float()?;
    let totals = &report.sizes.first()?.footprint.bloat_o_meter.totals;
    Some(Figure {
        name: "footprint.change_percent".into(),
        published: Some(published),
        ours: Some(percent(totals.before, totals.after)),
        published_unit: "%",
        unit: "%",
        published_sig: false,
        sig: "",
    })
}

fn list<'a>(table: &'a Table, key: &str) -> &'a [Value] {
    table
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Changes in percent, of the workloads that ran here.
fn workloads(report: &Report, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for workload in list(table, "workload") {
        let name = text_of(workload, "name");
        let Some(part) = report.parts.iter().find(|part| part.workload == name) else {
            continue;
        };
        let metrics = workload.get("metric").and_then(Value::as_array);
        for metric in metrics.into_iter().flatten() {
            let key = text_of(metric, "name");
            let row = part.rows.iter().find(|row| row.name == key);
            let estimate = row.and_then(|row| row.judged.estimate);
            let published = |key: &str| metric.get(key).and_then(Value::as_float);
            // A rate can be compared itself; totals depend on how much ran.
            if key.starts_with("l1i-mpki") {
                figures.push(Figure {
                    name: format!("{name}.{key}.baseline"),
                    published: published("baseline"),
                    ours: estimate.map(|e| e.baseline),
                    published_unit: "",
                    unit: "",
                    published_sig: false,
                    sig: "",
                });
            }
            figures.push(Figure {
                name: format!("{name}.{key}.delta"),
                published: published("delta"),
                ours: estimate.map(|e| e.delta_percent().value),
                published_unit: "%",
                unit: "%",
                published_sig: text_of(metric, "sig") == "**",
                sig: row.map_or("", |row| row.sig()),
            });
        }
    }
    figures
}

/// `[[row]]`: ticks of one call, by compiler and mitigation; ours are
/// instructions of a whole switch.
fn switches(report: &Report, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in list(table, "row") {
        let name = format!(
            "{} {}",
            text_of(row, "compiler"),
            text_of(row, "mitigation")
        );
        let Some(ours) = report
            .parts
            .iter()
            .find(|part| part.variant == name)
            .and_then(|part| part.rows.iter().find(|row| row.name == "instructions:k"))
        else {
            continue;
        };
        // The lowest and the highest mean that they saw.
        let middle = |key: &str| {
            let both = row.get(key)?.as_array()?;
            let both: Vec<f64> = both.iter().filter_map(Value::as_float).collect();
            Some(both.iter().sum::<f64>() / both.len() as f64)
        };
        let theirs = [middle("without"), middle("with")];
        let estimate = ours.judged.estimate;
        let mine = [estimate.map(|e| e.baseline), estimate.map(|e| e.experiment)];
        let change = |pair: [Option<f64>; 2]| Some(pair[1]? - pair[0]?);
        for (what, published, ours_is, sig) in [
            ("without", theirs[0], mine[0], ""),
            ("with", theirs[1], mine[1], ""),
            ("change", change(theirs), change(mine), ours.sig()),
        ] {
            figures.push(Figure {
                name: format!("{name}.{what}"),
                published,
                ours: ours_is,
                published_unit: "ticks",
                unit: "instr",
                published_sig: what == "change",
                sig,
            });
        }
    }
    figures
}

/// `[[size]]`: bzImage with a compiler option.
fn images(report: &Report, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for size in list(table, "size") {
        let name = format!("{} {}", text_of(size, "compiler"), text_of(size, "option"));
        let Some(sizes) = report.sizes.iter().find(|sizes| sizes.variant == name) else {
            continue;
        };
        let [Some(old), Some(new)] = sizes.bzimage else {
            continue;
        };
        figures.push(Figure {
            name: format!("{name}.bzimage.change_percent"),
            published: size.get("change_percent").and_then(Value::as_float),
            ours: Some(percent(old, new)),
            published_unit: "%",
            unit: "%",
            published_sig: false,
            sig: "",
        });
    }
    figures
}

/// How many figures that were published as beyond noise, and that we have
/// shown either way, point in the same direction; and how many those are.
pub(crate) fn agreement(figures: &[Figure]) -> (usize, usize) {
    let shown: Vec<(f64, f64)> = figures
        .iter()
        .filter(|figure| figure.published_sig && figure.sig.contains(['+', '-']))
        .filter_map(|figure| Some((figure.published?, figure.ours?)))
        .collect();
    let same = shown.iter().filter(|(a, b)| a.signum() == b.signum());
    (same.count(), shown.len())
}

/// The figures for people; nothing if there are none.
pub(crate) fn text(figures: &[Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut page = Page::default();
    page.heading("Published beside ours");
    let line = |name: &str, theirs: &str, ours: &str, sig: &str| {
        format!("{name:<36} {theirs:>13} {ours:>14} {sig:<6}")
    };
    let head = line("Figure", "Published", "Ours", "Sig");
    page.row(&head, head.len());
    for figure in figures {
        let signed = figure.name.contains("change") || figure.name.ends_with(".delta");
        let number = |value: Option<f64>, unit: &str| {
            let show: fn(f64) -> String = if signed {
                |x| format!("{x:+.2}")
            } else {
                |x| format!("{x:.2}")
            };
            let unit = if value.is_some() { unit } else { "" };
            let value = number::or_dash(value, show);
            format!("{value} {unit}").trim_end().to_owned()
        };
        let row = line(
            &figure.name,
            &number(figure.published, figure.published_unit),
            &number(figure.ours, figure.unit),
            figure.sig,
        );
        page.row(&row, row.len());
    }
    let (same, of) = agreement(figures);
    page.blank();
    page.paragraph(&format!(
        "A dash: not measured here (no hardware counter or clock without KVM). Of the figures \
         that were published as beyond noise and that are shown here either way, {same} of {of} \
         point the same way."
    ));
    if figures.iter().any(|figure| figure.unit == "instr") {
        page.paragraph(
            "Theirs are TSC ticks of one call of finish_task_switch(), on hardware; ours are \
             kernel instructions of one whole switch with the system calls that cause it. Only \
             the direction can be compared: what a mispredicted return costs is no instruction.",
        );
    }
    format!("\n{}", page.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::recipe::Experiment;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_report_unpacks_and_its_patches_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let lab = Lab {
            cache: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        for name in names() {
            let experiment = Experiment::read(&unpack(&lab, name).unwrap()).unwrap();
            assert_eq!(experiment.name, name);
            for variant in experiment.variants() {
                for side in crate::kernel::recipe::Side::BOTH {
                    for patch in experiment.recipe(side, Some(&variant)).patches {
                        assert!(
                            experiment.folder.join(&patch).is_file(),
                            "{name}: {patch:?}"
                        );
                    }
                }
            }
            if let Some(reference) = experiment.reference {
                assert!(find(&reference).unwrap().figures.is_some());
            }
        }
        assert!(find("inline-lock").is_err_and(|e| e.to_string().contains("inline-unlock")));
    }

    #[test]
    fn the_published_rows_are_variants_of_the_experiment() {
        let report = find("finish-task-switch").unwrap();
        let experiment = Experiment::parse(report.experiment).unwrap();
        let table: Table = report.figures.unwrap().parse().unwrap();
        let has = |name: &str| experiment.variant.iter().any(|v| v.name == name);
        for row in list(&table, "row") {
            let name = format!(
                "{} {}",
                text_of(row, "compiler"),
                text_of(row, "mitigation")
            );
            assert!(has(&name), "{name}");
        }
        for size in list(&table, "size") {
            let name = format!("{} {}", text_of(size, "compiler"), text_of(size, "option"));
            assert!(has(&name), "{name}");
        }
        assert!(!list(&table, "row").is_empty() && !list(&table, "size").is_empty());
    }

    #[test]
    fn agreement_counts_what_both_have_shown() {
        let figure = |published, ours, published_sig, sig| Figure {
            name: "a.delta".into(),
            published: Some(published),
            ours: Some(ours),
            published_unit: "%",
            unit: "%",
            published_sig,
            sig,
        };
        let figures = [
            figure(1.0, 2.0, true, "*-"),
            figure(1.0, -2.0, true, "*+"),
            figure(1.0, 2.0, false, "*-"),
            figure(1.0, 2.0, true, "ns"),
            // The longest names with the widest verdict.
            Figure {
                name: "rocksdb-deleteseq.instructions.delta".into(),
                ..figure(-1000.25, -1000.25, false, "flat!0")
            },
            Figure {
                name: "clang spectre_v2_user=on.change".into(),
                unit: "instr",
                published_unit: "ticks",
                ..figure(-100.25, -1000.25, false, "flat!0")
            },
        ];
        assert_eq!(agreement(&figures), (1, 2));
        let text = text(&figures);
        assert!(text.contains("1 of 2 point"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 72), "{text}");
    }
}
