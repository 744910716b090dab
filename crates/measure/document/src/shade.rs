//! Decides how strongly a cell of a heat map is coloured: five steps either side.
//!
//! Blue is better and orange is worse, which readers with any of the common
//! colour deficiencies tell apart. Only a verdict colours a cell: one that is
//! unclear stays uncoloured however far its ratio is from 1, and the verdict
//! is always written in the cell as well.

use anstyle::{Ansi256Color, Color, Style};
use locklab_judge::Verdict;

/// The look of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    /// No verdict.
    Plain,
    /// Better, by step 1 (below 5 %) to 5 (double or more).
    Better(u8),
    /// Worse, by step 1 (below 5 %) to 5 (half or less).
    Worse(u8),
    /// Shown to be flat.
    Flat,
    /// The difference is not shown either way.
    Unclear,
    /// The cell is not to be read.
    Invalid,
}

impl Shade {
    /// Returns the shade of a verdict and of the ratio that goes with it.
    #[must_use]
    pub fn of(verdict: &Verdict, ratio: Option<f64>) -> Self {
        let size = ratio.map_or(0.0, |r| r.ln().abs());
        let step = match size {
            s if s < 1.05_f64.ln() => 1,
            s if s < 1.15_f64.ln() => 2,
            s if s < 1.4_f64.ln() => 3,
            s if s < 2.0_f64.ln() => 4,
            _ => 5,
        };
        match verdict {
            Verdict::Better => Self::Better(step),
            Verdict::Worse => Self::Worse(step),
            Verdict::Flat { .. } => Self::Flat,
            Verdict::Unclear { .. } => Self::Unclear,
            Verdict::Invalid(_) => Self::Invalid,
        }
    }

    /// Returns the style for a terminal of 256 colours. Both foreground and background are set,
    /// since a report cannot know the terminal's own.
    #[must_use]
    pub fn style(self) -> Style {
        const BLACK: u8 = 16;
        const WHITE: u8 = 231;
        let on = |ground: u8, text: u8| {
            Style::new()
                .bg_color(Some(Color::Ansi256(Ansi256Color(ground))))
                .fg_color(Some(Color::Ansi256(Ansi256Color(text))))
        };
        match self {
            Self::Better(1) => on(195, BLACK),
            Self::Better(2) => on(153, BLACK),
            Self::Better(3) => on(75, BLACK),
            Self::Better(4) => on(32, WHITE),
            Self::Better(_) => on(25, WHITE),
            Self::Worse(1) => on(230, BLACK),
            Self::Worse(2) => on(223, BLACK),
            Self::Worse(3) => on(215, BLACK),
            Self::Worse(4) => on(172, BLACK),
            Self::Worse(_) => on(130, WHITE),
            Self::Flat => on(252, BLACK),
            Self::Plain | Self::Unclear => Style::new(),
            Self::Invalid => Style::new().dimmed(),
        }
    }

    /// Class name in HTML: b1 to b5, w1 to w5, f, u, i, plain.
    #[must_use]
    pub fn class(self) -> String {
        match self {
            Self::Better(n) => format!("b{n}"),
            Self::Worse(n) => format!("w{n}"),
            Self::Flat => "f".into(),
            Self::Unclear => "u".into(),
            Self::Plain => "plain".into(),
            Self::Invalid => "i".into(),
        }
    }
}

/// Returns the verdict in one character, as tables print it.
#[must_use]
pub fn mark(verdict: &Verdict) -> char {
    match verdict {
        Verdict::Better => '+',
        Verdict::Worse => '-',
        Verdict::Flat { .. } => '=',
        Verdict::Unclear { .. } => '?',
        Verdict::Invalid(_) => '!',
    }
}
