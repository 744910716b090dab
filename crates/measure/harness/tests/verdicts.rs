//! Tests which pairs count, which belong together, and in which family a metric is
//! judged.

use locklab_harness::experiment::{
    Cell, Design, Experiment, Invalid, Key, Labels, Metric, Order, Pair, Placement, Provenance,
    Role, Sample, Source,
};
use locklab_harness::verdicts::{JudgedCell, judge, median};
use locklab_judge::{Family, Reason, Verdict};
use serde_json::Value;

fn metric(name: &str, role: Role) -> Metric {
    Metric::higher(name, "", Source::Backend).with_role(role)
}

/// Returns a cell whose experiment's rate is so many times the baseline's, with a
/// little noise that has no order.
fn cell(n: u64, effect: f64, pairs: u32) -> Cell {
    let metrics = vec![
        metric("rate", Role::Primary),
        metric("misses", Role::Screening),
        metric("wait", Role::Descriptive),
    ];
    let sample = |rate: f64| Sample {
        values: ["rate", "misses", "wait"]
            .map(|name| (name.to_owned(), rate))
            .into(),
        ..Sample::default()
    };
    let pair = |index: u32| {
        let noise = 1.0 + f64::from(index * 7 % 20) * 1e-4;
        Pair {
            index,
            order: Order::BaselineFirst,
            baseline: sample(100.0),
            experiment: sample(100.0 * effect * noise),
        }
    };
    Cell {
        pairs: (0..pairs).map(pair).collect(),
        ..Cell::new(Key::point(2, n, 1), metrics)
    }
}

fn experiment(cells: Vec<Cell>, family: Family) -> Experiment {
    Experiment {
        kind: "matrix".into(),
        labels: Labels::new("a", "b"),
        spec: Value::Null,
        design: Design {
            family,
            ..Design::usual(20)
        },
        provenance: Provenance::Hardware("test".into()),
        facts: vec![],
        caveats: vec![],
        cells,
        interrupted: None,
    }
}

fn one(cell: Cell) -> JudgedCell {
    let mut cells = judge(&experiment(vec![cell], Family::Holm)).unwrap().cells;
    assert_eq!(cells.len(), 1);
    cells.remove(0)
}

fn word(cell: &JudgedCell) -> &'static str {
    cell.verdict().unwrap().word()
}

#[test]
fn a_metric_decides_explains_or_describes() {
    let judged = one(cell(0, 1.5, 20));
    assert_eq!(word(&judged), "better");
    assert!((judged.ratio().unwrap().value - 1.5).abs() < 0.01);
    assert_eq!(judged.metric("misses").unwrap().verdict.word(), "better");
    assert!(judged.metric("wait").is_none());
    assert_eq!(judged.baseline.get("wait"), Some(100.0));
    let rate = judged.experiment.0["rate"];
    assert!(rate.low.is_some() && rate.low < Some(rate.value));
    assert_eq!(judged.experiment.0["misses"].low, None);
    assert_eq!(judged.differences.len(), 20);
}

#[test]
fn a_failed_check_is_never_tolerated_and_a_failed_run_is() {
    let mut failed = cell(0, 1.5, 20);
    failed.pairs[19].experiment.invalid = Some(Invalid::Failed("killed".into()));
    assert_eq!(word(&one(failed.clone())), "better");
    failed.pairs[19].experiment.invalid = Some(Invalid::CheckFailed("lost".into()));
    let judged = one(failed);
    assert_eq!(word(&judged), "invalid");
    assert_eq!(judged.ratio(), None);
    assert!(judged.metric("misses").is_none());
}

/// Half a pair, as an interruption leaves it, is no failure of the subject.
#[test]
fn half_a_pair_is_not_a_pair() {
    let mut interrupted = cell(0, 1.5, 20);
    for pair in &mut interrupted.pairs[10..] {
        pair.experiment = Sample::invalid(Invalid::Interrupted("interrupted".into()));
    }
    let judged = one(interrupted);
    assert_eq!((word(&judged), judged.pairs), ("better", 10));
}

#[test]
fn a_cell_that_was_not_measured_stays_in_the_family() {
    let cells = vec![cell(0, 1.5, 20), cell(1, 1.5, 0)];
    let verdicts = judge(&experiment(cells, Family::Holm)).unwrap();
    let members = |i: usize| verdicts.cells[i].primary().unwrap().judged.members;
    assert_eq!((members(0), members(1)), (2, 2));
    assert!(verdicts.cells[0].is_measured() && !verdicts.cells[1].is_measured());
    assert!(matches!(
        verdicts.cells[1].verdict(),
        Some(Verdict::Invalid(reasons)) if reasons[..] == [Reason::NotMeasured]
    ));
    assert_eq!(verdicts.by_class()[0].1.len(), 1);
}

/// Returns a cell of which `far` pairs were measured far apart, where the experiment's
/// rate is so many times as high.
fn moved(n: u64, far: usize, times: f64) -> Cell {
    let mut moved = cell(n, 1.5, 20);
    for (i, pair) in moved.pairs.iter_mut().enumerate() {
        let away = i < far;
        if away {
            *pair.experiment.values.get_mut("rate").unwrap() *= times;
        }
        for sample in pair.samples_mut() {
            sample.placement = Some(Placement {
                before: if away { 95.0 } else { 33.0 },
                after: 50.0,
                typical: Some(if away { 96.0 } else { 34.0 }),
            });
        }
    }
    moved
}

#[test]
fn placements_are_pooled_where_the_ratio_does_not_depend_on_them() {
    let cells = vec![moved(0, 9, 1.0), moved(1, 12, 1.0)];
    let verdicts = judge(&experiment(cells, Family::Holm)).unwrap();
    assert!(verdicts.places.p.is_some() && !verdicts.places.matter());
    assert_eq!(verdicts.cells.len(), 2);
    let judged = &verdicts.cells[0];
    assert_eq!((&judged.class, judged.differences.len()), (&None, 20));
    assert_eq!(judged.round_trip, Some((33.0, 95.0)));
    // One placement, whatever figures it has on other machines.
    let one = judge(&experiment(vec![moved(0, 0, 1.0)], Family::Holm)).unwrap();
    assert_eq!(one.places.p, None);
}

#[test]
fn placements_on_which_the_ratio_depends_are_never_compared_with_one_another() {
    let cells = vec![moved(0, 9, 1.2), moved(1, 14, 1.2), moved(2, 18, 1.2)];
    let verdicts = judge(&experiment(cells, Family::Holm)).unwrap();
    assert!(verdicts.places.matter());
    let [near, far, alone, pooled] = verdicts.cells.as_slice() else {
        panic!("{} groups", verdicts.cells.len());
    };
    assert_eq!(
        (near.class.as_deref(), near.differences.len()),
        (Some("near"), 11)
    );
    assert_eq!(
        (far.class.as_deref(), far.differences.len()),
        (Some("far"), 9)
    );
    let [(place, differences)] = alone.elsewhere.as_slice() else {
        panic!("{:?}", alone.elsewhere);
    };
    assert_eq!((place.as_str(), differences.len()), ("near", 6));
    // Two pairs cannot show that this cell depends on its place.
    assert_eq!((&pooled.class, pooled.differences.len()), (&None, 20));
    let groups = verdicts.by_class();
    let classes: Vec<_> = groups.iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [None, Some("far"), Some("near")]);
}

/// A cell was once counted for each placement of its pairs.
#[test]
fn a_region_counts_a_cell_once_wherever_its_cpus_were() {
    let mut cells = vec![moved(0, 9, 1.2), moved(1, 14, 1.2), moved(2, 18, 1.2)];
    for (cell, critical) in cells.iter_mut().zip(0..) {
        cell.key = Key::point(2, critical, 1);
    }
    let mut of = experiment(cells, Family::FalseDiscovery);
    of.kind = locklab_harness::matrix::KIND.into();
    let verdicts = judge(&of).unwrap();
    assert!(verdicts.places.matter());
    let [region] = verdicts.regions.as_slice() else {
        panic!("{:?}", verdicts.regions);
    };
    assert_eq!((region.cells, region.judged.cells), (3, 5));
}

#[test]
fn a_pair_that_the_machine_disturbed_is_no_failure_and_too_few_are_unclear() {
    let mut disturbed = cell(0, 1.5, 20);
    for pair in &mut disturbed.pairs[..13] {
        pair.baseline.invalid = Some(Invalid::Disturbed("other programs".into()));
    }
    let judged = one(disturbed);
    assert_eq!(word(&judged), "unclear");
    let warnings = &judged.primary().unwrap().judged.warnings;
    let few = "only 7 pairs can be used and 8 are needed; measure for longer";
    assert!(warnings.iter().any(|w| w.to_string() == few));
}

#[test]
fn a_counter_that_stayed_at_zero_is_named_and_not_judged() {
    let mut zero = cell(0, 1.5, 20);
    zero.pairs[3].baseline.values.insert("misses".into(), 0.0);
    let judged = one(zero);
    assert_eq!(judged.zero, ["misses"]);
    assert!(judged.metric("misses").is_none());
    // Its figure is shown all the same.
    assert_eq!(judged.baseline.get("misses"), Some(100.0));
}

/// A run may lack a metric that explains, and must not lack the one that
/// decides.
#[test]
fn only_the_metric_that_decides_must_be_there() {
    let mut lacking = cell(0, 1.5, 20);
    lacking.pairs[0].baseline.values.remove("misses");
    assert_eq!(
        one(lacking.clone())
            .metric("misses")
            .unwrap()
            .estimate
            .unwrap()
            .pairs,
        19
    );
    lacking.pairs[0].baseline.values.remove("rate");
    assert_eq!(word(&one(lacking)), "invalid");
}

#[test]
fn a_bias_band_holds_for_the_metric_that_decides() {
    let mut biased = cell(0, 1.02, 20);
    biased.bias_band = Some(0.05);
    let judged = one(biased);
    assert_eq!(word(&judged), "unclear");
    assert_eq!(judged.metric("misses").unwrap().verdict.word(), "better");
}

#[test]
fn runs_without_an_order_have_no_memory() {
    let mut together = cell(0, 1.5, 20);
    let runs = |cell: &Cell| {
        let judged = one(cell.clone());
        judged
            .primary()
            .unwrap()
            .judged
            .estimate
            .unwrap()
            .autocorrelation_runs
    };
    assert!(runs(&together).is_some());
    for pair in &mut together.pairs {
        pair.order = Order::Together;
    }
    assert_eq!(runs(&together), None);
}

/// With 8 pairs and Holm, 18 places could never be called: the smallest
/// adjusted p is 18/128. They are regions, as the cells of any matrix are.
#[test]
fn the_places_of_a_matrix_in_a_run_are_a_family_of_regions() {
    let mut whole = Cell::new(Key::workload("spinlock", ""), vec![]);
    for n in 0..18 {
        whole.metrics.push(Metric {
            at: Some(Key::point(2, n, 1)),
            ..metric(&format!("rate@{n}"), Role::Primary)
        });
    }
    let sample = |metrics: &[Metric], rate: f64| Sample {
        values: metrics.iter().map(|m| (m.name.clone(), rate)).collect(),
        ..Sample::default()
    };
    whole.pairs = (0..8)
        .map(|index| Pair {
            index,
            order: Order::BaselineFirst,
            baseline: sample(&whole.metrics, 100.0),
            experiment: sample(&whole.metrics, 150.0 + f64::from(index * 3 % 8)),
        })
        .collect();
    let mut other = cell(1, 1.5, 8);
    other.key = Key::workload("fstat", "");
    let verdicts = judge(&experiment(vec![whole, other], Family::Holm)).unwrap();
    let places = &verdicts.cells[0].metrics;
    assert_eq!(places.len(), 18);
    for place in places {
        assert_eq!(place.judged.members, 18);
        assert_eq!(place.judged.verdict, Verdict::Better);
    }
    // The workloads are a family by themselves.
    assert_eq!(verdicts.cells[1].primary().unwrap().judged.members, 1);
    assert_eq!(verdicts.primaries().count(), 19);
    assert!(verdicts.cells[0].primary().is_none());
}

#[test]
fn every_figure_of_a_side_has_the_same_estimator() {
    let mut skewed = cell(0, 1.0, 9);
    for (i, pair) in skewed.pairs.iter_mut().enumerate() {
        let rate = 1.0 + (i * i) as f64;
        for sample in pair.samples_mut() {
            sample.values.insert("rate".into(), rate);
            sample.values.insert("misses".into(), 0.5 * rate);
            sample
                .values
                .insert("wait".into(), if i == 0 { 0.0 } else { rate });
        }
    }
    let judged = one(skewed);
    let figure = |name| judged.baseline.get(name).unwrap();
    assert!((figure("misses") / figure("rate") - 0.5).abs() < 1e-12);
    // A zero has no logarithm, and pulls the figure down, not away.
    assert!(figure("wait") <= figure("rate") && figure("wait") > 0.0);
}

#[test]
fn a_location_bears_zeros_and_negative_values() {
    let located = |values: &[f64]| {
        let mut waits = cell(0, 1.0, 8);
        waits.pairs.truncate(values.len());
        for (pair, value) in waits.pairs.iter_mut().zip(values) {
            pair.baseline.values.insert("wait".into(), *value);
        }
        one(waits).baseline.get("wait")
    };
    assert_eq!(located(&[0.0, 0.0, 0.0]), Some(0.0));
    assert_eq!(located(&[0.0, 4.0]), Some(0.0));
    assert_eq!(located(&[-1.0, 1.0]), Some(0.0));
    assert_eq!(located(&[7.0]), Some(7.0));
    assert_eq!(located(&[]), None);
    assert_eq!(median(vec![3.0, f64::NAN, 1.0]), Some(2.0));
}

#[test]
fn a_margin_that_makes_no_sense_is_an_error() {
    let mut wrong = experiment(vec![cell(0, 1.0, 8)], Family::Holm);
    wrong.design.delta = -1.0;
    assert!(judge(&wrong).is_err());
}
