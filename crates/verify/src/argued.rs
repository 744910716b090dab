//! Mutants that break no promise, and why: each is as good as the source, or
//! costs speed and nothing else, or what it breaks is beyond the checker, and
//! then the reason says so.
//!
//! A reason of `argued.tsv` is bound to the text of the source line, so that it
//! does not outlive what it speaks of. One that stands there and is killed
//! nevertheless counts as killed: the reason is wrong then.

use crate::mutation::Mutation;
use crate::source;

/// One line a reason: the file, a part of the line (of the line above where the
/// call stands on one of its own), what is changed, and why no promise breaks.
const REASONS: &str = include_str!("../argued.tsv");

/// Why this mutant breaks no promise, if that is known.
pub(crate) fn because(mutation: &Mutation) -> Option<&'static str> {
    let place = mutation.place;
    let description = mutation.description();
    let text = source::line(place.file, place.line).unwrap_or("");
    let above = source::line(place.file, place.line.saturating_sub(1)).unwrap_or("");
    let about = |line: &str| {
        REASONS.lines().skip(1).find_map(|reason| {
            let mut fields = reason.split('\t');
            let (file, part) = (fields.next()?, fields.next()?);
            let (change, why) = (fields.next()?, fields.next()?);
            let is_it = place.file.ends_with(file) && line.contains(part) && description == change;
            is_it.then_some(why)
        })
    };
    about(text).or_else(|| about(above))
}
