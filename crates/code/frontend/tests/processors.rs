//! The processor files, and what is wrong with one that is wrong.

use locklab_frontend::{Cause, Event, Events, Processor};

#[test]
fn every_file_is_read_and_known_by_its_identity() {
    for name in Processor::names() {
        let processor = Processor::named(name).unwrap();
        for known in &processor.identity {
            for &(from, to) in &known.models {
                for model in [from, to] {
                    let found = Processor::identified(&known.vendor, known.family, model);
                    assert_eq!(found.as_ref(), Some(&processor), "{name}: model {model}");
                }
            }
        }
    }
    assert_eq!(Processor::identified("GenuineIntel", 6, 1), None);
}

#[test]
fn a_wrong_file_is_one_sentence() {
    let file = include_str!("../processors/zen-3.toml");
    let parse = |from: &str, to: &str| {
        assert!(file.contains(from), "{from}");
        Processor::parse(&file.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    };
    for (from, to, said) in [
        ("width = { value = 6", "width = { value = 0", "width is 0"),
        (
            "width = { value = 6",
            "width = { value = nan",
            "width is NaN",
        ),
        (
            "op_window = { value = 64",
            "op_window = { value = 48",
            "neither 32 nor 64",
        ),
        (
            "mispredict = { value = 13",
            "mispredict = { value = 99",
            "not within its band",
        ),
        ("width = {", "breadth = {", ": unknown field `breadth`"),
        ("name = \"Zen 3\"\n", "", "missing field `name`"),
        (
            "btb1_entries = {",
            "# btb1_entries = {",
            "missing field `btb1_entries`: every figure is needed",
        ),
    ] {
        let error = parse(from, to);
        assert!(error.contains(said), "{to}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let error = Processor::named("pentium").unwrap_err().to_string();
    assert!(
        error.contains("pentium") && error.contains("zen-3"),
        "{error}"
    );
}

#[test]
fn cycles_follow_from_events() {
    let processor = Processor::named("zen-3").unwrap();
    let mut events = Events::default();
    events[Event::Direction] = 10;
    let lost = processor.lost(&events, Cause::Conditional);
    assert_eq!((lost.low, lost.value, lost.high), (110.0, 130.0, 220.0));
    assert_eq!(processor.lost_in_all(&events), lost);
    let all = processor.cycles(600, &events);
    assert_eq!(all.value, 100.0 + 130.0);
    for (number, (cause, name)) in Cause::ALL.into_iter().enumerate() {
        assert_eq!((cause as usize, cause.name()), (number, name));
    }
    // Every event that costs something has exactly one cause.
    for (event, name) in Event::ALL {
        let mut one = Events::default();
        one[event] = 1;
        let causes = Cause::ALL
            .iter()
            .filter(|(cause, _)| processor.lost(&one, *cause).high > 0.0)
            .count();
        let free = matches!(
            event,
            Event::Taken
                | Event::Barrier
                | Event::Privilege
                | Event::AddressSpace
                | Event::Interruption
        );
        assert_eq!(causes, usize::from(!free), "{name}");
    }
}

#[test]
fn reads_of_the_counter_report_what_was_measured_between_them() {
    let between = |name: &str, cycles: f64| Processor::named(name).unwrap().between_reads(cycles);
    // Jumps that take so long alone, and what two reads around them reported.
    for (name, cycles, reported) in [
        ("emerald-rapids", 0.0, 29.0),
        ("emerald-rapids", 32.2, 38.0),
        ("emerald-rapids", 46.7, 50.0),
        ("emerald-rapids", 111.3, 108.6),
        ("zen-5", 0.0, 37.5),
        ("zen-5", 40.0, 37.5),
        ("zen-5", 64.0, 77.0),
    ] {
        let ours = between(name, cycles).unwrap();
        assert!(
            (ours / reported - 1.0).abs() <= 0.2,
            "{name}, {cycles}: {ours}"
        );
    }
    assert_eq!(between("zen-3", 20.0), None, "not measured");
}
