//! `locklab results`: the contents of the store, whatever was compared.

mod prune;

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, StoreArgs};
use crate::comparison::show_stored;
use crate::output::print;
use clap::{Args, Subcommand, ValueEnum};
use locklab_host::error::Error;
use locklab_host::message;
use locklab_lab::store::{Store, export, listing};
use serde_json::json;
use std::path::PathBuf;
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
    /// Show the report of one experiment again
    Show {
        /// Number of the experiment [default: the latest]
        id: Option<i64>,
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
    /// Write every sample to standard output
    Export {
        /// Take only samples of this experiment
        id: Option<i64>,
        /// Format of the export
        #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
        format: ExportFormat,
    },
}

/// Forms of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One line per sample, with a header
    Csv,
    /// JSON Lines: one object per sample
    Jsonl,
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
            if common.json {
                let document = json!({ "schema": 1, "experiments": list });
                return print(&format!("{document:#}\n"));
            }
            print(&listing(&list))
        }
        ResultsCommand::Show { id, files } => {
            let store = store()?;
            let listed = store.listed(*id)?;
            let experiment = store.experiment(listed.id)?;
            show_stored(&experiment, &listed, files, common)
        }
        ResultsCommand::Export { id, format } => print_samples(&store()?, *id, *format, common),
    }
}

fn print_samples(
    store: &Store,
    id: Option<i64>,
    format: ExportFormat,
    common: &Common,
) -> Result<ExitCode, Error> {
    if let Some(id) = id {
        store.listed(Some(id))?;
    }
    let (samples, damaged) = store.samples(id)?;
    if !common.quiet {
        damaged
            .iter()
            .for_each(|row| message::print(format_args!("locklab: {row}")));
    }
    let text = match format {
        ExportFormat::Jsonl => export::json_lines(&samples),
        ExportFormat::Csv => export::csv(&samples)?,
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
