//! hyperfine, `--export-json`: a command in each result, a process in each time.

use super::fields::{numbers, parameters, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let results = input.list("results")?;
    if results.is_empty()
        || results
            .iter()
            .any(|result| text(result, "command").is_empty())
    {
        return None;
    }
    let mut file = SampleFile::default();
    for result in results {
        let name = text(result, "command").to_owned() + &parameters(result, "parameters");
        // Versions before 1.10 have the value alone.
        let name = match text(result, "parameter") {
            "" => name,
            value => format!("{name} {value}"),
        };
        let times = numbers(result.get("times"));
        if times.is_empty() {
            file.notes.push(format!(
                "{name} has no times, only their mean; --export-json writes them unless \
                 hyperfine was interrupted."
            ));
            continue;
        }
        let exits = numbers(result.get("exit_codes"));
        let failed = exits.iter().filter(|code| **code != 0.0).count();
        if failed > 0 {
            file.notes.push(format!(
                "{failed} of {} runs of {name} failed; their times count like the others.",
                exits.len()
            ));
        }
        let runs = times.into_iter().map(|t| Run::new(t).lasting(t));
        file.add_once(Benchmark::time(name, "s", runs.collect()));
    }
    Some(file.of_processes())
}
