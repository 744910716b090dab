//! The reports about kernels that ship with Locklab: their experiment files,
//! and their published figures beside ours.
//!
//! It only reads measured figures. Where theirs and ours are not the same
//! quantity, both units stand beside the figures; a figure that was not
//! measured here is a dash, never a guess.

use crate::cache::Cache;
use crate::spec::{VariantSizes, percent, sizes_of};
use locklab_document::{MetricRow, Section};
use locklab_host::error::Error;
use locklab_lab::experiment::{Experiment, Key};
use locklab_lab::metric::{CYCLES, CYCLES_KERNEL, CYCLES_SPAN, CYCLES_USER, INSTRUCTIONS_KERNEL};
use locklab_lab::verdicts::{JudgedCell, JudgedMetric, Verdicts};
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
    ($($path:literal),*) => { include_str!(concat!("../", $($path),*)) };
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
        patches: &[
            (
                "guest-has-ibpb.patch",
                file!("experiments/patches/guest-has-ibpb.patch"),
            ),
            (
                "marks-finish-task-switch.patch",
                file!("experiments/patches/marks-finish-task-switch.patch"),
            ),
        ],
    },
];

/// Returns the names of the reports.
pub fn names() -> impl Iterator<Item = &'static str> {
    PUBLISHED.iter().map(|report| report.name)
}

/// Writes a report's experiment into the cache, with its patches.
///
/// # Errors
/// [`Error::Usage`] if there is no such report, [`Error::Failed`] if the cache
/// cannot be written.
pub fn unpack(cache: &Cache<'_>, name: &str) -> Result<PathBuf, Error> {
    let report = find(name)?;
    let folder = cache.folder(&format!("reports/{name}"))?;
    cache.folder(&format!("reports/{name}/patches"))?;
    let file = folder.join(format!("{name}.toml"));
    let mut texts = vec![(file.clone(), report.experiment)];
    for (patch, text) in report.patches {
        texts.push((folder.join("patches").join(patch), text));
    }
    for (path, text) in texts {
        std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
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
pub struct Figure {
    /// Key in the reference file.
    name: String,
    published: Option<f64>,
    ours: Option<f64>,
    /// The unit of the published figure.
    published_unit: &'static str,
    unit: &'static str,
    /// Says whether it was published as beyond noise.
    published_sig: bool,
    /// The verdict here, as in the tables.
    sig: &'static str,
}

/// Returns the published figures beside ours, where both exist.
///
/// # Errors
/// If the published figures of the report cannot be read.
pub fn beside(
    experiment: &Experiment,
    verdicts: &Verdicts,
    name: &str,
) -> Result<Vec<Figure>, Error> {
    let Some(text) = find(name)?.figures else {
        return Ok(Vec::new());
    };
    let table: Table = text
        .parse()
        .map_err(|e| Error::Failed(format!("the published figures cannot be read: {e}")))?;
    let ours = Ours {
        experiment,
        verdicts,
        sizes: sizes_of(experiment),
    };
    let mut figures: Vec<Figure> = footprint(&ours, &table).into_iter().collect();
    figures.extend(workloads(&ours, &table));
    figures.extend(switches(&ours, &table));
    figures.extend(images(&ours, &table));
    Ok(figures)
}

/// The figures measured here.
struct Ours<'a> {
    experiment: &'a Experiment,
    verdicts: &'a Verdicts,
    sizes: Vec<VariantSizes>,
}

impl Ours<'_> {
    /// Returns the first measured cell with the wanted key.
    fn cell(&self, wanted: impl Fn(&Key) -> bool) -> Option<&JudgedCell> {
        let measured = self.verdicts.cells.iter().filter(|c| c.is_measured());
        let mut found = measured.filter(|c| wanted(&self.experiment.cells[c.cell].key));
        found.next()
    }
}

fn is_named(key: &Key, axis: &str, name: &str) -> bool {
    key.get(axis).is_some_and(|c| c.to_string() == name)
}

fn metric<'a>(cell: &'a JudgedCell, name: &str) -> Option<&'a JudgedMetric> {
    cell.metrics.iter().find(|m| m.metric.name == name)
}

/// Returns the verdict as in the tables.
fn sig(metric: &JudgedMetric) -> &'static str {
    MetricRow {
        name: String::new(),
        unit: String::new(),
        baseline: None,
        experiment: None,
        delta: None,
        verdict: Some(metric.judged.verdict.clone()),
        role: metric.metric.role,
    }
    .sig()
}

/// Returns the change from `old` to `new` in percent.
fn percent_of(old: f64, new: f64) -> f64 {
    (new / old - 1.0) * 100.0
}

fn footprint(ours: &Ours<'_>, table: &Table) -> Option<Figure> {
    let published = table.get("footprint")?.get("change_percent")?.as_float()?;
    let [before, after] = ours.sizes.first()?.bytes;
    Some(Figure {
        name: "footprint.change_percent".into(),
        published: Some(published),
        ours: Some(percent(before, after)),
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

/// Changes in percent of the workloads that ran here.
fn workloads(ours: &Ours<'_>, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for workload in list(table, "workload") {
        let name = text_of(workload, "name");
        let Some(cell) = ours.cell(|key| is_named(key, "workload", name)) else {
            continue;
        };
        let metrics = workload.get("metric").and_then(Value::as_array);
        for theirs in metrics.into_iter().flatten() {
            let key = text_of(theirs, "name");
            let of_cycles = CYCLES_OF.iter().find(|(theirs, ..)| *theirs == key);
            let (name_here, inverse) =
                of_cycles.map_or((key, false), |&(_, ours, inv)| (ours, inv));
            let judged = metric(cell, name_here);
            let estimate = judged.and_then(|metric| metric.judged.estimate);
            let change = estimate.map(|e| match inverse {
                true => percent_of(e.experiment, e.baseline),
                false => e.delta_percent().value,
            });
            let published = |key: &str| theirs.get(key).and_then(Value::as_float);
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
                ours: change,
                published_unit: "%",
                unit: "%",
                published_sig: text_of(theirs, "sig") == "**",
                sig: judged.map_or("", sig),
            });
        }
    }
    figures
}

/// Reads `[[row]]`: ticks of one call, by compiler and mitigation; ours are modelled
/// ticks of the same stretch, or instructions of a whole switch where no front end was
/// modelled.
fn switches(ours: &Ours<'_>, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in list(table, "row") {
        let name = format!(
            "{} {}",
            text_of(row, "compiler"),
            text_of(row, "mitigation")
        );
        let Some(cell) = ours.cell(|key| is_named(key, "variant", &name)) else {
            continue;
        };
        let modelled = metric(cell, CYCLES_SPAN).zip(ticks_a_cycle(table));
        let counted = metric(cell, INSTRUCTIONS_KERNEL).map(|metric| (metric, 1.0));
        let Some((figure, scale)) = modelled.or(counted) else {
            continue;
        };
        let unit = if modelled.is_some() { "ticks" } else { "instr" };
        // The lowest and the highest published mean.
        let middle = |key: &str| {
            let both = row.get(key)?.as_array()?;
            let both: Vec<f64> = both.iter().filter_map(Value::as_float).collect();
            Some(both.iter().sum::<f64>() / both.len() as f64)
        };
        let theirs = [middle("without"), middle("with")];
        let estimate = figure.judged.estimate;
        let mine = [
            estimate.map(|e| e.baseline * scale),
            estimate.map(|e| e.experiment * scale),
        ];
        let change = |pair: [Option<f64>; 2]| Some(pair[1]? - pair[0]?);
        for (what, published, ours, sig) in [
            ("without", theirs[0], mine[0], ""),
            ("with", theirs[1], mine[1], ""),
            ("change", change(theirs), change(mine), sig(figure)),
        ] {
            figures.push(Figure {
                name: format!("{name}.{what}"),
                published,
                ours,
                published_unit: "ticks",
                unit,
                published_sig: what == "change",
                sig,
            });
        }
    }
    figures
}

/// Returns the ticks of the time-stamp counter in a cycle of the core, on the published
/// machine.
fn ticks_a_cycle(table: &Table) -> Option<f64> {
    let clock = table.get("clock")?;
    let ghz = |key: &str| clock.get(key)?.as_float();
    Some(ghz("tsc_ghz")? / ghz("core_ghz")?)
}

/// Reads `[[size]]`: bzImage with a compiler option.
fn images(ours: &Ours<'_>, table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for size in list(table, "size") {
        let name = format!("{} {}", text_of(size, "compiler"), text_of(size, "option"));
        let Some(sizes) = ours.sizes.iter().find(|sizes| sizes.variant == name) else {
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

/// Counts the figures that were published as beyond noise and are shown here either
/// way: those that point in the same direction, and all of them.
pub fn agreement(figures: &[Figure]) -> (usize, usize) {
    let shown: Vec<(f64, f64)> = figures
        .iter()
        .filter(|figure| figure.published_sig && figure.sig.contains(['+', '-']))
        .filter_map(|figure| Some((figure.published?, figure.ours?)))
        .collect();
    let same = shown.iter().filter(|(a, b)| a.signum() == b.signum());
    (same.count(), shown.len())
}

/// Returns the figures as a section; `None` if there are no figures.
#[must_use]
pub fn section(figures: &[Figure]) -> Option<Section> {
    if figures.is_empty() {
        return None;
    }
    let line = |name: &str, theirs: &str, ours: &str, sig: &str| {
        let line = format!("{name:<36} {theirs:>13} {ours:>14} {sig:<6}");
        line.trim_end().to_owned()
    };
    let mut lines = vec![line("Figure", "Published", "Ours", "Sig")];
    for figure in figures {
        let signed = figure.name.contains("change") || figure.name.ends_with(".delta");
        let number = |value: Option<f64>, unit: &str| match value {
            None => "-".to_owned(),
            Some(x) if signed => format!("{x:+.2} {unit}").trim_end().to_owned(),
            Some(x) => format!("{x:.2} {unit}").trim_end().to_owned(),
        };
        lines.push(line(
            &figure.name,
            &number(figure.published, figure.published_unit),
            &number(figure.ours, figure.unit),
            figure.sig,
        ));
    }
    let (same, of) = agreement(figures);
    let mut section = Section::new("Published beside ours")
        .preformatted(lines.join("\n"))
        .prose(format!(
            "A dash: not measured here (no hardware counter or clock without KVM). Of the figures \
             that were published as beyond noise and that are shown here either way, {same} of \
             {of} point the same way."
        ));
    if figures.iter().any(|figure| figure.unit == "instr") {
        section = section.prose(
            "Theirs are TSC ticks of one call of finish_task_switch(), on hardware; ours are \
             kernel instructions of one whole switch with the system calls that cause it. Only \
             the direction can be compared: what a mispredicted return costs is no instruction.",
        );
    }
    if figures.iter().any(|figure| figure.unit == "ticks") {
        section = section.prose(
            "Theirs are ticks between two reads of the time-stamp counter, measured; ours are \
             modelled cycles of the same stretch at the published clocks, without what the reads \
             cost. So the changes can be compared, and the ticks of one side cannot.",
        );
    }
    if figures.iter().any(|figure| is_time(&figure.name)) {
        section = section.prose(
            "Our changes of times and rates are those of modelled cycles: a guest has one CPU and \
             never waits, and data is not in the model.",
        );
    }
    Some(section)
}

/// Returns whether a published figure is a time or a rate, for which ours is of modelled cycles.
fn is_time(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.any(|part| CYCLES_OF.iter().any(|(theirs, ..)| *theirs == part))
}

/// Published times and rates, the cycles here that stand for them, and whether more cycles are
/// a lower figure.
const CYCLES_OF: [(&str, &str, bool); 6] = [
    ("requests", CYCLES, true),
    ("throughput", CYCLES, true),
    ("elapsed", CYCLES, false),
    ("cycles", CYCLES, false),
    ("sys", CYCLES_KERNEL, false),
    ("user", CYCLES_USER, false),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe;
    use locklab_document::Part;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_report_unpacks_and_its_patches_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        for name in names() {
            let experiment = recipe::Experiment::read(&unpack(&cache, name).unwrap()).unwrap();
            assert_eq!(experiment.name, name);
            for variant in experiment.variants() {
                for side in locklab_judge::Side::BOTH {
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
        let experiment = recipe::Experiment::parse(report.experiment).unwrap();
        let table: Table = report.figures.unwrap().parse().unwrap();
        let has = |name: &str| experiment.variant.iter().any(|v| v.name == name);
        for row in list(&table, "row") {
            let name = format!(
                "{} {}",
                text_of(row, "compiler"),
                text_of(row, "mitigation")
            );
            assert_eq!(ticks_a_cycle(&table), Some(0.575));
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
        let section = section(&figures).unwrap();
        let parts = format!("{:?}", section.parts);
        assert!(parts.contains("1 of 2 point"), "{parts}");
        let Part::Preformatted(table) = &section.parts[0] else {
            panic!("the table comes first: {parts}");
        };
        assert!(table.lines().all(|line| line.len() <= 72), "{table}");
    }
}
