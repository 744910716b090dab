// SPDX-License-Identifier: GPL-2.0-or-later
//! Single programs, in QEMU's user mode.

use std::fs;

use crate::lab::{self, Lab, need};

#[test]
fn a_known_loop() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("a_known_loop");
    let program = lab.build("loop.S", "loop", &["-nostdlib"]);
    let run = lab.user("", &[program]);
    assert_eq!(
        run.output.status.code(),
        Some(7),
        "the program's own status"
    );
    assert_eq!(run.number("/instructions"), 2004);
    assert_eq!(run.number("/l1i_fetches"), 1);
    assert_eq!(run.number("/l1i_misses"), 1);
    assert_eq!(run.number("/user/instructions"), 2004);
    assert_eq!(run.number("/kernel/instructions"), 0);
    let mut golden: serde_json::Value = serde_json::from_str(include_str!("loop.json")).unwrap();
    golden["plugin"] = concat!("locklab-qemu-plugin ", env!("CARGO_PKG_VERSION")).into();
    golden["target"]["plugin_api"] = run.json()["target"]["plugin_api"].clone();
    assert_eq!(run.json(), golden);
    let leftover = fs::read_dir(lab.path(".")).unwrap().count();
    assert_eq!(leftover, 2, "the program, the report and nothing else");
}

#[test]
fn a_repeated_string_instruction_counts_once() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("a_repeated_string_instruction_counts_once");
    for bytes in [0, 1, 2, 1000, 1_000_000] {
        let program = lab.build("rep.S", "rep", &["-nostdlib", &format!("-DBYTES={bytes}")]);
        let run = lab.user(",hot=hot.csv", &[program]);
        assert_eq!(run.number("/instructions"), 15, "{bytes} bytes");
        assert_eq!(run.number("/l1i_fetches"), 2, "{bytes} bytes");
        assert_eq!(run.number("/l1i_misses"), 2, "{bytes} bytes");
        let hot = fs::read_to_string(lab.path("hot.csv")).unwrap();
        assert!(
            hot.lines().skip(1).all(|line| line.ends_with(",1")),
            "{hot}"
        );
    }
}

#[test]
fn code_that_fits_and_code_that_does_not() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("code_that_fits_and_code_that_does_not");
    let misses = |kib: u64, arguments: &str| {
        let lines = format!("-DLINES={}", kib * 16);
        let program = lab.build("walk.S", "walk", &["-nostdlib", "-DPASSES=10", &lines]);
        let run = lab.user(arguments, &[program]);
        assert_eq!(run.number("/instructions"), 2 + 10 * (kib * 16 + 1) + 3);
        if !arguments.contains("line=") {
            assert_eq!(run.number("/l1i_fetches"), 1 + 10 * kib * 16);
        }
        run.number("/l1i_misses")
    };
    assert_eq!(misses(16, ""), 1 + 256);
    assert_eq!(misses(31, ""), 1 + 31 * 16);
    // 9 lines in each set of 8 ways: LRU never finds one again.
    assert_eq!(misses(36, ""), 1 + 10 * 36 * 16);
    assert_eq!(misses(36, ",size=65536"), 1 + 36 * 16);
    // The line before is the first half of the first one.
    assert_eq!(misses(16, ",ways=1,line=128"), 1 + 128);
    // Every other line, but for the one before: its next line is the first.
    assert_eq!(misses(16, ",prefetch=next-line"), 1 + 128);
}

#[test]
fn only_what_is_between_markers() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("only_what_is_between_markers");
    let program = lab.build("marked.c", "marked", &["-nostdlib", "-fno-pie", "-no-pie"]);
    let run = lab.user(",markers=on,hot=hot.csv", &[&program]);
    assert_eq!(run.number("/parts/0/user/instructions"), 2001);
    assert_eq!(run.number("/parts/1/user/instructions"), 3);
    assert_eq!(run.number("/instructions"), 2004);
    assert_eq!(
        (run.number("/markers/begins"), run.number("/markers/ends")),
        (2, 3)
    );
    let hot = fs::read_to_string(lab.path("hot.csv")).unwrap();
    assert!(hot.contains(",2,999\n"), "the loop's own block: {hot}");
    assert!(
        !hot.contains(",2,49\n") && !hot.contains(",2,69\n"),
        "unmarked loops: {hot}"
    );

    let all = lab.user("", &[&program]);
    assert!(all.number("/instructions") > 2001 + 2 * 50 + 2 * 70);
    assert!(all.json()["markers"].is_null());

    let other = lab.build("loop.S", "loop", &["-nostdlib"]);
    let none = lab.user(",markers=on", &[other]);
    assert_eq!(
        (none.number("/instructions"), none.number("/markers/begins")),
        (0, 0)
    );
}

#[test]
fn a_front_end_is_modelled_beside_the_cache() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("a_front_end_is_modelled_beside_the_cache");
    let program = lab.build("loop.S", "loop", &["-nostdlib"]);
    let run = lab.user(",processor=zen-3,sites=sites.csv", &[&program]);
    // The counts of the cache are those without a front end.
    assert_eq!(run.number("/instructions"), 2004);
    assert_eq!(run.number("/l1i_fetches"), 1);
    assert_eq!(run.number("/l1i_misses"), 1);
    assert_eq!(run.json()["frontend"]["processor"], "Zen 3");
    let event = |name: &str| run.number(&format!("/frontend/user/events/{name}"));
    // The loop goes back 999 times; its first way back and its end are not predicted.
    assert_eq!(event("taken_branches"), 999);
    assert_eq!(event("conditional_mispredictions"), 2);
    assert_eq!(event("btb_misses_decoded"), 0);
    assert_eq!(event("l2_misses_after_redirect"), 1);
    assert_eq!(event("interruptions"), 0);
    let cycles = |pointer: &str| run.json().pointer(pointer).unwrap().as_f64().unwrap();
    let all = cycles("/frontend/user/cycles/value");
    assert!(
        cycles("/frontend/user/cycles/low") < all && all < cycles("/frontend/user/cycles/high")
    );
    assert!(all > 999.0, "a taken branch a cycle");
    let sites = fs::read_to_string(lab.path("sites.csv")).unwrap();
    let lines: Vec<_> = sites.lines().collect();
    assert!(lines[0].starts_with("address,bytes,instructions,kind,branch,target,taken_branches"));
    let there = |kind: &str| lines.iter().any(|line| line.contains(kind));
    assert!(there(",Conditional,"), "{sites}");
}

#[test]
fn other_hashes_predict_beside_the_first() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("other_hashes_predict_beside_the_first");
    let program = lab.build("rewrite.c", "rewrite", &[]);
    let without = lab.user(",processor=zen-3", &[&program]);
    let run = lab.user(",processor=zen-3,hashes=on", &[&program]);
    let account = |run: &lab::Run| run.json()["frontend"]["user"].clone();
    let (mut with, without) = (account(&run), account(&without));
    let by_hash = with["conditional_by_hash"].as_array().unwrap().clone();
    let first = without["events"]["conditional_mispredictions"].as_u64();
    assert_eq!(by_hash.len(), 3);
    for wrong in by_hash {
        let off = wrong.as_f64().unwrap() / first.unwrap() as f64;
        assert!((0.5..2.0).contains(&off), "{wrong} and {first:?}");
    }
    // Nothing else changes.
    with.as_object_mut().unwrap().remove("conditional_by_hash");
    assert_eq!(with, without);
}

#[test]
fn spans_are_counted_together_within_the_measured_part() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("spans_are_counted_together_within_the_measured_part");
    let program = lab.build("spans.c", "spans", &["-nostdlib", "-fno-pie", "-no-pie"]);
    let run = lab.user(",markers=on,processor=zen-3", &[&program]);
    assert_eq!(run.number("/spans/count"), 100);
    assert_eq!(run.number("/spans/user/instructions"), 300);
    assert_eq!(
        run.number("/spans/frontend/user/events/taken_branches"),
        100
    );
    assert!(run.number("/instructions") > 700);
    let without = lab.user(",markers=on", &[&program]);
    assert_eq!(without.number("/spans/user/instructions"), 300);
    assert!(without.json().pointer("/spans/frontend").is_none());
}

#[test]
fn a_sample_has_all_instructions_and_most_of_the_rest() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("a_sample_has_all_instructions_and_most_of_the_rest");
    let program = lab.build("long.S", "long", &["-nostdlib"]);
    let exact = lab.user(",processor=zen-3", &[&program]);
    let sample = lab.user(",processor=zen-3,sample=on", &[&program]);
    let again = lab.user(",processor=zen-3,sample=on", &[&program]);
    assert_eq!(sample.text, again.text, "it is the same sample each time");
    let all = exact.number("/instructions");
    assert_eq!(sample.number("/instructions"), all);
    assert!(exact.json().pointer("/frontend/sample").is_none());
    let simulated = sample.number("/frontend/sample/simulated_instructions");
    assert!((10_000_000..13_000_000).contains(&simulated), "{simulated}");
    assert!(sample.number("/frontend/sample/intervals") >= 8);
    let cycles = |run: &lab::Run| {
        let value = run.json()["frontend"]["user"]["cycles"]["value"].clone();
        value.as_f64().unwrap()
    };
    let off = cycles(&sample) / cycles(&exact);
    assert!((0.98..1.02).contains(&off), "{off}");
    let error = sample.json()["frontend"]["sample"]["error_percent"].clone();
    assert!(error.as_f64().is_some_and(|error| error < 5.0), "{error}");
    // A program that ends before is simulated whole.
    let short = lab.build("loop.S", "loop", &["-nostdlib"]);
    let short = lab.user(",processor=zen-3,sample=on", &[short]);
    assert_eq!(
        short.number("/frontend/sample/simulated_instructions"),
        2004
    );
}

#[test]
fn calls_deeper_than_the_return_stack() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("calls_deeper_than_the_return_stack");
    for (depth, wrong) in [(20, 0), (32, 0), (40, 8)] {
        let depth = format!("-DDEPTH={depth}");
        let program = lab.build("deep.S", "deep", &["-nostdlib", &depth]);
        let run = lab.user(",processor=zen-3", &[program]);
        let returns = run.number("/frontend/user/events/return_mispredictions");
        assert_eq!(returns, 100 * wrong, "{depth}");
    }
}

#[test]
fn code_that_writes_itself_is_noticed() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("code_that_writes_itself_is_noticed");
    let program = lab.build("rewrite.c", "rewrite", &[]);
    let run = lab.user(",processor=zen-5", &[program]);
    assert!(run.output.status.success(), "{:?}", run.output);
    let rewritten = run.number("/frontend/rewritten_blocks");
    assert!((9..=20).contains(&rewritten), "{rewritten}");
}

#[test]
fn gzip_twice_gives_the_same_counts() {
    need!("qemu-x86_64" from "qemu-user", "gzip" from "gzip");
    let lab = Lab::new("gzip_twice_gives_the_same_counts");
    let words = [
        "ticket", "queue", "handoff", "spin", "backoff", "node", "\n",
    ];
    let mut state = 1_u32;
    let text: Vec<&str> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[(state >> 24) as usize % words.len()]
    })
    .take(40_000)
    .collect();
    fs::write(lab.path("file"), text.concat()).unwrap();
    let gzip = lab::find("gzip").unwrap();
    let command = [gzip.as_os_str(), "-c".as_ref(), "file".as_ref()];
    let first = lab.user(",hot=hot1.csv", &command);
    assert!(first.output.status.success() && first.output.stdout.len() > 10_000);
    let second = lab.user(",hot=hot2.csv", &command);
    assert!(first.number("/instructions") > 10_000_000);
    assert_eq!(first.text, second.text);
    let hot = |name| fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(hot("hot1.csv"), hot("hot2.csv"));
    // Blocks add up to the instructions, REP instructions too.
    let sum: u64 = hot("hot1.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let [instructions, executions] =
                [2, 3].map(|column| line.split(',').nth(column).unwrap().parse::<u64>().unwrap());
            instructions * executions
        })
        .sum();
    assert_eq!(sum, first.number("/instructions"));
}

#[test]
fn threads_do_not_lose_counts() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("threads_do_not_lose_counts");
    let program = lab.build("threads.c", "threads", &["-pthread"]);
    let run = lab.user("", &[program]);
    assert!(run.output.status.success(), "{:?}", run.output);
    let instructions = run.number("/instructions");
    assert!(
        (16_000_000..16_500_000).contains(&instructions),
        "{instructions}"
    );
    assert_eq!(run.json()["all_vcpus_counted"], true);
    assert!(run.number("/vcpus") > 1);
}

#[test]
fn a_forked_child_does_not_overwrite_the_report() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("a_forked_child_does_not_overwrite_the_report");
    let program = lab.build("fork.c", "fork", &[]);
    let run = lab.user("", &[program]);
    assert!(run.output.status.success(), "{:?}", run.output);
    let instructions = run.number("/instructions");
    assert!((1000..2_000_000).contains(&instructions), "{instructions}");
}

#[test]
fn what_cannot_run_says_why() {
    need!("qemu-x86_64" from "qemu-user", "gcc" from "gcc");
    let lab = Lab::new("what_cannot_run_says_why");
    let program = lab.build("loop.S", "loop", &["-nostdlib"]);
    for (arguments, said) in [
        (",ways=3", "choose a size"),
        (
            ",out=/nowhere/report.json",
            "cannot write /nowhere/report.json",
        ),
        (",colour=red", "unknown argument 'colour'"),
        (",processor=486", "there is no processor '486'"),
    ] {
        let run = lab.user(arguments, &[&program]);
        assert_eq!(run.output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&run.output.stderr).into_owned();
        assert!(
            error.contains("locklab: ") && error.contains(said),
            "{error}"
        );
    }
    // A program that never ran leaves no report that could be taken for its.
    lab.user("", &[&program]);
    let missing = lab.user("", &["no-such-program"]);
    assert_eq!(
        (missing.text.as_str(), missing.output.status.success()),
        ("", false)
    );
}
