//! Tests of src/topology.rs, with access to what is private there.

use super::*;

fn two_by_two_by_two() -> Topology {
    let machine = Machine::builtin("xeon-8380-2s").unwrap();
    Topology::new(&machine.with(FigureKey::TopologyCores, 2.0).unwrap())
}

#[test]
fn compact_fills_a_socket_and_spread_alternates() {
    let topology = two_by_two_by_two();
    let order = |placement| topology.order(placement, 1);
    assert_eq!(order(Placement::Compact), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(order(Placement::Spread), [0, 4, 2, 6, 1, 5, 3, 7]);
}

#[test]
fn random_takes_each_core_once_before_any_sibling() {
    let topology = two_by_two_by_two();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let order = topology.order(Placement::Random, seed);
        assert_eq!(order, topology.order(Placement::Random, seed));
        let mut first: Vec<usize> = order[..4].iter().map(|h| h / 2).collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3], "{order:?}");
        seen.insert(order);
    }
    assert!(seen.len() > 10);
}

#[test]
fn placements_have_names() {
    for (name, placement) in Placement::ALL {
        assert_eq!(Placement::named(name), Ok(placement));
        // One of them has two names.
        let printed = if name == "siblings-first" {
            "numbered"
        } else {
            name
        };
        assert_eq!(placement.name(), printed);
    }
    assert!(Placement::named("packed").is_err());
}

#[test]
fn distances() {
    let topology = two_by_two_by_two();
    assert_eq!(topology.distance(0, 0), Distance::Core);
    assert_eq!(topology.distance(0, 1), Distance::Cluster);
    assert_eq!(topology.distance(0, 2), Distance::Remote);
}
