//! The limits of a measured matrix, and the command that goes beyond them: the
//! same two locks on a modelled machine.

use locklab_document::Section;
use locklab_lab::experiment::{Experiment, Provenance};
use locklab_lab::report::{Additions, Reporter};
use locklab_sim::can_be_simulated;

/// With this many threads at once a machine shows the benefit of queues.
const MANY: u64 = 64;

/// What the report of a matrix on hardware has about modelled machines.
pub const BEYOND: Reporter = Reporter {
    kind: locklab_lab::matrix::KIND,
    of: |provenance| matches!(provenance, Provenance::Hardware(_)),
    additions: |experiment, _| Additions {
        sections: beyond(experiment)
            .map(|sentence| Section::new("What this machine cannot show").prose(sentence))
            .into_iter()
            .collect(),
        ..Additions::default()
    },
};

/// The closing paragraph of a report from hardware; `None` where the machine
/// had enough CPUs, or where the locks cannot be simulated.
fn beyond(experiment: &Experiment) -> Option<String> {
    let at_once = experiment
        .cells
        .iter()
        .filter(|cell| !cell.oversubscribed)
        .filter_map(|cell| cell.key.number("threads"))
        .max()?;
    let labels = &experiment.labels;
    let known = [&labels.baseline, &labels.experiment]
        .into_iter()
        .all(|name| can_be_simulated(name));
    if at_once >= MANY || !known {
        return None;
    }
    let virtual_machine = experiment
        .facts
        .iter()
        .any(|(name, _)| name == "Hypervisor");
    let machine = if virtual_machine {
        "xeon-8380-vm"
    } else {
        "xeon-8380-2s"
    };
    let locks = if labels.baseline == labels.experiment {
        format!("{} --aa", labels.baseline)
    } else {
        format!("{} {}", labels.baseline, labels.experiment)
    };
    Some(format!(
        "No more than {at_once} of these threads ran at once: what the locks do with more, and \
         across sockets, this machine cannot show. A model of one that can takes seconds, and \
         its figures are marked as simulated: `locklab matrix {locks} --on {machine}`."
    ))
}
