//! Measures what a record of the kernel costs a program here: two threads that share a CPU
//! wake each other, with and without the events.
//!
//! Most of it is not the record: at each switch the kernel lets the events of one thread go
//! and takes those of the other. It must never measure the program itself.

use crate::kinds::EventKind;
use crate::open::{Open, Scope};
use locklab_host::{clock, topology};
use nix::unistd::{gettid, pipe, read, write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};

/// The number of times that the threads wake each other in a measurement.
const ROUNDS: u32 = 500;
/// Measurements with the events, and as many without, in turn.
const TURNS: usize = 3;

/// Returns the nanoseconds for which a record keeps a CPU busy that the program could have
/// had; `None` where this user may not record, and where nothing can be said.
pub(crate) fn of_a_record() -> Option<f64> {
    let (to, from_first) = pipe().ok().map(|(read, write)| (write, read))?;
    let (from, to_first) = pipe().ok()?;
    let (tell, told) = channel();
    let cpu = *topology::allowed().first()?;
    std::thread::scope(|scope| {
        scope.spawn(move || answer(cpu, &tell, &from_first, &to_first));
        let first = scope.spawn(move || {
            topology::pin_to(cpu);
            let other = told.recv().ok()?;
            let tasks = [gettid().as_raw().cast_unsigned(), other];
            let scope = Scope::Threads(&tasks);
            let (mut with, mut without, mut records) = (u64::MAX, u64::MAX, 0);
            for _ in 0..TURNS {
                // Events that are open cost something, also while they are off.
                without = without.min(rounds(&to, &from)?);
                let opened = Open::on(&[cpu], &scope, &EventKind::SYSTEM, "this program");
                let mut open = opened.ok()?;
                open.enable().ok()?;
                let took = rounds(&to, &from);
                open.disable();
                with = with.min(took?);
                records = open.discard().max(records);
            }
            // The other ends when nobody can write any more.
            drop(to);
            (records > 0).then(|| with.saturating_sub(without) as f64 / f64::from(records))
        });
        first.join().ok().flatten()
    })
}

/// Says who this thread is, and answers each byte until nobody sends one.
fn answer(cpu: usize, tell: &Sender<u32>, from: &OwnedFd, to: &OwnedFd) {
    topology::pin_to(cpu);
    let _ = tell.send(gettid().as_raw().cast_unsigned());
    let mut byte = [0];
    while matches!(read(from, &mut byte), Ok(1)) && write(to, &byte).is_ok() {}
}

/// Returns how long it takes to be answered so often, ns.
fn rounds(to: &OwnedFd, from: &OwnedFd) -> Option<u64> {
    let mut byte = [0];
    let begin = clock::now();
    for _ in 0..ROUNDS {
        write(to, &byte).ok()?;
        read(from, &mut byte).ok()?;
    }
    Some(clock::now() - begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_costs_less_than_a_millisecond_where_it_can_be_known() {
        if let Some(ns) = of_a_record() {
            assert!((0.0..1e6).contains(&ns), "{ns}");
        }
    }
}
