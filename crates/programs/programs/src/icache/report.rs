//! The counts of an emulated execution, as text and as JSON. Both state that
//! they are a model's.

use super::change::Change;
use super::places::Place;
use super::{Counted, Model};
use locklab_document::number::grouped;
use locklab_document::page::wrapped;
use locklab_document::{Column, Table, render};
use locklab_frontend::Cause;
use locklab_harness::VERSION;
use serde_json::{Value, json as value};
use std::fmt::Write as _;

/// Returns the counts as one JSON document.
#[must_use]
pub fn json(counted: &Counted, command: &[String]) -> Value {
    let mut document = counted.report.clone();
    // Nothing of the kernel is executed in QEMU's user mode: zero would mean
    // that it was executed and did nothing.
    document["kernel"] = value!({
        "executed": false, "instructions": null, "l1i_fetches": null, "l1i_misses": null,
    });
    if let Some(places) = &counted.places {
        // Nothing of the kernel here either.
        document["frontend"]["kernel"] = Value::Null;
        document["frontend"]["places"] = value!(places);
    }
    document["schema"] = value!(1);
    document["kind"] = value!("icache");
    document["tool"] = value!(VERSION);
    document["command"] = value!(command);
    document["status"] = value!(counted.ended.failure().unwrap_or_else(|| "0".into()));
    document
}

/// Returns what the model lost most by, and then the counts as tables, with where they
/// come from.
#[must_use]
pub fn text(counted: &Counted, model: &Model, command: &[String]) -> String {
    let report = &counted.report;
    let mut text = String::new();
    let _ = writeln!(text, "{}\n", wrapped("", &lead(counted)));
    let _ = writeln!(text, "L1i model: {} ({})", model.geometry, model.source);
    let shown: String = command.join(" ").chars().take(60).collect();
    let _ = writeln!(text, "Program:   {shown}\n");
    let mut rows = [
        ("instructions", "instructions"),
        ("L1i fetches", "l1i_fetches"),
        ("L1i misses", "l1i_misses"),
    ]
    .map(|(label, name)| {
        let user = report["user"][name].as_u64().map_or("-".into(), grouped);
        vec![label.to_owned(), user, "not executed".to_owned()]
    })
    .to_vec();
    if counted.instructions() > 0 {
        let mpki = 1000.0 * counted.misses() as f64 / counted.instructions() as f64;
        rows.push(vec!["MPKI".to_owned(), format!("{mpki:.4}")]);
    }
    let columns = vec![
        Column::words("", 13),
        Column::new("user", 17),
        Column::new("kernel", 17),
    ];
    text += &render::table(&Table::new(columns, rows));
    if let Some(lost) = lost(report) {
        text += &lost;
    }
    if let Some(places) = &counted.places {
        text += &listed("Functions that lose most", &places.functions);
        text += &listed("Call sites that lose most", &places.call_sites);
        if !places.symbols {
            text += "\nThe program has no symbols, so its code has addresses for names.\n";
        }
    }
    let unknown = match model.processor() {
        Some(_) => None,
        None => super::processor_of_this_machine()
            .err()
            .map(|why| why.to_string()),
    };
    for note in notes(report, model.processor().is_some(), unknown) {
        let _ = writeln!(text, "\n{}", wrapped("", &note));
    }
    text
}

/// Returns the first paragraph: what was executed, what the model lost most by, and that
/// nothing was measured.
fn lead(counted: &Counted) -> String {
    let report = &counted.report;
    let instructions = grouped(counted.instructions());
    let mut words = vec![format!(
        "The program executed {instructions} instructions in user mode."
    )];
    let user = &report["frontend"]["user"];
    let cycles = user["cycles"]["value"].as_f64();
    let dispatch = user["dispatch"]["value"].as_f64();
    if let Some((cycles, dispatch)) = cycles.zip(dispatch).filter(|(cycles, _)| *cycles > 0.0) {
        let share = |part: f64| 100.0 * part / cycles;
        let causes = Cause::ALL
            .into_iter()
            .enumerate()
            .filter_map(|(index, (_, name))| {
                let lost = user["lost"][index]["cycles"]["value"].as_f64()?;
                Some((lost, name))
            });
        let most = causes
            .max_by(|one, two| one.0.total_cmp(&two.0))
            .filter(|(lost, _)| *lost > 0.0)
            .map_or_else(String::new, |(lost, name)| {
                format!(" The largest cause is \"{name}\" ({:.1} %).", share(lost))
            });
        words.push(format!(
            "The modelled front end lost {:.1} % of its cycles.{most}",
            share(cycles - dispatch)
        ));
    } else {
        words.push(match counted.misses() {
            1 => "It missed the modelled L1 instruction cache once.".to_owned(),
            misses => format!(
                "It missed the modelled L1 instruction cache {} times.",
                grouped(misses)
            ),
        });
    }
    words.push(
        "These figures are a model's, from an emulated execution of the program alone; nothing \
         was measured."
            .to_owned(),
    );
    words.join(" ")
}

/// Returns what the reader has to know, a paragraph each. `unknown` says why only the L1i
/// was modelled, if nobody asked for that.
fn notes(report: &Value, front_end: bool, unknown: Option<String>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = unknown {
        notes.push(format!("Only the L1i was modelled: {why}."));
    }
    let lacking = match front_end {
        true => "speculation, the data side, the kernel and another thread on the core",
        false => "prefetch, the micro-op cache, speculation and L2",
    };
    notes.push(format!(
        "The model leaves out {lacking}. This is one layout of one build: compare over several \
         link orders before you conclude."
    ));
    if report["vcpus"].as_u64() > Some(1) {
        notes.push("The program has several threads, so the counts do not repeat.".to_owned());
    }
    notes.extend(sampled(report));
    let rewritten = report["frontend"]["rewritten_blocks"].as_u64();
    if let Some(blocks) = rewritten.filter(|blocks| *blocks > 0) {
        notes.push(format!(
            "The program wrote over its own code ({} times). The modelled caches keep the old \
             code.",
            grouped(blocks)
        ));
    }
    notes
}

/// Returns what a sampled run stands on, if anything was left out.
fn sampled(report: &Value) -> Option<String> {
    let sample = &report["frontend"]["sample"];
    let simulated = sample["simulated_instructions"].as_u64()?;
    let all = report["instructions"].as_u64()?;
    if simulated >= all {
        return None;
    }
    let error = match sample["error_percent"].as_f64() {
        Some(error) => format!("The draw of them alone errs by up to {error:.1} % (95 %)."),
        None => "They are too few to say how far off that is.".into(),
    };
    Some(format!(
        "Sampled: {} of {} instructions were simulated, in {} intervals after the first ten \
         million. {error} --exact simulates all.",
        grouped(simulated),
        grouped(all),
        grouped(sample["intervals"].as_u64()?)
    ))
}

/// Returns the cycles by cause, as a table.
fn lost(report: &Value) -> Option<String> {
    let user = &report["frontend"]["user"];
    let all = user["cycles"]["value"].as_f64()?;
    let row = |label: &str, cycles: &Value| {
        let value = cycles["value"].as_f64()?;
        let whole = |end: &str| Some(grouped(cycles[end].as_f64()?.round() as u64));
        Some(vec![
            label.to_owned(),
            whole("value")?,
            format!("{} to {}", whole("low")?, whole("high")?),
            format!("{:.1}", 100.0 * value / all.max(1.0)),
        ])
    };
    let mut rows = vec![row("dispatch", &user["dispatch"])?];
    for (index, (_, name)) in Cause::ALL.into_iter().enumerate() {
        rows.push(row(name, &user["lost"][index]["cycles"])?);
    }
    rows.push(row("in all", &user["cycles"])?);
    let columns = vec![
        Column::words("cycles", 20),
        Column::new("modelled", 12),
        Column::new("band", 26),
        Column::new("%", 6),
    ];
    let name = report["frontend"]["processor"].as_str()?;
    let table = render::table(&Table::new(columns, rows));
    Some(format!("\nFront end: {name}\n\n{table}"))
}

/// Places with their cycles, as a table; nothing if there are none.
fn listed(title: &str, places: &[Place]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let rows = places
        .iter()
        .map(|place| {
            let cycles = grouped(place.cycles.round() as u64);
            let name: String = match &place.target {
                Some(target) => format!("{} to {target}", place.name),
                None => place.name.clone(),
            };
            vec![name.chars().take(54).collect(), cycles]
        })
        .collect();
    let columns = vec![Column::words(title, 54), Column::new("cycles", 14)];
    format!("\n{}", render::table(&Table::new(columns, rows)))
}

/// Returns what a change of the program costs, in words.
#[must_use]
pub fn changed(change: &Change, inline: Option<&str>) -> String {
    let what = inline.map_or("The change".to_owned(), |symbol| {
        format!("The change in the inlining of {symbol}")
    });
    let verdict = match change.verdict {
        "better" => "saves cycles",
        "worse" => "costs cycles",
        "flat" => "costs no cycles that show",
        _ => "may save or cost cycles: the band allows both",
    };
    let percent = change.percent;
    let hashes = match change.by_hash.len() {
        0 => "",
        _ => " and the predictor's hashes, which are not published",
    };
    let paragraph = format!(
        "{what} {verdict}. The modelled cycles change by {:+.2} % ({:+.2} to {:+.2} % over the \
         band{hashes}), and the instructions by {:+}. The model counts no cycles for data, so the share \
         of the program's time is smaller.",
        percent.value, percent.low, percent.high, change.instructions
    );
    let mut text = format!("\n{}\n", wrapped("", &paragraph));
    for (name, cycles) in change.largest().into_iter().take(4) {
        let _ = writeln!(text, "  {name}: {cycles:+.0} cycles");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Front;
    use super::super::change::Caused;
    use super::super::places::Places;
    use super::*;
    use crate::golden::golden;
    use locklab_frontend::icache::Geometry;
    use locklab_frontend::{Cycles, Processor};
    use locklab_host::process::{Ended, Usage};

    fn well() -> Ended {
        Ended {
            status: std::process::ExitStatus::default(),
            usage: Usage::default(),
        }
    }

    fn cycles(value: f64) -> Cycles {
        Cycles {
            low: 0.8 * value,
            value,
            high: 1.25 * value,
        }
    }

    /// A run with call sites, sampled, under a front end.
    #[test]
    fn the_report_begins_with_what_the_front_end_lost() {
        let lost = [24e6, 48e6, 3e6, 12e6, 21e6, 9e6, 30e6, 0.0, 0.0];
        let dispatch = 61e6;
        let all: f64 = dispatch + lost.iter().sum::<f64>();
        let place = |name: &str, target: Option<&str>, cycles| Place {
            name: name.into(),
            target: target.map(str::to_owned),
            cycles,
        };
        let counted = Counted {
            report: value!({
                "instructions": 252_660_436_u64, "l1i_misses": 1_234_567, "vcpus": 2,
                "user": {
                    "instructions": 252_660_436_u64, "l1i_fetches": 61_000_000,
                    "l1i_misses": 1_234_567,
                },
                "frontend": {
                    "processor": "zen-3",
                    "user": {
                        "dispatch": cycles(dispatch), "cycles": cycles(all),
                        "lost": lost.map(|lost| value!({ "cycles": cycles(lost) })),
                    },
                    "sample": {
                        "simulated_instructions": 13_025_713, "intervals": 121,
                        "error_percent": 7.94,
                    },
                    "rewritten_blocks": 12,
                },
            }),
            ended: well(),
            places: Some(Places {
                functions: vec![
                    place("Parser::next", None, 41.2e6),
                    place("(libraries)", None, 8.1e6),
                ],
                call_sites: vec![place("Parser::next+0x41", Some("spin_unlock"), 17.3e6)],
                symbols: true,
            }),
        };
        let model = Model {
            geometry: Geometry::default(),
            next_line: false,
            source: "as given",
            plugin: "/plugin.so".into(),
            front: Some(Front {
                processor: Processor::named("zen-3").unwrap(),
                argument: "zen-3".into(),
            }),
            sampled: true,
            hashes: false,
        };
        let command = ["./server".to_owned(), "--once".to_owned()];
        let change = Change {
            baseline: cycles(180e6),
            experiment: cycles(184e6),
            percent: Cycles {
                low: 1.41,
                value: 2.22,
                high: 3.6,
            },
            by_hash: Vec::new(),
            causes: vec![Caused {
                cause: Cause::L1i,
                cycles: 3.1e6,
            }],
            instructions: -1_204_000,
            verdict: "worse",
        };
        let found = text(&counted, &model, &command) + &changed(&change, Some("spin_unlock"));
        golden("frontend.txt", &found);
    }

    #[test]
    fn a_cache_alone_has_its_misses_in_the_first_paragraph() {
        let counted = Counted {
            report: value!({"instructions": 2004, "l1i_misses": 1}),
            ended: well(),
            places: None,
        };
        let first = lead(&counted);
        assert!(
            first.contains("missed the modelled L1 instruction cache once"),
            "{first}"
        );
        let said = notes(&counted.report, false, Some("it is not known".into()));
        assert_eq!(said[0], "Only the L1i was modelled: it is not known.");
    }

    #[test]
    fn a_sample_says_what_it_stands_on() {
        let report = |simulated: u64, error: Value| {
            let sample = value!({
                "simulated_instructions": simulated, "intervals": 121, "error_percent": error,
            });
            value!({"instructions": 252_660_436_u64, "frontend": {"sample": sample}})
        };
        let text = sampled(&report(13_025_713, value!(7.94))).unwrap();
        assert!(text.contains("7.9 %") && text.contains("--exact"), "{text}");
        let few = sampled(&report(13, Value::Null)).unwrap();
        assert!(few.contains("too few"), "{few}");
        assert_eq!(sampled(&report(252_660_436, Value::Null)), None);
        assert_eq!(sampled(&value!({})), None);
    }
}
