//! A document for programs: its data, and no words but those of its builder.

use crate::VERSION;
use crate::document::Document;
use serde_json::{Value, json};

/// Version of the documents for programs. Fields may be added within one;
/// none is removed or changes its meaning.
const SCHEMA: u64 = 1;

/// The whole document, one JSON object.
#[must_use]
pub fn json(document: &Document) -> Value {
    let mut value = json!({ "schema": SCHEMA, "tool": VERSION });
    if let Value::Object(fields) = &mut value {
        fields.extend(document.data.clone());
    }
    value
}
