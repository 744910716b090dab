//! The way from recordings to an answer: the program, a model of the machine that recorded
//! it, the simulations, the report.
//!
//! It must never answer from a recording that is not whole.

use crate::candidate::{BASELINE_LOCKS, Candidate, candidates};
use crate::fewer::{Fewer, with_second};
use crate::gate::Gate;
use crate::here::{self, Here};
use crate::question::{Question, generic};
use crate::report::{document, nothing};
use crate::rules::Facts;
use crate::runs::{Advice, points};
use crate::words::{Context, Summary, first_line, to_confirm};
use locklab_document::Document;
use locklab_document::contention_profile::{Bound, ContentionProfile};
use locklab_document::number::percent;
use locklab_host::error::Error;
use locklab_native::Replay;
use locklab_preload_run::judged;
use locklab_replay::{Fault, Limits, Names, Program, Recording, Site, Tally};
use locklab_sim::Machine;
use locklab_trace::{LockKind, calls};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The locks of a program that can be simulated: one that is split becomes eight.
const SPLIT_LOCKS: usize = locklab_sim::MOST_LOCKS - 7;

/// The part of the waits in windows that there is between them, below which they are made by
/// the recording.
const MADE: f64 = 0.5;

/// Describes what is asked of one recording, or of two of one program.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Holds the recording.
    pub file: &'a Path,
    /// Holds a second one, with another number of threads.
    pub other: Option<&'a Path>,
    /// Holds the machines to advise for; none for the one that recorded.
    pub on: Vec<Machine>,
    /// Holds a model of the machine that recorded, if there is one.
    pub here: Option<Machine>,
    /// Holds numbers of threads; none for as recorded.
    pub threads: Vec<usize>,
    /// Holds the locks to try; none for one of each family.
    pub locks: Vec<Candidate>,
    /// Says whether the program may be replayed by real threads on this machine.
    pub replay: bool,
    /// Holds the number of variants of each machine.
    pub draws: usize,
    /// Holds the seed of all random choices.
    pub seed: u64,
    /// Holds the number of simulations at a time.
    pub workers: usize,
}

/// Describes what can be asked of the recordings, once they are read.
pub struct Prepared {
    recording: Recording,
    /// Says whether there is one of fewer threads.
    fewer: Option<Recording>,
    kind: Kind,
    replay: bool,
    /// Says whether the machine that recorded is modelled by what this one measures.
    measured: bool,
    /// Says whether the question is about the machine and the threads of the recording.
    as_recorded: bool,
}

enum Kind {
    /// No other lock is worth a try, in a sentence.
    Nothing(String, Bound),
    /// It has to be simulated.
    Simulated(Box<(Program, Question)>),
}

/// An answer.
pub struct Answer {
    /// Holds the report.
    pub document: Document,
    /// Holds the one sentence that says all, where there is nothing to gain.
    pub nothing: Option<String>,
}

impl Request<'_> {
    /// Reads the recordings and says what there is to simulate.
    ///
    /// # Errors
    /// [`Error::Failed`] if a file is no recording of this version, the two are not of one
    /// program and machine, or there is nothing that can be run again.
    pub fn read(self) -> Result<Prepared, Error> {
        let recording = Recording::open(self.file, Limits::default())?;
        let (recording, fewer) = match self.other {
            None => (recording, None),
            Some(other) => {
                let [more, fewer] = with_second(recording, other)?;
                (more, Some(fewer))
            }
        };
        let (replay, measured) = (self.replay, self.here.is_none());
        let as_recorded = self.on.is_empty() && self.threads.is_empty();
        let asking = |kind, recording| Prepared {
            recording,
            fewer,
            kind,
            replay,
            measured,
            as_recorded,
        };
        let judged = judged(&recording);
        let program = match program_of(&recording, SPLIT_LOCKS, false) {
            // Nor is there more of it elsewhere, or with more threads.
            Err(fault @ (Fault::OneThread | Fault::OneThreadThere)) => {
                let words = match (judged.bound.is_worth_a_try(), judged.is_of_all_locks) {
                    (true, _) => format!(
                        "No other lock was simulated: in the part that would be run again, one \
                         thread takes all locks. {}",
                        judged.words
                    ),
                    (false, true) if judged.bound.is_nothing() => sentence(&fault.to_string()),
                    (false, _) => judged.words,
                };
                return Ok(asking(Kind::Nothing(words, judged.bound), recording));
            }
            program => program.map_err(|fault| recording.failed(fault))?,
        };
        // Elsewhere, or with more threads, there may be more of it.
        if !judged.bound.is_worth_a_try() && self.on.is_empty() && self.threads.is_empty() {
            return Ok(asking(Kind::Nothing(judged.words, judged.bound), recording));
        }
        if let Some(between) = recording
            .waits_between_windows()
            .filter(|part| *part < MADE)
        {
            let words = format!(
                "{} No other lock was simulated: in the windows that would be run again, threads \
                 waited {:.0} times as long as between them, because of the recording.",
                judged.words,
                1.0 / between.max(1e-3)
            );
            return Ok(asking(Kind::Nothing(words, judged.bound), recording));
        }
        let scaling = program.scaling_threads();
        if self.threads.iter().any(|&threads| threads != scaling) && !program.can_be_extrapolated()
        {
            return Err(recording.failed(format!(
                "for {} % of the time in which threads had no work, it is not recorded what \
                 they waited for (input, files, semaphores, a signal of no thread), so it is not \
                 known what other numbers of threads would do; leave out --threads",
                percent(100.0 * program.recorded.unmatched())
            )));
        }
        let here = match &self.here {
            Some(machine) => machine.clone(),
            None => model(&program)?,
        };
        let machines = match self.on.is_empty() {
            true => vec![here.clone()],
            false => self.on,
        };
        let readers = program.locks.iter().any(|lock| lock.shared);
        let mut locks = match self.locks.is_empty() {
            true => candidates(&machines, readers),
            false => self.locks,
        };
        locks.retain(|candidate| !BASELINE_LOCKS.contains(&candidate.lock.as_str()));
        let question = Question {
            machines,
            here,
            replayed: Here::Not("it was not asked for".into()),
            fewer: None,
            threads: self.threads,
            locks,
            draws: self.draws,
            seed: self.seed,
            workers: self.workers,
        };
        let kind = Kind::Simulated(Box::new((program, question)));
        Ok(asking(kind, recording))
    }
}

impl Prepared {
    /// Returns what would be simulated; nothing if nothing has to be.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        match &self.kind {
            Kind::Nothing(..) => None,
            Kind::Simulated(simulated) => Some(&simulated.1),
        }
    }

    /// Simulates what was asked. `names` names places; `progress` is called with
    /// the number of simulations that are done, and of all.
    ///
    /// # Errors
    /// [`Error::Failed`] if the machine cannot be modelled; [`Error::Interrupted`] after
    /// Ctrl-C.
    pub fn answer(
        self,
        names: &mut dyn Names,
        interrupt: &Arc<AtomicBool>,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<Answer, Error> {
        let recording = &self.recording;
        let (file, info) = (recording.path(), recording.info());
        let (program, mut question) = match self.kind {
            Kind::Nothing(mut words, bound) => {
                // It does not depend on how much was waited this time.
                let used = recording.contention_profile(names);
                if let Some(kept) = kept(recording, &used) {
                    words += &format!(" Keep the lock: {kept}.");
                }
                return Ok(Answer {
                    document: nothing(&words, &bound, info),
                    nothing: Some(words),
                });
            }
            Kind::Simulated(simulated) => *simulated,
        };
        let native = here::native(info);
        let mut machine = question.here.clone();
        if let (true, Ok(native)) = (self.measured, &native) {
            machine = here::measured(machine, native, info.apart())?;
        }
        let fewer = self.fewer.as_ref();
        question.fewer = fewer
            .map(|fewer| Fewer::of(fewer, &program, &machine))
            .transpose()?;
        machine = here::as_recorded(machine, &program.recorded, info.apart())?;
        if question.machines == [question.here.clone()] {
            question.machines = here::places(&machine, info.apart())?;
        }
        question.here = machine;
        question.replayed = match self.replay {
            false => Here::Not("by --no-replay".into()),
            true => {
                let program = || {
                    program_of(recording, Replay::MOST_LOCKS, true)
                        .map_err(|fault| recording.failed(fault))
                };
                here::replayed(&native, program, (file, info.apart()), interrupt)?
            }
        };
        let used = recording.contention_profile(names);
        let kept = kept(recording, &used);
        let own = is_own(recording);
        if kept.is_some() {
            question.locks.clear();
        }
        let nearest = nearest(recording, &question);
        let (program, gate) = match nearest {
            Ok(Nearest { delays, gate }) => {
                let program = match delays {
                    true => within(recording, SPLIT_LOCKS, false, true)
                        .map_err(|fault| recording.failed(fault))?,
                    false => program,
                };
                (program, Ok(gate))
            }
            Err(why) => (program, Err(why)),
        };
        let advice = match gate {
            Ok(gate) => match points(&program, &question, interrupt, progress) {
                Ok(points) => {
                    let points = points
                        .ok_or_else(|| Error::Interrupted("interrupted; nothing is kept".into()))?;
                    Ok(Advice { gate, points })
                }
                Err(why) => Err(why.into()),
            },
            Err(why) => Err(why),
        };
        let not_simulated = advice.as_ref().err().map(first_line);
        let recorded = &program.recorded;
        let lived = recorded.window_ns * program.threads.len() as f64;
        let advice = advice.as_ref().ok();
        let doubt = advice.map_or(0.0, |advice| advice.gate.doubt());
        let points = advice.into_iter().flat_map(|advice| &advice.points);
        let summaries: Vec<Summary<'_>> = points
            .filter_map(|point| Summary::of(point, doubt))
            .collect();
        // What is recommended is replayed first.
        let to_try = advice.and_then(|_| to_confirm(&summaries, &program, &question));
        let tried = match to_try {
            Some(number) if self.replay && self.as_recorded => here::tried(
                &native,
                &program,
                (&question.locks[number], recording),
                interrupt,
            ),
            Some(_) if self.replay => {
                Here::Not("it is for another machine or other threads".into())
            }
            _ => Here::Not("by --no-replay".into()),
        };
        let context = Context {
            info,
            tried,
            judged: judged(recording),
            used: &used,
            kept,
            own,
            repeated: recorded.unmatched_ns / lived.max(1.0),
            as_recorded: self.as_recorded,
            not_simulated,
        };
        let mut name =
            |site: &Site| names.place(&calls(&program.modules, site.image, &site.frames));
        let facts = Facts {
            advice,
            summaries: &summaries,
            program: &program,
            question: &question,
            context: &context,
        };
        Ok(Answer {
            document: document(&facts, &mut name),
            nothing: None,
        })
    }
}

/// The reading of the program that is nearest to the recording under its own lock.
struct Nearest {
    /// Says whether waits for other threads are delays as they were recorded.
    delays: bool,
    gate: Gate,
}

/// The part of the waits for other threads that may have had no cause in the simulation.
const FEW: f64 = 0.01;

/// Simulates the program as it was recorded; where the waits of its threads are not
/// understood, once more with these as delays.
fn nearest(recording: &Recording, question: &Question) -> Result<Nearest, Error> {
    let mut nearest: Option<Nearest> = None;
    let mut why = Error::Failed("there is nothing to simulate".into());
    for delays in [false, true] {
        let checked = within(recording, SPLIT_LOCKS, true, delays)
            .map_err(|fault| Error::Failed(fault.to_string()))?;
        match Gate::of(&checked, question) {
            Ok(gate) => {
                let understood = gate.forced() <= FEW;
                let nearer = |best: &Nearest| gate.distance() < best.gate.distance();
                if nearest.as_ref().is_none_or(nearer) {
                    nearest = Some(Nearest { delays, gate });
                }
                if understood {
                    break;
                }
            }
            Err(error) => why = error.into(),
        }
    }
    nearest.ok_or(why)
}

/// Returns why the lock that is waited for most keeps the C library's code, as a clause.
fn kept(recording: &Recording, used: &ContentionProfile) -> Option<String> {
    if !most_wait_for(recording, |kind| {
        kind != LockKind::default() && !kind.is(LockKind::OWN)
    }) {
        return None;
    }
    let hottest = used.locks.iter().find(|lock| lock.kind.is_some())?;
    Some(format!(
        "{} is {}, and such locks 'locklab run' and 'compare' leave as they are",
        hottest.name,
        hottest.kind.as_deref().unwrap_or("special")
    ))
}

/// Returns whether most of the waiting is for locks that the program brings itself, which
/// only its source can change.
fn is_own(recording: &Recording) -> bool {
    most_wait_for(recording, |kind| kind.is(LockKind::OWN))
}

/// Returns whether half of the waiting or more is for locks of such kinds; where no thread
/// waited, whether half of the acquisitions are of them.
fn most_wait_for(recording: &Recording, of: impl Fn(LockKind) -> bool) -> bool {
    let locks = &recording.survey().locks;
    let part = |amount: fn(&Tally) -> u64| {
        let all: u64 = locks.iter().map(|lock| amount(&lock.tally)).sum();
        let these = locks.iter().filter(|lock| of(lock.kind));
        let these: u64 = these.map(|lock| amount(&lock.tally)).sum();
        (all > 0).then_some(2 * these >= all)
    };
    part(|tally| tally.waited)
        .or_else(|| part(|tally| tally.acquired))
        .unwrap_or(false)
}

/// Holds how many times as long the window is where one thread alone takes locks in the usual one.
const LONGER: usize = 16;

fn within(
    recording: &Recording,
    locks: usize,
    with_recorder: bool,
    delays: bool,
) -> Result<Program, Fault> {
    let limits = Limits {
        locks,
        with_recorder,
        delays,
        ..Limits::default()
    };
    match recording.program_within(&limits) {
        // Where CPUs are rare, one thread may take all locks of a short window although
        // the threads wait for one another.
        Err(Fault::OneThreadThere) if judged(recording).bound.is_worth_a_try() => recording
            .program_within(&Limits {
                acquisitions: LONGER * limits.acquisitions,
                ..limits
            }),
        program => program,
    }
}

fn program_of(recording: &Recording, locks: usize, with_recorder: bool) -> Result<Program, Fault> {
    within(recording, locks, with_recorder, false)
}

/// Returns a clause as a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Returns a model of the machine that recorded, of what the recording says.
fn model(program: &Program) -> Result<Machine, Error> {
    let cpus = program.recorded.cpus;
    let cpus = cpus.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    generic(cpus)
}
