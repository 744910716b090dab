//! The published figures of reports about kernels, beside those measured here.
//!
//! It only reads figures that were measured: it builds and boots no kernel. Where theirs
//! and ours are not the same quantity, both units stand beside the figures; a figure that
//! was not measured here is a dash, never a guess.

use crate::reference::not_toml;
use locklab_document::{MetricRow, Section};
use locklab_harness::experiment::{Experiment, Key};
use locklab_harness::metric::{
    CYCLES, CYCLES_KERNEL, CYCLES_READS, CYCLES_SPAN, CYCLES_USER, INSTRUCTIONS_KERNEL,
};
use locklab_harness::verdicts::{JudgedCell, JudgedMetric, Verdicts};
use locklab_host::error::Error;
use locklab_judge::Estimate;
use serde::{Deserialize, Serialize};

/// The reports about kernels that have published figures, with their files.
const REFERENCES: [(&str, &str); 2] = [
    (
        "inline-unlock",
        include_str!("../reference/inline-unlock.toml"),
    ),
    (
        "finish-task-switch",
        include_str!("../reference/finish-task-switch.toml"),
    ),
];

/// The published figures of a report about kernels.
#[derive(Clone, Debug, Deserialize)]
pub struct KernelReference {
    footprint: Option<Footprint>,
    #[serde(default)]
    workload: Vec<Workload>,
    #[serde(default)]
    row: Vec<Row>,
    #[serde(default)]
    size: Vec<Size>,
    clock: Option<Clock>,
}

/// `[footprint]`: all functions and objects, by the rules of bloat-o-meter.
#[derive(Clone, Debug, Deserialize)]
struct Footprint {
    change_percent: f64,
}

/// `[[workload]]`: what a workload counted and took.
#[derive(Clone, Debug, Deserialize)]
struct Workload {
    name: String,
    metric: Vec<Metric>,
}

/// One metric of a workload.
#[derive(Clone, Debug, Deserialize)]
struct Metric {
    name: String,
    baseline: f64,
    /// The change in percent.
    delta: f64,
    /// `**` if the change was beyond the noise of the runs.
    sig: String,
}

/// `[[row]]`: ticks of one call, by compiler and mitigation.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    compiler: String,
    mitigation: String,
    /// The lowest and the highest published mean.
    without: [f64; 2],
    /// The lowest and the highest published mean with the change.
    with: [f64; 2],
}

impl Row {
    fn variant(&self) -> String {
        format!("{} {}", self.compiler, self.mitigation)
    }
}

/// `[[size]]`: the bzImage with a compiler option.
#[derive(Clone, Debug, Deserialize)]
struct Size {
    compiler: String,
    option: String,
    change_percent: f64,
}

impl Size {
    fn variant(&self) -> String {
        format!("{} {}", self.compiler, self.option)
    }
}

/// `[clock]`: the clocks of the published machine.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Clock {
    core_ghz: f64,
    tsc_ghz: f64,
}

impl Clock {
    /// Returns the ticks of the time-stamp counter in a cycle of the core.
    fn ticks_a_cycle(self) -> f64 {
        self.tsc_ghz / self.core_ghz
    }
}

/// The sizes of the two kernels of a variant, the baseline's first.
#[derive(Clone, Debug)]
pub struct KernelSizes {
    /// Name of the variant; empty for the only one.
    pub variant: String,
    /// Bytes of all functions and objects, by the rules of bloat-o-meter.
    pub bytes: [u64; 2],
    /// Bytes of the bzImage, if one was made.
    pub bzimage: [Option<u64>; 2],
}

/// A published figure of a kernel, and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelFigure {
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

/// Says how often figures of kernels point where the published ones do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelAgreement {
    /// The share of them that point the same way; `None` if there are none.
    pub direction: Option<f64>,
    /// Figures that were published as beyond noise and are shown here either way.
    pub directed: usize,
}

impl KernelReference {
    /// Returns the published figures of a report; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Usage`] if its file cannot be read, with the line.
    pub fn named(name: &str) -> Result<Option<Self>, Error> {
        let found = REFERENCES.iter().find(|(report, _)| *report == name);
        found
            .map(|(name, text)| Self::parse(name, text))
            .transpose()
    }

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let file = format!("reference/{name}.toml");
        toml::from_str(text).map_err(|error| not_toml(&file, text, &error))
    }

    /// Returns the names of the variants that have published figures of their own.
    pub fn variants(&self) -> impl Iterator<Item = String> + '_ {
        let rows = self.row.iter().map(Row::variant);
        rows.chain(self.size.iter().map(Size::variant))
    }

    /// Returns the published figures beside ours, where both exist.
    #[must_use]
    pub fn beside(
        &self,
        experiment: &Experiment,
        verdicts: &Verdicts,
        sizes: &[KernelSizes],
    ) -> Vec<KernelFigure> {
        let ours = Ours {
            experiment,
            verdicts,
            sizes,
        };
        let mut figures: Vec<KernelFigure> = self.footprint(&ours).into_iter().collect();
        figures.extend(self.workloads(&ours));
        figures.extend(self.switches(&ours));
        figures.extend(self.images(&ours));
        figures
    }

    fn footprint(&self, ours: &Ours<'_>) -> Option<KernelFigure> {
        let published = self.footprint.as_ref()?.change_percent;
        let [before, after] = ours.sizes.first()?.bytes;
        Some(size_change(
            "footprint.change_percent".into(),
            published,
            [before, after],
        ))
    }

    /// Returns changes in percent of the workloads that ran here.
    fn workloads(&self, ours: &Ours<'_>) -> Vec<KernelFigure> {
        let mut figures = Vec::new();
        for workload in &self.workload {
            let name = &workload.name;
            let Some(cell) = ours.cell(|key| is_named(key, "workload", name)) else {
                continue;
            };
            for theirs in &workload.metric {
                let key = &theirs.name;
                let of_cycles = CYCLES_OF.iter().find(|(theirs, ..)| theirs == key);
                let (name_here, inverse) =
                    of_cycles.map_or((key.as_str(), false), |&(_, ours, inverse)| (ours, inverse));
                let judged = metric(cell, name_here);
                let estimate = judged.and_then(|metric| metric.judged.estimate);
                let change = estimate.map(|e| change_over_pairs(&e, inverse));
                // A rate can be compared itself; totals depend on how much ran.
                if key.starts_with("l1i-mpki") {
                    figures.push(KernelFigure {
                        name: format!("{name}.{key}.baseline"),
                        published: Some(theirs.baseline),
                        ours: estimate.map(|e| e.baseline),
                        published_unit: "",
                        unit: "",
                        published_sig: false,
                        sig: "",
                    });
                }
                figures.push(KernelFigure {
                    name: format!("{name}.{key}.delta"),
                    published: Some(theirs.delta),
                    ours: change,
                    published_unit: "%",
                    unit: "%",
                    published_sig: theirs.sig == "**",
                    sig: judged.map_or("", sig),
                });
            }
        }
        figures
    }

    /// Returns ticks of one call beside modelled ticks of the same stretch, as two reads of the
    /// counter report it and all of it, or beside instructions of a whole switch where no front
    /// end was modelled.
    fn switches(&self, ours: &Ours<'_>) -> Vec<KernelFigure> {
        let mut figures = Vec::new();
        for row in &self.row {
            let name = row.variant();
            let Some(cell) = ours.cell(|key| is_named(key, "variant", &name)) else {
                continue;
            };
            let ticks = |name| metric(cell, name).zip(self.clock.map(Clock::ticks_a_cycle));
            let modelled = ticks(CYCLES_READS).or_else(|| ticks(CYCLES_SPAN));
            let counted = metric(cell, INSTRUCTIONS_KERNEL).map(|metric| (metric, 1.0));
            let Some((figure, scale)) = modelled.or(counted) else {
                continue;
            };
            let unit = if modelled.is_some() { "ticks" } else { "instr" };
            let theirs = [row.without, row.with].map(|[low, high]| Some((low + high) / 2.0));
            let of = |figure: &JudgedMetric| {
                let estimate = figure.judged.estimate;
                [
                    estimate.map(|e| e.baseline * scale),
                    estimate.map(|e| e.experiment * scale),
                ]
            };
            let mine = of(figure);
            let change = |pair: [Option<f64>; 2]| Some(pair[1]? - pair[0]?);
            for (what, published, ours, sig) in [
                ("without", theirs[0], mine[0], ""),
                ("with", theirs[1], mine[1], ""),
                ("change", change(theirs), change(mine), sig(figure)),
            ] {
                figures.push(KernelFigure {
                    name: format!("{name}.{what}"),
                    published,
                    ours,
                    published_unit: "ticks",
                    unit,
                    published_sig: what == "change",
                    sig,
                });
            }
            // All of the stretch, of which reads hide a part.
            if let (Some(_), Some((span, _))) = (metric(cell, CYCLES_READS), ticks(CYCLES_SPAN)) {
                figures.push(KernelFigure {
                    name: format!("{name}.change, all"),
                    published: None,
                    ours: change(of(span)),
                    published_unit: "ticks",
                    unit,
                    published_sig: false,
                    sig: sig(span),
                });
            }
        }
        figures
    }

    /// Returns changes in percent of the bzImage with a compiler option.
    fn images(&self, ours: &Ours<'_>) -> Vec<KernelFigure> {
        let mut figures = Vec::new();
        for size in &self.size {
            let name = size.variant();
            let Some(sizes) = ours.sizes.iter().find(|sizes| sizes.variant == name) else {
                continue;
            };
            let [Some(old), Some(new)] = sizes.bzimage else {
                continue;
            };
            let name = format!("{name}.bzimage.change_percent");
            figures.push(size_change(name, size.change_percent, [old, new]));
        }
        figures
    }
}

/// The figures measured here.
struct Ours<'a> {
    experiment: &'a Experiment,
    verdicts: &'a Verdicts,
    sizes: &'a [KernelSizes],
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
        test: String::new(),
    }
    .sig()
}

/// Returns the change from `old` to `new` in percent.
fn percent_change(old: f64, new: f64) -> f64 {
    (new / old - 1.0) * 100.0
}

/// Returns the change over the pairs in percent, or with `inverse` that of a rate of which this
/// is the time. The medians of the two sides would not do: each layout has both kernels, and
/// what a layout does is in both.
fn change_over_pairs(estimate: &Estimate, inverse: bool) -> f64 {
    let more = estimate.delta_percent().value;
    match inverse {
        true => percent_change(1.0 + more / 100.0, 1.0),
        false => more,
    }
}

/// Returns a published change of a size in percent, and that between our two sizes.
fn size_change(name: String, published: f64, [old, new]: [u64; 2]) -> KernelFigure {
    KernelFigure {
        name,
        published: Some(published),
        ours: Some(percent_change(old as f64, new as f64)),
        published_unit: "%",
        unit: "%",
        published_sig: false,
        sig: "",
    }
}

/// Counts the figures that point in the same direction, among those that were published
/// as beyond noise and are shown here either way; returns that number and the number of all.
fn directions(figures: &[KernelFigure]) -> (usize, usize) {
    let shown: Vec<(f64, f64)> = figures
        .iter()
        .filter(|figure| figure.published_sig && figure.sig.contains(['+', '-']))
        .filter_map(|figure| Some((figure.published?, figure.ours?)))
        .collect();
    let same = shown.iter().filter(|(a, b)| a.signum() == b.signum());
    (same.count(), shown.len())
}

/// Returns how often these figures point where the published ones do.
#[must_use]
pub fn agreement(figures: &[KernelFigure]) -> KernelAgreement {
    let (same, directed) = directions(figures);
    KernelAgreement {
        direction: (directed > 0).then(|| same as f64 / directed as f64),
        directed,
    }
}

/// Returns the figures as a section; `None` if there are no figures.
#[must_use]
pub fn section(figures: &[KernelFigure]) -> Option<Section> {
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
    let (same, of) = directions(figures);
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
             what two reads report of the modelled cycles of the same stretch, at the published \
             clocks: a read executes while what follows is fetched, and hides most of a short \
             stretch, all of which is in the last line. What a read takes was measured on \
             another processor, so the changes can be compared, and the ticks of one side \
             hardly.",
        );
    }
    if figures.iter().any(|figure| is_time(&figure.name)) {
        section = section.prose(
            "Our changes of times and rates are those of modelled cycles: a guest never waits, and \
             data is not in the model.",
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
    use locklab_document::Part;
    use locklab_judge::{Comparison, Direction, Pair, Settings, coin, fork_seed, judge};

    #[test]
    fn every_file_of_figures_is_read() {
        for (name, _) in REFERENCES {
            let reference = KernelReference::named(name).unwrap().unwrap();
            let figures = reference.workload.len() + reference.row.len();
            assert!(figures > 0, "{name}");
        }
        assert!(KernelReference::named("inline-lock").unwrap().is_none());
        let ticks = KernelReference::named("finish-task-switch")
            .unwrap()
            .unwrap();
        assert_eq!(ticks.clock.map(Clock::ticks_a_cycle), Some(0.575));
        let broken = KernelReference::parse("x", "[[size]]\ncompiler = 1\n");
        let why = broken.unwrap_err().to_string();
        assert!(why.starts_with("reference/x.toml:2"), "{why}");
    }

    #[test]
    fn a_rate_changes_as_its_time_over_the_pairs() {
        // Layouts differ by far more than the kernels do: most pairs take 2 % longer.
        let pairs = [
            (100.0, 102.0),
            (140.0, 142.8),
            (90.0, 91.8),
            (170.0, 173.4),
            (120.0, 126.0),
            (80.0, 81.6),
            (200.0, 204.0),
            (110.0, 110.0),
        ];
        let pairs = pairs
            .into_iter()
            .zip(0..)
            .map(|((without, with), pair)| Pair::new(without, with, coin(fork_seed(1, 0), pair)));
        let comparison = Comparison::primary(pairs.collect(), Direction::LowerIsBetter);
        let judged = judge(&[comparison], &Settings::default()).unwrap();
        let estimate = judged[0].estimate.unwrap();
        let (longer, rate) = (
            change_over_pairs(&estimate, false),
            change_over_pairs(&estimate, true),
        );
        assert!((1.9..2.1).contains(&longer), "{longer}");
        assert!((rate - 100.0 * (100.0 / (100.0 + longer) - 1.0)).abs() < 1e-9);
        let of_medians = percent_change(estimate.experiment, estimate.baseline);
        assert!((rate - of_medians).abs() > 0.3, "{rate}, {of_medians}");
    }

    #[test]
    fn agreement_counts_what_both_have_shown() {
        let figure = |published, ours, published_sig, sig| KernelFigure {
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
            KernelFigure {
                name: "rocksdb-deleteseq.instructions.delta".into(),
                ..figure(-1000.25, -1000.25, false, "flat!0")
            },
            KernelFigure {
                name: "clang spectre_v2_user=on.change, all".into(),
                unit: "instr",
                published_unit: "ticks",
                ..figure(-100.25, -1000.25, false, "flat!0")
            },
        ];
        assert_eq!(directions(&figures), (1, 2));
        assert_eq!(agreement(&figures).direction, Some(0.5));
        assert_eq!(agreement(&[]).direction, None);
        let section = section(&figures).unwrap();
        let parts = format!("{:?}", section.parts);
        assert!(parts.contains("1 of 2 point"), "{parts}");
        let Part::Preformatted(table) = &section.parts[0] else {
            panic!("the table comes first: {parts}");
        };
        assert!(table.lines().all(|line| line.len() <= 72), "{table}");
    }
}
