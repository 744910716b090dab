//! The tables, and how a foreign file, or one of another version, is
//! recognised. A store is never misread: it is refused with an error message.

use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::path::Path;

/// Number in the file's header. Version 1 is that of locklab 0.1.
const VERSION: i64 = 2;
/// The mark of a store in the file's header: "LkLb".
const APPLICATION: i64 = 0x4c6b_4c62;

const SCHEMA: &str = "
CREATE TABLE experiments (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL,  -- hash of question, design and version
    started    TEXT NOT NULL,  -- UTC
    state      TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'failed', 'done')),
    process    INTEGER,        -- that runs it
    command    TEXT NOT NULL,
    header     TEXT NOT NULL   -- JSON: the experiment without its pairs
) STRICT;
CREATE INDEX experiments_by_key ON experiments (key);
CREATE TABLE samples (
    id             INTEGER PRIMARY KEY,
    experiment     INTEGER NOT NULL REFERENCES experiments (id),
    cell           TEXT NOT NULL,  -- JSON: its key
    pair           INTEGER NOT NULL,
    side           TEXT NOT NULL CHECK (side IN ('baseline', 'experiment')),
    pair_order     TEXT NOT NULL
                   CHECK (pair_order IN ('baseline_first', 'experiment_first', 'together')),
    -- open: its pair is not complete; repeated: another took its place
    state          TEXT NOT NULL CHECK (state IN ('open', 'kept', 'repeated')),
    sample         TEXT NOT NULL   -- JSON
) STRICT;
CREATE INDEX samples_by_experiment ON samples (experiment);
CREATE TABLE bias_bands (
    setup        TEXT NOT NULL,  -- hash of baseline, set-up and machine
    cell         TEXT NOT NULL,  -- JSON: its key
    metric       TEXT NOT NULL,
    band         REAL NOT NULL,  -- a fraction
    experiment   INTEGER NOT NULL REFERENCES experiments (id),
    PRIMARY KEY (setup, cell, metric)
) STRICT;
";

/// Says why a file is not a store.
pub(super) enum Unfit {
    Sql(rusqlite::Error),
    Foreign,
    Older,
    Newer(i64),
}

impl From<rusqlite::Error> for Unfit {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(e) => f.write_str(&reason(e)),
            Self::Foreign => f.write_str("it is a file of another program"),
            Self::Older => f.write_str(
                "it was written by locklab 0.1, whose form this version does not read ('results \
                 export' of 0.1 does)",
            ),
            Self::Newer(v) => write!(
                f,
                "it was written by a newer locklab (format {v}, this one knows {VERSION})"
            ),
        }
    }
}

/// Makes the tables in an empty file, and tries to write.
pub(super) fn prepare(db: &mut Connection) -> Result<(), Unfit> {
    // Two commands may run at once; each write is a few hundred bytes.
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    // A crash of the machine may lose the last samples, never the file.
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "normal")?;
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if !is_ours(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    // This is written each time, so that a file that cannot be written is found
    // here.
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Opens a file that may be where nothing can be written.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, Unfit> {
    let plain = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    plain.busy_timeout(std::time::Duration::from_secs(10))?;
    let db = match pragma(&plain, "user_version") {
        Ok(_) => plain,
        // In a folder that cannot be written there is no room for the files
        // of write-ahead logging, which an immutable file does not need.
        Err(_) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            let escaped: String = path
                .to_string_lossy()
                .replace('%', "%25")
                .replace('?', "%3f")
                .replace('#', "%23");
            Connection::open_with_flags(
                format!("file:{escaped}?immutable=1"),
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            )?
        }
    };
    if is_ours(&db)? {
        Ok(db)
    } else {
        Err(Unfit::Foreign)
    }
}

/// Returns whether it is a store of this version; false for an empty file.
fn is_ours(db: &Connection) -> Result<bool, Unfit> {
    match (pragma(db, "application_id")?, pragma(db, "user_version")?) {
        (APPLICATION, VERSION) => Ok(true),
        (APPLICATION, version) if version < VERSION => Err(Unfit::Older),
        (APPLICATION, version) => Err(Unfit::Newer(version)),
        _ => {
            let tables: i64 =
                db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables > 0 {
                Err(Unfit::Foreign)
            } else {
                Ok(false)
            }
        }
    }
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

/// Returns the error of SQLite as text, with a remedy where there is one.
pub(super) fn reason(e: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode as Code;
    match e.sqlite_error_code() {
        Some(Code::DiskFull) => "the disk is full".into(),
        Some(Code::ReadOnly) => "it cannot be written".into(),
        Some(Code::CannotOpen) => "it cannot be opened".into(),
        Some(Code::NotADatabase) => "it is a file of another kind".into(),
        Some(Code::DatabaseBusy) => "another command is writing it".into(),
        Some(Code::DatabaseCorrupt) => {
            "it is damaged; 'sqlite3 FILE .recover' saves what can be read".into()
        }
        _ => e.to_string(),
    }
}
