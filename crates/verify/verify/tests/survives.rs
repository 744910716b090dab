//! The checker survives what it checks: a lock that crashes, hangs or ends
//! the process has broken a promise, and the report says how it came there.

#![cfg(unix)]

use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use locklab_verify::random::{Random, draw_lock};
use locklab_verify::{
    Failure, Limits, Loom, Outcome, SHOWN, check, interleaving, properties, properties_of,
};

locklab_verify::keep_stacks!();

/// A test-and-set lock that goes wrong when it finds itself held.
struct Wrong<P: Platform, const HOW: u8>(P::U32);

const NULL: u8 = 0;
const WILD: u8 = 1;
const ENDLESS: u8 = 2;
const DEEP: u8 = 3;
const ABORTS: u8 = 4;
const EXITS: u8 = 5;
const OVERFLOWS: u8 = 6;

impl<P: Platform, const HOW: u8> Default for Wrong<P, HOW> {
    fn default() -> Self {
        Self(P::U32::new(0))
    }
}

#[allow(unconditional_recursion)]
#[inline(never)]
fn deeper(n: u64) -> u64 {
    std::hint::black_box(deeper(std::hint::black_box(n) + 1)) + 1
}

fn go_wrong(how: u8) {
    match how {
        // SAFETY: it is not; that is its purpose.
        NULL => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        // SAFETY: the same.
        WILD => unsafe { std::ptr::without_provenance_mut::<u8>(1 << 46).write_volatile(1) },
        ENDLESS => loop {
            std::hint::spin_loop();
        },
        DEEP => {
            deeper(0);
        }
        ABORTS => {
            // The test does not capture this, unlike `eprintln`.
            let words = b"locklab: more waiters than there is room for\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), words);
            std::process::abort()
        }
        EXITS => std::process::exit(7),
        _ => {
            let most = std::hint::black_box(u32::MAX);
            let sum = most.checked_add(1).expect("tickets overflow");
            std::hint::black_box(sum);
        }
    }
}

// SAFETY: it is no lock; that is its purpose.
unsafe impl<P: Platform, const HOW: u8> RawLock<P> for Wrong<P, HOW> {
    type Ctx = ();
    const INFO: Info = Info {
        name: "wrong",
        try_lock: false,
        ..Info::BASE
    };

    unsafe fn lock(&self, (): &()) {
        while self.0.swap(1, Ordering::Acquire) != 0 {
            go_wrong(HOW);
        }
    }

    unsafe fn unlock(&self, (): &()) {
        self.0.store(0, Ordering::Release);
    }
}

fn failure<const HOW: u8>() -> Failure {
    let properties = properties::<Wrong<Loom, HOW>>();
    let exclusion = properties.iter().find(|p| p.name == "exclusion");
    let explored = check(exclusion.expect("a property"), Limits::default(), None);
    match explored.outcome {
        Outcome::Fails(failure) => failure,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn what_ends_a_process_is_a_failed_promise() {
    for (failure, said) in [
        (failure::<NULL>(), "null pointer (address 0x8)"),
        (
            failure::<WILD>(),
            "unmapped memory (address 0x400000000000)",
        ),
        (failure::<ENDLESS>(), "endless loop"),
        (failure::<DEEP>(), "the stack overflows"),
        (
            failure::<ABORTS>(),
            "SIGABRT (more waiters than there is room for)",
        ),
        (failure::<EXITS>(), "exit code 7"),
        (failure::<OVERFLOWS>(), "tickets overflow"),
    ] {
        assert!(
            failure.message.contains(said),
            "{said}: {}",
            failure.message
        );
        // The schedule that led there: both have swapped.
        let threads: Vec<usize> = failure.trace.iter().map(|step| step.thread).collect();
        assert!(
            threads.contains(&0) && threads.contains(&1),
            "{said}: {threads:?}"
        );
        assert!(
            failure
                .trace
                .iter()
                .all(|step| step.file == "survives.rs" || step.what == "IS INSIDE")
        );
        let table = interleaving(&failure.trace, SHOWN);
        assert!(
            table.lines().all(|line| line.chars().count() <= 72),
            "{table}"
        );
    }
}

#[test]
fn random_schedules_survive_too() {
    let drawn = draw_lock::<Wrong<Random, NULL>>(1, 100);
    let failure = drawn.failure.expect("it crashes");
    assert!(
        failure.message.contains("null pointer"),
        "{}",
        failure.message
    );
}

/// Uses more of the stack than a modelled thread has.
#[inline(never)]
fn use_256_kib() {
    std::hint::black_box([std::hint::black_box(1_u8); 256 << 10]);
}

/// What reads a compiled lock's debug information may use as much as it likes.
#[test]
fn what_prepares_a_model_has_the_stack_of_the_process() {
    let all = properties_of("ticket").unwrap();
    let exclusion = all.iter().find(|p| p.name == "exclusion").unwrap();
    let prepared = exclusion.clone().prepared(use_256_kib);
    assert_eq!(
        check(&prepared, Limits::default(), None).outcome,
        Outcome::Holds
    );
    let Outcome::Fails(failure) = check(
        &exclusion.clone().after(use_256_kib),
        Limits::default(),
        None,
    )
    .outcome
    else {
        panic!("a modelled thread has a larger stack than 32 KiB");
    };
    assert_eq!(failure.message, "crash: the stack overflows");
}
