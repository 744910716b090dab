//! The normal distribution, for sample sizes beyond the exact tables and for
//! planning. Must never decide a verdict where the exact distribution can.

/// Returns P(|Z| ≥ z) for z ≥ 0.
pub(crate) fn two_sided_tail(z: f64) -> f64 {
    libm::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// Returns the z that leaves `tail` above it, for a tail in (0, 0.5].
pub(crate) fn upper_quantile(tail: f64) -> f64 {
    // The tail underflows at 38, so the answer is bracketed.
    let (mut low, mut high) = (0.0, 39.0);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if 0.5 * two_sided_tail(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles() {
        for (tail, z) in [
            (0.5, 0.0),
            (0.2, 0.841_621_233_572_914_3),
            (0.05, 1.644_853_626_951_472_2),
            (0.025, 1.959_963_984_540_054),
            (1e-9, 5.997_807_015_007_688),
        ] {
            assert!((upper_quantile(tail) - z).abs() < 1e-9, "{tail}");
        }
    }
}
