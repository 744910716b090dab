//! A word of the checker's, which decides what a read of the lock's memory sees.
//!
//! C has words of four widths and the platform has three, so the width is a
//! value here. This module must never know where a word lies or who accesses
//! it.

use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Patience, Platform, Poll};
use locklab_verify::Loom;
use std::ffi::c_uint;

/// A word of the checker's, of 1, 2, 4 or 8 bytes.
pub(super) enum Word {
    Byte(<Loom as Platform>::U8),
    /// The platform has no 16-bit word; this one never holds more than 16 bits.
    Half(<Loom as Platform>::U32),
    Whole(<Loom as Platform>::U32),
    Long(<Loom as Platform>::Usize),
}

/// Performs the same operation on a word of any width.
macro_rules! any {
    ($word:expr, |$w:ident: $t:ident| $body:expr) => {
        match $word {
            Word::Byte($w) => {
                type $t = u8;
                $body
            }
            Word::Half($w) | Word::Whole($w) => {
                type $t = u32;
                $body
            }
            Word::Long($w) => {
                type $t = usize;
                $body
            }
        }
    };
}

impl Word {
    /// Returns a word for the memory at `address`.
    pub(super) fn new(address: usize, bytes: usize, value: u64) -> Self {
        let word = match bytes {
            1 => Self::Byte(Atomic::new(value as u8)),
            2 => Self::Half(Atomic::new(value as u32)),
            4 => Self::Whole(Atomic::new(value as u32)),
            _ => Self::Long(Atomic::new(value as usize)),
        };
        any!(&word, |w: T| {
            let _: fn(T) = |_| ();
            w.stands_for(address);
        });
        word
    }

    pub(super) fn load(&self, order: Ordering) -> u64 {
        any!(self, |w: T| {
            let value: T = w.load(order);
            value as u64
        })
    }

    /// Makes a compare-and-swap fail that would succeed.
    pub(super) fn fail_without_cause(&self, order: Ordering) -> u64 {
        any!(self, |w: T| {
            let value: T = w.fail_without_cause(order);
            value as u64
        })
    }

    pub(super) fn store(&self, value: u64, order: Ordering) {
        any!(self, |w: T| w.store(value as T, order));
    }

    /// Returns the newest value.
    pub(super) fn latest(&self) -> u64 {
        any!(self, |w: T| {
            let value = w.latest();
            value as T as u64
        })
    }

    pub(super) fn compare(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        any!(self, |w: T| {
            w.compare_exchange(old as T, new as T, success, failure)
                .map(|old| old as u64)
                .map_err(|old| old as u64)
        })
    }

    /// Waits for a value for which `done` holds.
    pub(super) fn wait(&self, order: Ordering, done: impl Fn(u64) -> bool) -> u64 {
        let poll = |value: u64| match done(value) {
            true => Poll::Done,
            false => Poll::Relax(1),
        };
        any!(
            self,
            |w: T| w.spin(order, Patience::Forever, |value: T| poll(value as u64)) as u64
        )
    }

    /// Makes a read-modify-write of the whole word, if the platform has it.
    pub(super) fn update(&self, operation: c_uint, value: u64, order: Ordering) -> Option<u64> {
        if let (Self::Half(_), 1 | 2) = (self, operation) {
            return None; // It would carry.
        }
        Some(any!(self, |w: T| {
            let value = value as T;
            match operation {
                0 => w.swap(value, order) as u64,
                1 => w.fetch_add(value, order) as u64,
                2 => w.fetch_sub(value, order) as u64,
                3 => w.fetch_and(value, order) as u64,
                4 => w.fetch_or(value, order) as u64,
                _ => return None,
            }
        }))
    }
}
