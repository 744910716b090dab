//! `locklab results schema`: JSON schemas, for editors and for programs that read
//! results.

use crate::kinds::KINDS;
use crate::output::print;
use clap::ValueEnum;
use locklab_host::error::Error;
use schemars::SchemaGenerator;
use serde_json::{Value, json};
use std::process::ExitCode;

/// The documents that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Experiment files, as `locklab compare` reads them
    Experiment,
    /// Results that comparing commands write with --json
    Results,
    /// Results that `locklab judge` writes with --json
    Judge,
    /// No schema: an experiment file with every setting
    Example,
}

/// Prints a schema, or the example.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn run(of: Option<SchemaOf>) -> Result<ExitCode, Error> {
    let results = locklab_harness::report::results::schema;
    let schema = match of {
        Some(SchemaOf::Experiment) => experiment(),
        Some(SchemaOf::Results) => results(),
        Some(SchemaOf::Judge) => locklab_samples::schema(),
        Some(SchemaOf::Example) => return print(locklab_programs::settings::EXAMPLE),
        None => json!({
            "experiment": experiment(),
            "results": results(),
            "judge": locklab_samples::schema(),
        }),
    };
    print(&format!("{schema:#}\n"))
}

/// Returns the schema of experiment files of every kind.
fn experiment() -> Value {
    let mut generator = SchemaGenerator::default();
    let kinds: Vec<_> = KINDS
        .iter()
        .map(|kind| (kind.schema)(&mut generator))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Experiment file of Locklab",
        "description": "TOML; 'kind' says what is compared, and so which settings there are.",
        "oneOf": kinds,
        "$defs": generator.take_definitions(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn as_json(text: &str) -> Value {
        let table: toml::Table = toml::from_str(text).unwrap();
        serde_json::to_value(table).unwrap()
    }

    #[test]
    fn every_experiment_file_is_as_the_schema_says() {
        let validator = jsonschema::validator_for(&experiment()).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let file = as_json(&std::fs::read_to_string(&path).unwrap());
            let errors: Vec<String> = validator
                .iter_errors(&file)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            files += 1;
        }
        assert!(files > 5);
        assert!(validator.is_valid(&as_json(locklab_programs::settings::EXAMPLE)));
        let matrix = "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\nthreads = [1, 2]";
        assert!(validator.is_valid(&as_json(matrix)));
        let rank = "kind = 'rank'\ncandidates = ['ticket', 'mcs']\nneeds = ['fifo']\nreads = 9";
        assert!(validator.is_valid(&as_json(rank)));
    }

    #[test]
    fn what_a_file_may_not_say_is_refused() {
        let validator = jsonschema::validator_for(&experiment()).unwrap();
        for text in [
            "pairs = 8",
            "kind = 'lock'",
            "kind = 'compare'\npears = 8",
            "kind = 'compare'\npairs = 'many'",
            "kind = 'compare'\ncounters = 'all'",
            "kind = 'matrix'\nbaseline = 'ticket'",
        ] {
            assert!(!validator.is_valid(&as_json(text)), "{text}");
        }
    }
}
