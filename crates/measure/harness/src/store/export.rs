//! Samples of a store as text that other programs read: CSV and JSON Lines.
//!
//! Every figure is written as it was stored; nothing is rounded, averaged or
//! left out.

use super::reading::StoredSample;
use crate::experiment::Placement;
use locklab_host::error::Error;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Returns one JSON object a sample, one line each.
#[must_use]
pub fn json_lines(samples: &[StoredSample]) -> String {
    samples
        .iter()
        .map(|stored| {
            let mut line: Map<String, Value> = flat(stored).into_iter().collect();
            line.insert("detail".into(), stored.sample.detail.clone());
            format!("{}\n", Value::Object(line))
        })
        .collect()
}

/// Returns the fields of a sample: its cell's axes and its figures, in the order of
/// columns.
fn flat(stored: &StoredSample) -> Vec<(String, Value)> {
    let sample = &stored.sample;
    let placement = sample.placement.as_ref();
    let invalid = sample.invalid.as_ref();
    let mut fields = vec![("experiment".to_owned(), json!(stored.experiment))];
    let axes = stored.cell.0.iter();
    fields.extend(axes.map(|(axis, at)| (axis.clone(), json!(at))));
    fields.extend(
        [
            ("pair", json!(stored.pair)),
            ("side", json!(stored.side)),
            ("subject", json!(stored.subject)),
            ("order", json!(stored.order)),
            ("state", json!(stored.state)),
            ("started_s", json!(sample.started)),
            ("round_trip_ns", json!(placement.map(Placement::round_trip))),
            ("invalid", json!(invalid.map(|i| i.why()))),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let values = sample.values.iter();
    fields.extend(values.map(|(name, value)| (name.clone(), json!(value))));
    fields
}

/// Returns one row a sample, below a row of names. A column exists for each field that
/// any sample has, in the order in which they first occur; a sample without it
/// has an empty field.
///
/// # Errors
/// A record could not be written to memory, which no sample is known to cause.
pub fn csv(samples: &[StoredSample]) -> Result<String, Error> {
    write_csv(samples)
        .map_err(|error| Error::Failed(format!("cannot write the samples as CSV: {error}")))
}

fn write_csv(samples: &[StoredSample]) -> Result<String, Box<dyn std::error::Error>> {
    let rows: Vec<Vec<(String, Value)>> = samples.iter().map(flat).collect();
    let mut columns: Vec<&String> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, _) in rows.iter().flatten() {
        if known.insert(name) {
            columns.push(name);
        }
    }
    let mut csv = csv::Writer::from_writer(Vec::new());
    if !columns.is_empty() {
        csv.write_record(&columns)?;
    }
    for row in &rows {
        let at = |column: &String| row.iter().find(|(name, _)| name == column);
        csv.write_record(columns.iter().map(|column| match at(column) {
            None | Some((_, Value::Null)) => String::new(),
            Some((_, Value::String(text))) => text.clone(),
            Some((_, value)) => value.to_string(),
        }))?;
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}
