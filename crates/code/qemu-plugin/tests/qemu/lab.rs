// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the test programs and runs QEMU with the plugin.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Returns from a test, with a line that names the package, when a program
/// is missing.
macro_rules! need {
    ($($program:literal from $package:literal),+) => {
        $(if !crate::lab::is_installed($program, $package) {
            return;
        })+
    };
}
pub(crate) use need;

/// Returns where a program is, by `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    let found = find(program).is_some();
    if !found {
        println!("skipped: {program} is missing (apt-get install {package})");
    }
    found
}

/// A folder for the files of one test.
pub(crate) struct Lab {
    folder: PathBuf,
}

/// Describes what a run of QEMU gave.
pub(crate) struct Run {
    pub(crate) output: Output,
    /// The report as it was written.
    pub(crate) text: String,
}

impl Lab {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Lab { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Compiles `tests/programs/SOURCE` into a static program.
    pub(crate) fn build(&self, source: &str, name: &str, options: &[&str]) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = self.path(name);
        let gcc = Command::new("gcc")
            .args(["-static", "-O1", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(root.join("../frontend/include"))
            .args(options)
            .arg(root.join("tests/programs").join(source))
            .output()
            .unwrap();
        assert!(
            gcc.status.success(),
            "{}",
            String::from_utf8_lossy(&gcc.stderr)
        );
        program
    }

    /// Runs a command in user mode with these arguments for the plugin.
    pub(crate) fn user(&self, arguments: &str, command: &[impl AsRef<OsStr>]) -> Run {
        let mut qemu = Command::new("qemu-x86_64");
        qemu.args(["-seed", "1"]);
        self.run(qemu, arguments, command)
    }

    /// Adds the plugin and what follows to a QEMU command and runs it.
    pub(crate) fn run(
        &self,
        mut qemu: Command,
        arguments: &str,
        rest: &[impl AsRef<OsStr>],
    ) -> Run {
        let plugin = env::current_exe()
            .unwrap()
            .with_file_name("liblocklab_qemu_plugin.so");
        assert!(plugin.is_file(), "{} was not built", plugin.display());
        let output = qemu
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .current_dir(&self.folder)
            .arg("-plugin")
            .arg(format!("{},out=report.json{arguments}", plugin.display()))
            .args(rest)
            .output()
            .unwrap();
        let text = fs::read_to_string(self.path("report.json")).unwrap_or_default();
        Run { output, text }
    }
}

impl Run {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|e| panic!("{e}: '{}', {:?}", self.text, self.output))
    }

    /// Returns a number of the report, by its JSON pointer.
    pub(crate) fn number(&self, pointer: &str) -> u64 {
        let json = self.json();
        let number = json.pointer(pointer).and_then(|value| value.as_u64());
        number.unwrap_or_else(|| panic!("no {pointer} in {}", self.text))
    }
}
