//! What a machine's assumptions allow.
//!
//! A simulated ratio is as sure as the assumptions under it. [`sweep`] draws
//! many machines whose assumed figures lie anywhere in their bands, all at
//! once (a Latin hypercube: each figure's band is cut into as many equal parts
//! as there are draws, and each part is used once), each with a seed of its
//! own, and gives the ratio of two locks on every one. [`Band::says`] is a
//! verdict only where nearly all of them agree. [`variants`] changes one
//! figure at a time, to show which of them matters.

use crate::batch::run_all;
use crate::machine::{Arbitration, Machine, Origin};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::stuck::SimError;
use serde::Serialize;

/// The same machine with one assumption changed, and which.
pub fn variants(machine: &Machine) -> Vec<(String, Machine)> {
    let mut variants = Vec::new();
    for (key, (low, high)) in machine.banded() {
        for value in [low, high] {
            // A value that contradicts another figure is no variant.
            if value != machine.get(key)
                && let Ok(variant) = machine.clone().with(key, value)
            {
                variants.push((format!("{key} = {value}"), variant));
            }
        }
    }
    for (name, arbitration) in Arbitration::ALL {
        if arbitration != machine.arbitration {
            let variant = Machine {
                arbitration,
                ..machine.clone()
            };
            variants.push((format!("directory.arbitration = {name}"), variant));
        }
    }
    variants
}

/// One machine that the assumptions allow, and the seed to run it with.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The machine.
    pub machine: Machine,
    /// The seed.
    pub seed: u64,
}

/// So many machines that the assumptions allow, spread evenly over all bands
/// together; the first is the machine itself. Equal seeds give equal draws.
pub fn draws(machine: &Machine, count: usize, seed: u64) -> Vec<Draw> {
    let rng = Rng::new(seed ^ 0x6c61_7469_6e20_6379);
    let banded: Vec<_> = machine.banded().collect();
    let others = count.saturating_sub(1);
    // For each figure, its parts in an order of their own.
    let parts: Vec<Vec<usize>> = banded
        .iter()
        .map(|_| {
            let mut parts: Vec<usize> = (0..others).collect();
            for place in (1..others).rev() {
                parts.swap(place, rng.below(place + 1));
            }
            parts
        })
        .collect();
    let assumed = matches!(machine.arbitration_origin, Origin::Assumption(_));
    let mut draws = Vec::with_capacity(count);
    for number in 0..count {
        let mut drawn = machine.clone();
        if let Some(number) = number.checked_sub(1) {
            for ((key, (low, high)), parts) in banded.iter().zip(&parts) {
                let within = (parts[number] as f64 + rng.unit()) / others as f64;
                let value = low + within * (high - low);
                drawn.set(key, value);
            }
            reconcile(machine, &mut drawn);
            if assumed && number % 3 == 2 {
                let others: Vec<_> = Arbitration::ALL
                    .into_iter()
                    .filter(|(_, other)| *other != machine.arbitration)
                    .collect();
                drawn.arbitration = others[number / 3 % others.len()].1;
            }
        }
        draws.push(Draw {
            machine: drawn,
            seed: seed.wrapping_mul(0x1000_0001).wrapping_add(number as u64),
        });
    }
    draws
}

/// Figures that were drawn apart and cannot be true together.
fn reconcile(machine: &Machine, drawn: &mut Machine) {
    let [cluster, socket, remote] = [
        "transfer.cluster_ns",
        "transfer.socket_ns",
        "transfer.remote_ns",
    ];
    // One cluster a socket: two names of one distance.
    if machine.get(cluster) == machine.get(socket) {
        drawn.set(cluster, drawn.get(socket));
    }
    if drawn.get(cluster) > drawn.get(socket) {
        drawn.set(socket, drawn.get(cluster));
    }
    if drawn.get(socket) > drawn.get(remote) {
        drawn.set(remote, drawn.get(socket));
    }
    let [request, snoop] = ["transfer.request_share", "transfer.snoop_share"];
    let shares = drawn.get(request) + drawn.get(snoop);
    if shares > 0.9 {
        for key in [request, snoop] {
            drawn.set(key, drawn.get(key) * 0.9 / shares);
        }
    }
    debug_assert_eq!(drawn.contradiction(), None);
}

/// The ratio of two locks over the machines that the assumptions allow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Band {
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
    pub fn new(ratios: Vec<f64>) -> Self {
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
    pub fn says(&self, delta: f64) -> Says {
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

/// The ratio of rates, experiment over baseline, on `count` machines that the
/// baseline's machine allows. Both run each machine with the same seed.
///
/// # Errors
/// If a lock does not work: see [`SimError`].
///
/// # Panics
/// If `count` is 0.
pub fn sweep(
    baseline: &Scenario,
    experiment: &Scenario,
    count: usize,
    workers: usize,
    progress: impl Fn(usize) + Sync,
) -> Result<Band, SimError> {
    assert!(count > 0, "a band is of one machine at least");
    let mut scenarios = Vec::with_capacity(2 * count);
    for draw in draws(&baseline.machine, count, baseline.seed) {
        for side in [baseline, experiment] {
            let mut scenario = side.clone();
            scenario.machine = draw.machine.clone();
            scenario.seed = draw.seed;
            scenarios.push(scenario);
        }
    }
    let outcomes = run_all(&scenarios, workers, progress)?;
    let ratios = outcomes
        .chunks_exact(2)
        .map(|pair| pair[1].ops_per_s / pair[0].ops_per_s)
        .collect();
    Ok(Band::new(ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_each_band_is_drawn_once() {
        for (name, _) in crate::BUILTIN {
            let machine = Machine::builtin(name).unwrap();
            let draws = draws(&machine, 21, 3);
            assert_eq!(draws.len(), 21);
            assert_eq!(draws[0].machine, machine);
            for draw in &draws {
                assert_eq!(draw.machine.contradiction(), None, "{name}");
            }
            for (key, (low, high)) in machine.banded() {
                // Those that others may have moved.
                if key.starts_with("transfer.") || low == high {
                    continue;
                }
                let whole = crate::FIGURES
                    .iter()
                    .any(|kind| kind.key == key && kind.whole);
                let mut parts: Vec<usize> = draws[1..]
                    .iter()
                    .map(|draw| ((draw.machine.get(key) - low) / (high - low) * 20.0) as usize)
                    .collect();
                parts.sort_unstable();
                if !whole {
                    assert_eq!(parts, (0..20).collect::<Vec<_>>(), "{name} {key}");
                }
            }
        }
    }

    #[test]
    fn equal_seeds_give_equal_draws() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        let one: Vec<_> = draws(&machine, 9, 1)
            .into_iter()
            .map(|d| d.machine)
            .collect();
        let two: Vec<_> = draws(&machine, 9, 1)
            .into_iter()
            .map(|d| d.machine)
            .collect();
        let other: Vec<_> = draws(&machine, 9, 2)
            .into_iter()
            .map(|d| d.machine)
            .collect();
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

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
