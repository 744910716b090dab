//! Locks that others wrote, and bug reports of public trackers: each judged as its
//! first lines say. A correct lock is never accused, a broken one never passed. So are
//! programs with `main`.

use locklab_user_lock::{OwnTest, TestLimits, TestOutcome, TestResult, UserLock};
use locklab_verify::{Failure, Limits, Outcome, Property, SHOWN, check, interleaving};

/// Executions of a promise that is broken: fewer than by default, and enough for each of these.
const UNTIL_BROKEN: u64 = 4_000;
/// Executions of a promise that is kept. A false accusation is mostly of the first ones, and
/// nothing ends these early.
const KEPT: u64 = 1_500;

fn promises(file: &str, flags: &[&str]) -> Vec<Property> {
    let path = format!("{}/tests/c/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let lock = UserLock::named(&path, &flags).unwrap().unwrap();
    lock.promises().unwrap()
}

/// Returns what each promise comes to, those of these names only if there are any.
/// Printed for whoever runs this with `--nocapture`: CPU time is last.
fn outcomes(
    file: &str,
    flags: &[&str],
    only: &[&str],
    executions: u64,
) -> Vec<(&'static str, Outcome, Vec<String>)> {
    let limits = Limits {
        executions,
        ..Limits::default()
    };
    let properties = promises(file, flags);
    let chosen = properties
        .iter()
        .filter(|property| only.is_empty() || only.contains(&property.name));
    chosen
        .map(|property| {
            let explored = check(property, limits, None);
            let outcome = match &explored.outcome {
                Outcome::Fails(failure) => format!("FAILS: {}", failure.message),
                outcome => format!("{outcome:?}"),
            };
            eprintln!(
                "{file} {flags:?} {}: {outcome} {:?} {} {:.1}s",
                property.name,
                explored.preemptions,
                explored.executions,
                explored.took.as_secs_f64()
            );
            for left in &explored.left_out {
                eprintln!("    {left}");
            }
            (property.name, explored.outcome, explored.left_out)
        })
        .collect()
}

/// Checks that no promise is broken, and that what is cut says what was left out.
#[track_caller]
fn keeps(file: &str, flags: &[&str]) {
    let mut wrong = String::new();
    for (name, outcome, left_out) in outcomes(file, flags, &[], KEPT) {
        match outcome {
            Outcome::Fails(Failure { message, trace }) => {
                wrong += &format!("{name}: {message}\n{}\n", interleaving(&trace, SHOWN));
            }
            Outcome::Cut => assert!(!left_out.is_empty(), "{name}: cut, and nothing left out"),
            Outcome::Holds => assert!(left_out.is_empty(), "{name}: holds, but {left_out:?}"),
        }
    }
    assert!(wrong.is_empty(), "{file} {flags:?}\n{wrong}");
}

/// Checks that this promise is broken, as said.
#[track_caller]
fn breaks(file: &str, flags: &[&str], promise: &str, said: &str) {
    let all = outcomes(file, flags, &[promise], UNTIL_BROKEN);
    let [(_, Outcome::Fails(failure), _)] = &all[..] else {
        panic!("{file} {flags:?}: {promise} is not broken: {all:?}");
    };
    let table = interleaving(&failure.trace, SHOWN);
    assert!(
        failure.message.contains(said),
        "{}\n{table}",
        failure.message
    );
    // What precedes the model has no steps.
    let alone = failure.message.contains("out of bounds");
    assert!(alone || !failure.trace.is_empty(), "nothing to follow");
}

/// Two read-modify-writes of a waiter in a row read different values, as long as its
/// neighbour acquires once. (If that comes again between the two, it writes the same
/// value anew: so other promises break that assertion, in executions of C11.)
#[test]
fn read_modify_writes_read_the_last_value() {
    let all = outcomes("others/rmw_repeat.c", &[], &["exclusion"], UNTIL_BROKEN);
    assert!(matches!(&all[..], [(_, Outcome::Holds, _)]), "{all:?}");
}

/// A wait that looks at a plain flag under a guard writes in each round, and is explored
/// to its end nevertheless.
#[test]
fn a_flag_that_is_polled_under_a_guard_is_explored_to_the_end() {
    for (name, outcome, left_out) in outcomes("others/guard_poll.c", &[], &[], UNTIL_BROKEN) {
        // There a neighbour sees what a round has written, again and again.
        let is_seen = name == "interrupted in the queue";
        let explored = is_seen || matches!(outcome, Outcome::Holds);
        assert!(explored, "{name}: {left_out:?}");
    }
}

macro_rules! kept {
    ($($name:ident: $file:literal $flags:expr;)*) => {$(
        #[test]
        fn $name() {
            keeps($file, &$flags);
        }
    )*};
}

macro_rules! broken {
    ($($name:ident: $file:literal $flags:expr, $promise:literal, $said:literal;)*) => {$(
        #[test]
        fn $name() {
            breaks($file, &$flags, $promise, $said);
        }
    )*};
}

// Nothing on a stack is shared that only its own thread accesses, atomically or not.
kept! {
    an_atomic_local_variable: "others/atomic_local.c" [];
    an_atomic_parameter: "others/atomic_local.c" ["-DPARAMETER"];
    a_plain_local_variable: "others/atomic_local.c" ["-DPLAIN_LOCAL"];
}

kept! {
    bounded_without_pause_fixed: "others/bounded_without_pause.c" ["-DFIXED"];
    two_words: "others/two_words.c" [];
    two_words_undo: "others/two_words.c" ["-DUNDO"];
    ck_bytelock_fixed: "others/ck_bytelock.c" ["-DFIXED"];
    ck_dec_fixed: "others/ck_dec.c" ["-DFIXED"];
    d1_rw_cas: "others/d1_rw_cas.c" [];
    d1_rw_cas_inner: "others/d1_rw_cas.c" ["-DINNER"];
    d1_version_lock: "others/d1_version_lock.c" [];
    d1_version_lock_inlined: "others/d1_version_lock.c" ["-DINLINED"];
    d2_undo_loop: "others/d2_undo_loop.c" [];
    d2_undo_loop_polite: "others/d2_undo_loop.c" ["-DPOLITE"];
    fence_unlock: "others/fence_unlock.c" [];
    mcs_relaxed_cas_fixed: "others/mcs_relaxed_cas.c" ["-DFIXED"];
    netdata_rw: "others/netdata_rw.c" [];
    netdata_rw_fixed: "others/netdata_rw.c" ["-DFIXED"];
    nuttx_rw_fixed: "others/nuttx_rw.c" ["-DFIXED"];
    oiio_rw_new: "others/oiio_rw_new.c" [];
    oiio_rw_old: "others/oiio_rw_old.c" [];
    otel_bounded_fixed: "others/otel_bounded.c" ["-DFIXED"];
    otel_bounded_fixed_few: "others/otel_bounded.c" ["-DFIXED", "-DTRIES=2"];
    peterson: "others/peterson.c" [];
    plain_unlock: "others/plain_unlock.c" [];
    sel4_clh_fixed: "others/sel4_clh.c" ["-DFIXED"];
    stk473: "others/stk473.c" [];
    swap_plain_fixed: "others/swap_plain.c" ["-DFIXED"];
    weak_try_fixed: "others/weak_try.c" ["-DFIXED"];
    bulk_copy: "others/bulk_copy.c" [];
    waiter_count: "others/waiter_count.c" [];
    linux_rwsem_read_fixed: "others/linux_rwsem_read.c" ["-DFIXED"];
    arceos_weak_fixed: "others/arceos_weak.c" ["-DFIXED"];
    srw_exclusive_fixed: "others/srw_exclusive.c" ["-DFIXED"];
    zephyr_rmw_fixed: "others/zephyr_rmw.c" ["-DFIXED"];
    boost_starve_fixed: "others/boost_starve.c" ["-DFIXED"];
    guard_poll: "others/guard_poll.c" [];
    touch_after_without_claim: "others/touch_after.c" [];
    touch_after_fixed: "others/touch_after.c" ["-DFIXED", "-DENDS"];
    benaphore_fixed: "others/benaphore.c" ["-DFIXED"];
    silk_rw_fixed: "others/silk_rw.c" ["-DFIXED"];
    wt_ticket_fixed: "others/wt_ticket.c" ["-DSTART=255", "-DFIXED"];
}

broken! {
    bounded_without_pause: "others/bounded_without_pause.c" [], "exclusion", "not ordered";
    ck_bytelock: "others/ck_bytelock.c" [], "a reader and a writer", "not ordered";
    ck_dec: "others/ck_dec.c" [], "exclusion", "not ordered";
    clio_rw: "others/clio_rw.c" [], "a reader and a writer", "not ordered";
    mcs_relaxed_cas: "others/mcs_relaxed_cas.c" [], "exclusion", "not ordered";
    nuttx_rw: "others/nuttx_rw.c" [], "a reader and a writer", "not ordered";
    otel_bounded: "others/otel_bounded.c" [], "exclusion", "not ordered";
    otel_bounded_few: "others/otel_bounded.c" ["-DTRIES=2"], "exclusion", "not ordered";
    peterson_without_a: "others/peterson.c" ["-DNO_A"], "exclusion", "not ordered";
    peterson_without_b: "others/peterson.c" ["-DNO_B"], "exclusion", "not ordered";
    sel4_clh: "others/sel4_clh.c" [], "exclusion", "not ordered";
    swap_plain: "others/swap_plain.c" [], "exclusion", "not ordered";
    swap_plain_barrier: "others/swap_plain.c" ["-DBARRIER"], "exclusion", "not ordered";
    weak_try: "others/weak_try.c" [], "try_lock does not wait", "nobody holds or wants the lock";
    weak_try_doc: "others/weak_try.c" ["-DDOC"], "try_lock does not wait", "";
    linux_rwsem_read: "others/linux_rwsem_read.c" [], "a reader and a writer", "not ordered";
    arceos_weak: "others/arceos_weak.c" [], "alone", "deadlock";
    srw_exclusive: "others/srw_exclusive.c" [], "readers that waited", "do not share";
    srw_exclusive_plain: "others/srw_exclusive.c" ["-DPLAIN"], "two readers at once", "do not share";
    zephyr_rmw: "others/zephyr_rmw.c" [], "exclusion", "at the same time";
    boost_starve: "others/boost_starve.c" [], "readers pass a writer", "1 at most";
    touch_after: "others/touch_after.c" ["-DENDS"], "ends after an unlock", "use after free";
    depth: "others/depth.c" [], "exclusion", "two threads are inside at the same time";
    benaphore: "others/benaphore.c" [], "recursion", "does not acquire it again";
    poll_for_ever: "others/poll_for_ever.c" [], "alone", "deadlock";
    silk_rw: "others/silk_rw.c" [], "two readers try", "try_read fails";
    silk_rw_blocks: "others/silk_rw.c" ["-DFIXED", "-DBLOCKS"], "downgrade, readers enter", "deadlock";
    wt_ticket: "others/wt_ticket.c" ["-DSTART=255"], "exclusion", "deadlock";
    bulk_copy_outside: "others/bulk_copy.c" ["-DOUTSIDE"], "exclusion", "data race";
    no_init: "bad/no_init.c" [], "alone", "there is no lab_init";
    unaligned_futex: "bad/unaligned_futex.c" [], "exclusion", "not aligned to 4 bytes";
    waiter_count_without_fence: "others/waiter_count.c" ["-DNO_FENCE"], "exclusion", "deadlock";
    before_array: "bad/before_array.c" [], "used before", "before the start of 'slots'";
    both_wait: "bad/both_wait.c" [], "exclusion", "deadlock: nobody ends the wait";
}

fn explored(path: &std::path::Path) -> TestResult {
    let limits = TestLimits {
        executions: 10_000,
        duration: None,
    };
    let test = OwnTest::named(path.to_str().unwrap(), &[]).unwrap();
    test.expect("a file with main").check(limits)
}

#[test]
fn programs_are_judged_as_their_first_lines_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/programs");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let expected = text.trim_start_matches("/* ").split(':').next().unwrap();
        let result = explored(&file);
        let found = match &result.outcome {
            TestOutcome::Holds => "holds",
            TestOutcome::Cut(_) => "cut",
            TestOutcome::Fails(why) => {
                assert!(!result.steps.is_empty(), "{}: no steps", file.display());
                why
            }
            TestOutcome::NotChecked(why) => why,
        };
        assert!(found.contains(expected), "{}: {found}", file.display());
    }
}

#[test]
fn a_program_that_needs_more_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("more.c");
    for (body, wanted) in [
        ("__asm__(\"mfence\");", "inline assembly (`mfence`)"),
        (
            "long time(long *); time(0);",
            "'time' cannot be checked, since the checker has no clock",
        ),
        (
            "int setjmp(void *); setjmp(0);",
            "has no jumps between functions",
        ),
    ] {
        std::fs::write(&path, format!("int main(void)\n{{\n{body}\n}}\n")).unwrap();
        let refused = OwnTest::named(path.to_str().unwrap(), &[])
            .unwrap_err()
            .to_string();
        assert!(refused.contains("more.c:3"), "{refused}");
        assert!(refused.contains(wanted), "{refused}");
    }
}
