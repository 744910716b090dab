//! An access to the lock's memory, or to a part of a word of it, as steps of
//! the model.
//!
//! Parts of a word are one word of the checker's: a store of a part is a
//! read-modify-write of the whole, or the operation of [`LockWord`] for it. It
//! must leave memory with the newest value of the word.

use super::bounds;
use super::race::{self, Access};
use super::word::Word;
use super::world::{thread, with};
use crate::library::{low, updated};
use crate::memory::{memory, set_memory};
use locklab_locks::platform::{LockWord, Ordering};
use locklab_verify::{Moment, Place};
use std::ffi::{c_int, c_uint};

/// Returns the memory order of an access in Rust's terms.
pub(super) fn order(order: c_int) -> Ordering {
    match order {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    }
}

/// `memory_order_consume`: it heads a dependency and is treated as an Acquire,
/// and so not as an ordering of the source that could be weakened.
pub(super) const CONSUME: c_int = 1;

/// An access to a part of a word.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) word: *const Word,
    pub(super) shift: u32,
    pub(super) size: u32,
    pub(super) place: Place,
}

impl Part {
    /// Returns the part at an address; begins the model again if the access does not
    /// fit the known words.
    pub(super) fn at(address: usize, size: c_uint, site: usize) -> Self {
        bounds::check(address, size as usize, site);
        let (found, place) = with(|world| {
            let place = world.place(site);
            let known = !world.accesses.insert((address, size as u8));
            (world.word(address, size as u8).filter(|_| known), place)
        });
        let Some((first, width, word)) = found else {
            let (pool, data) = with(|world| {
                let start = world.start();
                let pool = start..start + 64 * world.pool.len();
                (pool, world.library.data.clone())
            });
            if !pool.contains(&address) && !data.contains(&address) {
                if is_on_a_stack(address) {
                    on_a_stack(address, place);
                }
                panic!(
                    "crash at {place} (address {address:#x}, which is neither the lock's nor a \
                     context's nor static data)"
                );
            }
            if size > 8 || address % 8 + size as usize > 8 {
                panic!("an access of {size} bytes at {place} that no aligned word holds");
            }
            locklab_verify::begin_again()
        };
        Self {
            first,
            width,
            word,
            shift: 8 * (address - first) as u32,
            size,
            place,
        }
    }

    /// Returns this moment, at which it is about to be accessed.
    pub(super) fn before(&self, plain: bool) -> Vec<Moment> {
        let (address, bytes) = self.memory();
        if plain && with(|world| world.raced.learns(address, bytes)) {
            locklab_verify::begin_again();
        }
        with(|world| world.raced.before(address, bytes))
    }

    /// Notes that it has been accessed, from that moment on.
    pub(super) fn after(&self, access: Access, began: Vec<Moment>) {
        let here = (access, self.place);
        let race = with(|world| world.raced.after(thread(), self.memory(), here, began));
        if let Some(other) = race {
            panic!("{}", race::describe(here, other));
        }
    }

    pub(super) fn address(&self) -> usize {
        self.first + (self.shift / 8) as usize
    }

    fn memory(&self) -> (usize, usize) {
        (self.address(), self.size as usize)
    }

    /// Returns the same part, for an access of this memory order.
    pub(super) fn headed_by(self, mo: c_int) -> Self {
        let place = match mo {
            CONSUME => self.place.with_order_given(),
            _ => self.place,
        };
        Self { place, ..self }
    }

    pub(super) fn word(&self) -> &Word {
        // SAFETY: words stay until the execution ends.
        unsafe { &*self.word }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.width == self.size as usize
    }

    pub(super) fn of(&self, whole: u64) -> u64 {
        low(self.size, whole >> self.shift)
    }

    pub(super) fn within(&self, whole: u64, part: u64) -> u64 {
        let mask = low(self.size, u64::MAX) << self.shift;
        whole & !mask | (part << self.shift) & mask
    }

    /// Makes memory hold the newest value of the word.
    pub(super) fn settle(&self) {
        let newest = self.word().latest();
        // SAFETY: a word of the lock's memory.
        unsafe { set_memory(self.first, self.width as u32, newest) };
    }

    /// Returns the newest value of the whole word, from memory.
    pub(super) fn newest(&self) -> u64 {
        // SAFETY: a word of the lock's memory.
        unsafe { memory(self.first, self.width as u32) }
    }

    pub(super) fn load(&self, order: Ordering) -> u64 {
        self.place.set_caller();
        self.of(self.word().load(order))
    }

    /// Makes a compare-and-swap fail that would succeed.
    pub(super) fn fail_without_cause(&self, order: Ordering) -> u64 {
        self.place.set_caller();
        self.of(self.word().fail_without_cause(order))
    }

    pub(super) fn store(&self, value: u64, order: Ordering) {
        self.place.set_caller();
        if self.is_whole() {
            self.word().store(value, order);
            self.settle();
            return;
        }
        match (self.word(), self.shift, self.size) {
            (Word::Whole(word), 0, 1) => word.store_low_byte(value as u8, order),
            (Word::Whole(word), 0, 2) => word.store_low_half(value as u16, order),
            _ => {
                self.change(order, |_| Some(value));
                return;
            }
        }
        self.settle();
    }

    /// Makes a read-modify-write of the part by compare-and-swaps of the word; the
    /// first guess is the newest value, which only a switch of threads makes
    /// wrong.
    pub(super) fn change(&self, order: Ordering, change: impl Fn(u64) -> Option<u64>) -> u64 {
        let mut old = self.newest();
        loop {
            let Some(part) = change(self.of(old)) else {
                return self.of(old);
            };
            let new = self.within(old, part);
            self.place.set_caller();
            match self.word().compare(old, new, order, Ordering::Relaxed) {
                Ok(_) => {
                    self.settle();
                    return self.of(old);
                }
                Err(now) => old = now,
            }
        }
    }

    pub(super) fn update(&self, operation: c_uint, value: u64, order: Ordering) -> u64 {
        let new = |old| low(self.size, updated(operation, old, value));
        if self.is_whole() {
            self.place.set_caller();
            if let Some(old) = self.word().update(operation, value, order) {
                self.settle();
                return old;
            }
        }
        if let (Word::Whole(word), 16, 2, 0) = (self.word(), self.shift, self.size, operation) {
            self.place.set_caller();
            let old = u64::from(word.swap_high_half(value as u16, order));
            self.settle();
            return old;
        }
        self.change(order, |old| Some(new(old)))
    }

    pub(super) fn compare(
        &self,
        expected: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> u64 {
        let mut old = if self.is_whole() {
            expected
        } else {
            self.within(self.newest(), expected)
        };
        loop {
            self.place.set_caller();
            let whole = self.within(old, new);
            match self.word().compare(old, whole, success, failure) {
                Ok(_) => {
                    self.settle();
                    return expected;
                }
                // Another part has changed meanwhile.
                Err(now) if self.of(now) == expected => old = now,
                Err(now) => return self.of(now),
            }
        }
    }
}

/// Ends the model at an access to a thread's stack that threads share.
pub(super) fn on_a_stack(address: usize, place: Place) -> ! {
    debug_assert!(is_on_a_stack(address), "{address:#x}");
    panic!(
        "not checked: {place} shares memory of a thread's stack; keep queue nodes in the context"
    )
}

/// Returns whether this is memory of a thread that is in the lock's code.
fn is_on_a_stack(address: usize) -> bool {
    const STACK: usize = 64 << 10;
    with(|world| {
        let mut entries = world.threads.iter().map(|thread| thread.at.entry);
        entries.any(|entry| (entry.saturating_sub(STACK)..entry).contains(&address))
    })
}
