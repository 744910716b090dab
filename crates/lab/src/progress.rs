//! How far a long piece of work is: a bar with the time left, on a terminal
//! only.
//!
//! It is drawn by the thread that calls, between runs, so that it never takes
//! a CPU from one. The only progress bar of Locklab.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error; it vanishes when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// Of so many things that are called `noun`. Invisible if `quiet`, or if
    /// standard error is no terminal.
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

    /// One that shows nothing, for tests.
    #[must_use]
    pub fn hidden() -> Self {
        Self::new(0, "", true)
    }

    /// So many of so many are done; `now` is what runs.
    pub fn set(&self, done: u64, of: u64, now: &str) {
        self.bar.set_length(of);
        self.bar.set_message(now.to_owned());
        self.bar.set_position(done);
    }

    /// So many more are done.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Prints a sentence above the bar, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
