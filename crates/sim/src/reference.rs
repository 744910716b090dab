//! A file of published figures: where they are from, and how to find one.
//!
//! Only reads what was published; it knows no lock and no machine of ours.

use serde::Deserialize;
use toml::{Table, Value};

/// A file of published figures. Beside the keys here it holds the figures
/// themselves, in tables whose keys an experiment names.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// Who published it, and where.
    pub source: String,
    /// When, as YYYY-MM-DD.
    pub date: String,
    /// The machine on which it was measured.
    pub machine: String,
    /// How the figures were read: from a table, a text, a data file, a graph.
    pub read: String,
    /// How sure they are, and why.
    pub sure: String,
    /// The numbers of threads that every array of figures goes over.
    #[serde(default)]
    pub threads: Vec<usize>,
    /// The figures.
    #[serde(flatten)]
    pub(crate) figures: Table,
}

impl Reference {
    /// Reads one; `file` is its name in errors.
    ///
    /// # Errors
    /// One sentence: it is not TOML, or says not where it is from.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let reference: Self = toml::from_str(text).map_err(|error| one_sentence(file, &error))?;
        let date = reference.date.split('-').collect::<Vec<_>>();
        let digits = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        if date.iter().map(|part| part.len()).ne([4, 2, 2]) || !date.iter().all(digits) {
            return Err(format!(
                "{file}: the date is `{}`; write it as 2019-03-04",
                reference.date
            ));
        }
        Ok(reference)
    }

    /// The figure that an expression names: `key.key`, or `key.key / key.key`.
    /// Over the rows of an array of tables it is their mean; of an array of
    /// numbers it is that at the position of `threads` in
    /// [`Reference::threads`], and of the array below a division that at the
    /// position of `below`.
    ///
    /// # Errors
    /// One sentence without the name of the file: what is not there.
    pub fn figure(&self, expression: &str, threads: usize, below: usize) -> Result<f64, String> {
        match expression.split_once(" / ") {
            Some((over, under)) => Ok(self.one(over, threads)? / self.one(under, below)?),
            None => self.one(expression, threads),
        }
    }

    fn one(&self, path: &str, threads: usize) -> Result<f64, String> {
        let missing = || format!("it has no figure `{path}`");
        let mut keys = path.split('.');
        let first = self.figures.get(keys.next().unwrap_or_default());
        let walk = |start: &Value| -> Result<f64, String> {
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

    fn number(&self, path: &str, value: &Value, threads: usize) -> Result<f64, String> {
        let value = match value {
            Value::Array(values) if values.len() != self.threads.len() => {
                return Err(format!(
                    "`{path}` has {} figures for {} numbers of threads",
                    values.len(),
                    self.threads.len()
                ));
            }
            Value::Array(values) => {
                let at = self.threads.iter().position(|&n| n == threads);
                let value = at.and_then(|at| values.get(at));
                value.ok_or_else(|| format!("`{path}` has no figure for {threads} threads"))?
            }
            value => value,
        };
        match value {
            Value::Float(value) if *value > 0.0 => Ok(*value),
            Value::Integer(value) if *value > 0 => Ok(*value as f64),
            Value::Integer(_) | Value::Float(_) => {
                Err(format!("`{path}` holds a number that is not above 0"))
            }
            value => Err(format!(
                "`{path}` is of type {}, and not a number",
                value.type_str()
            )),
        }
    }
}

/// A TOML error in one line, with where it is.
pub(crate) fn one_sentence(file: &str, error: &toml::de::Error) -> String {
    let what = error.message().replace('\n', " ");
    format!("{file}: {what}")
}

#[cfg(test)]
#[path = "../tests/unit/reference.rs"]
mod tests;
