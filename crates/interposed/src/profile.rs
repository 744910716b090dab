//! What the interposer left: read, added up by place in the program, named.

use crate::names::Chosen;
use crate::wait::Wait;
use addr2line::Loader;
use locklab_host::error::Error;
use locklab_preload_report::{BYTES, MAGIC, Report, Site, counter, nanoseconds};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use object::{Object, ObjectSegment};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// How fast the processor's counter runs against the clock.
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

    /// Seconds since the start.
    fn seconds(&self) -> f64 {
        (nanoseconds() - self.nanoseconds) as f64 / 1e9
    }

    /// Nanoseconds of a tick, measured since the start.
    fn tick(&self) -> f64 {
        let ticks = counter().saturating_sub(self.counter).max(1);
        (nanoseconds() - self.nanoseconds) as f64 / ticks as f64
    }
}

/// All files of a run.
#[derive(Default)]
pub(crate) struct Summary {
    /// Program images that the interposer was in.
    images: usize,
    kept_mutexes: u64,
    kept_operations: u64,
    kept_conditions: u64,
    outside: u64,
    sleeps: u64,
    handoffs: u64,
    /// Seconds.
    idle: f64,
    passes: u64,
    /// Seconds that the program ran.
    seconds: f64,
    /// By time waited, then held.
    places: Vec<Place>,
}

/// The locks of one place in the program. Times in nanoseconds.
#[derive(Default)]
struct Place {
    name: String,
    acquired: u64,
    contended: u64,
    waited: f64,
    longest_wait: f64,
    holds: u64,
    held: f64,
    longest_hold: f64,
}

/// Reads the files of a folder.
pub(crate) fn read(folder: &Path, clock: Clock) -> Result<Summary, Error> {
    let failed = |e| Error::Failed(format!("cannot read {}: {e}", folder.display()));
    let tick = clock.tick();
    let mut summary = Summary {
        seconds: clock.seconds(),
        ..Summary::default()
    };
    let mut places = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = File::open(&path).map_err(failed)?;
        // A program killed while it made the file.
        if file.metadata().map_err(failed)?.len() != BYTES as u64 {
            continue;
        }
        with_report(&file, |report| summary.add(report, tick, &mut places))
            .map_err(|e| failed(e.into()))?;
    }
    let mut names = Names::default();
    let mut named: BTreeMap<String, Place> = BTreeMap::new();
    for ((module, offset), place) in places {
        let name = names.name(&module, offset);
        match named.entry(name) {
            Entry::Vacant(free) => {
                let name = free.key().clone();
                free.insert(Place { name, ..place });
            }
            // Two calls on one line, or one that the compiler copied.
            Entry::Occupied(mut there) => there.get_mut().join(&place),
        }
    }
    summary.places = named.into_values().collect();
    summary.places.sort_by(|a, b| {
        b.waited
            .total_cmp(&a.waited)
            .then(b.held.total_cmp(&a.held))
    });
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
    // still there may write to it meanwhile, by atomics.
    let report = unsafe { place.cast::<Report>().as_ref() };
    if report.magic.load(Relaxed) == MAGIC {
        f(report);
    }
    // SAFETY: the mapping above; no reference is left.
    unsafe { munmap(place, BYTES) }
}

impl Summary {
    fn add(&mut self, report: &Report, tick: f64, places: &mut BTreeMap<(PathBuf, u64), Place>) {
        self.images += 1;
        self.kept_mutexes += report.kept_mutexes.load(Relaxed);
        self.kept_operations += report.kept_operations.load(Relaxed);
        self.kept_conditions += report.kept_conditions.load(Relaxed);
        self.outside += report.outside.load(Relaxed);
        self.sleeps += report.sleeps.load(Relaxed);
        self.handoffs += report.handoffs.load(Relaxed);
        self.idle += report.idle.load(Relaxed) as f64 / 1e9;
        self.passes += report.passes.load(Relaxed);
        if report.profile.load(Relaxed) == 0 {
            return;
        }
        let tick = if report.nanoseconds.load(Relaxed) == 1 {
            1.0
        } else {
            tick
        };
        for site in &report.sites {
            let place = counts(site, tick);
            if place.acquired > 0 {
                let known = site.known.load(Acquire) == 1;
                let module = if known { module(site) } else { PathBuf::new() };
                let offset = site.offset.load(Relaxed);
                places.entry((module, offset)).or_default().join(&place);
            }
        }
    }

    /// A convoy, if there was one: the lock was handed to sleeping threads, and
    /// stood idle until they ran, for a tenth of the run or more.
    fn convoy(&self, chosen: &Chosen) -> Option<String> {
        if self.handoffs < 100 || self.idle < 0.1 * self.seconds {
            return None;
        }
        let remedy = match chosen.wait {
            Wait::SpinThenPark => {
                "--wait barging lets running threads pass sleepers; the locks 'futex', \
                 'futex-adaptive' and 'pthread' are never handed to a sleeper"
            }
            Wait::Barging | Wait::Spin => {
                "no running thread wanted it meanwhile; the locks 'futex', 'futex-adaptive' and \
                 'pthread' are never handed to a sleeper"
            }
        };
        Some(format!(
            "convoy: '{}' was handed to a sleeping thread {} times and stood idle until it ran, \
             {} in all of a run of {}; {remedy}",
            chosen.lock,
            self.handoffs,
            time(self.idle * 1e9),
            time(self.seconds * 1e9),
        ))
    }

    /// What the user should know beside the table.
    pub(crate) fn notes(&self, chosen: &Chosen) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.convoy(chosen));
        if self.images == 0 {
            notes.push(
                "the program did not load the interposer, and ran on glibc's locks (it is \
                 linked statically, or runs with another user's rights)"
                    .into(),
            );
        }
        if self.kept_mutexes > 0 || self.kept_operations > 0 {
            notes.push(format!(
                "{} robust, process-shared or priority mutexes kept glibc's lock ({} operations)",
                self.kept_mutexes, self.kept_operations
            ));
        }
        if self.kept_conditions > 0 {
            notes.push(format!(
                "{} process-shared condition variables stayed glibc's",
                self.kept_conditions
            ));
        }
        if self.outside > 0 {
            notes.push(format!(
                "{} acquisitions found no room in the lock's queue and went past it: more \
                 threads live than it has places",
                self.outside
            ));
        }
        notes
    }

    /// For people, 72 columns, by time waited.
    pub(crate) fn table(&self, chosen: &Chosen) -> String {
        let mut text = format!(
            "\nLocks of '{}' ({}), by the place of their init or first lock.\n\
             Hardware; the timing itself makes each acquisition slower.\n\n",
            chosen.lock,
            chosen.wait.name()
        );
        if self.places.is_empty() {
            text += "No lock was taken.\n";
            return text;
        }
        let _ = writeln!(
            text,
            "{:>11} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
            "acquired", "contended", "waited", "mean", "longest", "held avg", "longest"
        );
        for place in &self.places {
            let _ = writeln!(text, "{}", place.name);
            let _ = writeln!(
                text,
                "{:>11} {:>8.2}% {:>9} {:>8} {:>8} {:>8} {:>8}",
                place.acquired,
                100.0 * place.contended as f64 / place.acquired as f64,
                time(place.waited),
                mean(place.waited, place.contended),
                time(place.longest_wait),
                mean(place.held, place.holds),
                time(place.longest_hold),
            );
        }
        text.push('\n');
        text
    }

    pub(crate) fn json(&self, chosen: &Chosen, profiled: bool, status: u8) -> Value {
        let places: Vec<Value> = self
            .places
            .iter()
            .map(|place| {
                json!({
                    "place": place.name,
                    "acquired": place.acquired,
                    "contended": place.contended,
                    "waited_ns": place.waited,
                    "longest_wait_ns": place.longest_wait,
                    "holds": place.holds,
                    "held_ns": place.held,
                    "longest_hold_ns": place.longest_hold,
                })
            })
            .collect();
        json!({
            "schema": 1,
            "provenance": { "source": "hardware", "clock": "timestamp counter or monotonic clock" },
            "lock": chosen.lock,
            "wait": chosen.wait.name(),
            "exit": status,
            "interposed": self.images > 0,
            "kept_by_glibc": {
                "mutexes": self.kept_mutexes,
                "operations": self.kept_operations,
                "conditions": self.kept_conditions,
            },
            "outside_queue": self.outside,
            "sleepers": {
                "sleeps": self.sleeps,
                "handoffs": self.handoffs,
                "idle_s": self.idle,
                "passed": self.passes,
            },
            "profile": profiled.then_some(places),
        })
    }
}

impl Place {
    fn join(&mut self, other: &Self) {
        self.acquired += other.acquired;
        self.contended += other.contended;
        self.waited += other.waited;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.holds += other.holds;
        self.held += other.held;
        self.longest_hold = self.longest_hold.max(other.longest_hold);
    }
}

fn counts(site: &Site, tick: f64) -> Place {
    let mut place = Place::default();
    for counts in &site.counts {
        let time = |ticks: u64| ticks as f64 * tick;
        place.join(&Place {
            name: String::new(),
            acquired: counts.acquired.load(Relaxed),
            contended: counts.contended.load(Relaxed),
            waited: time(counts.waited.load(Relaxed)),
            longest_wait: time(counts.longest_wait.load(Relaxed)),
            holds: counts.holds.load(Relaxed),
            held: time(counts.held.load(Relaxed)),
            longest_hold: time(counts.longest_hold.load(Relaxed)),
        });
    }
    place
}

fn module(site: &Site) -> PathBuf {
    let bytes: Vec<u8> = site
        .module
        .iter()
        .flat_map(|word| word.load(Relaxed).to_ne_bytes())
        .take_while(|&byte| byte != 0)
        .collect();
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names of places, from the symbols and debug information of the files.
#[derive(Default)]
struct Names(BTreeMap<PathBuf, Option<Module>>);

struct Module {
    loader: Loader,
    /// Of each segment: where it begins in the file, its bytes there, and
    /// the address it was linked for.
    segments: Vec<(u64, u64, u64)>,
}

impl Module {
    fn load(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let segments = object::File::parse(&*bytes)
            .ok()?
            .segments()
            .map(|segment| {
                let (from, length) = segment.file_range();
                (from, length, segment.address())
            })
            .collect();
        let loader = Loader::new(path).ok()?;
        Some(Self { loader, segments })
    }

    fn name(&self, offset: u64) -> Option<String> {
        // The call comes before the address that it returns to.
        let call = offset.checked_sub(1)?;
        let (from, _, address) = self
            .segments
            .iter()
            .find(|(from, length, _)| (*from..from + length).contains(&call))?;
        let probe = call - from + address;
        let mut best: Option<(String, Option<String>)> = None;
        if let Ok(mut frames) = self.loader.find_frames(probe) {
            // Innermost first: the first that is not the wrapper of a
            // standard library, or else the last.
            while let Ok(Some(frame)) = frames.next() {
                let Some(function) = frame.function else {
                    continue;
                };
                let function = function.demangle().ok()?.into_owned();
                let line = frame.location.and_then(|location| {
                    let file = Path::new(location.file?).file_name()?.to_str()?;
                    Some(format!("{file}:{}", location.line?))
                });
                let wrapper = is_wrapper(&function);
                best = Some((function, line));
                if !wrapper {
                    break;
                }
            }
        }
        let (function, line) = match best {
            Some(best) => best,
            None => {
                let symbol = self.loader.find_symbol(probe)?;
                (
                    addr2line::demangle_auto(symbol.into(), None).into_owned(),
                    None,
                )
            }
        };
        let function = short(&function);
        Some(line.map_or(function.clone(), |line| format!("{function} {line}")))
    }
}

/// Functions that take a lock on behalf of another.
fn is_wrapper(function: &str) -> bool {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    // A template's name is preceded by what it returns.
    let name = name.rsplit(' ').next().unwrap_or(name);
    ["std::", "__gthr", "__gnu_cxx::", "pthread_", "core::"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Without its arguments, and no longer than a line.
fn short(function: &str) -> String {
    let name = function.split('(').next().unwrap_or(function);
    name.chars().take(60).collect()
}

impl Names {
    fn name(&mut self, module: &Path, offset: u64) -> String {
        if module.as_os_str().is_empty() {
            return "(place unknown)".into();
        }
        let loaded = self
            .0
            .entry(module.to_owned())
            .or_insert_with(|| Module::load(module));
        let file = module.file_name().unwrap_or(module.as_os_str()).display();
        match loaded.as_ref().and_then(|module| module.name(offset)) {
            Some(name) => format!("{name} ({file})"),
            None => format!("{file}+{offset:#x}"),
        }
    }
}

fn mean(sum: f64, count: u64) -> String {
    if count == 0 {
        "-".into()
    } else {
        time(sum / count as f64)
    }
}

/// Three digits and a unit.
fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        t if t < 1e3 => (t, "ns"),
        t if t < 1e6 => (t / 1e3, "µs"),
        t if t < 1e9 => (t / 1e6, "ms"),
        t => (t / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(0.0), "0.00 ns");
        assert_eq!(time(12.34), "12.3 ns");
        assert_eq!(time(4567.0), "4.57 µs");
        assert_eq!(time(2.5e9), "2.50 s");
    }

    #[test]
    fn a_convoy_is_said_with_its_remedy_and_a_short_one_is_not() {
        let chosen = |wait| Chosen { lock: "mcs", wait };
        let mut summary = Summary {
            images: 1,
            handoffs: 15_803,
            idle: 0.51,
            seconds: 0.53,
            ..Summary::default()
        };
        let [note] = &summary.notes(&chosen(Wait::SpinThenPark))[..] else {
            panic!("one note");
        };
        assert_eq!(
            note,
            "convoy: 'mcs' was handed to a sleeping thread 15803 times and stood idle until it \
             ran, 510 ms in all of a run of 530 ms; --wait barging lets running threads pass \
             sleepers; the locks 'futex', 'futex-adaptive' and 'pthread' are never handed to a \
             sleeper"
        );
        summary.idle = 0.04;
        assert!(summary.notes(&chosen(Wait::SpinThenPark)).is_empty());
    }

    #[test]
    fn functions_are_named_without_their_arguments() {
        assert_eq!(short("rocksdb::DB::Get(int, char)"), "rocksdb::DB::Get");
        assert!(is_wrapper("std::mutex::lock()"));
        assert!(is_wrapper(
            "int std::__detail::__try_lock_impl<std::mutex>(std::mutex&)"
        ));
        assert!(!is_wrapper("Queue::put(int)"));
    }
}
