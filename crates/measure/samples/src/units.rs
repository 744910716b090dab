//! Units of time and size: what is the same figure in another unit, and which
//! way a figure improves.

use locklab_judge::Direction;

/// Units with what each measures and its size.
const UNITS: [(&str, &str, f64); 29] = [
    ("ps", "time", 1e-12),
    ("ns", "time", 1e-9),
    ("nsec", "time", 1e-9),
    ("us", "time", 1e-6),
    ("µs", "time", 1e-6),
    ("μs", "time", 1e-6),
    ("usec", "time", 1e-6),
    ("ms", "time", 1e-3),
    ("msec", "time", 1e-3),
    ("milliseconds", "time", 1e-3),
    ("s", "time", 1.0),
    ("sec", "time", 1.0),
    ("second", "time", 1.0),
    ("seconds", "time", 1.0),
    ("min", "time", 60.0),
    ("h", "time", 3600.0),
    ("byte", "size", 1.0),
    ("B", "size", 1.0),
    ("bytes", "size", 1.0),
    ("KB", "size", 1e3),
    ("kB", "size", 1e3),
    ("MB", "size", 1e6),
    ("GB", "size", 1e9),
    ("KiB", "size", 1024.0),
    ("MiB", "size", 1_048_576.0),
    ("GiB", "size", 1_073_741_824.0),
    ("ops", "operations", 1.0),
    ("kops", "operations", 1e3),
    ("Mops", "operations", 1e6),
];

fn known(unit: &str) -> Option<(&'static str, f64)> {
    let found = UNITS.iter().find(|(name, ..)| *name == unit)?;
    Some((found.1, found.2))
}

/// Returns the factor that turns a figure in one unit into one in another; `None` where
/// they do not measure the same.
pub(crate) fn factor(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    // Each part of "ns/op" and "us/op", or of "MB/s" and "ops/ms", is taken by itself.
    let part = |from: &str, to: &str| {
        let ((a, size), (b, other)) = (known(from)?, known(to)?);
        (a == b).then_some(size / other)
    };
    match (from.split_once('/'), to.split_once('/')) {
        (None, None) => part(from, to),
        (Some((a, c)), Some((b, d))) => {
            let above = if a == b { Some(1.0) } else { part(a, b) };
            let below = if c == d { Some(1.0) } else { part(c, d) };
            Some(above? / below?)
        }
        _ => None,
    }
}

/// Returns the size of a unit of time in seconds, also of "ns/op".
pub(crate) fn seconds(unit: &str) -> Option<f64> {
    let above = unit.split('/').next().unwrap_or(unit);
    known(above)
        .filter(|(kind, _)| *kind == "time")
        .map(|(_, size)| size)
}

/// Returns whether it is so much per time.
pub(crate) fn is_rate(unit: &str) -> bool {
    let below = unit.rsplit_once('/').map(|(_, below)| below);
    below.is_some_and(|below| known(below).is_some_and(|(kind, _)| kind == "time"))
}

/// Words of units and titles of which more is better, though no time is below a line.
const MORE: [&str; 16] = [
    "bandwidth",
    "fps",
    "hertz",
    "hz",
    "iops",
    "ips",
    "kops",
    "mops",
    "ops",
    "qps",
    "rps",
    "speed",
    "speedup",
    "throughput",
    "thrpt",
    "tps",
];

/// Returns the way in which a figure of this unit or title improves: rates upwards, times,
/// sizes and counts downwards; `None` where neither is known.
pub(crate) fn known_direction(unit: &str) -> Option<Direction> {
    let lower = unit.to_lowercase();
    let per = lower.replace("_per_", "/").replace(" per ", "/");
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    let more =
        |word: &str| MORE.contains(&word) || word.ends_with("bps") || word.ends_with("flops");
    if is_rate(&per) || words.any(more) {
        return Some(Direction::HigherIsBetter);
    }
    let above = lower.split('/').next().unwrap_or_default();
    let counts = [
        "",
        "allocs",
        "instructions",
        "cycles",
        "misses",
        "faults",
        "ir",
    ];
    let known = known(unit).is_some() || known(above).is_some() || counts.contains(&above);
    known.then_some(Direction::LowerIsBetter)
}

/// Returns the way in which a figure of this unit improves; of one that is not known,
/// downwards.
pub(crate) fn direction(unit: &str) -> Direction {
    known_direction(unit).unwrap_or(Direction::LowerIsBetter)
}

/// Returns whether a slower machine changes a figure of this unit. Of one that is not
/// known it must be assumed.
pub(crate) fn drifts(unit: &str) -> bool {
    let above = unit.split('/').next().unwrap_or(unit);
    let counts = matches!(above, "allocs" | "instructions" | "misses" | "faults");
    let size = known(above).is_some_and(|(kind, _)| kind == "size");
    is_rate(unit) || !(counts || size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_measures_the_same_is_converted_and_nothing_else() {
        let close = |from, to, expected: f64| {
            let factor: f64 = factor(from, to).unwrap();
            assert!((factor / expected - 1.0).abs() < 1e-12, "{from} to {to}");
        };
        close("us", "ns", 1000.0);
        close("ms/op", "ns/op", 1e6);
        close("ops/ms", "ops/s", 1000.0);
        close("MB/s", "MB/s", 1.0);
        close("furlongs", "furlongs", 1.0);
        for (from, to) in [("ns", "MB/s"), ("B", "ns"), ("ns/op", "ns"), ("x", "y")] {
            assert_eq!(factor(from, to), None, "{from} to {to}");
        }
    }

    #[test]
    fn a_rate_improves_upwards_and_a_count_does_not_drift() {
        assert_eq!(direction("MB/s"), Direction::HigherIsBetter);
        assert_eq!(direction("ops/ms"), Direction::HigherIsBetter);
        assert_eq!(direction("ns/op"), Direction::LowerIsBetter);
        assert_eq!(direction("B/op"), Direction::LowerIsBetter);
        assert!(drifts("ns/op") && drifts("MB/s") && drifts("") && drifts("score"));
        assert!(!drifts("B/op") && !drifts("allocs/op"));
    }
}
