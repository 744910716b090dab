//! Merges samples of one store into another: rows are copied, not
//! parsed and written again, so that no figure changes.

use super::database::{Store, StoredRow};
use locklab_host::error::Error;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;
use std::path::Path;

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Number of experiments that were added.
    pub added: usize,
    /// Number of experiments that had fewer samples here.
    pub completed: usize,
    /// Number of experiments that were complete here already.
    pub known: usize,
    /// Number of samples that were copied.
    pub samples: u64,
    /// A sentence for each row that could not be read.
    pub damaged: Vec<String>,
}

impl Merged {
    /// Returns one line: what was new in the store that was merged.
    #[must_use]
    pub fn text(&self, from: &Path) -> String {
        format!(
            "{}: {} new, {} with more samples, {} known already; {} samples copied\n",
            from.display(),
            self.added,
            self.completed,
            self.known,
            self.samples
        )
    }
}

/// An experiment as it is stored.
struct StoredExperiment {
    id: i64,
    key: String,
    started: String,
    state: String,
    command: String,
    header: String,
}

impl Store {
    /// Visits every sample of one experiment, or of all, in the order in which
    /// they were stored; returns a sentence for each row that cannot be read.
    ///
    /// # Errors
    /// The first error of `visit`, or one if the store cannot be read.
    pub fn each_row<E: From<Error>>(
        &self,
        experiment: Option<i64>,
        mut visit: impl FnMut(&StoredRow<'_>) -> Result<(), E>,
    ) -> Result<Vec<String>, E> {
        let wrong = |e: &rusqlite::Error| self.wrong(e);
        let mut select = self
            .db
            .prepare_cached(
                "SELECT id, experiment, cell, pair, side, pair_order, state, sample
                 FROM samples WHERE ?1 IS NULL OR experiment = ?1 ORDER BY id",
            )
            .map_err(|e| wrong(&e))?;
        let mut rows = select.query([experiment]).map_err(|e| wrong(&e))?;
        let mut damaged = Vec::new();
        while let Some(row) = rows.next().map_err(|e| wrong(&e))? {
            match readable(row) {
                Some(row) => visit(&row)?,
                None => damaged.push(format!(
                    "row {} of the samples in {} is damaged and left out",
                    row.get::<_, i64>(0).unwrap_or_default(),
                    self.path.display()
                )),
            }
        }
        Ok(damaged)
    }

    /// Copies every experiment of `from` that is not here yet, with its
    /// samples and the bias bands that it measured. One that continued since it
    /// was merged replaces the copy here.
    ///
    /// # Errors
    /// If either store cannot be read or this one not written; nothing was
    /// copied then.
    pub fn merge(&self, from: &Self) -> Result<Merged, Error> {
        self.together(|to| {
            let mut merged = Merged::default();
            for experiment in from.stored_experiments()? {
                let there = from.count_of(experiment.id)?;
                let here = to.same(&experiment)?;
                let id = match here {
                    Some((_, count)) if count >= there => {
                        merged.known += 1;
                        continue;
                    }
                    Some((id, _)) => {
                        to.forget(id, &experiment)?;
                        merged.completed += 1;
                        id
                    }
                    None => {
                        merged.added += 1;
                        to.insert(&experiment)?
                    }
                };
                let damaged = from.each_row(Some(experiment.id), |row| {
                    merged.samples += 1;
                    to.append(id, row)
                })?;
                merged.damaged.extend(damaged);
                to.copy_bands(from, experiment.id, id)?;
            }
            Ok(merged)
        })
    }

    fn stored_experiments(&self) -> Result<Vec<StoredExperiment>, Error> {
        let query = || -> rusqlite::Result<Vec<StoredExperiment>> {
            self.db
                .prepare(
                    "SELECT id, key, started, state, command, header FROM experiments ORDER BY id",
                )?
                .query_map([], |row| {
                    Ok(StoredExperiment {
                        id: row.get(0)?,
                        key: row.get(1)?,
                        started: row.get(2)?,
                        state: row.get(3)?,
                        command: row.get(4)?,
                        header: row.get(5)?,
                    })
                })?
                .collect()
        };
        query().map_err(|e| self.wrong(&e))
    }

    fn count_of(&self, experiment: i64) -> Result<i64, Error> {
        self.db
            .query_row(
                "SELECT count(*) FROM samples WHERE experiment = ?1",
                [experiment],
                |row| row.get(0),
            )
            .map_err(|e| self.wrong(&e))
    }

    /// Returns the same experiment in this store: its number and its number of samples.
    fn same(&self, other: &StoredExperiment) -> Result<Option<(i64, i64)>, Error> {
        let id = self
            .db
            .query_row(
                "SELECT id FROM experiments WHERE key = ?1 AND started = ?2 AND command = ?3",
                params![other.key, other.started, other.command],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))?;
        match id {
            None => Ok(None),
            Some(id) => Ok(Some((id, self.count_of(id)?))),
        }
    }

    fn insert(&self, other: &StoredExperiment) -> Result<i64, Error> {
        self.db
            .execute(
                "INSERT INTO experiments (key, started, state, process, command, header)
                 VALUES (?1, ?2, ?3, NULL, ?4, ?5)",
                params![
                    other.key,
                    other.started,
                    ended(&other.state),
                    other.command,
                    other.header
                ],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// Empties an experiment, to be filled again.
    fn forget(&self, id: i64, other: &StoredExperiment) -> Result<(), Error> {
        let run = || {
            self.db
                .execute("DELETE FROM samples WHERE experiment = ?1", [id])?;
            self.db.execute(
                "UPDATE experiments SET state = ?2, process = NULL, header = ?3 WHERE id = ?1",
                params![id, ended(&other.state), other.header],
            )
        };
        run().map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Copies bias bands; bands that were measured here before stay.
    fn copy_bands(&self, from: &Self, there: i64, here: i64) -> Result<(), Error> {
        let bands = || -> rusqlite::Result<Vec<(String, String, String, f64)>> {
            from.db
                .prepare("SELECT setup, cell, metric, band FROM bias_bands WHERE experiment = ?1")?
                .query_map([there], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?
                .collect()
        };
        for (setup, cell, metric, band) in bands().map_err(|e| from.wrong(&e))? {
            self.db
                .execute(
                    "INSERT OR IGNORE INTO bias_bands VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![setup, cell, metric, band, here],
                )
                .map_err(|e| self.wrong(&e))?;
        }
        Ok(())
    }
}

/// Returns the state in this store, since no process of another machine runs an
/// experiment of it.
fn ended(state: &str) -> &str {
    match state {
        "running" => "interrupted",
        state => state,
    }
}

fn readable<'a>(row: &'a Row<'_>) -> Option<StoredRow<'a>> {
    let text = |index: usize| row.get_ref(index).ok()?.as_str().ok();
    Some(StoredRow {
        experiment: row.get(1).ok()?,
        cell: text(2)?,
        pair: row.get(3).ok()?,
        side: text(4)?,
        order: text(5)?,
        state: text(6)?,
        sample: text(7)?,
    })
}
