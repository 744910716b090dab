//! Carries out each access of a compiled lock in the simulator. A plain access to
//! memory that no other CPU uses costs nothing; one to memory that is not
//! simulated is a crash, and is never made.

use super::world::with;
use crate::isolate::{self, ACCESSES, CPU, SITE};
use crate::library::{Hooks, call_refused, found_wrong, low, no_futex_word, updated};
use crate::memory::{compare_memory, memory, set_memory};
use crate::repeat::Read;
use locklab_sim::by_address;
use std::ffi::{c_char, c_int, c_long, c_uint};
use std::sync::atomic::Ordering;

/// Returns whether this access is part of the simulation; if so, notes it.
#[inline]
fn enters(site: usize) -> bool {
    if with(|world| world.quiet) {
        return false;
    }
    ACCESSES.store(ACCESSES.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    SITE.store(site, Ordering::Relaxed);
    CPU.store(by_address::cpu(), Ordering::Relaxed);
    true
}

/// Notes an atomic access that writes.
fn writes(address: usize) {
    let cpu = by_address::cpu();
    with(|world| {
        world.pool.share(address);
        world.cpus[cpu].forget();
    });
}

/// Returns whether a plain access costs nothing.
fn is_private(address: usize) -> bool {
    let here = 0_u8;
    let cpu = by_address::cpu();
    with(|world| {
        let own = std::ptr::from_ref(&here) as usize..world.cpus[cpu].entry;
        world.pool.is_private(address, cpu, &own)
    })
}

fn forget() {
    let cpu = by_address::cpu();
    with(|world| world.cpus[cpu].forget());
}

fn reads(address: usize, size: u8, value: u64) {
    let cpu = by_address::cpu();
    let read = Read {
        address,
        size,
        value,
        order: 0,
        site: 0,
    };
    with(|world| world.cpus[cpu].has_read(read));
}

pub(super) extern "C-unwind" fn load(address: usize, size: c_uint, _: c_int, site: usize) -> u64 {
    if !enters(site) {
        // SAFETY: `lab_init` of the lock in its place.
        return unsafe { memory(address, size) };
    }
    with(|world| world.pool.share(address));
    // SAFETY: if it is no simulated memory, this does not return.
    let value = unsafe { by_address::load(address, size as u8, site) };
    let value = low(size, value);
    reads(address, size as u8, value);
    value
}

extern "C-unwind" fn store(address: usize, size: c_uint, value: u64, order: c_int, site: usize) {
    if !enters(site) {
        // SAFETY: as `load`.
        return unsafe { set_memory(address, size, value) };
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe {
        if order == SEQ_CST {
            by_address::update(address, size as u8, site, |_| Some(low(size, value)));
        } else {
            by_address::store(address, size as u8, low(size, value), site);
        }
    }
}

/// `__ATOMIC_SEQ_CST`.
const SEQ_CST: c_int = 5;

extern "C-unwind" fn update(
    address: usize,
    size: c_uint,
    operation: c_uint,
    value: u64,
    _: c_int,
    site: usize,
) -> u64 {
    let change = |old| low(size, updated(operation, old, value));
    if !enters(site) {
        // SAFETY: as `load`.
        unsafe {
            let old = memory(address, size);
            set_memory(address, size, change(old));
            return old;
        }
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe { by_address::update(address, size as u8, site, |old| Some(change(old))) }
}

extern "C-unwind" fn compare(
    address: usize,
    size: c_uint,
    expected: u64,
    new: u64,
    _: c_int,
    _: c_int,
    site: usize,
) -> u64 {
    let (expected, new) = (low(size, expected), low(size, new));
    if !enters(site) {
        // SAFETY: as `load`.
        return unsafe { compare_memory(address, size, expected, new) };
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe {
        by_address::update(address, size as u8, site, |old| {
            (old == expected).then_some(new)
        })
    }
}

extern "C-unwind" fn fence(order: c_int, site: usize) {
    if enters(site) && order == SEQ_CST {
        forget();
        by_address::fence();
    }
}

extern "C-unwind" fn read(address: usize, bytes: usize, _: c_uint, site: usize) {
    if !enters(site) {
        return;
    }
    for (address, size) in words_of(address, bytes) {
        let private = is_private(address);
        if private || by_address::is_simulated(address) {
            if !private {
                by_address::read(address, size, site);
            }
            // SAFETY: simulated memory is memory.
            reads(address, size, unsafe { memory(address, size.into()) });
        } else {
            may_be_read(address);
        }
    }
}

extern "C-unwind" fn write(address: usize, bytes: usize, _: c_uint, site: usize) {
    if !enters(site) {
        return;
    }
    forget();
    for (address, size) in words_of(address, bytes) {
        if is_private(address) {
            // As in `read`.
        } else if by_address::is_simulated(address) {
            by_address::write(address, size, site);
        } else {
            may_be_read(address);
        }
    }
}

/// Returns the accesses that copy this many bytes, one for each word of the machine.
fn words_of(address: usize, bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let step = if bytes <= 8 { bytes.max(1) } else { 8 };
    (0..bytes)
        .step_by(step)
        .map(move |at| (address + at, step.min(bytes - at) as u8))
}

/// Makes an access to other memory. The deeper part of a CPU's stack, and constants,
/// are used by no other CPU: such an access costs nothing here. Anywhere else it is a
/// crash: of the access itself or, where there happens to be memory, by this check.
fn may_be_read(address: usize) {
    let here = 0_u8;
    let cpu = by_address::cpu();
    let well = with(|world| {
        let library = &world.library;
        (std::ptr::from_ref(&here) as usize..world.cpus[cpu].entry).contains(&address)
            || (library.base..library.data.end.max(library.code.end)).contains(&address)
    });
    if !well {
        // Ends the simulation, and does not return.
        // SAFETY: no access is made to what is not simulated.
        unsafe { by_address::load(address, 1, SITE.load(Ordering::Relaxed)) };
    }
}

extern "C-unwind" fn cpu() -> c_uint {
    by_address::cpu() as c_uint
}

extern "C-unwind" fn node() -> c_uint {
    by_address::node() as c_uint
}

extern "C-unwind" fn relax(frame: *const u8, _: usize, site: usize) {
    if !enters(site) {
        return;
    }
    let cpu = by_address::cpu();
    let round = with(|world| {
        let at = &mut world.cpus[cpu];
        let bytes = at.entry.saturating_sub(frame as usize);
        if frame.is_null() || bytes == 0 {
            return None;
        }
        // SAFETY: the live part of this CPU's stack, up to the lock's entry.
        let round = at.pause(unsafe { std::slice::from_raw_parts(frame, bytes) })?;
        for word in &round.words {
            // A line must have been fetched to be watched.
            world.pool.share(word.address);
        }
        Some(round)
    });
    let Some(round) = round else {
        return by_address::pause();
    };
    let seen: Vec<_> = round
        .words
        .iter()
        .map(|word| (word.address, word.size, word.value))
        .collect();
    // SAFETY: words that were simulated memory when they were read.
    unsafe { by_address::pause_until_change(&seen, round.reads, round.pauses, site) }
}

extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    // SAFETY: strings of the library.
    let wrong = unsafe { found_wrong(text, file, line) };
    // Ends the child with an answer; unwinding would have to pass a
    // coroutine's C frames.
    isolate::give_up(&format!("CPU {}: {wrong}", by_address::cpu()))
}

/// Returns the line of a call, for a sentence.
fn line_of(site: usize) -> String {
    let line = with(|world| world.sites.line(site));
    line.unwrap_or_else(|| "the lock's code".to_owned())
}

extern "C-unwind" fn futex_wait(address: usize, expected: c_uint, site: usize) -> c_int {
    if !enters(site) {
        isolate::give_up(&format!("lab_init sleeps at {}", line_of(site)));
    }
    refuse_no_word(address, site);
    writes(address);
    // SAFETY: aligned; if it is no simulated memory, this does not return.
    let slept = unsafe { by_address::sleep(address, expected, site) };
    CPU.store(by_address::cpu(), Ordering::Relaxed);
    if slept { 0 } else { -1 }
}

extern "C-unwind" fn futex_wake(address: usize, most: c_uint, site: usize) -> c_uint {
    if !enters(site) {
        return 0;
    }
    refuse_no_word(address, site);
    forget();
    by_address::wake(address, most as usize, site) as c_uint
}

fn refuse_no_word(address: usize, site: usize) {
    let cpu = by_address::cpu();
    if let Some(why) = no_futex_word(address, &line_of(site)) {
        isolate::give_up(&format!("CPU {cpu}: {why}"));
    }
}

extern "C-unwind" fn refuse_call(number: c_long, operation: c_long, site: usize) {
    isolate::give_up(&call_refused(number, operation, &line_of(site)))
}

/// Holds what the code of a simulated lock calls.
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
