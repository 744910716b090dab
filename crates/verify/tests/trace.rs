//! A counterexample is a table that a person can read.

use locklab_verify::{
    Change, Limits, Mutation, Outcome, Step, check, check_and_record, interleaving, properties_of,
};

/// The steps to the failure of a mutant of mcs: the first that few executions
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
    for said in ["thread 0", "thread 1", "tail 0 > n", "granted", "IS INSIDE"] {
        assert!(table.contains(said), "{said}:\n{table}");
    }
    assert!(!table.contains("0x"), "an address says nothing:\n{table}");
}
