//! The functions that the compiled lock calls at each access, fence and pause.
//!
//! A plain or volatile read is a relaxed load whose value stays in memory until
//! the thread's next access; such a write is a relaxed store there. Plain ones
//! must not race. Must never run outside a model, except for `lab_init`, which
//! precedes the model.

use super::access::{CONSUME, Part, on_a_stack, order};
use super::race::Access;
use super::used::accesses;
use super::waits::{comes_to, has_changed, has_read, has_updated, others_went_on, relax};
use super::word::Word;
use super::world::{thread, with};
use crate::isolate;
use crate::library::{
    EXCHANGE, Frame, Hooks, VOLATILE, WEAK, call_refused, found_wrong, low, no_futex_word, updated,
};
use crate::memory::{compare_memory, memory, pieces, set_memory};
use crate::repeat::Read;
use locklab_locks::platform::{Ordering, Platform};
use locklab_verify::Loom;
use std::ffi::{c_char, c_int, c_long, c_uint};
use std::mem::take;
use std::sync::atomic::Ordering as Real;

/// Reports to the checker what the code has done to memory by itself since its
/// last access. Returns whether the current access is part of the model.
pub(super) fn flush(site: usize) -> bool {
    isolate::SITE.store(site, Real::Relaxed);
    if with(|world| world.quiet) {
        return false;
    }
    let me = thread();
    let (written, older) = with(|world| {
        let thread = &mut world.threads[me];
        (take(&mut thread.written), take(&mut thread.older))
    });
    for (address, size, newest) in older {
        // SAFETY: words of the lock's memory.
        unsafe { set_memory(address, size.into(), newest) };
    }
    for (address, size, before, site) in written {
        // SAFETY: as above.
        let value = unsafe { memory(address, size.into()) };
        // Until the store is scheduled, other threads see the old value.
        // SAFETY: as above.
        unsafe { set_memory(address, size.into(), before) };
        Part::at(address, size.into(), site).store(value, Ordering::Relaxed);
    }
    true
}

/// Returns where the access comes from: to be asked before anything else is done.
fn entered() -> Frame {
    with(|world| world.library.entered())
}

pub(super) extern "C-unwind" fn load(address: usize, size: c_uint, mo: c_int, site: usize) -> u64 {
    let frame = entered();
    if !flush(site) {
        accesses(address, size as usize, site);
        // SAFETY: `lab_init` of the lock in its place.
        return unsafe { memory(address, size) };
    }
    if is_own(address) {
        waits_alone(address, site);
        // SAFETY: a live variable of this thread.
        return unsafe { memory(address, size) };
    }
    comes_to(&frame, address, site);
    let me = thread();
    let mo = heads_a_dependency(mo, size == 8);
    let part = Part::at(address, size, site);
    let handed = with(|world| world.threads[me].handed.take());
    let began = part.before(false);
    let value = match handed {
        Some((at, bytes, value)) if (at, c_uint::from(bytes)) == (address, size) => value,
        _ => part.headed_by(mo).load(order(mo)),
    };
    part.after(Access::ATOMIC_READ, began);
    has_read(Read {
        address,
        size: size as u8,
        value,
        order: mo,
        site,
    });
    value
}

pub(super) extern "C-unwind" fn store(
    address: usize,
    size: c_uint,
    value: u64,
    mo: c_int,
    site: usize,
) {
    let frame = entered();
    if !flush(site) {
        accesses(address, size as usize, site);
        // SAFETY: as `load`.
        return unsafe { set_memory(address, size, value) };
    }
    if is_own(address) {
        // SAFETY: as `load`.
        return unsafe { set_memory(address, size, value) };
    }
    comes_to(&frame, address, site);
    has_changed();
    let part = Part::at(address, size, site);
    let began = part.before(false);
    part.store(low(size, value), order(mo));
    part.after(Access::ATOMIC_WRITE, began);
}

pub(super) extern "C-unwind" fn update(
    address: usize,
    size: c_uint,
    operation: c_uint,
    value: u64,
    mo: c_int,
    site: usize,
) -> u64 {
    let frame = entered();
    let value = low(size, value);
    let modelled = flush(site);
    if !modelled {
        accesses(address, size as usize, site);
    }
    if !modelled || is_own(address) {
        // SAFETY: as `load`.
        unsafe {
            let old = memory(address, size);
            set_memory(address, size, updated(operation, old, value));
            return old;
        }
    }
    comes_to(&frame, address, site);
    let part = Part::at(address, size, site);
    let began = part.before(false);
    let mo = heads_a_dependency(mo, operation == EXCHANGE);
    fence_around(mo, site);
    let old = part.headed_by(mo).update(operation, value, order(mo));
    fence_around(mo, site);
    part.after(Access::ATOMIC_WRITE, began);
    let new = low(size, updated(operation, old, value));
    has_updated(&part, site, (old, new));
    old
}

pub(super) extern "C-unwind" fn compare(
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
    let modelled = flush(site);
    if !modelled {
        accesses(address, size as usize, site);
    }
    if !modelled || is_own(address) {
        // SAFETY: as `load`.
        return unsafe { compare_memory(address, size, expected, new) };
    }
    comes_to(&frame, address, site);
    let part = Part::at(address, size, site);
    let weak = failure & WEAK != 0;
    let failure = match failure & !WEAK {
        0 | 3 => Ordering::Relaxed,
        _ => Ordering::Acquire,
    };
    let began = part.before(false);
    let would_succeed = part.of(part.newest()) == expected;
    if weak && would_succeed && Loom::fails_without_cause() {
        let value = part.fail_without_cause(failure);
        part.after(Access::ATOMIC_READ, began);
        // The next round may succeed.
        has_changed();
        if value == expected {
            with(|world| world.library.fails_without_cause());
        }
        return value;
    }
    fence_around(success, site);
    let old = part
        .headed_by(success)
        .compare(expected, new, order(success), failure);
    fence_around(success, site);
    let access = match old == expected {
        true => Access::ATOMIC_WRITE,
        false => Access::ATOMIC_READ,
    };
    part.after(access, began);
    let now = if old == expected { new } else { old };
    has_updated(&part, site, (old, now));
    old
}

/// Returns the memory order of an access that may head an address dependency: with
/// dependencies, one that is relaxed is as one that is consumed.
fn heads_a_dependency(mo: c_int, may: bool) -> c_int {
    match mo {
        0 if may && with(|world| world.dependencies) => CONSUME,
        _ => mo,
    }
}

/// Fences before and behind a read-modify-write of this memory order: with dependencies, one
/// that acquires and releases is a full barrier.
fn fence_around(mo: c_int, site: usize) {
    if mo >= 4 && with(|world| world.dependencies) {
        with(|world| world.place(site)).set_caller();
        Loom::fence(Ordering::SeqCst);
    }
}

pub(super) extern "C-unwind" fn fence(mo: c_int, site: usize) {
    if !flush(site) {
        return;
    }
    let order = match mo {
        0 => return,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    };
    with(|world| world.place(site)).set_caller();
    Loom::fence(order);
}

/// The most atomic reads of its own stack that a thread makes in one execution: one that
/// waits there for another thread, which no step lets run, makes more.
const READS_ALONE: u32 = 10_000;

/// Notes an atomic read of the thread's own stack. Such a variable is private until another
/// thread comes to it, whose access says so.
fn waits_alone(address: usize, site: usize) {
    let me = thread();
    let (reads, place) = with(|world| {
        world.threads[me].reads_alone += 1;
        (world.threads[me].reads_alone, world.place(site))
    });
    if reads > READS_ALONE {
        on_a_stack(address, place);
    }
}

/// Returns whether an address lies on the thread's own stack, or in constants.
pub(super) fn is_own(address: usize) -> bool {
    let here = 0_u8;
    let me = thread();
    with(|world| {
        let library = &world.library;
        let whole = library.base..library.data.end.max(library.code.end);
        (std::ptr::from_ref(&here) as usize..world.threads[me].at.entry).contains(&address)
            || (whole.contains(&address) && !library.data.contains(&address))
    })
}

pub(super) extern "C-unwind" fn read(address: usize, bytes: usize, kind: c_uint, site: usize) {
    let frame = entered();
    if !flush(site) {
        return accesses(address, bytes, site);
    }
    if is_own(address) {
        return;
    }
    comes_to(&frame, address, site);
    let me = thread();
    let access = Access {
        plain: kind != VOLATILE,
        writes: false,
    };
    // Other threads may run at each load, so memory is changed after all of
    // them.
    let mut seen = Vec::new();
    for (address, size) in pieces(address, bytes) {
        let part = Part::at(address, size.into(), site);
        let handed = with(|world| world.threads[me].handed.take());
        let began = part.before(access.plain);
        let value = match handed {
            Some((at, width, value)) if (at, width) == (address, size) => value,
            _ => part.load(Ordering::Relaxed),
        };
        part.after(access, began);
        has_read(Read {
            address,
            size,
            value,
            order: 0,
            site,
        });
        seen.push((part, address, size, value));
    }
    for (part, address, size, value) in seen {
        let newest = part.of(part.newest());
        if value != newest {
            with(|world| world.threads[me].older.push((address, size, newest)));
            // SAFETY: a word of the lock's memory.
            unsafe { set_memory(address, size.into(), value) };
        }
    }
}

pub(super) extern "C-unwind" fn write(address: usize, bytes: usize, kind: c_uint, site: usize) {
    let frame = entered();
    if !flush(site) {
        return accesses(address, bytes, site);
    }
    if is_own(address) {
        return;
    }
    comes_to(&frame, address, site);
    has_changed();
    let me = thread();
    let access = Access {
        plain: kind != VOLATILE,
        writes: true,
    };
    for (address, size) in pieces(address, bytes) {
        let part = Part::at(address, size.into(), site);
        let began = part.before(access.plain);
        part.after(access, began);
        let before = part.of(part.newest());
        with(|world| {
            world.threads[me]
                .written
                .push((address, size, before, site))
        });
    }
}

pub(super) extern "C-unwind" fn cpu() -> c_uint {
    locklab_verify::asks_for_number();
    let numbers = with(|world| world.facts.max_cpus.filter(|_| world.last_cpus));
    let cpu = Loom::cpu();
    numbers.map_or(cpu, |numbers| numbers - 1 - cpu) as c_uint
}

pub(super) extern "C-unwind" fn node() -> c_uint {
    Loom::node() as c_uint
}

pub(super) extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    // SAFETY: strings of the library.
    panic!("{}", unsafe { found_wrong(text, file, line) })
}

/// Returns the word of a futex, which is about to be looked at or woken for.
fn futex(address: usize, site: usize) -> Part {
    has_changed();
    let place = with(|world| world.place(site));
    if let Some(why) = no_futex_word(address, &place.to_string()) {
        panic!("{why}");
    }
    let part = Part::at(address, 4, site);
    if !matches!(part.word(), Word::Whole(_)) {
        panic!("not checked: the futex word at {place} is accessed as a part of a wider one, too");
    }
    part.place.set_caller();
    part
}

pub(super) extern "C-unwind" fn futex_wait(address: usize, expected: c_uint, site: usize) -> c_int {
    if !flush(site) {
        panic!(
            "deadlock: a thread alone sleeps at {}",
            with(|world| world.place(site))
        );
    }
    let part = futex(address, site);
    let Word::Whole(word) = part.word() else {
        unreachable!("looked at by `futex`");
    };
    let slept = Loom::sleep_behind_a_fence(word, expected);
    others_went_on();
    if slept { 0 } else { -1 }
}

pub(super) extern "C-unwind" fn futex_wake(address: usize, most: c_uint, site: usize) -> c_uint {
    if !flush(site) {
        return 0;
    }
    let part = futex(address, site);
    let Word::Whole(word) = part.word() else {
        unreachable!("looked at by `futex`");
    };
    Loom::wake_some(word, most as usize) as c_uint
}

pub(super) extern "C-unwind" fn refuse_call(number: c_long, operation: c_long, site: usize) {
    let place = with(|world| world.place(site));
    panic!("{}", call_refused(number, operation, &place.to_string()));
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
