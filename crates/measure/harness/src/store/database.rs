//! An open store: experiments begin and end in it, with their samples and their bias
//! bands.

use super::schema;
use crate::experiment::{Cell, Experiment, Key, Order, Sample};
use locklab_host::error::Error;
use locklab_judge::Side;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// An open store.
pub struct Store {
    pub(super) db: Connection,
    pub(super) path: PathBuf,
}

/// Returns the time as a store has it, in UTC.
///
/// # Errors
/// If SQLite has no memory for a database.
pub fn now() -> Result<String, Error> {
    let now = Connection::open_in_memory()
        .and_then(|db| db.query_row("SELECT datetime('now')", [], |row| row.get(0)));
    now.map_err(|e| Error::Failed(format!("the time cannot be read: {e}")))
}

/// A sample as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// Number of its experiment.
    pub experiment: i64,
    /// JSON: the key of its cell.
    pub cell: &'a str,
    /// Number of its pair.
    pub pair: i64,
    /// `baseline` or `experiment`.
    pub side: &'a str,
    /// The order of its pair.
    pub order: &'a str,
    /// `open`, `kept` or `repeated`.
    pub state: &'a str,
    /// The sample as JSON.
    pub sample: &'a str,
}

/// The run that a sample belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// The cell, by its key, which must not change between versions.
    pub cell: &'a Key,
    /// Its pair in the cell.
    pub pair: u32,
    /// Says whether the run was of the baseline or of the experiment.
    pub side: Side,
    /// The order of its pair.
    pub order: Order,
}

/// Returns a short name for any serialisable value: two values have the
/// same only if they are the same.
#[must_use]
pub fn hash_of<T: Serialize>(value: &T) -> String {
    let digest = Sha256::digest(json(value));
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Returns the error of a store that cannot be opened, or is of another program or version.
fn unusable(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Failed(format!(
        "cannot use the store {}: {why}; give another with --store PATH, or --store :memory: to \
         keep nothing",
        path.display()
    ))
}

impl Store {
    /// Opens the store at `path`, making it and its folder if necessary, and
    /// checks that it can be written.
    ///
    /// # Errors
    /// If the file cannot be made or written, is not a store, or is one of
    /// another version. The message has the path and a remedy.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |e: &dyn std::fmt::Display| unusable(path, e);
        if path.is_dir() {
            return Err(wrong(&"it is a folder"));
        }
        let memory = path == Path::new(":memory:");
        if let Some(folder) = path.parent()
            && !memory
            && !folder.as_os_str().is_empty()
        {
            std::fs::create_dir_all(folder).map_err(|e| wrong(&e))?;
        }
        let mut db = Connection::open(path).map_err(|e| wrong(&e))?;
        schema::prepare(&mut db).map_err(|e| wrong(&e))?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Opens the store at `path` for reading: it may be where nothing can be
    /// written.
    ///
    /// # Errors
    /// If there is no store at the path, it cannot be read, is not a store, or
    /// is one of another version. The message has the path.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::Failed(format!(
                "there is no store {}; 'locklab matrix' and 'locklab compare' make one, and \
                 --store PATH names another",
                path.display()
            )));
        }
        let wrong = |e: &dyn std::fmt::Display| unusable(path, e);
        if path.is_dir() {
            return Err(wrong(&"it is a folder"));
        }
        let db = schema::open_for_reading(path).map_err(|e| wrong(&e))?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Returns the path of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn wrong(&self, e: &rusqlite::Error) -> Error {
        Error::Failed(format!(
            "the store {} failed: {}",
            self.path.display(),
            schema::reason(e)
        ))
    }

    /// Records that an experiment begins; returns its number.
    ///
    /// # Errors
    /// If the store cannot be written, as on a full disk; the message has the
    /// path and the reason.
    pub fn begin(&self, key: &str, command: &str, experiment: &Experiment) -> Result<i64, Error> {
        self.db
            .execute(
                "INSERT INTO experiments (key, started, state, process, command, header)
                 VALUES (?1, datetime('now'), 'running', ?2, ?3, ?4)",
                params![key, std::process::id(), command, json(experiment)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// Returns the latest experiment of this key that was not finished.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unfinished(&self, key: &str) -> Result<Option<i64>, Error> {
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

    /// Records that an experiment continues in this process.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn go_on(&self, experiment: i64) -> Result<(), Error> {
        self.db
            .execute(
                "UPDATE experiments SET state = 'running', process = ?2 WHERE id = ?1",
                params![experiment, std::process::id()],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Records how an experiment ended.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn finish(&self, id: i64, experiment: &Experiment) -> Result<(), Error> {
        let measured = experiment.cells.iter().any(|c| !c.pairs.is_empty());
        let state = if experiment.interrupted.is_some() {
            "interrupted"
        } else if measured {
            "done"
        } else {
            "failed"
        };
        self.db
            .execute(
                "UPDATE experiments SET state = ?2, process = NULL, header = ?3 WHERE id = ?1",
                params![id, state, json(experiment)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Stores one sample; returns its number.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn add(&self, experiment: i64, slot: &Slot<'_>, sample: &Sample) -> Result<i64, Error> {
        self.append(
            experiment,
            &StoredRow {
                experiment,
                cell: &json(slot.cell),
                pair: slot.pair.into(),
                side: &slot.side.to_string(),
                order: &word(&slot.order),
                state: "open",
                sample: &json(sample),
            },
        )?;
        Ok(self.db.last_insert_rowid())
    }

    /// Stores a row of another store under an experiment of this one.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn append(&self, experiment: i64, row: &StoredRow<'_>) -> Result<(), Error> {
        self.db
            .prepare_cached(
                "INSERT INTO samples (experiment, cell, pair, side, pair_order, state, sample)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    experiment, row.cell, row.pair, row.side, row.order, row.state, row.sample
                ])
            })
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Closes a pair: stores its samples after it is settled, and
    /// whether the pair counts or is repeated.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn close(&mut self, samples: [(Option<i64>, &Sample); 2], kept: bool) -> Result<(), Error> {
        let close = |db: &mut Connection| {
            let transaction = db.transaction()?;
            for (id, sample) in samples {
                transaction.execute(
                    "UPDATE samples SET state = ?2, sample = ?3 WHERE id = ?1",
                    params![id, if kept { "kept" } else { "repeated" }, json(sample)],
                )?;
            }
            transaction.commit()
        };
        close(&mut self.db).map_err(|e| self.wrong(&e))
    }

    /// Stores the bias band of a cell's primary metric, in place of an older
    /// one.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn keep_band(
        &self,
        setup: &str,
        cell: &Cell,
        band: f64,
        experiment: i64,
    ) -> Result<(), Error> {
        let metric = cell.primary().map_or("", |m| m.name.as_str());
        self.db
            .execute(
                "INSERT OR REPLACE INTO bias_bands VALUES (?1, ?2, ?3, ?4, ?5)",
                params![setup, json(&cell.key), metric, band, experiment],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Returns the bias band of a cell's primary metric, if an A/A run of the set-up
    /// measured it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn band(&self, setup: &str, cell: &Cell) -> Result<Option<f64>, Error> {
        let metric = cell.primary().map_or("", |m| m.name.as_str());
        self.db
            .query_row(
                "SELECT band FROM bias_bands WHERE setup = ?1 AND cell = ?2 AND metric = ?3",
                params![setup, json(&cell.key), metric],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> String {
    // Our own types, with string keys: this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the name of a variant without data.
fn word<T: Serialize>(value: &T) -> String {
    json(value).trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests;
