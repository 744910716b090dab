//! Chooses the locks that are kept: those that several threads used, the most contended
//! first. What is done with the others is work.

use crate::program::{Lock, Step};

/// Describes what became of the locks.
pub(crate) struct Kept {
    pub(crate) locks: Vec<Lock>,
    /// Locks that one thread used.
    pub(crate) private: usize,
    /// Locks beyond the limit, and their part of all waiting.
    pub(crate) left_out: (usize, f64),
}

/// Keeps at most so many locks, renumbers them in the steps, and turns the
/// operations of others into work of `acquire` and `release` nanoseconds.
pub(crate) fn keep(
    locks: &[Lock],
    threads: &mut [Vec<Step>],
    most: usize,
    [acquire, release]: [u64; 2],
) -> Kept {
    let mut user = vec![None; locks.len()];
    let mut shared = vec![false; locks.len()];
    for (thread, steps) in threads.iter().enumerate() {
        for step in steps {
            if let Step::Acquire { lock, .. } = *step {
                let lock = lock as usize;
                shared[lock] |= user[lock].is_some_and(|user| user != thread);
                user[lock] = Some(thread);
            }
        }
    }
    let mut order: Vec<usize> = (0..locks.len()).filter(|&lock| shared[lock]).collect();
    order.sort_by(|&a, &b| {
        let (one, two) = (&locks[a], &locks[b]);
        let waited = two.waited_ns.total_cmp(&one.waited_ns);
        waited.then_with(|| two.acquired.cmp(&one.acquired))
    });
    let all: f64 = locks.iter().map(|lock| lock.waited_ns).sum();
    let beyond: f64 = order
        .iter()
        .skip(most)
        .map(|&lock| locks[lock].waited_ns)
        .sum();
    let kept = Kept {
        private: user.iter().flatten().count() - order.len(),
        left_out: (order.len().saturating_sub(most), beyond / all.max(1.0)),
        locks: order.iter().take(most).map(|&lock| locks[lock]).collect(),
    };
    let mut place = vec![None; locks.len()];
    for (number, &lock) in order.iter().take(most).enumerate() {
        place[lock] = u32::try_from(number).ok();
    }
    for steps in threads {
        let renumbered = steps.drain(..).map(|step| match step {
            Step::Acquire { lock, shared } => match place[lock as usize] {
                Some(lock) => Step::Acquire { lock, shared },
                None => Step::Work(acquire),
            },
            Step::Release { lock } => match place[lock as usize] {
                Some(lock) => Step::Release { lock },
                None => Step::Work(release),
            },
            other => other,
        });
        *steps = merged(renumbered);
    }
    kept
}

/// Steps with one piece of work where there are several in a row.
pub(crate) fn merged(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::new();
    for step in steps {
        match (merged.last_mut(), step) {
            (_, Step::Work(0) | Step::Idle(0) | Step::Post { times: 0, .. }) => {}
            (Some(Step::Work(before)), Step::Work(more)) => *before = before.saturating_add(more),
            _ => merged.push(step),
        }
    }
    merged
}
