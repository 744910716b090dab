//! Makes a program of what was read of a window: decides which locks are kept, what
//! was no work, which threads are alike.

use crate::classes::{Trait, classes};
use crate::extract::Limits;
use crate::fault::Fault;
use crate::migration::{Place, fetched, lengths, mean_fetch, migration, shorten};
use crate::preempted::{longest_kept, without_cpu};
use crate::program::{Held, Lock, Program, Recorded, Step, Thread};
use crate::reading::{Reading, median};
use crate::shared::keep;
use crate::thread::Running;
use std::collections::{BTreeMap, HashSet};

impl Reading<'_> {
    /// Returns the program, in a window that ends at `to`; `recorder` is what the recorder
    /// takes of an operation, in ticks.
    pub(crate) fn finish(
        mut self,
        limits: &Limits,
        to: u64,
        recorder: u64,
    ) -> Result<Program, Fault> {
        let taking = self
            .running
            .iter()
            .filter(|running| !running.sites.is_empty());
        match taking.count() {
            0 => return Err(Fault::NoLock),
            1 if !limits.one_thread => return Err(Fault::OneThreadThere),
            _ => {}
        }
        let Moves { lengths, fetch_ns } = self.without_moves();
        // A thread that only makes others and waits for their ends may sleep for
        // all that is known: it is left out, and they begin without it.
        let part =
            |running: &Running| !running.sites.is_empty() || self.channels.has_conditions(running);
        let (mut numbers, mut running, mut gone) = (Vec::new(), Vec::new(), HashSet::new());
        for (thread, state) in self
            .trace
            .threads
            .iter()
            .zip(std::mem::take(&mut self.running))
        {
            if part(&state) {
                numbers.push(thread.number);
                running.push(state);
                continue;
            }
            gone.extend(state.steps.iter().filter_map(|step| match step {
                Step::Post { channel, .. } => Some(*channel),
                _ => None,
            }));
        }
        for state in &mut running {
            let there = |step: &Step| match step {
                Step::Await { channel } => !gone.contains(channel),
                _ => true,
            };
            state.steps.retain(there);
        }
        let mut steps: Vec<Vec<Step>> = running
            .iter_mut()
            .map(|running| std::mem::take(&mut running.steps))
            .collect();
        let half = if limits.with_recorder {
            0
        } else {
            recorder / 2
        };
        let whole = self.whole;
        let free = [0, 1].map(|which| match whole[which] {
            0 => median(&mut self.free[which]).saturating_sub(half),
            ticks => ticks,
        });
        let free = free.map(|ticks| self.nanoseconds(ticks));
        let cpus = self.trace.info.cpus();
        let preempted = match cpus {
            _ if self.cpu_times => {
                let ticks = running.iter().map(|state| state.preempted).sum();
                self.nanoseconds(ticks)
            }
            // A kernel's recording does not say which stretches were longer by it.
            Some(cpus) => {
                let ready = running
                    .iter()
                    .flat_map(|state| state.ready_between(self.from, to));
                let budget = self.nanoseconds(without_cpu(ready.collect(), cpus));
                cut(&mut steps, budget)
            }
            None => 0,
        };
        // After the cut: what is done with locks that are not kept becomes one piece.
        let kept = keep(&self.locks, &mut steps, limits.locks, free);
        let window_ns = self.trace.nanoseconds(to.saturating_sub(self.from));
        let work_ns: Vec<f64> = steps.iter().map(|steps| work(steps)).collect();
        let traits: Vec<Trait> = running
            .iter_mut()
            .zip(&work_ns)
            .map(|(state, &work_ns)| Trait {
                sites: std::mem::take(&mut state.sites),
                work_ns,
            })
            .collect();
        let (class_of, classes) = classes(&traits, &self.sites, window_ns);
        let sum = |of: fn(&Running) -> u64| -> f64 {
            let ticks: u64 = running.iter().map(of).sum();
            self.trace.nanoseconds(ticks)
        };
        let holds = lengths.into_iter().map(|((lock, site), (count, ticks))| {
            let of = &self.locks[lock];
            let is = |kept: &Lock| kept.image == of.image && kept.address == of.address;
            let kept = kept.locks.iter().position(is);
            Held {
                lock: kept.and_then(|lock| u32::try_from(lock).ok()),
                site: self.sites[site].clone(),
                count,
                mean_ns: self.trace.nanoseconds(ticks),
            }
        });
        let holds = holds.collect();
        let costs = self.wakes.costs();
        let ns = |ticks| self.trace.nanoseconds(ticks);
        let info = &self.trace.info;
        let recorded = Recorded {
            from_ns: self.trace.nanoseconds(self.from.saturating_sub(info.began)),
            window_ns,
            whole_ns: self
                .trace
                .nanoseconds(info.ended.saturating_sub(info.began)),
            cpus,
            work_ns: work_ns.iter().sum(),
            waited_ns: sum(|running| running.waited),
            operations_ns: sum(|running| running.operations),
            matched_ns: sum(|running| running.matched),
            unmatched_ns: sum(|running| running.unmatched),
            preempted_ns: preempted as f64,
            shared_with: info.shared_with_others(),
            acquisitions: self.acquisitions as u64,
            recorder_ns: self.trace.nanoseconds(recorder),
            free_ns: free[0] as f64,
            wake_call_ns: costs.wake_call.map(ns),
            wake_ns: costs.wake.map(ns),
            wake_spread: costs.wake_spread,
            call_ns: costs.call.map(ns),
            fetch_ns,
            left_out_threads: self.trace.threads.len() - running.len(),
            private_locks: kept.private,
            left_out_locks: kept.left_out,
        };
        let threads = numbers
            .into_iter()
            .zip(class_of)
            .zip(steps.into_iter().zip(work_ns));
        Ok(Program {
            locks: kept.locks,
            threads: threads
                .map(|((number, class), (steps, work_ns))| Thread {
                    number,
                    class,
                    steps,
                    work_ns,
                })
                .collect(),
            channels: self.channels.count(),
            classes,
            holds,
            modules: self.modules,
            recorded,
        })
    }
}

/// Describes what is known when moves are in no step.
struct Moves {
    /// Says how often and for how many ticks locks were held, by lock and site.
    lengths: BTreeMap<(usize, usize), (u64, u64)>,
    /// Holds what fetching a lock took that another thread had.
    fetch_ns: Option<f64>,
}

impl Reading<'_> {
    /// Takes from the sections what moving their data took, and from what is before
    /// them what fetching their lock took, where that is known: both are as long as
    /// after the thread's own.
    fn without_moves(&mut self) -> Moves {
        let fetches = std::mem::take(&mut self.fetches);
        let fetched = fetched(&fetches);
        for section in self.sections.iter_mut().filter(|section| section.asked) {
            let place = Place {
                lock: section.lock,
                site: section.site,
                releases: true,
            };
            let ns = fetched.get(&place).copied().unwrap_or(0);
            let ticks = ns as f64 / self.trace.info.nanoseconds_per_tick.max(1e-3);
            section.ticks = section.ticks.saturating_sub(ticks.round() as u64);
        }
        let migration = migration(&self.sections, self.locks.len());
        for (lock, ticks) in self.locks.iter_mut().zip(&migration) {
            lock.migration_ns = ticks.map(|ticks| self.trace.nanoseconds(ticks));
        }
        let sections = std::mem::take(&mut self.sections);
        for section in sections.iter().filter(|section| section.after_other) {
            let ns = self.nanoseconds(migration[section.lock].unwrap_or(0));
            let steps = &mut self.running[section.thread].steps;
            shorten(steps, section.step, ns);
        }
        for fetch in fetches.iter().filter(|fetch| fetch.of_other) {
            let steps = &mut self.running[fetch.thread].steps;
            if let Some(Step::Work(before)) = steps.get_mut(fetch.step) {
                *before = before.saturating_sub(fetched.get(&fetch.place).copied().unwrap_or(0));
            }
        }
        Moves {
            lengths: lengths(&sections, &migration),
            fetch_ns: mean_fetch(&fetches, &fetched),
        }
    }
}

fn work(steps: &[Step]) -> f64 {
    let of = |step: &Step| match step {
        Step::Work(ns) => *ns as f64,
        _ => 0.0,
    };
    steps.iter().map(of).sum()
}

/// Takes `budget` nanoseconds from the longest pieces of work; returns what was
/// taken.
fn cut(steps: &mut [Vec<Step>], budget: u64) -> u64 {
    let lengths = steps.iter().flatten().filter_map(|step| match step {
        Step::Work(ns) => Some(*ns),
        _ => None,
    });
    let longest = longest_kept(lengths.collect(), budget);
    let mut taken = 0;
    for step in steps.iter_mut().flatten() {
        if let Step::Work(ns) = step
            && *ns > longest
        {
            taken += *ns - longest;
            *ns = longest;
        }
    }
    taken
}
