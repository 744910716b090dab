//! The instrument of real hardware: locks under threads or processes of this
//! machine.
//!
//! It knows nothing of statistics, stores nothing and prints nothing. What it
//! gives is one [`crate::matrix::Run`] at a time.

mod arena;
pub mod bench;
pub mod peers;
mod processes;
pub mod round_trip;
pub mod run;
pub mod subject;
mod threads;
mod timeline;
pub mod work;
mod worker;

/// A run in which nothing happened, for tests to fill in.
#[cfg(test)]
pub(crate) fn test_run() -> crate::matrix::Run {
    crate::matrix::Run {
        started: None,
        ops_per_s: 1e6,
        handoffs_per_s: 0.0,
        streak_mean: 1.0,
        streak_max: 1,
        per_thread: vec![1],
        jain: 1.0,
        min_over_max: 1.0,
        jain_1ms: None,
        min_over_max_1ms: None,
        latency: None,
        round_trip: None,
        cpu_share: None,
        invalid: None,
    }
}
