//! Holds advice on programs against measurements: `cargo run --release -p
//! locklab-advise --example truth -- [--keep FILE] [--again] [--parts FILE] [--pairs N] [--real-time]
//! [--shared] [--locklab FILE] [PROGRAM...]` prints the table of results/programs.md.
//!
//! Each program is recorded once under glibc's mutex. `locklab advise`, on a
//! machine file that was fitted here at first, predicts the ratio of each
//! lock's rate to that, and `locklab compare` measures it. A program whose locks are not
//! glibc's is recorded by the kernel's events; it is measured with half the threads, with twice
//! the work in a section, and with both, which waits less for the same work. Then three
//! promises are checked ([`checks`]): the command ends with 1 if one was broken. A program
//! takes two to six minutes. What is done of its row is kept in FILE, lock by lock, so that an interrupted
//! command goes on where it was; without PROGRAM all are made that FILE has not whole, and
//! `--keep FILE none` only prints.
//!
//! The recording of each row is kept beside FILE, with the machine file that was fitted
//! then. With `--again` the rows that are there are simulated once more from these, by a
//! later version; nothing is recorded or measured, and what was stays in the row.
//!
//! A host moves the CPUs of a virtual machine nearer to each other and apart, and
//! then what is recorded does not hold a minute later. So a row is of one place: what
//! was begun in one and ended in another, or while other programs had much of the
//! CPUs, is done again, a few times.
//!
//! With `--parts FILE` the rows that are kept are written into FILE, too, and beside it a small part of
//! each recording: `--keep results/recordings/programs.json --again` simulates them from these,
//! on any machine. A part says less than the whole, so its answers may differ.
//!
//! With `--real-time` programs that have no more threads than there are CPUs run
//! with real-time priority, for a machine that is not quite idle: a lock in order of
//! arrival stops whenever the next in its queue has lost its CPU.
//!
//! With `--shared` each part is done once, whatever other programs do meanwhile, on a machine
//! that is never idle: what they had is in the row. No machine file is fitted
//! then, because it would be of a busy machine.
//!
//! It needs gcc, go, javac, libsqlite3-dev, python3 with venv, and the packages rocksdb-tools,
//! memcached, libmemcached-tools, stress-ng, mariadb-server, sysbench, nodejs, redis, pigz,
//! pbzip2, zstd and x265; the command in the release folder; and an idle machine. A program
//! that is not there costs its row only.

mod checks;
mod others;
mod parts;
mod place;
mod predicted;
mod programs;
mod sections;
mod table;

use place::Place;
use programs::{Change, Program, prepare, programs};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

struct Truth {
    locklab: PathBuf,
    folder: PathBuf,
    /// The folder for recordings that are kept packed.
    unpacked: PathBuf,
    pairs: String,
    real_time: bool,
    /// Says whether the machine is never idle, and nothing is done again because of that.
    shared: bool,
}

/// Holds what is kept of a row beside its figures.
struct Kept {
    trace: PathBuf,
    /// The machine while it was recorded.
    here: PathBuf,
}

impl Kept {
    fn both(&self) -> (&Path, Option<&Path>) {
        (&self.trace, Some(&*self.here).filter(|here| here.exists()))
    }
}

fn main() -> Result<ExitCode, String> {
    let (mut pairs, mut keep, mut names) = ("6".to_owned(), None, Vec::new());
    let mut parts: Option<PathBuf> = None;
    let (mut real_time, mut again, mut shared) = (false, false, false);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut locklab = root.join("target/release/locklab");
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--pairs" => pairs = words.next().unwrap_or_default(),
            "--keep" => keep = words.next().map(PathBuf::from),
            "--parts" => parts = words.next().map(PathBuf::from),
            "--real-time" => real_time = true,
            "--again" => again = true,
            "--shared" => shared = true,
            "--locklab" => locklab = words.next().unwrap_or_default().into(),
            "--sections" => {
                let arguments: Vec<String> = words.collect();
                return sections::sections(&arguments).map(|()| ExitCode::SUCCESS);
            }
            _ => names.push(word),
        }
    }
    let locklab = locklab.canonicalize().map_err(|e| {
        format!(
            "{}: {e}; cargo xtask install builds it, and --locklab names another",
            locklab.display()
        )
    })?;
    // The folder stays beside what is kept, so that data is made once.
    let drawn = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = match &keep {
        Some(file) => file.with_extension("data"),
        None => drawn.path().into(),
    };
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let folder = folder.canonicalize().map_err(|e| e.to_string())?;
    let mut kept: Value = match keep.as_ref().and_then(|file| std::fs::read(file).ok()) {
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| e.to_string())?,
        None => json!({}),
    };
    prepare(&folder);
    let truth = Truth {
        locklab,
        folder,
        unpacked: drawn.path().into(),
        pairs,
        real_time,
        shared,
    };
    let keep_rows = |kept: &Value| match &keep {
        Some(file) => std::fs::write(file, format!("{kept:#}\n"))
            .map_err(|e| format!("{}: {e}", file.display())),
        None => Ok(()),
    };
    let all = programs(&truth.folder);
    let asked = |program: &&Program| match names.is_empty() {
        true => again || !whole(&kept[program.name], program),
        false => names.iter().any(|name| name == program.name),
    };
    let asked: Vec<&Program> = all.iter().filter(asked).collect();
    for program in asked {
        if again {
            match truth.predict_again(program, &mut kept[program.name]) {
                Ok(()) => keep_rows(&kept)?,
                Err(why) => eprintln!("{}: {why}", program.name),
            }
            continue;
        }
        let mut row = match whole(&kept[program.name], program) {
            true => Value::Null,
            false => kept[program.name].take(),
        };
        loop {
            let more = truth.goes_on(program, &mut row);
            let over = !matches!(more, Ok(true));
            if let Err(why) = more {
                row = json!({ "why": why });
            }
            kept[program.name] = row.clone();
            keep_rows(&kept)?;
            if over {
                break;
            }
        }
    }
    if let Some(file) = parts {
        parts::keep(&truth, &kept, &file)?;
    }
    print!("{}", table::table(&kept));
    let checks = checks::Checks::of(&kept);
    println!("\n{checks}");
    Ok(ExitCode::from(u8::from(!checks.hold())))
}

/// Returns whether every change of a row was tried.
fn whole(row: &Value, program: &Program) -> bool {
    let tried = row["locks"].as_array().map_or(0, Vec::len);
    tried >= program.changes().len()
}

impl Truth {
    /// Does the next part of a row: the gates and what is predicted at first, then what
    /// is measured of a lock. Whether there is more to do.
    fn goes_on(&self, program: &Program, row: &mut Value) -> Result<bool, String> {
        let Some(place) = row["round_trip"].as_f64().map(Place::at) else {
            *row = self.predicted(program)?;
            return Ok(true);
        };
        let tried = row["locks"].as_array().map_or(0, Vec::len);
        let Some(lock) = program.changes().get(tried).copied() else {
            return Ok(false);
        };
        let (measured, span) = place.repeat(self.attempts(), &mut || self.measured(program, lock));
        let measured = measured.unwrap_or_else(|why| {
            eprintln!("{}, {lock}: {why}", program.name);
            json!({ "why": why })
        });
        let predicted = &row["predicted"];
        let of_lock = json!({
            "lock": lock,
            "measured": measured,
            "simulated": predicted["simulated"][lock],
        });
        for (key, value) in [("locks", of_lock), ("spans", span.json())] {
            if let Some(all) = row[key].as_array_mut() {
                all.push(value);
            }
        }
        Ok(!whole(row, program))
    }

    /// Returns how often a part is tried that others disturb.
    fn attempts(&self) -> usize {
        match self.shared {
            true => 1,
            false => place::ATTEMPTS,
        }
    }

    fn kept(&self, name: &str) -> Kept {
        let of = |ending| self.folder.join(format!("{name}.{ending}"));
        Kept {
            trace: of("trace"),
            here: of("toml"),
        }
    }

    /// Returns what was kept of a row, whose recording may be packed.
    fn kept_of(&self, name: &str) -> Result<Kept, String> {
        let kept = self.kept(name);
        match kept.trace.exists() {
            true => Ok(kept),
            false => kept
                .unpack(&self.unpacked)
                .map_err(|e| format!("{}: {e}", kept.trace.display())),
        }
    }

    fn command(&self, program: &Program) -> String {
        match self.real_time && program.fits {
            true => format!("chrt -r 1 {}", program.command),
            false => program.command.clone(),
        }
    }

    /// Returns the program's rate after a change by that before it.
    fn measured(&self, program: &Program, change: &str) -> Result<Value, String> {
        let locklab = text(&self.locklab);
        let command = &self.command(program);
        let experiment = match &program.change {
            Change::Locks(_) => {
                let (name, wait) = match change.strip_suffix(":spin") {
                    Some(name) => (name, "spin"),
                    None => (change, "spin-then-park"),
                };
                format!("{locklab} run --lock {name} --wait {wait} -- {command}")
            }
            Change::Itself(changes) => {
                let changed = changes.iter().find(|(name, _)| *name == change);
                changed.ok_or("there is no such change")?.1.clone()
            }
        };
        let sides = ["--baseline", command, "--experiment", &experiment];
        let options = ["--pairs", &self.pairs, "--metric", program.metric];
        let kept_nowhere = ["--json", "--store", ":memory:"];
        let words = [&["compare"], &sides[..], &options, &kept_nowhere].concat();
        let compared = self.json(&words)?;
        let metric = &compared["workloads"][0]["metrics"][0];
        let ratio = |key: &str| metric[key].as_f64().map(|percent| 1.0 + percent / 100.0);
        match ratio("delta_percent") {
            Some(of) => Ok(json!({ "ratio": of, "low": ratio("low"), "high": ratio("high") })),
            None => Err("compare gave no ratio".into()),
        }
    }

    fn json(&self, words: &[&str]) -> Result<Value, String> {
        let (output, errors) = self.output(words)?;
        let last = errors.trim().lines().last().unwrap_or_default();
        serde_json::from_slice(&output).map_err(|_| format!("locklab {}: {last}", words[0]))
    }

    fn output(&self, words: &[&str]) -> Result<(Vec<u8>, String), String> {
        let output = Command::new(&self.locklab)
            .args(words)
            .stdin(Stdio::null())
            .current_dir(&self.folder)
            .output()
            .map_err(|e| e.to_string())?;
        Ok((
            output.stdout,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
