//! Tests of src/reproduction.rs, with access to what is private there.

use super::*;

fn found(name: &str, expression: &str) -> f64 {
    let published = Experiment::built_in(name).unwrap().published.unwrap();
    published.figure(expression, 8, 8).unwrap()
}

#[test]
fn published_figures_are_found() {
    assert_eq!(found("mplock-anderson", "ratio.padded_over_packed"), 1.37);
    let xfs = found(
        "qspinlock-xfs",
        "row.ticket.files_per_s / row.qspinlock.files_per_s",
    );
    assert!((xfs - 1.132).abs() < 0.001, "{xfs}");
}

fn report(name: &str, figures: &[(f64, f64)]) -> Reproduction {
    let figures = figures.iter().enumerate();
    let figures = figures.map(|(at, &(published, ours))| Reproduced {
        name: format!("f{at}"),
        published: Some(published),
        direction: None,
        ours,
        question: Question::SameSocket,
    });
    Reproduction {
        name: name.to_owned(),
        report: None,
        title: String::new(),
        group: Group::of(name),
        machine: String::new(),
        near: None,
        placement: "compact",
        rule: Rule::FixedTime,
        source: String::new(),
        settled_by: None,
        shape: None,
        figures: figures.collect(),
        agreement: agreement(&[]),
        accesses: 0,
        trace_hash: 0,
    }
}

#[test]
fn the_two_scores_are_apart_and_each_figure_counts_once() {
    let reports = [
        report("virt-backoff", &[(1.5, 1.2), (2.0, 2.0)]),
        report("cna-kernel-4s", &[(1.5, 0.9)]),
        report("of-ones-own", &[(9.0, 1.0)]),
    ];
    let structure = score(Group::Structure, None, &reports);
    assert_eq!((structure.figures, structure.direction), (2, Some(1.0)));
    let evaluated = score(Group::EvaluatedOnly, None, &reports);
    assert_eq!((evaluated.figures, evaluated.direction), (1, Some(0.0)));
    let backoff = score(Group::Structure, Some(Question::Backoff), &reports);
    assert_eq!(backoff.figures, 0);
}

#[test]
fn misses_are_those_off_by_a_quarter_or_on_the_wrong_side() {
    let report = report(
        "x",
        &[(1.5, 1.3), (1.5, 1.1), (1.1, 0.99), (1.0, 1.2), (2.0, 0.5)],
    );
    let misses = report.misses();
    let names: Vec<_> = misses
        .iter()
        .map(|miss| (miss.figure.as_str(), miss.wrong_direction))
        .collect();
    assert_eq!(names, [("f4", true), ("f1", false), ("f2", true)]);
}

#[test]
fn a_wrong_direction_without_a_size_is_a_miss_without_a_factor() {
    let mut report = report("x", &[(1.0, 0.9), (1.0, 0.9)]);
    for (figure, direction) in report
        .figures
        .iter_mut()
        .zip([Direction::Above, Direction::Below])
    {
        figure.published = None;
        figure.direction = Some(direction);
    }
    let misses = report.misses();
    assert_eq!(misses.len(), 1);
    assert_eq!((misses[0].figure.as_str(), misses[0].factor), ("f0", None));
}

#[test]
fn fewer_physical_cpus_than_threads_are_an_oversubscribed_machine() {
    let machine = locklab_sim::Machine::builtin("xeon-8380-vm").unwrap();
    let workload = Workload::Loop(locklab_sim::Loop::default());
    let mut scenario = Scenario::new(machine, "tas", workload, 16);
    assert_eq!(Question::of(&scenario), Question::Backoff);
    scenario.hardware_threads = Some(8);
    assert_eq!(Question::of(&scenario), Question::Oversubscribed);
}

#[test]
fn threads_that_share_cpus_and_locks_that_sleep_are_questions_of_their_own() {
    let of = |lock: &str, threads: usize| {
        let machine = locklab_sim::Machine::builtin("flat-16").unwrap();
        let workload = Workload::Loop(locklab_sim::Loop::default());
        Question::of(&Scenario::new(machine, lock, workload, threads))
    };
    assert_eq!(of("tas", 16), Question::SameSocket);
    assert_eq!(of("tas", 17), Question::MoreThreads);
    for lock in ["futex", "pthread", "program:rust-std"] {
        assert_eq!(of(lock, 16), Question::Sleeping, "{lock}");
        assert_eq!(of(lock, 1), Question::Uncontended);
    }
}

#[test]
fn guests_share_the_hardware_and_fairness_is_of_threads() {
    let file = |figure: &str| {
        let text = format!(
            "kind = \"published\"\ntitle = \"t\"\nmachine = \"xeon-8380-vm\"\n\
             facts = {{ \"topology.cores\" = 4, \"topology.threads\" = 1 }}\n\
             reference = \"f.toml\"\nrule = \"fixed-time\"\nplacement = \"compact\"\n\
             acquisitions = 2000\n[[figure]]\nname = \"a\"\npublished = \"of.a\"\n\
             threads = 4\n{figure}\nloop = {{ write_percent = 0, outside_ns = 100 }}\n"
        );
        Experiment::parse("e.toml", &text).unwrap()
    };
    let text = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\n\
                sure = \"s\"\n[of]\na = 0.2\n";
    let reference = Reference::parse("f.toml", text).unwrap();
    let one = |figure: &str| {
        let report = simulate_experiment("own", &file(figure), &reference, 1, 2, |_, _| {});
        report.unwrap().figures.remove(0)
    };
    let shared = one(
        "direction_only = true\nguests = 2\nbaseline_guests = 1\nbaseline = \"ticket\"\n\
         experiment = \"ticket\"",
    );
    assert_eq!(shared.published, None);
    assert_eq!(shared.direction, Some(Direction::Below));
    assert_eq!(shared.question, Question::Oversubscribed);
    // Each of the two does less than one that has all CPUs.
    assert!((0.0..2.0).contains(&shared.ours), "{shared:?}");
    // A ticket lock gives each thread its turn.
    let fair = one("measure = \"fairness\"\nbaseline = \"ticket\"\nexperiment = \"mcs\"");
    assert!((fair.ours - 1.0).abs() < 0.02, "{fair:?}");
}

#[test]
fn a_counter_without_a_lock_is_faster_than_one_with_a_lock() {
    let experiment = Experiment::parse(
        "e.toml",
        "kind = \"published\"\ntitle = \"t\"\nmachine = \"flat-16\"\nreference = \"f.toml\"\n\
         rule = \"fixed-work\"\nplacement = \"compact\"\nacquisitions = 2000\n\
         [[figure]]\nname = \"a\"\nthreads = 8\nbaseline = \"ticket\"\n\
         experiment = \"counter-cas\"\nloop = { write_percent = 100 }\n\
         [[figure]]\nname = \"b\"\nthreads = 8\nbaseline = \"counter-cas\"\n\
         experiment = \"counter-cas-seen\"\nloop = { write_percent = 100 }\n",
    )
    .unwrap();
    let text = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\n\
                sure = \"s\"\n";
    let reference = Reference::parse("f.toml", text).unwrap();
    let report = simulate_experiment("own", &experiment, &reference, 1, 2, |_, _| {}).unwrap();
    assert!(report.figures[0].ours > 1.0, "{report:?}");
    assert!(report.figures[1].ours > 0.0, "{report:?}");
}

#[test]
fn a_small_experiment_of_ones_own_is_simulated() {
    let experiment = Experiment::parse(
        "e.toml",
        "kind = \"published\"\ntitle = \"t\"\nmachine = \"flat-16\"\nreference = \"f.toml\"\n\
         rule = \"fixed-time\"\nplacement = \"compact\"\nacquisitions = 500\n\
         [[figure]]\nname = \"a\"\npublished = \"ns.b / ns.a\"\nthreads = [1, 2]\n\
         baseline = \"ttas\"\nexperiment = \"mcs\"\n\
         loop = { write_percent = 50, outside_ns = 100, long_one_in_per_thread = 2, \
         long_ns = 50, stall_ns_over_threads = 10 }\n",
    )
    .unwrap();
    let text = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\n\
                sure = \"s\"\nthreads = [1, 2]\n[ns]\na = [1, 2]\nb = [1, 3]\n";
    let reference = Reference::parse("f.toml", text).unwrap();
    let run = || simulate_experiment("own", &experiment, &reference, 1, 2, |_, _| {});
    let report = run().unwrap();
    assert_eq!(report.group, None);
    assert_eq!(report.figures[1].published, Some(1.5));
    assert!(report.figures.iter().all(|figure| figure.ours > 0.0));
    assert_eq!(report.trace_hash, run().unwrap().trace_hash);
    let missing = Reference::parse("f.toml", &text.replace("b = [1, 3]", "")).unwrap();
    let error = simulate_experiment("own", &experiment, &missing, 1, 2, |_, _| {});
    assert_eq!(
        error.unwrap_err().to_string(),
        "f.toml: it has no figure `ns.b`"
    );
}

#[test]
fn runs_of_fixed_work_have_the_rate_of_their_mean_time() {
    assert_eq!(rate_of_mean_time([1.0, 3.0].into_iter()), 1.5);
}
