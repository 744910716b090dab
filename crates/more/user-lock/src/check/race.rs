//! Data races of the code: two accesses of the same memory, of which one at
//! least writes and one at least is plain, and neither happens before the other
//! (C11, 5.1.2.4).
//!
//! What races has no meaning in C, so a race is a failed promise, whatever the
//! values that the model lets the code see. Each piece of memory that is
//! accessed by a plain read or write remembers when each thread last accessed
//! it, and how. This module must never take a step of the model itself.

use locklab_verify::{MAX_THREADS, Moment, Place};
use std::collections::BTreeSet;
use std::ops::Range;

/// Describes how memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) plain: bool,
    pub(super) writes: bool,
}

impl Access {
    pub(super) const ATOMIC_READ: Self = Self {
        plain: false,
        writes: false,
    };
    pub(super) const ATOMIC_WRITE: Self = Self {
        plain: false,
        writes: true,
    };

    fn races_with(self, other: Self) -> bool {
        (self.writes || other.writes) && (self.plain || other.plain)
    }

    fn kind(self) -> usize {
        2 * usize::from(self.plain) + usize::from(self.writes)
    }

    fn name(self) -> &'static str {
        match (self.plain, self.writes) {
            (true, true) => "plain write",
            (true, false) => "plain read",
            (false, true) => "atomic write",
            (false, false) => "atomic read",
        }
    }
}

const KINDS: [Access; 4] = [
    Access::ATOMIC_READ,
    Access::ATOMIC_WRITE,
    Access {
        plain: true,
        writes: false,
    },
    Access {
        plain: true,
        writes: true,
    },
];

/// Holds when each thread last accessed a piece of memory in each way, and where.
#[derive(Default)]
struct Dates([[Option<(Moment, Place)>; KINDS.len()]; MAX_THREADS]);

/// The memory that plain reads and writes access.
pub(super) struct Raced {
    /// Says whether anything is noted.
    checked: bool,
    /// Every plain access ever made in this child: address and bytes.
    plain: BTreeSet<(usize, usize)>,
    /// The pieces that these divide memory into in this execution, in the order
    /// of their addresses.
    pieces: Vec<(Range<usize>, Dates)>,
}

impl Raced {
    pub(super) fn new(checked: bool) -> Self {
        Self {
            checked,
            plain: BTreeSet::new(),
            pieces: Vec::new(),
        }
    }

    /// Begins an execution; discards what a failed or cut one has left.
    pub(super) fn begin(&mut self) {
        std::mem::forget(std::mem::take(&mut self.pieces));
    }

    /// Learns of a plain access; returns whether it is news, and the model
    /// begins again.
    pub(super) fn learns(&mut self, address: usize, bytes: usize) -> bool {
        self.checked && self.plain.insert((address, bytes))
    }

    /// Returns this moment, for each piece that is about to be accessed.
    pub(super) fn before(&mut self, address: usize, bytes: usize) -> Vec<Moment> {
        let touched = self.overlapping(address, bytes).count();
        (0..touched).map(|_| Moment::now()).collect()
    }

    /// Notes that thread `me` has made an access, which began then, and is ordered by what
    /// it has read. Returns what it races with, and where that was.
    pub(super) fn after(
        &mut self,
        me: usize,
        (address, bytes): (usize, usize),
        (access, place): (Access, Place),
        began: Vec<Moment>,
    ) -> Option<(Access, Place)> {
        let touched = self.overlapping(address, bytes).zip(began);
        touched.fold(None, |race, ((_, Dates(dates)), began)| {
            dates[me][access.kind()] = Some((began, place));
            let others = dates.iter().enumerate().filter(|(cpu, _)| *cpu != me);
            let accesses = others.flat_map(|(_, dates)| KINDS.iter().zip(dates));
            let mut racing = accesses
                .filter(|(other, _)| access.races_with(**other))
                .filter_map(|(other, date)| Some((other, date.as_ref()?)));
            let found = racing.find(|(_, (date, _))| !date.has_passed());
            race.or(found.map(|(other, (_, at))| (*other, *at)))
        })
    }

    fn overlapping(
        &mut self,
        address: usize,
        bytes: usize,
    ) -> impl Iterator<Item = &mut (Range<usize>, Dates)> {
        let first = self
            .pieces
            .partition_point(|(piece, _)| piece.end <= address);
        let all = self.pieces[first..].iter_mut();
        all.take_while(move |(piece, _)| piece.start < address + bytes)
    }

    /// Divides the memory from `start` to `end`, which is about to be used.
    pub(super) fn divide(&mut self, start: usize, end: usize) {
        let known = self.plain.range((start, 0)..(end, 0));
        let plain: Vec<(usize, usize)> = known.copied().collect();
        let mut borders: Vec<usize> = plain
            .iter()
            .flat_map(|(address, bytes)| [*address, address + bytes])
            .collect();
        borders.sort_unstable();
        borders.dedup();
        let accessed = |piece: &[usize]| {
            plain
                .iter()
                .any(|(address, bytes)| *address <= piece[0] && piece[1] <= address + bytes)
        };
        let pieces = borders.windows(2).filter(|piece| accessed(piece));
        let pieces: Vec<_> = pieces
            .map(|piece| (piece[0]..piece[1], Dates::default()))
            .collect();
        self.pieces
            .retain(|(piece, _)| !(start..end).contains(&piece.start));
        self.pieces.extend(pieces);
        self.pieces.sort_by_key(|(piece, _)| piece.start);
    }
}

/// Returns what a race is called.
pub(super) fn describe((access, place): (Access, Place), (other, at): (Access, Place)) -> String {
    let (access, other) = (access.name(), other.name());
    format!(
        "data race: the {access} at {place} and the {other} at {at} of another thread are not \
         ordered; make both atomic"
    )
}
