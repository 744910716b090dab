//! Descriptions of modelled machines: their list, the assumptions of each, and the
//! rates of locks there beside those measured elsewhere.

use crate::modelled::spec::Spec;
use locklab_document::number::count;
use locklab_document::page::Page;
use locklab_document::{Column, Table, render};
use locklab_host::error::Error;
use locklab_sim::{BUILTIN, FIGURES, Machine, Origin, run};
use locklab_workload::Cells;
use serde_json::{Value, json};

/// Returns the machines that come with Locklab, one after another.
#[must_use]
pub fn list() -> String {
    let mut page = Page::default();
    for (name, _) in BUILTIN {
        if let Some(machine) = Machine::builtin(name) {
            let head = format!("{name:18} {:4} CPUs  ", machine.cpus());
            page.hanging(&head, &machine.description);
        }
    }
    page.finish()
}

/// Returns the same as JSON.
#[must_use]
pub fn list_json() -> Value {
    let machines = BUILTIN.iter().filter_map(|(name, _)| {
        let machine = Machine::builtin(name)?;
        Some(json!({
            "name": name,
            "cpus": machine.cpus(),
            "description": machine.description,
        }))
    });
    json!({ "schema": 1, "kind": "machines", "machines": machines.collect::<Vec<_>>() })
}

/// Returns a machine's figures as JSON, each with its source or assumption.
#[must_use]
pub fn show_json(machine: &Machine) -> Value {
    let figures = FIGURES.iter().map(|kind| {
        let figure = &machine.figures[&kind.key];
        let (origin, why) = match &figure.origin {
            Origin::Source(source) => ("source", source.as_str()),
            Origin::Assumption(why) => ("assumption", why.as_str()),
            Origin::Override => ("override", ""),
        };
        json!({
            "name": kind.key.name(),
            "value": figure.value,
            "unit": kind.unit,
            "band": figure.band,
            "origin": origin,
            "why": why,
        })
    });
    json!({
        "schema": 1,
        "kind": "machine",
        "name": machine.name,
        "description": machine.description,
        "figures": figures.collect::<Vec<_>>(),
    })
}

/// Returns a machine's figures, each with its source or assumption.
#[must_use]
pub fn show(machine: &Machine) -> String {
    let mut page = Page::default();
    page.paragraph(&format!("{}: {}", machine.name, machine.description));
    page.blank();
    for kind in FIGURES {
        let figure = &machine.figures[&kind.key];
        let why = match &figure.origin {
            Origin::Source(source) => format!("source: {source}"),
            Origin::Assumption(why) => format!("assumed: {why}"),
            Origin::Override => "override".to_owned(),
        };
        let band = figure
            .band
            .map_or_else(String::new, |(low, high)| format!(" [{low} to {high}]"));
        let value = format!("{} {}{band}", figure.value, kind.unit);
        page.hanging(&format!("{} = ", kind.key), &value);
        page.hanging("    ", kind.meaning);
        page.hanging("    ", &why);
    }
    page.hanging("directory.arbitration = ", machine.arbitration.name());
    page.finish()
}

/// Returns the rates of locks measured somewhere, side by side with those simulated on
/// `machine`, in a table; `None` stands for a lock that could not be measured.
/// They are of the first of these cells, whose lengths are in ns.
///
/// # Errors
/// If there is no cell, or a lock cannot be simulated; the message names it.
pub fn side_by_side(
    machine: &Machine,
    cells: &Cells,
    measured: &[(&str, Option<f64>)],
) -> Result<String, Error> {
    let none = || Error::Failed("there is no cell to simulate".into());
    let place = *cells.places().first().ok_or_else(none)?;
    let [threads, critical, non_critical, _] = place;
    let head = format!(
        "Million acquisitions a second, {}, {critical} ns under the lock, {non_critical} outside:\n",
        count(threads as usize, "thread")
    );
    let mut rows = Vec::new();
    for (lock, here) in measured {
        let spec = Spec::new(lock, lock, cells.clone());
        let simulated = run(&spec.scenario(machine, place, lock, 1))
            .map_err(|error| Error::Failed(format!("{lock} cannot be simulated: {error}")))?
            .ops_per_s;
        let (here, ratio) = here.map_or(("disturbed".into(), "-".into()), |here| {
            (
                format!("{:.3}", here / 1e6),
                format!("{:.2}", simulated / here),
            )
        });
        let simulated = format!("{:.3}", simulated / 1e6);
        rows.push(vec![(*lock).to_owned(), here, simulated, ratio]);
    }
    let columns = vec![
        Column::words("lock", 12),
        Column::new("here", 10),
        Column::new("simulated", 10),
        Column::new("simulated/here", 15),
    ];
    Ok(head + &render::table(&Table::new(columns, rows)))
}
