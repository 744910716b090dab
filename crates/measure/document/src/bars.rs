//! A table with bars as text: one line for each row, whose bar takes the columns
//! that its figures leave.

use crate::page::COLUMNS;

/// A table with bars, the longest of which is 1.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Names the rows.
    pub title: String,
    /// The title and the width of each column of figures.
    pub columns: Vec<(String, usize)>,
    /// The rows from the top.
    pub rows: Vec<BarRow>,
}

/// One row of a table with bars.
#[derive(Clone, Debug)]
pub struct BarRow {
    /// Its name; a long one is cut.
    pub name: String,
    /// One figure for each column.
    pub cells: Vec<String>,
    /// The length of its bar, from 0 to 1.
    pub share: f64,
}

/// The longest name that is not cut.
const NAME: usize = 18;

impl Bars {
    /// Returns the table as lines of at most [`COLUMNS`] characters.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let wide = names.max().unwrap_or(0).clamp(4, NAME);
        let line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
            let name: String = name.chars().take(NAME).collect();
            let mut line = format!("{name:<wide$} ");
            for (cell, (_, width)) in cells.zip(&self.columns) {
                line.push_str(&format!("{cell:>width$} "));
            }
            line
        };
        let mut titles = self.columns.iter().map(|(title, _)| title.as_str());
        let mut lines = vec![line(&self.title, &mut titles).trim_end().to_owned()];
        for row in &self.rows {
            let mut text = line(&row.name, &mut row.cells.iter().map(String::as_str));
            let room = COLUMNS.saturating_sub(text.chars().count());
            let share = if row.share.is_finite() {
                row.share
            } else {
                0.0
            };
            let bar = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
            text.push_str(&"#".repeat(bar));
            lines.push(text.trim_end().to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_use_what_the_figures_leave() {
        let row = |name: &str, share: f64| BarRow {
            name: name.into(),
            cells: vec![format!("{share:.2}")],
            share,
        };
        let bars = Bars {
            title: "lock".into(),
            columns: vec![("share".into(), 5)],
            rows: vec![
                row("a-name-that-is-far-too-long", 1.0),
                row("b", 0.5),
                row("none", f64::NAN),
            ],
        };
        let lines = bars.lines();
        assert_eq!(lines[0], "lock               share");
        assert_eq!(lines[1].chars().count(), COLUMNS);
        assert_eq!(lines[1].matches('#').count(), 47);
        assert_eq!(lines[2].matches('#').count(), 24);
        assert_eq!(lines[3], "none                 NaN");
    }
}
