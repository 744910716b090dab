//! What is predicted of a program: recorded once, then asked of `advise` and `rank`.
//!
//! It must never measure a change, so that a row can be predicted again from what was kept.

use crate::place::{Place, Span};
use crate::programs::{Change, Program};
use crate::table::NOTHING;
use crate::{Kept, Truth, text};
use serde_json::{Map, Value, json};
use std::path::Path;

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
        let (advised, fitted) = place.repeat(self.attempts(), &mut || {
            if !self.shared {
                // Of this place, because a row is.
                self.output(&["machine", "fit", text(&kept.here)])?;
            }
            self.advised(program, kept.both(), place.round_trip)
        });
        let advised = advised.unwrap_or_else(|why| json!({ "gate": { "why": why }, "locks": {} }));
        Ok(json!({
            "about": program.about,
            "round_trip": place.round_trip,
            "spans": [span.json(), fitted.json()],
            "bound": advised["bound"],
            "answer": advised["answer"],
            "cause": advised["cause"],
            "simulated_gate": advised["gate"],
            "predicted": { "simulated": advised["locks"] },
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
        Ok(json!({
            "about": program.about,
            "round_trip": place.round_trip,
            "spans": [span.json()],
            "bound": advice["bound"],
            "answer": advice["verdict"],
            "cause": advice["locks"][0]["spent"],
            "simulated_gate": { "why": "not simulated" },
            "predicted": { "simulated": {} },
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
        let mut advised = self.advised(program, kept.both(), place.round_trip)?;
        row["simulated_gate"] = advised["gate"].take();
        for of_lock in row["locks"].as_array_mut().into_iter().flatten() {
            let lock = of_lock["lock"].as_str().unwrap_or_default().to_owned();
            of_lock["simulated"] = advised["locks"][&lock].take();
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
    ) -> Result<Value, String> {
        let locks = program.locks().join(",");
        let here = here.map(|here| ["--here", text(here)]);
        let words = ["advise", text(trace), "--json", "--no-replay"];
        let locks = ["--locks", &locks];
        let here = here.as_ref().map_or(&[][..], |here| here);
        let advice = self.json(&[&words[..], &locks, here].concat())?;
        if advice["gate"].is_null() {
            // Nothing to gain: no lock changes anything.
            let all = program.locks().iter();
            let same: Map<String, Value> = all
                .map(|lock| ((*lock).to_owned(), json!({ "ratio": 1.0, "class": "flat" })))
                .collect();
            let gate = json!({ "why": NOTHING });
            return Ok(json!({
                "gate": gate,
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
        Ok(json!({
            "gate": advice["gate"],
            "locks": said,
            "bound": advice["bound"],
            "answer": advice["advice"],
            "cause": advice["waiting"],
        }))
    }
}
