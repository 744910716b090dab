//! The sections that only one instrument can add to a report, by the kind and
//! the provenance of the experiment, so that a stored report has them too.

use locklab_document::{Document, Section};
use locklab_lab::experiment::{Experiment, Kind, Provenance};
use locklab_lab::verdicts::Verdicts;
use serde_json::json;

/// Adds the sections.
pub fn add(document: &mut Document, experiment: &Experiment, verdicts: &Verdicts) {
    match (experiment.kind, &experiment.provenance) {
        (Kind::Matrix, Provenance::Simulation(_)) => simulated(document, experiment),
        (Kind::Matrix, Provenance::Hardware(_)) => native(document, experiment, verdicts),
        (Kind::Kernels, _) => kernels(document, experiment, verdicts),
        (Kind::Programs, _) => programs(document, experiment),
        _ => {}
    }
}

fn native(document: &mut Document, experiment: &Experiment, verdicts: &Verdicts) {
    let (section, data) = locklab_native::spread::additions(experiment);
    document.sections.extend(section);
    if let Some(sentence) = locklab_native::card::outcome(experiment, verdicts) {
        document.push(Section::new("What was predicted").prose(sentence));
    }
    document.data.extend(data);
    if let Some(sentence) = locklab_sim_instrument::beyond(experiment) {
        document.push(Section::new("What this machine cannot show").prose(sentence));
    }
}

fn simulated(document: &mut Document, experiment: &Experiment) {
    let Some(extra) = locklab_sim_instrument::extra(experiment) else {
        return;
    };
    document.push(Section::new("What hardware cannot show").prose(extra.about));
    for (lock, lines) in extra.tables {
        document.push(Section::minor(lock).preformatted(lines.join("\n")));
    }
    document.data.insert("simulation".into(), extra.json);
}

fn programs(document: &mut Document, experiment: &Experiment) {
    let (sections, data) = locklab_programs::report::additions(experiment);
    document.sections.extend(sections);
    document.data.extend(data);
}

fn kernels(document: &mut Document, experiment: &Experiment, verdicts: &Verdicts) {
    for section in locklab_kernel::report::sections(experiment) {
        document.push(section);
    }
    document
        .data
        .extend(locklab_kernel::report::data(experiment));
    let reference = experiment.spec["reference"].as_str().unwrap_or_default();
    let figures = locklab_kernel::published::beside(experiment, verdicts, reference);
    let figures = figures.unwrap_or_default();
    if let Some(section) = locklab_kernel::published::section(&figures) {
        document.push(section);
    }
    document.data.insert("figures".into(), json!(figures));
}
