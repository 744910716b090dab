//! How far a comparison is: a bar with the time left, drawn between runs, on
//! a terminal only.

use super::session::Listener;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with the time left.
pub(super) struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    /// Hidden if `quiet`.
    pub(super) fn new(quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = "{wide_bar} {pos}/{len} runs, {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, quiet }
    }
}

impl Listener for Bar {
    fn progress(&mut self, done: u64, of: u64, workload: &str) {
        self.bar.set_length(of);
        self.bar.set_message(workload.to_owned());
        self.bar.set_position(done);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
