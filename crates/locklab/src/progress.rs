//! A bar with the time left, on a terminal only.

use crate::matrix::Point;
use crate::matrix_run::Listener;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar of a matrix. It is drawn between runs, by the thread that calls,
/// so that it never takes a CPU from a run.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Of so many runs; invisible if `quiet` or standard error is no
    /// terminal.
    #[must_use]
    pub(crate) fn new(runs: u64, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left  {msg}")
        {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Listener for Bar {
    fn progress(&mut self, done: u64, of: u64, now: &Point) {
        self.0.set_length(of);
        self.0.set_message(format!(
            "{} x {} x {}",
            now.threads, now.critical, now.non_critical
        ));
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
