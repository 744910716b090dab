//! The `locklab` command: parse, run, exit with the documented code.

use std::process::ExitCode;

fn main() -> ExitCode {
    locklab::command_line::main()
}
