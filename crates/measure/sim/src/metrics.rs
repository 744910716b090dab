//! Counts for a simulation: the workload's code reports here, and the outcome is
//! computed here. Times are simulated.

use crate::counts::{NOBODY, Wanted, add};
use crate::cpu::{Cpu, Phase};
use crate::distance::Distance;
use crate::engine::Engine;
use crate::error::SimError;
use crate::outcome::{ByUse, Latency, Outcome, WaitsOf};
use hdrhistogram::Histogram;
use locklab_workload::{STARVED, Use, starving};
use std::cell::{Cell, RefCell};

pub(crate) fn stolen(engine: &Engine) -> u64 {
    engine.cpus.iter().map(|cpu| cpu.stolen.get()).sum()
}

/// Returns the cycles that all CPUs have been without a hardware thread by `now`.
fn off(engine: &Engine, now: u64) -> u64 {
    let of = |(cpu, left): (&Cpu, &Cell<u64>)| {
        // A wait that has not ended is in neither sum.
        let present = match cpu.phase.get() {
            Phase::Halted => now.saturating_sub(cpu.since.get()),
            // Who has done all its work uses no CPU; who stopped the run did until its end.
            Phase::Done if left.get() > 0 => now.saturating_sub(left.get()),
            Phase::Done => 0,
            _ if cpu.on.get() => 0,
            _ => now.saturating_sub(cpu.ready_since.get()),
        };
        cpu.stolen.get() + cpu.halted.get() + present
    };
    let all = engine.cpus.iter().zip(&engine.counts.left);
    all.map(of).sum()
}

/// Notes that the running CPU begins to wait for a lock. The result is
/// passed to [`acquired`].
#[inline]
pub(crate) fn wants(engine: &Engine, lock: usize, to: Use) -> (u64, u64) {
    let now = engine.time.get();
    let who = engine.current.get();
    engine.counts.waiting[who].set(now);
    engine.counts.wanted[who].set(Wanted {
        lock,
        to,
        acquired: engine.counts.locks[lock].acquired.get(),
        stolen: engine.current().stolen.get(),
    });
    (now, engine.current().stalled.get())
}

/// Returns whether a thread that has waited until `now` is starved.
pub(crate) fn is_passed_over(engine: &Engine, who: usize, now: u64) -> bool {
    let counts = &engine.counts;
    let since = counts.waiting[who].get();
    let wanted = counts.wanted[who].get();
    let passed = counts.locks[wanted.lock].acquired.get() - wanted.acquired;
    let most = STARVED * counts.ops.len() as u64;
    if since == u64::MAX || passed <= most {
        return false;
    }
    // A thread without a CPU could not have taken the lock.
    let cpu = &engine.cpus[who];
    let mut without = cpu.stolen.get() - wanted.stolen;
    if !cpu.on.get() {
        without += now.saturating_sub(cpu.ready_since.get());
    }
    let wait = now.saturating_sub(since).max(1);
    let with = wait.saturating_sub(without) as f64 / wait as f64;
    passed as f64 * with > most as f64
}

/// Notes that it has acquired the lock. Handoffs and streaks are those of
/// writers: readers that share a lock hand nothing on.
pub(crate) fn acquired(engine: &Engine, lock: usize, (since, stalled): (u64, u64), to: Use) {
    let counts = &engine.counts;
    let who = engine.current.get();
    let core = engine.current().core.get();
    let state = &counts.locks[lock];
    let now = engine.time.get();
    if is_passed_over(engine, who, now) {
        counts.starved[who].set(true);
    }
    counts.waiting[who].set(u64::MAX);
    add(&state.acquired, 1);
    let shares = to == Use::Read && counts.readers_share;
    let beside = match state.readers.get() {
        _ if state.holder.get() != NOBODY => state.holder.get(),
        0 => NOBODY,
        _ if shares => NOBODY,
        _ => state.reader.get(),
    };
    if beside != NOBODY {
        engine.fail(SimError::TwoHolders {
            lock: counts.lock_name.clone(),
            holder: beside,
            intruder: who,
            at_ns: engine.ns(now),
            seed: counts.seed,
        });
        engine.suspend(Phase::Done);
    }
    if shares {
        add(&state.readers, 1);
        state.reader.set(who);
    } else {
        state.holder.set(who);
    }
    add(&counts.total, 1);
    let total = counts.total.get();
    let handoff = (to == Use::Write).then(|| handed_to(engine, lock, who, core));
    if !counts.counting.get() {
        let at = counts.at(now);
        if counts.warmed_up(total, at) {
            restart(engine, at);
        }
        return;
    }
    if let Some(distance) = handoff {
        let first = counts.handoffs.iter().all(|count| count.get() == 0);
        if first && distance == Distance::Cpu {
            counts.continued.set(true);
        }
        add(&counts.handoffs[distance as usize], 1);
    }
    let readers = state.readers.get();
    counts
        .most_readers
        .set(counts.most_readers.get().max(readers));
    let wait = now - since;
    counts.latency[to as usize]
        .borrow_mut()
        .saturating_record(wait.max(1));
    add(&counts.wait, wait);
    add(
        &counts.line_wait,
        (engine.current().stalled.get() - stalled).min(wait),
    );
    if wait > counts.longest_wait.get().0 {
        counts.longest_wait.set((wait, who));
    }
    if let Some(trace) = &engine.trace {
        trace.acquired(who, lock, since, now);
    }
    if counts.enough(total, counts.at(now)) {
        engine.stopped.set(true);
        engine.suspend(Phase::Done);
    }
}

/// Returns how far a lock has come from its last writer to `who` on `core`.
fn handed_to(engine: &Engine, lock: usize, who: usize, core: usize) -> Distance {
    let counts = &engine.counts;
    let state = &counts.locks[lock];
    let distance = if state.last.get() == who {
        Distance::Cpu
    } else if state.last.get() == NOBODY {
        Distance::Remote
    } else {
        engine.topology.distance(state.last_core.get(), core)
    };
    if distance == Distance::Cpu {
        add(&counts.streak, 1);
    } else {
        counts.streak.set(1);
    }
    counts
        .longest_streak
        .set(counts.longest_streak.get().max(counts.streak.get()));
    state.last.set(who);
    state.last_core.set(core);
    distance
}

/// Notes that it is about to release the lock.
#[inline]
pub(crate) fn releases(engine: &Engine, lock: usize, from: Use) {
    let state = &engine.counts.locks[lock];
    if from == Use::Read && engine.counts.readers_share {
        state.readers.set(state.readers.get() - 1);
    } else {
        state.holder.set(NOBODY);
    }
    if let Some(trace) = &engine.trace {
        trace.releases(engine.current.get(), engine.time.get());
    }
}

/// Notes that it has done all its work.
pub(crate) fn leaves(engine: &Engine) {
    engine.counts.left[engine.current.get()].set(engine.time.get());
    engine.ends();
}

/// Notes that it has done one operation of the workload.
#[inline]
pub(crate) fn operation(engine: &Engine) {
    add(&engine.counts.ops[engine.current.get()], 1);
}

/// Begins to count, at this time.
pub(crate) fn restart(engine: &Engine, now: u64) {
    let counts = &engine.counts;
    counts.counting.set(true);
    counts.warmup.set(counts.total.get());
    counts
        .batches
        .restart(counts.limits.batch(), counts.total.get(), now);
    counts.started.set(now);
    counts.transfers.set(engine.tally.transfers.get());
    counts.stolen.set(stolen(engine));
    counts.off.set(off(engine, now));
    for ops in &counts.ops {
        ops.set(0);
    }
    for handoffs in &counts.handoffs {
        handoffs.set(0);
    }
    for starved in &counts.starved {
        starved.set(false);
    }
    counts.longest_streak.set(0);
    counts.most_readers.set(0);
    for latency in &counts.latency {
        latency.borrow_mut().reset();
    }
    counts.line_wait.set(0);
    counts.wait.set(0);
    counts.longest_wait.set((0, 0));
}

/// Returns the percentiles of these waits.
fn latency(engine: &Engine, waits: &Histogram<u64>) -> Latency {
    let percentile = |p: f64| engine.ns(waits.value_at_quantile(p));
    Latency {
        p50: percentile(0.5),
        p99: percentile(0.99),
        p999: percentile(0.999),
        max: engine.ns(waits.max()),
    }
}

/// Returns the waits of readers or of writers; none where there were none. A wait of
/// `starving` cycles is starved; one that has not ended is as long as it was at
/// `end`, since a thread that never gets the lock would not be seen otherwise.
fn waits_of(engine: &Engine, to: Use, end: u64, starving: u64) -> Option<WaitsOf> {
    let counts = &engine.counts;
    let mut waits = counts.latency[to as usize].borrow().clone();
    for (since, wanted) in counts.waiting.iter().zip(&counts.wanted) {
        let wait = end.saturating_sub(since.get());
        if since.get() != u64::MAX && wanted.get().to == to && wait >= starving {
            waits.saturating_record(wait.max(1));
        }
    }
    (!waits.is_empty()).then(|| WaitsOf {
        latency: latency(engine, &waits),
        starved: waits.count_between(starving, u64::MAX) as f64 / waits.len() as f64,
    })
}

/// Returns Jain's index of what threads have done: 1 if all have done as much.
pub(crate) fn jain(ops: &[u64]) -> f64 {
    let sum: u64 = ops.iter().sum();
    let squares: f64 = ops.iter().map(|&ops| (ops as f64).powi(2)).sum();
    match squares > 0.0 {
        true => (sum as f64).powi(2) / (squares * ops.len() as f64),
        false => 1.0,
    }
}

/// Returns the outcome of what has been counted.
pub(crate) fn outcome(engine: &Engine) -> Outcome {
    let counts = &engine.counts;
    let left: u64 = counts.left.iter().map(Cell::get).sum();
    let end = counts
        .left
        .iter()
        .map(Cell::get)
        .max()
        .unwrap_or(0)
        .max(engine.time.get());
    let cycles = end.saturating_sub(counts.started.get()).max(1);
    let seconds = engine.ns(cycles) * 1e-9;
    let acquisitions = counts.total.get() - counts.warmup.get();
    let precision = counts.batches.precision().filter(|_| counts.counting.get());
    let per = |sum: u64| sum as f64 / acquisitions.max(1) as f64;
    let ops_by_thread: Vec<u64> = counts.ops.iter().map(Cell::get).collect();
    let ops: u64 = ops_by_thread.iter().sum();
    let handoffs = counts.handoffs.each_ref().map(Cell::get);
    // Each begins with a handoff, but one that began before counting did.
    let changes: u64 = handoffs[1..].iter().sum();
    let streaks = changes + u64::from(counts.continued.get());
    let (mut longest, mut longest_waiter) = counts.longest_wait.get();
    for (who, since) in counts.waiting.iter().enumerate() {
        // Threads that are still waiting count from when counting began.
        let wait = end.saturating_sub(since.get().max(counts.started.get()));
        if since.get() != u64::MAX && wait > longest {
            (longest, longest_waiter) = (wait, who);
        }
    }
    let [readers, writers] = counts.latency.each_ref().map(RefCell::borrow);
    let mut all = readers.clone();
    // The ranges are the same, so this cannot fail.
    let _ = all.add(&*writers);
    let starving = starving(counts.ops.len(), acquisitions, cycles);
    let by_use = Use::BOTH.map(|to| waits_of(engine, to, end, starving));
    Outcome {
        ops_per_s: match left {
            0 => ops as f64 / seconds,
            sum => ops as f64 * counts.left.len() as f64 / (engine.ns(sum) * 1e-9),
        },
        acquisitions,
        warmup: counts.warmup.get(),
        half_width: precision.map(|(half_width, _)| half_width),
        steady: precision.map(|(_, drifts)| !drifts && counts.settled.get()),
        seconds,
        jain: jain(&ops_by_thread),
        starved: (0..counts.starved.len())
            .filter(|&who| counts.starved[who].get() || is_passed_over(engine, who, end))
            .collect(),
        ops_by_thread,
        handoffs,
        mean_streak: handoffs.iter().sum::<u64>() as f64 / streaks.max(1) as f64,
        longest_streak: counts.longest_streak.get(),
        most_readers: counts.most_readers.get(),
        latency: latency(engine, &all),
        by_use: match by_use {
            [Some(readers), Some(writers)] => Some(ByUse { readers, writers }),
            _ => None,
        },
        lines_moved: per(engine.tally.transfers.get() - counts.transfers.get()),
        line_wait_ns: engine.ns(counts.line_wait.get()) / acquisitions.max(1) as f64,
        lock_wait_ns: engine.ns(counts.wait.get().saturating_sub(counts.line_wait.get()))
            / acquisitions.max(1) as f64,
        longest_wait_ns: engine.ns(longest),
        longest_waiter,
        cpu_ns: {
            let all = cycles.saturating_mul(counts.ops.len() as u64);
            let without = off(engine, end).saturating_sub(counts.off.get());
            engine.ns(all.saturating_sub(without)) / ops.max(1) as f64
        },
        steal: (stolen(engine) - counts.stolen.get()) as f64
            / (cycles as f64 * counts.ops.len() as f64),
        trace_hash: engine.tally.hash.get(),
        accesses: engine.tally.accesses.get(),
        events: engine.tally.events.get(),
    }
}
