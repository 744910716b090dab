//! perf stat: `-x,` with an event in each line, `-j` with an object in each line, or the
//! text for people. Appended outputs of several runs are samples; the mean of `-r` is one.

use super::fields::{moment_of_c, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::Role;
use serde_json::Value;
use std::collections::BTreeSet;

/// Events that say how long it took, the best first.
const DECIDE: [&str; 7] = [
    "duration_time",
    "time elapsed",
    "task-clock",
    "cpu-clock",
    "cycles",
    "cpu-cycles",
    "instructions",
];

/// Fields of an object that counts a part of the machine or of the program.
const PARTS: [&str; 8] = [
    "cpu", "core", "cluster", "die", "socket", "node", "thread", "cgroup",
];

/// A line of an event.
struct Line {
    /// Says whether it is of an interval (`-I`), whose time counts from the start of its run.
    interval: bool,
    value: String,
    unit: String,
    event: String,
    /// Says whether it is the mean of the runs of `-r`.
    mean: bool,
    /// Says how much of the time it was counted, in percent.
    counted: Option<f64>,
}

impl Line {
    /// Reads a line of `-x`.
    fn of_columns(line: &str) -> Option<Self> {
        let separator = [';', '\t', '|', ',']
            .into_iter()
            .find(|c| line.contains(*c))?;
        // In some languages the decimal point is a comma, where no comma separates.
        let line = match separator {
            ',' => line.to_owned(),
            _ => line.replace(',', "."),
        };
        let mut fields: Vec<&str> = line.split(separator).map(str::trim).collect();
        let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_event = |f: &[&str]| {
            f.len() >= 5 && is_value(f[0]) && !is_value(f[1]) && is_name(f[2]) && {
                let after = f[3].trim_end_matches('%');
                after.parse::<f64>().is_ok()
            }
        };
        let interval = !is_event(&fields) && fields.len() > 5 && is_event(&fields[1..]);
        if interval {
            fields[0].parse::<f64>().ok()?;
            fields.remove(0);
        }
        if !is_event(&fields) {
            return None;
        }
        let mean = fields[3].ends_with('%');
        let counted = fields.get(if mean { 5 } else { 4 });
        Some(Self {
            interval,
            value: fields[0].into(),
            unit: fields[1].into(),
            event: fields[2].into(),
            mean,
            counted: counted.and_then(|text| text.parse().ok()),
        })
    }

    /// Reads an object of `-j`.
    fn of_object(object: &Value) -> Option<Self> {
        let value = text(object, "counter-value");
        Some(Self {
            interval: object.get("interval").is_some(),
            value: Some(value).filter(|text| is_value(text))?.into(),
            unit: text(object, "unit").into(),
            event: Some(text(object, "event"))
                .filter(|e| !e.is_empty())?
                .into(),
            mean: object.get("variance").is_some(),
            counted: object.get("pcnt-running").and_then(Value::as_f64),
        })
    }

    /// Reads a line of the text for people: `1,234.5 msec task-clock # 0.9 CPUs utilized`.
    fn of_text(line: &str) -> Option<Self> {
        let line = &line.replace(['\u{202f}', '\u{a0}', '\'', '’'], "");
        let (figures, rest) = line.split_once('#').unwrap_or((line, ""));
        let mean = line.contains("( +-") || line.contains(" +- ");
        let figures = figures.split("( +-").next()?.split("( ").next()?;
        let (value, what) = match figures.trim().strip_prefix("<not ") {
            Some(rest) => ("<not counted>", rest.split_once('>')?.1),
            None => figures.trim().split_once(char::is_whitespace)?,
        };
        // The mean of several runs has its deviation behind it.
        let what = match what.trim_start().strip_prefix("+- ") {
            Some(rest) => rest.split_once(' ')?.1,
            None => what,
        };
        let words: Vec<&str> = what.split_whitespace().collect();
        let (unit, event) = match words[..] {
            [event] => ("", event.to_owned()),
            ["seconds", "time", "elapsed"] => ("s", "time elapsed".into()),
            ["seconds", of] => ("s", format!("{of} time")),
            [unit, event] if units::seconds(unit).is_some() || unit == "Joules" => {
                (unit, event.to_owned())
            }
            _ => return None,
        };
        let value = in_words(value, !unit.is_empty());
        let counted = rest.rsplit_once('(').or(line.rsplit_once('('));
        let counted = counted.and_then(|(_, text)| text.trim().strip_suffix("%)")?.parse().ok());
        Some(Self {
            interval: false,
            value: Some(value).filter(|text| is_value(text))?,
            unit: unit.into(),
            event,
            mean,
            counted: counted.filter(|_| !mean),
        })
    }
}

/// Returns a number of perf's text in any language with a decimal point and no separators of
/// thousands. Only a number with a fraction has a decimal mark, and it is the last mark.
fn in_words(value: &str, has_fraction: bool) -> String {
    let is_mark = |c: char| c == ',' || c == '.';
    match value.rfind(is_mark).filter(|_| has_fraction) {
        Some(at) => format!("{}.{}", value[..at].replace(is_mark, ""), &value[at + 1..]),
        None => value.replace(is_mark, ""),
    }
}

fn is_value(text: &str) -> bool {
    text.parse::<f64>().is_ok() || text.starts_with("<not ")
}

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let started = input
        .text
        .lines()
        .find_map(|l| l.strip_prefix("# started on "));
    let started = started.and_then(moment_of_c);
    // A second figure of an event is an object without a count.
    let has = |object: &Value, names: &[&str]| names.iter().any(|name| object.get(name).is_some());
    let is_object = |object: &Value| has(object, &["counter-value", "metric-value"]);
    let apart = |object: &Value| has(object, &PARTS);
    let refused = |why: &str| {
        let mut file = SampleFile::default();
        file.notes.push(why.into());
        Some(file)
    };
    let per = "it counts each CPU, core, socket or thread by itself; leave out -A and --per-...";
    if !input.lines.is_empty() && input.lines.iter().all(is_object) {
        if input.lines.iter().any(apart) {
            return refused(per);
        }
        return of_lines(input.lines.iter().filter_map(Line::of_object), started);
    }
    let text = input.plain()?;
    let lines = || {
        text.lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
    };
    if text.contains("Performance counter stats for") {
        // The rest of the text is the program's own.
        return of_lines(lines().filter_map(Line::of_text), started);
    }
    let part = |line: &&str| {
        let (first, _) = line.split_once([',', ';']).unwrap_or_default();
        let rest = first.trim_start_matches(['S', 'C', 'P', 'U', 'N', 'D', '-']);
        first.starts_with(['S', 'C', 'N']) && rest.starts_with(|c: char| c.is_ascii_digit())
    };
    if lines().all(|line| part(&line)) && lines().next().is_some() {
        return refused(per);
    }
    // A second figure of an event is in a line whose first columns are empty.
    let more = |line: &&str| line.starts_with([',', ';']);
    let events: Option<Vec<Line>> = lines().filter(|l| !more(l)).map(Line::of_columns).collect();
    of_lines(events?.into_iter(), started)
}

fn of_lines(lines: impl Iterator<Item = Line>, started: Option<f64>) -> Option<SampleFile> {
    let mut file = SampleFile {
        measured: started,
        ..SampleFile::default()
    };
    let (mut not_counted, mut partly) = (BTreeSet::new(), BTreeSet::new());
    let (mut means, mut intervals) = (false, false);
    for line in lines {
        let Ok(value) = line.value.parse::<f64>() else {
            not_counted.insert(line.event);
            continue;
        };
        if line.counted.is_some_and(|percent| percent < 99.5) {
            partly.insert(line.event);
            continue;
        }
        means |= line.mean;
        intervals |= line.interval;
        let time = units::seconds(&line.unit).is_some();
        file.add(Benchmark {
            role: Role::Screening,
            drifts: time || line.event.contains("cycles"),
            metric: line.event,
            ..Benchmark::time("perf stat", line.unit, vec![Run::new(value)])
        });
    }
    if file.benchmarks.is_empty() && not_counted.is_empty() && partly.is_empty() {
        return None;
    }
    let plain = |b: &Benchmark| b.metric.split(':').next().unwrap_or_default().to_owned();
    let decides = DECIDE
        .iter()
        .find_map(|event| file.benchmarks.iter().position(|b| plain(b) == *event));
    if let Some(benchmark) = file.benchmarks.get_mut(decides.unwrap_or(0)) {
        benchmark.role = Role::Primary;
        // The event that decides is what the name must say.
        let name = format!("perf stat, {}", benchmark.metric);
        file.benchmarks
            .iter_mut()
            .for_each(|b| b.name.clone_from(&name));
    }
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    if means {
        file.notes.push(
            "-r writes one mean of all runs, from which nothing can be judged; write each run: \
             for i in $(seq 20); do perf stat -x, --append -o FILE COMMAND; done."
                .into(),
        );
    }
    if !not_counted.is_empty() {
        file.notes
            .push(format!("Not counted: {}.", list(&not_counted)));
    }
    if !partly.is_empty() {
        file.notes.push(format!(
            "Counted for a part of the time only, so left out: {}; count fewer events at once.",
            list(&partly)
        ));
    }
    // Intervals are of one process, and runs that were appended are of one each.
    Some(if intervals { file } else { file.of_processes() })
}
