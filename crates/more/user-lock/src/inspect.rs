//! Faults of a lock's file that compiles, reported with file and line before
//! anything runs: inline assembly (which bypasses every report), thread-local
//! data (which all simulated CPUs would share), and functions that exist on
//! real hardware only.

use crate::compile::Unit;
use locklab_host::error::Error;
use locklab_locks::Info;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// The `INFO` of the types of this crate: the properties of a lock are
/// in its [`Facts`].
pub(crate) const INFO: Info = Info {
    name: "own",
    summary: "compiled from a file",
    try_lock: false,
    paper: "your own",
    ..Info::BASE
};

/// The properties that a compiled lock declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The name given in its file.
    pub name: String,
    /// Size of the lock in bytes.
    pub lock_bytes: usize,
    /// Alignment of the lock.
    pub lock_align: usize,
    /// Size of a context in bytes.
    pub ctx_bytes: usize,
    /// Alignment of a context.
    pub ctx_align: usize,
    /// Says whether there is a `lab_init`.
    pub init: bool,
    /// Says whether there is a `lab_trylock`.
    pub try_lock: bool,
    /// Says whether there are `lab_read_lock` and `lab_read_unlock`.
    pub readers_share: bool,
    /// Says whether there is a `lab_read_trylock`.
    pub try_read: bool,
    /// Says whether there is a `lab_is_locked`.
    pub is_locked: bool,
    /// Says whether it serves in the order of arrival.
    pub fifo: bool,
    /// The most CPUs that may use it, if it declares a bound.
    pub max_cpus: Option<usize>,
    /// The most acquisitions of a CPU at once, if it declares a bound.
    pub nesting: Option<usize>,
    /// Says whether an acquisition may be interrupted by another.
    pub interrupts: bool,
    /// Says whether plain accesses count as relaxed ones.
    pub plain_is_relaxed: bool,
    /// Says whether who holds it may acquire it again.
    pub recursive: bool,
    /// Says whether there is a `lab_downgrade`.
    pub downgrade: bool,
    /// Says whether who holds it last may free it, when it has released it.
    pub ends_by_unlock: bool,
    /// Counts how many readers may pass a writer that waits, if it declares a bound.
    pub readers_pass: Option<usize>,
}

/// The largest size of a lock or context.
const MOST_BYTES: usize = 1 << 20;

/// The largest alignment: that of a cache line.
const WIDEST: usize = 64;

impl Facts {
    pub(crate) fn read(library: &Path, unit: &Unit) -> Result<Self, Error> {
        let name = &unit.name;
        let unreadable = |e: &dyn std::fmt::Display| {
            Error::Failed(format!("cannot read what became of {name}: {e}"))
        };
        let bytes = std::fs::read(library).map_err(|e| unreadable(&e))?;
        let file = object::File::parse(&*bytes).map_err(|e| unreadable(&e))?;
        let symbols: HashMap<&str, (u64, u64)> = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| Some((symbol.name().ok()?, (symbol.address(), symbol.size()))))
            .collect();
        let data = |symbol: &str, length: u64| -> Option<&[u8]> {
            let &(address, size) = symbols.get(symbol)?;
            file.sections()
                .find_map(|section| section.data_range(address, size.min(length)).ok()?)
        };
        for needed in ["lab_lock", "lab_unlock"] {
            if !symbols.contains_key(needed) {
                return Err(Error::Failed(format!("{name} defines no {needed}")));
            }
        }
        let [read_lock, read_unlock, try_read] =
            ["lab_read_lock", "lab_read_unlock", "lab_read_trylock"]
                .map(|function| symbols.contains_key(function));
        if read_lock != read_unlock || (try_read && !read_lock) {
            let missing = if read_lock {
                "lab_read_unlock"
            } else {
                "lab_read_lock"
            };
            return Err(Error::Failed(format!(
                "{name} defines functions of readers, but no {missing}; define it, or none of them"
            )));
        }
        let number = |bytes: &[u8], at: usize| {
            bytes.get(8 * at..8 * at + 8).map_or(0, |eight| {
                eight
                    .iter()
                    .rev()
                    .fold(0, |n, byte| n << 8 | u64::from(*byte))
            }) as usize
        };
        let Some(description) = data("locklab_description", 80) else {
            return Err(Error::Failed(format!(
                "{name} does not say what its lock is; write LOCKLAB_LOCK(name, struct lock, \
                 struct context); beside it (lab_no_context if it needs none)"
            )));
        };
        let text = description.get(40..).unwrap_or_default();
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let facts = Self {
            name: String::from_utf8_lossy(text).into_owned(),
            lock_bytes: number(description, 1),
            lock_align: number(description, 2),
            ctx_bytes: number(description, 3),
            ctx_align: number(description, 4),
            init: symbols.contains_key("lab_init"),
            try_lock: symbols.contains_key("lab_trylock"),
            readers_share: read_lock,
            try_read,
            is_locked: symbols.contains_key("lab_is_locked"),
            fifo: symbols.contains_key("locklab_fifo"),
            max_cpus: data("locklab_cpus", 8).map(|bytes| number(bytes, 0)),
            nesting: data("locklab_nesting", 8).map(|bytes| number(bytes, 0)),
            readers_pass: data("locklab_readers_pass", 8).map(|bytes| number(bytes, 0)),
            plain_is_relaxed: symbols.contains_key("locklab_plain_is_relaxed"),
            recursive: symbols.contains_key("locklab_recursive"),
            downgrade: read_lock && symbols.contains_key("lab_downgrade"),
            ends_by_unlock: symbols.contains_key("locklab_ends_by_unlock"),
            interrupts: !symbols.contains_key("locklab_no_interrupts"),
        };
        for (what, bytes, align) in [
            ("lock", facts.lock_bytes, facts.lock_align),
            ("context", facts.ctx_bytes, facts.ctx_align),
        ] {
            if bytes > MOST_BYTES || align > WIDEST || (what == "lock" && bytes == 0) {
                return Err(Error::Failed(format!(
                    "{name}: its {what} has {bytes} bytes, aligned to {align}; from {} to \
                     {MOST_BYTES} bytes, aligned to at most {WIDEST}, can be placed",
                    u8::from(what == "lock")
                )));
            }
        }
        if facts.max_cpus == Some(0) {
            return Err(Error::Failed(format!(
                "{name}: LOCKLAB_CPUS(0) lets nobody use the lock"
            )));
        }
        if facts.readers_pass.is_some() && !facts.readers_share {
            return Err(Error::Failed(format!(
                "{name}: LOCKLAB_READERS_PASS is for a lock that readers share; define \
                 lab_read_lock and lab_read_unlock"
            )));
        }
        if facts.nesting == Some(0) {
            return Err(Error::Failed(format!(
                "{name}: LOCKLAB_NESTING(0) lets nobody acquire the lock; 1 is one at a time"
            )));
        }
        Ok(facts)
    }
}

/// Looks for inline assembly that is not empty (an empty one is a barrier for
/// the compiler); a test may have a pause, which does nothing.
pub(crate) fn no_inline_assembly(assembly: &str, unit: &Unit, test: bool) -> Result<(), Error> {
    let mut inside = false;
    let mut place = None;
    for line in assembly.lines().map(str::trim) {
        match line {
            "#APP" | "# APP" | "//APP" | "// APP" => inside = true,
            "#NO_APP" | "# NO_APP" | "//NO_APP" | "// NO_APP" => inside = false,
            _ if line.starts_with("# ") => {
                // # 12 "mylock.c" 1
                let mut words = line[2..].splitn(2, ' ');
                if let (Some(Ok(number)), Some(file)) =
                    (words.next().map(str::parse::<u32>), words.next())
                    && number > 0
                {
                    let file = file.trim_start_matches('"').split('"').next();
                    place = file.map(|file| format!("{file}:{number}"));
                }
            }
            "" => {}
            _ if line.starts_with(".loc ") && !inside => {
                let number = line.split_whitespace().nth(2).unwrap_or("?");
                place = Some(format!("{}:{number}", unit.file.display()));
            }
            _ if inside => {
                let pauses = line == "pause" || line.contains("nop") || line == "yield";
                if pauses && test {
                    continue;
                }
                let place = place.unwrap_or_else(|| unit.name.clone());
                let instead = if pauses {
                    "lab_relax()"
                } else {
                    "C11 atomics (stdatomic.h), or atomic_thread_fence for a barrier"
                };
                return Err(Error::Failed(format!(
                    "{place}: inline assembly (`{line}`) cannot be simulated or checked; use \
                     {instead}"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Looks for thread-local data, which all CPUs of a simulation would share.
pub(crate) fn no_thread_local_data(object: &Path, unit: &Unit) -> Result<(), Error> {
    let unreadable = |e: &dyn std::fmt::Display| {
        Error::Failed(format!("cannot read what became of {}: {e}", unit.name))
    };
    let bytes = std::fs::read(object).map_err(|e| unreadable(&e))?;
    let file = object::File::parse(&*bytes).map_err(|e| unreadable(&e))?;
    let Some(variable) = file
        .symbols()
        .find(|symbol| symbol.kind() == SymbolKind::Tls)
        .and_then(|symbol| symbol.name().ok().map(str::to_owned))
    else {
        return Ok(());
    };
    // A static in a function is called name.0.
    let variable = variable.split('.').next().unwrap_or(&variable);
    let line = std::fs::read_to_string(&unit.file).ok().and_then(|text| {
        let thread_local = ["_Thread_local", "__thread", "thread_local"];
        text.lines().position(|line| {
            line.contains(variable) && thread_local.iter().any(|word| line.contains(word))
        })
    });
    Err(Error::Failed(format!(
        "{}{}: '{variable}' is thread-local data, which simulated CPUs cannot have; put it into \
         the context (the second type of LOCKLAB_LOCK), or index an array with lab_cpu()",
        unit.name,
        line.map_or_else(String::new, |line| format!(":{}", line + 1)),
    )))
}

/// Functions of the C library without memory of their own or threads, and data of C++: a
/// test finds them in this process.
const OF_LIBRARY: [&str; 10] = [
    "abs", "labs", "llabs", "ffs", "strlen", "strcmp", "strncmp", "memcmp", "atoi", "strchr",
];

/// Returns what a linker says is missing, with its place.
fn missing(stderr: &str) -> impl Iterator<Item = (&str, &str)> {
    stderr.lines().filter_map(|line| {
        let (place, rest) = line.split_once("undefined reference to `")?;
        Some((place, rest.trim_end_matches('\'')))
    })
}

/// Refuses a test that needs a function which the checker does not know.
pub(crate) fn undefined_in_test(stderr: &str, unit: &Unit) -> Result<(), Error> {
    let unknown = |(_, symbol): &(&str, &str)| !OF_LIBRARY.contains(symbol);
    let Some((line, symbol)) = missing(stderr).find(unknown) else {
        return match missing(stderr).next() {
            Some(_) => Ok(()),
            None => Err(Error::Failed(format!(
                "{stderr}{} cannot be linked",
                unit.name
            ))),
        };
    };
    let what = match symbol {
        "setjmp" | "_setjmp" | "__sigsetjmp" | "longjmp" | "siglongjmp" => {
            "jumps between functions"
        }
        "open" | "read" | "write" | "close" | "lseek" | "fopen" | "fclose" | "fread" | "unlink"
        | "rename" | "pread" | "pwrite" | "fsync" => "files",
        "time" | "clock" | "gettimeofday" | "times" => "clock",
        _ => "such function",
    };
    Err(Error::Failed(format!(
        "{}: '{symbol}' cannot be checked, since the checker has no {what}; leave it out, or define \
         it in the file",
        place_of(line, unit)
    )))
}

/// Returns file and line of a place in a linker's message.
fn place_of(line: &str, unit: &Unit) -> String {
    let line = line.trim_end_matches([':', ' ']);
    // "/usr/bin/ld: /tmp/mylock.c:12" or "lock.o:mylock.c:(.text+0x5)".
    let line = line.rsplit(": ").next().unwrap_or(line);
    match line.rsplit_once(':') {
        Some((file, number)) if number.parse::<u32>().is_ok() => {
            format!("{}:{number}", file.rsplit('/').next().unwrap_or(file))
        }
        _ => unit.name.clone(),
    }
}

/// Turns a linker's message about a missing definition into an error message.
pub(crate) fn undefined(stderr: &str, unit: &Unit) -> Error {
    let Some((line, symbol)) = missing(stderr).next() else {
        return Error::Failed(format!("{stderr}{} cannot be linked", unit.name));
    };
    let place = place_of(line, unit);
    let instead = match symbol {
        "malloc" | "calloc" | "realloc" | "free" | "aligned_alloc" | "posix_memalign" | "_Znwm"
        | "_ZdlPv" | "_ZdlPvm" => {
            "a lock has the memory of its lock and context types, and static data; put it there"
        }
        "sched_yield" | "usleep" | "nanosleep" | "sleep" | "syscall" | "futex" => {
            "a lock that spins calls lab_relax(); sleeping is not modelled"
        }
        "printf" | "fprintf" | "puts" | "putchar" | "stderr" => "remove it, or compile it out",
        _ if symbol.starts_with("pthread_") => "use C11 atomics and lab_relax()",
        _ if symbol.starts_with("__tsan_atomic128") => {
            "16-byte atomics are not modelled; use words of at most 8 bytes"
        }
        _ if symbol.starts_with("__atomic_") => {
            "an atomic of this size is a library call; use sizes 1, 2, 4 or 8, aligned"
        }
        _ if symbol.starts_with("__cxa_guard") => {
            "a static that is initialised at run time needs a lock itself; make it constant"
        }
        _ => "a lock stands alone: define it in the file, or do without",
    };
    Error::Failed(format!(
        "{place}: '{symbol}' cannot be used in a simulation; {instead}"
    ))
}
