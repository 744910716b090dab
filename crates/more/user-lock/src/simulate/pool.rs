//! The memory of the locks and contexts of a simulation, and which of its lines
//! only one CPU has used. It must never simulate an access itself.

use crate::inspect::Facts;
use crate::library::Library;
use locklab_sim::Scenario;
use locklab_sim::by_address::Region;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ops::Range;

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// The memory of locks and contexts, in lines of their own.
pub(super) struct Pool {
    memory: &'static mut [Line],
    labels: Vec<(Range<usize>, String)>,
    pub(super) lock: usize,
    pub(super) ctx: usize,
    pub(super) locks: usize,
    pub(super) locks_given: Cell<usize>,
    pub(super) contexts_given: Cell<usize>,
    /// The CPU that has used each line.
    users: Vec<Cell<u16>>,
    /// Lines that are not in the pool, such as a stack's, and are shared.
    elsewhere: RefCell<HashSet<usize>>,
}

/// No CPU has used the line.
const NOBODY: u16 = 0;
/// Several CPUs have used the line, or one by an atomic access.
const SHARED: u16 = u16::MAX;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; LINE]);

impl Pool {
    pub(super) fn new(facts: &Facts, scenario: &Scenario) -> Self {
        let lines = |bytes: usize| bytes.div_ceil(LINE).max(1) * LINE;
        let (lock, ctx) = (lines(facts.lock_bytes), lines(facts.ctx_bytes));
        let locks = scenario.workload.locks();
        let total = locks * lock + scenario.threads * locks * ctx;
        let memory = vec![Line([0; LINE]); total / LINE].leak();
        let users = vec![Cell::new(NOBODY); total / LINE];
        let start = memory.as_ptr() as usize;
        let mut labels = Vec::new();
        let mut at = start;
        let mut label = |bytes: usize, room: usize, text: String| {
            if bytes > 0 {
                labels.push((at..at + bytes, text));
            }
            at += room;
        };
        let name = |what: &str, n: usize| match locks {
            1 => what.to_owned(),
            _ => format!("{what} {n}"),
        };
        for n in 0..locks {
            label(facts.lock_bytes, lock, name("lock", n));
        }
        for cpu in 0..scenario.threads {
            for n in 0..locks {
                label(
                    facts.ctx_bytes,
                    ctx,
                    format!("{} of CPU {cpu}", name("context", n)),
                );
            }
        }
        Self {
            memory,
            labels,
            lock,
            ctx,
            locks,
            locks_given: Cell::new(0),
            contexts_given: Cell::new(0),
            users,
            elsewhere: RefCell::default(),
        }
    }

    pub(super) fn start(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// Returns whether a plain access is to a line that only this CPU, whose code has the
    /// stack `own`, has ever used, and only by plain accesses: private data, whose
    /// latency an out-of-order CPU hides, and which a Rust lock keeps outside the
    /// platform's atomics (or in registers: a variable whose address the compiler needs
    /// for a report is one of them).
    pub(super) fn is_private(&self, address: usize, cpu: usize, own: &Range<usize>) -> bool {
        let line = address.wrapping_sub(self.start()) / LINE;
        let Some(user) = self.users.get(line) else {
            let elsewhere = &mut *self.elsewhere.borrow_mut();
            let line = address / LINE;
            if own.contains(&address) {
                return elsewhere.is_empty() || !elsewhere.contains(&line);
            }
            elsewhere.insert(line);
            return false;
        };
        let me = cpu as u16 + 1;
        if user.get() == NOBODY || user.get() == me {
            user.set(me);
            return true;
        }
        user.set(SHARED);
        false
    }

    /// Notes an atomic access.
    pub(super) fn share(&self, address: usize) {
        let line = address.wrapping_sub(self.start()) / LINE;
        match self.users.get(line) {
            Some(user) => user.set(SHARED),
            None => {
                self.elsewhere.borrow_mut().insert(address / LINE);
            }
        }
    }

    pub(super) fn regions(&self, library: &Library) -> Vec<Region> {
        let start = library.data.start / LINE * LINE;
        let mut regions = vec![Region {
            addresses: self.start()..self.start() + self.memory.len() * LINE,
            labels: self.labels.clone(),
        }];
        if !library.data.is_empty() {
            regions.push(Region {
                addresses: start..library.data.end,
                labels: vec![(library.data.clone(), "static data".into())],
            });
        }
        regions
    }
}
