//! The `locklab` command: parse, run, exit with the documented code.

use std::process::ExitCode;

// `locklab verify` takes half as long.
locklab_verify::keep_stacks!();

fn main() -> ExitCode {
    locklab::main()
}
