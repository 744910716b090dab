//! Samples of benchmarks that other programs took, judged.
//!
//! ```text
//! files -> Format -> SampleFile of each side -> Compared -> verdicts -> Document
//! ```
//!
//! A reader says what a file holds and what is wrong with it; matching decides
//! which runs belong together, and whether they are pairs; the judge decides.
//! Nothing here opens a file, and nothing is measured: what a file does not say
//! (when, on which machine, in which order) must never be assumed.

mod benchmark;
mod formats;
mod judged;
mod matching;
mod report;
mod results;
mod rows;
mod salvage;
mod units;

pub use benchmark::{Benchmark, Run, SampleFile, Unreadable};
pub use formats::{Format, read};
pub use judged::{Apart, JudgedRow, JudgedSamples, Judging, fails, judge};
pub use matching::{Compared, Matching, Unmatched, compare};
pub use report::document;
pub use results::schema;
