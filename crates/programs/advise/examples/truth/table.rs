//! The table of results/programs.md: what was said of each program, and what was measured.
//!
//! It must never count anything: that is what [`crate::checks`] does.

use serde_json::Value;
use std::fmt::Write as _;

/// Says why there is no gate where no lock can gain.
pub(crate) const NOTHING: &str = "nothing to gain";
/// Holds what differs less from 1 than this has no direction.
pub(crate) const FLAT: f64 = 0.05;

/// Returns the table of the rows that are kept.
pub(crate) fn table(kept: &Value) -> String {
    let mut text = "| program | model by recorded rate | most by the recording | change \
                    | simulated | band | measured |\n\
                    | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (program, row) in kept.as_object().into_iter().flatten() {
        if let Some(why) = row["why"].as_str() {
            let _ = writeln!(text, "| {program} | {why} | | | | | |");
            continue;
        }
        let changes = row["locks"].as_array().into_iter().flatten();
        for (number, change) in changes.enumerate() {
            let first = match number {
                0 => first_columns(program, row),
                _ => " |  | ".to_owned(),
            };
            let simulated = match row["simulated_gate"]["why"] == NOTHING {
                true => "at most 1".to_owned(),
                false => ratio(&change["simulated"]),
            };
            let _ = writeln!(
                text,
                "| {first} | {} | {simulated} | {} | {} |",
                change["lock"].as_str().unwrap_or_default(),
                band(&change["simulated"]["band"]),
                measured(&change["measured"])
            );
        }
    }
    text
}

/// Returns the columns that are of the program.
fn first_columns(program: &str, row: &Value) -> String {
    let about = row["about"].as_str().unwrap_or_default();
    let gate = &row["simulated_gate"];
    let model = match gate["ratio"].as_f64() {
        Some(ratio) => format!("{ratio:.2}"),
        None => gate["why"].as_str().unwrap_or("-").to_owned(),
    };
    let most = row["bound"]["gain"].as_f64();
    let most = most.map_or_else(|| "-".to_owned(), |gain| format!("{:.2}", 1.0 + gain));
    let disturbed = match disturbed(row) {
        (0, _) => String::new(),
        (some, all) => format!("; {some} of {all} parts disturbed"),
    };
    format!("{program}: {about}{disturbed} | {model} | {most}")
}

fn ratio(of: &Value) -> String {
    let ratio = of["ratio"].as_f64();
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn band(band: &Value) -> String {
    match (band[0].as_f64(), band[1].as_f64()) {
        (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
        _ => "-".to_owned(),
    }
}

/// Returns a ratio with its interval, or why there is none.
fn measured(of: &Value) -> String {
    match (
        of["ratio"].as_f64(),
        of["low"].as_f64(),
        of["high"].as_f64(),
    ) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        (Some(ratio), ..) => format!("{ratio:.2}"),
        _ => of["why"].as_str().unwrap_or("-").to_owned(),
    }
}

/// Returns how many parts of a row were made while its CPUs were moved, or others had much
/// of them, and how many there are.
fn disturbed(row: &Value) -> (usize, usize) {
    let spans = row["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let disturbed = |of: &&Value| of["stayed"] == false || of["others"].as_f64() > Some(0.1);
    (spans.iter().filter(disturbed).count(), spans.len())
}

/// Better, worse, or neither.
pub(crate) fn direction(ratio: f64) -> i8 {
    match ratio {
        ratio if ratio > 1.0 + FLAT => 1,
        ratio if ratio < 1.0 - FLAT => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_known_is_no_number() {
        let rows = json!({
            "sleeps": {
                "about": "two threads",
                "simulated_gate": { "ratio": 1.04 },
                "bound": { "gain": 0.5 },
                "spans": [{ "stayed": true, "others": 0.0 }, { "stayed": false }],
                "locks": [
                    {
                        "lock": "mcs",
                        "simulated": { "ratio": 1.2, "band": [0.9, 1.6] },
                        "measured": { "ratio": 1.3, "low": 1.2, "high": 1.4 },
                    },
                    { "lock": "ttas", "simulated": null, "measured": { "why": "it hung" } },
                ],
            },
            "absent": { "why": "no such program" },
        });
        let table = table(&rows);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| absent | no such program | | | | | |",
                "| sleeps: two threads; 1 of 2 parts disturbed | 1.04 | 1.50 | mcs | 1.20 \
                 | 0.90 to 1.60 | 1.30 (1.20 to 1.40) |",
                "|  |  |  | ttas | - | - | it hung |",
            ]
        );
    }
}
