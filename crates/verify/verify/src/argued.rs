//! Mutants that break no promise, and why: each reason names the execution that
//! cannot happen. Such a mutant is as good as the source, or costs speed and
//! nothing else, or what it breaks is beyond the checker, and then the reason
//! says so.
//!
//! A reason of `argued.tsv` is bound to its locks and to the text of the source
//! line, so that it neither excuses another lock's mutant nor outlives what it
//! speaks of. One that stands there and is killed nevertheless counts as
//! killed: the reason is wrong then.

use crate::journal::Place;
use crate::source;
use std::path::Path;

/// One line a reason: the locks, the file, a part of the line and the one
/// above it (both without their indentation, a space between), what is
/// changed (of the platform's changes or of the source; several with `; `
/// between), and why no promise breaks.
const REASONS: &str = include_str!("../argued.tsv");

/// Returns why this change at this place of this lock breaks no promise, if that is
/// known.
pub(crate) fn because(lock: &str, place: Place, description: &str) -> Option<&'static str> {
    let line = |line| source::line(place.file, line).unwrap_or("").trim();
    let text = line(place.line.saturating_sub(1)).to_owned() + " " + line(place.line);
    REASONS.lines().skip(1).find_map(|reason| {
        let mut fields = reason.split('\t');
        let (locks, file) = (fields.next()?, fields.next()?);
        let (part, change, why) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = locks.split(' ').any(|of| of == lock)
            && Path::new(place.file).ends_with(file)
            && text.contains(part)
            && change.split("; ").any(|change| change == description);
        is_it.then_some(why)
    })
}

#[cfg(test)]
#[path = "../tests/unit/argued.rs"]
mod tests;
