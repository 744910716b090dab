//! Judges a candidate against today's lock, over the band of the model.

use locklab_sim::Replayed;

/// Changes below this count as none.
pub(crate) const FLAT: f64 = 0.03;
/// A rate below this part of today's is a collapse.
const COLLAPSE: f64 = 0.7;

/// A rate below this part of today's is one whose depth the model does not know: it is the time for
/// which a waiter without a CPU stops all others.
const DEEP: f64 = 0.3;

/// Names what a lock does for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Better in every machine of the band.
    Helps,
    /// It is within 3 % in all of them.
    Flat,
    /// Worse in all of them.
    Worse,
    /// Worse by more than 30 % in some.
    Collapses,
    /// Better in some, not in others.
    Unclear,
}

impl Class {
    /// Returns the word for it in tables and JSON.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Flat => "flat",
            Self::Worse => "worse",
            Self::Collapses => "collapses",
            Self::Unclear => "unclear",
        }
    }
}

/// A rate by today's lock's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// The ratio on the machine itself.
    pub ratio: f64,
    /// The least of the band.
    pub low: f64,
    /// The greatest of it.
    pub high: f64,
    /// Holds what the whole band says.
    pub class: Class,
}

impl Verdict {
    /// Returns the band, wider by the logarithm of a factor at each end. How deep a lock
    /// collapses is not said.
    pub(crate) fn widened(&self, spread: f64) -> [f64; 2] {
        let [low, high] = [self.low * (-spread).exp(), self.high * spread.exp()];
        [if low < DEEP { 0.0 } else { low }, high.max(DEEP)]
    }

    /// Returns the same of a model that is off by this logarithm of a factor: a gain or a loss
    /// that is smaller than that may be its own. A collapse is a warning, and stays.
    #[must_use]
    pub(crate) fn doubted(self, off: f64) -> Self {
        let [low, high] = self.widened(off);
        let class = match self.class {
            Class::Helps if low <= 1.0 => Class::Unclear,
            Class::Worse if high >= 1.0 => Class::Unclear,
            class => class,
        };
        Self { class, ..self }
    }

    /// Judges a lock by its runs and today's, draw by draw; `None` without runs. The band is
    /// as much wider as a run that was cut short differs between its halves.
    #[must_use]
    pub(crate) fn of(lock: &[Replayed], today: &[Replayed]) -> Option<Self> {
        let ratios = lock.iter().zip(today).map(|(one, other)| {
            let unsure = one.cut.unwrap_or(0.0) + other.cut.unwrap_or(0.0);
            (one.rate / other.rate.max(1e-12), unsure.exp())
        });
        let ratios: Vec<(f64, f64)> = ratios.collect();
        let ratio = ratios.first()?.0;
        let lows = ratios.iter().map(|(ratio, unsure)| ratio / unsure);
        let highs = ratios.iter().map(|(ratio, unsure)| ratio * unsure);
        let (low, high) = (
            lows.fold(f64::INFINITY, f64::min),
            highs.fold(0.0, f64::max),
        );
        let class = if low < COLLAPSE {
            Class::Collapses
        } else if low > 1.0 && ratio > 1.0 + FLAT {
            Class::Helps
        } else if high < 1.0 && ratio < 1.0 - FLAT {
            Class::Worse
        } else if low >= 1.0 - FLAT && high <= 1.0 + FLAT {
            Class::Flat
        } else {
            Class::Unclear
        };
        Some(Self {
            ratio,
            low,
            high,
            class,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_sim::Latency;

    fn runs(rates: &[f64]) -> Vec<Replayed> {
        let run = |&rate: &f64| Replayed {
            rate,
            acquisitions_per_s: 0.0,
            wait: Latency::default(),
            waited: 0.0,
            burnt: 0.0,
            jain: 1.0,
            locks: Vec::new(),
            seconds: 1.0,
            awaited: 0,
            forced: 0,
            cut: None,
            trace_hash: 0,
            events: 0,
        };
        rates.iter().map(run).collect()
    }

    #[test]
    fn the_class_holds_over_the_whole_band() {
        let today = runs(&[2.0, 2.0, 2.0]);
        let class = |rates: &[f64]| Verdict::of(&runs(rates), &today).unwrap().class;
        assert_eq!(class(&[2.4, 2.2, 2.6]), Class::Helps);
        assert_eq!(class(&[2.4, 1.9, 2.6]), Class::Unclear);
        assert_eq!(class(&[2.01, 1.99, 2.0]), Class::Flat);
        assert_eq!(class(&[1.8, 1.7, 1.9]), Class::Worse);
        assert_eq!(class(&[2.4, 1.0, 2.6]), Class::Collapses);
        assert_eq!(Verdict::of(&[], &today), None);
    }

    #[test]
    fn a_gain_smaller_than_what_the_model_is_off_by_may_be_its_own() {
        let helps = Verdict::of(&runs(&[2.4, 2.3]), &runs(&[2.0, 2.0])).unwrap();
        assert_eq!(helps.class, Class::Helps);
        assert_eq!(helps.doubted(0.0), helps);
        assert_eq!(helps.doubted(4.8_f64.ln()).class, Class::Unclear);
        let large = Verdict::of(&runs(&[12.0]), &runs(&[2.0])).unwrap();
        assert_eq!(large.doubted(4.8_f64.ln()).class, Class::Helps);
        let worse = Verdict::of(&runs(&[1.8]), &runs(&[2.0])).unwrap();
        assert_eq!(worse.doubted(4.8_f64.ln()).class, Class::Unclear);
        let collapses = Verdict::of(&runs(&[0.1]), &runs(&[2.0])).unwrap();
        assert_eq!(collapses.doubted(4.8_f64.ln()), collapses);
    }

    #[test]
    fn what_was_cut_short_is_as_much_less_sure_as_its_halves_differ() {
        let today = runs(&[2.0]);
        let mut cut = runs(&[2.4]);
        cut[0].cut = Some(0.1);
        let verdict = Verdict::of(&cut, &today).unwrap();
        assert_eq!(verdict.ratio, 1.2);
        assert!((1.08..1.09).contains(&verdict.low), "{verdict:?}");
        assert!((1.32..1.33).contains(&verdict.high), "{verdict:?}");
        assert_eq!(verdict.class, Class::Helps);
        cut[0].cut = Some(0.2);
        assert_eq!(Verdict::of(&cut, &today).unwrap().class, Class::Unclear);
    }
}
