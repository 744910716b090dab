//! Published figures, of an experiment's file or of their own: their source, and how to find a figure.
//!
//! It only reads published figures; it knows no lock and no modelled machine.

use locklab_host::error::Error;
use serde::Deserialize;
use toml::{Table, Value};

/// Published figures. Besides the keys here the table or file holds the figures
/// themselves, in tables whose keys an experiment names.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// The author and the place of publication.
    pub source: String,
    /// The date, as YYYY-MM-DD.
    pub date: String,
    /// The machine on which it was measured.
    pub machine: String,
    /// Says how the figures were read: from a table, a text, a data file, a graph.
    pub read: String,
    /// Says how certain they are, and why.
    pub sure: String,
    /// The numbers of threads to which every array of figures refers.
    #[serde(default)]
    pub threads: Vec<usize>,
    /// The tables of published figures, by the experiment's own names.
    #[serde(flatten)]
    pub(crate) figures: Table,
}

impl Reference {
    /// Parses a reference file; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not TOML, a key such as the source is missing, or the date has
    /// another form. The message names the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let reference: Self = toml::from_str(text).map_err(|error| not_toml(file, text, &error))?;
        let checked = reference.check();
        checked.map_err(|error| error.reworded(|what| format!("{file}: {what}")))?;
        Ok(reference)
    }

    /// Checks the date. The message does not have the name of the file.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let date = self.date.split('-').collect::<Vec<_>>();
        let digits = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        if date.iter().map(|part| part.len()).ne([4, 2, 2]) || !date.iter().all(digits) {
            let date = &self.date;
            return Err(Error::Usage(format!(
                "the date is `{date}`; write it as 2019-03-04"
            )));
        }
        Ok(())
    }

    /// Returns the figure that an expression names: `key.key`, or `key.key / key.key`.
    /// For the rows of an array of tables it is their mean; for an array of
    /// numbers it is the one at the position of `threads` in
    /// [`Reference::threads`], and for the array below a division the one at
    /// the position of `below`.
    ///
    /// # Errors
    /// If there is no such figure, or it is not a number above 0. The message
    /// does not have the name of the file.
    pub fn figure(&self, expression: &str, threads: usize, below: usize) -> Result<f64, Error> {
        match expression.split_once(" / ") {
            Some((over, under)) => Ok(self.one(over, threads)? / self.one(under, below)?),
            None => self.one(expression, threads),
        }
    }

    fn one(&self, path: &str, threads: usize) -> Result<f64, Error> {
        let missing = || Error::Usage(format!("it has no figure `{path}`"));
        let mut keys = path.split('.');
        let first = self.figures.get(keys.next().unwrap_or_default());
        let walk = |start: &Value| -> Result<f64, Error> {
            let end = keys.clone().try_fold(start, |value, key| value.get(key));
            self.number(path, end.ok_or_else(missing)?, threads)
        };
        match first.ok_or_else(missing)? {
            Value::Array(rows) if rows.iter().all(Value::is_table) && !rows.is_empty() => {
                let values = rows.iter().map(walk).collect::<Result<Vec<f64>, _>>()?;
                Ok(values.iter().sum::<f64>() / values.len() as f64)
            }
            value => walk(value),
        }
    }

    fn number(&self, path: &str, value: &Value, threads: usize) -> Result<f64, Error> {
        let value = match value {
            Value::Array(values) if values.len() != self.threads.len() => {
                return Err(Error::Usage(format!(
                    "`{path}` has {} figures for {} numbers of threads",
                    values.len(),
                    self.threads.len()
                )));
            }
            Value::Array(values) => {
                let at = self.threads.iter().position(|&n| n == threads);
                let value = at.and_then(|at| values.get(at));
                value.ok_or_else(|| {
                    Error::Usage(format!("`{path}` has no figure for {threads} threads"))
                })?
            }
            value => value,
        };
        match value {
            Value::Float(value) if *value > 0.0 => Ok(*value),
            Value::Integer(value) if *value > 0 => Ok(*value as f64),
            Value::Integer(_) | Value::Float(_) => Err(Error::Usage(format!(
                "`{path}` holds a number that is not above 0"
            ))),
            value => Err(Error::Usage(format!(
                "`{path}` is of type {}, and not a number",
                value.type_str()
            ))),
        }
    }
}

/// Holds what a parser calls the types of a file, and what its writer calls them.
const TYPES: [(&str, &str); 7] = [
    ("expected f64", "expected a number"),
    ("expected i64", "expected a whole number that is not huge"),
    (" as i128", ""),
    ("expected a sequence", "expected a list"),
    ("invalid type: sequence", "invalid type: a list"),
    ("expected a map", "expected a table"),
    ("invalid type: map", "invalid type: a table"),
];

/// Returns a TOML error in one line, with its position.
pub(crate) fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> Error {
    let mut what = error.message().replace('\n', " ");
    for (parser, writer) in TYPES {
        what = what.replace(parser, writer);
    }
    if what.starts_with("invalid unquoted key") {
        what += "; a name with a colon is written in quotes";
    }
    Error::Usage(match error.span() {
        Some(span) => format!("{file}:{}: {what}", line_at(text, span.start)),
        None => format!("{file}: {what}"),
    })
}

/// Returns the line of a position in a text, from 1.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    text[..at.min(text.len())].matches('\n').count() + 1
}

#[cfg(test)]
#[path = "../tests/unit/reference.rs"]
mod tests;
