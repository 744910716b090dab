//! Makes the mutants of `planted.txt` that the platform cannot make: a copy of
//! a lock's source for each, with one edit. And lists the source files of the
//! locks, whose text reports quote.
//!
//! Their modules find what is `crate` to the original in `planted::world`. A
//! bug whose place is no longer in the source is listed as one that does not
//! apply; a test says so.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Tells how a model is made of a lock whose type is not called after the lock, or that can do
/// what no other can. The others are found in the catalogue.
const MODELS: &[(&str, &str)] = &[
    (
        "bravo",
        "subject::shared::<P, super::MODULE::Bravo<locklab_locks::PhaseFair<P>, P>>()",
    ),
    (
        "c-bo-mcs",
        "subject::subject::<P, super::MODULE::CohortBoMcs<P>>()",
    ),
    (
        "c-tkt-tkt",
        "subject::subject::<P, super::MODULE::CohortTktTkt<P>>()",
    ),
    (
        "parking_lot",
        "subject::subject::<P, super::MODULE::ParkingLotMutex<P, 2>>()",
    ),
    (
        "pthread-rwlock-w",
        "subject::shared::<P, super::MODULE::GlibcRw<P, true>>()",
    ),
    (
        "mplock-anderson",
        "subject::big::<P, locklab_locks::mplock::Mplock<super::MODULE::AndersonQueue<P, 4>, P>>()",
    ),
    (
        "mplock-clh",
        "subject::big::<P, locklab_locks::mplock::Mplock<super::MODULE::ClhQueue<P, 4>, P>>()",
    ),
    (
        "mplock-mcs",
        "subject::big::<P, locklab_locks::mplock::Mplock<super::MODULE::McsQueue<P, 4>, P>>()",
    ),
    (
        "mplock-ticket",
        "subject::big::<P, locklab_locks::mplock::Mplock<super::MODULE::TicketQueue<P, super::MODULE::Packed<P>, 4>, P>>()",
    ),
    (
        "mplock-ticket-padded",
        "subject::big::<P, locklab_locks::mplock::Mplock<super::MODULE::TicketQueue<P, super::MODULE::Padded<P>, 4>, P>>()",
    ),
    (
        "rqspinlock",
        "subject::failing::<P, super::MODULE::RqSpinlock<P>>(|lock| lock.lock_or_fail().is_ok())",
    ),
];

/// Returns how a model is made of a lock, by its line in the catalogue.
fn model_of(lock: &str, file: &str, catalogue: &str) -> String {
    if let Some((_, model)) = MODELS.iter().find(|(known, _)| *known == lock) {
        return (*model).to_owned();
    }
    // A model of a library's lock is called after the library, and its type after its file.
    let plain = [
        lock.replace('-', ""),
        file.trim_end_matches(".rs").replace('_', ""),
    ];
    let lines = || catalogue.lines().map(str::trim);
    let mut group = "";
    for (plain, line) in plain
        .iter()
        .flat_map(|plain| lines().map(move |line| (plain, line)))
    {
        if let Some(name) = line.strip_suffix(" {") {
            group = name.split(' ').next().unwrap_or(name);
        }
        let end = line.find(|c: char| !c.is_alphanumeric());
        let (of, rest) = line.split_at(end.unwrap_or(line.len()));
        if !of.eq_ignore_ascii_case(plain) || !rest.ends_with(',') {
            continue;
        }
        // Those of a model, if it has its own.
        let rest = rest.split_once("=> ").map_or(rest, |(_, model)| model);
        let constants = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let constants = constants.map_or(String::new(), |(of, _)| format!(", {of}"));
        let constants = constants.replace("CPUS", "4");
        let planted = format!("P, super::MODULE::{of}<P{constants}>");
        return match group {
            "shared_locks" => format!("subject::shared::<{planted}>()"),
            "big_locks" => format!("subject::big::<{planted}>()"),
            _ if rest.ends_with("visit_timed,") => {
                format!("subject::timed::<{planted}>(|()| true)")
            }
            _ if rest.ends_with("visit_timed_in_queue,") => {
                format!("subject::timed::<{planted}>(super::MODULE::McsTimeoutNode::is_idle)")
            }
            _ => format!("subject::subject::<{planted}>()"),
        };
    }
    panic!("planted.txt: the catalogue has no type for {lock}; MODELS names one")
}

/// The folders with the sources of locks: links to those of two crates.
const FOLDERS: [&str; 2] = ["locks", "library-models"];

/// Returns the list of a folder's catalogue.
fn list_of(folder: &str) -> String {
    let text = fs::read_to_string(Path::new(folder).join("catalogue.rs")).expect("a catalogue");
    let (_, list) = text.rsplit_once("catalogue! {").expect("its list");
    list.to_owned()
}

/// Locks that others are built of, whose insides these use: copied unchanged.
const INNER: &[&str] = &[
    "qspinlock.rs",
    "mcs.rs",
    "ticket.rs",
    "virt_spin.rs",
    "sleep_queue.rs",
    "parking_lot.rs",
];

/// Names what `planted::world` has for them.
const WORLD: &[&str] = &[
    "MAX_CPUS",
    "cna::Cna",
    "cna::CnaNode",
    "held_locks::HELD_LOCKS",
    "held_locks::HeldLocks",
    "held_locks::HeldTable",
    "line::CacheLine",
    "lock_api_impl::context_free",
    "lock_api_impl::fair",
    "lock_api_impl::shared",
    "lock_api_impl::shared_methods",
    "lock_api_impl::timed",
    "mcs::Mcs",
    "mcs::McsNode",
    "mutex::LeakableGuard",
    "mutex::StackContext",
    "native::NativePlatform",
    "phase_fair::PhaseFair",
    "platform::Atomic",
    "platform::AtomicInt",
    "platform::LockWord",
    "platform::Ordering",
    "platform::Patience",
    "platform::Platform",
    "platform::Poll",
    "qnode::NESTING",
    "qnode::QueueNode",
    "qspinlock::LOCKED",
    "qspinlock::LOCKED_MASK",
    "qspinlock::PENDING",
    "qspinlock::QSpinlock",
    "qspinlock::node_of",
    "qspinlock::tail_of",
    "raw::Fairness",
    "raw::Info",
    "raw::Overtakes",
    "raw::RawLock",
    "raw::TimedLock",
    "raw::take_until",
    "sleep_queue::Choice",
    "sleep_queue::Found",
    "sleep_queue::first_only",
    "sleep_queue::sleep",
    "sleep_queue::wake",
    "sleepers::SleepQueue",
    "sleepers::Sleeper",
    "parking_lot::spin_round",
    "ticket::Ticket",
    "ticket::before",
    "virt_spin",
    "virt_spin::VirtSpinBackoff",
];

fn main() {
    println!("cargo::rerun-if-changed=planted.txt");
    println!("cargo::rerun-if-changed=locks");
    println!("cargo::rerun-if-changed=library-models");
    println!("cargo::rerun-if-changed=platform");
    println!("cargo::rerun-if-changed=pthread-protocols");
    let text = fs::read_to_string("planted.txt").expect("planted.txt is beside build.rs");
    let catalogue: String = FOLDERS.iter().map(|folder| list_of(folder)).collect();
    let (mut modules, mut table) = (String::new(), String::new());
    let bugs = text.split("\n@ ").skip(1);
    for (number, bug) in bugs.enumerate() {
        let (head, body) = bug.split_once('\n').unwrap_or((bug, ""));
        let mut parts = head.split(" | ");
        let mut part = || parts.next().unwrap_or("").trim();
        let (lock, file, what) = (part(), part(), part());
        assert!(!what.is_empty(), "planted.txt: '@ {head}' has no bug");
        let because = body.lines().find_map(|line| line.strip_prefix("~ "));
        let made = if let Some(change) = body.lines().find_map(|line| line.strip_prefix("! ")) {
            let (change, line) = change.split_once(" | ").expect("! change | part of a line");
            format!("Made::ByPlatform {{ change: {change:?}, line: {line:?} }}")
        } else {
            let module = format!("bug_{number}");
            match planted(file, body) {
                Some(source) => {
                    modules.push_str(&in_module(&format!("pub(super) mod {module}"), &source));
                    let subject = model_of(lock, file, &catalogue);
                    let subject = subject.replace("super::MODULE", &format!("bugs::{module}"));
                    format!("Made::InSource(|| {{ type P = crate::platform::Loom; {subject} }})")
                }
                None => "Made::Nowhere".to_owned(),
            }
        };
        writeln!(
            table,
            "Planted {{ lock: {lock:?}, file: {file:?}, what: {what:?}, \
             because: {because:?}, made: {made} }},"
        )
        .expect("a String grows");
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let code =
        format!("pub(crate) const ALL: &[Planted] = &[\n{table}];\nmod bugs {{\n{modules}\n}}\n");
    let write = |name: &str, text: String| {
        fs::write(Path::new(&out).join(name), text).expect("OUT_DIR can be written");
    };
    write("planted.rs", code);
    let inner = INNER.iter().map(|file| {
        let source = read(file).expect("a source file of the locks");
        let module = file.trim_end_matches(".rs");
        in_module(&format!("pub(crate) mod {module}"), &of_world(&source))
    });
    write("inner.rs", inner.collect());
    write("sources.rs", sources());
}

/// Returns each source file of the locks and of what they run on, by the end of its
/// path.
fn sources() -> String {
    let lines = ["locks", "library-models", "platform", "pthread-protocols"]
        .map(sources_of)
        .concat();
    format!("const FILES: &[(&str, &str)] = &[\n{lines}];\n")
}

/// Returns those of the crate that `link`, beside build.rs, is called after.
fn sources_of(link: &str) -> String {
    let folder = fs::canonicalize(link).expect("a link to the source of a crate");
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the source") {
            let path = entry.expect("a folder of the source").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let lines = files.iter().map(|path| {
        let below = path.strip_prefix(&folder).expect("found below it");
        let name = format!("{link}/src/{}", below.display()).replace('\\', "/");
        format!("    ({name:?}, include_str!({path:?})),\n")
    });
    lines.collect()
}

/// Returns a module around a lock's source, which no lint looks at.
fn in_module(head: &str, source: &str) -> String {
    format!(
        "#[allow(clippy::all, clippy::pedantic, dead_code, missing_docs, unexpected_cfgs, \
         unreachable_pub, unused, clippy::undocumented_unsafe_blocks)]\n\
         {head} {{\nuse locklab_locks::lock_api;\n{source}\n}}\n"
    )
}

/// Returns a source file of the locks, without its tests, and with the modules that it has in
/// a folder of its own in their places.
fn read(file: &str) -> Option<String> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(file));
    let text = paths
        .filter_map(|path| fs::read_to_string(path).ok())
        .next();
    let mut source = format!("\n{}", text?);
    for tests in ["\n#[cfg(all(test", "\n#[cfg(test)]"] {
        if let Some(at) = source.find(tests) {
            source.truncate(at);
        }
    }
    let folder = file.strip_suffix(".rs")?;
    let mut all = String::new();
    for line in source.split_inclusive('\n') {
        let module = line.trim_end().strip_prefix("mod ");
        let module = module.and_then(|module| module.strip_suffix(';'));
        let inner = module.and_then(|module| read(&format!("{folder}/{module}.rs")));
        match (module, inner) {
            (Some(module), Some(inner)) => {
                writeln!(all, "mod {module} {{{inner}}}").expect("a String grows");
            }
            _ => all.push_str(line),
        }
    }
    Some(all)
}

/// Returns the same source where `planted::world` is its crate.
fn of_world(source: &str) -> String {
    source
        .replace("\n//!", "\n//")
        .replace("$crate::", "crate::")
        .replace("crate::", "crate::planted::world::")
        .replace("super::Queue", "locklab_locks::mplock::Queue")
}

/// Returns the source of a lock with the edit that `body` describes; `None` if its
/// place is not there.
fn planted(file: &str, body: &str) -> Option<String> {
    let block = body
        .split_once("<<<\n")
        .expect("a bug has a '!' line or an edit")
        .1;
    let (old, rest) = block.split_once("===\n").expect("an edit has ===");
    let (new, _) = rest.split_once(">>>").expect("an edit has >>>");
    let old = old.strip_suffix('\n').unwrap_or(old);
    let new = new.strip_suffix('\n').unwrap_or(new);
    let source = read(file)?;
    if source.matches(old).count() != 1 {
        return None;
    }
    let source = source.replace(old, new);
    // What a comment names need not be there.
    let code = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    if let Some(unknown) = names(&code).find(|name| !WORLD.contains(&name.as_str())) {
        println!("cargo::warning=planted.txt: planted::world has no {unknown} for {file}");
        return None;
    }
    Some(of_world(&source))
}

/// Returns what the code takes from its crate.
fn names(code: &str) -> impl Iterator<Item = String> + '_ {
    code.split("crate::").skip(1).flat_map(|rest| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
        let (path, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let group = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        match group {
            Some((group, _)) => group
                .split(',')
                .map(|name| format!("{path}{}", name.trim()))
                .filter(|name| !name.ends_with("::"))
                .collect(),
            None => vec![path.to_owned()],
        }
    })
}
