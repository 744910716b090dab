//! A table of any shape: columns in groups, a row of texts for each line. It has
//! no meaning of its own; a renderer decides how wide it is.

/// A table of figures.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Columns that belong together. Where a table is too wide, the first
    /// group is repeated.
    pub groups: Vec<ColumnGroup>,
    /// One text for each column.
    pub rows: Vec<Vec<String>>,
}

/// Columns with a title in common.
#[derive(Clone, Debug, Default)]
pub struct ColumnGroup {
    /// May be empty.
    pub title: String,
    /// Its columns, at least one.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// May be empty.
    pub title: String,
    /// Least width in characters.
    pub width: usize,
    /// Is true if it has words, which begin at its left.
    pub left: bool,
}

impl Column {
    /// Makes a column of figures, of this title and least width.
    #[must_use]
    pub fn new(title: impl Into<String>, width: usize) -> Self {
        Self {
            title: title.into(),
            width,
            left: false,
        }
    }

    /// Makes a column of words.
    #[must_use]
    pub fn words(title: impl Into<String>, width: usize) -> Self {
        Self {
            left: true,
            ..Self::new(title, width)
        }
    }
}

impl Table {
    /// Makes a table of one group of columns.
    #[must_use]
    pub fn new(columns: Vec<Column>, rows: Vec<Vec<String>>) -> Self {
        Self {
            groups: vec![ColumnGroup::new("", columns)],
            rows,
        }
    }
}

impl ColumnGroup {
    /// Returns a table without rows: columns under a title.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            title: title.into(),
            columns,
        }
    }
}
