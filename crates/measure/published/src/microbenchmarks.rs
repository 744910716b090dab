//! The microbenchmarks of a modelled machine beside the published ones that its file
//! names, and how far the model is from them.
//!
//! A figure that gave a parameter its value is marked, because it says nothing for the
//! model. It must never change a machine.

use locklab_document::{Column, Document, Part, Section, Table};
use locklab_harness::experiment::Labels;
use locklab_host::error::Error;
use locklab_sim::Machine;
use locklab_sim::microbench::{Checked, check};
use serde_json::json;

/// Simulates the published microbenchmarks of a machine's file, and returns each beside
/// the model's figure.
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
    // Shares lie between 0 and 1, so two digits are shown.
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
    /// Holds, for the times, the root of the mean of the squares of ln(ours / published).
    times: Option<f64>,
    /// Holds, for the shares of the elapsed time, the greatest difference.
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
    use locklab_document::render;

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
