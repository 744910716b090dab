//! One experiment from its first run to its verdicts, with the store beside
//! it: the part of every comparing command between its arguments and its
//! report.
//!
//! Whatever happens to the store, and after Ctrl-C, the measured samples are
//! returned. It prints nothing except notes beside the progress bar.

use crate::VERSION;
use crate::backend::Backend;
use crate::experiment::{Cell, Experiment, Pair};
use crate::pairs::primary_pairs;
use crate::progress::Progress;
use crate::runner::{Outcome, Runner, Stop};
use crate::store::{Listed, Recorder, Store, hash_of};
use crate::verdicts::undecided;
use locklab_document::number;
use locklab_host::error::Error;
use locklab_judge::bias_band;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The settings with which an experiment is carried out.
pub struct Session<'a> {
    /// The store for samples.
    pub store: Store,
    /// The command line, for the report.
    pub command: String,
    /// Says whether to continue the same experiment if it was interrupted.
    pub resume: bool,
    /// The time after which no pair is started.
    pub deadline: Option<Instant>,
    /// Set by a signal.
    pub interrupt: &'a AtomicBool,
    /// Says whether the bar and notes are suppressed.
    pub quiet: bool,
}

/// The result of a session.
pub struct Measured {
    /// The experiment with all its pairs.
    pub experiment: Experiment,
    /// Its entry in the store: its number, when it was begun.
    pub listed: Listed,
    /// Says whether all was measured, or why it stopped.
    pub outcome: Outcome,
    /// The error of the store, if it failed: samples from then on
    /// are not in it.
    pub store_failure: Option<String>,
}

impl Session<'_> {
    /// Carries out `experiment`, which has cells without pairs.
    ///
    /// # Errors
    /// If the store cannot be read or written before the first run. Nothing was
    /// run then.
    pub fn run(
        self,
        backend: &mut dyn Backend,
        mut experiment: Experiment,
    ) -> Result<Measured, Error> {
        let Self {
            store,
            command,
            resume,
            deadline,
            interrupt,
            quiet,
        } = self;
        read_bands(&store, backend, &mut experiment)?;
        let noun = "runs";
        let progress = Progress::new(0, noun, quiet);
        let key = key_of(backend, &experiment);
        let id = begin(&store, &key, &command, resume, &mut experiment, &progress)?;
        let listed = store.listed(Some(id))?;
        backend.numbered(id);
        let mut recorder = Recorder::new(store, id);
        let like = Experiment {
            cells: Vec::new(),
            ..experiment.clone()
        };
        let undecided = |cells: Vec<Cell>| {
            let then = Experiment {
                cells,
                ..like.clone()
            };
            // The report says which cells cannot be judged.
            undecided(&then).unwrap_or_default()
        };
        let outcome = Runner {
            design: &like.design,
            recorder: &mut recorder,
            progress: &progress,
            deadline,
            interrupt,
            undecided: &undecided,
        }
        .run(backend, &mut experiment.cells);
        drop(progress);
        match outcome.repeated {
            0 => {}
            1 => experiment
                .caveats
                .push("One pair was run again because the machine disturbed it.".into()),
            n => experiment.caveats.push(format!(
                "{n} pairs were run again because the machine disturbed them."
            )),
        }
        experiment.interrupted = outcome
            .stopped
            .as_ref()
            .map(|stop| missing(stop, &experiment));
        if experiment.design.aa {
            let unknown = keep_bands(&mut recorder, backend, &experiment);
            experiment.caveats.extend(unknown);
        }
        recorder.with(|store, id| store.finish(id, &experiment));
        Ok(Measured {
            experiment,
            listed,
            outcome,
            store_failure: recorder.failure().map(str::to_owned),
        })
    }
}

/// Returns the key of an experiment in a store: the same for the same question, asked
/// of the same set-up with the same design by the same version.
#[must_use]
pub fn key_of(backend: &dyn Backend, experiment: &Experiment) -> String {
    hash_of(&(
        backend.fingerprint(),
        &experiment.kind,
        &experiment.design,
        VERSION,
    ))
}

/// Continues an experiment that was interrupted, or begins a new one.
fn begin(
    store: &Store,
    key: &str,
    command: &str,
    resume: bool,
    experiment: &mut Experiment,
    progress: &Progress,
) -> Result<i64, Error> {
    let unfinished = if resume { store.unfinished(key)? } else { None };
    let Some(id) = unfinished else {
        if resume {
            progress.note(&format!(
                "No interrupted experiment of this kind is in the store {}; starting a new one.",
                store.path().display()
            ));
        }
        return store.begin(key, command, experiment);
    };
    let (mut pairs, damaged) = store.pairs(id)?;
    for cell in &mut experiment.cells {
        cell.pairs = pairs.remove(&cell.key).unwrap_or_default();
    }
    experiment
        .caveats
        .extend(damaged.iter().map(ToString::to_string));
    store.go_on(id)?;
    let done: usize = experiment.cells.iter().map(|c| c.pairs.len()).sum();
    progress.note(&format!(
        "Going on with experiment {id}: {done} {} there.",
        if done == 1 { "pair is" } else { "pairs are" }
    ));
    Ok(id)
}

/// Returns why an experiment is not complete, and how much of it is missing.
fn missing(stop: &Stop, experiment: &Experiment) -> String {
    let why = match stop {
        Stop::Interrupted => "interrupted by a signal",
        Stop::TimeLimit => "the time limit was reached",
        Stop::UsedUp => {
            "the time was used up before all was measured; what the machine disturbs is measured \
             again, so measure while it is idle, or with a longer --time"
        }
        Stop::Fatal(why) => why,
    };
    let asked = experiment.design.pairs as usize;
    let counts = |pairs: &[Pair]| pairs.iter().filter(|p| !p.is_disturbed()).count();
    let open = experiment
        .cells
        .iter()
        .filter(|cell| counts(&cell.pairs) < asked)
        .count();
    let all = experiment.cells.len();
    format!(
        "{why}; {open} of {all} {} not complete",
        if all == 1 { "cell is" } else { "cells are" }
    )
}

/// Reads the bands of earlier A/A runs of this set-up. An A/A run is judged
/// without the band that it makes.
fn read_bands(
    store: &Store,
    backend: &dyn Backend,
    experiment: &mut Experiment,
) -> Result<(), Error> {
    for cell in &mut experiment.cells {
        match backend.bias_fingerprint(cell) {
            // A deterministic backend has no bias.
            None => cell.bias_band = Some(0.0),
            Some(_) if experiment.design.aa => {}
            Some(setup) => {
                cell.bias_band = store.band(&hash_of(&(setup, VERSION)), cell)?;
            }
        }
    }
    Ok(())
}

/// Stores the bands of an A/A run for later experiments, and returns the caveat
/// of the cells in which it was too short to give one; these keep that of an
/// older run.
fn keep_bands(
    recorder: &mut Recorder,
    backend: &dyn Backend,
    experiment: &Experiment,
) -> Option<String> {
    let mut without = 0;
    for cell in &experiment.cells {
        let Some(setup) = backend.bias_fingerprint(cell) else {
            continue;
        };
        let delta = cell.delta.unwrap_or(experiment.design.delta);
        match bias_band(&primary_pairs(cell), delta) {
            Some(band) => {
                let setup = hash_of(&(setup, VERSION));
                recorder.with(|store, id| store.keep_band(&setup, cell, band, id));
            }
            None => without += 1,
        }
    }
    (without > 0).then(|| {
        format!(
            "In {} these pairs neither found a bias nor ruled out one as large as the margin: \
             later comparisons will say that the bias of this set-up is not known; a longer A/A \
             run would bound it.",
            number::count(without, "cell")
        )
    })
}
