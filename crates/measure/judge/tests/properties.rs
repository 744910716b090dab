//! Tests what must hold for every sample, by looking for one that breaks it.

use locklab_judge::{
    ALPHA, Comparison, Direction, Estimate, Family, FaultKind, Order, Pair, Settings, Side,
    Verdict, aa_check, bias_band, coin, estimate, fork_seed, judge,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Returns the same cases on every run; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` do not
/// override this, so change it here to search further.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(0x10c7_1ab5),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::BaselineFirst), Just(Order::ExperimentFirst)]
}

/// Returns positive values, half of them coarse so that ties and zero differences
/// are common.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![0.5..2.0_f64, (8..12_u32).prop_map(f64::from)]
}

fn pairs(size: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Pair>> {
    let pair = (value(), value(), order()).prop_map(|(b, e, order)| Pair::new(b, e, order));
    prop::collection::vec(pair, size)
}

/// Pairs without ties or zeros.
fn smooth(size: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Pair>> {
    let pair = (0.9..1.1_f64, 0.9..1.1_f64, order());
    prop::collection::vec(pair.prop_map(|(b, e, order)| Pair::new(b, e, order)), size)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::HigherIsBetter),
        Just(Direction::LowerIsBetter)
    ]
}

fn map(pairs: &[Pair], f: impl Fn(f64, f64) -> (f64, f64)) -> Vec<Pair> {
    pairs
        .iter()
        .map(|p| {
            let (baseline, experiment) = f(p.baseline, p.experiment);
            Pair::new(baseline, experiment, p.order)
        })
        .collect()
}

fn of(pairs: &[Pair], direction: Direction) -> Estimate {
    estimate(pairs, direction).expect("there are usable pairs")
}

fn verdict(pairs: Vec<Pair>, direction: Direction) -> Verdict {
    let judged = judge(
        &[Comparison::primary(pairs, direction)],
        &Settings::default(),
    );
    judged.expect("the settings are sound").remove(0).verdict
}

/// Tells whether two limits are close; infinite ones are equal to themselves.
fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() < 1e-12
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn swapping_the_sides_negates(pairs in pairs(1..30), direction in direction()) {
        let swapped = map(&pairs, |b, e| (e, b));
        let (a, b) = (of(&pairs, direction), of(&swapped, direction));
        prop_assert_eq!(a.theta, -b.theta);
        prop_assert_eq!((a.ci95.low, a.ci95.high), (-b.ci95.high, -b.ci95.low));
        prop_assert_eq!((a.ci90.low, a.ci90.high), (-b.ci90.high, -b.ci90.low));
        prop_assert_eq!(a.p, b.p);
        prop_assert!(close(a.ratio().value * b.ratio().value, 1.0));
        let opposite = match verdict(swapped, direction) {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        prop_assert_eq!(verdict(pairs, direction).word(), opposite.word());
    }

    #[test]
    fn direction_changes_the_sign_of_theta_and_nothing_people_read(pairs in pairs(1..30)) {
        let up = of(&pairs, Direction::HigherIsBetter);
        let down = of(&pairs, Direction::LowerIsBetter);
        prop_assert_eq!(up.theta, -down.theta);
        prop_assert_eq!(up.p, down.p);
        prop_assert_eq!(up.ratio(), down.ratio());
        prop_assert_eq!(up.delta_percent(), down.delta_percent());
    }

    #[test]
    fn the_unit_does_not_matter(
        pairs in smooth(1..30), exponent in -200..200_i32, direction in direction()
    ) {
        let c = 10.0_f64.powi(exponent);
        let scaled = map(&pairs, |b, e| (c * b, c * e));
        let (a, b) = (of(&pairs, direction), of(&scaled, direction));
        prop_assert!(close(a.theta, b.theta));
        prop_assert!(close(a.ci95.low, b.ci95.low) && close(a.ci95.high, b.ci95.high));
        prop_assert!(close(a.p, b.p));
    }

    #[test]
    fn a_common_factor_of_the_experiment_shifts_theta(
        pairs in smooth(1..30), factor in 0.1..10.0_f64, direction in direction()
    ) {
        let shifted = map(&pairs, |b, e| (b, factor * e));
        let (a, b) = (of(&pairs, direction), of(&shifted, direction));
        let shift = direction.sign() * factor.ln();
        prop_assert!(close(a.theta + shift, b.theta));
        prop_assert!(close(a.ci95.low + shift, b.ci95.low));
        prop_assert!(close(a.ci90.high + shift, b.ci90.high));
    }

    #[test]
    fn a_better_run_never_makes_the_estimate_worse(
        pairs in pairs(1..30), which in any::<prop::sample::Index>(), factor in 1.0..3.0_f64
    ) {
        let mut improved = pairs.clone();
        improved[which.index(pairs.len())].experiment *= factor;
        let before = of(&pairs, Direction::HigherIsBetter);
        let after = of(&improved, Direction::HigherIsBetter);
        prop_assert!(after.theta >= before.theta);
        prop_assert!(after.ci95.low >= before.ci95.low);
        prop_assert!(after.ci95.high >= before.ci95.high);
        prop_assert!(after.ci90.low >= before.ci90.low);
        prop_assert!(after.ci90.high >= before.ci90.high);
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(
        (pairs, shuffled) in pairs(1..30).prop_flat_map(|pairs| {
            (Just(pairs.clone()), Just(pairs).prop_shuffle())
        }),
        direction in direction()
    ) {
        let (a, b) = (of(&pairs, direction), of(&shuffled, direction));
        prop_assert_eq!((a.theta, a.ci95, a.ci90, a.p), (b.theta, b.ci95, b.ci90, b.p));
        prop_assert_eq!((a.baseline, a.experiment), (b.baseline, b.experiment));
        prop_assert_eq!(verdict(pairs, direction).word(), verdict(shuffled, direction).word());
    }

    #[test]
    fn intervals_are_nested_and_hold_the_estimate(
        pairs in pairs(1..40), direction in direction()
    ) {
        let e = of(&pairs, direction);
        prop_assert!(e.ci95.low <= e.ci90.low && e.ci90.low <= e.theta);
        prop_assert!(e.theta <= e.ci90.high && e.ci90.high <= e.ci95.high);
        prop_assert!(e.ci95.coverage >= 0.95 && e.ci90.coverage >= 0.90);
        prop_assert_eq!(e.ci95.low.is_finite(), pairs.len() >= 6);
        prop_assert_eq!(e.ci90.low.is_finite(), pairs.len() >= 5);
        for shown in [e.ratio(), e.delta_percent()] {
            prop_assert!(shown.low <= shown.value && shown.value <= shown.high);
        }
        prop_assert!(e.p > 0.0 && e.p <= 1.0);
    }

    #[test]
    fn test_and_interval_agree_where_nothing_is_tied(
        pairs in smooth(1..40), direction in direction()
    ) {
        let e = of(&pairs, direction);
        prop_assert_eq!(e.p <= ALPHA, e.ci95.excludes_zero());
    }

    #[test]
    fn a_verdict_claims_only_what_its_intervals_say(
        pairs in smooth(8..40), factor in 0.9..1.1_f64, band in 0.0..0.02_f64
    ) {
        let pairs = map(&pairs, |b, e| (b, factor * e.powf(0.2) * b.powf(0.8)));
        let mut comparison = Comparison::primary(pairs, Direction::LowerIsBetter);
        comparison.bias_band = Some(band);
        let judged = judge(&[comparison], &Settings::default()).unwrap().remove(0);
        let e = judged.estimate.unwrap();
        let (delta, band) = (0.01_f64.ln_1p(), band.ln_1p());
        let flat = e.ci90.low > -delta && e.ci90.high < delta && band < delta;
        let expected = match () {
            () if flat => "flat",
            () if judged.p_adjusted < ALPHA && e.ci95.low > band => "better",
            () if judged.p_adjusted < ALPHA && e.ci95.high < -band => "worse",
            () => "unclear",
        };
        prop_assert_eq!(judged.verdict.word(), expected);
    }

    #[test]
    fn one_zero_or_worse_makes_the_whole_comparison_invalid(
        pairs in pairs(8..40), which in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec![
            0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY,
        ]),
        baseline in any::<bool>()
    ) {
        let mut pairs = pairs;
        let pair = &mut pairs[which.index(10).min(7)];
        *(if baseline { &mut pair.baseline } else { &mut pair.experiment }) = bad;
        prop_assert_eq!(verdict(pairs, Direction::HigherIsBetter).word(), "invalid");
    }
}

/// Returns any value that a caller may have.
fn anything() -> impl Strategy<Value = Pair> {
    let kind = prop::sample::select(vec![
        FaultKind::RunFailed,
        FaultKind::CounterPartial,
        FaultKind::Disturbed,
        FaultKind::CheckFailed,
        FaultKind::Unusable,
    ]);
    let side = prop::sample::select(vec![None, Some(Side::Baseline), Some(Side::Experiment)]);
    prop_oneof![
        6 => (value(), value(), order()).prop_map(|(b, e, o)| Pair::new(b, e, o)),
        1 => (prop::num::f64::ANY, prop::num::f64::ANY, order())
            .prop_map(|(b, e, o)| Pair::new(b, e, o)),
        1 => (prop::num::f64::POSITIVE, prop::num::f64::POSITIVE, order())
            .prop_map(|(b, e, o)| Pair::new(b, e, o)),
        1 => (kind, side, order()).prop_map(|(k, s, o)| Pair::invalid(k, s, "seen", o)),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_panics_and_every_text_can_be_read(
        all in prop::collection::vec(prop::collection::vec(anything(), 0..30), 0..5),
        direction in direction(),
        delta in prop::num::f64::ANY,
        band in prop::option::of(prop_oneof![0.0..0.1_f64, prop::num::f64::ANY]),
        min_pairs in 0..12_usize,
        tolerated_failures in prop_oneof![0.0..=1.0_f64, prop::num::f64::ANY],
        family in prop::sample::select(vec![
            Family::Holm, Family::FalseDiscovery, Family::Each,
        ]),
    ) {
        let comparisons: Vec<Comparison> = all
            .into_iter()
            .enumerate()
            .map(|(i, pairs)| {
                let _ = bias_band(&pairs, 0.01);
                let mut c = if i % 3 == 2 {
                    Comparison::screening(pairs, direction)
                } else {
                    Comparison::primary(pairs, direction)
                };
                c.bias_band = band;
                c
            })
            .collect();
        let sound = Settings { family, ..Settings::default() };
        for settings in [sound, Settings { delta, min_pairs, tolerated_failures, ..sound }] {
            match judge(&comparisons, &settings) {
                Err(bad) => prop_assert!(!bad.to_string().is_empty()),
                Ok(judged) => {
                    prop_assert_eq!(judged.len(), comparisons.len());
                    let _ = aa_check(&judged, family).passed();
                    for j in judged {
                        prop_assert!(j.p <= j.p_adjusted && j.p_adjusted <= 1.0);
                        if let Verdict::Invalid(reasons) = &j.verdict {
                            prop_assert!(!reasons.is_empty());
                            prop_assert!(reasons.iter().all(|r| !r.to_string().is_empty()));
                        }
                        prop_assert!(j.warnings.iter().all(|w| !w.to_string().is_empty()));
                    }
                }
            }
        }
    }

    #[test]
    fn a_coin_is_fair_and_its_forks_do_not_follow_it(seed in any::<u64>()) {
        let heads = |seed: u64| -> Vec<bool> {
            (0..1000).map(|i| coin(seed, i) == Order::BaselineFirst).collect()
        };
        let a = heads(seed);
        for other in [seed.wrapping_add(1), fork_seed(seed, 0), fork_seed(seed, 1)] {
            let b = heads(other);
            let fair = b.iter().filter(|x| **x).count();
            let equal = a.iter().zip(&b).filter(|(x, y)| x == y).count();
            // This is 500 ± 5.4 standard deviations.
            prop_assert!((415..=585).contains(&fair) && (415..=585).contains(&equal));
        }
    }
}
