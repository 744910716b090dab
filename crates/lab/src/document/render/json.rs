//! A document for programs: its data, and no words but those of its builder.
//! [`crate::report::results`] has the shapes.

use crate::document::Document;
use serde_json::Value;

/// The whole document, one JSON object.
#[must_use]
pub fn json(document: &Document) -> Value {
    Value::Object(document.data.clone())
}
