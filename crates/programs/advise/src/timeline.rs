//! The hottest lock in the course of the recorded window, for a page. What is drawn was
//! recorded; it must never show what was simulated.

use locklab_document::{Line, LinePoint, Lines, Medium, Part, Section};
use locklab_replay::{Moment, Program};

/// Returns the chart, if the window is long enough for one. `called` is the lock's
/// name; without one it is its address.
pub(crate) fn timeline(program: &Program, called: Option<&str>) -> Option<Section> {
    let (lock, moments) = (program.locks.first()?, &program.timeline);
    if moments.is_empty() {
        return None;
    }
    let part_ms = program.recorded.window_ns * 1e-6 / moments.len() as f64;
    let line = |name: &str, colour, of: fn(&Moment) -> f64| Line {
        name: name.to_owned(),
        points: moments
            .iter()
            .enumerate()
            .map(|(place, moment)| LinePoint {
                place,
                value: of(moment),
                limits: None,
                detail: format!("{name}: {:.2} threads", of(moment)),
            })
            .collect(),
        colour: Some(colour),
        bold: true,
    };
    // This names all: the page leaves out those that have no room.
    let name = |part: usize| format!("{:.1}", part as f64 * part_ms);
    let lines = Lines {
        title: match called {
            Some(name) => format!("threads that held {name}, and that waited for it"),
            None => format!(
                "threads that held lock {:#x}, and that waited for it",
                lock.address
            ),
        },
        x_title: "ms from the start of the window".into(),
        names: (0..moments.len()).map(name).collect(),
        lines: vec![
            line("held", 0, |moment| moment.held),
            line("waited", 1, |moment| moment.waited),
        ],
        logarithmic: false,
    };
    Some(
        Section::minor("The hottest lock, as recorded")
            .only(Medium::Page)
            .with(Part::Lines(vec![lines])),
    )
}
