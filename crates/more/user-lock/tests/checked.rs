//! Locks in C under the model checker.

use locklab_user_lock::UserLock;
use locklab_verify::{
    Change, Explored, Failure, Fate, Limits, Mutation, Outcome, Property, SHOWN, check,
    check_and_record, interleaving, try_mutant,
};
use std::collections::BTreeSet;

fn at(file: &str) -> String {
    format!("{}/tests/c/{file}", env!("CARGO_MANIFEST_DIR"))
}

fn promises_of(name: &str, flags: &[&str]) -> Vec<Property> {
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let lock = UserLock::named(name, &flags).unwrap().unwrap();
    lock.promises().unwrap()
}

fn limits(executions: u64) -> Limits {
    Limits {
        executions,
        ..Limits::default()
    }
}

fn named<'a>(properties: &'a [Property], name: &str) -> &'a Property {
    properties.iter().find(|p| p.name == name).unwrap()
}

fn explored(properties: &[Property], name: &str, executions: u64) -> Explored {
    check(named(properties, name), limits(executions), None)
}

fn failure(properties: &[Property], name: &str, executions: u64) -> Failure {
    match explored(properties, name, executions).outcome {
        Outcome::Fails(failure) => failure,
        outcome => panic!("{name}: {outcome:?}"),
    }
}

/// Checks that the promises of these properties are kept, in no more than so many
/// executions of each.
#[track_caller]
fn assert_kept(what: &str, properties: &[Property], executions: u64) {
    for property in properties {
        let explored = check(property, limits(executions), None);
        if let Outcome::Fails(Failure { message, trace }) = explored.outcome {
            let table = interleaving(&trace, SHOWN);
            panic!("{what}: {}: {message}\n{table}", property.name);
        }
    }
}

/// Names what is weakened: what stands there, what it becomes. (A store to a part of a word
/// is an update in Rust.)
type Weakening = (u8, u8);

/// Returns every weakening that one of these models shows to break a promise. Each
/// that an execution passes must be.
#[track_caller]
fn fallen(lock: &str, models: &[Vec<Property>]) -> BTreeSet<Weakening> {
    let passed = models.iter().flatten();
    let passed = passed.flat_map(|property| check_and_record(property, limits(300)).1.mutants);
    let mutants: BTreeSet<Mutation> = passed.collect();
    let mut fallen = BTreeSet::new();
    for mutant in mutants {
        let Change::Weaken { from, to, .. } = mutant.change else {
            continue;
        };
        let killed = models.iter().any(|properties| {
            let (fate, _) = try_mutant(properties, limits(3_000), Some(mutant), true);
            matches!(fate, Fate::Killed { .. })
        });
        assert!(killed, "{lock}: {mutant} breaks no promise");
        fallen.insert((from, to));
    }
    fallen
}

const TWINS: [&str; 6] = [
    "ttas.c",
    "ticket.c",
    "mcs.c",
    "clh.c",
    "anderson.c",
    "qspinlock.c",
];

#[test]
fn the_twins_of_our_locks_keep_the_same_promises() {
    for file in TWINS {
        let properties = promises_of(&at(file), &[]);
        assert!(properties.len() > 7, "{file}");
        assert_kept(file, &properties, 2_000);
    }
}

/// Every ordering of a twin is necessary, and what can be weakened in it is
/// what can be weakened in the lock. (Places are not compared: a loop may be
/// one operation in Rust and two in C.)
#[test]
fn the_same_mutants_fall() {
    for file in TWINS {
        let name = file.trim_end_matches(".c");
        let twin = [promises_of(&at(file), &[])];
        let ours = [locklab_verify::properties_of(name).unwrap()];
        let theirs = fallen(file, &twin);
        assert!(!theirs.is_empty(), "{file} has no orderings");
        assert_eq!(theirs, fallen(name, &ours), "{name}");
    }
}

/// Bugs that public locks have had, each by the promise that it breaks; with
/// the published fix the same promise is kept.
#[test]
fn known_bugs_of_public_locks_are_found() {
    for (file, promise, said) in [
        ("dpdk_mcslock.c", "reuse", "deadlock"),
        ("linux_qspinlock.c", "reuse", "deadlock"),
        (
            "nuttx_trylock.c",
            "try_lock does not wait",
            "try_lock fails",
        ),
        ("nuttx_unlock.c", "exclusion", "deadlock"),
        ("spin_rs_rwlock.c", "exclusion", "not ordered"),
        ("fex_spinlock.c", "exclusion of three", "not ordered"),
    ] {
        let name = at(&format!("bugs/{file}"));
        let failure = failure(&promises_of(&name, &[]), promise, 3_000);
        assert!(
            failure.message.contains(said),
            "{file}: {}",
            failure.message
        );
        let mended = promises_of(&name, &["-DFIXED"]);
        assert_kept(file, std::slice::from_ref(named(&mended, promise)), 100);
    }
}

/// Returns what a compiler may do with plain accesses is no execution of the model, so
/// the race itself breaks the promise; volatile accesses are relaxed ones.
#[test]
fn plain_accesses_that_race_break_a_promise() {
    let name = at("bugs/plain_flag.c");
    let said = failure(&promises_of(&name, &[]), "exclusion", 300).message;
    let both = [
        "data race: the ",
        "plain write at plain_flag.c:37",
        "at plain_flag.c:20",
    ];
    assert!(both.iter().all(|part| said.contains(part)), "{said}");
    for mended in ["-DFIXED", "-DVOLATILE"] {
        assert_kept(mended, &promises_of(&name, &[mended]), 100);
    }
}

/// Plain data that a lock's own protocol protects does not race.
#[test]
fn plain_accesses_that_are_ordered_keep_the_promises() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counted.c");
    let text = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic unsigned char held; int owner, taken; };
struct c { int mine; };
LOCKLAB_LOCK(counted, struct l, struct c);
void lab_lock(void *p, void *q) {
\tstruct l *l = p; struct c *c = q;
\tc->mine++;
\twhile (atomic_exchange_explicit(&l->held, 1, memory_order_acq_rel))
\t\tlab_relax();
\tl->owner = lab_cpu() + 1;
\tl->taken += c->mine > 0;
}
void lab_unlock(void *p, void *c) {
\tstruct l *l = p; (void)c;
\tif (l->owner != (int)lab_cpu() + 1) __builtin_trap();
\tl->owner = 0;
\tatomic_store_explicit(&l->held, 0, memory_order_release);
}
";
    std::fs::write(&path, text).unwrap();
    assert_kept("counted.c", &promises_of(path.to_str().unwrap(), &[]), 300);
}

/// Returns what lies between the accesses of a file is changed as well. Of the
/// test-and-set lock all is noticed but what changes nothing: any value but 0 is held,
/// and it need not read before it tries again.
#[test]
fn mutants_of_a_file_are_changes_of_its_code() {
    let name = at("ttas.c");
    let lock = UserLock::named(&name, &[]).unwrap().unwrap();
    let candidate = lock.candidate().unwrap();
    let mut fates = std::collections::BTreeMap::new();
    for mutant in &candidate.mutants {
        let fate = match (mutant.promises)() {
            None => "none",
            Some(promises) => match try_mutant(&promises, limits(300), None, true).0 {
                Fate::Killed { .. } => "killed",
                _ => "survives",
            },
        };
        fates
            .entry(fate)
            .or_insert_with(Vec::new)
            .push(format!("{} {}", mutant.line, mutant.change));
    }
    assert!(fates["killed"].len() >= 5, "{fates:?}");
    let harmless = [
        "ttas.c:14:42 1 -> 2",
        "ttas.c:19:62 condition always false",
        // Needs an attempt that fails, and three acquisitions of others meanwhile.
        "ttas.c:21:3 left out: none = 0",
        "ttas.c:23:20 1 -> 2",
        "ttas.c:31:45 1 -> 2",
    ];
    assert_eq!(fates["survives"], harmless, "{fates:?}");
}

#[test]
fn readers_of_an_user_lock_share_it_and_their_bugs_are_found() {
    let file = at("rwlock.c");
    let promises = promises_of(&file, &[]);
    let names: Vec<&str> = promises.iter().map(|p| p.name).collect();
    for name in [
        "two readers at once",
        "a reader and two writers",
        "a reader tries",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_kept("rwlock.c", &promises, 300);
    // Readers that exclude each other are none.
    let folder = tempfile::tempdir().unwrap();
    let exclusive = folder.path().join("exclusive.c");
    let text = std::fs::read_to_string(at("ticket.c")).unwrap()
        + "void lab_read_lock(void *l, void *c) { lab_lock(l, c); }
void lab_read_unlock(void *l, void *c) { lab_unlock(l, c); }
";
    std::fs::write(&exclusive, text).unwrap();
    for (file, flag, promise, said) in [
        (&*file, "-DUNFENCED", "a reader and a writer", "not ordered"),
        (&*file, "-DBESIDE", "a reader and a writer", "not ordered"),
        (
            exclusive.to_str().unwrap(),
            "-DNOTHING",
            "two readers at once",
            "deadlock",
        ),
    ] {
        let failure = failure(&promises_of(file, &[flag]), promise, 3_000);
        assert!(
            failure.message.contains(said),
            "{flag}: {}",
            failure.message
        );
    }
}

/// Returns what one of the promises of a twin of ours says when the twin has a bug.
fn said_of_bug(twin: &str, old: &str, new: &str, promise: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(twin);
    let text = std::fs::read_to_string(at(twin)).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{twin}: {old}");
    std::fs::write(&path, text.replace(old, new)).unwrap();
    let promises = promises_of(path.to_str().unwrap(), &[]);
    failure(&promises, promise, 3_000).message
}

/// No file says what it counts, and in how many bits.
#[test]
fn counters_that_wrap_around_wrongly_break_a_promise() {
    let waits = "(uint16_t)atomic_load_explicit(&l->word, memory_order_acquire)";
    for (twin, old, new, said) in [
        (
            "ticket.c",
            "atomic_store_explicit(&l->owner, owner + 1, memory_order_release);",
            "(void)owner; atomic_fetch_add_explicit(&l->word, 1, memory_order_release);",
            "alone waits for ever, after 65536 acquisitions",
        ),
        (
            "ticket.c",
            &format!("{waits} != mine"),
            &format!("{waits} < mine"),
            "not ordered",
        ),
        (
            "anderson.c",
            "	size_t turn;\n};",
            "	uint16_t turn;\n};",
            "deadlock",
        ),
    ] {
        let message = said_of_bug(twin, old, new, "used before");
        assert!(message.contains(said), "{twin}, {new}: {message}");
    }
}

/// Returns what only an interrupt of a CPU shows that uses a node of its own, or all of
/// them.
#[test]
fn bugs_of_the_levels_of_nodes_break_a_promise() {
    let name = "(uint16_t)((cpu + 1) << 2 | level)";
    for (old, new, promise) in [
        (name, "(uint16_t)((cpu + 1) << 2)", "nesting of three CPUs"),
        (
            "level >= NESTING",
            "level > NESTING",
            "nesting of three CPUs",
        ),
        (
            "node);\n\tatomic_store_explicit(depth, level, memory_order_relaxed);",
            "node);",
            "fifo, again and again",
        ),
    ] {
        let message = said_of_bug("qspinlock.c", old, new, promise);
        assert!(!message.is_empty(), "{new}");
    }
}

/// Returns a lock whose `lab_lock` ends so.
fn going_wrong(how: &str) -> Failure {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.c");
    let text = format!(
        "#include <locklab_lock.h>
#include <stdatomic.h>
struct l {{ _Atomic int held; int data; }};
LOCKLAB_LOCK(mine, struct l, lab_no_context);
static int deep(volatile int *a) {{ volatile int b[64]; b[0] = *a + 1; return deep(b) + b[0]; }}
void lab_lock(void *p, void *c) {{
\tstruct l *l = p; (void)c; (void)deep;
\twhile (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
\t\tlab_relax();
\t{how}
}}
void lab_unlock(void *p, void *c) {{
\tstruct l *l = p; (void)c;
\tatomic_store_explicit(&l->held, 0, memory_order_release);
}}
"
    );
    std::fs::write(&path, text).unwrap();
    failure(&promises_of(path.to_str().unwrap(), &[]), "exclusion", 300)
}

/// A crash, a hang or a wild write is a failed promise, with the line.
#[test]
fn what_goes_wrong_in_c_is_a_failed_promise_with_the_line() {
    for (how, said) in [
        (
            "((struct l *)8)->data = 1;",
            "mine.c:10 (address 0xc) is through a null pointer",
        ),
        (
            "*(_Atomic long *)(1L << 46) = 1;",
            "mine.c:10 (address 0x400000000000) is of memory",
        ),
        ("for (volatile int on = 1; on;);", "endless loop"),
        ("l->data = deep(&l->data);", "the stack overflows"),
        ("__builtin_trap();", "SIGILL"),
        (
            "while (!l->data) lab_relax();",
            "the loop at mine.c:10 has no end",
        ),
    ] {
        let failure = going_wrong(how);
        assert!(failure.message.contains(said), "{how}: {}", failure.message);
        let lines: Vec<u32> = failure.trace.iter().map(|step| step.line).collect();
        assert!(lines.contains(&8), "{how}: {lines:?}");
    }
}

/// A counterexample is in the words of the file.
#[test]
fn a_counterexample_has_the_lines_and_the_names_of_the_file() {
    let failure = failure(
        &promises_of(&at("bugs/dpdk_mcslock.c"), &[]),
        "reuse",
        3_000,
    );
    let table = interleaving(&failure.trace, SHOWN);
    for said in [
        "thread 1",
        "dpdk_mcslock.c:",
        "tail 0 > n",
        "next = n",
        "locked = 1",
    ] {
        assert!(table.contains(said), "{said}:\n{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 72),
        "{table}"
    );
}

/// The kernel's own file, where the package is installed.
#[test]
fn the_kernels_qspinlock_keeps_its_promises_with_dependencies() {
    let lock = match UserLock::named("kernel:qspinlock", &[]) {
        Ok(lock) => lock.unwrap(),
        Err(error) => return eprintln!("not tested: {error}"),
    };
    assert!(lock.assumptions().contains("address dependencies"));
    assert_kept("kernel:qspinlock", &lock.promises().unwrap(), 30);
}

#[test]
fn a_lock_that_readers_share_passes_the_native_trial() {
    let file = format!("{}/tests/c/rwlock.c", env!("CARGO_MANIFEST_DIR"));
    let lock = UserLock::named(&file, &[]).unwrap().unwrap();
    assert!(lock.subject("rwlock").info.readers_share);
    lock.load_native().unwrap();
}
