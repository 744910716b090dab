//! What was measured, as tables of 72 columns.

use crate::{PAIRS, Pairing, Samples};
use locklab_peers::Contestant;
use std::collections::HashMap;

/// NaN stands for a measurement that there is not.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Median over rounds of `ours / theirs`.
fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

/// The peer with the least time without contention, of those that are there.
fn fastest<'a>(names: &[&'a str], samples: &HashMap<&str, Samples>) -> Option<&'a str> {
    names
        .iter()
        .copied()
        .filter(|name| samples.contains_key(name))
        .min_by(|a, b| {
            let [a, b] = [a, b].map(|name| median(samples[name].pair_ns.iter().copied()));
            a.total_cmp(&b)
        })
}

fn mark(same: bool) -> char {
    if same { ' ' } else { '~' }
}

pub(crate) fn uncontended(pairings: &[Pairing], samples: &HashMap<&str, Samples>, rounds: usize) {
    println!("Lock and unlock, no contention: ns a pair, {rounds} rounds of {PAIRS} pairs");
    println!(
        "{:<22}{:>5} {:>6}   {:<22}{:>5} {:>6}",
        "", "min", "median", "fastest peer", "min", "ratio"
    );
    for Pairing { ours, peers, same } in pairings {
        let name = ours.name();
        let times = &samples[name].pair_ns;
        print!(
            "{name:<22}{:>5.2} {:>6.2}  ",
            minimum(times),
            median(times.iter().copied())
        );
        match fastest(peers, samples) {
            Some(peer) => println!(
                "{}{peer:<22}{:>5.2} {:>6.2}",
                mark(*same),
                minimum(&samples[peer].pair_ns),
                ratio(times, &samples[peer].pair_ns)
            ),
            None => println!("none here"),
        }
    }
    println!("ratio: ours / peer, median over rounds; below 1.00 ours is faster.");
    println!("~: nobody has this algorithm; what a user would take instead.");
}

pub(crate) fn contended(pairings: &[Pairing], samples: &HashMap<&str, Samples>, trips: &[f64]) {
    println!(
        "\nTwo threads on two CPUs: million operations and handoffs a second\n\
         (medians). Cache-line round trip {:.0} to {:.0} ns, median {:.0}.",
        minimum(trips),
        trips.iter().copied().fold(0.0, f64::max),
        median(trips.iter().copied())
    );
    println!(
        "{:<22}{:>6} {:>7}   {:<22}{:>6} {:>6}",
        "", "Mops/s", "handoff", "peer", "Mops/s", "ratio"
    );
    let mega = |values: &[f64]| median(values.iter().copied()) / 1e6;
    for Pairing { ours, peers, same } in pairings {
        let (name, Samples { ops, handoffs, .. }) = (ours.name(), &samples[ours.name()]);
        print!("{name:<22}{:>6.1} {:>7.2}  ", mega(ops), mega(handoffs));
        match fastest(peers, samples) {
            Some(peer) => println!(
                "{}{peer:<22}{:>6.1} {:>6.2}",
                mark(*same),
                mega(&samples[peer].ops),
                ratio(ops, &samples[peer].ops)
            ),
            None => println!("none here"),
        }
    }
    println!("ratio: ours / peer, median over rounds; above 1.00 ours does more.");
    println!("Few handoffs: one owner keeps taking the lock again.");
    let all = || samples.values().flat_map(|samples| &samples.ops);
    let missing = all().filter(|ops| ops.is_nan()).count();
    if missing > 0 {
        println!(
            "{missing} of {} measurements had no moment without preemption (NaN: none had).\n\
             Other programs want these CPUs; try again when they rest.",
            all().count()
        );
    }
}

pub(crate) fn peers(peers: &[Box<dyn Contestant>], samples: &HashMap<&str, Samples>) {
    println!("\nAll peers: ns a pair without contention; two threads as above");
    println!(
        "{:<22}{:>5} {:>6} {:>8} {:>8}",
        "", "min", "median", "Mops/s", "handoff"
    );
    for peer in peers {
        let samples = &samples[peer.name()];
        println!(
            "{:<22}{:>5.2} {:>6.2} {:>8.1} {:>8.2}",
            peer.name(),
            minimum(&samples.pair_ns),
            median(samples.pair_ns.iter().copied()),
            median(samples.ops.iter().copied()) / 1e6,
            median(samples.handoffs.iter().copied()) / 1e6
        );
    }
}
