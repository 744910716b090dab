//! The work of threads under a lock and outside it: the units of the kernel
//! benchmark of the virt-spin report, or an fstat(2).
//!
//! A unit is a few nested calls and one copy of 12 bytes, made so that
//! it takes about 15 cycles; each copy reads what the copy before wrote, so
//! units do not overlap. Its code has no branch whose direction changes: a
//! recursive call and a loop over units, as in the report, cost one misprediction
//! a turn or none, for seconds at a time, by the state of the predictor, and that
//! was worth 20 % of a short turn (Zen 5). Critical units copy inside the line that all threads
//! share, non-critical ones inside a private one. The line also holds what
//! every holder writes: its number (for handoffs) and the turn (to check
//! mutual exclusion). That costs each acquisition about five instructions,
//! the same for both locks, and no cache line beyond the one that the unit
//! touches anyway.
//!
//! This module never acquires a lock, and reads a clock only to calibrate the
//! unit.

use locklab_host::clock;
use locklab_host::error::Error;
use locklab_workload::Unit;
use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Describes what each holder of a lock writes.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Head {
    /// Number of the last holder; 0 for none.
    owner: AtomicU64,
    /// Acquisitions so far, by plain addition: two holders at once lose some.
    turns: AtomicU64,
}

/// One cache line: a head that counts and four slots of 12 bytes.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Section {
    head: Head,
    slots: UnsafeCell<[[u8; 12]; 4]>,
}

// SAFETY: `slots` is only touched through `units`, whose callers hold the
// lock or own the section.
unsafe impl Sync for Section {}

impl Head {
    /// Enters a section; see [`Section::enter`].
    #[inline(always)]
    pub(crate) fn enter(&self, me: u64) -> bool {
        // These are not read-modify-writes: the lock under test must make
        // them safe, and `turns` shows it if it does not.
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns + 1, Ordering::Relaxed);
        let handoff = self.owner.load(Ordering::Relaxed) != me;
        if handoff {
            self.owner.store(me, Ordering::Relaxed);
        }
        handoff
    }

    /// Returns the turns of a section; see [`Section::turns`].
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

impl Section {
    /// Notes that `me` has the lock; returns whether another worker had it
    /// before.
    #[inline(always)]
    pub fn enter(&self, me: u64) -> bool {
        self.head.enter(me)
    }

    /// Returns what a writer notes in the other lines that it writes: the turn of the
    /// first.
    #[inline(always)]
    pub(crate) fn follow(lines: &[Self]) {
        if let [first, others @ ..] = lines {
            let turn = first.head.turns.load(Ordering::Relaxed);
            for line in others {
                line.head.turns.store(turn, Ordering::Relaxed);
            }
        }
    }

    /// Reads every line; returns the turn of the first, or `None` if a writer
    /// has written some of them and not all.
    #[inline(always)]
    pub(crate) fn read(lines: &[Self]) -> Option<u64> {
        let turn = lines.first()?.head.turns.load(Ordering::Relaxed);
        let same = |line: &Self| line.head.turns.load(Ordering::Relaxed) == turn;
        // Without a short cut: all of them are read.
        let torn = lines.iter().filter(|line| !same(line)).count();
        (torn == 0).then_some(turn)
    }

    /// Returns the acquisitions that were not lost.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.head.turns()
    }

    /// Does `count` units in this line, inside a critical section.
    ///
    /// # Safety
    /// No other thread is in the units of this section.
    #[inline(always)]
    pub unsafe fn units(&self, count: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.units_at::<0>(count) };
    }

    /// Does `count` units in this line, outside critical sections.
    ///
    /// # Safety
    /// As for [`Section::units`].
    #[inline(always)]
    pub(crate) unsafe fn units_outside(&self, count: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.units_at::<1>(count) };
    }

    // There is one copy for all locks: the alignment of a copy in each lock's
    // loop was worth seven percent of a long critical section, and was mistaken
    // for an effect of the lock. There is one for each `PLACE` in a turn, where the
    // number of units is the same in every turn, so that each branch has one
    // direction.
    #[inline(never)]
    unsafe fn units_at<const PLACE: usize>(&self, count: u64) {
        // Without it the copies are the same code, and the compiler keeps one.
        // SAFETY: a comment.
        unsafe { core::arch::asm!("/* {} */", const PLACE, options(nomem, nostack)) };
        let slots = self.slots.get().cast();
        // SAFETY: our slots; the caller keeps others out.
        unsafe {
            for _ in 0..count / 64 {
                sixteen(slots);
                sixteen(slots);
                sixteen(slots);
                sixteen(slots);
            }
            if count & 32 != 0 {
                sixteen(slots);
                sixteen(slots);
            }
            if count & 16 != 0 {
                sixteen(slots);
            }
            if count & 8 != 0 {
                four(slots);
                four(slots);
            }
            if count & 4 != 0 {
                four(slots);
            }
            match count & 3 {
                0 => {}
                1 => unit(slots, 0),
                2 => {
                    unit(slots, 0);
                    unit(slots, 1);
                }
                _ => {
                    unit(slots, 0);
                    unit(slots, 1);
                    unit(slots, 2);
                }
            }
        }
    }
}

type Slot = [u8; 12];

/// Works one unit, from this of four slots to the next.
///
/// # Safety
/// Nobody else uses the slots; `from` is below 4.
#[inline(always)]
unsafe fn unit(slots: *mut Slot, from: usize) {
    descend();
    // SAFETY: both are below 4, so in bounds; they differ, so they do not
    // overlap; the caller keeps others out.
    unsafe {
        slots
            .add(from)
            .copy_to_nonoverlapping(slots.add((from + 1) % 4), 1);
    }
}

/// Works four units.
///
/// # Safety
/// Nobody else uses the slots.
#[inline(always)]
unsafe fn four(slots: *mut Slot) {
    // SAFETY: the caller's promise.
    unsafe {
        unit(slots, 0);
        unit(slots, 1);
        unit(slots, 2);
        unit(slots, 3);
    }
}

/// Works sixteen units.
///
/// # Safety
/// Nobody else uses the slots.
#[inline(always)]
unsafe fn sixteen(slots: *mut Slot) {
    // SAFETY: the caller's promise.
    unsafe {
        four(slots);
        four(slots);
        four(slots);
        four(slots);
    }
}

/// Does `count` units, each in the line after that of the one before.
///
/// # Safety
/// As for [`Section::units`], for each of these.
#[inline(never)]
pub(crate) unsafe fn units_over(lines: &[Section], count: u64) {
    let (mut before, mut at) = (0, 0);
    for unit in 0..count {
        descend();
        let (from, to) = ((unit % 4) as usize, ((unit + 1) % 4) as usize);
        let slots = |line: usize| lines[line].slots.get().cast::<Slot>();
        // SAFETY: as in `units`.
        unsafe {
            let from = slots(before).add(from);
            from.copy_to_nonoverlapping(slots(at).add(to), 1);
        }
        before = at;
        at = if at + 1 == lines.len() { 0 } else { at + 1 };
    }
}

/// Makes three nested calls, of functions that no compiler merges or inlines: a unit
/// takes 13 cycles on a Zen 5, where each call and return takes four.
#[inline(never)]
fn descend() -> usize {
    opaque(below() + 2)
}

#[inline(never)]
fn below() -> usize {
    opaque(lowest() + 1)
}

#[inline(never)]
fn lowest() -> usize {
    opaque(0)
}

/// Returns the identity, unknown to the compiler, without an instruction. It may touch
/// memory as far as the compiler knows, so copies stay between calls.
#[inline(always)]
fn opaque(value: usize) -> usize {
    let mut value = value;
    // SAFETY: an empty template.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) value, options(nostack, preserves_flags)) };
    value
}

/// The critical section of one thread.
#[derive(Clone, Copy, Debug)]
pub enum Critical {
    /// It computes for so many units.
    Units(u64),
    /// One fstat(2) of this file.
    Fstat(RawFd),
}

/// Calls fstat on `file`; returns whether it succeeded.
#[inline(always)]
pub fn fstat(file: RawFd) -> bool {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat writes at most one stat, into ours; any number is a legal
    // file descriptor.
    unsafe { libc::fstat(file, stat.as_mut_ptr()) == 0 }
}

/// The time of a unit on this CPU.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Nanoseconds of one unit among many.
    pub unit_ns: f64,
    /// Nanoseconds of one cycle, by a chain of dependent complements.
    pub cycle_ns: f64,
}

impl Calibration {
    /// Measures for about 10 ms; takes the least of many short rounds, which is
    /// what an undisturbed CPU at its present frequency takes.
    #[must_use]
    pub fn measure() -> Self {
        const UNITS: u64 = 10_000;
        const COMPLEMENTS: u64 = 100_000;
        let section = Section::default();
        let (mut units, mut chained) = (u64::MAX, u64::MAX);
        for _ in 0..50 {
            let start = clock::now();
            // SAFETY: the section is ours.
            unsafe { section.units(UNITS) };
            let middle = clock::now();
            steps(COMPLEMENTS / STEP);
            units = units.min(middle - start);
            chained = chained.min(clock::now() - middle);
        }
        Self {
            unit_ns: (units as f64 / UNITS as f64).max(0.01),
            cycle_ns: (chained as f64 / COMPLEMENTS as f64).max(0.01),
        }
    }

    /// Returns the nanoseconds of one step.
    #[must_use]
    pub(crate) fn step_ns(&self) -> f64 {
        self.cycle_ns * STEP as f64
    }

    /// Returns the units of a section of length `n`.
    ///
    /// # Errors
    /// If the number of units is too large to count.
    pub fn units(&self, n: u64, unit: Unit) -> Result<u64, Error> {
        match unit {
            Unit::Units => n.checked_add(1).ok_or_else(|| {
                Error::Usage(format!(
                    "a length of {n} is {n} + 1 units, which is more than a machine can count"
                ))
            }),
            // Saturates; the plan refuses whatever does not fit a run.
            Unit::Nanoseconds => Ok((n as f64 / self.unit_ns).round() as u64),
        }
    }
}

/// Complements in a step.
const STEP: u64 = 8;

/// Computes for so many steps of eight cycles: complements that wait for one another, one
/// cycle each. Additions of a constant are not: since Golden Cove, several of a chain are
/// done in one cycle, before they are issued. Nothing but registers is used, so that a
/// step takes as long wherever it runs, and whatever ran before; a unit, which has calls
/// and copies, takes 4.0 or 5.4 ns on a Zen 3, by the state that the processor is in.
#[inline(never)]
pub(crate) fn steps(count: u64) -> usize {
    steps_from(0, count)
}

/// Does the same with a value that must be known first, and returns that value.
#[inline(always)]
pub(crate) fn steps_from(mut value: usize, count: u64) -> usize {
    // Written out, so that little else is counted in a build that unrolls no loop.
    for _ in 0..count {
        value = !opaque(!opaque(!opaque(!opaque(value))));
        value = !opaque(!opaque(!opaque(!opaque(value))));
    }
    opaque(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_counts_turns_and_owners() {
        let section = Section::default();
        assert_eq!(
            [1, 1, 2, 1].map(|me| section.enter(me)),
            [true, false, true, true]
        );
        assert_eq!(section.turns(), 4);
    }

    #[test]
    fn a_reader_finds_lines_that_a_writer_has_not_all_written() {
        let lines: [Section; 3] = Default::default();
        lines[0].enter(1);
        assert_eq!(Section::read(&lines), None);
        Section::follow(&lines);
        assert_eq!(Section::read(&lines), Some(1));
        // SAFETY: ours.
        unsafe {
            (*lines[0].slots.get())[0] = *b"twelve bytes";
            units_over(&lines, 3);
            assert_eq!(&(*lines[2].slots.get())[3], b"twelve bytes");
        }
    }

    #[test]
    fn each_unit_copies_what_the_one_before_wrote() {
        let section = Section::default();
        // SAFETY: ours.
        unsafe {
            (*section.slots.get())[0] = *b"twelve bytes";
            section.units(3);
            assert_eq!(&(*section.slots.get())[3], b"twelve bytes");
        }
    }

    #[test]
    fn any_number_of_units_ends_in_the_slot_of_the_last() {
        for count in 0..300_u64 {
            let section = Section::default();
            // SAFETY: ours.
            unsafe {
                (*section.slots.get())[0] = *b"twelve bytes";
                section.units(count);
                section.units_outside(0);
                let slots = &*section.slots.get();
                assert_eq!(&slots[(count % 4) as usize], b"twelve bytes", "{count}");
                // Fewer than four leave the slots behind the last as they were.
                let written = slots.iter().filter(|slot| *slot != &[0; 12]).count();
                assert_eq!(written as u64, (count + 1).min(4), "{count}");
            }
        }
    }

    #[test]
    fn lengths_become_units_or_a_sentence() {
        let calibration = Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.25,
        };
        assert_eq!(calibration.units(0, Unit::Units), Ok(1));
        assert_eq!(calibration.units(128, Unit::Units), Ok(129));
        assert!(calibration.units(u64::MAX, Unit::Units).is_err());
        assert_eq!(calibration.units(0, Unit::Nanoseconds), Ok(0));
        assert_eq!(calibration.units(100, Unit::Nanoseconds), Ok(25));
        assert_eq!(
            calibration.units(u64::MAX, Unit::Nanoseconds),
            Ok(4_611_686_018_427_387_904)
        );
    }

    #[test]
    fn the_kernel_answers_for_an_open_file_only() {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile().unwrap();
        assert!(fstat(file.as_raw_fd()));
        assert!(!fstat(-1));
    }
}
