//! What the kinds of experiments have of their own in a report: the words for what
//! is compared, and what their instruments append.

use locklab_document::Document;
use locklab_lab::experiment::Experiment;
use locklab_lab::report::Words;
use locklab_lab::verdicts::Verdicts;
use locklab_lab::{matrix, ranking};

/// The words in which reports of a kind speak of what is compared.
pub(crate) fn words(kind: &str) -> Words {
    match kind {
        matrix::KIND | ranking::KIND => locklab_native::WORDS,
        _ => Words::default(),
    }
}

/// Appends to a report what the instruments of its kind have of their own.
pub(crate) fn append(experiment: &Experiment, verdicts: &Verdicts, report: &mut Document) {
    match experiment.kind.as_str() {
        matrix::KIND => {
            locklab_native::append(experiment, verdicts, report);
            locklab_sim_instrument::append(experiment, verdicts, report);
        }
        locklab_programs::settings::KIND => locklab_programs::report::append(experiment, report),
        locklab_kernel::recipe::KIND => {
            locklab_kernel::report::append(experiment, verdicts, report)
        }
        _ => {}
    }
}
