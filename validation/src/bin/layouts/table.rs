//! The table of predictions beside measurements, and what of it held. It only computes.

use serde_json::Value;
use std::fmt::Write as _;

/// A change below this share of the time is not counted.
const COUNTED: f64 = 1.0;

/// Returns the table and, under it, the shares that held.
pub(crate) fn table(predicted: &Value, measured: &Value, gigahertz: f64) -> String {
    let mut text = format!(
        "The core at {gigahertz:.2} GHz; changes of time on a CPU, in per cent.\n\n\
         | program | layout | measured | 95 % | predicted | band | predicted/measured |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    let (mut counted, mut unclear, mut directed, mut within) = (0, 0, 0, 0);
    for ours in predicted.as_array().into_iter().flatten() {
        let same = |other: &&Value| {
            other["program"] == ours["program"] && other["layout"] == ours["layout"]
        };
        let Some(theirs) = measured.as_array().into_iter().flatten().find(same) else {
            continue;
        };
        let number = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_f64);
        let time = |path: &str| number(theirs, &format!("/value/{path}"));
        let (Some(base), Some(delta), Some(low), Some(high)) = (
            time("baseline"),
            time("delta_percent"),
            time("low"),
            time("high"),
        ) else {
            continue;
        };
        // Cycles more, as a share of the cycles that the baseline was measured to take.
        let cycles = base * 1e6 * gigahertz;
        let more = |end: &str| {
            let of = |side: &str| number(ours, &format!("/value/{side}/{end}"));
            Some(100.0 * (of("experiment")? - of("baseline")?) / cycles)
        };
        let (Some(a), Some(value), Some(b)) = (more("low"), more("value"), more("high")) else {
            continue;
        };
        // The same under each other hash of the predictor.
        let by_hash = ours.pointer("/value/by_hash").and_then(Value::as_array);
        let hashed = by_hash
            .into_iter()
            .flatten()
            .filter_map(|sides| Some(100.0 * (sides[1].as_f64()? - sides[0].as_f64()?) / cycles));
        let (from, to) = hashed.fold((a.min(b).min(value), a.max(b).max(value)), |band, more| {
            (band.0.min(more), band.1.max(more))
        });
        let shown = delta.abs() >= COUNTED && low.signum() == high.signum();
        let clear = from.signum() == to.signum();
        unclear += u32::from(shown && !clear);
        if shown && clear {
            counted += 1;
            directed += u32::from(delta.signum() == value.signum());
            within += u32::from((0.5..=2.0).contains(&(value / delta)));
        }
        let _ = writeln!(
            text,
            "| {} | {} | {delta:+.2} | {low:+.2} to {high:+.2} | {value:+.2} | {:+.2} to {:+.2} | {} |",
            ours["program"].as_str().unwrap_or_default(),
            ours["layout"].as_str().unwrap_or_default(),
            from,
            to,
            match (shown, clear) {
                (true, true) => format!("{:.2}", value / delta),
                (true, false) => "unclear".to_owned(),
                (false, _) => "not counted".to_owned(),
            },
        );
    }
    let _ = writeln!(
        text,
        "\nOf {counted} changes of at least {COUNTED} % that were shown and whose prediction has a \
         sign, {directed} have the predicted direction (80 % asked), and {within} are within a factor \
         of two. {unclear} more are unclear: their band has both signs."
    );
    text
}
