//! The band of the operating system's costs: what a wake-up or a call takes
//! differs between systems by more than between machines, so each draw of a
//! machine whose figures are assumed has its own.

use locklab_judge::fork_seed;
use locklab_sim::{Machine, Origin};

/// How much less or more an assumed figure may be.
const FACTOR: f64 = 2.0;

const KEYS: [&str; 6] = [
    "scheduler.slice_us",
    "scheduler.switch_us",
    "scheduler.call_us",
    "scheduler.sleep_us",
    "scheduler.wake_call_us",
    "scheduler.wake_us",
];

/// The `number`th of the schedulers that a machine's assumptions allow; the first
/// is its own.
pub(crate) fn drawn(machine: &Machine, number: usize, seed: u64) -> Machine {
    let mut drawn = machine.clone();
    if number == 0 {
        return drawn;
    }
    for (place, key) in KEYS.iter().enumerate() {
        let assumed = machine
            .figures
            .get(key)
            .is_some_and(|figure| matches!(figure.origin, Origin::Assumption(_)));
        if !assumed {
            continue;
        }
        let part = fork_seed(fork_seed(seed, number as u64), place as u64);
        let part = (part >> 11) as f64 / (1_u64 << 53) as f64;
        let factor = FACTOR.powf(2.0 * part - 1.0);
        // A value that is not allowed stays what it was.
        if let Ok(changed) = drawn.clone().with(key, machine.get(key) * factor) {
            drawn = changed;
        }
    }
    drawn
}
