//! The frame of an HTML report: one file, no script, no network, readable in
//! dark and light.
//!
//! Every element is closed, so that the file is well-formed XML as well and
//! tests can read it.

use super::chart;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Colours and lines of the charts; a picture on its own carries them too.
pub(crate) const CHART_STYLE: &str = include_str!("chart.css");

/// A whole page.
pub(crate) fn page(title: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(r#"<meta charset="utf-8"/>"#))
                (PreEscaped(r#"<meta name="viewport" content="width=device-width, initial-scale=1"/>"#))
                title { (title) }
                // Without this a browser asks the server for an icon.
                (PreEscaped(r#"<link rel="icon" href="data:,"/>"#))
                style { (PreEscaped(STYLE)) (PreEscaped(CHART_STYLE)) }
            }
            body {
                svg width="0" height="0" aria-hidden="true" style="position:absolute" {
                    (chart::definitions())
                }
                (body)
            }
        }
    }
    .into_string()
}

/// A table of names and values.
pub(crate) fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        div.wide {
            table.facts {
                tbody {
                    @for (name, value) in facts { tr { th { (clean(name)) } td { (clean(value)) } } }
                }
            }
        }
    }
}

/// Without the characters that XML does not allow.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => c,
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
            c => c,
        })
        .collect()
}
