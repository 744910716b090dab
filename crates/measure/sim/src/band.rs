//! The machines that a machine's assumptions allow.
//!
//! A simulated ratio is as certain as the assumptions behind it. [`draws`]
//! makes many machines whose assumed figures lie anywhere in their bands, all
//! at once (a Latin hypercube: each figure's band is cut into as many equal
//! parts as there are draws, and each part is used once). [`variants`] changes
//! one figure at a time, to show which of them matters.

use crate::machine::{Arbitration, FIGURES, FigureKey, Machine, Origin};
use crate::rng::Rng;

/// Copies of the machine with one assumption changed, each with its
/// description.
pub fn variants(machine: &Machine) -> Vec<(String, Machine)> {
    let mut variants = Vec::new();
    for (key, (low, high)) in machine.banded() {
        for value in [low, high] {
            // A value that contradicts another figure is left out.
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

/// Returns `count` machines that the assumptions allow, spread evenly over all bands
/// together; the first is the machine itself. The same in every comparison.
pub fn draws(machine: &Machine, count: usize) -> Vec<Machine> {
    let rng = Rng::new(0x6c61_7469_6e20_6379);
    let banded: Vec<_> = machine.banded().collect();
    let others = count.saturating_sub(1);
    // Each figure has its parts in an order of its own.
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
                drawn.set(*key, value);
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
        draws.push(drawn);
    }
    draws
}

/// Sets how much less or more an assumed figure of the operating system may be.
const SYSTEM_FACTOR: f64 = 2.0;

/// Returns the `number`th of the operating systems that a machine's assumptions allow; the
/// first is its own. What a wake-up or a call takes differs between systems by more
/// than between machines, so these figures have no band of a machine file.
#[must_use]
pub fn with_system(machine: &Machine, number: usize, seed: u64) -> Machine {
    let mut drawn = machine.clone();
    if number == 0 {
        return drawn;
    }
    let rng = Rng::new(seed.wrapping_add((number as u64) << 32));
    let keys = FIGURES.iter().map(|figure| figure.key);
    for key in keys.filter(|key| key.table() == "scheduler") {
        let factor = SYSTEM_FACTOR.powf(2.0 * rng.unit() - 1.0);
        let figure = machine.figures.get(&key);
        if !figure.is_some_and(|figure| matches!(figure.origin, Origin::Assumption(_))) {
            continue;
        }
        // A value that is not allowed stays what it was.
        if let Ok(changed) = drawn.clone().with(key, machine.get(key) * factor) {
            drawn = changed;
        }
    }
    drawn
}

/// Corrects figures that were drawn separately and cannot be true together.
fn reconcile(machine: &Machine, drawn: &mut Machine) {
    let [cluster, socket, remote] = [
        FigureKey::TransferClusterNs,
        FigureKey::TransferSocketNs,
        FigureKey::TransferRemoteNs,
    ];
    // With one cluster per socket, two figures name one distance.
    if machine.get(cluster) == machine.get(socket) {
        drawn.set(cluster, drawn.get(socket));
    }
    if drawn.get(cluster) > drawn.get(socket) {
        drawn.set(socket, drawn.get(cluster));
    }
    if drawn.get(socket) > drawn.get(remote) {
        drawn.set(remote, drawn.get(socket));
    }
    let [request, snoop] = [
        FigureKey::TransferRequestShare,
        FigureKey::TransferSnoopShare,
    ];
    let shares = drawn.get(request) + drawn.get(snoop);
    if shares > 0.9 {
        for key in [request, snoop] {
            drawn.set(key, drawn.get(key) * 0.9 / shares);
        }
    }
    debug_assert_eq!(drawn.contradiction(), None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_differ_in_what_is_assumed_only_and_by_twice_at_most() {
        let machine = Machine::builtin("flat-16").unwrap();
        let measured = machine
            .clone()
            .with(FigureKey::SchedulerWakeUs, 7.0)
            .unwrap();
        assert_eq!(with_system(&measured, 0, 1), measured);
        let drawn = with_system(&measured, 3, 1);
        assert_eq!(drawn, with_system(&measured, 3, 1));
        assert_ne!(drawn, with_system(&measured, 4, 1));
        assert_ne!(
            drawn.get(FigureKey::SchedulerCallUs),
            measured.get(FigureKey::SchedulerCallUs)
        );
        for figure in FIGURES {
            let by = drawn.get(figure.key) / measured.get(figure.key);
            assert!(by.is_nan() || (0.5..=2.0).contains(&by), "{}", figure.key);
        }
    }

    #[test]
    fn each_part_of_each_band_is_drawn_once() {
        for (name, _) in crate::BUILTIN {
            let machine = Machine::builtin(name).unwrap();
            let draws = draws(&machine, 21);
            assert_eq!(draws.len(), 21);
            assert_eq!(draws[0], machine);
            for draw in &draws {
                assert_eq!(draw.contradiction(), None, "{name}");
            }
            for (key, (low, high)) in machine.banded() {
                // Those that others may have moved.
                if key.table() == "transfer" || low == high {
                    continue;
                }
                let whole = key.kind().whole;
                let mut parts: Vec<usize> = draws[1..]
                    .iter()
                    .map(|draw| ((draw.get(key) - low) / (high - low) * 20.0) as usize)
                    .collect();
                parts.sort_unstable();
                if !whole {
                    assert_eq!(parts, (0..20).collect::<Vec<_>>(), "{name} {key}");
                }
            }
        }
    }

    #[test]
    fn the_draws_are_the_same_each_time() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        assert_eq!(draws(&machine, 9), draws(&machine, 9));
        assert_ne!(draws(&machine, 9)[1], draws(&machine, 9)[2]);
    }
}
