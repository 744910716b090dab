//! Many lines over the same places, such as throughput over threads, a line a
//! lock: what a chart of them needs, and which of them stand out.
//!
//! It draws nothing.

/// The most lines that have a colour and a mark of their own.
pub const COLOURED: usize = 7;

/// Many lines over the same names.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Says what is shown.
    pub title: String,
    /// Says what the names are.
    pub x_title: String,
    /// Places on the x axis.
    pub names: Vec<String>,
    /// The lines, the most important first.
    pub lines: Vec<Line>,
    /// Is true if the y axis is logarithmic; otherwise it starts at zero.
    pub logarithmic: bool,
}

/// One of many lines.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, at its right end.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<LinePoint>,
    /// Its number among those that have a colour and a mark of their own;
    /// `None` for one in the background.
    pub colour: Option<usize>,
    /// Is true if it is drawn thicker.
    pub bold: bool,
}

/// A point of a line.
#[derive(Clone, Debug)]
pub struct LinePoint {
    /// Selects one of the named places on the x axis.
    pub place: usize,
    /// Its height, in the unit of the title.
    pub value: f64,
    /// The limits of that, where there are any.
    pub limits: Option<(f64, f64)>,
    /// Text shown when a pointer is over it.
    pub detail: String,
}

impl Lines {
    /// Gives the lines that matter most a colour of their own: those of the
    /// lowest number first, then in their order; the others stay in the
    /// background. Few lines all matter.
    #[must_use]
    pub fn coloured(mut self, importance: impl Fn(&Line) -> Option<usize>) -> Self {
        let mut order: Vec<(usize, usize)> = if self.lines.len() <= COLOURED {
            (0..self.lines.len()).map(|at| (0, at)).collect()
        } else {
            let numbered = self.lines.iter().enumerate();
            numbered
                .filter_map(|(at, line)| Some((importance(line)?, at)))
                .collect()
        };
        order.sort_unstable();
        for (colour, (_, at)) in order.into_iter().take(COLOURED).enumerate() {
            self.lines[at].colour = Some(colour);
        }
        self
    }

    /// Returns whether there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }
}
