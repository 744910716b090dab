//! Finds the locks that are never worse than another: those that no other lock beats in
//! throughput and fairness together.
//!
//! A lock beats another if in every replicate (every seed, on every machine of
//! the band) it is behind in neither by more than the margin, and in every
//! replicate ahead by more than the margin in the same one of the two. By
//! that, no two locks beat each other, and no circle of them: in each step one
//! figure grows by more than the other may shrink. So there is always a lock
//! that none beats.

/// Throughput (the logarithm of a ratio) and fairness (Jain's index) of one
/// lock in one cell and replicate.
pub(crate) type Point = [f64; 2];

/// The points of one lock, by replicate, then by cell; `None` where it was not run.
pub(crate) type Points = Vec<Vec<Option<Point>>>;

/// Returns whether `one` beats `other` by more than the `margins` of both figures. They
/// are compared in the cells that `other` has in every replicate, all of which `one` must
/// have too.
pub(crate) fn beats(one: &Points, other: &Points, margins: Point) -> bool {
    let cells = one.first().map_or(0, Vec::len);
    let has = |points: &Points, cell: usize| points.iter().all(|cells| cells[cell].is_some());
    let common: Vec<usize> = (0..cells).filter(|cell| has(other, *cell)).collect();
    if common.is_empty() || !common.iter().all(|cell| has(one, *cell)) {
        return false;
    }
    let mut ahead = [true, true];
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (mean(one, &common), mean(other, &common));
        for figure in 0..2 {
            let by = one[figure] - other[figure];
            if by < -margins[figure] {
                return false;
            }
            ahead[figure] &= by > margins[figure];
        }
    }
    ahead[0] || ahead[1]
}

/// Returns the mean over some cells; NaN if there are none.
pub(crate) fn mean(points: &[Option<Point>], cells: &[usize]) -> Point {
    let there: Vec<Point> = cells.iter().filter_map(|cell| points[*cell]).collect();
    [0, 1].map(|figure| there.iter().map(|point| point[figure]).sum::<f64>() / there.len() as f64)
}

/// Returns, for each lock, the fastest lock that beats it, if any does.
pub(crate) fn beaten(locks: &[Points], margins: Point) -> Vec<Option<usize>> {
    let throughput = |lock: &Points| {
        let cells: Vec<usize> = (0..lock.first().map_or(0, Vec::len)).collect();
        lock.iter()
            .map(|cells_of| mean(cells_of, &cells)[0])
            .sum::<f64>()
    };
    let fastest: Vec<f64> = locks.iter().map(throughput).collect();
    locks
        .iter()
        .map(|lock| {
            (0..locks.len())
                .filter(|by| beats(&locks[*by], lock, margins))
                .max_by(|a, b| fastest[*a].total_cmp(&fastest[*b]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lock(points: &[Point]) -> Points {
        points.iter().map(|point| vec![Some(*point)]).collect()
    }

    const MARGINS: Point = [0.01, 0.01];

    #[test]
    fn a_lock_that_is_faster_and_as_fair_beats() {
        let slow = lock(&[[0.0, 1.0], [0.0, 1.0]]);
        let fast = lock(&[[0.2, 1.0], [0.1, 0.995]]);
        let unfair = lock(&[[0.4, 0.5], [0.4, 0.5]]);
        let once = lock(&[[0.2, 1.0], [0.0, 1.0]]);
        assert!(beats(&fast, &slow, MARGINS));
        assert!(!beats(&slow, &fast, MARGINS));
        // Faster and less fair: neither beats the other.
        assert!(!beats(&unfair, &fast, MARGINS) && !beats(&fast, &unfair, MARGINS));
        // It does not beat it in every replicate.
        assert!(!beats(&once, &slow, MARGINS));
        assert_eq!(
            beaten(&[slow, fast, unfair], MARGINS),
            [Some(1), None, None]
        );
    }

    #[test]
    fn a_lock_beats_only_where_it_ran_too() {
        let whole = vec![vec![Some([0.0, 1.0]), Some([0.0, 1.0])]];
        let part = vec![vec![Some([0.5, 1.0]), None]];
        let better = vec![vec![Some([0.6, 1.0]), Some([0.0, 1.0])]];
        assert!(!beats(&part, &whole, MARGINS));
        assert!(beats(&better, &part, MARGINS));
        assert!(beats(&better, &whole, MARGINS));
        let nowhere = vec![vec![None, None]];
        assert!(!beats(&whole, &nowhere, MARGINS));
    }

    proptest! {
        #[test]
        fn there_is_always_a_lock_that_none_beats(
            locks in proptest::collection::vec(
                proptest::collection::vec((-0.05_f64..0.05, 0.9_f64..1.0), 2), 1..12)
        ) {
            let locks: Vec<Points> = locks
                .into_iter()
                .map(|points| lock(&points.iter().map(|p| [p.0, p.1]).collect::<Vec<_>>()))
                .collect();
            let beaten = beaten(&locks, MARGINS);
            prop_assert!(beaten.iter().any(Option::is_none));
        }

        #[test]
        fn no_two_locks_beat_each_other(
            one in proptest::collection::vec((-0.05_f64..0.05, 0.9_f64..1.0), 3),
            other in proptest::collection::vec((-0.05_f64..0.05, 0.9_f64..1.0), 3),
        ) {
            let points = |p: Vec<(f64, f64)>| lock(&p.iter().map(|p| [p.0, p.1]).collect::<Vec<_>>());
            let (one, other) = (points(one), points(other));
            prop_assert!(!(beats(&one, &other, MARGINS) && beats(&other, &one, MARGINS)));
        }
    }
}
