//! A recording: one file, whose records are read again in each pass.
//!
//! Whoever has a question about a recorded program asks this: what its threads did and
//! who waited for which lock ([`Recording::survey`], [`Recording::contention_profile`]), and the
//! program as it can be run again ([`Recording::program`]). It must never
//! keep all records in memory, and never name a place itself.

use crate::extract::Limits;
use crate::fault::Fault;
use crate::made_locks::recognised;
use crate::parts::Parts;
use crate::program::Program;
use crate::survey::Survey;
use crate::surveyed::{SurveyedLock, Tally, ThreadTimes};
use locklab_document::contention_profile::{ContentionProfile, Counts, Seen, Spent, Times, Used};
use locklab_host::error::Error;
use locklab_trace::{Info, Missing, Module, Source, Trace, calls};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The number of ways to call sites that are named: names take long to find.
const NAMED: usize = 200;
/// The name of the others.
const OTHERS: &str = "(other places)";

/// The name of a stack of which nothing is known.
pub const NO_PLACE: &str = "(place unknown)";

/// Names of places in a program's files.
pub trait Names {
    /// Returns the name of a stack of calls, the innermost first, as files and offsets in
    /// them; [`NO_PLACE`] if nothing is known of it.
    fn place(&mut self, calls: &[(PathBuf, u64)]) -> String;

    /// Returns the name of the static data at an address of an image, with its file, if it
    /// has one.
    fn data(&mut self, modules: &[Module], image: u64, address: u64) -> Option<String>;
}

/// A recording that was read.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    bytes: u64,
    trace: Trace,
    limits: Limits,
    survey: Survey,
    /// By how much more or less threads wait between windows.
    between: Option<f64>,
    parts: OnceLock<Parts>,
    lock_names: OnceLock<Vec<String>>,
}

impl Recording {
    /// Reads the recording in a file; `limits` say how much of it [`Recording::program`]
    /// runs again.
    ///
    /// # Errors
    /// [`Error::Failed`] if the file cannot be read, or is no recording of this version.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, Error> {
        let unreadable = |why: String| Error::Failed(format!("{}: {why}", path.display()));
        let file = File::open(path);
        let file = file.map_err(|e| unreadable(format!("cannot be read: {e}")))?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let trace = Trace::open(file).map_err(|why| unreadable(why.to_string()))?;
        let trace = recognised(trace);
        Ok(Self {
            path: path.into(),
            bytes: length,
            survey: Survey::of(&trace),
            between: trace.waits_between_windows(),
            trace,
            limits,
            parts: OnceLock::new(),
            lock_names: OnceLock::new(),
        })
    }

    /// Returns the failure of a question that it cannot answer, for this reason, which
    /// names the file.
    #[must_use]
    pub fn failed(&self, why: impl fmt::Display) -> Error {
        Error::Failed(format!("{}: {why}", self.path.display()))
    }

    /// Returns the file's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns what the header says.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.trace.info
    }

    /// Returns the records.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns what the whole recording says.
    #[must_use]
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Returns so many ticks of the recording's clock in nanoseconds.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        self.trace.nanoseconds(ticks)
    }

    /// Returns the length of the recording in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> f64 {
        let info = &self.trace.info;
        self.nanoseconds(info.ended.saturating_sub(info.began))
    }

    /// Returns the program's name: the first word of its command, without folders.
    #[must_use]
    pub fn program_name(&self) -> &str {
        let command = &self.trace.info.command;
        // A name with spaces is quoted.
        let word = match command.strip_prefix('\'') {
            Some(quoted) => quoted.split('\'').next(),
            None => command.split(' ').next(),
        };
        let word = word.unwrap_or(command);
        word.rsplit('/')
            .next()
            .unwrap_or(word)
            .trim_end_matches(',')
    }

    /// Returns whether the file is whole: otherwise who waited for whom is not known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.trace.missing == Missing::default()
    }

    /// Returns what threads did, all together, over the whole recording. Of one in windows,
    /// waiting is what it was between them, where nothing lengthens the sections. Few waits of
    /// a thread that were not recorded are for no lock: a lock is waited for again and again.
    #[must_use]
    pub fn times(&self) -> Times {
        const FEW: u64 = 3;
        let sum = |of: fn(&ThreadTimes) -> u64| self.nanoseconds(self.survey.sum(of));
        let unknown = sum(|thread| match thread.unknown_waits {
            0..=FEW => 0,
            _ => thread.unknown,
        });
        self.as_between(Times {
            lived_ns: sum(|thread| thread.lived),
            idle_ns: sum(|thread| thread.idle + thread.unknown) - unknown,
            ready_ns: sum(|thread| thread.ready),
            ready_by_locks_ns: sum(|thread| thread.ready_by_locks),
            unknown_ns: unknown,
            recorder_ns: 0.0,
            waited_ns: sum(|thread| thread.waited),
            spun_ns: sum(|thread| thread.spun),
            woke_ns: sum(|thread| thread.woke),
        })
    }

    /// Returns times of windows as they are between windows.
    fn as_between(&self, mut times: Times) -> Times {
        let factor = self.between.unwrap_or(1.0);
        let most = times.busy_ns() / times.lost_ns().max(1.0);
        times.waited_ns *= factor.min(most);
        times.woke_ns *= factor.min(most);
        times.spun_ns *= factor.min(most);
        times
    }

    /// Returns by how much more or less threads wait between windows than in them, where that
    /// is known: recording lengthens short sections, and others wait for them.
    #[must_use]
    pub fn waits_between_windows(&self) -> Option<f64> {
        self.between
    }

    /// Returns a tally in nanoseconds; of waits alone it is not known how long locks were
    /// held.
    #[must_use]
    pub fn counts(&self, tally: &Tally) -> Counts {
        let holds = self.trace.info.source != Source::KernelWaits;
        Counts {
            acquired: Some(tally.acquired),
            contended: tally.contended,
            waited_ns: Some(self.nanoseconds(tally.waited)),
            longest_ns: None,
            held_ns: holds.then(|| self.nanoseconds(tally.held)),
        }
    }

    /// Returns where the time of the waits went; of waits alone nobody knows.
    #[must_use]
    pub fn spent(&self, tally: &Tally) -> Option<Spent> {
        let of = |ticks: u64| self.nanoseconds(ticks);
        let holds = self.trace.info.source != Source::KernelWaits;
        holds.then(|| Spent {
            holder_works_ns: of(tally.spent.works),
            holder_stopped_ns: of(tally.spent.stopped),
            waking_ns: of(tally.spent.waking),
            in_line_ns: of(tally.spent.in_line),
        })
    }

    /// Returns the name of each lock of the survey: the symbol of one that lies in static
    /// data, and otherwise the place that acquires it most often.
    pub fn lock_names(&self, names: &mut dyn Names) -> &[String] {
        self.lock_names.get_or_init(|| self.named_locks(names))
    }

    fn named_locks(&self, names: &mut dyn Names) -> Vec<String> {
        let survey = &self.survey;
        let mut places: BTreeMap<usize, String> = BTreeMap::new();
        let mut name = |lock: &SurveyedLock| {
            // Lockdep's name of a lock of the kernel: a file of one byte that lies there.
            let lockdep = survey.modules.iter().find(|module| {
                module.from == lock.address && module.to == lock.address.wrapping_add(1)
            });
            if let Some(module) = lockdep {
                return String::from_utf8_lossy(&module.path).into_owned();
            }
            if let Some(symbol) = names.data(&survey.modules, lock.image, lock.address) {
                return symbol;
            }
            let Some(site) = lock.site.filter(|_| places.len() < NAMED) else {
                return format!("{:#x}", lock.address);
            };
            let place = places.entry(site).or_insert_with(|| {
                let site = &survey.sites[site];
                names.place(&calls(&survey.modules, site.image, &site.frames))
            });
            match place.as_str() {
                NO_PLACE => format!("{:#x}", lock.address),
                place => format!("lock of {place}"),
            }
        };
        survey.locks.iter().map(&mut name).collect()
    }

    /// Returns who waited for which lock, and where.
    pub fn contention_profile(&self, names: &mut dyn Names) -> ContentionProfile {
        let survey = &self.survey;
        let lock_names = self.lock_names(names);
        let locks = survey
            .locks
            .iter()
            .zip(lock_names)
            .map(|(lock, name)| Used {
                name: name.clone(),
                kind: Some(lock.kind.words()).filter(|words| !words.is_empty()),
                locks: 1,
                counts: self.counts(&lock.tally),
                spent: self.spent(&lock.tally),
            });
        let heat = |tally: &Tally| (tally.waited, tally.held, tally.acquired);
        let mut ways: Vec<_> = survey
            .sites
            .iter()
            .filter(|site| site.tally.acquired + site.tally.contended > 0)
            .collect();
        ways.sort_by_key(|site| std::cmp::Reverse(heat(&site.tally)));
        let sites = ways.iter().enumerate().map(|(number, site)| Used {
            name: match number < NAMED {
                true => names.place(&calls(&survey.modules, site.image, &site.frames)),
                false => OTHERS.into(),
            },
            kind: None,
            locks: 0,
            counts: self.counts(&site.tally),
            spent: self.spent(&site.tally),
        });
        let ContentionProfile { locks, sites, .. } =
            ContentionProfile::new(Times::default(), locks.collect(), sites.collect());
        ContentionProfile {
            locks,
            sites,
            ..self.account()
        }
    }

    /// Returns what threads did, all together and in parts of the recording, without the
    /// locks.
    #[must_use]
    pub fn account(&self) -> ContentionProfile {
        let windows = self.survey.windows.iter().map(|window| {
            self.as_between(Times {
                lived_ns: self.nanoseconds(window.lived),
                idle_ns: self.nanoseconds(window.idle),
                waited_ns: self.nanoseconds(window.waited),
                spun_ns: self.nanoseconds(window.spun),
                woke_ns: self.nanoseconds(window.woke),
                ..Times::default()
            })
        });
        ContentionProfile {
            times: self.times(),
            windows: windows.collect(),
            seen: Seen {
                windows: self.info().windows.map(|windows| windows.count),
                crowded: self.info().shared_with_others().is_some(),
                ..Seen::default()
            },
            ..ContentionProfile::default()
        }
    }

    /// Returns the program that it describes, within its limits.
    ///
    /// # Errors
    /// A [`Fault`] if there is nothing to run again.
    pub fn program(&self) -> Result<Program, Fault> {
        self.program_within(&self.limits)
    }

    /// Returns the program that it describes, within other limits; `extract` reads it.
    ///
    /// # Errors
    /// A [`Fault`] if there is nothing to run again.
    pub fn program_within(&self, limits: &Limits) -> Result<Program, Fault> {
        let parts = || self.parts.get_or_init(|| Parts::of(&self.trace));
        Program::of_parts(&self.trace, parts, limits)
    }
}
