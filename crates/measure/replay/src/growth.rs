//! Computes how holds grow with the number of threads: what two recordings of one program say,
//! one of few threads and one of many.
//!
//! What a section uses is in other CPUs' caches the more often the more threads there
//! are, so it takes longer; what one handoff costs is known apart from that, and not
//! counted. Sections of the same place in the program are compared, and between and
//! beyond the two numbers a hold is a power of the number of threads that run at a
//! time. It must never be taken from places that only one recording has.

use crate::program::{Held, Program, Site, Step};
use std::collections::BTreeMap;

/// The fewest sections of a place that say something, of each recording.
const FEWEST: u64 = 25;
/// Holds grow no faster than the number of threads: then what they wait for is one
/// thing that all use.
const STEEPEST: f64 = 1.0;

/// A place in the program, whatever addresses its files were mapped to: the files and
/// the offsets of its calls.
pub(crate) type Place = Vec<(Vec<u8>, u64)>;

/// Says why two recordings do not say how holds grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrowth {
    /// The same number of threads ran at a time in both.
    AsMany(usize),
    /// They have no place in common where locks were held often enough.
    NoPlace,
}

impl std::fmt::Display for NoGrowth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AsMany(threads) => write!(
                f,
                "in both recordings {threads} threads ran at a time, for there were no more \
                 threads or no more CPUs"
            ),
            Self::NoPlace => {
                f.write_str("no place in the program held locks often enough in both recordings")
            }
        }
    }
}

/// Describes how holds grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Threads that ran at a time in the recording of few, and in that of many.
    pub running: [usize; 2],
    /// Says how many times as long holds are in that of many: the mean of all places.
    pub times: f64,
    /// The part of the sections in the recording of many whose place both have.
    pub common: f64,
    /// Says how many times as long, by place.
    of_places: BTreeMap<Place, f64>,
}

impl Growth {
    /// Returns what two recordings of a program say, the first of few threads.
    ///
    /// # Errors
    /// Why they say nothing.
    pub fn between(few: &Program, many: &Program) -> Result<Self, NoGrowth> {
        let running = [few.running(), many.running()];
        if running[0] == running[1] {
            return Err(NoGrowth::AsMany(running[0]));
        }
        let (before, after) = (of_places(few), of_places(many));
        let mut of_places = BTreeMap::new();
        let (mut held, mut would, mut sections) = (0.0, 0.0, 0);
        for (place, (count, ns)) in &after {
            let Some((there, before)) = before.get(place) else {
                continue;
            };
            let (mean, before) = (ns / *count as f64, before / *there as f64);
            if *count < FEWEST || *there < FEWEST || before <= 0.0 {
                continue;
            }
            held += ns;
            would += before * *count as f64;
            sections += count;
            of_places.insert(place.clone(), mean / before);
        }
        if of_places.is_empty() {
            return Err(NoGrowth::NoPlace);
        }
        let all: u64 = after.values().map(|(count, _)| count).sum();
        Ok(Self {
            running,
            times: held / would,
            common: sections as f64 / all.max(1) as f64,
            of_places,
        })
    }

    /// Returns the power of the number of threads with which holds that are so many times as
    /// long have grown. Shorter ones are taken as equal.
    fn power(&self, times: f64) -> f64 {
        let [few, many] = self.running.map(|threads| threads.max(1) as f64);
        (times.ln() / (many / few).ln()).clamp(0.0, STEEPEST)
    }

    /// Returns the same of all places together.
    #[must_use]
    pub fn overall(&self) -> f64 {
        self.power(self.times)
    }

    /// Returns the powers of a program's locks, each by the places where it is held.
    fn of_locks(&self, program: &Program) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); program.locks.len()];
        for held in &program.holds {
            let times = self.of_places.get(&place(program, &held.site));
            if let (Some(lock), Some(times)) = (held.lock, times)
                && let Some((ns, would)) = sums.get_mut(lock as usize)
            {
                let all = held.count as f64 * held.mean_ns;
                *ns += all;
                *would += all / times.max(1e-6);
            }
        }
        let power = |(ns, would): (f64, f64)| match would > 0.0 {
            true => self.power(ns / would),
            false => self.overall(),
        };
        sums.into_iter().map(power).collect()
    }
}

impl Program {
    /// Returns how many of its threads can have run at a time.
    #[must_use]
    pub fn running(&self) -> usize {
        let threads = self.threads.len();
        self.recorded.cpus.map_or(threads, |cpus| cpus.min(threads))
    }

    /// Returns the program as if so many threads ran at a time: what is done under a lock
    /// takes longer, or less long, than it did with [`Self::running`]. The longest-held
    /// lock counts.
    #[must_use]
    pub fn with_running(&self, growth: &Growth, threads: usize) -> Self {
        let by = threads.max(1) as f64 / self.running().max(1) as f64;
        let powers = growth.of_locks(self).into_iter();
        let factors: Vec<f64> = powers.map(|power| by.powf(power)).collect();
        let mut changed = self.clone();
        for thread in &mut changed.threads {
            let mut held: Vec<u32> = Vec::new();
            thread.work_ns = 0.0;
            for step in &mut thread.steps {
                match step {
                    Step::Acquire { lock, .. } => held.push(*lock),
                    Step::Release { lock } => held.retain(|other| other != lock),
                    Step::Work(ns) => {
                        let first = held.first().map(|lock| *lock as usize);
                        let factor = first.and_then(|lock| factors.get(lock));
                        *ns = (*ns as f64 * factor.copied().unwrap_or(1.0)).round() as u64;
                        thread.work_ns += *ns as f64;
                    }
                    _ => {}
                }
            }
        }
        changed.recorded.work_ns = changed.threads.iter().map(|thread| thread.work_ns).sum();
        changed
    }
}

/// Returns the sections of a program by place: how many, and how long they took together.
fn of_places(program: &Program) -> BTreeMap<Place, (u64, f64)> {
    let mut places: BTreeMap<Place, (u64, f64)> = BTreeMap::new();
    for Held {
        site,
        count,
        mean_ns,
        ..
    } in &program.holds
    {
        let (sum, ns) = places.entry(place(program, site)).or_default();
        *sum += count;
        *ns += *count as f64 * mean_ns;
    }
    places
}

/// Returns a place without addresses. Calls in no file are as they are.
pub(crate) fn place(program: &Program, site: &Site) -> Place {
    let call = |&address: &u64| {
        let mut modules = program.modules.iter();
        let module = modules.find(|module| {
            module.image == site.image && (module.from..module.to).contains(&address)
        });
        match module {
            Some(module) => (module.path.clone(), address - module.from + module.offset),
            None => (Vec::new(), address),
        }
    };
    site.frames.iter().map(call).collect()
}
