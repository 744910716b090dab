//! The `locklab` command: parse, run, exit with the documented code.

use clap::Parser;
use locklab::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match locklab::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("locklab: {error}");
            error.exit_code()
        }
    }
}
