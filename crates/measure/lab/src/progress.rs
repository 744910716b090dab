//! The progress of long work: a bar with the time left, on a terminal
//! only.
//!
//! It is drawn by the thread that calls, between runs, so that it never takes
//! a CPU from one. It is the only progress bar of Locklab.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_host::message;

/// A bar on standard error, which is removed when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// Returns a bar of `length` items that are called `noun`. Invisible if `quiet`, or
    /// if standard error is not a terminal.
    #[must_use]
    pub fn new(length: u64, noun: &str, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let template = format!("{{wide_bar}} {{pos}}/{{len}} {noun}, {{eta}} left  {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Self { bar, quiet }
    }

    /// Returns a bar that shows nothing, for tests.
    #[must_use]
    pub fn hidden() -> Self {
        Self::new(0, "", true)
    }

    /// Shows that `done` of `of` items are done; `now` names what runs.
    pub fn set(&self, done: u64, of: u64, now: &str) {
        self.bar.set_length(of);
        self.bar.set_message(now.to_owned());
        self.bar.set_position(done);
    }

    /// Advances the bar by `by` items.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Prints a sentence above the bar, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| message::print(text));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
