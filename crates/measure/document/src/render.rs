//! The forms of a document, one file each. A renderer lays out and adds
//! nothing of its own; no input makes it panic.

mod annotations;
mod clean;
mod colour;
mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod text;

pub use annotations::annotations;
pub use colour::Colour;
pub use html::{html, svg};
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::{table, text};
