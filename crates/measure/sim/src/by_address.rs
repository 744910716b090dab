//! The simulator for code that is not generic over [`crate::Sim`]: accesses
//! by address and size, as the instrumented code of a C library reports them.
//!
//! Each function acts for the simulated CPU whose code is running, and may
//! switch to other CPUs before it returns. A `site` is the address of the
//! instruction that makes the access: reports name its source line by
//! [`Memory::place_of`]. Must never be called outside a simulation.

use crate::access::{modified, reach_to_modify, reach_to_read};
use crate::cpu::{DONE, FOREVER, Phase};
use crate::drain;
use crate::engine::{Engine, engine};
use crate::own_stores::{drain_all, has_store_at};
use crate::platform::{Sim, Word};
pub use crate::region::{Memory, Region};
use crate::scheduler::kick;
use crate::spin::{self, pause_until_exit, watch};
use crate::store_buffer::read as read_bits;
use locklab_locks::platform::{Ordering, Platform};

/// Returns the number of the running CPU.
pub fn cpu() -> usize {
    engine().current.get()
}

/// Returns the NUMA node of the running CPU.
pub fn node() -> usize {
    <Sim as Platform>::node()
}

/// Returns the time of the running CPU, in cycles.
pub fn cycles() -> u64 {
    engine().time.get()
}

/// Returns the site of the latest access of a CPU; 0 if it has made none.
pub fn site_of(cpu: usize) -> usize {
    engine().cpus[cpu].site.get()
}

/// Returns whether an address is simulated memory, including the stacks of CPUs.
pub fn is_simulated(address: usize) -> bool {
    engine().memory.line_at(address).is_some()
}

/// Executes one pause.
pub fn pause() {
    <Sim as Platform>::relax();
}

/// Executes a full fence.
pub fn fence() {
    <Sim as Platform>::fence(Ordering::SeqCst);
}

/// Executes an atomic read of `size` bytes (1, 2, 4 or 8).
///
/// # Safety
/// The address is simulated memory, aligned to the size.
pub unsafe fn load(address: usize, size: u8, site: usize) -> u64 {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if cpu.handed.replace((0, 0)) == (address, size) {
        // `pause_until_change` has made this read.
        // SAFETY: the caller's promise.
        return unsafe { read_bits(address, size) };
    }
    match reach_to_read(engine, address, size) {
        Some(own) => own,
        // SAFETY: as above.
        None => unsafe { read_bits(address, size) },
    }
}

/// Executes an atomic write that is not a read-modify-write.
///
/// # Safety
/// The same conditions as for [`load`].
pub unsafe fn store(address: usize, size: u8, value: u64, site: usize) {
    let engine = engine();
    engine.current().site.set(site);
    // SAFETY: the caller's promise.
    // The requested ordering is not known here: the strongest that
    // is not a full fence is used.
    unsafe { drain::store(engine, address, size, value, Ordering::Release) };
}

/// Executes a locked read-modify-write; `change` returns the new value, or none
/// if nothing is written. Returns the old value.
///
/// # Safety
/// The same conditions as for [`load`].
pub unsafe fn update(
    address: usize,
    size: u8,
    site: usize,
    change: impl FnOnce(u64) -> Option<u64>,
) -> u64 {
    let engine = engine();
    engine.current().site.set(site);
    let place = reach_to_modify(engine, address, Ordering::AcqRel);
    // SAFETY: the caller's promise.
    let old = unsafe { read_bits(address, size) };
    let new = change(old).filter(|new| *new != old);
    // SAFETY: as above.
    unsafe { modified(engine, place, address, size, new) };
    old
}

/// Sleeps until another CPU calls [`wake`] for the word, but returns at once if the
/// word does not hold `expected`. Returns whether it slept.
///
/// # Safety
/// The same conditions as for [`load`], for four bytes.
pub unsafe fn sleep(address: usize, expected: u32, site: usize) -> bool {
    engine().current().site.set(site);
    // SAFETY: promised; the type has the layout of its value.
    unsafe { &*std::ptr::with_exposed_provenance::<Word<u32>>(address) }.sleep(expected)
}

/// Ends the [`sleep`] of at most so many CPUs on the word, of those that have slept the
/// longest. Returns how many those were.
pub fn wake(address: usize, most: usize, site: usize) -> usize {
    engine().current().site.set(site);
    kick::<Sim>(engine(), address, most)
}

/// Simulates a plain read, which the code itself makes when this has returned.
pub fn read(address: usize, size: u8, site: usize) {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if cpu.handed.replace((0, 0)) == (address, size) {
        return;
    }
    if !cpu.stores.is_empty() && has_store_at(engine, address, size) {
        // The code reads memory, which its own store has not reached.
        drain_all(engine);
    }
    let _ = reach_to_read(engine, address, size);
}

/// Simulates a plain write, which the code itself makes when this has returned:
/// it costs as much as a store, but its value is visible at once.
pub fn write(address: usize, size: u8, site: usize) {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if !cpu.stores.is_empty() && has_store_at(engine, address, size) {
        // An older store must not become visible after this one.
        drain_all(engine);
    }
    // SAFETY: of size 0, so that it writes nothing.
    unsafe { drain::store(engine, address, 0, 0, Ordering::Relaxed) };
}

/// A word that a loop has read: its address, size and value.
pub type Seen = (usize, u8, u64);

/// Pauses in a loop that will repeat, access for access, until one of the words
/// that it has `seen` changes. A round has this many `reads` and `pauses`. The
/// CPU pauses, and sleeps until a word changes, but continues at once if a word
/// has to be fetched again.
///
/// Where a round is one read and one pause, the awaited read is made here, and
/// the next [`load`] or [`read`] of the word is free of charge.
///
/// # Safety
/// The same conditions as for [`load`], for each word.
pub unsafe fn pause_until_change(seen: &[Seen], reads: u32, pauses: u32, site: usize) {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if let (&[(address, size, value)], 1, 1) = (seen, reads, pauses) {
        let mut awaited = (address, size, value);
        let data = (&raw mut awaited).cast();
        // SAFETY: `awaited` is on this stack, which stands still meanwhile.
        unsafe { spin::spin(engine, (address, size), 1, FOREVER, (changed, data), None) };
        cpu.handed.set((address, size));
        return;
    }
    pause();
    let costs = &engine.costs;
    sleep_until_change(
        engine,
        seen,
        u64::from(reads) * costs.l1 + u64::from(pauses) * costs.pause,
    );
}

/// Returns a [`crate::cpu::Step`].
///
/// # Safety
/// `data` is a [`Seen`] in simulated memory that no other code uses meanwhile.
unsafe fn changed(data: *mut ()) -> u32 {
    // SAFETY: promised.
    let (address, size, value) = unsafe { *data.cast::<Seen>() };
    // SAFETY: promised.
    if unsafe { read_bits(address, size) } == value {
        1
    } else {
        DONE
    }
}

/// Sleeps until one of several words changes.
fn sleep_until_change(engine: &Engine, seen: &[Seen], period: u64) {
    engine.sync();
    drain_all(engine);
    let who = engine.current.get();
    let cpu = engine.current();
    let now = engine.time.get();
    let core = cpu.core.get();
    let mut lines: Vec<usize> = seen.iter().map(|word| engine.line_of(word.0)).collect();
    lines.sort_unstable();
    lines.dedup();
    let good = lines
        .iter()
        .all(|&line| engine.lines[line].readable(core, now));
    // SAFETY: promised to `pause_until_change`.
    let same = |&(address, size, value): &Seen| unsafe { read_bits(address, size) == value };
    if seen.is_empty() || !good || !seen.iter().all(same) {
        return;
    }
    let (address, size, _) = seen[seen.len() - 1];
    cpu.word.set((address, size));
    for &line in &lines {
        watch(engine, line, who);
    }
    *cpu.watched.borrow_mut() = lines;
    cpu.spin.pace(now, period.max(1));
    cpu.event.set(0);
    if engine.hypervisor.ple > 0 {
        pause_until_exit(engine, who, now, engine.hypervisor.ple);
    }
    engine.suspend(Phase::Asleep);
    cpu.spin.ple.set(0);
}
