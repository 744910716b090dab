#![allow(dead_code, reason = "each test file uses a part")]
//! Runs programs under the interposer, as a user would.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Returns the interposer, built as a user builds it. (For the tests of a package
/// that is only a shared library cargo builds none.)
pub(crate) fn interposer() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interposer");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--lib", "--manifest-path"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the interposer builds");
        target.join("release/liblocklab_preload.so")
    });
    &PATH
}

/// Compiles one of the programs beside the tests; `None`, after saying so, if
/// there is no compiler.
pub(crate) fn compile(folder: &Path, source: &str, more: &[&str]) -> Option<PathBuf> {
    let compiler = if source.ends_with(".cpp") {
        "g++"
    } else {
        "gcc"
    };
    if !present(compiler, compiler) {
        return None;
    }
    let program = folder.join(source.replace('.', "-"));
    let output = Command::new(compiler)
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/c")
                .join(source),
        )
        .arg("-o")
        .arg(&program)
        .args(more)
        .output()
        .expect("the compiler starts");
    assert!(
        output.status.success(),
        "{source} does not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(program)
}

/// Returns whether a program is installed; says which package is missing if not.
pub(crate) fn present(program: &str, package: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).exists());
    if !found {
        println!("skipped: no {program}; install the package {package}");
    }
    found
}

/// Returns a command on another lock.
pub(crate) fn under(lock: &str, wait: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", interposer())
        .env("LOCKLAB_LOCK", lock)
        .env("LOCKLAB_WAIT", wait);
    command
}

/// Runs it for at most so long; a program that hangs fails the test, by name.
pub(crate) fn run(command: &mut Command, seconds: u64) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let end = Instant::now() + Duration::from_secs(seconds);
    // Read as it comes, or a long output would block the program.
    let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.map(|mut stream| stream.read_to_end(&mut bytes));
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|s| Box::new(s) as _));
    let stderr = read(child.stderr.take().map(|s| Box::new(s) as _));
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        if Instant::now() > end {
            child.kill().expect("a child");
            child.wait().expect("a child");
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let Some(status) = status else {
        panic!(
            "{command:?} does not end within {seconds} s:\n{}{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        );
    };
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Runs it, and gives what it printed if it succeeded.
pub(crate) fn succeed(command: &mut Command, seconds: u64) -> String {
    let output = run(command, seconds);
    assert!(
        output.status.success(),
        "{command:?} fails ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}
