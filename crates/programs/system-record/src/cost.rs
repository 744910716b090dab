//! Measures what a record of the kernel costs a program here: two threads that share a CPU
//! wake each other, with and without the events.
//!
//! Most of it is not the record: at each switch the kernel lets the events of one thread go
//! and takes those of the other. It must never measure the program itself, nor take longer
//! than some milliseconds: where the program's events are open already, closing these is
//! quick too.

use crate::collect::empty;
use crate::kinds::EventKind;
use crate::open::{Open, Scope};
use locklab_host::topology;
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex};

/// The number of times that the threads wake each other in a measurement.
const ROUNDS: u32 = 60;
/// Measurements with the events, and as many without.
const TURNS: usize = 3;

/// The token that two threads pass to each other: whether the first has it; nothing at the end.
struct Token(Mutex<Option<bool>>, Condvar);

/// Returns the nanoseconds for which a record keeps a CPU busy that the program could have
/// had; `None` where nothing can be said.
pub(crate) fn of_a_record() -> Option<f64> {
    let cpu = *topology::allowed().first()?;
    let token = Token(Mutex::new(Some(true)), Condvar::new());
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let second = tell.clone();
        let token = &token;
        scope.spawn(move || {
            begin(cpu, &second);
            while token.pass(false) {}
        });
        let first = scope.spawn(move || {
            begin(cpu, &tell);
            let tasks = told.recv().ok().zip(told.recv().ok());
            let cost = tasks.and_then(|(one, other)| token.cost(cpu, [one, other]));
            token.ends();
            cost
        });
        first.join().ok().flatten()
    })
}

/// Begins a thread on this CPU, and says which it is.
fn begin(cpu: usize, tell: &Sender<u32>) {
    topology::pin_to(cpu);
    let _ = tell.send(gettid().as_raw().cast_unsigned());
}

impl Token {
    fn cost(&self, cpu: usize, tasks: [u32; 2]) -> Option<f64> {
        // Events that are open cost something, also while they are off.
        let without = self.rounds()?;
        let scope = Scope::Threads(&tasks);
        let opened = Open::on(&[cpu], &scope, &EventKind::SYSTEM, "this program");
        let mut open = opened.ok()?;
        open.enable().ok()?;
        let with = self.rounds()?;
        open.disable();
        let records = empty(&mut open, &mut io::sink()).ok()?.1 as f64 / TURNS as f64;
        (records > 0.0).then(|| with.saturating_sub(without) as f64 / records)
    }

    /// Returns the least CPU time that it takes to have it back so often, ns.
    fn rounds(&self) -> Option<u64> {
        let turns = (0..TURNS).map(|_| {
            let begin = cpu_time();
            let all = (0..ROUNDS).all(|_| self.pass(true));
            all.then(|| cpu_time() - begin)
        });
        turns.collect::<Option<Vec<u64>>>()?.into_iter().min()
    }

    /// Waits for it, and passes it on; returns whether it was not the end.
    fn pass(&self, first: bool) -> bool {
        let Ok(at) = self.0.lock() else { return false };
        let waits = |at: &mut Option<bool>| *at == Some(!first);
        let Ok(mut at) = self.1.wait_while(at, waits) else {
            return false;
        };
        if at.is_some() {
            *at = Some(!first);
        }
        self.1.notify_one();
        at.is_some()
    }

    fn ends(&self) {
        if let Ok(mut at) = self.0.lock() {
            *at = None;
        }
        self.1.notify_one();
    }
}

/// Returns the CPU time of this process, which other programs do not lengthen.
fn cpu_time() -> u64 {
    let id = ClockId::CLOCK_PROCESS_CPUTIME_ID;
    clock_gettime(id).map_or(0, |time| u64::try_from(time.num_nanoseconds()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_host::clock;

    #[test]
    fn a_record_costs_less_than_a_millisecond_where_it_can_be_known() {
        let before = clock::now();
        let cost = of_a_record();
        println!("{cost:?}, found in {} us", (clock::now() - before) / 1000);
        if let Some(ns) = cost {
            assert!((0.0..1e6).contains(&ns), "{ns}");
        }
    }
}
