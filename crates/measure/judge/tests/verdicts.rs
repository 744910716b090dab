//! Tests that each verdict, reason and warning is reached on purpose.

use locklab_judge::{
    BadSetting, Comparison, Direction, Family, FaultKind, Independent, Judged, Order, Pair, Reason,
    Sampling, Settings, Side, Verdict, Warning, estimate, judge,
};

/// Returns `n` pairs whose differences have the given mean and are spread evenly
/// over ±`half_width`, in an order with little memory.
fn pairs(n: usize, mean: f64, half_width: f64) -> Vec<Pair> {
    // Multiples of a step that is coprime to n visit every place once, and
    // consecutive multiples of about 0.21 n are uncorrelated.
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = (n * 21 / 100..)
        .find(|step| gcd(*step, n) == 1)
        .unwrap_or(1);
    (0..n)
        .map(|i| {
            let place = i * step % n;
            let x = (2 * place + 1) as f64 / n as f64 - 1.0;
            Pair::new(
                100.0,
                100.0 * (mean + half_width * x).exp(),
                Order::BaselineFirst,
            )
        })
        .collect()
}

fn higher(pairs: Vec<Pair>) -> Comparison {
    Comparison {
        bias_band: Some(0.0),
        ..Comparison::primary(pairs, Direction::HigherIsBetter)
    }
}

fn one(comparison: Comparison) -> Judged {
    judge(&[comparison], &Settings::default())
        .expect("the settings are sound")
        .remove(0)
}

fn fail(pairs: &mut [Pair], which: usize, kind: FaultKind) {
    let order = pairs[which].order;
    pairs[which] = Pair::invalid(kind, Some(Side::Experiment), "exit status 1", order);
}

#[test]
fn better_worse_flat_and_unclear() {
    assert_eq!(one(higher(pairs(20, 0.05, 0.02))).verdict, Verdict::Better);
    assert_eq!(one(higher(pairs(20, -0.05, 0.02))).verdict, Verdict::Worse);
    let nothing = one(higher(pairs(20, 0.0, 0.005))).verdict;
    assert_eq!(nothing, Verdict::Flat { nonzero: false });
    let little = one(higher(pairs(20, 0.004, 0.005))).verdict;
    assert_eq!(little, Verdict::Flat { nonzero: true });
    let noisy = one(higher(pairs(20, 0.0, 0.1))).verdict;
    assert_eq!(noisy.word(), "unclear");
}

#[test]
fn a_latency_that_falls_is_better_and_shown_as_negative() {
    let judged = one(Comparison::primary(
        pairs(20, -0.05, 0.02),
        Direction::LowerIsBetter,
    ));
    assert_eq!(judged.verdict, Verdict::Better);
    let shown = judged.estimate.unwrap().delta_percent();
    assert!(shown.low > -6.0 && shown.high < -4.0, "{shown:?}");
}

#[test]
fn unclear_says_what_could_have_been_found_and_what_would_settle_it() {
    let judged = one(higher(pairs(20, 0.0, 0.1)));
    let s_d = judged.estimate.unwrap().spread;
    let Verdict::Unclear {
        detectable,
        pairs_for_flat,
    } = judged.verdict
    else {
        panic!("{judged:?}");
    };
    let in_spreads = detectable.unwrap().ln_1p() / s_d;
    assert!((in_spreads - 0.66).abs() < 0.005, "{in_spreads}");
    let expected = 9.4 * (s_d / 0.01_f64.ln_1p()).powi(2);
    assert_eq!(pairs_for_flat, Some(expected.ceil() as u64));
}

#[test]
fn the_bias_band_stands_between_significant_and_better() {
    let mut comparison = higher(pairs(20, 0.05, 0.02));
    comparison.bias_band = Some(0.06);
    let judged = one(comparison);
    assert!(judged.p_adjusted < 0.001);
    let Verdict::Unclear {
        detectable,
        pairs_for_flat,
    } = judged.verdict
    else {
        panic!("{judged:?}");
    };
    assert!(detectable.unwrap() > 0.06);
    assert_eq!(pairs_for_flat, None);
    assert!(
        judged
            .warnings
            .iter()
            .any(|w| matches!(w, Warning::WithinBand { .. }))
    );
}

#[test]
fn a_band_as_wide_as_the_margin_forbids_flat_and_says_so() {
    for (band, word) in [(0.0099, "flat"), (0.01, "unclear"), (0.02, "unclear")] {
        let mut comparison = higher(pairs(20, 0.0, 0.005));
        comparison.bias_band = Some(band);
        let judged = one(comparison);
        assert_eq!(judged.verdict.word(), word, "{band}");
        let warned = judged
            .warnings
            .iter()
            .any(|w| matches!(w, Warning::BandTooWide { .. }));
        assert_eq!(warned, word == "unclear", "{band}");
    }
}

#[test]
fn a_claim_without_an_aa_run_is_warned_of() {
    let judged = one(Comparison::primary(
        pairs(20, 0.05, 0.02),
        Direction::HigherIsBetter,
    ));
    assert_eq!(judged.warnings, [Warning::BandUnknown]);
    assert!(judged.warnings[0].to_string().contains("--aa"));
}

#[test]
fn seven_pairs_are_too_few_and_eight_are_not() {
    let judged = one(higher(pairs(7, 0.5, 0.01)));
    // Seven pairs are not wrong: they show nothing.
    assert_eq!(
        judged.verdict,
        Verdict::Unclear {
            detectable: None,
            pairs_for_flat: None
        }
    );
    let few = Warning::TooFewPairs {
        usable: 7,
        needed: 8,
    };
    assert!(judged.warnings.contains(&few));
    assert_eq!((judged.p, judged.p_adjusted), (1.0, 1.0));
    assert!(judged.estimate.is_some());
    // Nor are eight that the machine disturbed.
    let mut disturbed = pairs(8, 0.5, 0.01);
    (0..8).for_each(|i| fail(&mut disturbed, i, FaultKind::Disturbed));
    let judged = one(higher(disturbed));
    assert_eq!((judged.verdict.word(), judged.estimate), ("unclear", None));
    assert_eq!(one(higher(pairs(8, 0.5, 0.01))).verdict, Verdict::Better);
    let none = one(higher(Vec::new()));
    assert_eq!(none.verdict.word(), "invalid");
    assert_eq!(none.estimate, None);
}

#[test]
fn one_failed_run_of_forty_costs_its_pair_and_no_more() {
    for kind in [FaultKind::RunFailed, FaultKind::CounterPartial] {
        let mut sample = pairs(20, 0.05, 0.02);
        fail(&mut sample, 3, kind);
        let judged = one(higher(sample.clone()));
        assert_eq!(judged.verdict, Verdict::Better);
        assert_eq!(judged.estimate.unwrap().pairs, 19);
        assert_eq!(judged.set_aside.len(), 1);
        assert_eq!(judged.set_aside[0].0, 3);
        let Warning::PairsSetAside { count, of, first } = &judged.warnings[0] else {
            panic!("{judged:?}");
        };
        assert_eq!((*count, *of), (1, 20));
        assert!(
            first.contains("experiment") && first.contains("exit status 1"),
            "{first}"
        );

        fail(&mut sample, 4, kind);
        fail(&mut sample, 5, kind);
        let judged = one(higher(sample.clone()));
        assert!(matches!(
            &judged.verdict,
            Verdict::Invalid(r) if matches!(r[0], Reason::TooManyFailures { failed: 3, of: 20, .. })
        ));
        assert_eq!(judged.p, 1.0);

        let strict = Settings {
            tolerated_failures: 0.0,
            ..Settings::default()
        };
        let mut sample = pairs(20, 0.05, 0.02);
        fail(&mut sample, 3, kind);
        let judged = judge(&[higher(sample)], &strict).unwrap();
        assert_eq!(judged[0].verdict.word(), "invalid");
    }
}

#[test]
fn a_pair_that_the_machine_disturbed_is_not_a_failure() {
    let mut sample = pairs(24, 0.05, 0.02);
    for i in 0..8 {
        fail(&mut sample, i * 3, FaultKind::Disturbed);
    }
    let judged = one(higher(sample.clone()));
    assert_eq!(judged.verdict, Verdict::Better);
    assert_eq!(judged.estimate.unwrap().pairs, 16);

    // Nor does it count as a run that went well: 2 of the 16 others failed,
    // and that is more than a tenth.
    fail(&mut sample, 1, FaultKind::RunFailed);
    fail(&mut sample, 2, FaultKind::RunFailed);
    assert!(matches!(
        one(higher(sample)).verdict,
        Verdict::Invalid(r) if matches!(r[0], Reason::TooManyFailures { failed: 2, of: 16, .. })
    ));
}

#[test]
fn a_lost_check_or_a_zero_is_never_outvoted() {
    let mut sample = pairs(40, 0.05, 0.02);
    fail(&mut sample, 39, FaultKind::CheckFailed);
    let judged = one(higher(sample));
    let Verdict::Invalid(reasons) = judged.verdict else {
        panic!("{judged:?}");
    };
    let text = reasons[0].to_string();
    assert!(text.starts_with("in pair 40, the experiment's run failed the workload's own check"));

    let mut sample = pairs(40, 0.05, 0.02);
    sample[0].baseline = 0.0;
    let judged = one(higher(sample));
    let Verdict::Invalid(reasons) = judged.verdict else {
        panic!("{judged:?}");
    };
    let text = reasons[0].to_string();
    assert!(text.starts_with("in pair 1, the baseline's run gave a value"));
    assert!(text.contains("(0)"), "{text}");
}

#[test]
fn a_family_shares_the_five_percent_and_says_who_lost() {
    // Each has p = 0.0078: alone that is enough, among twenty it is not.
    let unanimous = || higher(pairs(8, 0.05, 0.02));
    let nothing = || higher(pairs(8, 0.0, 0.2));
    let mut all = vec![unanimous()];
    all.extend((0..19).map(|_| nothing()));
    let judged = judge(&all, &Settings::default()).unwrap();
    assert_eq!(judged[0].verdict.word(), "unclear");
    assert_eq!(judged[0].members, 20);
    assert!((judged[0].p_adjusted - 20.0 * judged[0].p).abs() < 1e-12);
    assert!(judged[0].warnings.iter().any(|w| matches!(
        w,
        Warning::TooFewForFamily {
            members: 20,
            sampling: Sampling::Pairs(8),
            needed: 10,
            together: None,
            ..
        }
    )));
    assert!(
        judged[0]
            .warnings
            .iter()
            .any(|w| matches!(w, Warning::LostToFamily { members: 20, .. }))
    );
    assert!(matches!(
        judged[0].verdict,
        Verdict::Unclear {
            detectable: None,
            ..
        }
    ));

    for family in [Family::FalseDiscovery, Family::Each] {
        let settings = Settings {
            family,
            ..Settings::default()
        };
        let mut all: Vec<Comparison> = (0..10).map(|_| unanimous()).collect();
        all.extend((0..10).map(|_| nothing()));
        let judged = judge(&all, &settings).unwrap();
        let better = judged
            .iter()
            .filter(|j| j.verdict == Verdict::Better)
            .count();
        assert_eq!(better, 10, "{family:?}");
    }
}

#[test]
fn screening_neither_takes_from_the_primary_family_nor_lends_to_it() {
    let mut all = vec![higher(pairs(8, 0.05, 0.02))];
    all.extend(
        (0..30).map(|_| Comparison::screening(pairs(8, 0.0, 0.2), Direction::LowerIsBetter)),
    );
    let judged = judge(&all, &Settings::default()).unwrap();
    assert_eq!(judged[0].verdict, Verdict::Better);
    assert_eq!((judged[0].members, judged[1].members), (1, 30));
}

#[test]
fn counters_are_screened_by_the_false_discovery_rate_whatever_the_family() {
    let counter = |mean| Comparison::screening(pairs(8, mean, 0.02), Direction::LowerIsBetter);
    let found = |unanimous: usize, family| {
        let all: Vec<Comparison> = (0..20)
            .map(|i| counter(if i < unanimous { -0.05 } else { 0.0 }))
            .collect();
        let settings = Settings {
            family,
            ..Settings::default()
        };
        let judged = judge(&all, &settings).unwrap();
        judged
            .iter()
            .filter(|j| j.verdict == Verdict::Better)
            .count()
    };
    for family in [Family::Holm, Family::FalseDiscovery, Family::Each] {
        // 0.0078 is above 3/20 of 5 % and below 4/20.
        assert_eq!((found(3, family), found(4, family)), (0, 4), "{family:?}");
    }
}

#[test]
fn an_invalid_comparison_stays_in_its_family() {
    let all = [
        higher(pairs(8, 0.05, 0.02)),
        higher(pairs(3, 0.05, 0.02)),
        higher(Vec::new()),
    ];
    let judged = judge(&all, &Settings::default()).unwrap();
    assert_eq!(judged[0].members, 3);
    assert!((judged[0].p_adjusted - 3.0 * judged[0].p).abs() < 1e-12);
}

#[test]
fn identical_differences_are_flat_or_different_but_never_without_a_warning() {
    for (mean, word) in [(0.0, "flat"), (0.05, "better")] {
        let judged = one(higher(pairs(20, mean, 0.0)));
        assert_eq!(judged.verdict.word(), word);
        assert!(judged.warnings.contains(&Warning::NoVariation));
    }
    assert_eq!(one(higher(pairs(20, 0.0, 0.0))).estimate.unwrap().zeros, 20);
}

#[test]
fn memory_among_the_pairs_is_reported() {
    let mut sample = pairs(40, 0.0, 0.05);
    sample.sort_by(|a, b| a.experiment.total_cmp(&b.experiment));
    let judged = one(higher(sample));
    assert!(judged.estimate.unwrap().autocorrelation.unwrap() > 0.8);
    assert!(judged.warnings.iter().any(
        |w| matches!(w, Warning::Autocorrelated { limit, .. } if (limit - 0.316).abs() < 0.001)
    ));
}

#[test]
fn ten_thousand_pairs_are_judged_by_approximation_and_at_once() {
    let judged = one(higher(pairs(10_000, 0.0, 0.1)));
    assert_eq!(judged.verdict, Verdict::Flat { nonzero: false });
    let normal = Warning::NormalApproximation { pairs: 10_000 };
    assert!(judged.warnings.contains(&normal));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let sound = Settings::default();
    let refused = |settings: Settings| judge(&[], &settings).unwrap_err();
    for delta in [0.0, -0.01, f64::NAN, f64::INFINITY] {
        let bad = refused(Settings { delta, ..sound });
        assert!(matches!(bad, BadSetting::Delta(_)));
    }
    for tolerated_failures in [-0.1, 1.1, f64::NAN] {
        let bad = refused(Settings {
            tolerated_failures,
            ..sound
        });
        assert!(matches!(bad, BadSetting::ToleratedFailures(_)));
    }
    let bad = refused(Settings {
        min_pairs: 1,
        ..sound
    });
    assert_eq!(bad, BadSetting::MinPairs(1));

    let mut comparison = higher(pairs(20, 0.0, 0.1));
    comparison.bias_band = Some(-0.1);
    let bad = judge(&[comparison], &sound).unwrap_err();
    assert_eq!(bad, BadSetting::BiasBand(0, -0.1));
}

#[test]
fn one_pair_has_an_estimate_and_no_limits() {
    let e = estimate(
        &[Pair::new(2.0, 3.0, Order::BaselineFirst)],
        Direction::HigherIsBetter,
    )
    .unwrap();
    assert!((e.ratio().value - 1.5).abs() < 1e-12);
    assert_eq!((e.ratio().low, e.ratio().high), (0.0, f64::INFINITY));
    assert_eq!((e.baseline, e.experiment, e.spread), (2.0, 3.0, 0.0));
    assert_eq!(e.p, 1.0);
}

/// Times around `centre` without an order.
fn times(n: usize, centre: f64, half_width: f64) -> Vec<f64> {
    let runs = pairs(n, 0.0, half_width);
    runs.iter().map(|pair| centre * pair.experiment).collect()
}

fn samples(baseline: Vec<f64>, experiment: Vec<f64>) -> Comparison {
    let samples = Independent {
        baseline,
        experiment,
    };
    Comparison::independent(samples, Direction::LowerIsBetter)
}

#[test]
fn samples_without_pairs_have_the_same_verdicts_and_the_caveat_of_drift() {
    let word = |experiment: f64, spread: f64| {
        let judged = one(samples(
            times(20, 1.0, spread),
            times(20, experiment, spread),
        ));
        assert!(judged.warnings.contains(&Warning::DriftNotControlled));
        judged.verdict.word()
    };
    assert_eq!(word(0.95, 0.02), "better");
    assert_eq!(word(1.05, 0.02), "worse");
    assert_eq!(word(1.001, 0.005), "flat");
    assert_eq!(word(1.0, 0.2), "unclear");
}

#[test]
fn a_drift_that_may_have_been_is_a_bias_that_must_be_exceeded() {
    let worse = samples(times(20, 1.0, 0.01), times(20, 1.02, 0.01));
    assert_eq!(one(worse.clone()).verdict, Verdict::Worse);
    let within = one(Comparison {
        bias_band: Some(0.03),
        ..worse
    });
    assert_eq!(within.verdict.word(), "unclear");
}

#[test]
fn samples_that_cannot_be_judged_say_why() {
    let few = one(samples(times(3, 1.0, 0.01), times(20, 2.0, 0.01)));
    assert_eq!(few.verdict.word(), "unclear");
    assert!(!few.was_judged());
    let text = few.warnings[0].to_string();
    assert!(
        text.starts_with("the baseline has only 3 samples that can be used and 4 are needed"),
        "{text}"
    );
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut experiment = times(20, 1.0, 0.01);
        experiment[4] = wrong;
        let judged = one(samples(times(20, 1.0, 0.01), experiment));
        let Verdict::Invalid(reasons) = &judged.verdict else {
            panic!("{:?}", judged.verdict);
        };
        let text = reasons[0].to_string();
        assert!(
            text.starts_with("in sample 5, the experiment's run"),
            "{text}"
        );
        assert_eq!(judged.p, 1.0);
    }
    let nothing = one(samples(Vec::new(), times(20, 1.0, 0.01)));
    assert_eq!(nothing.verdict, Verdict::Invalid(vec![Reason::NotMeasured]));
    // An exact count differs without any noise.
    let exact = one(samples(vec![100.0; 10], vec![102.0; 10]));
    assert_eq!(exact.verdict, Verdict::Worse);
    assert!(exact.warnings.contains(&Warning::NoVariationWithin));
}

#[test]
fn samples_of_a_large_family_say_how_many_it_takes() {
    let comparisons = vec![samples(times(4, 1.0, 0.1), times(4, 1.0, 0.1)); 10];
    let judged = judge(&comparisons, &Settings::default()).unwrap();
    let needed = judged[0].warnings.iter().find_map(|warning| match warning {
        Warning::TooFewForFamily { needed, .. } => Some(*needed),
        _ => None,
    });
    // 2 of 924 choices are below 5 % of 10 comparisons, 2 of 252 are not.
    assert_eq!(needed, Some(6));
}
