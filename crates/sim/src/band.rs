//! The machines that a machine's assumptions allow: one figure at a time at
//! either end of its band, and each way of arbitration.

use crate::machine::{Arbitration, Machine};

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
