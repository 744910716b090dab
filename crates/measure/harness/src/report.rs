//! Turns verdicts into a document of text, tables and charts.
//!
//! A report knows nothing of how a figure was made; it names the figure's
//! source, and claims no more than the verdicts. Nothing here measures,
//! judges or lays out.

mod caveats;
mod design;
mod findings;
mod inputs;
mod matrix;
mod placed;
mod placement;
mod rank;
mod region;
mod regions;
pub mod results;
mod workload;
mod workloads;

pub use inputs::{Context, Words};
pub use workloads::words::{first_sentences, sentence_of_metric};

use self::inputs::Report;
use crate::experiment::{Experiment, Layout};
use crate::verdicts::Verdicts;
use locklab_document::Document;

/// Returns the report of an experiment. Its backend may append what only it knows.
#[must_use]
pub fn document(experiment: &Experiment, verdicts: &Verdicts, context: &Context) -> Document {
    let report = Report::new(experiment, verdicts, context);
    let mut document = match experiment.layout() {
        Layout::Matrix => matrix::document(&report),
        Layout::Workloads => workloads::document(&report),
        Layout::Ranking => rank::document(&report),
    };
    document.started.clone_from(&context.started);
    document
}
