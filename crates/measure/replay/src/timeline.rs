//! Shows how a lock was used in the course of the window: how much of each part of it the
//! lock was held, and how many threads waited. It must never decide what is replayed.

/// Parts of the window.
const PARTS: usize = 48;

/// A lock in a part of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Threads that held it, on average.
    pub held: f64,
    /// Threads that waited for it, on average.
    pub waited: f64,
}

/// A time in which a thread held a lock, or waited for it; in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) lock: usize,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) waits: bool,
}

/// Returns the moments of a lock between two times.
pub(crate) fn timeline(stretches: &[Stretch], lock: usize, (from, to): (u64, u64)) -> Vec<Moment> {
    let length = to.saturating_sub(from);
    if length < PARTS as u64 {
        return Vec::new();
    }
    let at = |part: usize| {
        let ticks = u128::from(length) * part as u128 / PARTS as u128;
        from + u64::try_from(ticks).unwrap_or(length)
    };
    let mut moments = vec![Moment::default(); PARTS];
    for stretch in stretches.iter().filter(|stretch| stretch.lock == lock) {
        let part_of = |tick: u64| {
            let part = u128::from(tick - from) * PARTS as u128 / u128::from(length);
            (part as usize).min(PARTS - 1)
        };
        let (begin, end) = (stretch.from.clamp(from, to), stretch.to.clamp(from, to));
        let (first, last) = (part_of(begin), part_of(end.max(begin)));
        let parts = moments.iter_mut().enumerate().take(last + 1);
        for (part, moment) in parts.skip(first) {
            let within = end.min(at(part + 1)).saturating_sub(begin.max(at(part)));
            let share = within as f64 / (at(part + 1) - at(part)) as f64;
            *match stretch.waits {
                true => &mut moment.waited,
                false => &mut moment.held,
            } += share;
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_counts_in_each_part_by_its_share() {
        let stretch = |lock, from, to, waits| Stretch {
            lock,
            from,
            to,
            waits,
        };
        // Parts of ten ticks.
        let window = (1000, 1000 + 10 * PARTS as u64);
        let stretches = [
            stretch(0, 1005, 1025, false),
            stretch(0, 900, 1010, true),
            stretch(0, 1000, 1010, true),
            stretch(1, 1000, 1400, false),
            stretch(0, window.1 - 5, window.1 + 100, false),
        ];
        let moments = timeline(&stretches, 0, window);
        let held: Vec<f64> = moments.iter().map(|moment| moment.held).collect();
        assert_eq!(held[..4], [0.5, 1.0, 0.5, 0.0]);
        assert_eq!(held[PARTS - 1], 0.5);
        let waited = moments.iter().map(|moment| moment.waited);
        assert_eq!(waited.sum::<f64>(), 2.0);
        assert!(timeline(&stretches, 0, (5, 6)).is_empty());
    }
}
