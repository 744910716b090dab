//! Decides whether text has colours. It is the only place that asks what standard output
//! is.

/// Says whether a text may be coloured. Colour is never the only signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text only, as for a mail or a file.
    Plain,
    /// ANSI escape sequences with 256 colours.
    Ansi,
}

impl Colour {
    /// Returns the setting for standard output: colours on a terminal, unless `NO_COLOR`
    /// is set or the terminal is dumb.
    #[must_use]
    pub fn for_stdout() -> Self {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Self::Plain,
            _ => Self::Ansi,
        }
    }
}
