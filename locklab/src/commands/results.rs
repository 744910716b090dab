//! `locklab results`: the contents of the store, whatever was compared.

mod prune;
mod schema;

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, StoreArgs};
use crate::commands::record::recording;
use crate::comparison::show_stored;
use crate::output::{answer, print};
use clap::{Args, Subcommand};
use locklab_harness::settings::refuse;
use locklab_harness::store::{Store, export, listing};
use locklab_host::error::Error;
use locklab_host::message;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `locklab results`.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// The thing to do with the stored results.
    #[command(subcommand)]
    pub command: ResultsCommand,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// The subcommands of `locklab results`.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// List every experiment, the latest first
    List,
    /// Show the report of one experiment again, or a recording: threads, waiting, call sites
    Show {
        /// Number of the experiment, or a file: a recording, a table of perf lock contention
        /// or klockstat, a mutex or block profile of Go [default: the latest experiment]
        #[arg(value_name = "ID|FILE")]
        what: Option<OsString>,
        #[command(flatten)]
        #[allow(missing_docs, reason = "its options have their own")]
        files: ReportFiles,
    },
    /// Copy experiments of other stores that this one does not have
    Merge {
        /// Files of the other stores
        #[arg(required = true, value_name = "STORE")]
        from: Vec<PathBuf>,
    },
    /// Remove experiments, by number, age or state, and shrink the file
    Prune(prune::PruneArgs),
    /// Write every sample to standard output: as CSV, or with --json one object a line
    Export {
        /// Take only samples of this experiment
        id: Option<i64>,
    },
    /// Print the JSON schemas of experiment files and of results
    Schema {
        /// The kind of document [default: all, as one object]
        #[arg(value_enum)]
        of: Option<schema::SchemaOf>,
    },
}

/// Runs `locklab results`.
///
/// # Errors
/// [`Error::Failed`] if the store cannot be read or written, has no such
/// experiment, or standard output cannot be written; [`Error::Usage`] if there
/// is no home folder for a store or an argument is wrong.
pub fn run(args: &ResultsArgs, common: &Common) -> Result<ExitCode, Error> {
    let store = || -> Result<Store, Error> { Store::read(&args.store.path()?) };
    match &args.command {
        ResultsCommand::Merge { from } => merge(from, args, common),
        ResultsCommand::Prune(args) => prune::run(&store()?, args, common),
        ResultsCommand::List => {
            let list = store()?.list()?;
            let json = || json!({ "schema": 1, "experiments": list });
            answer(common.json, json, || listing(&list))
        }
        ResultsCommand::Show { what, files } => {
            let number = what
                .as_ref()
                .map(|what| what.to_str().unwrap_or("").parse());
            if let (Some(what), Some(Err(_))) = (what, &number) {
                refuse(
                    files,
                    "is for a stored experiment, and this is a file; leave it out",
                )?;
                return recording(Path::new(what), common);
            }
            let store = store()?;
            let listed = store.listed(number.and_then(Result::ok))?;
            let experiment = store.experiment(listed.id)?;
            show_stored(&experiment, &listed, files, common)
        }
        ResultsCommand::Export { id } => print_samples(&store()?, *id, common),
        ResultsCommand::Schema { of } => schema::run(*of),
    }
}

fn print_samples(store: &Store, id: Option<i64>, common: &Common) -> Result<ExitCode, Error> {
    if let Some(id) = id {
        store.listed(Some(id))?;
    }
    let (samples, damaged) = store.samples(id)?;
    if !common.quiet {
        damaged
            .iter()
            .for_each(|row| message::print(format_args!("locklab: {row}")));
    }
    let text = match common.json {
        true => export::json_lines(&samples),
        false => export::csv(&samples)?,
    };
    print(&text)
}

/// Merges stores and prints one line for each. A store that is named twice, or
/// that was merged before, adds nothing.
fn merge(from: &[PathBuf], args: &ResultsArgs, common: &Common) -> Result<ExitCode, Error> {
    let stores = from.iter().map(|path| Store::read(path));
    let stores: Vec<Store> = stores.collect::<Result<_, _>>()?;
    let path = args.store.path()?;
    if common.dry_run {
        let names = stores
            .iter()
            .map(|store| store.path().display().to_string());
        let names: Vec<String> = names.collect();
        return print(&format!(
            "Would merge {} into {}.\n",
            names.join(", "),
            path.display()
        ));
    }
    let to = Store::open(&path)?;
    let mut text = String::new();
    let mut all = Vec::new();
    for store in &stores {
        let merged = to.merge(store)?;
        all.push(json!({ "store": store.path(), "merged": merged }));
        if !common.quiet {
            merged
                .damaged
                .iter()
                .for_each(|row| message::print(format_args!("locklab: {row}")));
        }
        text += &merged.text(store.path());
    }
    if common.json {
        text = format!("{:#}\n", json!({ "schema": 1, "stores": all }));
    }
    print(&text)
}
