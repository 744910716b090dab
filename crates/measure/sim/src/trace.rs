//! A trace of a short run for viewing: the JSON that Perfetto
//! and Chrome's `about:tracing` open.
//!
//! Each CPU is a thread with its waits and holds; each line that moves is a
//! mark on the CPU that asked for it.

use crate::requests::Want;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};

/// The most entries that are kept: about as many as a viewer opens easily.
const MOST: usize = 200_000;

/// The entries so far.
pub(crate) struct Trace {
    clock_ghz: f64,
    entries: RefCell<Vec<Value>>,
    held: RefCell<Vec<(u64, usize)>>,
    dropped: Cell<u64>,
}

impl Trace {
    pub(crate) fn new(clock_ghz: f64, cpus: usize) -> Self {
        let entries = (0..cpus)
            .map(|cpu| json!({"ph": "M", "name": "thread_name", "pid": 0, "tid": cpu, "args": {"name": format!("CPU {cpu}")}}))
            .collect();
        Self {
            clock_ghz,
            entries: RefCell::new(entries),
            held: RefCell::new(vec![(0, 0); cpus]),
            dropped: Cell::new(0),
        }
    }

    fn us(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock_ghz / 1e3
    }

    fn add(&self, entry: Value) {
        let mut entries = self.entries.borrow_mut();
        if entries.len() < MOST {
            entries.push(entry);
        } else {
            self.dropped.set(self.dropped.get() + 1);
        }
    }

    fn span(&self, cpu: usize, name: String, from: u64, to: u64) {
        self.add(json!({"ph": "X", "pid": 0, "tid": cpu, "name": name,
            "ts": self.us(from), "dur": self.us(to - from)}));
    }

    pub(crate) fn acquired(&self, cpu: usize, lock: usize, since: u64, now: u64) {
        self.span(cpu, format!("waits for lock {lock}"), since, now);
        self.held.borrow_mut()[cpu] = (now, lock);
    }

    pub(crate) fn releases(&self, cpu: usize, now: u64) {
        let (since, lock) = self.held.borrow()[cpu];
        self.span(cpu, format!("holds lock {lock}"), since, now);
    }

    pub(crate) fn descheduled(&self, cpu: usize, now: u64) {
        self.add(json!({"ph": "i", "s": "t", "pid": 0, "tid": cpu, "name": "descheduled", "ts": self.us(now)}));
    }

    pub(crate) fn transfer(&self, line: &str, cpu: usize, want: Want, now: u64, transfer: u64) {
        let want = match want {
            Want::Shared => "read",
            Want::Ahead => "read ahead",
            Want::AheadToWrite => "write ahead",
            Want::Exclusive | Want::Drain => "write",
            Want::Locked => "read-modify-write",
            Want::Far => "far read-modify-write",
        };
        self.add(json!({"ph": "i", "s": "t", "pid": 0, "tid": cpu,
            "name": format!("{want} {line}"),
            "ts": self.us(now), "args": {"transfer_ns": transfer as f64 / self.clock_ghz}}));
    }

    /// Returns the whole trace as JSON.
    pub(crate) fn finish(&self) -> String {
        json!({
            "displayTimeUnit": "ns",
            "traceEvents": *self.entries.borrow(),
            "otherData": {"entries_left_out": self.dropped.get()},
        })
        .to_string()
    }
}
