//! The error rate of every decision, which settings cannot change.

/// The error rate behind every verdict: 5 %.
///
/// A constant and not a setting, because the intervals that are printed (95 %
/// and 90 %) and the verdicts that are reached must refer to the same one.
pub const ALPHA: f64 = 0.05;
