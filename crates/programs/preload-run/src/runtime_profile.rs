//! What profiles of Go's and of Java's runtime have in common: a row for each wait or place, and
//! a report of these.
//!
//! It must never say what a lock can gain: how long threads worked is in neither.

use locklab_document::contention_profile::{ContentionProfile, Counts, Used};
use locklab_document::{Document, Section, render};
use serde_json::{Value, json};

/// Rows that the text shows.
const MOST: usize = 20;

/// Returns so many waits at a place, of so many nanoseconds together.
pub(crate) fn row(place: String, kind: Option<String>, contended: u64, waited_ns: f64) -> Used {
    Used {
        name: place,
        kind,
        counts: Counts {
            contended,
            waited_ns: Some(waited_ns),
            ..Counts::default()
        },
        ..Used::default()
    }
}

/// Returns the report as text: its title, where its figures are from, what is to be thought of
/// them, and the places.
pub(crate) fn text(
    title: String,
    figures: &str,
    (verdict, note): (String, String),
    places: &[Used],
) -> String {
    let mut document = Document {
        title,
        head: vec![("Figures".into(), figures.into())],
        ..Document::default()
    };
    document.push(Section::new("").prose(verdict).note(note));
    document.push(ContentionProfile::section("Where", places, MOST));
    render::text(&document, render::Colour::for_stdout())
}

/// Returns the places for programs.
pub(crate) fn json(places: &[Used]) -> Vec<Value> {
    let row =
        |row: &Used| json!({ "name": row.name, "kind": row.kind, "counts": row.counts.json() });
    places.iter().map(row).collect()
}
