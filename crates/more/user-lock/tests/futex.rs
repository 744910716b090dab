//! Locks in C that sleep, in three worlds: the mutexes of Drepper's paper.

use locklab_host::error::Error;
use locklab_sim::{FigureKey, Machine, Scenario, Stop, Workload};
use locklab_user_lock::UserLock;
use locklab_verify::{Failure, Limits, Outcome, Property, SHOWN, check, interleaving};

fn lock(file: &str, flags: &[&str]) -> UserLock {
    let path = format!("{}/tests/c/futex/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    UserLock::named(&path, &flags).unwrap().unwrap()
}

fn limits(executions: u64) -> Limits {
    Limits {
        executions,
        ..Limits::default()
    }
}

/// Returns every promise that is broken, with what is said and the trace.
fn broken(properties: &[Property], executions: u64) -> Vec<(&'static str, Failure)> {
    let checked = properties.iter().map(|property| {
        let explored = check(property, limits(executions), None);
        (property.name, explored.outcome)
    });
    let fails = checked.filter_map(|(name, outcome)| match outcome {
        Outcome::Fails(failure) => Some((name, failure)),
        _ => None,
    });
    fails.collect()
}

#[test]
fn the_second_and_the_third_mutex_keep_their_promises() {
    for file in ["drepper2.c", "drepper3.c"] {
        let broken = broken(&lock(file, &[]).promises().unwrap(), 1_000);
        assert!(broken.is_empty(), "{file}: {broken:?}");
    }
}

/// Its waiters queue, each with a word of its own to sleep on.
#[test]
fn the_mutex_with_a_stated_wait_keeps_its_promises() {
    let broken = |flags: &[&str]| {
        let promises = lock("stated_wait.c", flags).promises();
        broken(&promises.unwrap(), 300)
    };
    let none = broken(&[]);
    assert!(none.is_empty(), "{none:?}");
    for flag in ["-DNO_KICK", "-DNO_WAKE"] {
        let found = broken(&[flag]);
        let deadlock = |(_, failure): &(&str, Failure)| failure.message.contains("deadlock");
        assert!(found.iter().any(deadlock), "{flag}: {found:?}");
    }
}

#[test]
fn the_count_of_the_first_mutex_wraps_around() {
    let promises = lock("drepper1.c", &["-DSTEP=0x80000000u"]).promises();
    let broken = broken(&promises.unwrap(), 3_000);
    let names: Vec<&str> = broken.iter().map(|(name, _)| *name).collect();
    assert!(names.contains(&"exclusion"), "{names:?}");
}

/// A lost wake-up is a deadlock, and the trace says who sleeps and whom a wake-up found.
#[test]
fn a_lost_wake_up_is_a_deadlock_with_its_trace() {
    for (file, flag, said) in [
        ("drepper3.c", "-DEARLY", "wakes nobody: state"),
        ("drepper3.c", "-DNOBODY", "wakes nobody: other"),
        ("drepper3.c", "-DFORGETS", "wakes one: state"),
        ("drepper2.c", "-DNO_CHECK", "is about to sleep: state"),
    ] {
        let broken = broken(&lock(file, &[flag]).promises().unwrap(), 3_000);
        let found = broken.iter().find(|(_, failure)| {
            let trace = interleaving(&failure.trace, SHOWN);
            failure.message.contains("deadlock")
                && trace.contains("sleeps: state")
                && trace.contains(said)
        });
        assert!(found.is_some(), "{file} {flag}: {broken:?}");
    }
}

fn scenario(machine: &Machine, threads: usize) -> Scenario {
    let work = Workload::Matrix {
        critical: 200,
        non_critical: 50,
    };
    let mut scenario = Scenario::new(machine.clone(), "mine", work, threads);
    scenario.stop = Stop::Acquisitions(2_000);
    scenario
}

#[test]
fn a_simulated_mutex_sleeps_and_pays_for_it() {
    let machine = Machine::builtin("xeon-8380-2s").unwrap();
    let slow = machine
        .clone()
        .with(FigureKey::SchedulerWakeUs, 60.0)
        .unwrap();
    for file in ["drepper1.c", "drepper2.c", "drepper3.c"] {
        let lock = lock(file, &[]);
        let rate = |machine: &Machine, threads| {
            let simulation = lock.simulate(&scenario(machine, threads));
            simulation
                .unwrap_or_else(|e| panic!("{file}: {e}"))
                .outcome
                .ops_per_s
        };
        assert_eq!(
            rate(&machine, 1),
            rate(&slow, 1),
            "{file}: alone nobody sleeps"
        );
        assert_ne!(rate(&slow, 4), rate(&machine, 4), "{file}");
    }
}

/// The twin of ours, which is the third mutex, too.
#[test]
fn a_simulated_mutex_is_as_fast_as_ours() {
    let machine = Machine::builtin("xeon-8380-2s").unwrap();
    for threads in [1, 4] {
        let mut work = scenario(&machine, threads);
        let theirs = lock("drepper3.c", &[]).simulate(&work).unwrap().outcome;
        work.lock = "futex".to_owned();
        let ours = locklab_sim::run(&work).unwrap();
        let ratio = theirs.ops_per_s / ours.ops_per_s;
        assert!((0.95..1.05).contains(&ratio), "{threads}: {ratio}");
    }
}

#[test]
fn a_lost_wake_up_is_a_deadlock_of_the_simulation() {
    let machine = Machine::builtin("flat-16").unwrap();
    let lock = written(
        "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tif (atomic_fetch_add(&l->held, 1))
\t\tlab_futex_wait(&l->other, 0); }
",
    );
    let error = lock.simulate(&scenario(&machine, 2)).unwrap_err();
    let said = error.to_string();
    for part in ["deadlock", "halted on lock", "mine.c:11"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_mutex_that_sleeps_passes_the_trial_on_this_machine() {
    for file in ["drepper1.c", "drepper2.c", "drepper3.c"] {
        lock(file, &[]).load_native().unwrap();
    }
}

fn written(body: &str) -> UserLock {
    // It is compiled again when it is simulated.
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join("mine.c");
    let text = format!(
        "#include <locklab_lock.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
struct l {{ _Atomic int held, other; char odd[5]; }};
LOCKLAB_LOCK(mine, struct l, lab_no_context);
void lab_unlock(void *p, void *c) {{ struct l *l = p; (void)c; atomic_fetch_sub(&l->held, 1); }}
{body}"
    );
    std::fs::write(&path, text).unwrap();
    UserLock::named(path.to_str().unwrap(), &[])
        .unwrap()
        .unwrap()
}

/// Returns what is wrong with a call is one sentence with its line, in both modelled
/// worlds.
#[test]
fn a_wrong_call_is_a_sentence_with_its_line() {
    let machine = Machine::builtin("flat-16").unwrap();
    let lock = "void lab_lock(void *p, void *c) { struct l *l = p; (void)c; long there[1] = {0};
\t(void)l; (void)there;
\twhile (atomic_exchange(&l->held, 1))
\t\t";
    for (call, said) in [
        (
            "lab_futex_wait(l->odd + 1, 0); }\n",
            "the futex word at mine.c:12 is not aligned to 4 bytes",
        ),
        (
            "lab_futex_wait((void *)4096, 0); }\n",
            "mine.c:12 (address 0x1000",
        ),
        (
            "syscall(SYS_futex, &l->held, 3, 1, 0, 0, 0); }\n",
            "operation 3 of a futex at mine.c:12 cannot be simulated or checked",
        ),
        (
            "syscall(SYS_futex, &l->held, 128, 1, there, 0, 0); }\n",
            "FUTEX_WAIT with a time-out at mine.c:12 cannot be simulated or checked",
        ),
        (
            "syscall(SYS_sched_yield); }\n",
            "of the system at mine.c:12 cannot be simulated or checked",
        ),
    ] {
        let lock = written(&[lock, call].concat());
        let simulated = lock.simulate(&scenario(&machine, 2)).unwrap_err();
        assert!(simulated.to_string().contains(said), "{call}{simulated}");
        let broken = broken(&lock.promises().unwrap(), 100);
        let found = |(_, failure): &(_, Failure)| failure.message.contains(said);
        assert!(broken.iter().any(found), "{call}{broken:?}");
    }
}

/// Returns where nothing is simulated, any C will do.
#[test]
fn what_cannot_be_simulated_is_measured() {
    let lock = written(
        "static __thread int mine;
void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tfree(malloc(8)); mine++;
\twhile (atomic_exchange(&l->held, 1)) __asm__ volatile(\"\" ::: \"memory\"); }
",
    );
    lock.load_native().unwrap();
    let error = lock.register("mine").unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error:?}");
}
