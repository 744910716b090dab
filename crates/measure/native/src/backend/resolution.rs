//! A machine of known behaviour in place of this one: whether the design finds
//! what is there, and whether the length of a slice moves a verdict.
//!
//! The machine is seeded. It has what a virtual machine has: a speed that
//! wanders for longer than a slice, places that are worth 25 %, layouts that
//! are worth 3 %, locks that start slowly, noise of each slice. Blocks are drawn
//! by the same code as on hardware, and cells take turns by the same rule.

use crate::request::Request;
use crate::request::tests::request;
use locklab_judge::{
    Comparison, Direction, Family, Interim, Order, Pair, Settings, Side, Verdict, fork_seed,
    interim, is_look, judge,
};

/// Returns a uniform number in (0, 1).
fn uniform(seed: u64, i: u64) -> f64 {
    ((fork_seed(seed, i) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Returns a nearly standard normal number: the sum of twelve uniform ones.
fn normal(seed: u64, i: u64) -> f64 {
    (0..12).map(|k| uniform(fork_seed(seed, i), k)).sum::<f64>() - 6.0
}

struct Machine {
    seed: u64,
    /// Logarithm of the experiment's speed over the baseline's.
    effect: f64,
    /// Time now, in ns.
    now: u64,
    /// Counts how many slices were drawn.
    slices: u64,
}

impl Machine {
    /// Returns the logarithm of the speed of the machine at a time: wanders by some
    /// percent over tens of milliseconds.
    fn weather(&self, at: u64) -> f64 {
        let step = 20_000_000;
        let (knot, part) = (at / step, (at % step) as f64 / step as f64);
        let value = |knot| 0.08 * normal(fork_seed(self.seed, 1), knot);
        value(knot) * (1.0 - part) + value(knot + 1) * part
    }

    /// Turns of one slice.
    fn slice(&mut self, request: &Request, side: Side, layout: usize) -> f64 {
        let settle = request.settle as f64;
        let length = request.length as f64;
        self.now += request.settle + request.length + 3_000;
        self.slices += 1;
        let which = side as u64;
        let place = 0.12 * normal(request.seed, 77);
        let layout = 0.03 * normal(fork_seed(self.seed, 2 + which), layout as u64);
        let noise =
            0.02 * normal(fork_seed(self.seed, 5), self.slices) / (length / 1_000_000.0).sqrt();
        // Starts at two thirds (baseline) or half (experiment) of its speed,
        // and recovers with a time constant of 15 µs.
        let start = [0.33, 0.5][side as usize];
        let constant = 15_000.0;
        let lost =
            start * constant * (-settle / constant).exp() * (1.0 - (-length / constant).exp());
        let effect = if side == Side::Experiment {
            self.effect
        } else {
            0.0
        };
        let speed = (self.weather(self.now) + place + layout + noise + effect).exp();
        (length - lost) * speed
    }

    /// Returns the two figures of a block.
    fn block(&mut self, request: &Request) -> Pair {
        let mut sums = [0.0; 2];
        let pairs = request.time / (2 * (request.settle + request.length));
        for pair in 0..usize::try_from(pairs).unwrap().max(1) {
            let draw = request.draw(pair);
            for &at in draw.sides() {
                let side = Side::BOTH[at];
                sums[at] += self.slice(request, side, request.layout_of(pair, at));
            }
        }
        Pair::new(sums[0], sums[1], Order::BaselineFirst)
    }
}

struct Found {
    verdict: &'static str,
    ratio: locklab_judge::Shown,
    lag: f64,
    pairs: usize,
}

/// Measures one cell on a machine, in slices of so many µs.
fn cell(seed: u64, effect: f64, slice_us: u64) -> Found {
    let mut machine = Machine {
        seed,
        effect,
        now: 0,
        slices: 0,
    };
    let mut pairs = Vec::new();
    while pairs.len() < 60 {
        let request = Request {
            settle: 60_000,
            length: slice_us * 1000,
            time: 64_000_000,
            seed: fork_seed(seed, pairs.len() as u64),
            ..request(2, &[0, 1])
        };
        pairs.push(machine.block(&request));
        if is_look(pairs.len(), 14)
            && interim(&pairs, Direction::HigherIsBetter, 0.01, 0.0) == Interim::Decided
        {
            break;
        }
    }
    let settings = Settings {
        family: Family::FalseDiscovery,
        ..Settings::default()
    };
    let count = pairs.len();
    let comparison = Comparison::primary(pairs, Direction::HigherIsBetter);
    let judged = judge(&[comparison], &settings).unwrap().remove(0);
    let estimate = judged.estimate.unwrap();
    Found {
        verdict: match judged.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Flat { .. } => "flat",
            Verdict::Unclear { .. } => "unclear",
            Verdict::Invalid(_) => "invalid",
        },
        ratio: estimate.ratio(),
        lag: estimate.autocorrelation.unwrap(),
        pairs: count,
    }
}

#[test]
fn half_or_twice_the_slice_moves_no_verdict_and_no_ratio_beyond_its_interval() {
    for seed in 0..12 {
        for (effect, expected) in [(0.0, "flat"), (0.05, "better"), (-0.1, "worse")] {
            // Layouts are the machine's own: the average over all of them is
            // what is measured, so part of the effect.
            let mean = |which: u64| {
                let of = |l| 0.03 * normal(fork_seed(seed, 2 + which), l);
                (0..crate::LAYOUTS as u64).map(of).sum::<f64>() / crate::LAYOUTS as f64
            };
            let effect = effect - (mean(1) - mean(0));
            let [half, usual, twice] = [500, 1000, 2000].map(|us| cell(seed, effect, us));
            for found in [&half, &usual, &twice] {
                assert_eq!(found.verdict, expected, "seed {seed}, {:?}", found.ratio);
                let apart =
                    |a: &Found, b: &Found| a.ratio.high < b.ratio.low || b.ratio.high < a.ratio.low;
                assert!(!apart(found, &usual), "seed {seed}");
                // Blocks do not depend on one another.
                assert!(found.lag.abs() < 3.2 / (found.pairs as f64).sqrt());
            }
        }
    }
}

#[test]
fn one_percent_is_found_in_places_and_layouts_that_are_worth_more() {
    let found = (0..20).filter(|seed| {
        let mean = |which: u64| {
            let of = |l| 0.03 * normal(fork_seed(*seed, 2 + which), l);
            (0..crate::LAYOUTS as u64).map(of).sum::<f64>() / crate::LAYOUTS as f64
        };
        let slower = cell(*seed, -0.01 - (mean(1) - mean(0)), 1000);
        slower.verdict == "worse"
    });
    assert!(found.count() >= 18);
}
