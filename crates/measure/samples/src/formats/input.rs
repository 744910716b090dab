//! The text of a file, once, in the ways in which the readers need it.

use crate::salvage;
use serde_json::Value;

/// The text of a file with what it holds of JSON.
pub(super) struct Input<'a> {
    /// The whole text.
    pub(super) text: &'a str,
    /// The name of the only benchmark, where the file does not say it.
    pub(super) name: &'a str,
    /// Says whether the caller named the form.
    pub(super) asked: bool,
    /// The JSON value that the file is, up to where it is complete.
    pub(super) json: Option<Value>,
    /// Says what was wrong with that value.
    pub(super) note: Option<String>,
    /// The JSON objects of which each line is one; empty if any line is something else.
    pub(super) lines: Vec<Value>,
}

impl<'a> Input<'a> {
    pub(super) fn new(text: &'a str, name: &'a str, asked: bool) -> Self {
        let lines = lines(text);
        let is_json = text.trim_start().starts_with(['{', '[']) && lines.len() < 2;
        let (json, note) = match is_json.then(|| salvage::json(text)).flatten() {
            Some((value, note)) => (Some(value), note),
            None => (None, None),
        };
        Self {
            text,
            name,
            asked,
            json,
            note,
            lines,
        }
    }

    /// Returns a field of the JSON object that the file is.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.json.as_ref()?.get(name)
    }

    /// Returns whether the file is a JSON object with this field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// Returns the entries of a list of the JSON object, if it has the list.
    pub(super) fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.field(name)?.as_array()
    }

    /// Returns the text, if it is no JSON.
    pub(super) fn plain(&self) -> Option<&'a str> {
        (self.json.is_none() && self.lines.is_empty()).then_some(self.text)
    }

    /// Returns whether the text is no JSON and has a line with all of these words.
    pub(super) fn plain_has(&self, words: &[&str]) -> bool {
        let mut lines = self.plain().unwrap_or_default().lines();
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    }
}

/// Returns the objects of a text that has one in each line, beside comments. Only the last
/// may be cut off.
fn lines(text: &str) -> Vec<Value> {
    let texts: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .collect();
    let mut objects = Vec::new();
    for (at, line) in texts.iter().enumerate() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => objects.push(value),
            _ if at > 0 && at + 1 == texts.len() && line.starts_with('{') => {}
            _ => return Vec::new(),
        }
    }
    objects
}

/// Returns the text of some bytes. PowerShell writes UTF-16, with a mark of two bytes; a
/// byte that is no UTF-8 is in a name, and must not cost the samples.
pub(super) fn decoded(bytes: &[u8]) -> String {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|two| of([two[0], two[1]]));
        String::from_utf16_lossy(&units.collect::<Vec<u16>>())
    };
    let text = match bytes {
        [0xff, 0xfe, ..] | [_, 0, _, 0, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] | [0, _, 0, _, ..] => wide(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    text.trim_start_matches('\u{feff}').to_owned()
}
