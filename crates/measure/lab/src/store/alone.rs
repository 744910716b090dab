//! A store that one process writes and no other process accesses meanwhile: a
//! shard of a sweep, or the store that shards are merged into.
//!
//! Unlike the user's store it may lie on a network file system, so it keeps no
//! write-ahead log, whose index every reader would have to share memory with;
//! and its samples are written many at a time.

use super::database::{Slot, Store};
use super::schema;
use crate::experiment::Sample;
use locklab_host::error::Error;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::path::Path;

impl Store {
    /// Opens the store at `path`, making it if necessary, for this process
    /// alone.
    ///
    /// # Errors
    /// If it cannot be made or written, is not a store, or another process has
    /// it open like this. The message has the path.
    pub fn open_alone(path: &Path) -> Result<Self, Error> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::Failed(format!("cannot write {}: {e}", path.display()))
        };
        let mut db = Connection::open(path).map_err(|e| wrong(&schema::reason(&e)))?;
        schema::prepare_alone(&mut db).map_err(|e| wrong(&e))?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Opens a store that [`Store::open_alone`] made, to read what its writer
    /// left: also one that was killed in the middle of a write, which is then
    /// undone.
    ///
    /// # Errors
    /// If it cannot be read, is not a store, or its writer has it open.
    pub fn open_left(path: &Path) -> Result<Self, Error> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::Failed(format!("cannot read {}: {e}", path.display()))
        };
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|e| wrong(&schema::reason(&e)))?;
        schema::check(&db).map_err(|e| wrong(&e))?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Runs `work` in a transaction, so that all of it is stored or nothing.
    ///
    /// # Errors
    /// The error of `work`, or one if the store cannot be written.
    pub fn together<T, E: From<Error>>(
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

    /// Returns the experiment of this key, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of_key(&self, key: &str) -> Result<Option<i64>, Error> {
        self.db
            .query_row(
                "SELECT id FROM experiments WHERE key = ?1 ORDER BY id LIMIT 1",
                [key],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))
    }

    /// Returns every experiment: its number and its key.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn keys(&self) -> Result<Vec<(i64, String)>, Error> {
        let query = || -> rusqlite::Result<Vec<(i64, String)>> {
            self.db
                .prepare("SELECT id, key FROM experiments ORDER BY id")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        query().map_err(|e| self.wrong(&e))
    }

    /// Records that no process works on an experiment any more, and whether all
    /// of it is stored.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn end(&self, experiment: i64, complete: bool) -> Result<(), Error> {
        let state = if complete { "done" } else { "interrupted" };
        self.db
            .execute(
                "UPDATE experiments SET state = ?2, process = NULL WHERE id = ?1",
                params![experiment, state],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Stores a sample whose pair is complete and counts.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn keep(&self, experiment: i64, slot: &Slot<'_>, sample: &Sample) -> Result<(), Error> {
        self.insert_sample(experiment, slot, "kept", sample)
    }

    /// Returns the number of samples.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn count(&self) -> Result<u64, Error> {
        self.db
            .query_row("SELECT count(*) FROM samples", [], |row| {
                row.get::<_, i64>(0)
            })
            .map(|count| u64::try_from(count).unwrap_or_default())
            .map_err(|e| self.wrong(&e))
    }
}
