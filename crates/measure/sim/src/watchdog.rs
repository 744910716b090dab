//! Checks at intervals whether any CPU makes progress, and describes them if none
//! does.

use crate::cpu::Phase;
use crate::engine::Engine;
use crate::error::{CpuState, SimError, StuckReport};

/// Checks at intervals whether any CPU makes progress.
pub(crate) struct Watchdog {
    interval: u64,
    patience: u64,
    progress: u64,
    writes: u64,
    fruitless: u64,
}

impl Watchdog {
    pub(crate) fn new(engine: &Engine) -> Self {
        // An interval outlasts anything that a CPU does without touching
        // shared memory, and a round of the hypervisor.
        let ghz = engine.costs.clock_ghz;
        let quiet = engine.counts.longest_quiet_ns * ghz;
        let round = engine.hypervisor.round(engine.cpus.len());
        Self {
            interval: (5e6 * ghz) as u64 + 4 * quiet as u64 + round,
            patience: 20,
            progress: 0,
            writes: 0,
            fruitless: 0,
        }
    }

    pub(crate) fn interval(&self) -> u64 {
        self.interval
    }

    pub(crate) fn check(&mut self, engine: &Engine, now: u64) -> Option<SimError> {
        let progress = engine.counts.progress();
        let writes = engine.tally.writes.get();
        if progress != self.progress {
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
            let asleep = engine.cpus.iter().all(|cpu| {
                matches!(
                    cpu.phase.get(),
                    Phase::Watching | Phase::Polling | Phase::Asleep | Phase::Halted | Phase::Done
                ) && cpu.stores.is_empty()
            });
            if asleep && writes == self.writes {
                return Some(SimError::Deadlock(stuck(engine, now)));
            }
            if self.fruitless >= self.patience {
                return Some(SimError::Livelock(stuck(engine, now)));
            }
        }
        (self.progress, self.writes) = (progress, writes);
        None
    }
}

pub(crate) fn stuck(engine: &Engine, now: u64) -> Box<StuckReport> {
    let cpus = engine
        .cpus
        .iter()
        .enumerate()
        .map(|(number, cpu)| {
            let phase = cpu.phase.get();
            let waits = matches!(
                phase,
                Phase::Watching
                    | Phase::Polling
                    | Phase::SpinMiss
                    | Phase::Found
                    | Phase::Asleep
                    | Phase::Halted
            );
            let (address, size) = cpu.word.get();
            let known = waits && address != 0;
            // Labels hold no path of the machine that built this.
            let place = cpu.place.get().map(|place| {
                let file = place.file();
                let file = file.rfind("/crates/").map_or(file, |at| &file[at + 1..]);
                format!("{file}:{}", place.line())
            });
            CpuState {
                cpu: number,
                doing: match phase {
                    Phase::Asleep => "spins on",
                    Phase::Watching | Phase::Polling | Phase::SpinMiss if !cpu.on.get() => {
                        "descheduled while spinning on"
                    }
                    Phase::Watching | Phase::Polling | Phase::SpinMiss | Phase::Found => "spins on",
                    Phase::Halted => "halted on",
                    Phase::Sync if !cpu.on.get() => "descheduled while running",
                    Phase::Sync => "runs",
                    Phase::Miss | Phase::Fill => "waits for a cache line",
                    Phase::Drain | Phase::DrainSlot => "waits for its store buffer",
                    Phase::Done => "is done",
                }
                .to_owned(),
                word: known.then(|| engine.memory.describe(address)),
                // SAFETY: the word of an atomic in the arena.
                value: known.then(|| unsafe { crate::store_buffer::read(address, size) }),
                place: place.filter(|_| waits),
                since_ns: engine.ns(cpu.since.get()),
            }
        })
        .collect();
    Box::new(StuckReport {
        lock: engine.counts.lock_name.clone(),
        machine: engine.counts.machine_name.clone(),
        seed: engine.counts.seed,
        at_ns: engine.ns(now),
        acquisitions: engine.counts.total(),
        cpus,
    })
}
