//! Counts of a boot between its markers, by mode, as the plugin reports them: instructions,
//! misses, and the cycles of a modelled front end. It must never count anything itself.

use locklab_frontend::{Account, Cause};
use serde::{Deserialize, Serialize};

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

    /// Returns cycles of dispatch, cycles lost to each cause and all, each divided by `units`.
    pub(crate) fn rows(&self, units: u64) -> Vec<f64> {
        let dispatch = self.user.dispatch.value + self.kernel.dispatch.value;
        let lost = Cause::ALL.map(|(cause, _)| self.lost(cause));
        std::iter::once(dispatch)
            .chain(lost)
            .chain([self.cycles()])
            .map(|cycles| cycles / units as f64)
            .collect()
    }
}

impl Spans {
    /// Returns the cycles of a span, if a front end is modelled.
    #[must_use]
    pub fn cycles(&self) -> Option<f64> {
        Some(self.frontend.as_ref()?.cycles() / self.count as f64)
    }
}
