//! Estimates the time in which a thread was ready but had no CPU, where a recording
//! does not say which stretches were longer by it: those of a kernel.
//!
//! Such a recording says when a thread asked for a lock, not when it had a CPU. Where
//! more threads were ready than there are CPUs, some of what looks like work was
//! not. A scheduler takes a CPU away for a long time and seldom, so that is taken
//! from the longest stretches.

/// The shortest stretch that is shortened, in nanoseconds: a thread that has lost
/// its CPU does not have it back sooner.
const SHORTEST: u64 = 20_000;

/// Returns the time in which more threads were ready than there are CPUs, as so many threads
/// without a CPU for so long, from the times at which threads became ready (1)
/// and no longer were (-1).
pub(crate) fn without_cpu(mut changes: Vec<(u64, i32)>, cpus: usize) -> u64 {
    // Where both are at one time, the thread that stops goes first.
    changes.sort_unstable();
    let (mut ready, mut since, mut sum) = (0_i64, 0_u64, 0_u64);
    for (tick, change) in changes {
        let over = u64::try_from(ready - cpus as i64).unwrap_or(0);
        sum = sum.saturating_add(over.saturating_mul(tick - since));
        ready += i64::from(change);
        since = tick;
    }
    sum
}

/// Returns the length to which longer stretches are cut, so that `budget` is taken away;
/// all in nanoseconds. `u64::MAX` if nothing is.
pub(crate) fn longest_kept(mut stretches: Vec<u64>, budget: u64) -> u64 {
    if budget == 0 {
        return u64::MAX;
    }
    stretches.retain(|&length| length > SHORTEST);
    stretches.sort_unstable_by_key(|&length| std::cmp::Reverse(length));
    let mut above = 0_u64;
    for (count, &length) in stretches.iter().enumerate() {
        // Cut to the next length, all those before lose this much.
        let taken = above - count as u64 * length;
        if taken >= budget {
            return above.saturating_sub(budget) / count as u64;
        }
        above = above.saturating_add(length);
    }
    let count = stretches.len() as u64;
    if count == 0 {
        return u64::MAX;
    }
    (above.saturating_sub(budget) / count).max(SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_threads_on_two_cpus_lack_one() {
        let changes = vec![(0, 1), (0, 1), (10, 1), (50, -1), (60, -1), (60, -1)];
        assert_eq!(without_cpu(changes.clone(), 2), 40);
        assert_eq!(without_cpu(changes, 3), 0);
    }

    #[test]
    fn the_longest_stretches_lose_what_was_no_work() {
        let us = |n: u64| n * 1000;
        let stretches = vec![100, us(3000), us(2000), us(30)];
        assert_eq!(longest_kept(stretches.clone(), 0), u64::MAX);
        assert_eq!(longest_kept(stretches.clone(), us(500)), us(2500));
        assert_eq!(longest_kept(stretches.clone(), us(2000)), us(1500));
        // Never below what a scheduler can have taken.
        assert_eq!(longest_kept(stretches.clone(), us(9000)), SHORTEST);
        assert_eq!(longest_kept(vec![100, 200], us(1)), u64::MAX);
    }
}
