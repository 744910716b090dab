//! Compiles a C or C++ file to two shared objects: instrumented, for the simulator
//! and the checker, and plain, for this machine's own CPUs.
//!
//! The user's compiler does it, and its messages go to the user. Nothing is
//! run here: the properties of an object are read from its bytes
//! ([`crate::inspect`]).

use crate::folders;
use crate::inspect::{self, Facts};
use crate::library::can_load;
use crate::source::is_cpp;
use locklab_host::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

const HEADER: &str = include_str!("../c/locklab_lock.h");
const INSTRUMENTED: &str = include_str!("../c/instrumented.c");
const NATIVE: &str = include_str!("../c/native.c");
const TEST: &str = include_str!("../c/own_test.c");
const TEST_HEADER: &str = include_str!("../c/own_test.h");

/// The source that a lock is compiled from.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The path of the source file, as it was given.
    pub(crate) file: PathBuf,
    /// The name in reports.
    pub(crate) name: String,
    /// Arguments for the compiler, before the file.
    pub(crate) flags: Vec<String>,
}

/// A lock's two objects, and their properties.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The lock's properties, from the file.
    pub(crate) facts: Facts,
    /// The object in which every access is reported, made when it is first asked for:
    /// what is only measured may contain what cannot be reported.
    instrumented: OnceLock<Result<PathBuf, Error>>,
    /// The object as the user would compile it.
    pub(crate) native: PathBuf,
    /// The folder that contains both.
    folder: TempDir,
}

impl Compiled {
    /// Returns the object of `unit` in which every access is reported.
    ///
    /// # Errors
    /// [`Error::Failed`] if the file contains accesses that cannot be reported.
    pub(crate) fn instrumented(&self, unit: &Unit) -> Result<&Path, Error> {
        let made = self.instrumented.get_or_init(|| {
            let folder = self.folder.path();
            let compiler = Compiler::of(&unit.file, folder);
            instrument(unit, &compiler, folder, "instrumented", Kind::Lock)
        });
        made.as_deref().map_err(Clone::clone)
    }
}

/// A lock compiled for the checker.
pub(crate) struct Checked {
    /// The lock's properties there: arrays may be smaller.
    pub(crate) facts: Facts,
    /// The instrumented library, compiled with `LOCKLAB_CHECKER` defined.
    pub(crate) library: PathBuf,
    /// The folder that holds the library.
    pub(crate) folder: TempDir,
}

/// Flags of both objects: unwinding must work, and nothing may bypass
/// the reports.
const BOTH: [&str; 6] = [
    "-O2",
    "-g",
    "-fPIC",
    "-fasynchronous-unwind-tables",
    "-fno-stack-protector",
    "-pthread",
];

/// Flags of the instrumented object: sibling calls are off, because otherwise
/// the caller of an access would be reported instead of it, and gcc would copy and fill
/// memory by instructions that are not reported.
const REPORTED: [&str; 8] = [
    "-fsanitize=thread",
    "-fno-optimize-sibling-calls",
    "-fno-exceptions",
    "-D__builtin_ia32_pause()=lab_relax()",
    "-DLOCKLAB_INSTRUMENTED",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
];

/// Compiles a lock for this machine's own CPUs.
///
/// # Errors
/// [`Error::Failed`] if there is no compiler, the disk is full, the file does not
/// compile, or this command can load no library.
pub(crate) fn compile(unit: &Unit) -> Result<Compiled, Error> {
    can_load()?;
    let folder = folder_with_headers()?;
    let at = |name: &str| folder.path().join(name);
    let compiler = Compiler::of(&unit.file, folder.path());
    let native = at("native.so");
    let mut arguments: Vec<String> = BOTH.iter().map(|s| (*s).into()).collect();
    arguments.push("-DLOCKLAB_NATIVE".into());
    arguments.push("-shared".into());
    arguments.extend(compiler.on(unit, "-w", &native));
    let helper = at("native.o");
    Compiler::c(folder.path()).checked(
        unit,
        &words(&["-O2", "-fPIC", "-c", "-o"], &[&helper, &at("native.c")]),
    )?;
    arguments.push(helper.display().to_string());
    compiler.checked(unit, &arguments)?;
    Ok(Compiled {
        facts: Facts::read(&native, unit)?,
        instrumented: OnceLock::new(),
        native,
        folder,
    })
}

/// Compiles a lock for the checker.
///
/// # Errors
/// The same errors as [`compile`].
pub(crate) fn compile_for_checker(unit: &Unit) -> Result<Checked, Error> {
    let folder = folder_with_headers()?;
    let compiler = Compiler::of(&unit.file, folder.path());
    let unit = Unit {
        flags: [&["-DLOCKLAB_CHECKER".to_owned()], &*unit.flags].concat(),
        ..unit.clone()
    };
    let library = instrument(&unit, &compiler, folder.path(), "checked", Kind::Lock)?;
    Ok(Checked {
        facts: Facts::read(&library, &unit)?,
        library,
        folder,
    })
}

/// Returns whether a file, after the preprocessor, defines `main` and no lock.
///
/// # Errors
/// [`Error::Failed`] if there is no compiler, or the file cannot be preprocessed.
pub(crate) fn has_main(unit: &Unit) -> Result<bool, Error> {
    let folder = folder_with_headers()?;
    let compiler = Compiler::of(&unit.file, folder.path());
    let mut arguments = vec!["-P".to_owned(), "-w".to_owned()];
    arguments.extend(compiler.on(unit, "-E", Path::new("-")));
    let output = compiler.run(&arguments)?;
    if !output.status.success() {
        // The compilation of a lock says what is wrong.
        return Ok(false);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let times = |wanted: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| *word == wanted).count()
    };
    // The header of locks declares the description once.
    Ok(times("main") > 0 && times("locklab_description") == 1)
}

/// Compiles a test for the checker: the library, and the folder that contains it.
///
/// # Errors
/// The same errors as [`compile`].
pub(crate) fn compile_test(unit: &Unit, functions: &str) -> Result<(PathBuf, TempDir), Error> {
    can_load()?;
    let folder = folder_with_headers()?;
    let path = folder.path().join("own_test.c");
    std::fs::write(&path, format!("{TEST}{functions}"))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    let compiler = Compiler::of(&unit.file, folder.path());
    // A read whose value nothing uses may race too: an optimiser takes it out.
    let unit = Unit {
        flags: [&["-O0".to_owned()], &*unit.flags].concat(),
        ..unit.clone()
    };
    let library = instrument(&unit, &compiler, folder.path(), "test", Kind::Test)?;
    Ok((library, folder))
}

/// Returns the code that the compiler makes of a unit for the checker; `None` if it
/// does not compile. A pointer of another type is an error here.
pub(crate) fn code(unit: &Unit) -> Option<String> {
    let folder = folder_with_headers().ok()?;
    let compiler = Compiler::of(&unit.file, folder.path());
    let output = folder.path().join("code.s");
    let mut flags = words(&["-O2", "-w", "-DLOCKLAB_CHECKER", REPORTED[4]], &[]);
    if !compiler.cpp {
        let strict = [
            "-Werror=incompatible-pointer-types",
            "-Werror=int-conversion",
        ];
        flags.extend(words(&strict, &[]));
    }
    flags.extend(compiler.on(unit, "-S", &output));
    let compiled = compiler.run(&flags).ok()?;
    compiled
        .status
        .success()
        .then(|| std::fs::read_to_string(&output).ok())?
}

/// Makes a folder to compile in, with the files of Locklab that are compiled
/// with a lock.
fn folder_with_headers() -> Result<TempDir, Error> {
    let folder = folders::make("locklab-user-lock").map_err(|e| {
        Error::Failed(format!(
            "cannot make a folder in {} to compile in: {e}; set TMPDIR",
            std::env::temp_dir().display()
        ))
    })?;
    let at = |name: &str| folder.path().join(name);
    for (name, text) in [
        ("locklab_lock.h", HEADER),
        ("instrumented.c", INSTRUMENTED),
        ("native.c", NATIVE),
        ("genmc.h", TEST_HEADER),
        ("dat3m.h", TEST_HEADER),
    ] {
        std::fs::write(at(name), text)
            .map_err(|e| Error::Failed(format!("cannot write {}: {e}", at(name).display())))?;
    }
    Ok(folder)
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A lock, which stands alone.
    Lock,
    /// A program, which may call what own_test/calls.rs has.
    Test,
}

/// Builds the object in which every access is reported.
fn instrument(
    unit: &Unit,
    compiler: &Compiler,
    folder: &Path,
    name: &str,
    kind: Kind,
) -> Result<PathBuf, Error> {
    let at = |ending: &str| folder.join(format!("{name}.{ending}"));
    let assembly = at("s");
    let mut flags: Vec<String> = BOTH.iter().chain(&REPORTED).map(|s| (*s).into()).collect();
    if compiler.says_gcc() {
        flags.push("-Wno-tsan".into());
    }
    flags.extend(compiler.tells_volatile(folder));
    let compile = |mode: &str, output: &Path| {
        compiler.checked(
            unit,
            &[flags.clone(), compiler.on(unit, mode, output)].concat(),
        )
    };
    compile("-S", &assembly)?;
    let text = std::fs::read_to_string(&assembly)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", assembly.display())))?;
    inspect::no_inline_assembly(&text, unit, kind == Kind::Test)?;

    // It is compiled again, not assembled: no assembler reads all that clang writes, its own
    // neither.
    let object = at("o");
    compile("-c", &object)?;
    if kind == Kind::Lock {
        inspect::no_thread_local_data(&object, unit)?;
    }
    let plain = Compiler::c(folder);
    let sources: &[&str] = match kind {
        Kind::Lock => &["instrumented"],
        Kind::Test => &["instrumented", "own_test"],
    };
    let mut objects = vec![object];
    for source in sources {
        let code = folder.join(format!("{source}.c"));
        // The unit's own object may have the name of this source.
        let object = folder.join(format!("{source}.c.o"));
        let mut arguments: Vec<String> = BOTH.iter().map(|s| (*s).into()).collect();
        let quiet = ["-w", "-fno-builtin", "-c", "-o"];
        arguments.extend(words(&quiet, &[&object, &code]));
        plain.checked(unit, &arguments)?;
        objects.push(object);
    }
    let library = at("so");
    let link = |definitions: &str| {
        let first = [
            "-shared",
            "-nostdlib",
            definitions,
            "-Wl,-z,norelro",
            "-Wl,--build-id=none",
            "-o",
        ];
        let mut arguments = words(&first, &[&library]);
        arguments.extend(objects.iter().map(|path| path.display().to_string()));
        plain.run(&arguments)
    };
    let linked = link("-Wl,-z,defs")?;
    if linked.status.success() {
        return Ok(library);
    }
    let missing = stderr_of(&linked);
    match kind {
        Kind::Lock => return Err(inspect::undefined(&missing, unit)),
        Kind::Test => inspect::undefined_in_test(&missing, unit)?,
    }
    let linked = link("-Wl,-z,undefs")?;
    match linked.status.success() {
        true => Ok(library),
        false => Err(Error::Failed(stderr_of(&linked))),
    }
}

fn words(first: &[&str], paths: &[&Path]) -> Vec<String> {
    first
        .iter()
        .map(|word| (*word).to_owned())
        .chain(paths.iter().map(|path| path.display().to_string()))
        .collect()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The user's compiler.
struct Compiler {
    program: String,
    cpp: bool,
    headers: PathBuf,
}

impl Compiler {
    /// Returns the compiler for the language of a file, from CC and CXX as in make.
    fn of(file: &Path, headers: &Path) -> Self {
        let cpp = is_cpp(file).unwrap_or(false);
        let (variable, usual) = if cpp { ("CXX", "c++") } else { ("CC", "cc") };
        Self {
            program: std::env::var(variable)
                .ok()
                .filter(|program| !program.trim().is_empty())
                .unwrap_or_else(|| usual.into()),
            cpp,
            headers: headers.to_owned(),
        }
    }

    fn c(headers: &Path) -> Self {
        Self::of(Path::new("lock.c"), headers)
    }

    fn says_gcc(&self) -> bool {
        self.run(&["--version".to_owned()])
            .is_ok_and(|output| !String::from_utf8_lossy(&output.stdout).contains("clang"))
    }

    /// Returns the arguments by which volatile accesses are reported as such; none if
    /// the compiler (gcc before 11, clang before 12) has no such option, and
    /// reports them as plain.
    fn tells_volatile(&self, folder: &Path) -> Vec<String> {
        let empty = folder.join("empty.c");
        let option: &[&str] = if self.says_gcc() {
            &["--param=tsan-distinguish-volatile=1"]
        } else {
            &["-mllvm", "-tsan-distinguish-volatile=1"]
        };
        let option = words(option, &[]);
        let output = folder.join("empty.s");
        let alone = words(&["-fsanitize=thread", "-S", "-o"], &[&output, &empty]);
        let works = std::fs::write(&empty, "").is_ok()
            && self
                .run(&[alone, option.clone()].concat())
                .is_ok_and(|output| output.status.success());
        if works { option } else { Vec::new() }
    }

    /// Returns the arguments that compile the user's file to `output`.
    fn on(&self, unit: &Unit, mode: &str, output: &Path) -> Vec<String> {
        let mut arguments = vec![
            "-I".to_owned(),
            self.headers.display().to_string(),
            "-include".to_owned(),
            // Its path: by its name, one that lies in the current folder would be found.
            self.headers.join("locklab_lock.h").display().to_string(),
        ];
        arguments.extend(unit.flags.iter().cloned());
        arguments.extend([mode.to_owned(), "-o".to_owned()]);
        arguments.push(output.display().to_string());
        arguments.push(unit.file.display().to_string());
        arguments
    }

    fn run(&self, arguments: &[String]) -> Result<Output, Error> {
        // A value such as CC="ccache gcc" is common.
        let mut program = self.program.split_whitespace();
        let first = program.next().unwrap_or("cc");
        Command::new(first)
            .args(program)
            .args(arguments)
            .env("LC_ALL", "C")
            .output()
            .map_err(|e| {
                let (variable, package) = if self.cpp {
                    ("CXX", "g++")
                } else {
                    ("CC", "gcc")
                };
                Error::Failed(format!(
                    "cannot start the compiler {first}: {e}; install one (apt-get install \
                     {package}) or name yours in {variable}"
                ))
            })
    }

    fn checked(&self, unit: &Unit, arguments: &[String]) -> Result<(), Error> {
        let output = self.run(arguments)?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Failed(format!(
            "{}{} does not compile with {}: see the compiler's own words above",
            stderr_of(&output),
            unit.name,
            self.program
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_lies_in_the_current_folder_is_not_taken() {
        let folder = folder_with_headers().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("lock.c");
        let stale = elsewhere.path().join("locklab_lock.h");
        std::fs::write(&file, "lab_no_context context;\n").unwrap();
        std::fs::write(stale, "#error stale\n").unwrap();
        let unit = Unit {
            file: file.clone(),
            name: "lock.c".into(),
            flags: Vec::new(),
        };
        let compiler = Compiler::of(&file, folder.path());
        let compiled = Command::new(&compiler.program)
            .args(compiler.on(&unit, "-c", &elsewhere.path().join("lock.o")))
            .current_dir(elsewhere.path())
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", stderr_of(&compiled));
    }
}
