//! The content of a report, before it is rendered in any form.
//!
//! Reports are built elsewhere, backends append their own sections, and each
//! form of output is one function in [`render`]. A document holds words
//! and figures that are ready to be read; nothing here measures, judges or
//! claims, nor knows an experiment or a store.

pub mod bars;
pub mod contention_profile;
pub mod lines;
pub mod number;
pub mod page;
pub mod render;
mod shade;
mod table;

pub use bars::{BarRow, Bars};
pub use lines::{Line, LinePoint, Lines};
pub use page::COLUMNS;
pub use shade::{Shade, mark};
pub use table::{Column, ColumnGroup, Table};

use locklab_judge::{Shown, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Facts in the order in which a report prints them: name, then value.
pub type Facts = Vec<(String, String)>;

/// The names of the two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Labels {
    /// The side that the other is compared with.
    pub baseline: String,
    /// The side that is judged.
    pub experiment: String,
}

impl Labels {
    /// Makes the names of the baseline and of the experiment.
    pub fn new(baseline: impl Into<String>, experiment: impl Into<String>) -> Self {
        Self {
            baseline: baseline.into(),
            experiment: experiment.into(),
        }
    }
}

/// Says what a metric is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It decides: one per cell, in the family of all cells.
    Primary,
    /// It explains: false discoveries at 5 % over all such metrics.
    Screening,
    /// It is summarised and never judged.
    Descriptive,
}

/// A report of any kind.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Names the inputs that were compared.
    pub title: String,
    /// Says where the figures come from, and what they are. Printed under the
    /// title in every form.
    pub head: Facts,
    /// Names the two sides of curves and of runs over time.
    pub labels: Labels,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// The verdicts that decide, for tools that pass or fail.
    pub findings: Vec<Finding>,
    /// Says when the first run was made, as `2026-11-20T12:00:00` in UTC, where that is
    /// known.
    pub started: Option<String>,
    /// The results for programs. Backends add fields of their own; none of
    /// those that are there may be removed or change its meaning.
    pub data: Map<String, Value>,
}

impl Document {
    /// Adds a section at the end.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }
}

/// A verdict that decides, by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// Names the cell that was judged, and the metric where there are several.
    pub name: String,
    /// Name of the metric on which the verdict was reached.
    pub metric: String,
    /// `better`, `worse`, `flat`, `unclear`, `invalid`, or `incomplete` for
    /// what was not measured.
    pub verdict: &'static str,
    /// The verdict in a sentence, with its figures.
    pub message: String,
    /// The file that it is about, if any: the experiment file that defined it,
    /// the source of the lock, or the file with its samples.
    pub file: Option<String>,
    /// The line of that file, from 1, where it is known.
    pub line: Option<usize>,
    /// Seconds from its first run to the start of its last, where they are known.
    pub seconds: Option<f64>,
}

/// Parts under one heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Empty for parts that belong under the previous heading.
    pub heading: String,
    /// Its level in the outline.
    pub level: Level,
    /// Says where it is shown.
    pub medium: Medium,
    /// Closed at first, where that is possible.
    pub folded: bool,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// Level of a section in the outline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// A chapter.
    #[default]
    Major,
    /// A part of a chapter.
    Minor,
}

/// Says where a section is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Every form of output.
    #[default]
    Everywhere,
    /// Forms without charts: text and Markdown.
    Text,
    /// The form with charts: HTML.
    Page,
}

impl Section {
    /// Makes a chapter with this heading and no parts yet.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            ..Self::default()
        }
    }

    /// Returns a part of a chapter.
    #[must_use]
    pub fn minor(heading: impl Into<String>) -> Self {
        Self {
            level: Level::Minor,
            ..Self::new(heading)
        }
    }

    /// Shows it in one medium only.
    #[must_use]
    pub fn only(self, medium: Medium) -> Self {
        Self { medium, ..self }
    }

    /// Closes it at first if `folded`.
    #[must_use]
    pub fn folded(self, folded: bool) -> Self {
        Self { folded, ..self }
    }

    /// Returns the section with one more part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Returns the section with one more paragraph.
    #[must_use]
    pub fn prose(self, text: impl Into<String>) -> Self {
        self.with(Part::Prose(text.into(), Tone::Plain))
    }

    /// Returns the section with one more explanation.
    #[must_use]
    pub fn note(self, text: impl Into<String>) -> Self {
        self.with(Part::Prose(text.into(), Tone::Note))
    }

    /// Returns the section with these facts, if there are any.
    #[must_use]
    pub fn facts(self, facts: Facts) -> Self {
        if facts.is_empty() {
            return self;
        }
        self.with(Part::Facts(facts))
    }

    /// Returns the section with these items, if there are any.
    #[must_use]
    pub fn items(self, items: Vec<String>) -> Self {
        if items.is_empty() {
            return self;
        }
        self.with(Part::Items(items))
    }

    /// Returns the section with text that keeps its lines.
    #[must_use]
    pub fn preformatted(self, text: impl Into<String>) -> Self {
        self.with(Part::Preformatted(text.into()))
    }
}

/// One thing that a report shows.
#[derive(Clone, Debug)]
pub enum Part {
    /// Names and values.
    Facts(Facts),
    /// A paragraph, and how loudly it is said.
    Prose(String, Tone),
    /// A list with a mark before each item.
    Items(Vec<String>),
    /// Metrics of one workload with their verdicts.
    Metrics(Vec<MetricRow>),
    /// Any other table.
    Table(Table),
    /// A matrix of cells; a heat map where there are charts.
    Grid(Grid),
    /// The marks used in the grids before it, each with its meaning.
    Legend(Vec<(String, String)>),
    /// Curves side by side; shown where there are charts.
    Curves(Vec<Curves>),
    /// Many lines side by side, named at their ends; shown where there are
    /// charts.
    Lines(Vec<Lines>),
    /// Estimates with intervals; shown where there are charts.
    Intervals(Intervals),
    /// Runs over time; shown where there are charts.
    Timeline(Timeline),
    /// Text that keeps its lines.
    Preformatted(String),
}

impl Part {
    /// Returns whether it can only be drawn.
    #[must_use]
    pub fn is_chart(&self) -> bool {
        matches!(
            self,
            Self::Curves(_) | Self::Lines(_) | Self::Intervals(_) | Self::Timeline(_)
        )
    }
}

/// Role of a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Running text without emphasis.
    Plain,
    /// The main result.
    Lead,
    /// An explanation of how to read something.
    Note,
}

/// A metric of a workload with what was shown of it.
#[derive(Clone, Debug)]
pub struct MetricRow {
    /// Name of the metric, as the report prints it.
    pub name: String,
    /// Its unit; may be empty.
    pub unit: String,
    /// The baseline's figure, in that unit.
    pub baseline: Option<f64>,
    /// The experiment's figure, by the same estimator.
    pub experiment: Option<f64>,
    /// The difference in percent of the baseline, in the metric's own
    /// direction.
    pub delta: Option<Shown>,
    /// Holds what was shown; `None` of a metric that only describes.
    pub verdict: Option<Verdict>,
    /// Says whether it decides, explains or describes.
    pub role: Role,
    /// The test in a few letters, such as `p=0.001 n=10`; may be empty.
    pub test: String,
}

impl MetricRow {
    /// Returns its name with its unit.
    #[must_use]
    pub fn label(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} [{}]", self.name, self.unit)
        }
    }

    /// Returns the verdict as the `Sig` column has it: `**+` for better and `**-` for
    /// worse beyond noise, `*+` and `*-` for the same in metrics that explain,
    /// `flat` for shown to be within the margin, `ns` for not shown either
    /// way, `inval` for not to be read, nothing for not judged.
    #[must_use]
    pub fn sig(&self) -> &'static str {
        match (&self.verdict, self.role) {
            (None, _) => "",
            (Some(Verdict::Better), Role::Primary) => "**+",
            (Some(Verdict::Better), _) => "*+",
            (Some(Verdict::Worse), Role::Primary) => "**-",
            (Some(Verdict::Worse), _) => "*-",
            (Some(Verdict::Flat { nonzero: false }), _) => "flat",
            (Some(Verdict::Flat { nonzero: true }), _) => "flat!0",
            (Some(Verdict::Unclear { .. }), _) => "ns",
            (Some(Verdict::Invalid(_)), _) => "inval",
        }
    }

    /// Returns the verdict in a word, or nothing.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.verdict.as_ref().map_or("", Verdict::word)
    }

    /// Returns the difference as the table prints it.
    #[must_use]
    pub fn delta_text(&self) -> String {
        let Some(delta) = self.delta else {
            return "-".into();
        };
        // Adding zero turns -0 into 0.
        let delta = (delta.value * 100.0).round() / 100.0 + 0.0;
        let sign = if delta > 0.0 { "+" } else { "" };
        match delta.abs() {
            ..10_000.0 => format!("{sign}{delta:.2}%"),
            ..1e7 => format!("{sign}{delta:.0}%"),
            _ => format!("{sign}{delta:.0e}%"),
        }
    }
}

/// A matrix of cells.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Names the rows.
    pub row_title: String,
    /// Names the columns.
    pub column_title: String,
    /// A name above each column.
    pub columns: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<GridRow>,
}

/// A row of a matrix.
#[derive(Clone, Debug, Default)]
pub struct GridRow {
    /// Label at the left end of the row.
    pub name: String,
    /// A sign after its name, or nothing.
    pub flag: String,
    /// One for each column; `None` where there is none.
    pub cells: Vec<Option<GridCell>>,
}

/// A cell of a matrix.
#[derive(Clone, Debug)]
pub struct GridCell {
    /// The figure; may be empty.
    pub value: String,
    /// The verdict and any further mark, in at most two characters.
    pub mark: String,
    /// The colour of its verdict and how large the difference is.
    pub shade: Shade,
    /// Text shown when a pointer is over it.
    pub detail: String,
}

/// Curves over the same names.
#[derive(Clone, Debug)]
pub struct Curves {
    /// Says what is shown.
    pub title: String,
    /// Says what the names are.
    pub x_title: String,
    /// Places on the x axis.
    pub names: Vec<String>,
    /// One line for each side.
    pub curves: Vec<Curve>,
}

/// One line of a chart of curves.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Points from left to right.
    pub points: Vec<CurvePoint>,
    /// The baseline's look, or the experiment's.
    pub baseline: bool,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct CurvePoint {
    /// Selects one of the named places on the x axis.
    pub place: usize,
    /// Its height, in the unit of the title.
    pub value: f64,
    /// The limits of that, where there are any.
    pub limits: Option<(f64, f64)>,
}

/// Estimates with their intervals over the pairs they come from.
#[derive(Clone, Debug)]
pub struct Intervals {
    /// Rows from the top.
    pub rows: Vec<IntervalRow>,
    /// Holds what counts as flat, in percent.
    pub margin: f64,
}

/// One row of a chart of intervals.
#[derive(Clone, Debug)]
pub struct IntervalRow {
    /// Label at the left end of the row.
    pub name: String,
    /// The estimate with its limits, in percent.
    pub estimate: Option<Shown>,
    /// The pairs behind it, in percent.
    pub pairs: Vec<f64>,
    /// The verdict in a word.
    pub verdict: String,
}

/// Runs over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Title of the y axis.
    pub title: String,
    /// Title of the x axis.
    pub x_title: String,
    /// Time and value of the baseline's runs.
    pub baseline: Vec<(f64, f64)>,
    /// The points of the experiment.
    pub experiment: Vec<(f64, f64)>,
    /// Writes a value.
    pub format: fn(f64) -> String,
}
