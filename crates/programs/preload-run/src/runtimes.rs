//! Knows the runtimes of languages whose threads wait where a recording does not see for which
//! lock, and what shows it instead: one table for all reports.
//!
//! A runtime is found by the program's name, its files, what these define, and the functions
//! of recorded stacks. It must never be guessed: a program without any of these has none.

use object::{Object, ObjectSection, ObjectSymbol};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A runtime whose locks a recording does not see, or takes for something else.
#[derive(Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its name in reports.
    pub name: &'static str,
    /// Says what waits for its locks.
    pub waiter: Waiter,
    /// Says what locks it has, as a clause.
    pub locks: &'static str,
    /// Says how threads wait for them, and what shows it, as a clause.
    waits: &'static str,
    /// The beginnings of names of its programs and files.
    files: &'static [&'static str],
    /// Sections, parts of symbols, and beginnings of functions' names, which only it has.
    marks: &'static [&'static str],
}

/// Says what waits for the locks of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// It is no thread, so that no recording of threads can bound it.
    Task,
    /// A thread waits for a condition.
    Condition,
    /// A thread parks, as one without work does.
    Parked,
}

static RUNTIMES: [Runtime; 9] = [
    Runtime {
        name: "Go",
        waiter: Waiter::Task,
        locks: "Go's locks belong to its scheduler",
        waits: "goroutines wait in Go's scheduler, which no recording of threads sees; 'locklab \
                advise' reads Go's mutex profile (net/http/pprof, or go test -mutexprofile)",
        files: &[],
        marks: &[".go.buildinfo", "runtime.futex", "runtime.mcall"],
    },
    Runtime {
        name: "GHC",
        waiter: Waiter::Task,
        locks: "Haskell's MVars belong to GHC's scheduler",
        waits: "Haskell's threads wait for MVars in GHC's scheduler, which no recording of \
                threads sees; its event log (+RTS -l) has them",
        files: &["libHSrts"],
        marks: &["hs_main", "stg_takeMVar"],
    },
    Runtime {
        name: "tokio",
        waiter: Waiter::Task,
        locks: "locks of tokio::sync belong to its scheduler",
        waits: "tasks wait for locks of tokio::sync in tokio's scheduler, which no recording of \
                threads sees; tokio-console shows them",
        files: &[],
        marks: &["5tokio7runtime", "tokio::runtime"],
    },
    Runtime {
        name: "Java",
        waiter: Waiter::Parked,
        locks: "Java's synchronized and java.util.concurrent use locks of the virtual machine",
        waits: "a thread that waits for a lock of java.util.concurrent parks \
                (LockSupport.park), as one without work does; 'record --system' has the names \
                under java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
                -XX:+PreserveFramePointer, and 'advise' reads a file of the Flight Recorder",
        files: &["java", "libjvm.so"],
        marks: &[],
    },
    Runtime {
        name: "Ruby",
        waiter: Waiter::Condition,
        locks: "Ruby's Mutex and Queue belong to its interpreter",
        waits: "Ruby's Mutex, Queue and its global lock are conditions of the interpreter; \
                debug symbols of libruby name them in 'record --system'",
        files: &["ruby", "irb", "libruby"],
        marks: &[],
    },
    Runtime {
        name: "Python",
        waiter: Waiter::Condition,
        locks: "Python's threading.Lock is a semaphore",
        waits: "Python's global lock is a condition and its threading.Lock a semaphore; debug \
                symbols of python name them in 'record --system'",
        files: &["python", "pypy", "libpython"],
        marks: &[],
    },
    Runtime {
        name: "Perl",
        waiter: Waiter::Condition,
        locks: "Perl's lock() is made of a mutex and a condition",
        waits: "Perl's lock() of a shared variable waits for a condition of threads::shared; \
                debug symbols of perl name it in 'record --system'",
        files: &["perl", "libperl"],
        marks: &[],
    },
    Runtime {
        name: "OCaml",
        waiter: Waiter::Condition,
        locks: "OCaml's threads share a master lock of its runtime",
        waits: "OCaml's threads wait for its master lock by a condition of its runtime; a \
                program with symbols names it in 'record --system'",
        files: &[],
        marks: &["caml_startup", "caml_main"],
    },
    Runtime {
        name: ".NET",
        waiter: Waiter::Condition,
        locks: ".NET's lock belongs to its runtime",
        waits: "a lock of .NET waits for an event of its runtime; DOTNET_PerfMapEnabled=1 \
                names them in 'record --system'",
        files: &["dotnet", "libcoreclr.so"],
        marks: &[],
    },
];

/// The largest file whose symbols are looked at.
const MOST_BYTES: usize = 200 << 20;

impl Runtime {
    /// Returns the runtime of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        RUNTIMES.iter().find(|runtime| runtime.name == name)
    }

    /// Returns the runtime whose programs or libraries have such a name.
    #[must_use]
    pub fn of_name(file: &str) -> Option<&'static Self> {
        let begins = |name: &&str| file.starts_with(name);
        RUNTIMES.iter().find(|one| one.files.iter().any(begins))
    }

    /// Returns the runtime that a file is of, by its name or by what is in it.
    #[must_use]
    pub fn of_file(path: &Path, bytes: &[u8]) -> Option<&'static Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(known) = Self::of_name(&name) {
            return Some(known);
        }
        let file = object::File::parse(bytes.get(..bytes.len().min(MOST_BYTES))?).ok()?;
        let sections = file.sections().filter_map(|section| {
            let name = section.name().unwrap_or_default().to_owned();
            Self::marked(|mark| name == mark)
        });
        let symbols = file.symbols().filter(ObjectSymbol::is_definition);
        let symbols = symbols.filter_map(|symbol| {
            let name = symbol.name().unwrap_or_default();
            Self::marked(|mark| name.contains(mark))
        });
        sections.chain(symbols).next()
    }

    /// Returns the runtime that a function of a stack is of.
    #[must_use]
    pub fn of_function(function: &str) -> Option<&'static Self> {
        Self::marked(|mark| function.trim_start_matches('<').starts_with(mark))
    }

    fn marked(is: impl Fn(&str) -> bool) -> Option<&'static Self> {
        RUNTIMES
            .iter()
            .find(|one| one.marks.iter().any(|mark| is(mark)))
    }

    /// Returns that its threads wait unseen, and what shows it, as a clause.
    #[must_use]
    pub fn not_seen(&self) -> String {
        format!("this is a program of {}, and {}", self.name, self.waits)
    }
}

/// Returns the file of a program, as a shell finds it.
#[must_use]
pub fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_path_buf());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(path))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_its_programs_its_files_and_its_functions() {
        let name = |found: Option<&Runtime>| found.map(|runtime| runtime.name);
        assert_eq!(name(Runtime::of_name("python3.11")), Some("Python"));
        assert_eq!(name(Runtime::of_name("libjvm.so")), Some("Java"));
        assert_eq!(name(Runtime::of_name("server")), None);
        assert_eq!(name(Runtime::of_function("runtime.futex.abi0")), Some("Go"));
        assert_eq!(name(Runtime::of_function("main")), None);
        for runtime in &RUNTIMES {
            assert_eq!(Runtime::named(runtime.name), Some(runtime));
        }
    }

    /// A function of a program of the test's own, since no file of a runtime may be here.
    #[test]
    fn a_runtime_is_known_by_what_is_in_its_file() {
        let own = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        assert_eq!(Runtime::of_file(&own, &bytes), None);
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let text = "__attribute__((section(\".go.buildinfo\"))) char built[16] = \"go\";\n\
                    int main(void) { return built[0] == 0; }\n";
        std::fs::write(&source, text).unwrap();
        let compiled = std::process::Command::new("gcc")
            .args([source.as_os_str(), OsStr::new("-o"), program.as_os_str()])
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("skipped: no gcc; install the package gcc");
            return;
        }
        let bytes = std::fs::read(&program).unwrap();
        let found = Runtime::of_file(&program, &bytes).unwrap();
        assert_eq!((found.name, found.waiter), ("Go", Waiter::Task));
    }
}
