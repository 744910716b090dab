//! Work that repeats: many units that each read one line and write another.
//!
//! A unit that finds its lines, and the CPU's stores, as the unit before left them
//! costs the same. Such units are charged together, as many as would run
//! without an event that they could see; what they cost and leave behind is what
//! they would one by one. Nothing here may charge for a miss: that is `access`
//! and `drain`.

use crate::drain::publish;
use crate::engine::Engine;

/// A unit: it reads at one address, writes at another, and computes.
pub(crate) struct Unit {
    pub(crate) read: usize,
    /// Says where it writes, and how many bytes of what.
    pub(crate) write: (usize, u8, u64),
    /// Computing, in cycles.
    pub(crate) cycles: u64,
}

/// Lets the running CPU, which has just done one unit, do up to `most` more that
/// cost the same; returns how many.
///
/// # Safety
/// The same conditions as for [`crate::store_buffer::write`].
#[inline]
pub(crate) unsafe fn repeat(engine: &Engine, unit: &Unit, most: u64) -> u64 {
    #[cfg(test)]
    if tests::ONE_BY_ONE.get() {
        return 0;
    }
    let (cpu, now) = (engine.current(), engine.time.get());
    let core = cpu.core.get();
    let (address, size, value) = unit.write;
    let (read, index) = (engine.line_of(unit.read), engine.line_of(address));
    let (read, write) = (&engine.lines[read], &engine.lines[index]);
    let own = read.private.get() && write.private.get();
    let in_l1 = engine.l1_generation(core);
    if !read.readable(core, now) || read.generation.get() != in_l1 {
        return 0;
    }
    let l1 = engine.costs.l1;
    let each = l1 + 1 + engine.shared_cycles(unit.cycles);
    // How many begin before `until`.
    let before = |until: u64| until.saturating_sub(now).div_ceil(each);
    let mut count = most;
    if !own {
        // As `Engine::sync_for` for the store, which is the later access.
        if !read.quiet() || !write.quiet() {
            return 0;
        }
        let until = engine.queue.horizon().saturating_add(cpu.lookahead.get());
        count = count.min(before(until.saturating_sub(l1)));
    }
    let stores = &cpu.stores;
    if stores.is_empty() {
        if !write.writable(core, now) || write.generation.get() != in_l1 || count == 0 {
            return 0;
        }
        // SAFETY: as promised.
        unsafe { publish(engine, index, address, size, value, now) };
        let writes = &engine.tally.writes;
        writes.set(writes.get() + count - 1);
    } else {
        let Some(comes) = stores.waits_until(engine.costs.x86, address, size) else {
            return 0;
        };
        let room = engine.costs.store_buffer.saturating_sub(stores.len()) as u64;
        count = count.min(room).min(before(comes.saturating_sub(l1)));
        let oldest_here = |line: usize| engine.lines[line].writable(core, now);
        if count == 0 || stores.oldest_line().is_none_or(oldest_here) {
            return 0;
        }
        stores.repeat(address, size, value, count as u16);
    }
    engine.note_many(5 | count << 3, 2 * count);
    engine.time.set(now + count * (l1 + 1));
    engine.work_many(unit.cycles, count);
    count
}

#[cfg(test)]
mod tests {
    use crate::{FigureKey, Machine, Placement, Scenario, Stop, Workload, run};
    use std::cell::Cell;

    thread_local! {
        /// Says whether each unit is done by itself.
        pub(super) static ONE_BY_ONE: Cell<bool> = const { Cell::new(false) };
    }

    /// Returns everything of an outcome but the hash of its accesses.
    fn outcome(scenario: &Scenario, one_by_one: bool) -> String {
        ONE_BY_ONE.set(one_by_one);
        let mut outcome = run(scenario).unwrap();
        outcome.trace_hash = 0;
        // Events that only let a CPU wait for its turn.
        outcome.events = 0;
        format!("{outcome:?}")
    }

    #[test]
    fn units_cost_together_what_they_cost_one_by_one() {
        let lengths = [(0, 1), (3, 40), (128, 1), (70, 130)];
        for name in ["xeon-8380-2s", "xeon-8160", "graviton2", "epyc-7763-2s"] {
            // An interrupt comes between two units otherwise.
            let quiet = Machine::builtin(name).unwrap();
            let quiet = quiet.with(FigureKey::InterruptsPerSecond, 0.0).unwrap();
            for (lock, threads) in [("virt-spin-backoff", 8), ("ticket", 5), ("mcs", 24)] {
                for (critical, non_critical) in lengths {
                    let workload = Workload::Matrix {
                        critical,
                        non_critical,
                    };
                    let mut scenario = Scenario::new(quiet.clone(), lock, workload, threads);
                    scenario.placement = Placement::Spread;
                    scenario.stop = Stop::Acquisitions(2_000);
                    let together = outcome(&scenario, false);
                    assert_eq!(
                        together,
                        outcome(&scenario, true),
                        "{name} {lock} {workload:?}"
                    );
                }
            }
        }
    }
}
