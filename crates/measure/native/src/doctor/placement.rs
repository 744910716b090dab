//! Checks whether virtual CPUs stay on the same physical CPUs: the time that a cache
//! line takes between neighbours, measured several times within a second.

use crate::doctor::check::{Check, LOCKS, State};
use crate::round_trip;

/// Checks whether virtual CPUs stay on the same physical CPUs.
pub(super) fn check(cpus: &[usize]) -> Check {
    const LOOKS: u32 = 6;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
    // Neighbours in pin order represent all pairs.
    let links: Vec<(usize, usize)> = cpus.windows(2).map(|w| (w[0], w[1])).take(8).collect();
    if links.is_empty() {
        return Check::new(
            LOCKS,
            "Placement",
            State::Unknown,
            "there is one CPU, so there is no distance to measure",
        );
    }
    let mut least = f64::INFINITY;
    let mut most: f64 = 0.0;
    // How far one link moved, at worst.
    let mut moved: f64 = 1.0;
    let looks: Vec<Vec<f64>> = (0..LOOKS)
        .map(|i| {
            if i > 0 {
                std::thread::sleep(PAUSE);
            }
            let trips = links.iter().map(|(a, b)| round_trip::measure(*a, *b));
            trips.collect::<Option<_>>().unwrap_or_default()
        })
        .collect();
    for link in 0..links.len() {
        let trips = looks.iter().filter_map(|look| look.get(link).copied());
        let (low, high) = trips
            .filter(|t| t.is_finite() && *t > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        if high > 0.0 {
            (least, most) = (least.min(low), most.max(high));
            moved = moved.max(high / low);
        }
    }
    if most == 0.0 {
        return Check::new(
            LOCKS,
            "Placement",
            State::Missing,
            "two threads on two CPUs did not meet within 20 ms: the machine is too busy, or the \
             host runs one CPU at a time",
        )
        .remedy("stop the other programs");
    }
    let span = format!("cache-line round trip {least:.0} to {most:.0} ns");
    if moved > 1.5 {
        return Check::new(
            LOCKS,
            "Placement",
            State::Limited,
            format!("{span}; within a second one of them took {moved:.1} times as long, so the host moves CPUs"),
        )
        .remedy("none is needed: a report says whether its ratios depend on that");
    }
    Check::new(
        LOCKS,
        "Placement",
        State::Ok,
        format!("{span}; it stayed the same for a second"),
    )
}
