//! Man pages and shell completions of `locklab`, made of the definition that
//! the command itself parses with, so that they cannot fall behind it.
//!
//! `cargo xtask dist` runs it. A crate of its own, because `xtask` must not
//! wait until the whole laboratory is built.

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::io;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [folder] = &arguments[..] else {
        eprintln!("usage: locklab-packaging FOLDER");
        return ExitCode::from(2);
    };
    match write(folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes `man/*.1` and `completions/*` into `folder`.
fn write(folder: &Path) -> io::Result<()> {
    let command = locklab::cli::Cli::command().name("locklab");
    let man = folder.join("man");
    std::fs::create_dir_all(&man)?;
    clap_mangen::generate_to(command.clone(), &man)?;

    let completions = folder.join("completions");
    std::fs::create_dir_all(&completions)?;
    for &shell in Shell::value_variants() {
        clap_complete::generate_to(shell, &mut command.clone(), "locklab", &completions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_man_page_and_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let bash = folder.path().join("completions/locklab.bash");
        let bash = std::fs::read_to_string(bash).unwrap();
        for name in ["completions/_locklab", "completions/locklab.fish"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        let command = locklab::cli::Cli::command();
        assert!(folder.path().join("man/locklab.1").is_file());
        for subcommand in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let name = subcommand.get_name();
            assert!(bash.contains(&format!("locklab,{name})")), "{name}");
            let page = folder.path().join(format!("man/locklab-{name}.1"));
            let page = std::fs::read_to_string(page).expect(name);
            assert!(page.contains(".SH NAME"), "{name}");
        }
    }
}
