//! Reads the contents of a store: lists, experiments, samples.
//!
//! A row with damaged bytes never fails the rest: it is left out and named.

use super::database::Store;
use crate::experiment::{Experiment, Key, Order, Pair, Sample, kind_of_today};
use locklab_host::error::Error;
use locklab_judge::Side;
use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

/// One experiment in a list.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Its number in this store, by which commands name it.
    pub id: i64,
    /// The time of its start, UTC.
    pub started: String,
    /// `running`, `interrupted` (or killed), `failed` (nothing was measured),
    /// `done`, `damaged`.
    pub state: String,
    /// The kind of comparison.
    pub kind: String,
    /// The command line that began it.
    pub command: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Number of stored samples.
    pub runs: u64,
}

/// One sample with its experiment, cell and pair.
#[derive(Clone, Debug, Serialize)]
pub struct StoredSample {
    /// Number of its experiment.
    pub experiment: i64,
    /// The point or workload it belongs to.
    pub cell: Key,
    /// Number of its pair.
    pub pair: u32,
    /// Says whether it is of the baseline or of the experiment.
    pub side: Side,
    /// The name of that side.
    pub subject: String,
    /// The order of its pair.
    pub order: Order,
    /// `open`, `kept` or `repeated`.
    pub state: String,
    /// The sample of the run.
    pub sample: Sample,
}

/// Returns the list as a table, one row an experiment.
#[must_use]
pub fn listing(list: &[Listed]) -> String {
    if list.is_empty() {
        return "The store is empty; 'locklab matrix' and 'locklab compare' fill it.\n".into();
    }
    let mut text = format!(
        "{:>4}  {:<19}  {:<11}  {:<8}  {:>6}  {}\n",
        "id", "started (UTC)", "state", "kind", "runs", "experiment vs baseline"
    );
    for e in list {
        text.push_str(&e.line());
    }
    text
}

impl Listed {
    /// Returns one line, however long its names are: a list can be searched by grep.
    pub(super) fn line(&self) -> String {
        format!(
            "{:>4}  {:<19}  {:<11}  {:<8}  {:>6}  {} vs {}\n",
            self.id, self.started, self.state, self.kind, self.runs, self.experiment, self.baseline
        )
    }
}

impl Store {
    /// Returns every experiment, the latest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let query = || -> rusqlite::Result<Vec<Listed>> {
            self.db
                .prepare(
                    "SELECT e.id, e.started, e.state, e.process, e.command, e.header,
                            (SELECT count(*) FROM samples s WHERE s.experiment = e.id)
                     FROM experiments e ORDER BY e.id DESC",
                )?
                .query_map([], listed)?
                .collect()
        };
        query().map_err(|e| self.wrong(&e))
    }

    /// Returns one experiment of the list, or the latest.
    ///
    /// # Errors
    /// If there is no such experiment, or the store cannot be read.
    pub fn listed(&self, experiment: Option<i64>) -> Result<Listed, Error> {
        let found = self
            .list()?
            .into_iter()
            .find(|listed| experiment.is_none_or(|id| listed.id == id));
        found.ok_or_else(|| match experiment {
            Some(id) => Error::Failed(format!(
                "the store {} has no experiment {id}; 'locklab results list' shows what it has",
                self.path.display()
            )),
            None => Error::Failed(format!(
                "the store {} is empty; 'locklab matrix' and 'locklab compare' fill it",
                self.path.display()
            )),
        })
    }

    /// Returns a stored experiment with its pairs, as it was reported. A part that
    /// cannot be read becomes a caveat.
    ///
    /// # Errors
    /// If there is no experiment of this number, its header is damaged, or the
    /// store cannot be read.
    pub fn experiment(&self, id: i64) -> Result<Experiment, Error> {
        self.listed(Some(id))?;
        let header: String = self
            .db
            .query_row(
                "SELECT header FROM experiments WHERE id = ?1",
                [id],
                |row| row.get(0),
            )
            .map_err(|e| self.wrong(&e))?;
        let header = serde_json::from_str(&header);
        let mut experiment: Experiment = header.map_err(|e| {
            Error::Failed(format!(
                "the store {} holds an experiment {id} that cannot be read ({e}); its samples may \
                 be: 'locklab results export {id}'",
                self.path.display()
            ))
        })?;
        let (mut pairs, damaged) = self.pairs(id)?;
        for cell in &mut experiment.cells {
            cell.pairs = pairs.remove(&cell.key).unwrap_or_default();
        }
        experiment
            .caveats
            .extend(damaged.iter().map(ToString::to_string));
        Ok(experiment)
    }

    /// Returns the complete pairs of an experiment that count, by cell, in their order;
    /// then each row that could not be read.
    ///
    /// # Errors
    /// If the store cannot be read; a damaged row is not an error.
    #[allow(clippy::type_complexity, reason = "a map, then what is not in it")]
    pub fn pairs(
        &self,
        experiment: i64,
    ) -> Result<(HashMap<Key, Vec<Pair>>, Vec<DamagedRow>), Error> {
        let (samples, damaged) = self.samples(Some(experiment))?;
        let mut halves: BTreeMap<(Key, u32), (Order, [Option<Sample>; 2])> = BTreeMap::new();
        for stored in samples {
            if stored.state != "kept" {
                continue;
            }
            let (order, sides) = halves
                .entry((stored.cell, stored.pair))
                .or_insert((stored.order, [None, None]));
            *order = stored.order;
            sides[usize::from(stored.side == Side::Experiment)] = Some(stored.sample);
        }
        let mut pairs: HashMap<Key, Vec<Pair>> = HashMap::new();
        for ((key, index), (order, sides)) in halves {
            if let [Some(baseline), Some(experiment)] = sides {
                pairs.entry(key).or_default().push(Pair {
                    index,
                    order,
                    baseline,
                    experiment,
                });
            }
        }
        Ok((pairs, damaged))
    }

    /// Returns every sample of one experiment, or of all, in the order of running;
    /// then a sentence for each row that could not be read.
    ///
    /// # Errors
    /// If the store cannot be read; a damaged row is not an error.
    pub fn samples(
        &self,
        experiment: Option<i64>,
    ) -> Result<(Vec<StoredSample>, Vec<DamagedRow>), Error> {
        let query = || -> rusqlite::Result<Vec<Result<StoredSample, DamagedRow>>> {
            self.db
                .prepare(
                    "SELECT s.id, s.experiment, s.cell, s.pair, s.side, s.pair_order, s.state,
                            s.sample, e.header
                     FROM samples s JOIN experiments e ON e.id = s.experiment
                     WHERE ?1 IS NULL OR s.experiment = ?1 ORDER BY s.id",
                )?
                .query_map([experiment], |row| Ok(stored(row, &self.path)))?
                .collect()
        };
        let mut samples = Vec::new();
        let mut damaged = Vec::new();
        for row in query().map_err(|e| self.wrong(&e))? {
            match row {
                Ok(sample) => samples.push(sample),
                Err(why) => damaged.push(why),
            }
        }
        Ok((samples, damaged))
    }
}

/// Returns the field of a header for a list.
fn header_field(header: &serde_json::Value, path: &str) -> String {
    let value = header.pointer(path).and_then(serde_json::Value::as_str);
    value.unwrap_or("?").to_owned()
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let process: Option<i64> = row.get(3)?;
    let state: String = row.get(2)?;
    let header: Option<serde_json::Value> = text(row, 5).and_then(|t| parse(&t));
    let state = match (&header, state.as_str(), process) {
        (None, ..) => "damaged".into(),
        // A process that was killed cannot record that it was interrupted.
        (_, "running", Some(pid)) if !Path::new(&format!("/proc/{pid}")).exists() => {
            "interrupted".into()
        }
        _ => state,
    };
    let header = header.unwrap_or_default();
    Ok(Listed {
        id: row.get(0)?,
        started: row.get(1)?,
        state,
        kind: kind_of_today(&header_field(&header, "/kind")).to_owned(),
        command: row.get(4)?,
        baseline: header_field(&header, "/labels/baseline"),
        experiment: header_field(&header, "/labels/experiment"),
        runs: u64::try_from(row.get::<_, i64>(6)?).unwrap_or_default(),
    })
}

/// A row of the samples that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    id: i64,
    path: PathBuf,
    column: &'static str,
}

impl fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "row {} of the samples in {} is damaged ({} cannot be read) and left out; 'locklab \
             results prune --damaged' removes such rows",
            self.id,
            self.path.display(),
            self.column
        )
    }
}

/// Reads a row.
pub(super) fn stored(row: &Row<'_>, path: &Path) -> Result<StoredSample, DamagedRow> {
    let damaged = |column: &'static str| DamagedRow {
        id: row.get(0).unwrap_or_default(),
        path: path.to_owned(),
        column,
    };
    let read = |index: usize, column: &'static str| text(row, index).ok_or_else(|| damaged(column));
    let side: Side = quoted(&read(4, "side")?).ok_or_else(|| damaged("side"))?;
    let header: serde_json::Value = text(row, 8).and_then(|t| parse(&t)).unwrap_or_default();
    Ok(StoredSample {
        experiment: row.get(1).map_err(|_| damaged("experiment"))?,
        cell: parse(&read(2, "cell")?).ok_or_else(|| damaged("cell"))?,
        pair: row.get(3).map_err(|_| damaged("pair"))?,
        side,
        subject: header_field(&header, &format!("/labels/{side}")),
        order: quoted(&read(5, "order")?).ok_or_else(|| damaged("order"))?,
        state: read(6, "state")?,
        sample: parse(&read(7, "sample")?).ok_or_else(|| damaged("sample"))?,
    })
}

fn text(row: &Row<'_>, index: usize) -> Option<String> {
    row.get(index).ok()
}

fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn quoted<T: DeserializeOwned>(word: &str) -> Option<T> {
    parse(&format!("\"{word}\""))
}
