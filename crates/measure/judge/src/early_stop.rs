//! Stopping early, valid at any interim analysis.
//!
//! Checking p after every pair and stopping when it is small is wrong in
//! 30 % of the cases, not in 5 %. The e-value below may be checked after
//! every pair: for differences that are symmetric about zero,
//! exp(λS − λ²V/2) cannot grow on average, whatever λ, and E averages it over
//! λ ~ N(0, ρ0²); so the chance that E ever reaches 20 is at most 1 in 20
//! (Ville's inequality; de la Peña, Lai and Shao, *Self-Normalized
//! Processes*, 2009). Must never be given a σ_d that was computed from the
//! same pairs.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::alpha::ALPHA;

/// Says how the number of pairs of a comparison was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Stopping {
    /// It was fixed before the run, by a number or a time limit.
    #[default]
    Fixed,
    /// It was found by [`EarlyStop`], which was given this σ_d before the run. Its p is
    /// then 1/E at its best look instead of the signed-rank test's, which
    /// holds for a fixed number only. That is the price: within 20 pairs an
    /// effect of 0.66 σ_d is called in 22 % of sessions instead of 77 %, one
    /// of 1.5 σ_d in 99 % instead of 100 %. So it suits effects that are large
    /// or runs that are expensive.
    Early {
        /// Standard deviation of d that was expected, from A/A runs or from a
        /// pilot: a natural logarithm, so 0.01 is 1 %.
        sigma_d: f64,
    },
}

/// The running e-value of a comparison, updated pair by pair.
///
/// ```
/// use locklab_judge::EarlyStop;
/// let mut watch = EarlyStop::new(0.01);
/// let looks = (1..=40).find(|_| {
///     watch.push(0.02);
///     watch.may_stop()
/// });
/// assert_eq!(looks, Some(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyStop {
    rho_squared: f64,
    sum: f64,
    squares: f64,
    best: f64,
}

impl EarlyStop {
    /// Starts with differences whose standard deviation was expected, before
    /// the run, to be `sigma_d`. With a σ_d that is not positive and finite the
    /// e-value stays 1 and never stops anything. A wrong σ_d costs power, not
    /// validity.
    #[must_use]
    pub fn new(sigma_d: f64) -> Self {
        let rho = 0.7 / sigma_d;
        let usable = sigma_d > 0.0 && (rho * rho).is_finite();
        Self {
            rho_squared: if usable { rho * rho } else { 0.0 },
            sum: 0.0,
            squares: 0.0,
            best: 0.0,
        }
    }

    /// Adds the difference of the next usable pair
    /// ([`Pair::difference`](crate::Pair::difference)). One that is not
    /// finite is ignored.
    pub fn push(&mut self, d: f64) {
        if d.is_finite() {
            self.sum += d;
            self.squares += d * d;
            self.best = self.best.max(self.log_e());
        }
    }

    /// Returns ln E, with E = (1 + ρ0²V)^(−1/2) · exp(ρ0²S² / (2(1 + ρ0²V))),
    /// S = Σd and V = Σd².
    fn log_e(&self) -> f64 {
        let denominator = 1.0 + self.rho_squared * self.squares;
        let exponent = self.rho_squared * self.sum * self.sum / (2.0 * denominator);
        exponent - 0.5 * denominator.ln()
    }

    /// Returns the e-value now: the evidence against "no difference", as odds.
    #[must_use]
    pub fn e_value(&self) -> f64 {
        self.log_e().exp()
    }

    /// Returns whether the session may stop here, with the difference found: E has
    /// reached 20. The verdict also needs at least
    /// [`Settings::min_pairs`](crate::Settings::min_pairs) pairs.
    #[must_use]
    pub fn may_stop(&self) -> bool {
        self.e_value() >= 1.0 / ALPHA
    }

    /// Returns a p-value that holds however the end was chosen: 1 over the largest E so
    /// far.
    #[must_use]
    pub fn p(&self) -> f64 {
        (-self.best).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_by_hand() {
        let mut watch = EarlyStop::new(0.7);
        for d in [1.0, -0.5, f64::NAN, 2.0, f64::INFINITY] {
            watch.push(d);
        }
        let (s, v): (f64, f64) = (2.5, 5.25);
        let e = (1.0 + v).powf(-0.5) * (s * s / (2.0 * (1.0 + v))).exp();
        assert!((watch.e_value() - e).abs() < 1e-12);
        assert!(watch.p() <= 1.0);
    }

    #[test]
    fn p_remembers_the_best_look() {
        let mut watch = EarlyStop::new(0.01);
        for _ in 0..20 {
            watch.push(0.02);
        }
        let p = watch.p();
        for _ in 0..20 {
            watch.push(-0.02);
        }
        assert!(p < 0.05 && watch.p() == p && !watch.may_stop());
    }

    #[test]
    fn a_useless_sigma_never_stops() {
        for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            let mut watch = EarlyStop::new(sigma);
            for _ in 0..100 {
                watch.push(1.0);
            }
            assert!(!watch.may_stop() && watch.p() == 1.0, "{sigma}");
        }
    }
}
