//! Detection of waiting loops in the lock's code.
//!
//! A loop that repeats ([`crate::repeat`]) waits as `spin` does, and is pruned
//! likewise; so is a loop without a pause from its third round on; a loop that
//! counts is pruned after two rounds. A loop that changes something must never
//! be taken for a wait.

use super::hooks::flush;
use super::part::{Part, order};
use super::used::accesses;
use super::world::{thread, with};
use crate::repeat::Read;
use locklab_locks::platform::Platform;
use locklab_verify::Loom;

/// This many repetitions of the same accesses with the same result are a loop
/// without a pause.
pub(super) const REPEATED: u32 = 3;

/// The number of pauses of a counting loop that are explored before it is
/// pruned: a file can make its bounds as small as that where `LOCKLAB_CHECKER`
/// is defined.
pub(super) const COUNTED: u32 = 2;

/// Notes that this thread has changed something, so that its earlier accesses
/// are not part of a loop that repeats.
pub(super) fn has_changed() {
    let me = thread();
    with(|world| {
        let thread = &mut world.threads[me];
        thread.at.forget();
        thread.handed = None;
        thread.counted = 0;
        thread.repeated.clear();
    });
}

/// Notes a read-modify-write: one that leaves the value unchanged is a read, of
/// a loop that may repeat.
pub(super) fn has_updated(part: &Part, site: usize, (old, new): (u64, u64)) {
    if old != new {
        return has_changed();
    }
    let me = thread();
    let read = Read {
        address: part.first + (part.shift / 8) as usize,
        size: part.size as u8,
        value: old,
        // The access of the wait orders nothing: it is made again afterwards.
        order: 0,
        site,
    };
    with(|world| {
        let thread = &mut world.threads[me];
        thread.handed = None;
        thread.at.has_read(read);
    });
    repeats(part, site, old);
}

/// Notes an access. A loop that repeats the same accesses, with the
/// same results, and changes nothing is a wait, although it does not pause.
pub(super) fn repeats(part: &Part, site: usize, value: u64) {
    let me = thread();
    let often = with(|world| {
        let repeated = &mut world.threads[me].repeated;
        let known = repeated
            .iter_mut()
            .find(|(at, word, ..)| (*at, *word) == (site, part.first));
        match known {
            Some((_, _, before, often)) if *before == value => {
                *often += 1;
                *often
            }
            Some((_, _, before, often)) => {
                (*before, *often) = (value, 1);
                1
            }
            None => {
                repeated.push((site, part.first, value, 1));
                1
            }
        }
    });
    if often >= REPEATED {
        Loom::repeats(part.place);
    }
}

pub(super) extern "C-unwind" fn relax(frame: *const u8, _: usize, site: usize) {
    if !flush(site) {
        return accesses(0, 0);
    }
    let me = thread();
    let (round, place, counted) = with(|world| {
        let place = world.place(site);
        let thread = &mut world.threads[me];
        thread.repeated.clear();
        let bytes = thread.at.entry.saturating_sub(frame as usize);
        if frame.is_null() || bytes == 0 {
            return (None, place, u32::MAX);
        }
        // SAFETY: the live part of this thread's stack, up to the lock's
        // entry.
        let round = thread
            .at
            .pause(unsafe { std::slice::from_raw_parts(frame, bytes) });
        match round {
            Some(_) => thread.counted = 0,
            None => thread.counted += 1,
        }
        (round, place, thread.counted)
    });
    match round.as_ref().map(|round| &*round.words) {
        // It waits for another value of the one word, as a spin does.
        Some([word]) => {
            let part = Part::at(word.address, word.size.into(), word.site).headed_by(word.order);
            // It has already made a fruitless read.
            Loom::repeats(part.place);
            part.place.set_caller();
            let value = part.of(part
                .word()
                .wait(order(word.order), |whole| part.of(whole) != word.value));
            with(|world| world.threads[me].handed = Some((word.address, word.size, value)));
        }
        Some(_) => Loom::repeats(place),
        // This is a loop that tries something each time, or counts.
        None if counted > COUNTED => {
            place.set_caller();
            Loom::relax();
        }
        None => {}
    }
}
