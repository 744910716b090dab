//! Tests what the checker reaches of C11's memory model, in Rust and in C: nothing
//! that RC11 forbids, and all that it allows but for what is listed as not reached.
//! And its rule for waits, against exploration without it and against a reference
//! that shares nothing with it, on programs that are drawn.

#[path = "litmus/program.rs"]
mod program;
#[path = "litmus/reference.rs"]
mod reference;

use Expected::{Forbidden, Later, Reached, Unreached};
use locklab_user_lock::UserLock;
use locklab_verify::{Explored, Limits, Outcome, litmus, outcomes};
use program::Program;
use reference::{Sequence, allowed};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// RC11 forbids it.
    Forbidden,
    /// RC11 allows it, and it is explored.
    Reached,
    /// RC11 and C11 forbid it, Rust and C++ from 2020 on allow it, and it is explored.
    Later,
    /// RC11 allows it, and it is not explored: docs/verification.md says why.
    Unreached,
}

struct Row {
    name: &'static str,
    program: &'static str,
    shown: &'static str,
    outcome: &'static [u64],
    expected: Expected,
}

/// The table of docs/verification.md: W writes, R reads, A adds, X swaps, C
/// and K are strong and weak compare-and-swaps, F is a fence.
macro_rules! table {
    ($($name:literal: $program:literal, $shown:literal = $outcome:expr, $expected:ident;)*) => {
        const TABLE: &[Row] = &[$(Row {
            name: $name,
            program: $program,
            shown: $shown,
            outcome: &$outcome,
            expected: $expected,
        }),*];
    };
}

table! {
    "CoRR": "W x 1 rlx | R x r0 rlx; R x r1 rlx", "r0 r1" = [1, 0], Forbidden;
    "two readers, one writes": "R x r0 rlx | R x r1 rlx; W x 1 rlx", "r0 r1" = [1, 0], Reached;
    "CoRR, two writers": "W x 1 rlx | W x 2 rlx | R x r0 rlx; R x r1 rlx | R x r2 rlx; R x r3 rlx",
        "r0 r1 r2 r3" = [1, 2, 2, 1], Forbidden;
    "CoWW": "W x 1 rlx; W x 2 rlx | R x r0 rlx", "x" = [1], Forbidden;
    "CoRW, own": "R x r0 rlx; W x 1 rlx | R x r1 rlx", "r0" = [1], Forbidden;
    "CoRW": "R x r0 rlx; W x 1 rlx | W x 2 rlx", "r0 x" = [2, 2], Forbidden;
    "CoWR": "W x 1 rlx; R x r0 rlx | W x 2 rlx", "r0 x" = [2, 1], Forbidden;
    "SB rlx": "W x 1 rlx; R y r0 rlx | W y 1 rlx; R x r1 rlx", "r0 r1" = [0, 0], Reached;
    "SB rel acq": "W x 1 rel; R y r0 acq | W y 1 rel; R x r1 acq", "r0 r1" = [0, 0], Reached;
    "SB sc": "W x 1 sc; R y r0 sc | W y 1 sc; R x r1 sc", "r0 r1" = [0, 0], Forbidden;
    "SB fences": "W x 1 rlx; F sc; R y r0 rlx | W y 1 rlx; F sc; R x r1 rlx", "r0 r1" = [0, 0],
        Forbidden;
    "SB fences acq rel": "W x 1 rlx; F ar; R y r0 rlx | W y 1 rlx; F ar; R x r1 rlx",
        "r0 r1" = [0, 0], Reached;
    "SB one fence": "W x 1 rlx; F sc; R y r0 rlx | W y 1 rlx; R x r1 rlx", "r0 r1" = [0, 0],
        Reached;
    "MP rlx": "W x 1 rlx; W y 1 rlx | R y r0 rlx; R x r1 rlx", "r0 r1" = [1, 0], Reached;
    "MP rel rlx": "W x 1 rlx; W y 1 rel | R y r0 rlx; R x r1 rlx", "r0 r1" = [1, 0], Reached;
    "MP rlx acq": "W x 1 rlx; W y 1 rlx | R y r0 acq; R x r1 rlx", "r0 r1" = [1, 0], Reached;
    "MP rel acq": "W x 1 rlx; W y 1 rel | R y r0 acq; R x r1 rlx", "r0 r1" = [1, 0], Forbidden;
    "MP fences": "W x 1 rlx; F rel; W y 1 rlx | R y r0 rlx; F acq; R x r1 rlx", "r0 r1" = [1, 0],
        Forbidden;
    "MP fence, acq": "W x 1 rlx; F rel; W y 1 rlx | R y r0 acq; R x r1 rlx", "r0 r1" = [1, 0],
        Forbidden;
    "MP rel, fence": "W x 1 rlx; W y 1 rel | R y r0 rlx; F acq; R x r1 rlx", "r0 r1" = [1, 0],
        Forbidden;
    "MP one fence": "W x 1 rlx; F rel; W y 1 rlx | R y r0 rlx; R x r1 rlx", "r0 r1" = [1, 0],
        Reached;
    "LB": "R x r0 rlx; W y 1 rlx | R y r1 rlx; W x 1 rlx", "r0 r1" = [1, 1], Forbidden;
    "2+2W rlx": "W x 1 rlx; W y 2 rlx | W y 1 rlx; W x 2 rlx", "x y" = [1, 1], Reached;
    "2+2W rel": "W x 1 rel; W y 2 rel | W y 1 rel; W x 2 rel", "x y" = [1, 1], Reached;
    "2+2W sc": "W x 1 sc; W y 2 sc | W y 1 sc; W x 2 sc", "x y" = [1, 1], Forbidden;
    "2+2W fences": "W x 1 rlx; F sc; W y 2 rlx | W y 1 rlx; F sc; W x 2 rlx", "x y" = [1, 1],
        Forbidden;
    "S": "W x 2 rlx; W y 1 rel | R y r0 acq; W x 1 rlx", "r0 x" = [1, 2], Forbidden;
    "S rlx": "W x 2 rlx; W y 1 rlx | R y r0 rlx; W x 1 rlx", "r0 x" = [1, 2], Reached;
    "IRIW acq": "W x 1 rel | W y 1 rel | R x r0 acq; R y r1 acq | R y r2 acq; R x r3 acq",
        "r0 r1 r2 r3" = [1, 0, 1, 0], Reached;
    "IRIW sc": "W x 1 sc | W y 1 sc | R x r0 sc; R y r1 sc | R y r2 sc; R x r3 sc",
        "r0 r1 r2 r3" = [1, 0, 1, 0], Forbidden;
    "IRIW fences":
        "W x 1 rlx | W y 1 rlx | R x r0 rlx; F sc; R y r1 rlx | R y r2 rlx; F sc; R x r3 rlx",
        "r0 r1 r2 r3" = [1, 0, 1, 0], Forbidden;
    "WRC rlx": "W x 1 rlx | R x r0 rlx; W y 1 rlx | R y r1 rlx; R x r2 rlx",
        "r0 r1 r2" = [1, 1, 0], Reached;
    "WRC": "W x 1 rlx | R x r0 rlx; W y 1 rel | R y r1 acq; R x r2 rlx", "r0 r1 r2" = [1, 1, 0],
        Forbidden;
    "ISA2": "W x 1 rlx; W y 1 rel | R y r0 acq; W z 1 rel | R z r1 acq; R x r2 rlx",
        "r0 r1 r2" = [1, 1, 0], Forbidden;
    "release sequence, update": "W x 1 rlx; W y 1 rel | A y 1 r0 rlx | R y r1 acq; R x r2 rlx",
        "r0 r1 r2" = [1, 2, 0], Forbidden;
    "release sequence, own store": "W x 1 rlx; W y 1 rel; W y 2 rlx | R y r0 acq; R x r1 rlx",
        "r0 r1" = [2, 0], Later;
    "no release sequence": "W x 1 rlx; W y 1 rel | R y r2 rlx; W y 2 rlx | R y r0 acq; R x r1 rlx",
        "r2 r0 r1" = [1, 2, 0], Reached;
    "update, both read 0": "A x 1 r0 rlx | A x 1 r1 rlx", "r0 r1" = [0, 0], Forbidden;
    "update, lost": "A x 1 r0 ar | A x 1 r1 ar", "x" = [1], Forbidden;
    "swap, both win": "X x 1 r0 acq | X x 1 r1 acq", "r0 r1" = [0, 0], Forbidden;
    "compare, both win": "C x 0 1 r0 rlx | C x 0 2 r1 rlx", "r0 r1" = [0, 0], Forbidden;
    "update, a store between": "A x 2 r0 rlx | W x 1 rlx", "r0 x" = [0, 2], Forbidden;
    "update before a store": "A x 2 r0 rlx | W x 1 rlx", "r0 x" = [0, 1], Reached;
    "two updates read the same": "A x 2 r0 rlx; A x 2 r1 rlx | W x 9 rlx", "r0 r1" = [0, 0],
        Forbidden;
    "update, then an older value": "A x 2 r0 rlx; R x r1 rlx | W x 1 rlx; W x 4 rlx",
        "r0 r1" = [1, 1], Forbidden;
    "update of the earlier of two": "A x 2 r0 rlx; R x r1 rlx | W x 1 rlx; W x 4 rlx",
        "r0 r1 x" = [1, 3, 4], Reached;
    "2+2W, one update": "W x 1 rlx; A y 4 r0 rlx | W y 1 rlx; W x 2 rlx", "r0 x y" = [0, 1, 1],
        Reached;
    "failed compare reads an older value":
        "W x 1 rlx; W y 1 rlx | R y r0 rlx; C x 5 6 r1 rlx", "r0 r1" = [1, 0], Unreached;
    "weak compare fails": "K x 0 1 r0 rlx | R x r1 rlx", "r0 x" = [0, 0], Reached;
    "strong compare fails": "C x 0 1 r0 rlx | R x r1 rlx", "x" = [0], Forbidden;
}

fn limits() -> Limits {
    Limits {
        executions: 12_000,
        ..Limits::default()
    }
}

fn in_rust(program: &Program, pruned: bool) -> (Explored, BTreeSet<u64>) {
    let subject: Arc<dyn locklab_verify::Subject> = Arc::new(program.clone());
    outcomes(&litmus(&subject, program.threads.len()), limits(), pruned)
}

fn in_c(program: &Program, pruned: bool) -> (Explored, BTreeSet<u64>) {
    of_file(&program.c(), program.threads.len(), pruned)
}

fn of_file(text: &str, threads: usize, pruned: bool) -> (Explored, BTreeSet<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("litmus.c");
    std::fs::write(&path, text).unwrap();
    let lock = UserLock::named(path.to_str().unwrap(), &[]);
    let litmus = lock.unwrap().unwrap().litmus(threads).unwrap();
    outcomes(&litmus, limits(), pruned)
}

fn has_sc_accesses(program: &str) -> bool {
    let ops = program.split(['|', ';']).map(str::trim);
    ops.into_iter()
        .any(|op| op.ends_with(" sc") && !op.starts_with('F'))
}

/// Returns the rows that are wrong in what is explored by `run`.
fn wrong_rows(run: impl Fn(&Program) -> (Explored, BTreeSet<u64>), weak: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in TABLE {
        let program = Program::parse(row.program, row.shown);
        let number = row.outcome.iter().fold(0, |all, value| all << 4 | value);
        let expected = match row.expected {
            // Rust's platform has no weak compare-and-swap.
            Reached if !weak && row.name.starts_with("weak") => Unreached,
            // What loom does not reach, and C is not loom's.
            Unreached if weak => Reached,
            expected => expected,
        };
        let (explored, reached) = run(&program);
        let complete = explored.outcome == Outcome::Holds;
        let wanted = matches!(expected, Reached | Later);
        if !complete || reached.contains(&number) != wanted {
            wrong.push(format!("{}: {expected:?}, reached: {reached:x?}", row.name));
        }
        if !has_sc_accesses(row.program) {
            let sequence = [Sequence::WithOwnStores, Sequence::UpdatesOnly];
            let sequence = sequence[usize::from(row.expected == Later)];
            let allowed = allowed(&program, sequence).outcomes;
            if allowed.contains(&number) != (row.expected != Forbidden) {
                wrong.push(format!("{}: the reference differs: {allowed:x?}", row.name));
            }
            let more: Vec<_> = reached.difference(&allowed).collect();
            if !more.is_empty() {
                wrong.push(format!("{}: reached and forbidden: {more:x?}", row.name));
            }
        }
    }
    wrong
}

#[test]
fn litmus_tests_in_rust() {
    let wrong = wrong_rows(|program| in_rust(program, true), false);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn litmus_tests_in_c() {
    let wrong = wrong_rows(|program| in_c(program, true), true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A byte of a word is stored while the word is updated, and the other byte is read:
/// nothing is lost, and each read sees bytes of one value of the word.
#[test]
fn mixed_sizes_in_c() {
    let text = "#include <locklab_lock.h>\n#include <stdatomic.h>\n\
                union word { _Atomic unsigned all; _Atomic unsigned char byte[4]; };\n\
                LOCKLAB_LOCK(mixed, union word, lab_no_context);\n\
                void lab_lock(void *l, void *c) { (void)c; atomic_store_explicit(\n\
                &((union word *)l)->byte[0], 1, memory_order_relaxed); }\n\
                void lab_unlock(void *l, void *c) { (void)c; atomic_fetch_add_explicit(\n\
                &((union word *)l)->all, 256, memory_order_relaxed); }\n\
                int lab_is_locked(const void *l) { return atomic_load_explicit(\n\
                &((union word *)l)->all, memory_order_relaxed); }\n";
    let (explored, reached) = of_file(text, 2, true);
    assert_eq!(explored.outcome, Outcome::Holds);
    assert_eq!(reached, BTreeSet::from([0x101]));
}

/// A generator of numbers (xorshift): the same programs in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % bound
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Returns two threads of up to three operations on two words, most of them with a wait.
    fn program(&mut self) -> String {
        let mut register = 0;
        let threads = [(); 2].map(|()| {
            let ops = (0..1 + self.below(3)).map(|_| {
                let word = self.of(&["x", "y"]);
                let value = 1 + self.below(2);
                let (read, write) = (self.of(&["rlx", "acq"]), self.of(&["rlx", "rel"]));
                let mut kept = || {
                    register += 1;
                    format!("r{}", register - 1)
                };
                match self.below(9) {
                    0 => format!("R {word} {} {read}", kept()),
                    1..=3 => format!("W {word} {value} {write}"),
                    4 => format!("A {word} 1 {} ar", kept()),
                    5 => format!("F {}", self.of(&["rel", "acq", "sc"])),
                    6 => format!("L {word} {value} {read}"),
                    7 => format!("T {word} {} {value} {read}", value - 1),
                    _ => format!("E x y {value} {read}"),
                }
            });
            ops.collect::<Vec<_>>().join("; ")
        });
        threads.join(" | ")
    }
}

/// Compares what is explored with what is explored without the rule, and with the
/// reference. Returns how many outcomes there were, and how many of them were reached.
fn compare(
    programs: usize,
    run: impl Fn(&Program, bool) -> (Explored, BTreeSet<u64>),
) -> (usize, usize) {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let (mut all, mut reached) = (0, 0);
    for _ in 0..programs {
        let text = draw.program();
        let program = Program::parse(&text, "r0 r1 r2 r3 r4 r5");
        let allowed = allowed(&program, Sequence::UpdatesOnly);
        let (with, by_rule) = run(&program, true);
        let (without, by_all) = run(&program, false);
        let deadlock = |explored: &Explored| match &explored.outcome {
            Outcome::Fails(failure) => {
                assert!(
                    failure.message.starts_with("deadlock"),
                    "{text}: {failure:?}"
                );
                true
            }
            Outcome::Holds => false,
            Outcome::Cut => panic!("{text}: cut: {:?}", explored.left_out),
        };
        assert_eq!(deadlock(&with), allowed.deadlock, "{text}: {with:?}");
        assert_eq!(deadlock(&without), allowed.deadlock, "{text}: {without:?}");
        if !allowed.deadlock {
            assert_eq!(by_rule, by_all, "{text}");
        }
        let more: Vec<_> = by_rule.difference(&allowed.outcomes).collect();
        assert!(more.is_empty(), "{text}: reached and forbidden: {more:x?}");
        if !allowed.deadlock {
            all += allowed.outcomes.len();
            reached += by_rule.len();
        }
    }
    (all, reached)
}

#[test]
fn waits_are_parked_only_where_nothing_is_lost_in_rust() {
    let (all, reached) = compare(400, in_rust);
    println!("{reached} of {all} outcomes are reached");
    assert!(20 * reached > 19 * all, "{reached} of {all}");
}

#[test]
fn waits_are_parked_only_where_nothing_is_lost_in_c() {
    let (all, reached) = compare(12, in_c);
    println!("{reached} of {all} outcomes are reached");
    assert!(20 * reached > 19 * all, "{reached} of {all}");
}
