//! Man pages and shell completions of `locklab`, made of the definition that
//! the command itself parses with, so that they cannot fall behind it; and the
//! wheel for Python's installer.
//!
//! `cargo xtask dist` runs it. A crate of its own, because `xtask` must not
//! wait until the whole laboratory is built.

mod wheel;

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: locklab-packaging FOLDER                            man pages and completions
       locklab-packaging --wheel FOLDER COMMAND            a wheel of this command";

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let written = match &arguments[..] {
        [option, folder, command] if option.as_os_str() == "--wheel" => {
            wheel::write(folder, command).map(|path| println!("{}", path.display()))
        }
        [folder] => write(folder),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot make what {arguments:?} asks for: {error}");
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
