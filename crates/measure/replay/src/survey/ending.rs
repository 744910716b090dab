//! Closes what goes on when a recording ends: waits, holds and work that no record closes.

use super::{Asks, Surveying};
use locklab_trace::Trace;
use std::collections::{BTreeMap, HashMap};

/// The CPU time of a thread in its last stretch, in nanoseconds, from which on it did not sleep
/// in all of it.
const OFTEN_NS: f64 = 1e6;

impl Surveying {
    /// Returns what goes on when the recording ends.
    pub(super) fn end(&mut self, trace: &Trace) {
        let mut most: HashMap<usize, (u64, std::cmp::Reverse<usize>)> = HashMap::new();
        for (&(lock, site), &times) in &self.pairs {
            let of_lock = most
                .entry(lock)
                .or_insert((0, std::cmp::Reverse(usize::MAX)));
            *of_lock = (*of_lock).max((times, std::cmp::Reverse(site)));
        }
        for (lock, (_, site)) in most {
            self.survey.locks[lock].site = Some(site.0);
        }
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for (thread, running) in trace.threads.iter().zip(&self.running) {
            let end = ends.entry(thread.image).or_default();
            *end = (*end).max(running.last);
        }
        for (number, thread) in trace.threads.iter().enumerate() {
            let running = &self.running[number];
            let Some(began) = running.began else {
                continue;
            };
            let end = match running.ended {
                true => running.last,
                false => ends[&thread.image],
            };
            let times = &mut self.survey.threads[number];
            times.lived = end - began;
            self.windows
                .add(began, end, end - began, |times| &mut times.lived);
            if let Some((since, lock)) = running.idle {
                times.idle += end - since;
                times.conditions += if lock.is_some() { end - since } else { 0 };
                self.windows
                    .add(since, end, end - since, |times| &mut times.idle);
            } else if running.asks.is_none() && running.releases.is_none() && !running.ended {
                let account = thread.ran;
                let tick = self.nanoseconds_per_tick;
                let without = running.cpu.unfinished(end, account, tick);
                // Who had a CPU now and then in a stretch without records waited often.
                match (end - running.last).saturating_sub(without) as f64 * tick > OFTEN_NS {
                    true => {
                        times.unknown += without;
                        times.unknown_waits = u64::MAX;
                    }
                    false => times.idle += without,
                }
                self.windows
                    .add(running.last, end, without, |times| &mut times.idle);
            }
            let holds = running.holds.clone();
            let waits =
                |asks: &Asks| asks.contended || self.owners.was_acquired(asks.lock, asks.since);
            if let Some(asks) = running.asks.filter(waits) {
                times.waited += end - asks.since;
                self.windows
                    .add(asks.since, end, end - asks.since, |times| &mut times.waited);
                for tally in [
                    &mut self.survey.locks[asks.lock].tally,
                    &mut self.survey.sites[asks.site].tally,
                ] {
                    tally.contended += 1;
                    tally.waited += end - asks.since;
                }
            }
            for (lock, since, site) in holds {
                self.survey.locks[lock].tally.held += end - since;
                self.survey.sites[site].tally.held += end - since;
            }
        }
    }
}
