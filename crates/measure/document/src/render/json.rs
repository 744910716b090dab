//! A document for programs: its data, without the words.
//! Their shapes are those of the builder.

use crate::Document;
use serde_json::Value;

/// Returns the whole document, one JSON object.
#[must_use]
pub fn json(document: &Document) -> Value {
    Value::Object(document.data.clone())
}
