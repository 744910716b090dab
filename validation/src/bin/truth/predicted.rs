//! What is predicted of a program: recorded once, then asked of `advise` and `rank`.
//!
//! It must never measure a change, so that a row can be predicted again from what was kept.

use crate::place::{Place, Span};
use crate::programs::{Change, Program};
use crate::table::NOTHING;
use crate::{Kept, Truth, text};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Says how far a replay of the recorded lock may be from the program's own rate.
const GATE: f64 = 0.15;

/// Returns how far apart the CPUs of a machine are, in nanoseconds, whose name says so:
/// `here at 24 ns`.
fn one_way(machine: &str) -> Option<f64> {
    let (_, at) = machine.rsplit_once(" at ")?;
    at.strip_suffix(" ns")?.parse().ok()
}

impl Truth {
    /// Records a program: its gates, and what is predicted of the locks.
    pub(crate) fn predicted(&self, program: &Program) -> Result<Value, String> {
        let kept = self.kept(program.name);
        let command = self.command(program);
        let words: Vec<&str> = command.split(' ').collect();
        let how: &[&str] = match program.change {
            Change::Locks(_) => &[],
            Change::Itself(_) => &["--system"],
        };
        let record = ["record", "--json", "-o", text(&kept.trace)];
        let record = [&record, how, &["--"], &words].concat();
        let mut place = Place::here();
        // Recorded once more if the CPUs moved meanwhile: where they are now counts.
        let mut span = Span::default();
        for _ in 0..self.attempts() {
            place = Place::here();
            let (recorded, during) = place.during(|| self.json(&record));
            recorded?;
            span = during;
            if span.counts() {
                break;
            }
        }
        if let Change::Itself(_) = program.change {
            return self.predicted_of_events(program, &kept, (place, span));
        }
        let mut spans = vec![span];
        let mut stage = |what: &mut dyn FnMut() -> Result<Value, String>| {
            let (found, span) = place.repeat(self.attempts(), what);
            spans.push(span);
            let why = |why| json!({ "gate": { "why": why }, "locks": {} });
            found.unwrap_or_else(why)
        };
        let advised = stage(&mut || match self.shared {
            true => self.advised(
                program,
                (&kept.trace, None),
                place.round_trip,
                &["--no-replay"],
            ),
            false => {
                // Of this place, because a row is.
                self.output(&["machine", "fit", text(&kept.here)])?;
                self.advised(program, kept.both(), place.round_trip, &[])
            }
        });
        let replayed = match self.shared {
            true => json!({ "gate": { "why": "not replayed" }, "locks": {} }),
            false => stage(&mut || self.ranked(program, &kept.trace)),
        };
        let gate = match &advised["replayed_here"] {
            Value::Null => &replayed["gate"],
            here => here,
        };
        Ok(json!({
            "about": program.about,
            "round_trip": place.round_trip,
            "spans": spans.iter().map(Span::json).collect::<Vec<_>>(),
            "bound": advised["bound"],
            "answer": advised["answer"],
            "cause": advised["cause"],
            "simulated_gate": advised["gate"],
            "replayed_gate": gate,
            "predicted": { "simulated": advised["locks"], "replayed": replayed["locks"] },
            "locks": [],
        }))
    }

    /// Returns what is said of a program whose waits the kernel's events show: there is nothing to
    /// simulate, and the bound is of everything that waits less.
    fn predicted_of_events(
        &self,
        program: &Program,
        kept: &Kept,
        (place, span): (Place, Span),
    ) -> Result<Value, String> {
        let advice = self.json(&["advise", "--json", text(&kept.trace)])?;
        let gain = |key: &str| {
            let share = advice[key].as_f64()?;
            Some(share / (1.0 - share))
        };
        let gate = json!({ "why": "not simulated", "passes": false });
        Ok(json!({
            "about": program.about,
            "round_trip": place.round_trip,
            "spans": [span.json()],
            "bound": {
                "share": advice["waiting_share"],
                "gain": gain("waiting_share"),
                "gain_interval": [gain("waiting_share_low"), gain("waiting_share_high")],
            },
            "answer": advice["verdict"],
            "cause": advice["locks"][0]["spent"],
            "simulated_gate": gate,
            "replayed_gate": gate,
            "predicted": { "simulated": {}, "replayed": {} },
            "locks": [],
        }))
    }

    /// Simulates the locks of a row once more, from what was kept of it, and replays them.
    pub(crate) fn predict_again(&self, program: &Program, row: &mut Value) -> Result<(), String> {
        if row["locks"].as_array().is_none_or(Vec::is_empty) {
            return Err("nothing was measured of it".into());
        }
        let kept = self.kept_of(program.name)?;
        let place = Place::at(row["round_trip"].as_f64().unwrap_or_default());
        if let Change::Itself(_) = program.change {
            let place = (place, Span::default());
            let mut again = self.predicted_of_events(program, &kept, place)?;
            for key in ["bound", "answer", "cause"] {
                row[key] = again[key].take();
            }
            return Ok(());
        }
        let advised = |more: &[&str]| self.advised(program, kept.both(), place.round_trip, more);
        let (mut advised, mut ranked) = match self.shared {
            true => (advised(&["--no-replay"])?, Err("not replayed".to_owned())),
            false => {
                let (replayed, span) = place.repeat(self.attempts(), &mut || advised(&[]));
                let rank = &mut || self.ranked(program, &kept.trace);
                let (ranked, also) = place.repeat(self.attempts(), rank);
                match span.counts() && also.counts() {
                    true => (replayed?, ranked),
                    false => {
                        eprintln!("{}: the CPUs are elsewhere, or not idle", program.name);
                        (advised(&["--no-replay"])?, ranked)
                    }
                }
            }
        };
        row["simulated_gate"] = advised["gate"].take();
        let here = advised["replayed_here"].take();
        let replayed = matches!(here["why"].as_str(), None | Some(NOTHING));
        if let (true, Ok(_)) = (replayed, &ranked) {
            row["replayed_gate"] = here;
        }
        for of_lock in row["locks"].as_array_mut().into_iter().flatten() {
            let lock = of_lock["lock"].as_str().unwrap_or_default().to_owned();
            of_lock["simulated"] = advised["locks"][&lock].take();
            // What was replayed stays where nothing is replayed now.
            if let (true, Ok(ranked)) = (replayed, &mut ranked) {
                of_lock["replayed"] = ranked["locks"][&lock].take();
            }
        }
        Ok(())
    }

    /// Returns the gates of `locklab advise` on a recording, with a machine file or as it is by
    /// itself, and what it says of the locks.
    /// Where the CPUs were moved while it was recorded, advice is for each place; that counts
    /// which is nearest to where the row is measured.
    fn advised(
        &self,
        program: &Program,
        (trace, here): (&Path, Option<&Path>),
        round_trip: f64,
        more: &[&str],
    ) -> Result<Value, String> {
        let locks = program.locks().join(",");
        let here = here.map(|here| ["--here", text(here)]);
        let words = ["advise", text(trace), "--json", "--locks", &locks];
        let advice =
            self.json(&[&words[..], here.as_ref().map_or(&[], |here| here), more].concat())?;
        if advice["gate"].is_null() {
            // Nothing to gain: no lock changes anything.
            let all = program.locks().iter();
            let same: Map<String, Value> = all
                .map(|lock| ((*lock).to_owned(), json!({ "ratio": 1.0, "class": "flat" })))
                .collect();
            let gate = json!({ "why": NOTHING, "passes": true });
            return Ok(json!({
                "gate": gate,
                "replayed_here": gate,
                "locks": same,
                "bound": advice["bound"],
                "answer": advice["advice"],
                "cause": advice["waiting"],
            }));
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
                "band": lock["band"],
            });
        }
        let gate = &advice["gate"];
        Ok(json!({
            "gate": gate,
            "replayed_here": gate["replayed_here"],
            "locks": said,
            "bound": advice["bound"],
            "answer": advice["advice"],
            "cause": advice["waiting"],
        }))
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
}
