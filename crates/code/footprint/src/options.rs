//! Says what a comparison reads, besides sections and symbols.

use crate::footprint::Pair;
use crate::hot::{Place, SHARE};

/// Execution counts of both sides, see [`crate::parse_counts`].
#[derive(Clone, Debug)]
pub struct HotCounts {
    /// Counts of both sides.
    pub counts: Pair<Vec<(Place, u64)>>,
    /// The share of executed instructions to hold, 0 to 1.
    pub share: f64,
}

impl Default for HotCounts {
    fn default() -> Self {
        Self {
            counts: Pair::default(),
            share: SHARE,
        }
    }
}

/// Selects what is read besides sections and symbols.
#[derive(Clone)]
pub struct Options<'a> {
    /// Count inlined copies from debug information, where there is any.
    pub inlined: bool,
    /// List the call sites at which this function was inlined. A path's last
    /// part is enough: `lock` finds `spin::mutex::lock`.
    pub call_sites_of: Option<String>,
    /// Compute the hot text from these counts.
    pub hot: Option<HotCounts>,
    /// Called with the bytes of all files read so far, and their total.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            inlined: true,
            call_sites_of: None,
            hot: None,
            progress: None,
        }
    }
}
