//! Descriptions of modelled machines: their list, and the assumptions of each.

use locklab_document::page::Page;
use locklab_sim::{BUILTIN, FIGURES, Machine, Origin};
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
