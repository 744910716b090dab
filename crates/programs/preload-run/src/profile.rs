//! The profile that the interposer left: read, added up by place in the
//! program, and named.
//!
//! It must never print or judge: see [`crate::summary`].

use crate::symbols::{Call, Symbols};
use locklab_host::error::Error;
use locklab_profile::clock::{counter, nanoseconds};
use locklab_profile::{BYTES, Link, MAGIC, Module, Report, Role, Site, Stack};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The rate of the processor's counter relative to the clock.
pub(crate) struct Clock {
    counter: u64,
    nanoseconds: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            counter: counter(),
            nanoseconds: nanoseconds(),
        }
    }

    /// Returns the seconds since the start.
    fn seconds(&self) -> f64 {
        (nanoseconds() - self.nanoseconds) as f64 / 1e9
    }

    /// Returns the nanoseconds per tick, measured since the start.
    fn tick(&self) -> f64 {
        let ticks = counter().saturating_sub(self.counter).max(1);
        (nanoseconds() - self.nanoseconds) as f64 / ticks as f64
    }
}

/// The contents of all files of a run.
#[derive(Default)]
pub(crate) struct Summary {
    /// Number of program images that loaded the interposer.
    pub(crate) images: usize,
    pub(crate) kept_mutexes: u64,
    pub(crate) kept_operations: u64,
    pub(crate) kept_conditions: u64,
    pub(crate) kept_rwlocks: u64,
    pub(crate) rwlocks_of_glibc: bool,
    pub(crate) outside: u64,
    pub(crate) sleeps: u64,
    pub(crate) handoffs: u64,
    /// Seconds for which locks that were handed to a sleeping thread stood idle.
    pub(crate) idle: f64,
    pub(crate) passes: u64,
    /// Run time of the program in seconds.
    pub(crate) seconds: f64,
    /// Places, ordered by time waited, then by time held.
    pub(crate) places: Vec<Place>,
}

/// The mutexes that one place in the program initialised or first acquired.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// Sums over all its mutexes.
    pub(crate) counts: Counts,
    /// One for each mutex, by time waited, then held.
    pub(crate) mutexes: Vec<Mutex>,
    /// The functions that waited, and those that held while others waited: the
    /// name, how often, and nanoseconds in all, sorted by these.
    pub(crate) waited_by: Vec<(String, u64, f64)>,
    pub(crate) held_by: Vec<(String, u64, f64)>,
}

/// A mutex of a profile.
pub(crate) struct Mutex {
    /// Its address; `None` for mutexes beyond the limit, which share one entry.
    pub(crate) address: Option<u64>,
    pub(crate) counts: Counts,
}

/// Times in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) acquired: u64,
    pub(crate) contended: u64,
    pub(crate) waited: f64,
    pub(crate) longest_wait: f64,
    pub(crate) most_waiters: u32,
    pub(crate) holds: u64,
    pub(crate) held: f64,
    pub(crate) longest_hold: f64,
}

/// The contents of the files, added up by place.
#[derive(Default)]
struct Places {
    symbols: Symbols,
    by_name: BTreeMap<String, Gathered>,
}

#[derive(Default)]
struct Gathered {
    mutexes: Vec<Mutex>,
    links: BTreeMap<(bool, String), (u64, f64)>,
}

/// Reads the files of a folder.
pub(crate) fn read(folder: &Path, clock: Clock) -> Result<Summary, Error> {
    let failed = |e| Error::Failed(format!("cannot read {}: {e}", folder.display()));
    let tick = clock.tick();
    let mut summary = Summary {
        seconds: clock.seconds(),
        ..Summary::default()
    };
    let mut places = Places::default();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = File::open(&path).map_err(failed)?;
        // The program was killed while it made the file.
        if file.metadata().map_err(failed)?.len() != BYTES as u64 {
            continue;
        }
        with_report(&file, |report| {
            summary.add(report);
            if report.profile.load(Relaxed) == 1 {
                let nanoseconds = report.nanoseconds.load(Relaxed) == 1;
                places.add(report, if nanoseconds { 1.0 } else { tick });
            }
        })
        .map_err(|e| failed(e.into()))?;
    }
    summary.places = places.finish();
    Ok(summary)
}

fn with_report(file: &File, f: impl FnOnce(&Report)) -> nix::Result<()> {
    let bytes = NonZeroUsize::new(BYTES).expect("a report is not empty");
    // SAFETY: a new mapping, of a file of that size.
    let place = unsafe {
        mmap(
            None,
            bytes,
            ProtFlags::PROT_READ,
            MapFlags::MAP_SHARED,
            file,
            0,
        )?
    };
    // SAFETY: page-aligned; any bytes are a valid report. Processes that are
    // still running may write to it meanwhile, by atomics.
    let report = unsafe { place.cast::<Report>().as_ref() };
    if report.magic.load(Relaxed) == MAGIC {
        f(report);
    }
    // SAFETY: the mapping above; no reference is left.
    unsafe { munmap(place, BYTES) }
}

impl Summary {
    fn add(&mut self, report: &Report) {
        self.images += 1;
        self.kept_mutexes += report.kept_mutexes.load(Relaxed);
        self.kept_operations += report.kept_operations.load(Relaxed);
        self.kept_conditions += report.kept_conditions.load(Relaxed);
        self.kept_rwlocks += report.kept_rwlocks.load(Relaxed);
        self.rwlocks_of_glibc |= report.rwlocks_of_glibc.load(Relaxed) != 0;
        self.outside += report.outside.load(Relaxed);
        self.sleeps += report.sleeps.load(Relaxed);
        self.handoffs += report.handoffs.load(Relaxed);
        self.idle += report.idle.load(Relaxed) as f64 / 1e9;
        self.passes += report.passes.load(Relaxed);
    }
}

impl Places {
    /// Adds the mutexes of a file whose ticks last `tick` nanoseconds.
    fn add(&mut self, report: &Report, tick: f64) {
        // Several links refer to one stack.
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        let mut name = |number: usize, symbols: &mut Symbols| {
            names
                .entry(number)
                .or_insert_with(|| {
                    let stack = report.stacks.get(number).filter(|_| number != 0);
                    symbols.place(&stack.map_or_else(Vec::new, |stack| calls(report, stack)))
                })
                .clone()
        };
        let mut of_sites = BTreeMap::new();
        for (number, site) in report.sites.iter().enumerate() {
            let counts = counts(site, tick);
            if counts.acquired > 0 {
                let place = name(site.stack.load(Relaxed) as usize, &mut self.symbols);
                of_sites.insert(number, place.clone());
                let address = site.mutex.load(Relaxed);
                self.by_name.entry(place).or_default().mutexes.push(Mutex {
                    address: (address != 0).then_some(address),
                    counts,
                });
            }
        }
        for link in &report.links {
            let (site, stack, role) = Link::ends(link.key.load(Relaxed));
            let Some(place) = of_sites.get(&(site as usize)) else {
                continue;
            };
            let who = name(stack as usize, &mut self.symbols);
            let gathered = self.by_name.entry(place.clone()).or_default();
            let sum = gathered.links.entry((role == Role::Held, who)).or_default();
            sum.0 += link.count.load(Relaxed);
            sum.1 += link.ticks.load(Relaxed) as f64 * tick;
        }
    }

    fn finish(self) -> Vec<Place> {
        let mut places: Vec<Place> = self
            .by_name
            .into_iter()
            .map(|(name, gathered)| {
                let mut place = Place {
                    name,
                    mutexes: gathered.mutexes,
                    ..Place::default()
                };
                for mutex in &place.mutexes {
                    place.counts.join(&mutex.counts);
                }
                place.mutexes.sort_by(|a, b| b.counts.busier(&a.counts));
                for ((held, who), (count, time)) in gathered.links {
                    let side = if held {
                        &mut place.held_by
                    } else {
                        &mut place.waited_by
                    };
                    side.push((who, count, time));
                }
                for side in [&mut place.waited_by, &mut place.held_by] {
                    side.sort_by(|a, b| b.2.total_cmp(&a.2));
                }
                place
            })
            .collect();
        places.sort_by(|a, b| b.counts.busier(&a.counts));
        places
    }
}

impl Counts {
    fn join(&mut self, other: &Self) {
        self.acquired += other.acquired;
        self.contended += other.contended;
        self.waited += other.waited;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.most_waiters = self.most_waiters.max(other.most_waiters);
        self.holds += other.holds;
        self.held += other.held;
        self.longest_hold = self.longest_hold.max(other.longest_hold);
    }

    fn busier(&self, other: &Self) -> std::cmp::Ordering {
        self.waited
            .total_cmp(&other.waited)
            .then(self.held.total_cmp(&other.held))
    }
}

fn counts(site: &Site, tick: f64) -> Counts {
    let mut sum = Counts {
        most_waiters: site.most_waiters.load(Relaxed),
        ..Counts::default()
    };
    for counts in &site.counts {
        let time = |ticks: u64| ticks as f64 * tick;
        sum.join(&Counts {
            acquired: counts.acquired.load(Relaxed),
            contended: counts.contended.load(Relaxed),
            waited: time(counts.waited.load(Relaxed)),
            longest_wait: time(counts.longest_wait.load(Relaxed)),
            most_waiters: 0,
            holds: counts.holds.load(Relaxed),
            held: time(counts.held.load(Relaxed)),
            longest_hold: time(counts.longest_hold.load(Relaxed)),
        });
    }
    sum
}

/// Returns the call sites of a stack, the innermost first; those of files that
/// are not known are left out.
fn calls(report: &Report, stack: &Stack) -> Vec<Call> {
    if stack.known.load(Acquire) != 1 {
        return Vec::new();
    }
    let frames = stack.frames.iter().map(|frame| frame.load(Relaxed));
    frames
        .take_while(|frame| *frame != 0)
        .filter_map(|frame| {
            let of = |module: &&Module| {
                let range = module.from.load(Relaxed)..module.to.load(Relaxed);
                module.known.load(Acquire) == 1 && range.contains(&frame)
            };
            let module = report.modules.iter().find(of)?;
            let offset = frame - module.from.load(Relaxed) + module.offset.load(Relaxed);
            Some((path(module), offset))
        })
        .collect()
}

fn path(module: &Module) -> PathBuf {
    let bytes: Vec<u8> = module
        .path
        .iter()
        .flat_map(|word| word.load(Relaxed).to_ne_bytes())
        .take_while(|&byte| byte != 0)
        .collect();
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}
