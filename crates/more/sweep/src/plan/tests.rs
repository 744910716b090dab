//! The plan is the product minus the exclusions, and chunks are a partition.

use super::*;
use crate::file::SweepFile;
use proptest::prelude::*;
use std::collections::HashSet;

fn plan(text: &str) -> Result<Plan, Error> {
    let file = SweepFile::parse(text)?;
    let machines = file
        .machines
        .iter()
        .map(|name| Machine::builtin(name).unwrap())
        .collect();
    Plan::new(file, machines)
}

const TEXT: &str = "kind = 'sweep'\nmachines = ['flat-16', 'amd64-8']\nbaseline = 'ticket'\n\
                    experiment = ['mcs', 'tas', 'clh']\nseeds = 2\nbands = 3\n\
                    [[workload]]\nname = 'units'\nthreads = [1, 'half', 16]\ncritical = [0, 4]\n\
                    [[workload]]\nname = 'fstat'\nthreads = ['all']\n";

#[test]
fn a_plan_is_the_product() {
    let plan = plan(TEXT).unwrap();
    // flat-16: 3 x 2 + 1 cells; amd64-8 has no 16 CPUs: 2 x 2 + 1.
    assert_eq!(plan.cells(), 7 + 5);
    assert_eq!(plan.runs(), 12 * 3 * 6);
    assert_eq!(plan.notes, ["16 threads are left out on amd64-8."]);
    // Runs that differ in the lock alone follow one another.
    let first = plan.run(0);
    let second = plan.run(1);
    assert_eq!(
        (first.cell, first.replicate),
        (second.cell, second.replicate)
    );
    assert_ne!(first.pair, second.pair);
}

#[test]
fn what_is_wrong_with_a_plan_is_said() {
    for (change, part) in [
        (
            "[[exclude]]\nmachine = 'graviton3'",
            "exclusion 1 leaves out nothing",
        ),
        ("[[exclude]]\nbaseline = 'ticket'", "leave no run"),
    ] {
        let error = plan(&format!("{TEXT}{change}\n")).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = plan(&TEXT.replace("'clh'", "'klh'"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no lock called 'klh'"), "{error}");
}

#[test]
fn a_plan_of_a_million_runs_is_small() {
    let lengths: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let list = lengths.join(",");
    let text = format!(
        "kind = 'sweep'\nmachines = ['flat-16']\nbaseline = 'ticket'\nexperiment = 'all'\n\
         seeds = 1\n[[workload]]\nname = 'units'\nthreads = [1, 2, 4, 8, 12, 14, 15, 16]\n\
         critical = [{list}]\nnon_critical = [0, 8]\n"
    );
    let plan = plan(&text).unwrap();
    assert!(plan.runs() >= 960_000, "{}", plan.runs());
    let bytes = plan.points.capacity() * size_of::<Point>()
        + plan
            .blocks
            .iter()
            .map(|b| b.places.capacity() * 24)
            .sum::<usize>();
    assert!(bytes < 8 << 20, "{bytes}");
}

/// Returns some exclusions of the file above.
fn exclusions() -> impl Strategy<Value = String> {
    let rule = (
        proptest::option::of(prop_oneof![Just("flat-16"), Just("amd64-8")]),
        proptest::option::of(prop_oneof![Just("mcs"), Just("tas")]),
        proptest::option::of(1_u64..16),
    )
        .prop_map(|(machine, lock, above)| {
            let mut text = "[[exclude]]\n".to_owned();
            if let Some(machine) = machine {
                text += &format!("machine = '{machine}'\n");
            }
            if let Some(lock) = lock {
                text += &format!("experiment = '{lock}'\n");
            }
            // At least 8 threads are on each machine.
            text + &format!("threads_above = {}\n", above.unwrap_or(7).min(7))
        });
    proptest::collection::vec(rule, 0..3).prop_map(|rules| rules.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_run_of_the_product_that_is_not_excluded_is_there_once(rules in exclusions()) {
        let whole = plan(TEXT).unwrap();
        let some = plan(&format!("{TEXT}{rules}")).unwrap();
        let found: HashSet<Run> = some.runs_of(0..some.runs()).map(|(_, run)| run).collect();
        prop_assert_eq!(found.len() as u64, some.runs());
        for (_, run) in whole.runs_of(0..whole.runs()) {
            let block = &whole.blocks[run.block];
            let pair = &whole.pairs[run.pair];
            let at = Place {
                machine: &whole.machines[block.machine].name,
                baseline: &pair.baseline,
                experiment: &pair.experiment,
                work: whole.file.workloads[block.workload].work,
                place: block.places[run.cell],
            };
            let excluded = some.file.exclusions.iter().any(|rule| rule.matches(&at));
            prop_assert_eq!(found.contains(&run), !excluded);
        }
        let by_comparison: u64 = some
            .comparisons()
            .values()
            .map(|cells| cells.len() as u64 * u64::from(some.replicates()))
            .sum();
        prop_assert_eq!(by_comparison, some.runs());
    }

    #[test]
    fn chunks_are_a_partition_of_the_runs(chunks in 1_u64..400, rules in exclusions()) {
        let plan = plan(&format!("{TEXT}{rules}")).unwrap();
        let cuts = plan.cut(chunks);
        prop_assert_eq!(cuts[0], 0);
        prop_assert_eq!(*cuts.last().unwrap(), plan.runs());
        prop_assert!(cuts.windows(2).all(|cut| cut[0] < cut[1]));
        prop_assert!(cuts.len() as u64 - 1 <= chunks);
    }
}
