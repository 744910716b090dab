//! Catch2: its report of benchmarks, as text or XML. It has one mean of each benchmark.

use super::input::Input;
use super::lines::figure_and_unit;
use crate::benchmark::{Benchmark, Run, SampleFile};

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let text = input.plain()?;
    match text.trim_start().starts_with('<') {
        true => xml(text),
        false => columns(text),
    }
}

fn xml(text: &str) -> Option<SampleFile> {
    let document = roxmltree::Document::parse(text).ok()?;
    let mut file = SampleFile::default();
    let mut any = false;
    for result in document
        .descendants()
        .filter(|n| n.has_tag_name("BenchmarkResults"))
    {
        any = true;
        let mean = result.children().find(|n| n.has_tag_name("mean"))?;
        // A test and its sections, from the outside.
        let names = result.ancestors().filter_map(|n| {
            let is_part = n.has_tag_name("TestCase") || n.has_tag_name("Section");
            n.attribute("name").filter(|_| is_part || n == result)
        });
        let mut names: Vec<&str> = names.collect();
        names.reverse();
        let name = names.join(" ");
        let value = mean.attribute("value")?.parse().ok()?;
        file.add_once(Benchmark::time(name.trim(), "ns", vec![Run::new(value)]));
    }
    any.then(|| file.of_processes())
}

/// Reads the table: a line with the name, the samples and the iterations, then one with the
/// mean and its limits, then one with the standard deviation.
fn columns(text: &str) -> Option<SampleFile> {
    let at = text.find("benchmark name")?;
    if !text[at..].contains("samples") || !text[at..].contains("std dev") {
        return None;
    }
    let mut file = SampleFile::default();
    let mut before = String::new();
    let mut name: Option<String> = None;
    for line in text[at..].lines().skip(3) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match name.take() {
            Some(name) => {
                let (value, unit) = figure_and_unit(words.first()?, words.get(1)?)?;
                file.add(Benchmark::time(name, unit, vec![Run::new(value)]));
            }
            // Samples, iterations, and the estimated time with its unit end the line.
            None => match words[..] {
                [.., samples, iterations, time, unit]
                    if samples.parse::<u32>().is_ok()
                        && iterations.parse::<u32>().is_ok()
                        && figure_and_unit(time, unit).is_some() =>
                {
                    let own = words[..words.len() - 4].join(" ");
                    name = Some(format!("{before} {own}").trim().to_owned());
                    before.clear();
                }
                // A long name goes on in the next line; a line of numbers is the deviation.
                [first, ..]
                    if first.parse::<f64>().is_err() && !first.starts_with(['-', '=', '.']) =>
                {
                    before = words.join(" ");
                }
                _ => before.clear(),
            },
        }
    }
    (!file.benchmarks.is_empty()).then(|| file.of_processes())
}
