//! Builds small programs for the tests, so that no binary is committed.

#![allow(dead_code, reason = "each test uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use locklab_footprint::{Footprint, InlinedFunction, SymbolSize};
use tempfile::TempDir;

/// A folder that is removed at the end of the test.
pub(crate) struct Workshop(TempDir);

impl Workshop {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        std::fs::write(&path, contents).expect("a written file");
        path
    }

    /// Compiles `source` to `name`: an object if that ends in `.o`. The
    /// source file is called after `name` without its folder and ending.
    pub(crate) fn gcc(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let stem = Path::new(name).file_stem().expect("a name");
        let from = self.write(&format!("{}.c", stem.to_string_lossy()), source);
        let output = self.path(name);
        std::fs::create_dir_all(output.parent().expect("below the folder")).expect("a folder");
        let mut command = Command::new("gcc");
        if name.ends_with(".o") {
            command.arg("-c");
        }
        // Relative, so that debug information does not hold the folder's name.
        command.current_dir(self.0.path()).args(flags);
        command.arg(from.file_name().expect("a name"));
        run(command.arg("-o").arg(&output));
        output
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        run(command.current_dir(self.0.path()).args(arguments));
    }
}

/// Runs a command that must succeed and returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| {
        panic!("{command:?} did not start ({e}); `cargo xtask test` installs what tests need")
    });
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Links without the C library, whose symbols differ from system to system.
pub(crate) const BARE: &[&str] = &[
    "-Os",
    "-nostdlib",
    "-static",
    "-fno-pie",
    "-no-pie",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-Wl,--build-id=none",
];

/// Returns `BARE` and others.
pub(crate) fn bare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [BARE, more].concat()
}

pub(crate) fn symbol<'a>(footprint: &'a Footprint, name: &str) -> &'a SymbolSize {
    let found = footprint.symbols.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no symbol {name}: {:?}", footprint.notes))
}

pub(crate) fn inlined<'a>(footprint: &'a Footprint, name: &str) -> &'a InlinedFunction {
    let copies = footprint.inlined.as_ref();
    let functions = &copies
        .unwrap_or_else(|| panic!("{:?}", footprint.notes))
        .functions;
    let found = functions.iter().find(|f| f.name == name);
    found.unwrap_or_else(|| panic!("no inlined {name}: {:?}", footprint.notes))
}
