//! The store's part for `locklab compare`: pairs of runs of whole programs.
//!
//! They share the table of experiments with matrices; their header says
//! which they are.

use super::{Store, json};
use crate::compare::{Measured, RunPair};
use rusqlite::{OptionalExtension, params};
use serde_json::Value;
use std::collections::HashMap;

/// Made in any store, older ones too.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS program_pairs (
    experiment INTEGER NOT NULL REFERENCES experiments (id),
    workload   TEXT NOT NULL,
    pair       INTEGER NOT NULL,
    runs       TEXT NOT NULL,  -- JSON: both runs and what the coin said
    PRIMARY KEY (experiment, workload, pair)
) STRICT;
CREATE TABLE IF NOT EXISTS program_bands (
    setup      TEXT NOT NULL,  -- hash of baseline, workload and machine
    metric     TEXT NOT NULL,
    band       REAL NOT NULL,  -- a fraction
    experiment INTEGER NOT NULL REFERENCES experiments (id),
    PRIMARY KEY (setup, metric)
) STRICT;
";

/// The header: what a list shows of it, and all but its pairs.
fn header(measured: &Measured) -> String {
    let mut bare = measured.clone();
    for workload in &mut bare.workloads {
        workload.pairs.clear();
    }
    json(&serde_json::json!({
        "kind": "compare",
        "spec": {
            "baseline": measured.spec.baseline.label(),
            "experiment": measured.spec.experiment.label(),
        },
        "compare": bare,
    }))
}

impl Store {
    /// Notes that a comparison begins; gives its number.
    ///
    /// # Errors
    /// A sentence.
    pub fn begin_comparison(
        &self,
        key: &str,
        command: &str,
        measured: &Measured,
    ) -> Result<i64, String> {
        self.db
            .execute(
                "INSERT INTO experiments (key, started, state, command, header)
                 VALUES (?1, datetime('now'), 'running', ?2, ?3)",
                params![key, command, header(measured)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// Notes how it ended.
    ///
    /// # Errors
    /// A sentence.
    pub fn finish_comparison(&self, experiment: i64, measured: &Measured) -> Result<(), String> {
        let state = if measured.interrupted.is_some() {
            "interrupted"
        } else {
            "done"
        };
        self.db
            .execute(
                "UPDATE experiments SET state = ?2, header = ?3 WHERE id = ?1",
                params![experiment, state, header(measured)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// Keeps one pair, in place of a half that was stored before.
    ///
    /// # Errors
    /// A sentence.
    pub fn add_program_pair(
        &self,
        experiment: i64,
        workload: &str,
        pair: &RunPair,
    ) -> Result<(), String> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO program_pairs VALUES (?1, ?2, ?3, ?4)",
                params![experiment, workload, pair.index, json(pair)],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// The whole pairs of a comparison, by workload, in order.
    ///
    /// # Errors
    /// A sentence.
    pub fn program_pairs(&self, experiment: i64) -> Result<HashMap<String, Vec<RunPair>>, String> {
        let mut pairs = self.program_runs(experiment)?;
        for pairs in pairs.values_mut() {
            pairs.retain(|pair| !pair.is_half());
        }
        Ok(pairs)
    }

    /// The same with the half that an interruption left.
    ///
    /// # Errors
    /// A sentence.
    pub fn program_runs(&self, experiment: i64) -> Result<HashMap<String, Vec<RunPair>>, String> {
        let query = || -> rusqlite::Result<Vec<(String, String)>> {
            self.db
                .prepare(
                    "SELECT workload, runs FROM program_pairs WHERE experiment = ?1 ORDER BY pair",
                )?
                .query_map([experiment], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        let mut pairs: HashMap<String, Vec<RunPair>> = HashMap::new();
        for (workload, runs) in query().map_err(|e| self.wrong(&e))? {
            let pair = serde_json::from_str(&runs).map_err(|e| self.unreadable(experiment, &e))?;
            pairs.entry(workload).or_default().push(pair);
        }
        Ok(pairs)
    }

    /// A stored comparison; `None` if the experiment is a matrix.
    ///
    /// # Errors
    /// A sentence.
    pub fn comparison(&self, experiment: i64) -> Result<Option<Measured>, String> {
        let header: Option<String> = self
            .db
            .query_row(
                "SELECT header FROM experiments WHERE id = ?1",
                [experiment],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))?;
        let mut header: Value = match header {
            Some(text) => {
                serde_json::from_str(&text).map_err(|e| self.unreadable(experiment, &e))?
            }
            None => return Ok(None),
        };
        if header["kind"] != "compare" {
            return Ok(None);
        }
        let mut measured: Measured = serde_json::from_value(header["compare"].take())
            .map_err(|e| self.unreadable(experiment, &e))?;
        let mut pairs = self.program_pairs(experiment)?;
        for workload in &mut measured.workloads {
            workload.pairs = pairs.remove(&workload.name).unwrap_or_default();
        }
        Ok(Some(measured))
    }

    fn unreadable(&self, experiment: i64, e: &serde_json::Error) -> String {
        format!(
            "the store {} holds an experiment {experiment} that cannot be read: {e}",
            self.path.display()
        )
    }

    /// Keeps the bias band of a metric of a set-up, in place of an older one.
    ///
    /// # Errors
    /// A sentence.
    pub fn keep_program_band(
        &self,
        setup: &str,
        metric: &str,
        band: f64,
        experiment: i64,
    ) -> Result<(), String> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO program_bands VALUES (?1, ?2, ?3, ?4)",
                params![setup, metric, band, experiment],
            )
            .map_err(|e| self.wrong(&e))?;
        Ok(())
    }

    /// The bias band of a metric of a set-up, if an A/A run measured it.
    ///
    /// # Errors
    /// A sentence.
    pub fn program_band(&self, setup: &str, metric: &str) -> Result<Option<f64>, String> {
        self.db
            .query_row(
                "SELECT band FROM program_bands WHERE setup = ?1 AND metric = ?2",
                [setup, metric],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| self.wrong(&e))
    }
}
