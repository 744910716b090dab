//! `locklab results`: the contents of the store, whatever was compared.

use crate::cli::Common;
use crate::comparing::{ReportFiles, show_stored};
use crate::output::{print, store_path};
use clap::{Args, Subcommand, ValueEnum};
use locklab_host::error::Error;
use locklab_lab::store::{Listed, Prune, Store, StoredSample};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// `locklab results`.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ResultsCommand,
}

/// The subcommands of `locklab results`.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// List every experiment, the latest first
    List,
    /// Show the report of one experiment again
    Show {
        /// Its number [default: the latest]
        id: Option<i64>,
        #[command(flatten)]
        #[allow(missing_docs, reason = "its options have their own")]
        files: ReportFiles,
    },
    /// Copy experiments of other stores that this one does not have
    Merge {
        /// Their files
        #[arg(required = true, value_name = "STORE")]
        from: Vec<PathBuf>,
    },
    /// Remove experiments, by number, age or state, and shrink the file
    Prune(PruneArgs),
    /// Write every sample to standard output
    Export {
        /// Only samples of this experiment
        id: Option<i64>,
        /// Format of the export
        #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
        format: ExportFormat,
    },
}

/// `locklab results prune`: experiments that match everything given.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct PruneArgs {
    /// Their numbers
    pub ids: Vec<i64>,
    /// Started at least this long ago, such as 30d, 12h or '2weeks'
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    /// In one of these states
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    pub state: Vec<PrunedState>,
    /// Also remove single samples that cannot be read
    #[arg(long)]
    pub damaged: bool,
}

/// States of experiments that can be removed; one that runs cannot.
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
    let store = || Store::read(&store_path(common)?).map_err(Error::Failed);
    match &args.command {
        ResultsCommand::Merge { from } => merge(from, common),
        ResultsCommand::Prune(args) => prune(&store()?, args, common),
        ResultsCommand::List => {
            let list = store()?.list().map_err(Error::Failed)?;
            if common.json {
                let document = json!({ "schema": 1, "experiments": list });
                return print(&format!("{document:#}\n"));
            }
            print(&table(&list))
        }
        ResultsCommand::Show { id, files } => {
            let store = store()?;
            let listed = store.listed(*id).map_err(Error::Failed)?;
            let experiment = store.experiment(listed.id).map_err(Error::Failed)?;
            show_stored(&experiment, &listed, files, common)
        }
        ResultsCommand::Export { id, format } => export(&store()?, *id, *format, common),
    }
}

fn export(
    store: &Store,
    id: Option<i64>,
    format: ExportFormat,
    common: &Common,
) -> Result<ExitCode, Error> {
    if let Some(id) = id {
        store.listed(Some(id)).map_err(Error::Failed)?;
    }
    let (samples, damaged) = store.samples(id).map_err(Error::Failed)?;
    if !common.quiet {
        damaged.iter().for_each(|row| eprintln!("locklab: {row}"));
    }
    let text = match format {
        ExportFormat::Jsonl => json_lines(&samples),
        ExportFormat::Csv => csv(&samples).map_err(|e| Error::Failed(format!("{e}")))?,
    };
    print(&text)
}

/// Merges stores and prints one line for each. A store that is named twice, or
/// that was merged before, adds nothing.
fn merge(from: &[PathBuf], common: &Common) -> Result<ExitCode, Error> {
    let stores = from.iter().map(|path| Store::read(path));
    let stores: Vec<Store> = stores.collect::<Result<_, _>>().map_err(Error::Failed)?;
    let to = Store::open(&store_path(common)?).map_err(Error::Failed)?;
    let mut text = String::new();
    let mut all = Vec::new();
    for store in &stores {
        let merged = to.merge(store).map_err(Error::Failed)?;
        all.push(json!({ "store": store.path(), "merged": merged }));
        if !common.quiet {
            merged
                .damaged
                .iter()
                .for_each(|row| eprintln!("locklab: {row}"));
        }
        let _ = writeln!(
            text,
            "{}: {} new, {} with more samples, {} known already; {} samples copied",
            store.path().display(),
            merged.added,
            merged.completed,
            merged.known,
            merged.samples
        );
    }
    if common.json {
        text = format!("{:#}\n", json!({ "schema": 1, "stores": all }));
    }
    print(&text)
}

/// Removes the requested experiments, or prints what would be removed.
fn prune(there: &Store, args: &PruneArgs, common: &Common) -> Result<ExitCode, Error> {
    let state = |state: &PrunedState| {
        let value = state.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_owned())
    };
    let prune = Prune {
        ids: args.ids.clone(),
        older_than: args.older_than,
        states: args.state.iter().map(state).collect(),
        damaged_rows: args.damaged,
    };
    let pruned = match common.dry_run {
        true => there.prunable(&prune),
        false => Store::open(there.path()).and_then(|store| store.prune(&prune)),
    };
    let pruned = pruned.map_err(Error::Failed)?;
    if common.json {
        let document = json!({ "schema": 1, "dry_run": common.dry_run, "pruned": pruned });
        return print(&format!("{document:#}\n"));
    }
    print(&pruned.text(common.dry_run))
}

fn json_lines(samples: &[StoredSample]) -> String {
    samples
        .iter()
        .map(|stored| {
            let mut line: Map<String, Value> = flat(stored).into_iter().collect();
            line.insert("detail".into(), stored.sample.detail.clone());
            format!("{}\n", Value::Object(line))
        })
        .collect()
}

/// The fields of a sample: its cell's axes and its figures, in the order of
/// columns.
fn flat(stored: &StoredSample) -> Vec<(String, Value)> {
    let sample = &stored.sample;
    let placement = sample.placement.as_ref();
    let invalid = sample.invalid.as_ref();
    let mut fields = vec![("experiment".to_owned(), json!(stored.experiment))];
    let axes = stored.cell.0.iter();
    fields.extend(axes.map(|(axis, at)| (axis.clone(), json!(at))));
    fields.extend(
        [
            ("pair", json!(stored.pair)),
            ("side", json!(stored.side)),
            ("subject", json!(stored.subject)),
            ("order", json!(stored.order)),
            ("state", json!(stored.state)),
            ("started_s", json!(sample.started)),
            ("placement", json!(placement.map(|p| &p.class))),
            ("invalid", json!(invalid.map(|i| i.why()))),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let values = sample.values.iter();
    fields.extend(values.map(|(name, value)| (name.clone(), json!(value))));
    fields
}

/// One row per sample; missing fields are empty. Columns are those that
/// any sample has, in the order in which they first occur.
fn csv(samples: &[StoredSample]) -> Result<String, Box<dyn std::error::Error>> {
    let rows: Vec<Vec<(String, Value)>> = samples.iter().map(flat).collect();
    let mut columns: Vec<&String> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, _) in rows.iter().flatten() {
        if known.insert(name) {
            columns.push(name);
        }
    }
    let mut csv = csv::Writer::from_writer(Vec::new());
    if !columns.is_empty() {
        csv.write_record(&columns)?;
    }
    for row in &rows {
        let at = |column: &String| row.iter().find(|(name, _)| name == column);
        csv.write_record(columns.iter().map(|column| match at(column) {
            None | Some((_, Value::Null)) => String::new(),
            Some((_, Value::String(text))) => text.clone(),
            Some((_, value)) => value.to_string(),
        }))?;
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}

fn table(list: &[Listed]) -> String {
    if list.is_empty() {
        return "The store is empty; 'locklab matrix' and 'locklab compare' fill it.\n".into();
    }
    let mut text = format!(
        "{:>4}  {:<19}  {:<11}  {:<8}  {:>6}  {}\n",
        "id", "started (UTC)", "state", "kind", "runs", "experiment vs baseline"
    );
    for e in list {
        let _ = writeln!(
            text,
            "{:>4}  {:<19}  {:<11}  {:<8}  {:>6}  {} vs {}",
            e.id, e.started, e.state, e.kind, e.runs, e.experiment, e.baseline
        );
    }
    text
}
