//! The counts of an emulated execution, as text and as JSON. Both state that
//! they are a model's.

use super::change::Change;
use super::places::Place;
use super::{Counted, Model};
use locklab_document::number::grouped;
use locklab_document::{Column, Table, render};
use locklab_frontend::Cause;
use locklab_lab::VERSION;
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

/// Returns the counts as a table, with where they come from.
#[must_use]
pub fn text(counted: &Counted, model: &Model, command: &[String]) -> String {
    let report = &counted.report;
    let mut text = String::new();
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
    let lacking = match model.processor() {
        Some(_) => "speculation, the data side, the kernel and\nanother thread on the core.",
        None => "prefetch, the micro-op cache, speculation and L2.",
    };
    if model.processor().is_none()
        && let Err(why) = super::processor_of_this_machine()
    {
        let _ = writeln!(text, "\nOnly the L1i was modelled: {why}.");
    }
    let _ = write!(
        text,
        "\nSource: a model, in an emulated execution of the program alone.\n\
         It leaves out {lacking}\n\
         This is one layout of one build: compare over several link orders\n\
         before you conclude.\n"
    );
    if report["vcpus"].as_u64() > Some(1) {
        text += "The program has several threads, so the counts do not repeat.\n";
    }
    if let Some(sample) = sampled(report) {
        text += &sample;
    }
    let rewritten = report["frontend"]["rewritten_blocks"].as_u64();
    if let Some(blocks) = rewritten.filter(|blocks| *blocks > 0) {
        let _ = writeln!(
            text,
            "The program wrote over its own code ({} times);\nthe modelled caches keep the old code.",
            grouped(blocks)
        );
    }
    text
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
        Some(error) => format!("the draw of them alone errs by up to {error:.1} % (95 %)."),
        None => "they are too few to say how far off that is.".into(),
    };
    Some(format!(
        "Sampled: {} of {} instructions were simulated,\n\
         in {} intervals after the first ten million;\n{error}\n--exact simulates all.\n",
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
        _ => "is not decided, because the band of the penalties allows both signs",
    };
    let percent = change.percent;
    let mut text = format!(
        "\n{what} {verdict}:\n\
         {:+.2} % of the modelled cycles ({:+.2} to {:+.2} % over the band),\n\
         {:+} instructions. The model counts no cycles for data, so the share\n\
         of the program's time is smaller.\n",
        percent.value, percent.low, percent.high, change.instructions
    );
    for (name, cycles) in change.largest().into_iter().take(4) {
        let _ = writeln!(text, "  {name}: {cycles:+.0} cycles");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(
            text.lines().all(|line| line.chars().count() <= 72),
            "{text}"
        );
        let few = sampled(&report(13, Value::Null)).unwrap();
        assert!(few.contains("too few"), "{few}");
        assert_eq!(sampled(&report(252_660_436, Value::Null)), None);
        assert_eq!(sampled(&value!({})), None);
    }
}
