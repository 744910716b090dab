//! Counts of a boot between its markers, by mode, as the plugin reports them: instructions,
//! misses, and the cycles of a modelled front end. It must never count anything itself.

use locklab_frontend::{Account, Cause, Event, Processor};
use serde::{Deserialize, Serialize};

/// The events that say which branches were cold, each with what it counts.
pub(crate) const BRANCHES: [(&str, &[Event]); 5] = [
    ("taken branches", &[Event::Taken]),
    (
        "second-level targets",
        &[Event::TargetSlow, Event::FlushedSlow],
    ),
    ("cold targets", &[Event::TargetDecoded]),
    ("cold after a flush", &[Event::FlushedDecoded]),
    (
        "mispredictions",
        &[
            Event::Direction,
            Event::Indirect,
            Event::Return,
            Event::FlushedPrediction,
        ],
    ),
];

/// Counts of one mode between the markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounts {
    /// Instructions that were executed in this mode.
    pub instructions: u64,
    /// Fetches of a line of instructions by the modelled cache.
    pub l1i_fetches: u64,
    /// Fetches that missed the modelled cache.
    pub l1i_misses: u64,
}

/// Counts between the markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Counts in user mode.
    pub user: ModeCounts,
    /// Counts in kernel mode.
    pub kernel: ModeCounts,
}

/// Cycles that the front end lost between the markers, by mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrontEnd {
    /// The processor that is modelled.
    pub processor: String,
    /// Cycles in user mode.
    pub user: Account,
    /// Cycles in kernel mode.
    pub kernel: Account,
}

/// Counts within the spans between the markers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spans {
    /// Spans that ended.
    pub count: u64,
    /// Counts in user mode.
    pub user: ModeCounts,
    /// Counts in kernel mode.
    pub kernel: ModeCounts,
    /// Cycles that the front end lost within them, if one is modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontend: Option<FrontEnd>,
}

impl FrontEnd {
    /// Returns the cycles of both modes.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        self.user.cycles.value + self.kernel.cycles.value
    }

    /// Returns the cycles that were lost to a cause in both modes.
    fn lost(&self, cause: Cause) -> f64 {
        let modes = [&self.user, &self.kernel];
        let lost = modes.into_iter().flat_map(|mode| &mode.lost);
        lost.filter(|lost| lost.cause == cause)
            .map(|lost| lost.cycles.value)
            .sum()
    }

    /// Returns cycles of dispatch, cycles lost to each cause and all, and the counts of
    /// [`BRANCHES`], each divided by `units`.
    pub(crate) fn rows(&self, units: u64) -> Vec<f64> {
        let dispatch = self.user.dispatch.value + self.kernel.dispatch.value;
        let lost = Cause::ALL.map(|(cause, _)| self.lost(cause));
        std::iter::once(dispatch)
            .chain(lost)
            .chain([self.cycles()])
            .chain(BRANCHES.map(|(_, events)| {
                events.iter().map(|event| self.count(*event)).sum::<u64>() as f64
            }))
            .map(|figure| figure / units as f64)
            .collect()
    }

    /// Returns how often an event occurred in both modes.
    fn count(&self, event: Event) -> u64 {
        let (_, name) = Event::ALL[event as usize];
        let modes = [&self.user, &self.kernel];
        modes.iter().filter_map(|mode| mode.events.get(name)).sum()
    }
}

impl Spans {
    /// Returns the cycles of a span, if a front end is modelled.
    #[must_use]
    pub fn cycles(&self) -> Option<f64> {
        Some(self.frontend.as_ref()?.cycles() / self.count as f64)
    }

    /// Returns what two reads of the time-stamp counter around a span report, in cycles, if a
    /// front end is modelled of which that is known.
    pub(crate) fn between_reads(&self) -> Option<f64> {
        let modelled = &self.frontend.as_ref()?.processor;
        let mut known = Processor::names().filter_map(|name| Processor::named(name).ok());
        let processor = known.find(|processor| processor.name == *modelled)?;
        processor.between_reads(self.cycles()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_frontend::Events;

    #[test]
    fn rows_say_which_branches_were_cold_in_both_modes() {
        let processor = Processor::named("coffee-lake").unwrap();
        let account = |taken, decoded, mispredicted: u64| {
            let mut events = Events::default();
            events[Event::Taken] = taken;
            events[Event::TargetDecoded] = decoded;
            events[Event::Return] = mispredicted;
            processor.account(400, &events)
        };
        let front = FrontEnd {
            processor: processor.name.clone(),
            user: account(10, 0, 1),
            kernel: account(30, 4, 1),
        };
        let rows = front.rows(2);
        let cycles = Cause::ALL.len() + 2;
        assert_eq!(rows.len(), cycles + BRANCHES.len());
        assert_eq!(rows[cycles - 1], front.cycles() / 2.0);
        assert_eq!(rows[cycles..], [20.0, 0.0, 2.0, 0.0, 1.0]);
    }

    #[test]
    fn two_reads_hide_most_of_a_short_span() {
        let processor = Processor::named("coffee-lake").unwrap();
        let spans = |instructions| Spans {
            count: 1,
            user: ModeCounts::default(),
            kernel: ModeCounts::default(),
            frontend: Some(FrontEnd {
                processor: processor.name.clone(),
                user: processor.account(instructions, &Events::default()),
                kernel: processor.account(0, &Events::default()),
            }),
        };
        let [short, longer, long, longest] = [40, 80, 400, 480].map(spans);
        let reported = |spans: &Spans| spans.between_reads().unwrap();
        let cycles = |spans: &Spans| spans.cycles().unwrap();
        let (few, many) = (
            reported(&longer) - reported(&short),
            cycles(&longer) - cycles(&short),
        );
        assert!((few - 0.28 * many).abs() < 1e-9, "{few} of {many}");
        let (all, of) = (
            reported(&longest) - reported(&long),
            cycles(&longest) - cycles(&long),
        );
        assert!((all - of).abs() < 1e-9, "{all} of {of}");
        let mut other = spans(40);
        other.frontend.as_mut().unwrap().processor = "a file's".into();
        assert_eq!(other.between_reads(), None);
    }
}
