//! An error in a lock is reported in one sentence, with the file's line.

use locklab_host::error::Error;
use locklab_sim::{Machine, Scenario, Stop, Workload};
use locklab_user_lock::UserLock;
use std::time::Duration;

/// A lock file whose parts can be replaced.
const HEAD: &str = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int held; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
";
const LOCK: &str = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held, 1)) lab_relax(); }
";
const UNLOCK: &str =
    "void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_store(&l->held, 0); }
";

fn compile_as(file: &str, parts: &[&str]) -> Result<UserLock, Error> {
    // It is compiled again when it is simulated.
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join(file);
    std::fs::write(&path, parts.concat()).unwrap();
    UserLock::named(path.to_str().unwrap(), &[]).map(|lock| lock.unwrap())
}

fn compile(parts: &[&str]) -> Result<UserLock, Error> {
    compile_as("mylock.c", parts)
}

/// Returns what is said of a file that cannot be simulated; it may be measured.
fn not_compiled(parts: &[&str]) -> String {
    let registered = compile(parts).and_then(|lock| lock.register("mylock.c"));
    match registered.unwrap_err() {
        Error::Failed(text) => text,
        other => panic!("{other:?}"),
    }
}

fn simulated(parts: &[&str], threads: usize) -> String {
    let lock = compile(parts)
        .unwrap()
        .with_patience(Duration::from_secs(1));
    let work = Workload::Matrix {
        critical: 50,
        non_critical: 0,
    };
    let machine = Machine::builtin("flat-16").unwrap();
    let mut scenario = Scenario::new(machine, "mylock.c", work, threads);
    scenario.stop = Stop::Acquisitions(200);
    match lock.simulate(&scenario) {
        Err(error) => error.to_string(),
        Ok(simulation) => panic!("{:?}", simulation.outcome),
    }
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn what_does_not_compile_shows_the_compilers_words() {
    let text = not_compiled(&[HEAD, LOCK, "void lab_unlock(void *p, void *c) { oh }\n"]);
    assert_says(
        &text,
        &["mylock.c:7", "error:", "mylock.c does not compile with"],
    );
}

#[test]
fn a_missing_function_is_named() {
    assert_eq!(
        not_compiled(&[HEAD, LOCK]),
        "mylock.c defines no lab_unlock"
    );
    let read = "void lab_read_lock(void *p, void *c) { lab_lock(p, c); }\n";
    assert_eq!(
        not_compiled(&[HEAD, LOCK, UNLOCK, read]),
        "mylock.c defines functions of readers, but no lab_read_unlock; define it, or none of them"
    );
    let text = not_compiled(&["#include <locklab_lock.h>\nstruct l { int held; };
void lab_lock(void *p, void *c) { (void)p; (void)c; }
void lab_unlock(void *p, void *c) { (void)p; (void)c; }\n"]);
    assert_says(&text, &["does not say what its lock is", "LOCKLAB_LOCK"]);
}

#[test]
fn a_lock_that_cannot_be_placed_says_its_size() {
    let head = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int held; char much[2 << 20]; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
";
    assert_says(&not_compiled(&[head, LOCK, UNLOCK]), &["2097156 bytes"]);
    let head = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Alignas(4096) _Atomic int held; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
";
    assert_says(&not_compiled(&[head, LOCK, UNLOCK]), &["aligned to 4096"]);
    let head = HEAD.replace(
        "struct l { _Atomic int held; };",
        "struct l { _Atomic int held; }; struct none {};",
    );
    let head = head.replace("struct l, lab_no_context", "struct none, lab_no_context");
    assert_says(
        &not_compiled(&[&head, LOCK, UNLOCK]),
        &["its lock has 0 bytes"],
    );
}

#[test]
fn inline_assembly_has_its_line() {
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\t__asm__ volatile(\"\" ::: \"memory\");
\twhile (atomic_exchange(&l->held, 1))
\t\t__asm__ volatile(\"pause\"); }
";
    let text = not_compiled(&[HEAD, lock, UNLOCK]);
    assert_says(&text, &["mylock.c:8", "`pause`", "lab_relax()"]);
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; int x = 1; (void)c;
\t__asm__ volatile(\"xchg %0, %1\" : \"+r\"(x), \"+m\"(l->held)); }
";
    let text = not_compiled(&[HEAD, lock, UNLOCK]);
    assert_says(&text, &["mylock.c:6", "xchg", "C11 atomics"]);
}

#[test]
fn thread_local_data_has_its_line() {
    let head = format!("{HEAD}static _Thread_local int mine_alone;\n");
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c; mine_alone++;
\twhile (atomic_exchange(&l->held, mine_alone)) lab_relax(); }
";
    let text = not_compiled(&[&head, lock, UNLOCK]);
    assert_says(&text, &["mylock.c:5", "'mine_alone'", "lab_cpu()"]);
}

#[test]
fn functions_that_are_not_there_have_their_line() {
    let lock = "#include <stdlib.h>
void lab_lock(void *p, void *c) { struct l *l = p; int *x =
\tmalloc(4); *(int **)c = x;
\twhile (atomic_exchange(&l->held, 1)) lab_relax(); }
";
    let text = not_compiled(&[HEAD, lock, UNLOCK]);
    assert_says(&text, &["mylock.c:7", "'malloc'", "lock and context types"]);
    let lock = "#include <sched.h>
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held, 1)) sched_yield(); }
";
    let text = not_compiled(&[HEAD, lock, UNLOCK]);
    assert_says(&text, &["mylock.c:7", "'sched_yield'", "lab_relax()"]);
}

#[test]
fn a_deadlock_has_the_lines_where_all_wait() {
    let unlock = "void lab_unlock(void *p, void *c) { (void)p; (void)c; }\n";
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held, 1))
\t\twhile (atomic_load(&l->held))
\t\t\tlab_relax(); }
";
    let text = simulated(&[HEAD, lock, unlock], 3);
    assert_says(&text, &["mylock.c: deadlock", "lock = 0x1", "mylock.c:8"]);
}

#[test]
fn a_livelock_is_told_from_a_deadlock() {
    let unlock = "void lab_unlock(void *p, void *c) { (void)p; (void)c; }\n";
    let text = simulated(&[HEAD, LOCK, unlock], 2);
    assert_says(&text, &["mylock.c: livelock"]);
}

#[test]
fn two_holders_are_named() {
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tatomic_fetch_add(&l->held, 1); }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 4);
    assert_says(
        &text,
        &["admitted CPU", "it does not exclude", "mylock.c:6"],
    );
}

#[test]
fn a_waiter_that_unlocks_for_the_holder_admits_two() {
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c; int turns = 0;
\twhile (atomic_exchange(&l->held, 1)) {
\t\tif (++turns > 3) atomic_store(&l->held, 0);
\t\tlab_relax(); } }
";
    assert_says(
        &simulated(&[HEAD, lock, UNLOCK], 4),
        &["it does not exclude"],
    );
}

#[test]
fn a_crash_has_its_line_and_address() {
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c; long *q = (long *)8;
\tif (atomic_fetch_add(&l->held, 1) > 0)
\t\t*q = 5; }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 4);
    assert_says(&text, &["crashed at mylock.c:7", "address 0x8"]);
    let lock =
        "void lab_lock(void *p, void *c) { struct l *l = p; (void)c; _Atomic int *q = (void *)16;
\tif (atomic_fetch_add(&l->held, 1) > 0)
\t\tatomic_store(q, 1); }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 4);
    assert_says(&text, &["crashed at mylock.c:7", "address 0x10"]);
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tvoid (*volatile nowhere)(void) = 0;
\tatomic_fetch_add(&l->held, 1);
\tnowhere(); }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 2);
    assert_says(&text, &["crashed at mylock.c:", "address 0x0"]);
}

#[test]
fn an_overflowed_stack_is_told_from_a_crash() {
    let lock = "static int deeper(volatile int *n) { int here[64]; here[0] = *n;
\treturn *n > 0 ? deeper(here) + here[*n & 63] : 0; }
void lab_lock(void *p, void *c) { struct l *l = p; int n = 1; (void)c;
\twhile (atomic_exchange(&l->held, 1)) lab_relax();
\tdeeper(&n); }
";
    assert_says(
        &simulated(&[HEAD, lock, UNLOCK], 2),
        &["overflowed its stack", "mylock.c:"],
    );
}

#[test]
fn a_loop_without_an_end_is_stopped_at_its_line() {
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tint n = atomic_exchange(&l->held, 1);
\tfor (volatile int i = 0; ; i += n)
\t\t; }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 2);
    assert_says(&text, &["hangs: no access for 1 s", "mylock.c:7"]);
}

#[test]
fn more_cpus_than_a_lock_has_room_for_are_refused() {
    let head = format!("{HEAD}LOCKLAB_CPUS(2);\n");
    let text = simulated(&[&head, LOCK, UNLOCK], 3);
    assert_says(&text, &["room for 2 CPUs", "3 threads"]);
    // It has not said so, and indexes past its end.
    let head = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int held[2]; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
";
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held[lab_cpu() * 4096], 1)) lab_relax(); }
";
    let unlock = "void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_store(&l->held[lab_cpu() * 4096], 0); }\n";
    assert_says(
        &simulated(&[head, lock, unlock], 3),
        &["crashed at mylock.c:6"],
    );
}

#[test]
fn an_assertion_that_fails_is_quoted() {
    let lock = "#include <assert.h>
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tassert(atomic_fetch_add(&l->held, 1) == 0); }
";
    let text = simulated(&[HEAD, lock, UNLOCK], 2);
    assert_says(&text, &["the assertion `", "mylock.c:7 does not hold"]);
}

#[test]
fn the_pause_of_another_name_is_ours() {
    let lock = "#include <immintrin.h>
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(&l->held, 1)) while (atomic_load(&l->held)) _mm_pause(); }
";
    if cfg!(target_arch = "x86_64") {
        compile(&[HEAD, lock, UNLOCK]).unwrap();
    }
}

#[test]
fn cpp_is_compiled_as_cpp() {
    let text = "#include <locklab_lock.h>
#include <atomic>
struct spin {
\tstd::atomic<int> held;
};
LOCKLAB_LOCK(spin, spin, lab_no_context);
void lab_lock(void *p, void *) { while (static_cast<spin *>(p)->held.exchange(1)) lab_relax(); }
void lab_unlock(void *p, void *) { static_cast<spin *>(p)->held.store(0); }
";
    let lock = compile_as("mylock.cpp", &[text]).unwrap();
    assert_eq!(lock.facts().name, "spin");
    assert_eq!(lock.facts().lock_bytes, 4);
}

#[test]
fn a_lock_may_point_into_itself() {
    let head = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int *where; _Atomic int held; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
void lab_init(void *p) { struct l *l = p; l->where = &l->held; }
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (atomic_exchange(l->where, 1)) lab_relax(); }
void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_store(l->where, 0); }
";
    let lock = compile(&[head]).unwrap();
    let machine = Machine::builtin("flat-16").unwrap();
    let work = Workload::Matrix {
        critical: 0,
        non_critical: 0,
    };
    let scenario = Scenario::new(machine, "mylock.c", work, 4);
    assert_eq!(
        lock.simulate(&scenario).unwrap().outcome.acquisitions,
        10_000
    );
    lock.load_native().unwrap();
}

#[test]
fn a_native_trial_finds_what_does_not_exclude_or_crashes() {
    let lock = "void lab_lock(void *p, void *c) { (void)p; (void)c; }\n";
    let error = compile(&[HEAD, lock, UNLOCK]).unwrap().load_native();
    // Two threads may be lucky on one CPU, so either answer is right.
    if let Err(error) = error {
        assert_says(&error.to_string(), &["does not exclude"]);
    }
    let lock = "void lab_lock(void *p, void *c) { (void)c; *(volatile long *)8 = 1; (void)p; }\n";
    let error = compile(&[HEAD, lock, UNLOCK])
        .unwrap()
        .load_native()
        .unwrap_err();
    assert_says(
        &error.to_string(),
        &["crashed at mylock.c:5", "address 0x8"],
    );
}
