//! The store: one SQLite file with every sample, written as its run ends.
//!
//! So that an interrupted matrix goes on where it stopped, an A/A run's bias
//! bands are found by later ones, and any figure in a report can be traced to
//! its samples. A sample is kept even if its pair was repeated; only its
//! state differs. Knows nothing of instruments and judges nothing.

mod programs;

use crate::matrix::{Measured, Point, Run, RunPair};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Number in the file's header; a newer one is refused.
const VERSION: i64 = 1;
/// Marks the file as ours: "LkLb".
const APPLICATION: i64 = 0x4c6b_4c62;

const SCHEMA: &str = "
CREATE TABLE experiments (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL,  -- hash of question, machine and version
    started    TEXT NOT NULL,  -- UTC
    state      TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'done')),
    command    TEXT NOT NULL,
    header     TEXT NOT NULL   -- JSON: the matrix without its pairs
) STRICT;
CREATE INDEX experiments_by_key ON experiments (key);
CREATE TABLE runs (
    id             INTEGER PRIMARY KEY,
    experiment     INTEGER NOT NULL REFERENCES experiments (id),
    threads        INTEGER NOT NULL,
    critical       TEXT NOT NULL,  -- whole numbers up to 2^64 - 1
    non_critical   TEXT NOT NULL,
    pair           INTEGER NOT NULL,
    side           TEXT NOT NULL CHECK (side IN ('baseline', 'experiment')),
    baseline_first INTEGER NOT NULL,
    -- open: its pair is not complete; repeated: another took its place
    state          TEXT NOT NULL CHECK (state IN ('open', 'kept', 'repeated')),
    ops_per_s      REAL NOT NULL,
    run            TEXT NOT NULL   -- JSON: the whole sample
) STRICT;
CREATE INDEX runs_by_experiment ON runs (experiment);
CREATE TABLE bias_bands (
    setup        TEXT NOT NULL,  -- hash of baseline, set-up and machine
    threads      INTEGER NOT NULL,
    critical     TEXT NOT NULL,
    non_critical TEXT NOT NULL,
    band         REAL NOT NULL,  -- a fraction
    experiment   INTEGER NOT NULL REFERENCES experiments (id),
    PRIMARY KEY (setup, threads, critical, non_critical)
) STRICT;
";

/// An open store.
pub struct Store {
    db: Connection,
    path: PathBuf,
}

/// One experiment, as a list shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Its number.
    pub id: i64,
    /// When it was started, UTC.
    pub started: String,
    /// `running` (or killed), `interrupted`, `done`.
    pub state: String,
    /// The command line.
    pub command: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Samples.
    pub runs: i64,
}

/// One sample with what it belongs to.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Number of the experiment.
    pub experiment: i64,
    /// Cell.
    #[serde(flatten)]
    pub point: Point,
    /// Number of the pair in its cell.
    pub pair: u32,
    /// `baseline` or `experiment`.
    pub side: String,
    /// Name of the lock.
    pub lock: String,
    /// Whether the coin let the baseline go first.
    pub baseline_first: bool,
    /// `kept`, `repeated` or `open`.
    pub state: String,
    /// The sample.
    pub run: Run,
}

/// Where a run belongs.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Cell.
    pub point: Point,
    /// Number of the pair in its cell.
    pub pair: u32,
    /// Which of the two.
    pub baseline: bool,
    /// Whether the coin let the baseline go first.
    pub baseline_first: bool,
}

impl Store {
    /// The default place: `locklab.sqlite` in the user's data folder.
    ///
    /// # Errors
    /// There is no such folder: no home.
    pub fn default_path() -> Result<PathBuf, String> {
        directories::ProjectDirs::from("", "", "locklab")
            .map(|dirs| dirs.data_dir().join("locklab.sqlite"))
            .ok_or_else(|| {
                "there is no home folder to keep samples in; give --store PATH, or \
                 --store :memory: to keep nothing"
                    .into()
            })
    }

    /// Opens the store at `path`, making it and its folder if need be, and
    /// makes sure that it can be written.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn open(path: &Path) -> Result<Self, String> {
        let remedy = "give another with --store PATH, or --store :memory: to keep nothing";
        let wrong = |what: &dyn std::fmt::Display| {
            format!("cannot use the store {}: {what}; {remedy}", path.display())
        };
        let memory = path == Path::new(":memory:");
        if let Some(folder) = path.parent()
            && !memory
            && !folder.as_os_str().is_empty()
        {
            std::fs::create_dir_all(folder).map_err(|e| wrong(&e))?;
        }
        let mut db = Connection::open(path).map_err(|e| wrong(&e))?;
        prepare(&mut db).map_err(|e| match e {
            Prepare::Sql(e) => wrong(&reason(&e)),
            Prepare::Foreign => wrong(&"it is a file of another program"),
            Prepare::Newer(v) => wrong(&format!(
                "it was written by a newer locklab (format {v}, this one knows {VERSION})"
            )),
        })?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrong(&self, e: &rusqlite::Error) -> String {
        format!("the store {} failed: {}", self.path.display(), reason(e))
    }

    /// Notes that an experiment begins; gives its number.
    ///
    /// # Errors
    /// A sentence.
    pub fn begin(&self, key: &str, command: &str, header: &Measured) -> Result<i64, String> {
        self.db
            .execute(
                "INSERT INTO experiments (key, started, state, command, header)
                 VALUES (?1, datetime('now'), 'running', ?2, ?3)",
                params![key, command, json(header)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// The latest experiment of this key that was not finished.
    ///
    /// # Errors
    /// A sentence.
    pub fn unfinished(&self, key: &str) -> Result<Option<i64>, String> {
        self.db
            .query_row(
                "SELECT id FROM experiments WHERE key = ?1 AND state <> 'done'
                 ORDER BY id DESC LIMIT 1",
                [key],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))
    }

    /// Notes how an experiment ended.
    ///
    /// # Errors
    /// A sentence.
    pub fn finish(&self, experiment: i64, header: &Measured) -> Result<(), String> {
        let state = if header.interrupted.is_some() {
            "interrupted"
        } else {
            "done"
        };
        self.db
            .execute(
                "UPDATE experiments SET state = ?2, header = ?3 WHERE id = ?1",
                params![experiment, state, json(header)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Keeps one sample; gives its number.
    ///
    /// # Errors
    /// A sentence.
    pub fn add(&self, experiment: i64, slot: &Slot, run: &Run) -> Result<i64, String> {
        self.db
            .prepare_cached(
                "INSERT INTO runs (experiment, threads, critical, non_critical, pair, side,
                                   baseline_first, state, ops_per_s, run)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', ?8, ?9)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    experiment,
                    slot.point.threads as i64,
                    slot.point.critical.to_string(),
                    slot.point.non_critical.to_string(),
                    slot.pair,
                    if slot.baseline {
                        "baseline"
                    } else {
                        "experiment"
                    },
                    slot.baseline_first,
                    run.ops_per_s,
                    json(run)
                ])
            })
            .map_err(|e| self.wrong(&e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// Closes a pair: its runs as they are now that their placement is
    /// known, and whether the pair counts or is repeated.
    ///
    /// # Errors
    /// A sentence.
    pub fn close(&mut self, runs: [(i64, &Run); 2], kept: bool) -> Result<(), String> {
        let close = |db: &mut Connection| {
            let transaction = db.transaction()?;
            for (id, run) in runs {
                transaction.execute(
                    "UPDATE runs SET state = ?2, run = ?3 WHERE id = ?1",
                    params![id, if kept { "kept" } else { "repeated" }, json(run)],
                )?;
            }
            transaction.commit()
        };
        close(&mut self.db).map_err(|e| self.wrong(&e))
    }

    /// The pairs of an experiment that count, by cell, in their order.
    ///
    /// # Errors
    /// A sentence.
    pub fn pairs(&self, experiment: i64) -> Result<HashMap<Point, Vec<RunPair>>, String> {
        #[derive(Default)]
        struct Halves {
            baseline_first: bool,
            baseline: Option<Run>,
            experiment: Option<Run>,
        }
        let mut halves: HashMap<(Point, u32), Halves> = HashMap::new();
        for sample in self.samples(Some(experiment))? {
            if sample.state != "kept" {
                continue;
            }
            let entry = halves.entry((sample.point, sample.pair)).or_default();
            entry.baseline_first = sample.baseline_first;
            if sample.side == "baseline" {
                entry.baseline = Some(sample.run);
            } else {
                entry.experiment = Some(sample.run);
            }
        }
        let mut pairs: HashMap<Point, Vec<RunPair>> = HashMap::new();
        for ((point, index), halves) in halves {
            if let (Some(baseline), Some(experiment)) = (halves.baseline, halves.experiment) {
                pairs.entry(point).or_default().push(RunPair {
                    index,
                    baseline_first: halves.baseline_first,
                    baseline,
                    experiment,
                });
            }
        }
        for pairs in pairs.values_mut() {
            pairs.sort_by_key(|pair| pair.index);
        }
        Ok(pairs)
    }

    /// A stored matrix, as it was reported.
    ///
    /// # Errors
    /// A sentence; also when there is none of this number.
    pub fn measured(&self, experiment: i64) -> Result<Measured, String> {
        self.listed(Some(experiment))?;
        let header: String = self
            .db
            .query_row(
                "SELECT header FROM experiments WHERE id = ?1",
                [experiment],
                |row| row.get(0),
            )
            .map_err(|e| self.wrong(&e))?;
        let mut measured: Measured = serde_json::from_str(&header).map_err(|e| {
            format!(
                "the store {} holds an experiment {experiment} that cannot be read: {e}",
                self.path.display()
            )
        })?;
        let mut pairs = self.pairs(experiment)?;
        for cell in &mut measured.cells {
            cell.pairs = pairs.remove(&cell.point).unwrap_or_default();
        }
        measured.cells.retain(|cell| !cell.pairs.is_empty());
        Ok(measured)
    }

    /// One experiment, or the latest.
    ///
    /// # Errors
    /// A sentence; also when there is none.
    pub fn listed(&self, experiment: Option<i64>) -> Result<Listed, String> {
        let found = self
            .list()?
            .into_iter()
            .find(|listed| experiment.is_none_or(|id| listed.id == id));
        found.ok_or_else(|| match experiment {
            Some(id) => format!(
                "the store {} has no experiment {id}; 'locklab results list' shows what it has",
                self.path.display()
            ),
            None => format!(
                "the store {} is empty; 'locklab matrix' fills it",
                self.path.display()
            ),
        })
    }

    /// Every experiment, the latest first.
    ///
    /// # Errors
    /// A sentence.
    pub fn list(&self) -> Result<Vec<Listed>, String> {
        let query = |db: &Connection| -> rusqlite::Result<Vec<Listed>> {
            db.prepare(
                "SELECT e.id, e.started, e.state, e.command,
                        e.header ->> '$.spec.baseline', e.header ->> '$.spec.experiment',
                        (SELECT count(*) FROM runs r WHERE r.experiment = e.id)
                        + 2 * (SELECT count(*) FROM program_pairs p WHERE p.experiment = e.id)
                 FROM experiments e ORDER BY e.id DESC",
            )?
            .query_map([], |row| {
                Ok(Listed {
                    id: row.get(0)?,
                    started: row.get(1)?,
                    state: row.get(2)?,
                    command: row.get(3)?,
                    baseline: row.get(4)?,
                    experiment: row.get(5)?,
                    runs: row.get(6)?,
                })
            })?
            .collect()
        };
        query(&self.db).map_err(|e| self.wrong(&e))
    }

    /// Every sample of one experiment, or of all, in the order of running.
    ///
    /// # Errors
    /// A sentence.
    pub fn samples(&self, experiment: Option<i64>) -> Result<Vec<Sample>, String> {
        let query = |db: &Connection| -> rusqlite::Result<Vec<Sample>> {
            db.prepare(
                "SELECT r.experiment, r.threads, r.critical, r.non_critical, r.pair, r.side,
                        r.baseline_first, r.state, r.run,
                        CASE r.side WHEN 'baseline' THEN e.header ->> '$.spec.baseline'
                                    ELSE e.header ->> '$.spec.experiment' END
                 FROM runs r JOIN experiments e ON e.id = r.experiment
                 WHERE ?1 IS NULL OR r.experiment = ?1 ORDER BY r.id",
            )?
            .query_map([experiment], |row| {
                let text = |i: usize| row.get::<_, String>(i);
                let number = |i: usize| text(i)?.parse().map_err(|e| conversion(i, e));
                Ok(Sample {
                    experiment: row.get(0)?,
                    point: Point {
                        threads: row.get::<_, u32>(1)? as usize,
                        critical: number(2)?,
                        non_critical: number(3)?,
                    },
                    pair: row.get(4)?,
                    side: text(5)?,
                    lock: text(9)?,
                    baseline_first: row.get(6)?,
                    state: text(7)?,
                    run: serde_json::from_str(&text(8)?).map_err(|e| conversion(8, e))?,
                })
            })?
            .collect()
        };
        query(&self.db).map_err(|e| self.wrong(&e))
    }

    /// Keeps the bias band of one cell of a set-up, in place of an older one.
    ///
    /// # Errors
    /// A sentence.
    pub fn keep_band(
        &self,
        setup: &str,
        point: &Point,
        band: f64,
        experiment: i64,
    ) -> Result<(), String> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO bias_bands VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    setup,
                    point.threads as i64,
                    point.critical.to_string(),
                    point.non_critical.to_string(),
                    band,
                    experiment
                ],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// The bias band of one cell of a set-up, if an A/A run measured it.
    ///
    /// # Errors
    /// A sentence.
    pub fn band(&self, setup: &str, point: &Point) -> Result<Option<f64>, String> {
        self.db
            .query_row(
                "SELECT band FROM bias_bands
                 WHERE setup = ?1 AND threads = ?2 AND critical = ?3 AND non_critical = ?4",
                params![
                    setup,
                    point.threads as i64,
                    point.critical.to_string(),
                    point.non_critical.to_string()
                ],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))
    }
}

enum Prepare {
    Sql(rusqlite::Error),
    Foreign,
    Newer(i64),
}

impl From<rusqlite::Error> for Prepare {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

/// Makes the tables in an empty file, and tries to write.
fn prepare(db: &mut Connection) -> Result<(), Prepare> {
    // Two commands may run at once; each write is a few hundred bytes.
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    // A crash of the machine may lose the last samples, never the file.
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "normal")?;
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let pragma = |name: &str| -> rusqlite::Result<i64> {
        transaction.pragma_query_value(None, name, |row| row.get(0))
    };
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION, VERSION) => {}
        (APPLICATION, version) => return Err(Prepare::Newer(version)),
        _ => {
            let tables: i64 =
                transaction
                    .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables > 0 {
                return Err(Prepare::Foreign);
            }
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
        }
    }
    transaction.execute_batch(programs::SCHEMA)?;
    // Written each time, so that a file that cannot be is found here.
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// What SQLite says, in words that name a remedy where there is one.
fn reason(e: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode as Code;
    match e.sqlite_error_code() {
        Some(Code::DiskFull) => "the disk is full".into(),
        Some(Code::ReadOnly) => "it cannot be written".into(),
        Some(Code::CannotOpen) => "it cannot be opened".into(),
        Some(Code::NotADatabase) => "it is a file of another kind".into(),
        Some(Code::DatabaseBusy) => "another command is writing it".into(),
        _ => e.to_string(),
    }
}

fn conversion<E: std::error::Error + Send + Sync + 'static>(
    column: usize,
    e: E,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e))
}

fn json<T: Serialize>(value: &T) -> String {
    // Our own types, with string keys: this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
