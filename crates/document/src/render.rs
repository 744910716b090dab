//! The forms of a document, one file each. A renderer lays out and adds
//! nothing of its own; no input makes it panic.

mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod text;

pub use html::{html, svg};
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::{table, text};

/// Whether a text may be coloured. Colour is never the only signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text only, as for a mail or a file.
    Plain,
    /// ANSI escape sequences with 256 colours.
    Ansi,
}

impl Colour {
    /// The setting for standard output: colours on a terminal, unless `NO_COLOR`
    /// is set or the terminal is dumb.
    #[must_use]
    pub fn for_stdout() -> Self {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Self::Plain,
            _ => Self::Ansi,
        }
    }
}
