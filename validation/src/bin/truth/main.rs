//! Holds advice on programs against measurements: `cargo run --release -p
//! locklab-validation --bin truth -- [--keep FILE] [--again] [--pairs N] [--real-time]
//! [PROGRAM...]` prints the table of results/programs.md.
//!
//! Each program is recorded once under glibc's mutex. `locklab advise`, on a
//! machine file that was fitted here at first, and `locklab rank --trace` predict the ratio of each
//! lock's rate to that, and `locklab compare` measures it. A program takes two to six
//! minutes. What is done of its row is kept in FILE, lock by lock, so that an interrupted
//! command goes on where it was; without PROGRAM all are made that FILE has not whole, and
//! `--keep FILE none` only prints.
//!
//! The recording of each row is kept beside FILE, with the machine file that was fitted
//! then. With `--again` the rows that are there are simulated once more from these, by a
//! later version, and replayed where the CPUs are as far apart as they were; nothing is
//! recorded or measured, and what was stays in the row.
//!
//! A host moves the CPUs of a virtual machine nearer to each other and apart, and
//! then what is recorded does not hold a minute later. So a row is of one place: what
//! was begun in one and ended in another, or while other programs had much of the
//! CPUs, is done again, a few times.
//!
//! With `--real-time` programs that have no more threads than there are CPUs run
//! with real-time priority, for a machine that is not quite idle: a lock in order of
//! arrival stops whenever the next in its queue has lost its CPU.
//!
//! It needs gcc, libsqlite3-dev, python3, and the packages rocksdb-tools,
//! memcached, libmemcached-tools and stress-ng; the command, the interposer and the
//! recorder in the release folder; and an idle machine.

mod place;
mod programs;
mod table;

use place::{Place, Span};
use programs::{Program, prepare, programs};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says why there is no gate where no lock can gain.
const NOTHING: &str = "nothing to gain";
/// Says how far a replay of the recorded lock may be from the program's own rate.
const GATE: f64 = 0.15;

struct Truth {
    locklab: PathBuf,
    folder: PathBuf,
    pairs: String,
    real_time: bool,
}

/// Holds what is kept of a row beside its figures.
struct Kept {
    trace: PathBuf,
    /// The machine while it was recorded.
    here: PathBuf,
}

fn main() -> Result<(), String> {
    let (mut pairs, mut keep, mut names) = ("6".to_owned(), None, Vec::new());
    let (mut real_time, mut again) = (false, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--pairs" => pairs = words.next().unwrap_or_default(),
            "--keep" => keep = words.next().map(PathBuf::from),
            "--real-time" => real_time = true,
            "--again" => again = true,
            _ => names.push(word),
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let locklab = root.join("target/release/locklab");
    let locklab = locklab.canonicalize().map_err(
        |_| "there is no target/release/locklab; cargo xtask install builds it and its libraries",
    )?;
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
        pairs,
        real_time,
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
    print!("{}", table::table(&kept));
    Ok(())
}

/// Returns how far apart the CPUs of a machine are, in nanoseconds, whose name says so:
/// `here at 24 ns`.
fn one_way(machine: &str) -> Option<f64> {
    let (_, at) = machine.rsplit_once(" at ")?;
    at.strip_suffix(" ns")?.parse().ok()
}

/// Returns whether every lock of a row was tried.
fn whole(row: &Value, program: &Program) -> bool {
    let tried = row["locks"].as_array().map_or(0, Vec::len);
    tried >= program.locks().len()
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
        let Some(lock) = program.locks().get(tried).copied() else {
            return Ok(false);
        };
        let (measured, span) = place.repeat(&mut || self.measured(program, lock));
        let measured = measured.unwrap_or_else(|why| {
            eprintln!("{}, {lock}: {why}", program.name);
            json!({ "why": why })
        });
        let predicted = &row["predicted"];
        let of_lock = json!({
            "lock": lock,
            "measured": measured,
            "simulated": predicted["simulated"][lock],
            "replayed": predicted["replayed"][lock],
        });
        for (key, value) in [("locks", of_lock), ("spans", span.json())] {
            if let Some(all) = row[key].as_array_mut() {
                all.push(value);
            }
        }
        Ok(!whole(row, program))
    }

    /// Records a program: its gates, and what is predicted of the locks.
    fn predicted(&self, program: &Program) -> Result<Value, String> {
        let kept = self.kept(program);
        let command = self.command(program);
        let words: Vec<&str> = command.split(' ').collect();
        let record = ["record", "--json", "-o", text(&kept.trace), "--"];
        let record = [&record, &words[..]].concat();
        let mut place = Place::here();
        // Recorded once more if the CPUs moved meanwhile: where they are now counts.
        let mut span = Span::default();
        for _ in 0..place::ATTEMPTS {
            place = Place::here();
            let (recorded, during) = place.during(|| self.json(&record));
            recorded?;
            span = during;
            if span.counts() {
                break;
            }
        }
        let mut spans = vec![span];
        let mut stage = |what: &mut dyn FnMut() -> Result<Value, String>| {
            let (found, span) = place.repeat(what);
            spans.push(span);
            let why = |why| json!({ "gate": { "why": why }, "locks": {} });
            found.unwrap_or_else(why)
        };
        let advised = stage(&mut || {
            // Of this place, because a row is.
            self.output(&["machine", "fit", text(&kept.here)])?;
            self.advised(program, &kept, place.round_trip, &[])
        });
        let replayed = stage(&mut || self.ranked(program, &kept.trace));
        let gate = match &advised["replayed_here"] {
            Value::Null => &replayed["gate"],
            here => here,
        };
        Ok(json!({
            "about": program.about,
            "round_trip": place.round_trip,
            "spans": spans.iter().map(Span::json).collect::<Vec<_>>(),
            "simulated_gate": advised["gate"],
            "replayed_gate": gate,
            "predicted": { "simulated": advised["locks"], "replayed": replayed["locks"] },
            "locks": [],
        }))
    }

    /// Simulates the locks of a row once more, from what was kept of it, and replays them.
    fn predict_again(&self, program: &Program, row: &mut Value) -> Result<(), String> {
        let kept = self.kept(program);
        if !whole(row, program) || !kept.trace.exists() || !kept.here.exists() {
            return Err("no row with its recording and machine file is kept".into());
        }
        let place = Place::at(row["round_trip"].as_f64().unwrap_or_default());
        let (advised, span) =
            place.repeat(&mut || self.advised(program, &kept, place.round_trip, &[]));
        let (mut ranked, also) = place.repeat(&mut || self.ranked(program, &kept.trace));
        let mut advised = match span.counts() && also.counts() {
            true => advised?,
            false => {
                eprintln!("{}: the CPUs are elsewhere, or not idle", program.name);
                self.advised(program, &kept, place.round_trip, &["--no-replay"])?
            }
        };
        let mut gate = advised["gate"].take();
        let here = advised["replayed_here"].take();
        match (here["why"].as_str(), &mut ranked) {
            (None | Some(NOTHING), Ok(ranked)) => {
                row["replayed_gate"] = here;
                for of_lock in row["locks"].as_array_mut().into_iter().flatten() {
                    let lock = of_lock["lock"].as_str().unwrap_or_default().to_owned();
                    of_lock["replayed"] = ranked["locks"][&lock].take();
                }
            }
            // What was replayed stays, and with it the replay's part in the gate.
            _ => {
                let shut = row["replayed_gate"]["passes"] == false;
                gate["passes"] = json!(gate["passes"] == true && !shut);
            }
        }
        let passes = gate["passes"] == true;
        row["simulated_gate"] = gate;
        for of_lock in row["locks"].as_array_mut().into_iter().flatten() {
            let lock = of_lock["lock"].as_str().unwrap_or_default().to_owned();
            of_lock["simulated"] = match passes {
                true => advised["locks"][&lock].take(),
                false => Value::Null,
            };
        }
        Ok(())
    }

    fn kept(&self, program: &Program) -> Kept {
        let of = |ending| self.folder.join(format!("{}.{ending}", program.name));
        Kept {
            trace: of("trace"),
            here: of("toml"),
        }
    }

    fn command(&self, program: &Program) -> String {
        match self.real_time && program.fits {
            true => format!("chrt -r 1 {}", program.command),
            false => program.command.clone(),
        }
    }

    /// Returns the gates of `locklab advise`, and what it says of the locks.
    /// Where the CPUs were moved while it was recorded, advice is for each place; that counts
    /// which is nearest to where the row is measured.
    fn advised(
        &self,
        program: &Program,
        kept: &Kept,
        round_trip: f64,
        more: &[&str],
    ) -> Result<Value, String> {
        let locks = program.locks().join(",");
        let options = ["--json", "--here", text(&kept.here), "--locks", &locks];
        let advice = self.json(&[&["advise", text(&kept.trace)], &options[..], more].concat())?;
        if advice["gate"].is_null() {
            // Nothing to gain: no lock changes anything.
            let all = program.locks().iter();
            let same: Map<String, Value> = all
                .map(|lock| ((*lock).to_owned(), json!({ "ratio": 1.0, "class": "flat" })))
                .collect();
            let gate = json!({ "why": NOTHING, "passes": true });
            return Ok(json!({ "gate": gate, "replayed_here": gate, "locks": same }));
        }
        let mut said = json!({});
        let off = |point: &&Value| match one_way(point["machine"].as_str().unwrap_or_default()) {
            Some(ns) => (2.0 * ns / round_trip).ln().abs(),
            None => 0.0,
        };
        let points = advice["points"].as_array().into_iter().flatten();
        let nearest = points.min_by(|one, other| off(one).total_cmp(&off(other)));
        let locks = nearest.and_then(|point| point["locks"].as_array());
        for lock in locks.into_iter().flatten() {
            let verdict = &lock["verdict"];
            said[lock["name"].as_str().unwrap_or_default()] = json!({
                "ratio": verdict["ratio"],
                "low": verdict["ratio_low"],
                "high": verdict["ratio_high"],
                "class": verdict["class"],
            });
        }
        let gate = &advice["gate"];
        Ok(json!({ "gate": gate, "replayed_here": gate["replayed_here"], "locks": said }))
    }

    /// Returns the replayed rate of glibc's mutex as a part of the program's own, and the
    /// replayed ratios of the locks that wait in the replay as in the program.
    fn ranked(&self, program: &Program, trace: &Path) -> Result<Value, String> {
        let alike = |lock: &&str| lock.ends_with(":spin") || lock.starts_with("futex");
        let locks: Vec<&str> = program.locks().iter().copied().filter(alike).collect();
        let names = locks.iter().map(|lock| lock.trim_end_matches(":spin"));
        let today = program.today();
        let mut words = vec!["rank", today];
        words.extend(names);
        words.extend(["--trace", text(trace), "--against", today]);
        words.extend(["--time", "8", "--json", "--store", ":memory:"]);
        let ranked = self.json(&words)?;
        let rates = ranked["points"][0]["metrics"][0]["locks"].as_array();
        let rate = |lock: &str| {
            let found = rates?.iter().find(|of| of["lock"] == lock)?;
            found["value"].as_f64()
        };
        let own = rate(today).ok_or("no rate was replayed of glibc's lock")?;
        let recorded = ranked["environment"]["Recorded"].as_str();
        let recorded: f64 = recorded
            .and_then(|rate| rate.split(' ').next())
            .and_then(|rate| rate.parse().ok())
            .ok_or("the recording says no rate")?;
        let mut said = json!({});
        for lock in locks {
            if let Some(rate) = rate(lock.trim_end_matches(":spin")) {
                said[lock] = json!({ "ratio": rate / own });
            }
        }
        let ratio = own / recorded;
        let passes = (1.0 - GATE..=1.0 + GATE).contains(&ratio);
        Ok(json!({ "gate": { "ratio": ratio, "passes": passes }, "locks": said }))
    }

    /// Returns the program's rate under a lock by that under glibc's.
    fn measured(&self, program: &Program, lock: &str) -> Result<Value, String> {
        let (name, wait) = match lock.strip_suffix(":spin") {
            Some(name) => (name, "spin"),
            None => (lock, "spin-then-park"),
        };
        let locklab = text(&self.locklab);
        let command = &self.command(program);
        let experiment = format!("{locklab} run --lock {name} --wait {wait} -- {command}");
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
