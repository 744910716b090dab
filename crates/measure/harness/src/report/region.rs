//! The part of a matrix that has a property, as few boxes: "4 to 64 threads
//! with critical length 0 to 16".
//!
//! A box is a range of each axis, and every cell of it has the property and
//! was measured; so a sentence made of boxes claims no more than its cells.
//! Boxes are chosen greedily, the largest first, which is short and
//! not always the fewest.

use std::collections::BTreeMap;

/// Places on three axes, by index into the sorted values of each.
type Place = [usize; 3];

/// A range of each axis, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) low: Place,
    pub(crate) high: Place,
    /// Number of cells that it adds to the previous regions.
    pub(crate) cells: usize,
}

/// Beyond this many candidate boxes, only counts are given.
const MOST_BOXES: usize = 3_000_000;

/// Regions that cover all of `inside`, on axes of the given lengths; the
/// largest first. `None` where the matrix is too large to search.
pub(crate) fn cover(inside: &[Place], lengths: Place) -> Option<Vec<Region>> {
    let candidates = lengths
        .iter()
        .map(|n| n * (n + 1) / 2)
        .try_fold(1_usize, usize::checked_mul)?;
    if candidates > MOST_BOXES {
        return None;
    }
    let all: BTreeMap<Place, ()> = inside.iter().map(|p| (*p, ())).collect();
    let in_all = Sums::new(lengths, |p| all.contains_key(&p));
    let mut left = all;
    let mut regions = Vec::new();
    while !left.is_empty() {
        let in_left = Sums::new(lengths, |p| left.contains_key(&p));
        let mut best: Option<Region> = None;
        for_each_box(lengths, |low, high| {
            let cells = in_left.within(low, high);
            let full = in_all.within(low, high) == size(low, high);
            if cells > 0 && full && best.is_none_or(|b| cells > b.cells) {
                best = Some(Region { low, high, cells });
            }
        });
        // Each remaining place is a box of its own, so there is always one.
        let region = best?;
        left.retain(|p, ()| (0..3).any(|a| p[a] < region.low[a] || p[a] > region.high[a]));
        regions.push(region);
        if candidates.saturating_mul(regions.len()) > 4 * MOST_BOXES {
            return None;
        }
    }
    Some(regions)
}

fn size(low: Place, high: Place) -> usize {
    (0..3).map(|a| high[a] - low[a] + 1).product()
}

fn for_each_box(lengths: Place, mut take: impl FnMut(Place, Place)) {
    let ranges = |n: usize| (0..n).flat_map(move |low| (low..n).map(move |high| (low, high)));
    for (a, b) in ranges(lengths[0]) {
        for (c, d) in ranges(lengths[1]) {
            for (e, f) in ranges(lengths[2]) {
                take([a, c, e], [b, d, f]);
            }
        }
    }
}

/// Computes sums over boxes in constant time.
struct Sums {
    lengths: Place,
    sums: Vec<usize>,
}

impl Sums {
    fn new(lengths: Place, counted: impl Fn(Place) -> bool) -> Self {
        let mut sums = Self {
            lengths,
            sums: vec![0; lengths.iter().map(|n| n + 1).product()],
        };
        for i in 0..lengths[0] {
            for j in 0..lengths[1] {
                for k in 0..lengths[2] {
                    let (x, y, z) = (i + 1, j + 1, k + 1);
                    let value = usize::from(counted([i, j, k]))
                        + sums.at(i, y, z)
                        + sums.at(x, j, z)
                        + sums.at(x, y, k)
                        + sums.at(i, j, k)
                        - sums.at(i, j, z)
                        - sums.at(i, y, k)
                        - sums.at(x, j, k);
                    let index = sums.index(x, y, z);
                    sums.sums[index] = value;
                }
            }
        }
        sums
    }

    fn index(&self, i: usize, j: usize, k: usize) -> usize {
        (i * (self.lengths[1] + 1) + j) * (self.lengths[2] + 1) + k
    }

    fn at(&self, i: usize, j: usize, k: usize) -> usize {
        self.sums[self.index(i, j, k)]
    }

    fn within(&self, low: Place, high: Place) -> usize {
        let [a, c, e] = low;
        let [b, d, f] = high.map(|x| x + 1);
        self.at(b, d, f) + self.at(a, c, f) + self.at(a, d, e) + self.at(b, c, e)
            - self.at(a, d, f)
            - self.at(b, c, f)
            - self.at(b, d, e)
            - self.at(a, c, e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_corner_is_one_region() {
        let inside: Vec<Place> = (2..5)
            .flat_map(|t| (0..3).map(move |c| [t, c, 0]))
            .collect();
        let regions = cover(&inside, [5, 6, 2]).unwrap();
        assert_eq!(
            regions,
            [Region {
                low: [2, 0, 0],
                high: [4, 2, 0],
                cells: 9
            }]
        );
    }

    #[test]
    fn a_matrix_that_is_too_large_is_left_to_counts() {
        assert_eq!(cover(&[[0, 0, 0]], [4096, 4096, 4096]), None);
        assert_eq!(cover(&[], [0, 0, 0]), Some(vec![]));
    }

    proptest! {
        #[test]
        fn regions_hold_exactly_the_places(bits in proptest::collection::vec(any::<bool>(), 60)) {
            let places: Vec<Place> = (0..60).map(|i| [i / 15, i / 3 % 5, i % 3]).collect();
            let inside: Vec<Place> =
                places.iter().zip(&bits).filter(|(_, b)| **b).map(|(p, _)| *p).collect();
            let regions = cover(&inside, [4, 5, 3]).unwrap();
            for place in &places {
                let covered = regions.iter().any(|r| {
                    (0..3).all(|a| r.low[a] <= place[a] && place[a] <= r.high[a])
                });
                prop_assert_eq!(covered, inside.contains(place));
            }
            prop_assert_eq!(regions.iter().map(|r| r.cells).sum::<usize>(), inside.len());
        }
    }
}
