//! A counterexample is a table that a person can read.

use locklab_verify::{
    Change, Limits, Mutation, Outcome, SHOWN, Step, check, check_and_record, interleaving,
    properties_of,
};

/// Returns the steps to the failure of a mutant of mcs: the first that few executions
/// pass and `pick` picks.
fn steps(pick: impl Fn(&Mutation) -> bool) -> (String, Vec<Step>) {
    let properties = properties_of("mcs").expect("a lock");
    let limits = Limits {
        executions: 3_000,
        ..Limits::default()
    };
    let property = &properties[0];
    let (_, passed) = check_and_record(property, limits);
    let mutant = passed.mutants.into_iter().find(pick).expect("a mutant");
    match check(property, limits, Some(mutant)).outcome {
        Outcome::Fails(failure) => (failure.message, failure.trace),
        outcome => panic!("{mutant}: {outcome:?}"),
    }
}

/// The waiter links itself, and only then says that it waits: the grant that
/// comes in between is wiped out.
#[test]
fn words_have_the_names_of_the_source_and_nodes_those_of_threads() {
    let (message, steps) =
        steps(|mutant| mutant.change == Change::Delay && mutant.to_string().contains("mcs.rs"));
    assert!(
        message.starts_with("deadlock: every thread waits"),
        "{message}"
    );
    let table = interleaving(&steps, usize::MAX);
    println!("{message}\n\n{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 72),
        "{table}"
    );
    for said in [
        "thread 0",
        "thread 1",
        "tail 0 > n",
        "next = n",
        "granted",
        "IS INSIDE",
    ] {
        assert!(table.contains(said), "{said}:\n{table}");
    }
    assert!(!table.contains("0x"), "an address says nothing:\n{table}");
}

fn step(thread: usize, what: &str) -> Step {
    Step {
        thread,
        file: "mcs.rs".into(),
        line: 71,
        what: what.into(),
    }
}

#[test]
fn a_column_a_thread_within_72() {
    let steps = [
        step(0, "tail 0 > n0 (swap)"),
        step(2, "tail n0 > n2 (swap)"),
        step(1, "waits: a_word_with_a_very_long_name 1234567"),
        step(0, "IS INSIDE"),
    ];
    let table = interleaving(&steps, SHOWN);
    assert!(table.lines().all(|line| line.chars().count() <= 72));
    assert_eq!(
        table,
        "\
source    thread 0             thread 1             thread 2
mcs.rs:71 tail 0 > n0 (swap)
mcs.rs:71                                           tail n0 > n2 (swap)
mcs.rs:71                      waits:
                               a_word_with_a_very_l
                               ong_name 1234567
          IS INSIDE
"
    );
}

#[test]
fn the_middle_of_a_long_one_is_left_out() {
    let steps: Vec<Step> = (0..10).map(|n| step(n % 2, &format!("x = {n}"))).collect();
    let table = interleaving(&steps, 4);
    assert!(table.contains("x = 1\n(6 steps"), "{table}");
    assert!(table.contains("x = 8"), "{table}");
    assert!(!table.contains("x = 5"), "{table}");
}
