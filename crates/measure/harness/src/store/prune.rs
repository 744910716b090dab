//! Removes experiments from a store, and frees their space.
//!
//! Only named experiments are removed, and all of them or none. It must never
//! remove an experiment that a process is still running.

use super::database::Store;
use super::reading::{Listed, stored};
use locklab_host::error::Error;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The experiments to remove: those that match everything that is given
/// here, and damaged rows of samples.
#[derive(Clone, Debug, Default)]
pub struct Prune {
    /// Their numbers; any if empty.
    pub ids: Vec<i64>,
    /// The least time since their start.
    pub older_than: Option<Duration>,
    /// Their states, as [`Listed::state`] names them; any if
    /// empty.
    pub states: Vec<String>,
    /// Says whether to remove also rows of samples that cannot be read, of any
    /// experiment.
    pub damaged_rows: bool,
}

/// The result of a removal, or of its dry run.
#[derive(Clone, Debug, Serialize)]
pub struct Pruned {
    /// Experiments that were removed, or would be.
    pub experiments: Vec<Listed>,
    /// Number of bias bands that they measured: the next A/A run measures them
    /// again.
    pub bias_bands: u64,
    /// Number of rows of other experiments that could not be read.
    pub damaged_rows: u64,
    /// Bytes by which the file became smaller.
    pub freed_bytes: u64,
    /// Says why the file could not be made smaller; the removal stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compacted: Option<String>,
}

impl Pruned {
    /// Returns the experiments, one per line, and their totals.
    #[must_use]
    pub fn text(&self, dry_run: bool) -> String {
        let mut text: String = self.experiments.iter().map(Listed::line).collect();
        let count = |n: u64, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let samples = self.experiments.iter().map(|e| e.runs).sum::<u64>() + self.damaged_rows;
        let verb = if dry_run { "Would remove" } else { "Removed" };
        let _ = write!(
            text,
            "{verb} {}, {} and {}",
            count(self.experiments.len() as u64, "experiment"),
            count(samples, "sample"),
            count(self.bias_bands, "bias band"),
        );
        text += &match (&self.not_compacted, dry_run) {
            (_, true) => ".\n".to_owned(),
            (None, false) => format!("; the file is {} kB smaller.\n", self.freed_bytes / 1000),
            (Some(why), false) => format!("; its space was not given back: {why}.\n"),
        };
        text
    }
}

impl Prune {
    /// Returns whether it names any experiment.
    fn names_experiments(&self) -> bool {
        !self.ids.is_empty() || self.older_than.is_some() || !self.states.is_empty()
    }
}

impl Store {
    /// Returns what [`Store::prune`] would remove now.
    ///
    /// # Errors
    /// If an experiment does not exist or is still running, or the store cannot
    /// be read.
    pub fn prunable(&self, prune: &Prune) -> Result<Pruned, Error> {
        Ok(self.chosen(prune)?.0)
    }

    /// Removes experiments with their samples and bias bands, then makes the
    /// file as small as what is left.
    ///
    /// # Errors
    /// The same errors as [`Store::prunable`], and one if the store cannot be
    /// written; nothing was removed then.
    pub fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let before = self.bytes_on_disk();
        let mut pruned = self.together(|store| -> Result<_, Error> {
            let (pruned, damaged) = store.chosen(prune)?;
            for experiment in &pruned.experiments {
                for sql in [
                    "DELETE FROM samples WHERE experiment = ?1",
                    "DELETE FROM bias_bands WHERE experiment = ?1",
                    "DELETE FROM experiments WHERE id = ?1",
                ] {
                    store.delete(sql, experiment.id)?;
                }
            }
            for row in damaged {
                store.delete("DELETE FROM samples WHERE id = ?1", row)?;
            }
            Ok(pruned)
        })?;
        if !pruned.experiments.is_empty() || pruned.damaged_rows > 0 {
            pruned.not_compacted = self
                .db
                .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
                .err()
                .map(|e| self.wrong(&e).to_string());
            pruned.freed_bytes = before.saturating_sub(self.bytes_on_disk());
        }
        Ok(pruned)
    }

    /// Returns the experiments to remove, and the damaged rows of the others.
    fn chosen(&self, prune: &Prune) -> Result<(Pruned, Vec<i64>), Error> {
        for id in &prune.ids {
            if self.listed(Some(*id))?.state == "running" {
                return Err(Error::Failed(format!(
                    "experiment {} of the store {} is still running; interrupt it first, or leave \
                     it out",
                    *id,
                    self.path.display()
                )));
            }
        }
        let old = match prune.older_than {
            Some(age) => Some(self.started_before(age)?),
            None => None,
        };
        let is_chosen = |listed: &Listed| {
            prune.names_experiments()
                && listed.state != "running"
                && (prune.ids.is_empty() || prune.ids.contains(&listed.id))
                && old.as_ref().is_none_or(|old| old.contains(&listed.id))
                && (prune.states.is_empty() || prune.states.contains(&listed.state))
        };
        let experiments: Vec<Listed> = self.list()?.into_iter().filter(is_chosen).collect();
        let mut bias_bands = 0;
        for experiment in &experiments {
            bias_bands += self.bands_of(experiment.id)?;
        }
        let damaged = match prune.damaged_rows {
            true => self.damaged_rows(&experiments)?,
            false => Vec::new(),
        };
        let pruned = Pruned {
            experiments,
            bias_bands,
            damaged_rows: damaged.len() as u64,
            freed_bytes: 0,
            not_compacted: None,
        };
        Ok((pruned, damaged))
    }

    fn delete(&self, sql: &str, id: i64) -> Result<(), Error> {
        let delete = |sql| self.db.prepare_cached(sql)?.execute([id]);
        delete(sql).map_err(|e| self.wrong(&e)).map(|_| ())
    }

    /// Experiments that were started at least `age` ago.
    fn started_before(&self, age: Duration) -> Result<Vec<i64>, Error> {
        let query = || -> rusqlite::Result<Vec<i64>> {
            self.db
                .prepare("SELECT id FROM experiments WHERE started <= datetime('now', ?1)")?
                .query_map([format!("-{} seconds", age.as_secs())], |row| row.get(0))?
                .collect()
        };
        query().map_err(|e| self.wrong(&e))
    }

    fn bands_of(&self, experiment: i64) -> Result<u64, Error> {
        self.db
            .query_row(
                "SELECT count(*) FROM bias_bands WHERE experiment = ?1",
                [experiment],
                |row| row.get::<_, i64>(0),
            )
            .map(|count| u64::try_from(count).unwrap_or_default())
            .map_err(|e| self.wrong(&e))
    }

    /// Returns the rows that cannot be read, of experiments other than these.
    fn damaged_rows(&self, without: &[Listed]) -> Result<Vec<i64>, Error> {
        let query = || -> rusqlite::Result<Vec<i64>> {
            let mut select = self.db.prepare(
                "SELECT id, experiment, cell, pair, side, pair_order, state, sample, '{}'
                 FROM samples ORDER BY id",
            )?;
            let mut rows = select.query([])?;
            let mut damaged = Vec::new();
            while let Some(row) = rows.next()? {
                let experiment: i64 = row.get(1).unwrap_or_default();
                let goes_anyway = without.iter().any(|listed| listed.id == experiment);
                if !goes_anyway && stored(row, &self.path).is_err() {
                    damaged.push(row.get(0)?);
                }
            }
            Ok(damaged)
        };
        query().map_err(|e| self.wrong(&e))
    }

    /// Returns the bytes of the file and of its write-ahead log.
    fn bytes_on_disk(&self) -> u64 {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        bytes(&self.path) + bytes(&PathBuf::from(log))
    }
}
