//! Tests of src/experiment.rs, with access to what is private there.

use super::*;

const HEAD: &str = r#"
        kind = "published"
        title = "t"
        machine = "flat-16"
        reference = "reference/f.toml"
        rule = "fixed-time"
        placement = "compact"
        acquisitions = 100
    "#;
const FIGURE: &str = r#"
        [[figure]]
        name = "mcs_over_ticket"
        published = "ns.ticket / ns.mcs"
        threads = [1, 4]
        baseline = "ticket"
        experiment = "mcs"
        loop = { write_percent = 100 }
    "#;

fn reference() -> Reference {
    let text = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\nsure = \"s\"\n\
                threads = [1, 4]\n[ns]\nticket = [10, 60]\nmcs = [20, 30]\n";
    Reference::parse("f.toml", text).unwrap()
}

#[test]
fn a_figure_of_several_numbers_of_threads_is_a_cell_each() {
    let text = format!("{HEAD}facts = {{ \"core.clock_ghz\" = 3.5 }}\n{FIGURE}");
    let experiment = Experiment::parse("e.toml", &text).unwrap();
    assert_eq!(
        experiment.machine().unwrap().get(FigureKey::CoreClockGhz),
        3.5
    );
    let cells = experiment.cells(&reference()).unwrap();
    let found: Vec<_> = cells
        .iter()
        .map(|cell| (cell.name.as_str(), cell.published, cell.baseline.threads))
        .collect();
    assert_eq!(
        found,
        [
            ("mcs_over_ticket threads=1", Some(0.5), 1),
            ("mcs_over_ticket threads=4", Some(2.0), 4)
        ]
    );
}

#[test]
fn a_figure_of_a_direction_has_no_size_and_must_have_a_direction() {
    let figure = FIGURE.replace("threads =", "direction_only = true\nthreads =");
    let experiment = Experiment::parse("e.toml", &format!("{HEAD}{figure}")).unwrap();
    let cells = experiment.cells(&reference()).unwrap();
    let found: Vec<_> = cells.iter().map(|c| (c.published, c.direction)).collect();
    let expected = [Direction::Below, Direction::Above].map(|side| (None, Some(side)));
    assert_eq!(found, expected);
    let same = figure.replace("ns.ticket / ns.mcs", "ns.mcs / ns.mcs");
    let experiment = Experiment::parse("e.toml", &format!("{HEAD}{same}")).unwrap();
    let error = experiment.cells(&reference()).unwrap_err().to_string();
    assert_eq!(
        error,
        "the figure `mcs_over_ticket threads=1` has no direction"
    );
}

#[test]
fn the_yardstick_may_have_other_threads_and_a_loop_depends_on_them() {
    let figure = FIGURE
        .replace(
            "[1, 4]",
            "4\nbaseline_threads = 1\nwithout_pause = \"baseline\"",
        )
        .replace("ns.ticket / ns.mcs", "ns.ticket / ns.ticket")
        .replace(
            "write_percent = 100",
            "write_percent = 100, long_one_in_per_thread = 4, long_ns = 2000, \
             stall_ns_over_threads = 500",
        );
    let experiment = Experiment::parse("e.toml", &format!("{HEAD}{figure}")).unwrap();
    let cell = experiment.cells(&reference()).unwrap().remove(0);
    assert_eq!(cell.name, "mcs_over_ticket");
    assert_eq!(cell.published, Some(6.0));
    assert!(!cell.baseline.pause && cell.experiment.pause);
    assert_eq!(
        (cell.baseline.stall_ns, cell.experiment.stall_ns),
        (500.0, 125.0)
    );
    for (run, one_in) in [(&cell.baseline, 4), (&cell.experiment, 16)] {
        assert!(matches!(run.workload, Workload::Loop(turn) if turn.long_one_in == one_in));
    }
}

#[test]
fn a_bad_file_gives_one_sentence_that_names_it() {
    let good = format!("{HEAD}{FIGURE}");
    for (from, to, expected) in [
        ("flat-16", "flat-17", "flat-17"),
        ("\"compact\"", "\"near\"", "no placement is called `near`"),
        ("= 100\n    ", "= 0\n    ", "`acquisitions` is 0"),
        ("\"mcs\"", "\"mcs2\"", "no lock is called `mcs2`"),
        ("title", "titel", "unknown field `titel`"),
        (
            "loop = { write_percent = 100 }",
            "",
            "no `workload` and no `loop`",
        ),
        (
            "loop = { write_percent = 100 }",
            "workload = \"x\"",
            "no workload is called `x`",
        ),
        (
            "loop = {",
            "workload = \"fstat\"\nloop = {",
            "a `workload` and a `loop`",
        ),
        (
            "write_percent = 100",
            "write_percent = 101",
            "`write_percent` is above 100",
        ),
        (
            "threads = [1, 4]",
            "threads = [1, 4]\nguests = 0",
            "0 guests do nothing",
        ),
        (
            "{ write",
            "{ inside_ns = -1, write",
            "not from 0 to 1,000,000 ns",
        ),
        (
            "acquisitions",
            "facts = { \"transfer.socket_ns\" = 9 }\nacquisitions",
            "no fact",
        ),
        (
            FIGURE,
            "",
            "it needs either a `matrix` or at least one `figure`",
        ),
        ("title = \"t\"", "title = ", "e.toml:"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let error = Experiment::parse("e.toml", &text)
            .expect_err(to)
            .to_string();
        assert!(error.starts_with("e.toml:"), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn every_experiment_has_its_figures_and_fits_its_machine() {
    for (name, _) in EXPERIMENTS {
        let file = format!("experiments/{name}.toml");
        let experiment = Experiment::built_in(name).unwrap();
        let reference = experiment.published.clone().unwrap();
        let machine = experiment.machine().unwrap();
        // Threads share the CPUs of a machine, and not those of a virtual one.
        let most = match machine.get(FigureKey::VmVcpus) > 0.0 {
            true => machine.cpus(),
            false => locklab_sim::MOST_THREADS,
        };
        for cell in experiment
            .cells(&reference)
            .unwrap_or_else(|e| panic!("{file}: {e}"))
        {
            for run in [&cell.baseline, &cell.experiment] {
                assert!(run.threads <= most, "{file}: {}", cell.name);
            }
        }
        assert!(
            experiment.report.is_some() || experiment.near.is_some(),
            "{file} says how near its machine is"
        );
    }
}

#[test]
fn an_experiment_without_its_rule_is_refused() {
    let text = format!("{HEAD}{FIGURE}");
    assert!(Experiment::parse("e.toml", &text).is_ok());
    let without = text.replace("rule = \"fixed-time\"", "");
    let error = Experiment::parse("e.toml", &without)
        .unwrap_err()
        .to_string();
    assert!(error.contains("missing field `rule`"), "{error}");
    let unknown = text.replace("fixed-time", "best-of-ten");
    let error = Experiment::parse("e.toml", &unknown)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("e.toml:6: unknown variant `best-of-ten`"),
        "{error}"
    );
    for (name, text) in crate::experiment::EXPERIMENTS {
        let rules = text.lines().filter(|line| line.starts_with("rule = "));
        assert_eq!(rules.count(), 1, "{name}");
    }
}

#[test]
fn of_fixed_work_each_thread_does_all_where_threads_share_cpus() {
    let head = HEAD.replace("fixed-time", "fixed-work");
    let figure = FIGURE.replace("[1, 4]", "[1, 32]");
    let reference = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\n\
                     sure = \"s\"\nthreads = [1, 32]\n[ns]\nticket = [10, 60]\nmcs = [20, 30]\n";
    let reference = Reference::parse("f.toml", reference).unwrap();
    let stops = |keys: &str| -> Vec<Stop> {
        let experiment = Experiment::parse("e.toml", &format!("{head}{keys}{figure}")).unwrap();
        let cells = experiment.cells(&reference).unwrap();
        let stop = |cell: &Cell| {
            let run = &cell.baseline;
            let stop = experiment.rule.stop(experiment.acquisitions, run.threads);
            let machine = experiment.machine().unwrap();
            let scenario = run.scenario(machine, experiment.placement, stop, 1);
            scenario.unwrap().stop
        };
        cells.iter().map(stop).collect()
    };
    let each = stops("operations = 700\n");
    assert_eq!(each, [Stop::Each(100), Stop::Each(700)]);
    let round = stops("operations = 700\nbarrier = true\n");
    assert_eq!(round, [Stop::Each(100), Stop::Round(700)]);
    let text = format!("{head}barrier = true\n{figure}");
    let error = Experiment::parse("e.toml", &text).unwrap_err().to_string();
    assert!(error.contains("give `operations`"), "{error}");
    for (head, operations) in [(HEAD, 700), (head.as_str(), 0)] {
        let text = format!("{head}operations = {operations}\n{FIGURE}");
        let error = Experiment::parse("e.toml", &text).unwrap_err().to_string();
        assert!(error.contains("by a rule of fixed work"), "{error}");
    }
}
