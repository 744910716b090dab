//! The counts of an emulated execution, as text and as JSON. Both state that
//! they are a model's.

use super::{Counted, Model};
use locklab_document::number::grouped;
use locklab_document::{Column, Table, render};
use locklab_lab::VERSION;
use serde_json::{Value, json as value};
use std::fmt::Write as _;

/// The counts as one JSON document.
#[must_use]
pub fn json(counted: &Counted, command: &[String]) -> Value {
    let mut document = counted.report.clone();
    // Nothing of the kernel is executed in QEMU's user mode: zero would mean
    // that it was executed and did nothing.
    document["kernel"] = value!({
        "executed": false, "instructions": null, "l1i_fetches": null, "l1i_misses": null,
    });
    document["schema"] = value!(1);
    document["kind"] = value!("icache");
    document["tool"] = value!(VERSION);
    document["command"] = value!(command);
    document["status"] = value!(counted.ended.failure().unwrap_or_else(|| "0".into()));
    document
}

/// The counts as a table, with where they come from.
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
    text += "\nSource: model, in an emulated execution of the program alone. Not\n\
             modelled: prefetch, micro-op cache, speculation, L2. One layout of one\n\
             build: compare over several link orders before you conclude.\n";
    if report["vcpus"].as_u64() > Some(1) {
        text += "The program has several threads, so the counts do not repeat.\n";
    }
    text
}
