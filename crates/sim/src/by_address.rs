//! The simulator for code that is not generic over [`crate::Sim`]: accesses
//! by address and size, as the instrumented code of a C library reports them.
//!
//! Each function acts for the simulated CPU whose code is running, and may
//! switch to other CPUs before it returns. A `site` is the address of the
//! instruction that makes the access: reports name its source line by
//! [`Memory::place_of`]. Must never be called outside a simulation.

use crate::engine::{Engine, Phase, engine};
use crate::spin::{DONE, FOREVER};
use crate::store_buffer::read as read_bits;
use locklab_locks::platform::Ordering;
use std::ops::Range;

/// Bytes outside the arena that are simulated memory too.
#[derive(Clone, Debug)]
pub struct Region {
    /// Addresses; the first is that of a cache line.
    pub addresses: Range<usize>,
    /// Descriptions of what lies in it: `lock`, `context of CPU 3`.
    pub labels: Vec<(Range<usize>, String)>,
}

impl Region {
    /// A description of the object at an address: `lock+4`.
    pub(crate) fn describe(&self, address: usize) -> String {
        let at = |(range, _): &&(Range<usize>, String)| range.contains(&address);
        match self.labels.iter().find(at) {
            Some((range, label)) if range.start == address => label.clone(),
            Some((range, label)) => format!("{label}+{}", address - range.start),
            None => format!("{address:#x}"),
        }
    }

    /// A description of the object in the line that begins at an address.
    pub(crate) fn describe_line(&self, start: usize) -> String {
        let within = |(range, _): &&(Range<usize>, String)| {
            range.start < start + crate::arena::LINE && start < range.end
        };
        match self.labels.iter().find(within) {
            Some((_, label)) => label.clone(),
            None => format!("the line at {start:#x}"),
        }
    }
}

/// The memory of a lock that does not live in its Rust type alone.
#[derive(Default)]
pub struct Memory<'a> {
    /// Disjoint regions.
    pub regions: Vec<Region>,
    /// The source line of a site: `mylock.c:12`.
    pub place_of: Option<&'a dyn Fn(usize) -> Option<String>>,
}

/// The number of the running CPU.
pub fn cpu() -> usize {
    engine().current.get()
}

/// The NUMA node of the running CPU.
pub fn node() -> usize {
    <crate::Sim as locklab_locks::Platform>::node()
}

/// The time of the running CPU, in cycles.
pub fn cycles() -> u64 {
    engine().time.get()
}

/// The site of the latest access of a CPU; 0 if it has made none.
pub fn site_of(cpu: usize) -> usize {
    engine().cpus[cpu].site.get()
}

/// Whether an address is simulated memory, including the stacks of CPUs.
pub fn is_simulated(address: usize) -> bool {
    engine().line_at(address).is_some()
}

/// Executes one pause.
pub fn pause() {
    <crate::Sim as locklab_locks::Platform>::relax();
}

/// Executes a full fence.
pub fn fence() {
    <crate::Sim as locklab_locks::Platform>::fence(locklab_locks::platform::Ordering::SeqCst);
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
    match engine.reach_to_read(address, size) {
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
    unsafe { engine.store(address, size, value, Ordering::Release) };
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
    let place = engine.reach_to_modify(address, Ordering::AcqRel);
    // SAFETY: the caller's promise.
    let old = unsafe { read_bits(address, size) };
    let new = change(old).filter(|new| *new != old);
    // SAFETY: as above.
    unsafe { engine.modified(place, address, size, new) };
    old
}

/// Simulates a plain read, which the code itself makes when this has returned.
pub fn read(address: usize, size: u8, site: usize) {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if cpu.handed.replace((0, 0)) == (address, size) {
        return;
    }
    if !cpu.stores.is_empty() && engine.has_store_at(address, size) {
        // The code reads memory, which its own store has not reached.
        engine.drain_all();
    }
    let _ = engine.reach_to_read(address, size);
}

/// Simulates a plain write, which the code itself makes when this has returned:
/// it costs as much as a store, but its value is visible at once.
pub fn write(address: usize, size: u8, site: usize) {
    let engine = engine();
    let cpu = engine.current();
    cpu.site.set(site);
    if !cpu.stores.is_empty() && engine.has_store_at(address, size) {
        // An older store must not become visible after this one.
        engine.drain_all();
    }
    // SAFETY: of size 0, so that it writes nothing.
    unsafe { engine.store(address, 0, 0, Ordering::Relaxed) };
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
        unsafe { engine.spin((address, size), 1, FOREVER, (changed, data), None) };
        cpu.handed.set((address, size));
        return;
    }
    pause();
    let costs = &engine.costs;
    engine.sleep(
        seen,
        u64::from(reads) * costs.l1 + u64::from(pauses) * costs.pause,
    );
}

/// A [`crate::spin::Step`].
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

impl Engine {
    /// Sleeps until one of several words changes.
    fn sleep(&self, seen: &[Seen], period: u64) {
        self.sync();
        self.drain_all();
        let who = self.current.get();
        let cpu = self.current();
        let now = self.time.get();
        let core = cpu.core.get();
        let mut lines: Vec<usize> = seen.iter().map(|word| self.line_of(word.0)).collect();
        lines.sort_unstable();
        lines.dedup();
        let good = lines
            .iter()
            .all(|&line| self.lines[line].readable(core, now));
        // SAFETY: promised to `pause_until_change`.
        let same = |&(address, size, value): &Seen| unsafe { read_bits(address, size) == value };
        if seen.is_empty() || !good || !seen.iter().all(same) {
            return;
        }
        let (address, size, _) = seen[seen.len() - 1];
        cpu.word.set((address, size));
        for &line in &lines {
            self.watch(line, who);
        }
        *cpu.watched.borrow_mut() = lines;
        cpu.spin.pace(now, period.max(1));
        cpu.event.set(0);
        if self.hypervisor.ple > 0 {
            self.pause_until_exit(who, now, self.hypervisor.ple);
        }
        self.suspend(Phase::Asleep);
        cpu.spin.ple.set(0);
    }

    /// Ends the sleep of a CPU that watches several lines, except on `but`.
    pub(crate) fn stop_sleep(&self, who: usize, but: Option<usize>) {
        let cpu = &self.cpus[who];
        for line in cpu.watched.take() {
            if Some(line) != but {
                self.unwatch(line, who);
            }
        }
        cpu.phase.set(Phase::Sync);
    }
}
