// SPDX-License-Identifier: GPL-2.0-or-later
//! Says which instructions of a run the front end simulates: all of the first ten
//! million, and then a short interval of each three million, after a warm-up that is
//! not counted. Exists because simulating every block takes several times as long as
//! translating it; must never decide by what the program does, or the intervals would
//! no longer be drawn.

use std::sync::Mutex;

use locklab_frontend::Processor;

use crate::seen::Seen;

/// The lengths of a sample, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// The instructions at the begin of each vCPU, all of which are simulated.
    exact: u64,
    /// The instructions of a period, of which one interval is counted.
    period: u64,
    /// Simulated before an interval, so that caches and predictors hold what they would hold.
    warm_up: u64,
    /// The instructions of an interval.
    interval: u64,
}

impl Default for Lengths {
    fn default() -> Self {
        Lengths {
            exact: 10_000_000,
            period: 3_000_000,
            warm_up: 100_000,
            interval: 25_000,
        }
    }
}

impl Lengths {
    /// Reads `EXACT/PERIOD/WARM-UP/INTERVAL`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = text.split('/').map(|word| word.parse().ok()).collect();
        let [exact, period, warm_up, interval] = numbers?[..] else {
            return None;
        };
        let simulated = warm_up.checked_add(interval)?;
        (interval > 0 && simulated < period && period / interval <= u32::MAX.into()).then_some(
            Lengths {
                exact,
                period,
                warm_up,
                interval,
            },
        )
    }
}

/// Says what is done with the blocks that run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Simulated and counted, each for itself.
    Exact,
    /// Counted by their instructions only.
    Skipped,
    /// Simulated, so that the state is right, and not counted.
    WarmUp,
    /// Simulated and counted for all instructions of the period.
    Counted,
}

/// The sampling of one vCPU.
#[derive(Debug)]
pub(crate) struct Sampler {
    lengths: Lengths,
    pub(crate) phase: Phase,
    /// Instructions until the phase ends; the block that crosses its end belongs to it.
    pub(crate) left: u64,
    /// Instructions that are skipped after this period's interval.
    rest: u64,
    /// The state of a xorshift generator: the intervals' places are drawn, so that nothing
    /// periodic in the program falls in step with them, and are the same in each run.
    random: u64,
}

impl Sampler {
    pub(crate) fn new(lengths: Lengths, index: u32) -> Self {
        Sampler {
            lengths,
            phase: Phase::Exact,
            left: lengths.exact,
            rest: 0,
            random: 0x9e37_79b9_7f4a_7c15 ^ u64::from(index) << 17,
        }
    }

    /// Goes on to the next phase.
    #[cold]
    pub(crate) fn advance(&mut self) {
        let Lengths {
            period,
            warm_up,
            interval,
            ..
        } = self.lengths;
        (self.phase, self.left) = match self.phase {
            Phase::Exact | Phase::Counted => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let free = period - warm_up - interval;
                let before = self.random % (free + 1);
                let skipped = std::mem::replace(&mut self.rest, free - before) + before;
                (Phase::Skipped, skipped)
            }
            Phase::Skipped => (Phase::WarmUp, warm_up),
            Phase::WarmUp => (Phase::Counted, interval),
        };
    }

    /// Returns by how much what a block loses counts for its own sum.
    pub(crate) fn weight(&self) -> u32 {
        match self.phase {
            Phase::Exact => 1,
            Phase::Skipped | Phase::WarmUp => 0,
            Phase::Counted => (self.lengths.period / self.lengths.interval) as u32,
        }
    }
}

/// The counted intervals of a vCPU: how far their cycles vary.
#[derive(Debug, Default)]
pub(crate) struct Intervals(Mutex<Sums>);

/// Sums over intervals of the cycles of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) intervals: u64,
    sum: f64,
    squares: f64,
    /// The counts of the intervals before.
    before: Seen,
}

impl Intervals {
    /// Adds the interval that ended, after which `seen` is counted in both modes.
    pub(crate) fn add(&self, processor: &Processor, seen: Seen) {
        let Ok(mut sums) = self.0.lock() else { return };
        let part = seen - std::mem::replace(&mut sums.before, seen);
        let instructions = part.counts.instructions;
        if instructions == 0 {
            return;
        }
        let each = processor.cycles(instructions, &part.events).value / instructions as f64;
        sums.intervals += 1;
        sums.sum += each;
        sums.squares += each * each;
    }

    pub(crate) fn read(&self) -> Sums {
        self.0.lock().map_or_else(|_| Sums::default(), |sums| *sums)
    }
}

impl Sums {
    pub(crate) fn plus(self, other: Sums) -> Sums {
        Sums {
            intervals: self.intervals + other.intervals,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            before: Seen::default(),
        }
    }

    /// Returns the half-width of the 95 % interval of the mean, as a share of it; `None` with
    /// fewer than eight intervals. It is the error of the draw alone: what the predictors have
    /// not learnt again by the end of a warm-up adds some per cent.
    pub(crate) fn error(&self) -> Option<f64> {
        let n = self.intervals as f64;
        if self.intervals < 8 || self.sum <= 0.0 {
            return None;
        }
        let mean = self.sum / n;
        let variance = ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0);
        Some(1.96 * (variance / n).sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interval_of_each_period_is_counted() {
        let lengths = Lengths::default();
        let mut sampler = Sampler::new(lengths, 0);
        let (mut at, mut counted) = (0, Vec::new());
        while at < lengths.exact + 50 * lengths.period {
            if sampler.phase == Phase::Counted {
                counted.push(at);
            }
            at += sampler.left;
            sampler.advance();
        }
        assert!((49..=51).contains(&counted.len()), "{}", counted.len());
        for (period, &at) in counted.iter().enumerate() {
            let from = lengths.exact + period as u64 * lengths.period;
            let range = from + lengths.warm_up..from + lengths.period;
            assert!(range.contains(&at), "{period}: {at}");
        }
        let mut other = Sampler::new(lengths, 1);
        other.advance();
        sampler = Sampler::new(lengths, 0);
        sampler.advance();
        assert_ne!(sampler.left, other.left, "drawn for each vCPU");
    }

    #[test]
    fn lengths_fit_into_one_another() {
        assert!(Lengths::parse("0/1000/100/50").is_some());
        for wrong in ["", "on", "1/2/3", "0/100/50/50", "0/100/50/0", "0/100/-1/5"] {
            assert_eq!(Lengths::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_error_needs_intervals_and_shrinks_with_them() {
        let of = |n: u64| Sums {
            intervals: n,
            sum: n as f64,
            squares: n as f64 * 1.25,
            before: Seen::default(),
        };
        assert_eq!(of(7).error(), None);
        let (few, many) = (of(16).error().unwrap(), of(1600).error().unwrap());
        assert!(few > 0.2 && many < 0.03, "{few} {many}");
    }
}
