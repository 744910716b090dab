//! The functions that the compiled file calls at each access and fence.
//!
//! Plain accesses are announced, and made by the code afterwards, in memory. A volatile
//! one is a relaxed atomic access, which a write becomes at the thread's next event:
//! its value is only known then. Must never run outside an exploration.

use super::loops::Turn;
use super::world::{Piece, STACK, Way, with};
use crate::isolate;
use crate::library::{
    EXCHANGE, Frame, Hooks, VOLATILE, WEAK, call_refused, found_wrong, low, updated,
};
use crate::memory::{compare_memory, memory, set_memory};
use locklab_graph::Place;
use locklab_graph::model::{self, Location, Orders};
use locklab_verify::{Access, Part, effective, note_access};
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

/// `memory_order_consume`: it heads a dependency and is treated as an Acquire, and so not as
/// an ordering of the source that could be weakened.
const CONSUME: c_int = 1;

/// Returns the order of this part of an access: that of the source, unless a mutant is
/// tried, or an access `heads` an address dependency and these order.
fn ordering(mo: c_int, part: Part, heads: bool, site: usize) -> Ordering {
    let rules = with(|world| world.rules);
    match mo {
        0 if heads && rules.dependencies => Ordering::Acquire,
        0 | CONSUME => order(mo),
        _ => match place(site) {
            Place::Source { file, line, column } => {
                let place = locklab_verify::Place { file, line, column };
                effective(place, part, order(mo))
            }
            Place::Address(_) => order(mo),
        },
    }
}

/// Makes what is around a read-modify-write that acquires and releases, where that is a
/// fence.
fn fence_around(mo: c_int, site: usize) {
    if matches!(mo, 4 | 5) && with(|world| world.rules.dependencies) {
        model::fence(Ordering::SeqCst, place(site));
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
    locklab_verify::beat();
    let me = me();
    isolate::CPU.store(me, Ordering::Relaxed);
    let here = std::ptr::from_ref(&me) as usize;
    let entry = with(|world| world.threads[me].entry);
    if entry.saturating_sub(here) > STACK - STACK / 4 {
        let line = with(|world| world.line(site));
        error(&format!("crash: the stack overflows at {line}"), site);
    }
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
            let at = match why.starts_with("out of bounds") {
                true => String::new(),
                false => format!(" (address {address:#x})"),
            };
            error(&format!("the {what} at {line}{at} is {why}"), site)
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
    interrupt(site);
    let events = model::position();
    let turn = with(|world| {
        let thread = &mut world.threads[me];
        thread
            .loops
            .comes_to(frame, thread.entry, (by, site), events)
    });
    match turn {
        Turn::Onward => {}
        Turn::Repeats(..) if tell_that_it_waits() => {}
        Turn::Repeats(since, silent) => {
            if with(|world| world.live && world.share(&silent)) {
                begin_again(site);
            }
            if since == events {
                error(&never_ends(site), site);
            }
            was_in_vain(site);
            model::wait_round(since);
            has_changed();
        }
        Turn::Again { since, undone, cut } => {
            let undone = undone && since < events && model::is_undone(since);
            if (undone || cut) && tell_that_it_waits() {
                return;
            }
            if undone {
                model::wait_round(since);
            }
            if cut {
                model::cut_loop(since, place(site));
            }
        }
        Turn::Endless => {
            let line = with(|world| world.line(site));
            let what = "has no end that was reached";
            error(&format!("not checked: the loop at {line} {what}"), site)
        }
    }
}

/// Says that a loop waits for what nobody changes.
pub(super) fn never_ends(site: usize) -> String {
    with(|world| {
        let line = world.line(site);
        match &world.watch {
            Some(watch) => watch.never_ends(&line),
            None => format!("the loop at {line} has no end: it reads nothing that changes"),
        }
    })
}

/// Notes that the thread waits, if somebody asks; it looks once more after that. An
/// interrupt may come first.
pub(super) fn tell_that_it_waits() -> bool {
    let me = me();
    if let Some(body) = with(|world| world.threads[me].interrupts_wait.take()) {
        run_interrupt(&*body);
        return true;
    }
    let Some(word) = with(|world| world.threads[me].tells.take()) else {
        return false;
    };
    // SAFETY: a word of ours, which lives as long as the exploration.
    let word = unsafe { Location::memory(word, 8) };
    // Pairs with the Acquire of who asks.
    model::store(word, 1, Ordering::Release, NOWHERE);
    with(|world| world.threads[me].loops.begin_call());
    true
}

/// Runs what interrupts this thread.
fn run_interrupt(body: &dyn Fn()) {
    let me = me();
    let (entry, loops) = with(|world| {
        let thread = &mut world.threads[me];
        (thread.entry, std::mem::take(&mut thread.loops))
    });
    body();
    with(|world| {
        let thread = &mut world.threads[me];
        (thread.entry, thread.loops) = (entry, loops);
        thread.loops.has_changed_for_good();
    });
}

/// Where our own code is, which no trace shows.
pub(super) const NOWHERE: Place = Place::Source {
    file: "",
    line: 0,
    column: 0,
};

/// Interrupts the thread here, in executions of their own, if it may be.
fn interrupt(site: usize) {
    let me = me();
    let due = with(|world| {
        let thread = &mut world.threads[me];
        let may = world.live && thread.interrupt.is_some() && thread.sites.insert(site);
        may.then(|| thread.interrupt.clone()).flatten()
    });
    let Some(body) = due else { return };
    has_changed();
    if model::choose(2, place(site)) == 1 {
        with(|world| world.threads[me].interrupt = None);
        run_interrupt(&*body);
    }
}

fn entered() -> Frame {
    with(|world| world.loaded.take_entered())
}

/// Notes that the thread has changed what no event and no memory shows.
pub(super) fn has_changed_for_good() {
    let me = me();
    with(|world| world.threads[me].loops.has_changed_for_good());
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
        if let Some(watch) = &mut world.watch {
            watch.accesses(address, bytes);
        }
        let thread = &mut world.threads[me];
        // The stack shows what is there.
        if (thread.entry.saturating_sub(STACK)..thread.entry).contains(&address) {
            return;
        }
        match writes {
            true => thread.loops.will_write(address, bytes),
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
    let value = read_atomically(pieces[0], ordering(mo, Part::Load, size == 8, site), site);
    let me = me();
    let ends = with(|world| {
        world.threads[me].read.insert(site, value);
        world.vain.get(&site).is_some_and(|vain| *vain != value)
    });
    let access = if ends { Access::Ends } else { Access::Plain };
    covers(site, access, value, value);
    value
}

/// Notes an access for the coverage of the lock.
fn covers(site: usize, access: Access, old: u64, new: u64) {
    if let Place::Source { file, line, column } = place(site) {
        let here = locklab_verify::Place { file, line, column };
        note_access(here, access, old, new);
    }
}

/// Notes that the read of a loop that has come round was in vain.
fn was_in_vain(site: usize) {
    let me = me();
    let read = with(|world| {
        let value = *world.threads[me].read.get(&site)?;
        world.vain.insert(site, value);
        Some(value)
    });
    if let Some(value) = read {
        covers(site, Access::InVain, value, value);
    }
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
    write_atomically(
        pieces[0],
        value,
        ordering(mo, Part::Store, false, site),
        site,
    );
    covers(site, Access::Plain, value, value);
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
        // SAFETY: memory of the test.
        let old = unsafe { memory(address, size) };
        silently(address, size as usize, new(old) != old);
        // SAFETY: as above.
        unsafe { set_memory(address, size, new(old)) };
        return old;
    };
    let order = ordering(mo, Part::Update, operation == EXCHANGE, site);
    fence_around(mo, site);
    let old = change(pieces[0], order, &new, site);
    fence_around(mo, site);
    has_updated(pieces[0], old, new(old));
    covers(site, Access::Update, old, new(old));
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
        // SAFETY: memory of the test.
        let old = unsafe { compare_memory(address, size, expected, new) };
        silently(address, size as usize, old == expected && old != new);
        return old;
    };
    let piece = pieces[0];
    let orders = Orders {
        success: ordering(success, Part::Success, false, site),
        failure: ordering(failure & !WEAK, Part::Failure, false, site),
    };
    if !piece.is_whole() {
        let swap = |old| (old == expected).then_some(new);
        let whole = |old| swap(piece.of(old)).map(|new| piece.within(old, new));
        let old = model::rmw(piece.location(), orders.success, place(site), whole);
        let old = piece.of(old);
        has_updated(piece, old, swap(old).unwrap_or(old));
        match swap(old) {
            Some(new) => covers(site, Access::Succeeds, old, new),
            None => covers(site, Access::Fails, old, old),
        }
        return old;
    }
    let weak = failure & WEAK != 0;
    fence_around(success, site);
    let found = model::compare_exchange(piece.location(), expected, new, orders, weak, place(site));
    fence_around(success, site);
    match found {
        Ok(old) => {
            has_updated(piece, old, new);
            covers(site, Access::Succeeds, old, new);
            old
        }
        Err(old) => {
            has_read(piece, old);
            covers(site, Access::Fails, old, old);
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
        let order = ordering(mo, Part::Fence, false, site);
        if order != Ordering::Relaxed {
            model::fence(order, place(site));
        }
    }
}

/// Returns whether an access that is no atomic one is a relaxed one.
fn is_relaxed(kind: c_uint) -> bool {
    kind == VOLATILE || !with(|world| world.rules.races)
}

extern "C-unwind" fn read(address: usize, bytes: usize, kind: c_uint, site: usize) {
    let frame = entered();
    flush(site);
    if bytes == 0 {
        return;
    }
    comes_to(&frame, "read", site);
    announce_read(address, bytes, is_relaxed(kind), site);
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
    announce(address, bytes, is_relaxed(kind), site);
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

extern "C-unwind" fn cpu() -> c_uint {
    (me() + with(|world| world.first_cpu)) as c_uint
}

/// Returns the NUMA node: there are two, and who comes after another is on the other.
extern "C-unwind" fn node() -> c_uint {
    me() as c_uint % 2
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
    let why = call_refused(number, operation, &line);
    error(&format!("not checked: {why}"), site)
}

pub(super) const HOOKS: Hooks = Hooks {
    load,
    store,
    update,
    compare,
    fence,
    read,
    write,
    cpu,
    node,
    relax,
    fail,
    futex_wait,
    futex_wake,
    refuse_call,
};
