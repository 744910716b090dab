//! Reports: what was found, for people and for programs.
//!
//! A report knows nothing of how a figure was made; it says where the figure
//! comes from, and claims no more than the verdicts. Text is 72 columns of
//! ASCII that can be pasted into a mail; HTML is one file without scripts or
//! network; JSON has a `schema` number. Nothing here measures or judges.

mod chart;
pub mod compare;
pub mod comparison;
mod html;
pub mod matrix;
pub(crate) mod number;
pub(crate) mod page;
mod region;
pub(crate) mod shade;

pub(crate) use page::Page;

pub(crate) use number::grouped;

/// What only the caller knows about a report.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// When it was measured, as it is to be printed.
    pub date: String,
    /// The command line that repeats it.
    pub command: String,
}

/// The version of this tool, as reports print it.
pub const VERSION: &str = concat!("locklab ", env!("CARGO_PKG_VERSION"));

/// Columns of a text report.
pub const COLUMNS: usize = 72;

/// Whether a text report may be coloured. Colour is never the only signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text only, as for a mail or a file.
    Plain,
    /// With ANSI colours of 256.
    Ansi,
}

impl Colour {
    /// What standard output wants: colours on a terminal, unless `NO_COLOR`
    /// is set or the terminal is dumb.
    #[must_use]
    pub fn for_stdout() -> Self {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Self::Plain,
            _ => Self::Ansi,
        }
    }
}
