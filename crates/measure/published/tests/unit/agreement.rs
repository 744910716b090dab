//! Tests of src/agreement.rs, with access to what is private there.

use super::*;

/// Ratios that were all published with their size.
fn agreement(published: &[f64], ours: &[f64]) -> Agreement {
    let pairs = published.iter().zip(ours);
    let pairs: Vec<_> = pairs.map(|(&p, &o)| (Published::Ratio(p), o)).collect();
    super::agreement(&pairs)
}

#[test]
fn a_worked_example() {
    // 1.04 has no direction; of the four others one is on the wrong side.
    let theirs = [1.5, 1.04, 0.9, 1.2, 2.0];
    let ours = [1.3, 0.98, 0.95, 0.99, 2.0];
    let agreement = agreement(&theirs, &ours);
    assert_eq!(agreement.directed, 4);
    assert_eq!(agreement.direction, Some(0.75));
    // Ranks 4 2 1 3 5 and 4 2 1 3 5.
    assert!((agreement.spearman.unwrap() - 1.0).abs() < 1e-12);
    let error =
        ((1.5f64 / 1.3).ln() + (1.04f64 / 0.98).ln() + (0.95f64 / 0.9).ln() + (1.2f64 / 0.99).ln())
            / 5.0;
    assert!((agreement.mean_abs_log_error.unwrap() - error).abs() < 1e-12);
    // Factors 1.15, 1.06, 1.06, 1.21, 1.
    let median = agreement.median_factor_error.unwrap();
    assert!((median - 1.04 / 0.98).abs() < 1e-12, "{median}");
}

#[test]
fn a_direction_without_a_size_counts_as_a_direction_only() {
    let pairs = [
        (Published::Above, 1.01),
        (Published::Below, 1.2),
        (Published::Above, 1.0),
    ];
    let directions = super::agreement(&pairs);
    assert_eq!((directions.figures, directions.directed), (3, 3));
    assert_eq!(directions.direction, Some(1.0 / 3.0));
    assert_eq!(directions.median_factor_error, None);
    assert_eq!(directions.mean_abs_log_error, None);
    let both = super::agreement(&[pairs[0], (Published::Ratio(2.0), 1.0)]);
    assert_eq!((both.directed, both.direction), (2, Some(0.5)));
    assert_eq!(both.median_factor_error, Some(2.0));
}

#[test]
fn four_figures_have_no_rank_correlation_and_five_have() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(agreement(&values[..4], &values[..4]).spearman, None);
    assert_eq!(agreement(&values, &values).spearman, Some(1.0));
}

#[test]
fn no_figures_have_no_median_and_two_share_theirs() {
    assert_eq!(agreement(&[], &[]).median_factor_error, None);
    let two = agreement(&[1.0, 1.0], &[2.0, 0.25]);
    assert!((two.median_factor_error.unwrap() - 3.0).abs() < 1e-12);
}

#[test]
fn exactly_one_is_the_wrong_direction_of_a_change() {
    assert!(Published::Ratio(1.5).contradicts(1.0));
    assert!(!Published::Ratio(1.04).contradicts(0.9));
    assert!((factor_error(2.0, 1.0) - factor_error(1.0, 2.0)).abs() < 1e-12);
}

#[test]
fn ties_share_a_rank_and_one_value_has_no_correlation() {
    assert_eq!(ranks(&[2.0, 1.0, 2.0]), [2.5, 1.0, 2.5]);
    assert_eq!(
        agreement(&[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]).spearman,
        None
    );
    assert_eq!(agreement(&[1.0], &[2.0]).direction, None);
}
