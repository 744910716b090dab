//! The functions that the compiled test calls at each access and fence.
//!
//! Plain accesses are announced, and made by the code afterwards, in memory. A volatile
//! one is a relaxed atomic access, which a write becomes at the thread's next event:
//! its value is only known then. Must never run outside an exploration.

use super::loops::Turn;
use super::world::{Piece, STACK, Way, with};
use crate::isolate;
use crate::library::{Frame, Hooks, VOLATILE, WEAK, found_wrong, low, updated};
use crate::memory::{compare_memory, memory, set_memory};
use locklab_graph::Place;
use locklab_graph::model::{self, Location, Orders};
use std::ffi::{c_char, c_int, c_long, c_uint};
use std::sync::atomic::Ordering;

/// Returns the memory order of an access in Rust's terms.
fn order(order: c_int) -> Ordering {
    match order {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    }
}

pub(super) fn me() -> usize {
    model::thread_id()
}

pub(super) fn place(site: usize) -> Place {
    with(|world| world.place(site))
}

pub(super) fn error(why: &str, site: usize) -> ! {
    model::error(why, place(site))
}

/// Makes the exploration begin again, since more is known of memory.
fn begin_again(site: usize) -> ! {
    with(|world| world.again = true);
    error("more is known of memory", site)
}

/// Makes the volatile write an event that the code has made since its last one.
pub(super) fn flush(site: usize) {
    isolate::SITE.store(site, Ordering::Relaxed);
    isolate::ACCESSES.fetch_add(1, Ordering::Relaxed);
    let me = me();
    isolate::CPU.store(me, Ordering::Relaxed);
    let written = with(|world| {
        let thread = &mut world.threads[me];
        thread.site = site;
        thread.written.take()
    });
    let Some((address, bytes, site)) = written else {
        return;
    };
    for piece in way(address, bytes, true, true, site).unwrap_or_default() {
        // SAFETY: memory of the test.
        let value = unsafe { memory(piece.address, piece.size.into()) };
        write_atomically(piece, value, Ordering::Relaxed, site);
    }
}

/// Returns the words of an access; `None` if memory is accessed as it is.
fn way(
    address: usize,
    bytes: usize,
    writes: bool,
    atomic: bool,
    site: usize,
) -> Option<Vec<Piece>> {
    let me = me();
    match with(|world| world.way(me, (address, bytes), writes, atomic)) {
        Ok(Way::Directly) => None,
        Ok(Way::Events(pieces)) => Some(pieces),
        Ok(Way::Again) => begin_again(site),
        Err(why) => {
            let what = if writes { "write" } else { "read" };
            let line = with(|world| world.line(site));
            error(&format!("the {what} at {line} is {why}"), site)
        }
    }
}

/// Notes that the thread begins or ends the life of memory, which is no access; returns
/// whether threads share it.
pub(super) fn uses(address: usize, bytes: u64, site: usize) -> bool {
    let me = me();
    if bytes == 0 {
        return false;
    }
    match with(|world| world.is_shared(me, address)) {
        Some(shared) => shared,
        None => begin_again(site),
    }
}

impl Piece {
    pub(super) fn location(&self) -> Location {
        // SAFETY: memory of the test, which lives as long as the exploration.
        unsafe { Location::memory(self.first, self.width.into()) }
    }

    fn is_whole(&self) -> bool {
        self.width == self.size
    }

    fn shift(&self) -> u32 {
        8 * (self.address - self.first) as u32
    }

    /// Returns the part of the whole word's value.
    fn of(&self, whole: u64) -> u64 {
        low(self.size.into(), whole >> self.shift())
    }

    /// Returns the word's value with another part.
    fn within(&self, whole: u64, part: u64) -> u64 {
        let mask = low(self.size.into(), u64::MAX) << self.shift();
        whole & !mask | (part << self.shift()) & mask
    }
}

fn read_atomically(piece: Piece, order: Ordering, site: usize) -> u64 {
    let value = piece.of(model::load(piece.location(), order, place(site)));
    has_read(piece, value);
    value
}

fn write_atomically(piece: Piece, value: u64, order: Ordering, site: usize) {
    match piece.is_whole() {
        true => model::store(piece.location(), value, order, place(site)),
        false => {
            change(piece, order, &|_| value, site);
        }
    }
    has_changed();
}

/// Makes a read-modify-write of a word or a part of it; returns the old value.
fn change(piece: Piece, order: Ordering, f: &dyn Fn(u64) -> u64, site: usize) -> u64 {
    let whole = |old| Some(piece.within(old, low(piece.size.into(), f(piece.of(old)))));
    piece.of(model::rmw(piece.location(), order, place(site), whole))
}

/// Notes that the code comes to an access, by one of the functions below: a loop that has
/// come round waits. (One call of the test's may make several accesses.)
fn comes_to(frame: &Frame, by: &'static str, site: usize) {
    let me = me();
    let events = model::position();
    let turn = with(|world| {
        let thread = &mut world.threads[me];
        thread
            .loops
            .comes_to(frame, thread.entry, (by, site), events)
    });
    match turn {
        Turn::Onward => {}
        Turn::Repeats(since, silent) => {
            if with(|world| world.live && world.share(&silent)) {
                begin_again(site);
            }
            if since == events {
                let line = with(|world| world.line(site));
                error(
                    &format!("the loop at {line} has no end: it reads nothing that changes"),
                    site,
                );
            }
            model::wait_round(since);
        }
        Turn::Cut => model::cut_loop(place(site)),
        Turn::Endless => {
            let line = with(|world| world.line(site));
            let what = "has no end that was reached";
            error(&format!("not checked: the loop at {line} {what}"), site)
        }
    }
}

fn entered() -> Frame {
    with(|world| world.loaded.take_entered())
}

/// Notes that the thread has changed memory.
pub(super) fn has_changed() {
    let me = me();
    with(|world| world.threads[me].loops.has_changed());
}

fn has_read(piece: Piece, value: u64) {
    let me = me();
    let read = (piece.address, piece.size, value);
    with(|world| world.threads[me].loops.has_read(read));
}

/// Notes an access that is no event.
fn silently(address: usize, bytes: usize, writes: bool) {
    let me = me();
    with(|world| {
        let thread = &mut world.threads[me];
        // The stack shows what is there.
        if (thread.entry.saturating_sub(STACK)..thread.entry).contains(&address) {
            return;
        }
        match writes {
            true => thread.loops.has_changed(),
            false => (address..address + bytes)
                .step_by(8)
                .for_each(|at| thread.loops.has_read_silently(at)),
        }
    });
}

/// Notes what a read-modify-write did: one that leaves the value unchanged is a read.
fn has_updated(piece: Piece, old: u64, new: u64) {
    has_read(piece, old);
    if old != new {
        has_changed();
    }
}

extern "C-unwind" fn load(address: usize, size: c_uint, mo: c_int, site: usize) -> u64 {
    let frame = entered();
    flush(site);
    comes_to(&frame, "load", site);
    let Some(pieces) = way(address, size as usize, false, true, site) else {
        silently(address, size as usize, false);
        // SAFETY: memory of the test.
        return unsafe { memory(address, size) };
    };
    read_atomically(pieces[0], order(mo), site)
}

extern "C-unwind" fn store(address: usize, size: c_uint, value: u64, mo: c_int, site: usize) {
    let frame = entered();
    let value = low(size, value);
    flush(site);
    comes_to(&frame, "store", site);
    let Some(pieces) = way(address, size as usize, true, true, site) else {
        silently(address, size as usize, true);
        // SAFETY: memory of the test.
        return unsafe { set_memory(address, size, value) };
    };
    write_atomically(pieces[0], value, order(mo), site);
}

extern "C-unwind" fn update(
    address: usize,
    size: c_uint,
    operation: c_uint,
    value: u64,
    mo: c_int,
    site: usize,
) -> u64 {
    let frame = entered();
    let value = low(size, value);
    flush(site);
    comes_to(&frame, "update", site);
    let new = |old| low(size, updated(operation, old, value));
    let Some(pieces) = way(address, size as usize, true, true, site) else {
        silently(address, size as usize, true);
        // SAFETY: memory of the test.
        unsafe {
            let old = memory(address, size);
            set_memory(address, size, new(old));
            return old;
        }
    };
    let old = change(pieces[0], order(mo), &new, site);
    has_updated(pieces[0], old, new(old));
    old
}

extern "C-unwind" fn compare(
    address: usize,
    size: c_uint,
    expected: u64,
    new: u64,
    success: c_int,
    failure: c_int,
    site: usize,
) -> u64 {
    let frame = entered();
    let (expected, new) = (low(size, expected), low(size, new));
    flush(site);
    comes_to(&frame, "compare", site);
    let Some(pieces) = way(address, size as usize, true, true, site) else {
        silently(address, size as usize, true);
        // SAFETY: memory of the test.
        return unsafe { compare_memory(address, size, expected, new) };
    };
    let piece = pieces[0];
    let orders = Orders {
        success: order(success),
        failure: order(failure & !WEAK),
    };
    if !piece.is_whole() {
        let swap = |old| (old == expected).then_some(new);
        let whole = |old| swap(piece.of(old)).map(|new| piece.within(old, new));
        let old = model::rmw(piece.location(), orders.success, place(site), whole);
        let old = piece.of(old);
        has_updated(piece, old, swap(old).unwrap_or(old));
        return old;
    }
    let weak = failure & WEAK != 0;
    match model::compare_exchange(piece.location(), expected, new, orders, weak, place(site)) {
        Ok(old) => {
            has_updated(piece, old, new);
            old
        }
        Err(old) => {
            has_read(piece, old);
            if old == expected {
                // The next round may succeed.
                has_changed();
                with(|world| world.loaded.fails_without_cause());
            }
            old
        }
    }
}

extern "C-unwind" fn fence(mo: c_int, site: usize) {
    flush(site);
    if mo != 0 && with(|world| world.live) {
        model::fence(order(mo), place(site));
    }
}

extern "C-unwind" fn read(address: usize, bytes: usize, kind: c_uint, site: usize) {
    let frame = entered();
    flush(site);
    if bytes == 0 {
        return;
    }
    comes_to(&frame, "read", site);
    announce_read(address, bytes, kind == VOLATILE, site);
}

/// Says that the test's code is about to read.
fn announce_read(address: usize, bytes: usize, volatile: bool, site: usize) {
    let Some(pieces) = way(address, bytes, false, volatile, site) else {
        return silently(address, bytes, false);
    };
    let mut seen = Vec::new();
    for piece in pieces {
        // Other threads may run here, so memory is changed after all of them.
        if volatile || !piece.is_whole() {
            seen.push((piece, read_atomically(piece, Ordering::Relaxed, site)));
        } else {
            model::read(piece.location(), place(site));
            // SAFETY: memory of the test.
            has_read(piece, unsafe { memory(piece.address, piece.size.into()) });
        }
    }
    for (piece, value) in seen {
        // SAFETY: as above.
        unsafe { set_memory(piece.address, piece.size.into(), value) };
    }
}

/// Copies memory as the test's code would.
pub(super) fn copy(to: usize, from: usize, bytes: usize, site: usize) {
    if bytes == 0 {
        return;
    }
    announce_read(from, bytes, false, site);
    // SAFETY: memory of the test.
    let copy = unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }.to_vec();
    announce(to, bytes, false, site);
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), to as *mut u8, bytes) };
}

extern "C-unwind" fn write(address: usize, bytes: usize, kind: c_uint, site: usize) {
    let frame = entered();
    flush(site);
    if bytes == 0 {
        return;
    }
    comes_to(&frame, "write", site);
    announce(address, bytes, kind == VOLATILE, site);
}

/// Says that the test's code is about to write.
fn announce(address: usize, bytes: usize, volatile: bool, site: usize) {
    let Some(pieces) = way(address, bytes, true, volatile, site) else {
        return silently(address, bytes, true);
    };
    has_changed();
    if volatile {
        let me = me();
        return with(|world| world.threads[me].written = Some((address, bytes, site)));
    }
    for piece in pieces {
        if !piece.is_whole() {
            let line = with(|world| world.line(site));
            let what = "not checked: a part of an atomic word is written by a plain access at";
            error(&format!("{what} {line}"), site);
        }
        model::write(piece.location(), place(site));
    }
}

/// Writes to the test's memory as its code would.
pub(super) fn write_value(address: usize, bytes: usize, value: u64, site: usize) {
    announce(address, bytes, false, site);
    // SAFETY: memory of the test.
    unsafe { set_memory(address, bytes as u32, value) };
}

/// Reads the test's memory as its code would, by an atomic access.
pub(super) fn read_word(address: usize, site: usize) -> u64 {
    match way(address, 4, false, true, site) {
        // SAFETY: memory of the test.
        None => unsafe { memory(address, 4) },
        Some(pieces) => read_atomically(pieces[0], Ordering::SeqCst, site),
    }
}

extern "C-unwind" fn number() -> c_uint {
    me() as c_uint
}

extern "C-unwind" fn relax(frame: *const u8, bytes: usize, site: usize) {
    flush(site);
    comes_to(&Frame::pushed(frame, bytes), "relax", site);
}

extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    let site = isolate::SITE.load(Ordering::Relaxed);
    // SAFETY: strings of the library.
    let text = unsafe { found_wrong(text, file, line) };
    error(&text.replace("the lock called", "the test called"), site)
}

extern "C-unwind" fn futex_wait(address: usize, expected: c_uint, site: usize) -> c_int {
    super::calls::futex_wait(address, expected, site) as c_int
}

extern "C-unwind" fn futex_wake(address: usize, most: c_uint, site: usize) -> c_uint {
    super::calls::futex_wake(address, most, site)
}

extern "C-unwind" fn refuse_call(number: c_long, operation: c_long, site: usize) {
    let line = with(|world| world.line(site));
    let what = match operation {
        ..0 => format!("call {number} of the system"),
        operation => format!("operation {operation} of a futex"),
    };
    error(
        &format!("not checked: {what} at {line}, which the checker does not know"),
        site,
    )
}

pub(super) const HOOKS: Hooks = Hooks {
    load,
    store,
    update,
    compare,
    fence,
    read,
    write,
    cpu: number,
    node: number,
    relax,
    fail,
    futex_wait,
    futex_wake,
    refuse_call,
};
