//! The variance between groups of figures, apart from that within them, by which the
//! effect of an address or of a code layout is separated from the noise of slices.
//! Knows no blocks and no locks.

/// Returns the variance between groups, from which the variation within them is
/// subtracted: the variance component of an unbalanced one-way layout (Searle,
/// Casella and McCulloch 1992, section 3.6). Chance may make it negative. `None`
/// if there is one group, or no group of two.
pub(crate) fn between(groups: &[Vec<f64>]) -> Option<f64> {
    let all: Vec<f64> = groups.iter().flatten().copied().collect();
    let (k, n) = (groups.len() as f64, all.len() as f64);
    if groups.len() < 2 || all.len() <= groups.len() {
        return None;
    }
    let grand = mean(&all);
    let sizes = || groups.iter().map(|group| group.len() as f64);
    let inside: f64 = groups
        .iter()
        .map(|group| variance(group) * (group.len() as f64 - 1.0))
        .sum();
    let apart: f64 = groups
        .iter()
        .map(|group| group.len() as f64 * (mean(group) - grand).powi(2))
        .sum();
    let size = (n - sizes().map(|s| s * s).sum::<f64>() / n) / (k - 1.0);
    Some((apart / (k - 1.0) - inside / (n - k)) / size)
}

/// Returns the mean; 0 of none.
pub(crate) fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len().max(1) as f64
}

/// Returns the variance of a sample; 0 for one figure.
pub(crate) fn variance(list: &[f64]) -> f64 {
    let mean = mean(list);
    let squares: f64 = list.iter().map(|x| (x - mean).powi(2)).sum();
    squares / (list.len().max(2) - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_within_groups_is_no_difference_between_them() {
        let noisy = [vec![0.9, 1.1, 0.9, 1.1], vec![1.1, 0.9, 1.1, 0.9]];
        assert!(between(&noisy).unwrap() <= 0.0);
        assert_eq!(between(&[vec![1.0, 1.0]]), None);
        assert_eq!(between(&[vec![1.0], vec![2.0]]), None);
    }

    #[test]
    fn groups_that_differ_by_a_tenth_have_its_variance() {
        let apart = [vec![0.9, 0.9, 0.9], vec![1.1, 1.1, 1.1]];
        assert!((between(&apart).unwrap() - 0.02).abs() < 1e-12);
    }
}
