//! Tests of src/run_queues.rs, with access to what is private there.

use super::*;
use crate::machine::Machine;

/// Returns two queues on two cores that share a cache, slices of 100.
fn queues(threads: usize) -> (RunQueues, Topology) {
    let topology = Topology::new(&Machine::builtin("flat-16").unwrap());
    let queues = RunQueues::new(threads, &[0, 1], &topology, [100, 50, 1024, 0, 10]);
    (queues, topology)
}

fn runs_next(queues: &RunQueues, topology: &Topology, place: usize, now: u64) -> usize {
    let who = queues.next(place, topology, now).unwrap();
    queues.runs(place, who, now);
    who
}

#[test]
fn threads_take_turns_of_a_slice() {
    let (queues, topology) = queues(2);
    for who in 0..2 {
        queues.add(0, who, 0);
    }
    let mut now = 0;
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(runs_next(&queues, &topology, 0, now));
        let left = queues.slice_left(0, now);
        assert_eq!(left, 100);
        assert!(!queues.must_leave(0, now + left - 1, None));
        now += left;
        assert!(queues.must_leave(0, now, None));
        queues.leaves(0, now, true);
    }
    assert_eq!(order, [0, 1, 0, 1]);
}

#[test]
fn who_is_alone_keeps_its_cpu() {
    let (queues, topology) = queues(1);
    queues.add(0, 0, 0);
    runs_next(&queues, &topology, 0, 0);
    assert!(!queues.must_leave(0, 1000, None));
    assert_eq!(queues.slice_left(0, 1000), 100);
}

#[test]
fn a_woken_thread_preempts_who_has_run_more_than_its_share() {
    let (queues, topology) = queues(2);
    for who in 0..2 {
        queues.add(0, who, 0);
    }
    assert_eq!(runs_next(&queues, &topology, 0, 0), 0);
    // It sleeps after 60; the other, who waited, runs 10 and sleeps.
    queues.leaves(0, 60, false);
    assert_eq!(runs_next(&queues, &topology, 0, 60), 1);
    queues.leaves(0, 70, false);
    // The first has not been caught up with, and stays where it was until it is alone.
    assert_eq!(queues.next(0, &topology, 70), None);
    queues.add(0, 0, 300);
    assert_eq!(runs_next(&queues, &topology, 0, 300), 0);
    queues.add(0, 1, 310);
    assert!(
        queues.must_leave(0, 310, Some(1)),
        "the second had less than its share"
    );
}

#[test]
fn a_woken_thread_that_is_owed_nothing_waits_for_the_slice_to_end() {
    let (queues, topology) = queues(2);
    queues.add(0, 0, 0);
    runs_next(&queues, &topology, 0, 0);
    queues.add(0, 1, 10);
    assert!(!queues.must_leave(0, 10, Some(1)));
    assert!(queues.must_leave(0, 100, None));
}

#[test]
fn who_sleeps_after_more_than_its_share_counts_until_the_others_have_had_theirs() {
    let (queues, topology) = queues(2);
    for who in 0..2 {
        queues.add(0, who, 0);
    }
    runs_next(&queues, &topology, 0, 0);
    queues.leaves(0, 60, false);
    assert_eq!(runs_next(&queues, &topology, 0, 60), 1);
    queues.add(0, 0, 80);
    assert!(
        !queues.must_leave(0, 80, Some(0)),
        "it has run 60, the other 20"
    );
    queues.leaves(0, 90, false);
    assert_eq!(runs_next(&queues, &topology, 0, 90), 0);
}

#[test]
fn a_free_cpu_takes_a_thread_whose_cache_is_cold() {
    let (queues, topology) = queues(3);
    for who in 0..3 {
        queues.add(0, who, 0);
    }
    runs_next(&queues, &topology, 0, 0);
    queues.leaves(0, 20, true);
    runs_next(&queues, &topology, 0, 20);
    assert_eq!(queues.next(1, &topology, 30), None, "all are warm");
    assert_eq!(
        queues.next(1, &topology, 60),
        Some(2),
        "who ran least lately"
    );
}

#[test]
fn a_cpu_that_is_idle_for_short_times_looks_elsewhere_at_the_tick_only() {
    let (queues, topology) = queues(3);
    queues.add(0, 0, 0);
    runs_next(&queues, &topology, 0, 0);
    let mut now = 100;
    let mut works_and_sleeps = || {
        queues.add(1, 2, now);
        assert_eq!(runs_next(&queues, &topology, 1, now), 2);
        queues.leaves(1, now + 1, false);
        now += 5;
        queues.next(1, &topology, now - 4)
    };
    for _ in 0..8 {
        assert_eq!(works_and_sleeps(), None);
    }
    queues.add(0, 1, 130);
    assert_eq!(works_and_sleeps(), None, "the other's cache is cold");
    assert_eq!(queues.next_at_tick(1, &topology, 146), Some(1));
}

#[test]
fn a_woken_thread_goes_where_nothing_runs_and_shares_a_cache() {
    let (queues, topology) = queues(2);
    let place = |idle: [bool; 2]| queues.place_of(0, (0, Some(1)), &topology, |place| idle[place]);
    assert_eq!(place([true, true]), 0, "its last");
    assert_eq!(place([false, true]), 1);
    queues.add(1, 0, 0);
    assert_eq!(
        place([false, false]),
        0,
        "its last is no longer than the waker's"
    );
}

#[test]
fn who_yields_gives_up_its_slice() {
    let (queues, topology) = queues(2);
    queues.add(0, 0, 0);
    runs_next(&queues, &topology, 0, 0);
    assert!(!queues.yields(0, 1), "nobody waits");
    queues.add(0, 1, 10);
    assert!(queues.yields(0, 10));
    queues.leaves(0, 10, true);
    assert_eq!(runs_next(&queues, &topology, 0, 10), 1);
}

#[test]
fn an_idle_big_core_is_taken_before_a_small_one_nearby() {
    let topology = Topology::new(&Machine::builtin("apple-m2-air").unwrap());
    let hardware: Vec<usize> = (0..8).collect();
    let queues = RunQueues::new(12, &hardware, &topology, [100, 50, 2048, 0, 10]);
    // It ran on the first small core; another small one and the last big one are idle.
    let place = queues.place_of(0, (4, None), &topology, |place| [3, 5].contains(&place));
    assert_eq!(place, 3);
    let place = queues.place_of(0, (4, None), &topology, |place| place == 5);
    assert_eq!(place, 5);
    // Big cores get two threads for one of a small core.
    let mut threads = [0; 8];
    for who in 0..12 {
        let place = queues.shortest();
        threads[place] += 1;
        queues.add(place, who, 0);
    }
    assert_eq!(threads, [2, 2, 2, 2, 1, 1, 1, 1]);
}

/// The rule before Linux 6.6, with a period of 240 and ticks of 10.
fn older(threads: usize) -> (RunQueues, Topology) {
    let topology = Topology::new(&Machine::builtin("flat-16").unwrap());
    let queues = RunQueues::new(threads, &[0, 1], &topology, [100, 50, 1024, 240, 10]);
    (queues, topology)
}

#[test]
fn by_the_older_rule_a_slice_is_a_part_of_the_period() {
    for (threads, slice) in [(2, 120), (4, 60), (12, 30)] {
        let (queues, topology) = older(threads);
        for who in 0..threads {
            queues.add(0, who, 0);
        }
        runs_next(&queues, &topology, 0, 0);
        assert_eq!(queues.slice_left(0, 3), 7, "it is looked at by the tick");
        assert!(!queues.must_leave(0, slice - 10, None), "{threads}");
        assert!(queues.must_leave(0, slice, None), "{threads}");
        queues.leaves(0, slice, true);
        assert_eq!(runs_next(&queues, &topology, 0, slice), 1);
    }
}

#[test]
fn by_the_older_rule_who_wakes_preempts_who_has_run_a_sixth_of_the_period_more() {
    let (queues, topology) = older(2);
    for who in 0..2 {
        queues.add(0, who, 0);
    }
    runs_next(&queues, &topology, 0, 0);
    queues.leaves(0, 10, false);
    assert_eq!(runs_next(&queues, &topology, 0, 10), 1);
    queues.add(0, 0, 40);
    assert!(!queues.must_leave(0, 60, Some(0)), "50 and 10");
    assert!(
        queues.must_leave(0, 61, Some(0)),
        "51 and 10: more than 240 / 6"
    );
}

#[test]
fn by_the_older_rule_a_long_sleep_is_worth_half_a_period() {
    let (queues, topology) = older(2);
    queues.add(0, 1, 0);
    runs_next(&queues, &topology, 0, 0);
    queues.leaves(0, 0, false);
    queues.add(0, 0, 0);
    assert_eq!(runs_next(&queues, &topology, 0, 0), 0);
    queues.add(0, 1, 1000);
    queues.leaves(0, 1000, true);
    assert_eq!(runs_next(&queues, &topology, 0, 1000), 1);
    assert!(!queues.must_leave(0, 1119, None));
    queues.leaves(0, 1125, true);
    assert_eq!(
        runs_next(&queues, &topology, 0, 1125),
        0,
        "it has caught up"
    );
}

#[test]
fn by_the_older_rule_who_yields_is_not_the_next_though_it_has_run_least() {
    let (queues, topology) = older(2);
    for who in 0..2 {
        queues.add(0, who, 0);
    }
    runs_next(&queues, &topology, 0, 0);
    queues.leaves(0, 30, true);
    assert_eq!(runs_next(&queues, &topology, 0, 30), 1);
    assert!(queues.yields(0, 31));
    queues.leaves(0, 31, true);
    assert_eq!(runs_next(&queues, &topology, 0, 31), 0);
    queues.leaves(0, 90, true);
    assert_eq!(runs_next(&queues, &topology, 0, 90), 1);
    assert!(
        !queues.yields(0, 90),
        "the other has run more by over a sixth"
    );
}

/// Threads that are started one after the other begin behind each other by their part of a
/// period, and what they slept gives the earlier ones half a period of it back.
#[test]
fn by_the_older_rule_who_was_started_earlier_preempts_who_was_started_later() {
    let topology = Topology::new(&Machine::builtin("flat-16").unwrap());
    let queues = RunQueues::new(3, &[0], &topology, [100, 50, 1024, 240, 10]);
    for who in 0..3 {
        queues.start_after_others(0, who);
        queues.add(0, who, 0);
    }
    // Each runs for a moment, in the order of their start, and sleeps.
    for (who, now) in [(0, 0), (1, 1), (2, 2)] {
        assert_eq!(runs_next(&queues, &topology, 0, now), who);
        queues.leaves(0, now + 1, false);
    }
    queues.add(0, 2, 1000);
    assert_eq!(runs_next(&queues, &topology, 0, 1000), 2);
    queues.add(0, 0, 1001);
    assert!(queues.must_leave(0, 1001, Some(0)));
    queues.leaves(0, 1001, true);
    assert_eq!(runs_next(&queues, &topology, 0, 1001), 0);
    queues.add(0, 1, 1002);
    assert!(!queues.must_leave(0, 1002, Some(1)), "both had as much");
}

#[test]
fn by_the_older_rule_who_is_a_slice_ahead_leaves_after_an_eighth_of_a_period() {
    let older = LatencyRule::new(240).unwrap();
    // Of two, whose slices are 120.
    assert!(older.ends(120, 1, 2) && !older.ends(120, 0, 2));
    assert!(older.ends(30, 121, 2) && !older.ends(29, 121, 2) && !older.ends(30, 120, 2));
}
