//! Merges samples of one store into another: rows are copied, not
//! parsed and written again, so that no figure changes.

use super::database::{Store, StoredRow, json};
use crate::chunk::is_elsewhere;
use crate::experiment::Experiment;
use locklab_host::error::Error;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;
use std::collections::HashSet;
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
    /// Runs `work` in a transaction, so that all of it is stored or nothing.
    ///
    /// # Errors
    /// The error of `work`, or one if the store cannot be written.
    pub(super) fn together<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let run = |sql: &str| self.db.execute_batch(sql).map_err(|e| self.wrong(&e));
        run("BEGIN IMMEDIATE")?;
        let done = work(self).and_then(|done| Ok(run("COMMIT").map(|()| done)?));
        if done.is_err() {
            // SQLite may have rolled back by itself, as on a full disk.
            let _ = run("ROLLBACK");
        }
        done
    }

    /// Visits every sample of one experiment, or of all, in the order in which
    /// they were stored; returns a sentence for each row that cannot be read.
    ///
    /// # Errors
    /// The first error of `visit`, or one if the store cannot be read.
    fn each_row<E: From<Error>>(
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
    /// was merged replaces the copy here, and a chunk of one that is here completes that.
    ///
    /// # Errors
    /// If either store cannot be read or this one not written; nothing was
    /// copied then.
    pub fn merge(&self, from: &Self) -> Result<Merged, Error> {
        self.together(|to| {
            let mut merged = Merged::default();
            for experiment in from.stored_experiments()? {
                if to.join(from, &experiment, &mut merged)? {
                    continue;
                }
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

    /// Adds the cells of a chunk to the latest experiment of the same key here. Returns
    /// false if `other` is no chunk, or there is no such experiment.
    fn join(
        &self,
        from: &Self,
        other: &StoredExperiment,
        merged: &mut Merged,
    ) -> Result<bool, Error> {
        let cells_of = |header: &str| serde_json::from_str::<Experiment>(header).ok();
        let Some(theirs) = cells_of(&other.header).filter(|e| e.cells.iter().any(is_elsewhere))
        else {
            return Ok(false);
        };
        let mut stored = self.stored_experiments()?.into_iter().rev();
        let Some(ours) = stored.find(|ours| ours.key == other.key) else {
            return Ok(false);
        };
        let Some(mut joined) = cells_of(&ours.header) else {
            return Ok(false);
        };
        let mut fresh = HashSet::new();
        for cell in theirs.cells.iter().filter(|cell| !is_elsewhere(cell)) {
            let key = json(&cell.key);
            let here = joined.cells.iter_mut().find(|here| here.key == cell.key);
            if let Some(here) = here
                && from.count_in(other.id, &key)? > self.count_in(ours.id, &key)?
            {
                *here = cell.clone();
                fresh.insert(key);
            }
        }
        if fresh.is_empty() {
            merged.known += 1;
            return Ok(true);
        }
        merged.completed += 1;
        let whole = [&ours.state, &other.state]
            .iter()
            .all(|state| *state == "done");
        let state = if whole { "done" } else { "interrupted" };
        let change = || -> rusqlite::Result<()> {
            for key in &fresh {
                self.db.execute(
                    "DELETE FROM samples WHERE experiment = ?1 AND cell = ?2",
                    params![ours.id, key],
                )?;
            }
            self.db.execute(
                "UPDATE experiments SET state = ?2, header = ?3 WHERE id = ?1",
                params![ours.id, state, json(&joined)],
            )?;
            Ok(())
        };
        change().map_err(|e| self.wrong(&e))?;
        let damaged = from.each_row(Some(other.id), |row| {
            if !fresh.contains(row.cell) {
                return Ok(());
            }
            merged.samples += 1;
            self.append(ours.id, row)
        })?;
        merged.damaged.extend(damaged);
        self.copy_bands(from, other.id, ours.id)?;
        Ok(true)
    }

    /// Returns the number of samples of one cell.
    fn count_in(&self, experiment: i64, cell: &str) -> Result<i64, Error> {
        self.db
            .query_row(
                "SELECT count(*) FROM samples WHERE experiment = ?1 AND cell = ?2",
                params![experiment, cell],
                |row| row.get(0),
            )
            .map_err(|e| self.wrong(&e))
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
