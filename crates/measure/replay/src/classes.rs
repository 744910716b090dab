//! Finds which threads do the same, and which of them run when there are more or fewer.
//!
//! Threads are alike if their acquisitions come from the same call sites in
//! similar parts and at similar rates.

use crate::growth::{Place, place};
use crate::program::{Class, Program, Role, Site};
use locklab_judge::fork_seed;
use std::collections::BTreeMap;

/// The least likeness of two threads of a class: the sum over all sites of the
/// root of the product of their parts (Bhattacharyya), 1 if all are equal.
const ALIKE: f64 = 0.8;
/// The most by which their rates differ.
const RATES: f64 = 4.0;
/// Number of sites by which a class is described.
const SITES: usize = 3;
/// The least likeness, by those sites, of classes of two recordings.
const LIKE: f64 = 0.5;

/// Describes what tells the class of a thread.
pub(crate) struct Trait {
    /// Acquisitions by site.
    pub(crate) sites: BTreeMap<usize, u64>,
    /// Nanoseconds in which it computed.
    pub(crate) work_ns: f64,
}

impl Trait {
    fn acquisitions(&self) -> u64 {
        self.sites.values().sum()
    }

    fn is_like(&self, other: &Self) -> bool {
        let (one, two) = (self.acquisitions() as f64, other.acquisitions() as f64);
        if one <= 0.0 || two <= 0.0 || one > RATES * two || two > RATES * one {
            return false;
        }
        let common = self.sites.iter().map(|(site, &count)| {
            let there = other.sites.get(site).copied().unwrap_or(0);
            (count as f64 / one * (there as f64 / two)).sqrt()
        });
        common.sum::<f64>() >= ALIKE
    }
}

/// Returns the class of each thread, and the classes, the most numerous first.
pub(crate) fn classes(
    traits: &[Trait],
    sites: &[Site],
    window_ns: f64,
) -> (Vec<usize>, Vec<Class>) {
    // The first of each class stands for it.
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (thread, of) in traits.iter().enumerate() {
        let like = members
            .iter_mut()
            .find(|class| of.is_like(&traits[class[0]]));
        match like {
            Some(class) => class.push(thread),
            None => members.push(vec![thread]),
        }
    }
    members.sort_by_key(|class| std::cmp::Reverse(class.len()));
    let some_scale = members.first().is_some_and(|class| class.len() > 1);
    let mut class_of = vec![0; traits.len()];
    let mut classes = Vec::new();
    for (number, class) in members.iter().enumerate() {
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for &thread in class {
            class_of[thread] = number;
            for (site, count) in &traits[thread].sites {
                *sums.entry(*site).or_default() += count;
            }
        }
        let all: u64 = sums.values().sum();
        let mut most: Vec<(usize, u64)> = sums.into_iter().collect();
        most.sort_by_key(|&(site, count)| (std::cmp::Reverse(count), site));
        let threads = class.len() as f64 * window_ns.max(1.0);
        let work: f64 = class.iter().map(|&thread| traits[thread].work_ns).sum();
        classes.push(Class {
            threads: class.len(),
            scales: class.len() > 1 || !some_scale,
            acquisitions_per_s: all as f64 / threads * 1e9,
            work: work / threads,
            sites: most
                .into_iter()
                .take(SITES)
                .map(|(site, count)| (sites[site].clone(), count as f64 / all.max(1) as f64))
                .collect(),
        });
    }
    (class_of, classes)
}

/// Returns how many threads each class has if those that scale have `threads` in all: in
/// proportion, the largest remainders rounded up.
fn sizes(classes: &[Class], threads: usize) -> Vec<usize> {
    let scaling = |class: &Class| if class.scales { class.threads } else { 0 };
    let all: usize = classes.iter().map(scaling).sum();
    let mut sizes: Vec<usize> = classes
        .iter()
        .map(|class| match class.scales {
            true => class.threads * threads / all.max(1),
            false => class.threads,
        })
        .collect();
    let mut by_remainder: Vec<usize> = (0..classes.len())
        .filter(|&number| classes[number].scales)
        .collect();
    by_remainder
        .sort_by_key(|&number| std::cmp::Reverse(classes[number].threads * threads % all.max(1)));
    let given: usize = by_remainder.iter().map(|&number| sizes[number]).sum();
    for &number in by_remainder.iter().take(threads.saturating_sub(given)) {
        sizes[number] += 1;
    }
    sizes
}

impl Program {
    /// Returns the threads that run if the classes that scale have `threads` in all: of
    /// each class in proportion, the recorded ones first, and of those again, each
    /// from a place of its own in the sequence. `None` stands for as recorded.
    #[must_use]
    pub fn cast(&self, threads: Option<usize>, seed: u64) -> Vec<Role> {
        let program = self;
        let begin = |thread| Role { thread, start: 0 };
        let Some(threads) = threads.filter(|&threads| threads != program.scaling_threads()) else {
            return (0..program.threads.len()).map(begin).collect();
        };
        program.of_sizes(&sizes(&program.classes, threads), seed)
    }

    /// Returns the threads that run if there are as many of each class as of the class of
    /// another recording whose threads do the same; `None` if a class has none.
    #[must_use]
    pub fn cast_as(&self, other: &Self, seed: u64) -> Option<Vec<Role>> {
        let mut sizes = vec![0; self.classes.len()];
        for class in &other.classes {
            let there = places(other, class);
            let likeness = |own: &Class| likeness(&there, &places(self, own));
            let likenesses = self.classes.iter().map(likeness).enumerate();
            let (best, most) = likenesses.max_by(|a, b| a.1.total_cmp(&b.1))?;
            if most < LIKE {
                return None;
            }
            sizes[best] += class.threads;
        }
        Some(self.of_sizes(&sizes, seed))
    }

    /// Returns so many threads of each class.
    fn of_sizes(&self, sizes: &[usize], seed: u64) -> Vec<Role> {
        let mut roles = Vec::new();
        for (number, &size) in sizes.iter().enumerate() {
            let of_class = |&thread: &usize| self.threads[thread].class == number;
            let members: Vec<usize> = (0..self.threads.len()).filter(of_class).collect();
            for copy in 0..size {
                let Some(&thread) = members.get(copy % members.len().max(1)) else {
                    break;
                };
                let whose = &self.threads[thread];
                let start = if copy < members.len() || whose.has_channels() {
                    0
                } else {
                    let rests = whose.rests();
                    let one = drawn(seed, (number << 20 | copy) as u64, rests.len());
                    rests.get(one).copied().unwrap_or(0)
                };
                roles.push(Role { thread, start });
            }
        }
        roles
    }
}

/// Returns where a class acquires most, with the part of each place.
fn places(program: &Program, class: &Class) -> Vec<(Place, f64)> {
    let place = |(site, part): &(Site, f64)| (place(program, site), *part);
    class.sites.iter().map(place).collect()
}

/// Returns how alike two classes are, by the places that describe them: 1 if they are
/// equal.
fn likeness(one: &[(Place, f64)], two: &[(Place, f64)]) -> f64 {
    let all = |of: &[(Place, f64)]| of.iter().map(|(_, part)| part).sum::<f64>().max(1e-9);
    let common = one.iter().filter_map(|(place, part)| {
        let (_, there) = two.iter().find(|(other, _)| other == place)?;
        Some((part / all(one) * there / all(two)).sqrt())
    });
    common.sum()
}

/// Returns a number below `bound` that the seed and `number` give.
fn drawn(seed: u64, number: u64, bound: usize) -> usize {
    (fork_seed(seed, number) % bound.max(1) as u64) as usize
}
