//! Predicts where a branch goes: two levels of a branch target buffer, the targets of
//! indirect branches by path, and the return stack.

use crate::direction::Path;
use crate::processor::Processor;
use crate::sets::{Sets, Used};

/// Says where the branch target buffer has a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    First,
    Second,
    Nowhere,
}

/// Says what the return stack has for a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Popped {
    Address(u64),
    Empty,
    /// The call was made before the front end resumed.
    Unknown,
}

/// A target of an indirect branch on one path.
#[derive(Clone, Copy, Debug, Default)]
struct OnPath {
    tag: u32,
    /// The flushes that had happened when it was learnt.
    flushes: u32,
    target: u64,
}

/// The predictors of targets.
#[derive(Debug)]
pub(crate) struct Targets {
    first: Sets,
    second: Sets,
    /// When each branch was used last, by its number.
    used: Vec<Used>,
    /// Says when both levels were emptied last.
    since: u64,
    on_path: Vec<OnPath>,
    returns: Vec<u64>,
    /// Says where the next return address goes.
    top: usize,
    /// Return addresses that are held.
    depth: usize,
    /// Calls since the front end resumed that have not returned; so many that they never do,
    /// if it did not resume.
    entered: u64,
    pub(crate) flushes: u32,
}

impl Targets {
    pub(crate) fn new(processor: &Processor) -> Self {
        let size = |figure: &crate::processor::Figure| figure.value as usize;
        Targets {
            first: Sets::new(0, size(&processor.btb1_entries), size(&processor.btb1_ways)),
            second: Sets::new(1, size(&processor.btb2_entries), size(&processor.btb2_ways)),
            used: Vec::new(),
            since: 0,
            on_path: vec![
                OnPath::default();
                size(&processor.indirect_entries).max(1).next_power_of_two()
            ],
            returns: vec![0; size(&processor.return_stack).max(1)],
            top: 0,
            depth: 0,
            entered: u64::MAX / 2,
            flushes: 0,
        }
    }

    /// Looks up a taken branch, and enters it.
    #[inline(always)]
    pub(crate) fn find(&mut self, branch: u32, address: u64, now: u64) -> Found {
        match self.used.get_mut(branch as usize) {
            Some(used) if used.iter().all(|&used| used > self.since) => {
                *used = [now; 2];
                Found::First
            }
            _ => self.enter(branch, address, now),
        }
    }

    /// Looks up a taken branch that one level does not have.
    #[inline(never)]
    fn enter(&mut self, branch: u32, address: u64, now: u64) -> Found {
        let index = branch as usize;
        if index >= self.used.len() {
            let length = (index + 1).next_multiple_of(1 << 14);
            self.used.resize(length, Used::default());
        }
        // Neighbours lie in different sets.
        let hash = (address >> 1 ^ address >> 4 ^ address >> 10 ^ address >> 16) as u32;
        let times = (now, self.since);
        let first = self.first.touch(branch, hash, times, &mut self.used);
        let second = self.second.touch(branch, hash, times, &mut self.used);
        match (first, second) {
            (true, _) => Found::First,
            (false, true) => Found::Second,
            (false, false) => Found::Nowhere,
        }
    }

    /// Returns the target of an indirect branch on this path, if it is known, and learns
    /// `target`.
    pub(crate) fn on_path(&mut self, address: u64, path: &Path, target: u64) -> Option<u64> {
        // The second path length: some thirty branches.
        let hash = path.hash(1, address);
        let tag = (hash >> 40) as u32 | 1;
        let place = hash as usize & (self.on_path.len() - 1);
        let entry = &mut self.on_path[place];
        let known = (entry.tag == tag && entry.flushes == self.flushes).then_some(entry.target);
        *entry = OnPath {
            tag,
            flushes: self.flushes,
            target,
        };
        known
    }

    /// Notes the return address of a call. The oldest is lost when the stack is full.
    #[inline(always)]
    pub(crate) fn call(&mut self, next: u64) {
        self.returns[self.top] = next;
        self.top = if self.top + 1 == self.returns.len() {
            0
        } else {
            self.top + 1
        };
        self.depth = (self.depth + 1).min(self.returns.len());
        self.entered += 1;
    }

    /// Returns where a return goes, by the stack.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Popped {
        if self.entered == 0 {
            return Popped::Unknown;
        }
        self.entered -= 1;
        if self.depth == 0 {
            return Popped::Empty;
        }
        self.depth -= 1;
        self.top = self.top.checked_sub(1).unwrap_or(self.returns.len() - 1);
        Popped::Address(self.returns[self.top])
    }

    /// Empties the return stack, whose calls have returned or not while nothing was executed
    /// here.
    pub(crate) fn resume(&mut self) {
        (self.depth, self.entered) = (0, 0);
    }

    /// Forgets the targets of indirect branches, and with `direct` those of others too.
    pub(crate) fn flush(&mut self, direct: bool, now: u64) {
        self.flushes += 1;
        if direct {
            self.since = now;
        }
    }
}
