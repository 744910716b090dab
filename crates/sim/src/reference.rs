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
    /// On which machine it was measured.
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
mod tests {
    use super::*;

    const HEAD: &str = r#"
        source = "s"
        date = "2019-03-04"
        machine = "m"
        read = "table"
        sure = "high"
    "#;

    fn reference(figures: &str) -> Reference {
        Reference::parse("f.toml", &format!("{HEAD}{figures}")).unwrap()
    }

    #[test]
    fn figures_are_found_by_key_by_mean_and_by_threads() {
        let reference = reference(
            "threads = [1, 2, 4]\n[ns]\na = [10, 20, 40]\nb = [5.0, 5.0, 8.0]\n[ratio]\nc = 1.37\n\
             [[row]]\nfast = { rate = 3 }\nslow = { rate = 1 }\n\
             [[row]]\nfast = { rate = 5 }\nslow = { rate = 3 }\n",
        );
        let find = |expression, threads, below| reference.figure(expression, threads, below);
        assert_eq!(find("ratio.c", 8, 8), Ok(1.37));
        assert_eq!(find("ns.a", 2, 2), Ok(20.0));
        assert_eq!(find("ns.a / ns.b", 4, 4), Ok(5.0));
        assert_eq!(find("ns.a / ns.a", 4, 1), Ok(4.0));
        assert_eq!(find("row.fast.rate / row.slow.rate", 1, 1), Ok(2.0));
    }

    #[test]
    fn what_is_not_there_is_named_in_one_sentence() {
        let reference = reference("threads = [1, 2]\n[ns]\na = [1, 2]\nb = [1]\nc = [1, 0]\n");
        for (expression, threads, expected) in [
            ("ns.x", 1, "it has no figure `ns.x`"),
            ("x.a / ns.a", 1, "it has no figure `x.a`"),
            ("ns.a", 3, "`ns.a` has no figure for 3 threads"),
            ("ns.b", 1, "`ns.b` has 1 figures for 2 numbers of threads"),
            ("ns.c", 2, "`ns.c` holds a number that is not above 0"),
            ("ns", 1, "`ns` is of type table, and not a number"),
        ] {
            let error = reference
                .figure(expression, threads, threads)
                .expect_err(expression);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_source_or_with_a_bad_date_is_refused() {
        for (text, expected) in [
            (
                HEAD.replace("date = \"2019-03-04\"", ""),
                "missing field `date`",
            ),
            (
                HEAD.replace("2019-03-04", "March 2019"),
                "the date is `March 2019`",
            ),
            (HEAD.replace("source = \"s\"", "source ="), "f.toml: "),
        ] {
            let error = Reference::parse("f.toml", &text).expect_err(&text);
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}
