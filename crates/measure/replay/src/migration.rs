//! Computes how much longer a section is if another thread had its lock before: the data that
//! it protects is then in another CPU's cache.
//!
//! Under the recorded lock one thread may have had many turns in a row, and under
//! another lock they alternate, or the reverse. So what moving the data took is
//! estimated, taken from the sections that had it, and left to whoever replays them,
//! who knows when the lock changes hands. It must never be estimated of sections
//! that waited for something else within.

use crate::program::Step;
use std::collections::BTreeMap;

/// The fewest sections of one place in the program, of those after another thread's
/// and of those after the thread's own, that say something.
const FEWEST: usize = 25;

/// A section that holds one lock from first to last, and others within it perhaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// Its thread, and the step that acquires its lock.
    pub(crate) thread: usize,
    pub(crate) step: usize,
    pub(crate) lock: usize,
    pub(crate) site: usize,
    /// Says whether another thread had the lock before.
    pub(crate) after_other: bool,
    /// Says whether it slept before it had the lock: what that costs is no data that
    /// moved.
    pub(crate) slept: bool,
    /// Says whether another thread asked for the lock meanwhile: the section ends with
    /// fetching its line.
    pub(crate) asked: bool,
    pub(crate) ticks: u64,
}

/// An operation before whose time the recorder looked at the lock, so that what it took to
/// fetch the line is in the work before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) place: Place,
    /// Its thread, and the step that computes before it.
    pub(crate) thread: usize,
    pub(crate) step: usize,
    /// Says whether another thread's operation on the lock was the last before.
    pub(crate) of_other: bool,
    /// Says whether it took no time of its own: only such are compared.
    pub(crate) at_once: bool,
    /// Holds what seems to be computed before it, in nanoseconds.
    pub(crate) before_ns: u64,
}

/// Describes where in the program a lock is acquired or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) lock: usize,
    /// Says where it is, or was, acquired.
    pub(crate) site: usize,
    pub(crate) releases: bool,
}

/// The longest that one line takes from CPU to CPU, in nanoseconds: operations on
/// a free lock take no longer.
const LINE_NS: u64 = 250;

/// No line comes from another CPU in less, in nanoseconds.
const LEAST_NS: f64 = 10.0;

/// Returns by how many nanoseconds an operation takes longer if another thread had the line of
/// its lock, by place in the program: as much longer as what seems to be computed before
/// it. The shorter half is compared, because in a long time another thread is likelier
/// to have had it.
pub(crate) fn fetched(fetches: &[Fetch]) -> BTreeMap<Place, u64> {
    let mut places: BTreeMap<Place, [Vec<u64>; 2]> = BTreeMap::new();
    for fetch in fetches.iter().filter(|fetch| fetch.at_once) {
        let place = places.entry(fetch.place).or_default();
        place[usize::from(fetch.of_other)].push(fetch.before_ns);
    }
    let longer = |(place, [mut own, mut other]): (_, [Vec<u64>; 2])| {
        let enough = own.len() >= FEWEST && other.len() >= FEWEST;
        let longer = enough.then(|| lower(&mut other).saturating_sub(lower(&mut own)))?;
        Some((place, longer.min(LINE_NS)))
    };
    places.into_iter().filter_map(longer).collect()
}

/// Returns the mean of what fetching took, over all operations that did; none if no place
/// says what it took.
pub(crate) fn mean_fetch(fetches: &[Fetch], fetched: &BTreeMap<Place, u64>) -> Option<f64> {
    let of_other = fetches.iter().filter(|fetch| fetch.of_other);
    let of = |fetch: &Fetch| fetched.get(&fetch.place).copied();
    let all: Vec<u64> = of_other.filter_map(of).collect();
    let mean = all.iter().sum::<u64>() as f64 / all.len().max(1) as f64;
    // Where both took as long, nothing was fetched, or not noticed.
    (mean >= LEAST_NS).then_some(mean)
}

/// Returns for each lock by how many ticks its sections are longer after another thread's;
/// `None` where the recording does not say.
pub(crate) fn migration(sections: &[Section], locks: usize) -> Vec<Option<u64>> {
    // Lengths after the own, after another's without a sleep, and after a sleep.
    let mut places: BTreeMap<(usize, usize), [Vec<u64>; 3]> = BTreeMap::new();
    for section in sections {
        let kind = match (section.after_other, section.slept) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        let place = places.entry((section.lock, section.site)).or_default();
        place[kind].push(section.ticks);
    }
    let mut sums = vec![(0_u64, 0_u64); locks];
    for ((lock, _), [own, awake, slept]) in &mut places {
        let other = match awake.len() >= FEWEST {
            true => awake,
            false => slept,
        };
        if own.len() < FEWEST || other.len() < FEWEST {
            continue;
        }
        let weight = other.len() as u64;
        let longer = middle(other).saturating_sub(middle(own));
        sums[*lock].0 += longer * weight;
        sums[*lock].1 += weight;
    }
    let mean = |(sum, weight): (u64, u64)| sum.checked_div(weight);
    sums.into_iter().map(mean).collect()
}

/// Returns how often, and for how many ticks, each lock was held from each place, without
/// what moving its data took.
pub(crate) fn lengths(
    sections: &[Section],
    migration: &[Option<u64>],
) -> BTreeMap<(usize, usize), (u64, u64)> {
    let mut places: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
    for section in sections {
        let more = match section.after_other {
            true => migration.get(section.lock).copied().flatten().unwrap_or(0),
            false => 0,
        };
        let place = places.entry((section.lock, section.site)).or_default();
        place.push(section.ticks.saturating_sub(more));
    }
    let of = |(place, mut ticks): (_, Vec<u64>)| {
        let count = ticks.len() as u64;
        (place, (count, middle(&mut ticks)))
    };
    places.into_iter().map(of).collect()
}

/// Returns the mean of the lower half. Of at least two.
fn lower(of: &mut [u64]) -> u64 {
    of.sort_unstable();
    let half = &of[..of.len() / 2];
    half.iter().sum::<u64>() / half.len() as u64
}

/// Returns the mean of the middle half: a counter may tick only every 10 ns, and then medians
/// are of its ticks. Of at least one.
fn middle(of: &mut [u64]) -> u64 {
    of.sort_unstable();
    let half = &of[of.len() / 4..of.len() - of.len() / 4];
    half.iter().sum::<u64>() / half.len().max(1) as u64
}

/// Takes so much from the work of a section that begins with this step, the longest
/// piece first; returns what it took.
pub(crate) fn shorten(steps: &mut [Step], from: usize, mut ns: u64) -> u64 {
    let from = from.min(steps.len());
    let (mut held, mut end) = (0_usize, from);
    for step in &steps[from..] {
        match step {
            Step::Acquire { .. } => held += 1,
            Step::Release { .. } => held = held.saturating_sub(1),
            _ => {}
        }
        end += 1;
        if held == 0 {
            break;
        }
    }
    let mut taken = 0;
    while ns > 0 {
        let work = steps[from..end].iter_mut().filter_map(|step| match step {
            Step::Work(work) if *work > 0 => Some(work),
            _ => None,
        });
        let Some(work) = work.max() else { break };
        let part = ns.min(*work);
        *work -= part;
        ns -= part;
        taken += part;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(site: usize, after_other: bool, slept: bool, ticks: u64) -> Section {
        Section {
            thread: 0,
            step: 0,
            lock: 1,
            site,
            after_other,
            slept,
            asked: false,
            ticks,
        }
    }

    #[test]
    fn sections_of_one_place_are_compared_and_those_that_slept_are_not() {
        let mut sections = Vec::new();
        for _ in 0..FEWEST {
            sections.push(section(1, false, false, 100));
            sections.push(section(1, true, false, 140));
            sections.push(section(1, true, true, 900));
            // Another place has long sections, which say nothing.
            sections.push(section(2, true, false, 5000));
        }
        assert_eq!(migration(&sections, 3), [None, Some(40), None]);
        sections.truncate(8);
        assert_eq!(migration(&sections, 2), [None, None]);
    }

    #[test]
    fn what_fetching_the_lock_took_is_told_from_what_was_computed_before() {
        let place = Place {
            lock: 1,
            site: 3,
            releases: false,
        };
        let one = |of_other, before_ns| Fetch {
            place,
            thread: 0,
            step: 0,
            of_other,
            at_once: true,
            before_ns,
        };
        // Sometimes another had it because the thread computed for long.
        let fetches = [one(false, 100), one(true, 160), one(true, 9000)].repeat(FEWEST);
        let found = fetched(&fetches);
        assert_eq!(found, BTreeMap::from([(place, 60)]));
        assert_eq!(mean_fetch(&fetches, &found), Some(60.0));
        assert_eq!(mean_fetch(&fetches, &BTreeMap::new()), None);
        assert_eq!(fetched(&fetches[..9]), BTreeMap::new());
    }

    #[test]
    fn where_all_slept_those_have_to_do() {
        let pair = [section(1, false, false, 100), section(1, true, true, 170)];
        assert_eq!(migration(&pair.repeat(FEWEST), 2), [None, Some(70)]);
    }

    #[test]
    fn a_section_is_shortened_and_what_follows_is_not() {
        let acquire = |lock| Step::Acquire {
            lock,
            shared: false,
        };
        let mut steps = [
            Step::Work(500),
            acquire(0),
            Step::Work(10),
            acquire(1),
            Step::Work(30),
            Step::Release { lock: 1 },
            Step::Release { lock: 0 },
            Step::Work(500),
        ];
        assert_eq!(shorten(&mut steps, 1, 35), 35);
        assert_eq!((steps[2], steps[4]), (Step::Work(5), Step::Work(0)));
        assert_eq!(shorten(&mut steps, 1, 35), 5);
        assert_eq!((steps[0], steps[7]), (Step::Work(500), Step::Work(500)));
        assert_eq!(shorten(&mut steps, 99, 35), 0);
    }
}
