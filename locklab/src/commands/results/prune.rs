//! `locklab results prune`: removes experiments from the store.

use crate::arguments::Common;
use crate::output::answer;
use clap::{Args, ValueEnum};
use locklab_harness::store::{Prune, Store};
use locklab_host::error::Error;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// `locklab results prune`: experiments that match everything given.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
#[command(override_usage = "locklab results prune [OPTIONS] [IDS]...")]
pub struct PruneArgs {
    /// Numbers of experiments, as 'results list' shows them
    pub ids: Vec<i64>,
    /// Started at least this long ago, such as 30d, 12h or '2weeks'
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    /// In one of these states
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    pub state: Vec<PrunedState>,
}

/// States of what can be removed; an experiment that runs cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrunedState {
    /// Nothing could be measured
    Failed,
    /// Stopped before it was complete; --resume can complete it
    Interrupted,
    /// Complete
    Done,
    /// Its description cannot be read
    Damaged,
    /// Single samples, of any experiment, that cannot be read
    DamagedSamples,
}

/// Removes the requested experiments, or prints what would be removed.
///
/// # Errors
/// The store cannot be written, or none of its experiments has such a number.
pub(super) fn run(there: &Store, args: &PruneArgs, common: &Common) -> Result<ExitCode, Error> {
    let state = |state: &PrunedState| {
        let value = state.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_owned())
    };
    let is_whole = |state: &&PrunedState| **state != PrunedState::DamagedSamples;
    let prune = Prune {
        ids: args.ids.clone(),
        older_than: args.older_than,
        states: args.state.iter().filter(is_whole).map(state).collect(),
        damaged_rows: args.state.iter().any(|s| !is_whole(&s)),
    };
    let pruned = match common.dry_run {
        true => there.prunable(&prune),
        false => Store::open(there.path()).and_then(|store| store.prune(&prune)),
    }?;
    let json = || json!({ "schema": 1, "dry_run": common.dry_run, "pruned": pruned });
    answer(common.json, json, || pruned.text(common.dry_run))
}
