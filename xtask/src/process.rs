//! Starts other programs, cargo above all, and tells how they end.
//!
//! A program that does not start is named on standard error; it must never pass
//! for one that ran.

use crate::outcome::Outcome;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Holds what the process returns if nothing could be tested, as in other tests of
/// programs.
pub(crate) const SKIPPED: u8 = 77;

pub(crate) fn done(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the command and the plugin that it loads into QEMU.
pub(crate) fn build_command() -> bool {
    cargo(&[
        "build",
        "--release",
        "--package=locklab",
        "--package=locklab-qemu-plugin",
    ])
}

pub(crate) fn cargo(arguments: &[&str]) -> bool {
    run(&mut command(arguments))
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments);
    command
}

/// Runs `cargo test` with these arguments, showing what it prints.
pub(crate) fn cargo_test(arguments: &[&str]) -> Outcome {
    hear_tests(command(&[&["test"], arguments].concat()))
}

/// Runs a command that tests, showing what it prints.
pub(crate) fn hear_tests(tests: Command) -> Outcome {
    match heard(tests, true) {
        Ok((status, output)) => Outcome::read("cargo", &output, status.success()),
        Err(error) => {
            eprintln!("xtask: cargo does not start: {error}");
            Outcome::whole(false)
        }
    }
}

/// Runs it; what it prints to both streams, in one order, which is also shown
/// as it comes if that is wanted.
pub(crate) fn heard(mut command: Command, show: bool) -> io::Result<(ExitStatus, String)> {
    let (reader, writer) = io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // Its ends of the pipe, without which the read would not end.
    drop(command);
    let (mut reader, mut output, mut line) = (BufReader::new(reader), String::new(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        if show {
            io::stdout().write_all(&line)?;
        }
        output.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok((child.wait()?, output))
}

pub(crate) fn run(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!(
                "xtask: {} does not start: {error}",
                command.get_program().display()
            );
            false
        }
    }
}
