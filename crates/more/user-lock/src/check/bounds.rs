//! Accesses out of the bounds of the lock, of a context, or of a static variable: in
//! the checker's memory they would meet something else, and no more would be said than
//! that the lock makes no progress.
//!
//! Must never refuse what the file may access. An index that leaves an array and stays
//! within the same object is not seen.

use super::world::{MOST_LOCKS, World, lines, with};
use std::ops::Range;

/// Ends the model if an access of so many bytes here is not within one object.
pub(super) fn check(address: usize, bytes: usize, site: usize) {
    let outside = with(|world| {
        if world.has_within(address, bytes) {
            return None;
        }
        let objects = world.around(address)?;
        let distance = |object: &Object| match address.checked_sub(object.memory.end) {
            Some(behind) => behind,
            None => object.memory.start.abs_diff(address),
        };
        let nearest = objects.into_iter().min_by_key(distance)?;
        Some((nearest, world.place(site)))
    });
    if let Some((Object { name, memory }, place)) = outside {
        let size = memory.len();
        let whereabouts = match memory.start.checked_sub(address) {
            Some(before @ 1..) => format!("{before} before the start of"),
            _ => format!("from byte {} of", address - memory.start),
        };
        panic!(
            "access out of bounds at {place}: {bytes} bytes, {whereabouts} {name}, which has {size}"
        );
    }
}

/// Memory that the file may access.
struct Object {
    name: String,
    memory: Range<usize>,
}

impl World {
    /// Returns whether these bytes lie within one object, or where none is known.
    fn has_within(&self, address: usize, bytes: usize) -> bool {
        let start = self.start();
        if (start..start + 64 * self.pool.len()).contains(&address) {
            let of_lock = 64 * lines(self.facts.lock_bytes);
            let of_context = 64 * lines(self.facts.ctx_bytes);
            let place = address - start;
            let (place, room, size, number) = match place.checked_sub(MOST_LOCKS * of_lock) {
                None => (place, of_lock, self.facts.lock_bytes, self.locks),
                Some(place) => (place, of_context, self.facts.ctx_bytes, self.contexts),
            };
            return place / room < number && place % room + bytes <= size;
        }
        let objects = &self.library.objects;
        if !self.library.data.contains(&address) || objects.is_empty() {
            return true;
        }
        let before = objects.partition_point(|(_, memory)| memory.start <= address);
        // One may contain others, as a section's own symbol does.
        let mut before = objects[..before].iter().rev();
        before.any(|(_, memory)| address + bytes <= memory.end)
    }

    /// Returns what there is in the memory that this address lies in; `None` if that is
    /// not the checker's, or it is not known.
    fn around(&self, address: usize) -> Option<Vec<Object>> {
        let start = self.start();
        let of_lock = 64 * lines(self.facts.lock_bytes);
        let of_context = 64 * lines(self.facts.ctx_bytes);
        let first_context = start + MOST_LOCKS * of_lock;
        if (start..start + 64 * self.pool.len()).contains(&address) {
            let made = |name: &str, first: usize, room: usize, bytes: usize, number: usize| {
                let memory = |at| first + at * room..first + at * room + bytes;
                let object = |at| Object {
                    name: name.to_owned(),
                    memory: memory(at),
                };
                (0..number).map(object).collect::<Vec<_>>()
            };
            let mut all = made(
                "the lock",
                start,
                of_lock,
                self.facts.lock_bytes,
                self.locks,
            );
            let contexts = made(
                "a context",
                first_context,
                of_context,
                self.facts.ctx_bytes,
                self.contexts,
            );
            all.extend(contexts);
            return Some(all);
        }
        if !self.library.data.contains(&address) || self.library.objects.is_empty() {
            return None;
        }
        // The file does not know the variables of Locklab's own headers.
        let theirs = |(name, _): &&(String, Range<usize>)| !name.starts_with("locklab_");
        let theirs = self.library.objects.iter().filter(theirs);
        let objects = theirs.map(|(name, memory)| Object {
            name: format!("'{name}'"),
            memory: memory.clone(),
        });
        Some(objects.collect())
    }
}
