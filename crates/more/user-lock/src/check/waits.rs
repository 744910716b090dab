//! Detection of waiting loops in the lock's code.
//!
//! A loop has come round where it pauses, and where it makes an access again that it
//! has made since. If the round repeats ([`crate::repeat`]) it waits as `spin` does, and
//! is pruned likewise. If it writes, or counts, it is no wait: its rounds are
//! explored as far as is set ([`locklab_verify::round_ends`]), and what is left out is
//! said. A round that the next could differ from must never be taken for a wait.

use super::access::{Part, order};
use super::hooks::flush;
use super::used::accesses;
use super::world::{Round, thread, with};
use crate::library::{Frame, low};
use crate::repeat::Read;
use locklab_verify::{Loom, Onward, Rounding, may_end_otherwise, round_ends, stretch_ends};

/// Accesses since a loop last came round of which it is known that they are made again.
const MOST_PASSED: usize = 256;

/// Notes that this thread has changed something, so that its earlier accesses
/// are not part of a loop that repeats.
pub(super) fn has_changed() {
    let me = thread();
    with(|world| {
        let thread = &mut world.threads[me];
        thread.at.forget();
        thread.handed = None;
        thread.wrote = true;
        thread.has_ended_loop();
    });
}

/// Returns what ended a sleep, or kept the thread from it, is what others did: so the
/// rounds of its loop are as few as that.
pub(super) fn others_went_on() {
    let me = thread();
    with(|world| {
        let thread = &mut world.threads[me];
        thread.rounds.clear();
        thread.passed.clear();
    });
}

/// Notes a read.
pub(super) fn has_read(read: Read) {
    let me = thread();
    with(|world| {
        let thread = &mut world.threads[me];
        thread.at.has_read(read);
        let read = (read.site, read.address, read.value);
        let before = &thread.reads[1];
        if before
            .iter()
            .any(|(site, address, _)| (*site, *address) == (read.0, read.1))
            && !before.contains(&read)
        {
            thread.has_ended_loop();
        }
        thread.reads[0].push(read);
    });
}

/// Notes a read-modify-write: one that leaves the value unchanged is a read, of
/// a loop that may repeat.
pub(super) fn has_updated(part: &Part, site: usize, (old, new): (u64, u64)) {
    if old != new {
        return has_changed();
    }
    let me = thread();
    with(|world| world.threads[me].handed = None);
    has_read(Read {
        address: part.address(),
        size: part.size as u8,
        value: low(part.size, old),
        // The access of the wait orders nothing: it is made again afterwards.
        order: 0,
        site,
    });
}

/// Notes that the code is about to make this access: a loop without a pause comes round
/// where it has made the same since it last did.
pub(super) fn comes_to(frame: &Frame, address: usize, site: usize) {
    let me = thread();
    let (again, new) = with(|world| {
        let thread = &mut world.threads[me];
        if let Some((place, true)) = thread.counting {
            thread.counting = None;
            let new = world.unlike.insert(place);
            if new && world.went_on.contains(&place) {
                may_end_otherwise(place);
            }
        }
        let thread = &mut world.threads[me];
        thread.accesses += 1;
        let access = (site, address, frame.stack);
        let again = thread.passed.contains(&access);
        if again || thread.passed.len() == MOST_PASSED {
            thread.passed.clear();
        }
        thread.passed.push(access);
        let new = !thread.sites.contains(&site);
        if new {
            thread.sites.push(site);
        }
        (again, new)
    });
    if new {
        stretch_ends();
    }
    if again {
        comes_round(frame, site);
    }
}

pub(super) extern "C-unwind" fn relax(frame: *const u8, bytes: usize, site: usize) {
    if !flush(site) {
        return accesses(0, 0, site);
    }
    let me = thread();
    with(|world| world.threads[me].passed.clear());
    comes_round(&Frame::pushed(frame, bytes), site);
}

/// Notes that a loop has come round to this place, in the state of this frame.
fn comes_round(frame: &Frame, site: usize) {
    let me = thread();
    let (round, place, went) = with(|world| {
        let place = world.place(site);
        let thread = &mut world.threads[me];
        // SAFETY: the live part of this thread's stack, up to the lock's entry.
        let state = unsafe { frame.state(thread.at.entry) };
        let went = thread.goes_round(site, &state);
        let round = match state.is_empty() {
            true => None,
            false => thread.at.pause(&state),
        };
        if round.is_some() {
            // What others do ends it.
            thread.rounds.clear();
        }
        (round, place, went)
    });
    match round.as_ref().map(|round| &*round.words) {
        // It waits for another value of the one word, as a spin does.
        Some([word]) => {
            stretch_ends();
            let part = Part::at(word.address, word.size.into(), word.site).headed_by(word.order);
            // It has already made a fruitless read.
            Loom::repeats(part.place);
            part.place.set_caller();
            let value = part.of(part
                .word()
                .wait(order(word.order), |whole| part.of(whole) != word.value));
            with(|world| world.threads[me].handed = Some((word.address, word.size, value)));
        }
        Some(_) => {
            stretch_ends();
            Loom::repeats(place);
        }
        None => {
            let Some(Round {
                number, rounding, ..
            }) = went
            else {
                return;
            };
            if rounding == Rounding::Counts {
                with(|world| world.threads[me].counting = Some((place, false)));
            }
            if round_ends(place, number, rounding) == Onward::Alike {
                let unlike = with(|world| {
                    world.went_on.insert(place);
                    world.unlike.contains(&place)
                });
                if unlike {
                    may_end_otherwise(place);
                }
            }
        }
    }
}
