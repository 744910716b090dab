//! A lock that was used so often before that its counters are at their end.
//!
//! One thread takes and releases it, with no step of the model, past the wrap of
//! 16 bits. If memory has gone on by equal steps all the way, it is then put to
//! both sides of the wrap of each greater number of bits, and goes on from there.
//! Where the steps are no longer equal a counter wraps: the model begins just
//! before that, or after 2^64 - 1 uses if that is nowhere. If they have not been
//! equal, it begins after 65,535. So a file says nothing of its counters, and no
//! state is guessed that equal steps have not led to.

use super::client::Table;
use super::watch::Watch;
use super::world::with;
use crate::library::low;
use crate::memory::{memory, set_memory};
use std::ops::Range;

/// The uses after which a counter of 16 bits has its last value.
const USES: usize = 0xffff;

/// Uses before the first that is looked at: what they access is known then.
const FIRST: usize = 64;

/// Uses that are looked at one by one, for steps that repeat.
const SEEN: usize = 4_096;

/// The most uses after which slots have gone round: a power of two.
const MOST_PERIOD: usize = 1_024;

/// Uses on both sides of a wrap.
const NEAR: u64 = 4;

/// Describes what memory holds after so many uses.
struct Used(Vec<(usize, Vec<u8>)>);

/// Takes and releases a lock.
fn use_it(table: Table) {
    table.lock();
    table.unlock();
    with(|world| {
        if let Some(watch) = &mut world.watch {
            watch.uses = watch.uses.wrapping_add(1);
        }
    });
}

/// Brings the counters of a lock to their end, by uses with the context of this thread.
pub(super) fn use_up(table: Table) {
    if with(|world| world.used.is_none()) {
        let ranges = table.memory();
        with(|world| {
            world.watch = Some(Watch::of(ranges.clone(), table.facts().init));
        });
        go_on(table, &ranges);
        let used = Used::of(&ranges);
        with(|world| (world.watch, world.used) = (None, Some(used.0)));
    }
    let used = with(|world| world.used.clone().expect("made above"));
    Used(used).restore();
}

fn go_on(table: Table, ranges: &[Range<usize>; 3]) {
    let use_it = |times: usize| {
        for _ in 0..times {
            use_it(table);
        }
    };
    use_it(FIRST);
    let pieces = pieces();
    let seen: Vec<Vec<u64>> = (0..SEEN)
        .map(|_| {
            let values = values(&pieces);
            use_it(1);
            values
        })
        .collect();
    use_it(USES - FIRST - SEEN);
    let last = Used::of(ranges);
    let steps = Steps::of(&pieces, &seen);
    let goes_on = |steps: &Steps, uses: u64, times: usize| {
        (1..=times as u64).all(|more| {
            use_it(1);
            steps.after(uses.wrapping_add(more)) == values(&pieces)
        })
    };
    let equal = steps.filter(|steps| {
        // Every place among the slots, on the other side of the wrap.
        steps.after(USES as u64) == values(&pieces)
            && goes_on(steps, USES as u64, MOST_PERIOD)
            && pieces == self::pieces()
    });
    let Some(steps) = equal else {
        return last.restore();
    };
    // Where the steps end, as at the wrap of a counter that has less bits than
    // its memory, is as far as it is known to go.
    let end = (17..=64).map(|bits| u64::MAX >> (64 - bits)).find(|last| {
        let before = last - NEAR;
        set(&pieces, &steps.after(before));
        with(|world| {
            if let Some(watch) = &mut world.watch {
                watch.uses = before;
            }
        });
        !goes_on(&steps, before, 2 * NEAR as usize)
    });
    set(&pieces, &steps.after(end.unwrap_or(u64::MAX)));
}

/// Returns the pieces that all accesses so far divide memory into: first address and
/// bytes.
fn pieces() -> Vec<(usize, u32)> {
    let accessed = with(|world| world.watch.as_ref().map(|watch| watch.accessed.clone()));
    let accessed = accessed.unwrap_or_default();
    let mut borders: Vec<usize> = accessed
        .iter()
        .flat_map(|(address, bytes)| [*address, address + bytes])
        .collect();
    borders.sort_unstable();
    borders.dedup();
    let is_accessed = |piece: &&[usize]| {
        let mut before = accessed.range(..=(piece[0], usize::MAX)).rev();
        before.any(|(address, bytes)| piece[1] <= address + bytes)
    };
    let pieces = borders.windows(2).filter(is_accessed);
    pieces
        .map(|piece| (piece[0], (piece[1] - piece[0]) as u32))
        .collect()
}

fn set(pieces: &[(usize, u32)], values: &[u64]) {
    for (&(address, bytes), &value) in pieces.iter().zip(values) {
        // SAFETY: memory of the lock, of its context, or static data.
        unsafe { set_memory(address, bytes, value) };
    }
}

fn values(pieces: &[(usize, u32)]) -> Vec<u64> {
    let values = pieces.iter().map(|&(address, bytes)| {
        // SAFETY: memory of the lock, of its context, or static data.
        unsafe { memory(address, bytes) }
    });
    values.collect()
}

/// Holds by how much each piece goes on.
struct Steps {
    pieces: Vec<(usize, u32)>,
    /// The places after [`FIRST`] uses and after each one more, for as long as a period is.
    first: Vec<Vec<u64>>,
    /// The steps in a period, from each of them.
    steps: Vec<Vec<u64>>,
}

impl Steps {
    /// Returns the steps of the shortest period in which all that was seen goes on by
    /// equal ones.
    fn of(pieces: &[(usize, u32)], seen: &[Vec<u64>]) -> Option<Self> {
        let difference = |later: &[u64], earlier: &[u64]| -> Vec<u64> {
            let both = pieces.iter().zip(later.iter().zip(earlier));
            both.map(|((_, bytes), (later, earlier))| low(*bytes, later.wrapping_sub(*earlier)))
                .collect()
        };
        let mut periods = (0..).map(|n| 1 << n).take_while(|n| *n <= MOST_PERIOD);
        let (period, steps) = periods.find_map(|period| {
            let steps: Vec<_> = (0..period)
                .map(|place| difference(&seen[place + period], &seen[place]))
                .collect();
            let equal = (period..seen.len() - period)
                .all(|use_| difference(&seen[use_ + period], &seen[use_]) == steps[use_ % period]);
            equal.then_some((period, steps))
        })?;
        Some(Self {
            pieces: pieces.to_vec(),
            first: seen[..period].to_vec(),
            steps,
        })
    }

    /// Returns what the pieces hold after so many uses.
    fn after(&self, uses: u64) -> Vec<u64> {
        let period = self.steps.len() as u64;
        let later = uses.wrapping_sub(FIRST as u64);
        let (times, place) = (later / period, (later % period) as usize);
        let both = self.first[place].iter().zip(&self.steps[place]);
        let all = self.pieces.iter().zip(both);
        all.map(|((_, bytes), (first, step))| {
            low(*bytes, first.wrapping_add(step.wrapping_mul(times)))
        })
        .collect()
    }
}

impl Used {
    fn of(ranges: &[Range<usize>; 3]) -> Self {
        let bytes = ranges.iter().map(|range| {
            // SAFETY: memory of the lock, of its context, and static data; no
            // modelled thread changes it meanwhile.
            let bytes =
                unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) };
            (range.start, bytes.to_vec())
        });
        Self(bytes.collect())
    }

    fn restore(&self) {
        for (start, bytes) in &self.0 {
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), *start as *mut u8, bytes.len());
            }
        }
    }
}
