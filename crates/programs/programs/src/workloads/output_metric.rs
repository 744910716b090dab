//! Values in the output of a program: by regular expression or JSON path.

use crate::fault::Fault;
use crate::output::excerpt;
use locklab_harness::experiment::{Metric, Source};
use locklab_host::error::Error;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric and how to find it in the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputMetric {
    /// The name of the metric.
    pub name: String,
    /// The unit of the metric.
    #[serde(default)]
    pub unit: String,
    /// A regular expression whose first group is the number; several matches
    /// are averaged.
    #[serde(default)]
    pub pattern: Option<String>,
    /// A path in JSON output: `/a/b/0` or `a.b[0]`.
    #[serde(default)]
    pub json: Option<String>,
    /// The direction in which it improves.
    pub better: Better,
}

/// The direction in which a metric improves, as written by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better, as of throughput.
    Higher,
    /// Less is better, as of latency.
    Lower,
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub enum Extractor {
    /// First group of each match.
    Regex(Regex),
    /// JSON pointer.
    Json(String),
}

impl OutputMetric {
    /// Reads `NAME[UNIT]:higher|lower=REGEX`, as on the command line.
    ///
    /// # Errors
    /// If the text has another form; the message shows the right one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let form = || {
            Error::Usage(format!(
                "'{text}' is no metric; write name[unit]:higher=PATTERN, as \
                 'throughput[ops/s]:higher=([0-9.]+) ops/sec', or json:/path for PATTERN"
            ))
        };
        let (head, place) = text.split_once('=').ok_or_else(form)?;
        let (name, better) = head.rsplit_once(':').ok_or_else(form)?;
        let better = match better.trim() {
            "higher" => Better::Higher,
            "lower" => Better::Lower,
            _ => return Err(form()),
        };
        let (name, unit) = match name.split_once('[') {
            Some((name, unit)) => (name, unit.strip_suffix(']').ok_or_else(form)?),
            None => (name, ""),
        };
        let (pattern, json) = match place.strip_prefix("json:") {
            Some(path) => (None, Some(path.into())),
            None => (Some(place.into()), None),
        };
        let pattern = Self {
            name: name.trim().into(),
            unit: unit.into(),
            pattern,
            json,
            better,
        };
        pattern.extractor()?;
        Ok(pattern)
    }

    /// Describes the figure that is read from the output.
    #[must_use]
    pub fn metric(&self) -> Metric {
        match self.better {
            Better::Higher => Metric::higher(&self.name, &self.unit, Source::Output),
            Better::Lower => Metric::lower(&self.name, &self.unit, Source::Output),
        }
    }

    /// Parses the pattern or path.
    ///
    /// # Errors
    /// If neither or both are given, the expression is invalid, or it has no
    /// group for the number.
    pub fn extractor(&self) -> Result<Extractor, Error> {
        match (&self.pattern, &self.json) {
            (Some(pattern), None) => {
                let regex = Regex::new(pattern).map_err(|e| {
                    let reason = e.to_string();
                    Error::Usage(format!(
                        "the pattern of metric '{}' is no regular expression ({}): {pattern}",
                        self.name,
                        reason.lines().last().unwrap_or_default()
                    ))
                })?;
                if regex.captures_len() < 2 {
                    return Err(Error::Usage(format!(
                        "the pattern of metric '{}' has no group for the number; put it in \
                         parentheses: {pattern}",
                        self.name
                    )));
                }
                Ok(Extractor::Regex(regex))
            }
            (None, Some(path)) => Ok(Extractor::Json(pointer(path))),
            _ => Err(Error::Usage(format!(
                "metric '{}' needs either a pattern or a json path",
                self.name
            ))),
        }
    }
}

/// Returns `a.b[0]` and `$.a.b[0]` as `/a/b/0`.
fn pointer(path: &str) -> String {
    if path.is_empty() || path.starts_with('/') {
        return path.into();
    }
    let path = path.strip_prefix('$').unwrap_or(path);
    let dotted = path.replace('[', ".").replace(']', "");
    dotted
        .split('.')
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
        .collect()
}

impl Extractor {
    /// Returns the number in an output.
    #[must_use]
    pub fn read(&self, output: &str) -> Option<f64> {
        match self {
            Self::Regex(regex) => {
                let numbers: Vec<f64> = regex
                    .captures_iter(output)
                    .filter_map(|c| c.get(1)?.as_str().replace(',', "").parse().ok())
                    .collect();
                let count = numbers.len() as f64;
                (count > 0.0).then(|| numbers.iter().sum::<f64>() / count)
            }
            Self::Json(pointer) => {
                let json: serde_json::Value = serde_json::from_str(output).ok()?;
                let value = json.pointer(pointer)?;
                value
                    .as_f64()
                    .or_else(|| value.as_str()?.trim().parse().ok())
            }
        }
    }
}

/// Returns the number that the output of a run must contain.
pub(super) fn read(name: &str, extractor: &Extractor, output: &str) -> Result<f64, Fault> {
    match extractor.read(output) {
        Some(number) if number.is_finite() => Ok(number),
        _ => Err(Fault::Failed(format!(
            "its output has no '{name}' where it was looked for; it says: {}",
            excerpt(output)
        ))),
    }
}

/// Returns the number found by one of Locklab's own expressions.
pub(super) fn find(name: &str, pattern: &str, output: &str) -> Result<f64, Fault> {
    let extractor = Regex::new(pattern)
        .map(Extractor::Regex)
        .map_err(|e| Fault::Unrunnable(format!("bad pattern of {name}: {e}")))?;
    read(name, &extractor, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_pattern_and_by_path() {
        let throughput =
            OutputMetric::parse("throughput[ops/s]:higher=([0-9,.]+) ops/sec").unwrap();
        assert_eq!(
            throughput.metric(),
            Metric::higher("throughput", "ops/s", Source::Output)
        );
        let extractor = throughput.extractor().unwrap();
        assert_eq!(
            extractor.read("a: 1,200.5 ops/sec\nb: 800 ops/sec"),
            Some(1000.25)
        );
        assert_eq!(extractor.read("none"), None);
        let json = r#"{"a": {"b": [1, {"c": "2.5"}]}}"#;
        for path in ["/a/b/1/c", "a.b[1].c", "$.a.b[1].c"] {
            let pattern = OutputMetric::parse(&format!("x:lower=json:{path}")).unwrap();
            assert_eq!(pattern.extractor().unwrap().read(json), Some(2.5), "{path}");
        }
    }

    #[test]
    fn what_is_no_metric_is_refused_in_a_sentence() {
        for (text, part) in [
            ("throughput", "is no metric"),
            ("x:faster=(.)", "is no metric"),
            ("x[s:lower=(.)", "is no metric"),
            ("x:lower=(", "no regular expression"),
            ("x:lower=[0-9]+", "no group for the number"),
        ] {
            let error = OutputMetric::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn an_output_without_the_figure_is_shown() {
        let Err(Fault::Failed(why)) = find("x", "x=([0-9]+)", "usage: prog\n  y=3") else {
            panic!()
        };
        assert!(why.ends_with("it says: usage: prog y=3"), "{why}");
    }
}
