//! The ratios of two locks over the machines that a model's assumptions allow,
//! and what they say together. Never says more than nine of ten of them do.

use serde::Serialize;

/// The ratio of two locks over the machines that the assumptions allow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Band {
    /// On each machine drawn, the machine itself first.
    pub ratios: Vec<f64>,
    /// Nine of ten lie between this
    pub low: f64,
    /// and this.
    pub high: f64,
    /// Half are below.
    pub median: f64,
}

/// What a band says of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// Better wherever the assumptions may lie.
    Better,
    /// Worse.
    Worse,
    /// No difference that matters, wherever they lie.
    Flat,
    /// It depends on the assumptions.
    Unclear,
}

impl Band {
    /// From the ratios on each machine.
    ///
    /// # Panics
    /// If there are none.
    pub(crate) fn new(ratios: Vec<f64>) -> Self {
        let mut sorted = ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        // Outwards, so that few draws do not look sure.
        let out = (sorted.len() as f64 * 0.05) as usize;
        Self {
            low: sorted[out],
            high: sorted[last - out],
            median: sorted[last / 2].midpoint(sorted[last.div_ceil(2)]),
            ratios,
        }
    }

    /// A verdict, where a change of a ratio by less than `delta` does not
    /// matter.
    pub(crate) fn says(&self, delta: f64) -> Says {
        if self.low >= 1.0 - delta && self.high <= 1.0 + delta {
            Says::Flat
        } else if self.low > 1.0 {
            Says::Better
        } else if self.high < 1.0 {
            Says::Worse
        } else {
            Says::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_agrees_or_does_not() {
        let band = |low: f64, high: f64| {
            Band::new(
                (0..=20)
                    .map(|n| low + (high - low) * f64::from(n) / 20.0)
                    .collect(),
            )
        };
        assert_eq!(band(1.1, 1.5).says(0.02), Says::Better);
        assert_eq!(band(0.5, 0.9).says(0.02), Says::Worse);
        assert_eq!(band(0.99, 1.01).says(0.02), Says::Flat);
        assert_eq!(band(0.9, 1.1).says(0.02), Says::Unclear);
        let few = Band::new(vec![1.2, 0.9, 1.3]);
        assert_eq!((few.low, few.high, few.median), (0.9, 1.3, 1.2));
        // One of twenty-one that differs does not make it unclear.
        let mut ratios = vec![1.2; 20];
        ratios.push(0.9);
        assert_eq!(Band::new(ratios).says(0.02), Says::Better);
    }
}
