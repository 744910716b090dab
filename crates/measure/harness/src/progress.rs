//! The progress of long work: a bar with the time left on a terminal, and elsewhere, as in
//! the log of a job, a line now and then.
//!
//! It is drawn by the thread that calls, between runs, so that it never takes
//! a CPU from one. It is the only progress bar of Locklab.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locklab_host::message;
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A bar on standard error, which is removed when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    /// What the items are called, and when a line of them was printed, where there is no bar.
    lines: Option<(String, Mutex<Instant>)>,
}

/// The time between two lines where there is no bar.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

impl Progress {
    /// Returns a bar of `length` items that are called `noun`. Invisible if `quiet`.
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
        let lines = !quiet && !noun.is_empty() && !std::io::stderr().is_terminal();
        let lines = lines.then(|| (noun.to_owned(), Mutex::new(Instant::now())));
        Self { bar, quiet, lines }
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
        self.line();
    }

    /// Advances the bar by `by` items.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
        self.line();
    }

    /// Prints a line if there is no bar, and the last line is long ago.
    fn line(&self) {
        let Some((noun, printed)) = &self.lines else {
            return;
        };
        if let Ok(mut printed) = printed.try_lock()
            && printed.elapsed() >= BETWEEN_LINES
        {
            *printed = Instant::now();
            let (done, of) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let now = self.bar.message();
            message::print(format!("{done} of {of} {noun}: {now}").trim_end_matches(": "));
        }
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
