// SPDX-License-Identifier: GPL-2.0-or-later
//! Holds what a plugin has counted, by the mode of the CPU. Exists so that samples
//! and reports can add and subtract counts without the vCPUs that made them; must
//! never know how anything is counted.

use std::ops::{Add, Sub};

use locklab_frontend::Events;
use locklab_frontend::icache::Counts;

/// User or kernel code: which of a vCPU's tallies counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    User = 0,
    Kernel = 1,
}

/// Describes what was counted in one mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    /// The events of the front end; all zero without one.
    pub(crate) events: Events,
}

impl Add for Seen {
    type Output = Seen;

    fn add(self, other: Seen) -> Seen {
        Seen {
            counts: self.counts + other.counts,
            events: self.events + other.events,
        }
    }
}

impl Sub for Seen {
    type Output = Seen;

    fn sub(self, other: Seen) -> Seen {
        Seen {
            counts: self.counts - other.counts,
            events: self.events - other.events,
        }
    }
}

/// Names what was counted in both modes, indexed by [`Mode`].
pub(crate) type ByMode = [Seen; 2];
