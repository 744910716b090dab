//! The report as 72 columns of text that can be mailed.

use super::{Report, words};
use crate::report::comparison;
use crate::report::page::Page;

/// The whole report.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut page = Page::default();
    page.title(&words::title(&report.measured.spec));
    page.heading("Setup");
    page.facts(&words::setup(report));
    page.heading("Environment");
    page.facts(&report.measured.environment);
    let caveats = words::caveats(report);
    if !caveats.is_empty() {
        page.heading("Before you read this");
        for caveat in &caveats {
            page.item(caveat);
        }
    }
    for (measurement, judged) in report
        .measured
        .workloads
        .iter()
        .zip(&report.verdicts.workloads)
    {
        page.heading(&measurement.name);
        page.paragraph(&measurement.about);
        if !measurement.pairs.is_empty() {
            page.facts(&measurement.setup);
            page.blank();
            for line in comparison::table(&judged.rows).lines() {
                page.row(line, textwrap::core::display_width(line));
            }
            page.blank();
        }
        page.paragraph(&words::sentence(measurement, judged));
    }
    if let Some(footprint) = report.footprint {
        page.heading("Footprint");
        for line in locklab_footprint::render(footprint, 10).lines() {
            page.row(line, textwrap::core::display_width(line));
        }
    }
    page.heading("Conclusion");
    for sentence in words::conclusion(report) {
        page.paragraph(&sentence);
    }
    let sources = words::sources(report);
    if !sources.is_empty() {
        page.heading("Sources of the figures");
        for (names, source) in sources {
            page.item(&format!("{names}: {source}."));
        }
        page.blank();
        page.paragraph(comparison::LEGEND);
    }
    page.finish()
}
