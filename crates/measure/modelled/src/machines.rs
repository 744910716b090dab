//! Descriptions of modelled machines: their list, the assumptions of each, and
//! how its microbenchmarks compare with published ones.

use crate::spec::Spec;
use locklab_document::number::count;
use locklab_document::page::Page;
use locklab_document::{Column, Document, Part, Section, Table, render};
use locklab_host::error::Error;
use locklab_lab::experiment::Labels;
use locklab_sim::microbench::{Checked, check};
use locklab_sim::{BUILTIN, FIGURES, Machine, Origin, run};
use locklab_workload::Cells;
use serde_json::{Value, json};

/// The machines that come with Locklab, one after another.
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

/// A machine's figures as JSON, each with its source or assumption.
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

/// A machine's figures, each with its source or assumption.
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

/// The rates of locks measured somewhere, side by side with those simulated on
/// `machine`, in a table; `None` stands for a lock that could not be measured.
/// The cell of the matrix is given by threads, critical and non-critical
/// length.
///
/// # Errors
/// If a lock cannot be simulated; the message names it.
pub fn side_by_side(
    machine: &Machine,
    [threads, critical, non_critical]: [u64; 3],
    measured: &[(&str, Option<f64>)],
) -> Result<String, Error> {
    let head = format!(
        "Million acquisitions a second, {}, critical {critical}, non-critical {non_critical}:\n",
        count(threads as usize, "thread")
    );
    let mut rows = Vec::new();
    for (lock, here) in measured {
        let cells = Cells {
            threads: vec![usize::try_from(threads).unwrap_or(usize::MAX)],
            critical: vec![critical],
            non_critical: vec![non_critical],
            ..Cells::default()
        };
        let spec = Spec::new(lock, lock, cells);
        let simulated = run(&spec.scenario(machine, [threads, critical, non_critical, 1], lock, 1))
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

/// The published microbenchmarks of a machine's file, each beside the model's
/// figure.
///
/// # Errors
/// If the file has none, or one of them cannot be simulated.
pub fn checked(machine: &Machine, seed: u64) -> Result<Document, Error> {
    let figures = check(machine, seed)?;
    if figures.is_empty() {
        return Err(Error::Failed(format!(
            "{} has no published microbenchmark ([[check]]) to be checked against",
            machine.name
        )));
    }
    let mut rows = Vec::new();
    let mut sources: Vec<&str> = Vec::new();
    let mut chosen: Vec<&str> = Vec::new();
    // A share of one is told by its second digit.
    let of = |figure: &Checked, value: f64| match figure.is_share {
        true => format!("{value:.2}"),
        false => format!("{value:.1}"),
    };
    for figure in &figures {
        let off = 100.0 * (figure.ours / figure.published - 1.0);
        rows.push(vec![
            figure.name.clone(),
            of(figure, figure.published),
            of(figure, figure.ours),
            format!("{off:+.0} %"),
            if figure.chose.is_some() { "*" } else { "" }.to_owned(),
        ]);
        chosen.extend(figure.chose.as_deref());
        if !sources.contains(&figure.source.as_str()) {
            sources.push(&figure.source);
        }
    }
    let agreement = agreement(&figures);
    let mut document = Document {
        title: format!(
            "{}: its microbenchmarks, the model beside the source",
            machine.name
        ),
        head: vec![
            ("Model".into(), machine.description.clone()),
            ("Agreement".into(), agreement.sentence()),
        ],
        labels: Labels::new("source", "model"),
        ..Document::default()
    };
    let columns = vec![
        Column::words("microbenchmark, ns (own time: a share)", 40),
        Column::new("source", 7),
        Column::new("model", 7),
        Column::new("off", 7),
        Column::words("", 1),
    ];
    document.push(Section::new("").with(Part::Table(Table::new(columns, rows))));
    if !chosen.is_empty() {
        document.push(Section::new("").prose(format!(
            "*: gave a parameter its value, and so says nothing for the model ({}). The other \
             figures do.",
            chosen.join(", ")
        )));
    }
    let sources = sources.into_iter().map(str::to_owned).collect();
    document.push(Section::new("Sources").items(sources));
    document.data.insert("schema".into(), json!(1));
    document.data.insert("machine".into(), json!(machine.name));
    document
        .data
        .insert("provenance".into(), json!({"source": "simulation"}));
    let Agreement { times, shares } = agreement;
    document.data.insert("rms_log_error".into(), json!(times));
    document
        .data
        .insert("own_time_difference".into(), json!(shares));
    document.data.insert("figures".into(), json!(figures));
    Ok(document)
}

/// Says how far the figures of a machine are from the published ones.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Agreement {
    /// Of the times: the root of the mean of the squares of ln(ours / published).
    times: Option<f64>,
    /// Of the shares of the elapsed time: the greatest difference.
    shares: Option<f64>,
}

fn agreement(figures: &[Checked]) -> Agreement {
    let times: Vec<f64> = figures
        .iter()
        .filter(|figure| !figure.is_share)
        .map(|figure| (figure.ours / figure.published).ln().powi(2))
        .collect();
    let shares = figures.iter().filter(|figure| figure.is_share);
    Agreement {
        times: (!times.is_empty()).then(|| (times.iter().sum::<f64>() / times.len() as f64).sqrt()),
        shares: shares
            .map(|figure| (figure.ours - figure.published).abs())
            .reduce(f64::max),
    }
}

impl Agreement {
    fn sentence(self) -> String {
        let times = self
            .times
            .map(|error| format!("times: root mean square of the log errors {error:.4}"));
        let shares = self
            .shares
            .map(|most| format!("own times: at most {most:.2} from the source"));
        let parts: Vec<String> = times.into_iter().chain(shares).collect();
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_the_model_beside_the_source() {
        let machine = Machine::builtin("skylake-6138-2s").unwrap();
        let document = checked(&machine, 1).unwrap();
        let text = render::text(&document, render::Colour::Plain);
        for part in [
            "compare-and-swap in turns, other socket",
            "134.0",
            "remote_ns",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let figures = document.data["figures"].as_array().unwrap();
        assert_eq!(figures.len(), machine.checks.len());
    }

    #[test]
    fn shares_of_the_elapsed_time_do_not_dilute_the_error_of_the_times() {
        let figure = |published: f64, ours: f64, is_share: bool| Checked {
            name: "a benchmark".into(),
            published,
            ours,
            is_share,
            source: "a source".into(),
            chose: None,
        };
        // A time below a nanosecond is a time.
        let e = std::f64::consts::E;
        let figures = [figure(10.0, 10.0 * e, false), figure(0.5, 0.5 * e, false)];
        let with_share = [&figures[..], &[figure(0.8, 0.75, true)]].concat();
        let found = agreement(&with_share);
        assert!((found.times.unwrap() - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.shares.unwrap() - 0.05).abs() < 1e-9, "{found:?}");
        assert_eq!(agreement(&figures).shares, None);
        assert!(found.sentence().contains("1.0000; own times: at most 0.05"));
    }

    #[test]
    fn a_machine_without_published_figures_says_so() {
        let machine = Machine::builtin("flat-16").unwrap();
        let error = checked(&machine, 1).unwrap_err().to_string();
        assert!(error.starts_with("flat-16 has no published"), "{error}");
    }
}
