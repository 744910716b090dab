//! Tests what recordings that are written down here describe.

use crate::common;

use common::{Records, hold, trace};
use locklab_replay::{Fault, Limits, Program, Step};
use locklab_trace::{Access, Attempt, Event};

const A: u64 = 0x1000;
const B: u64 = 0x2000;
const C: u64 = 0x3000;

fn program(threads: &[Records], cpus: usize) -> Result<Program, Fault> {
    Program::of(&trace(threads, cpus), &Limits::default())
}

fn acquire(lock: u32) -> Step {
    Step::Acquire {
        lock,
        shared: false,
    }
}

fn release(lock: u32) -> Step {
    Step::Release { lock }
}

/// Returns two threads that take one lock, and nested in it a second; one of them also
/// takes a third of its own.
fn two_threads() -> Vec<Records> {
    let mut one = hold(A, 1, [100, 120, 400]);
    // It lies within the first: it is asked for at 200, given up at 300.
    one.splice(2..2, hold(B, 2, [200, 220, 300]));
    one.extend(hold(C, 3, [500, 520, 600]));
    one.push((1000, Event::Ended));
    let mut two = hold(A, 1, [150, 450, 500]);
    two.extend(hold(B, 2, [600, 620, 700]));
    two.push((1000, Event::Ended));
    vec![one, two]
}

#[test]
fn steps_are_work_and_locks_without_the_waiting() {
    let program = program(&two_threads(), 2).unwrap();
    let waiting: Vec<(u64, u64, f64)> = program
        .locks
        .iter()
        .map(|lock| (lock.address, lock.contended, lock.waited_ns))
        .collect();
    assert_eq!(waiting, [(A, 1, 300.0), (B, 0, 0.0)]);
    // The lock that only the first uses is work: 80 ns held, and 20 for each
    // operation.
    assert_eq!(
        program.threads[0].steps,
        [
            // Its first record is that late.
            Step::Idle(100),
            acquire(0),
            Step::Work(80),
            acquire(1),
            Step::Work(80),
            release(1),
            Step::Work(80),
            release(0),
            Step::Work(80 + 20 + 80 + 20 + 380),
        ]
    );
    assert_eq!(
        program.threads[1].steps,
        [
            Step::Idle(150),
            acquire(0),
            Step::Work(50),
            release(0),
            Step::Work(80),
            acquire(1),
            Step::Work(80),
            release(1),
            Step::Work(280),
        ]
    );
    let recorded = &program.recorded;
    assert_eq!(recorded.private_locks, 1);
    assert_eq!(recorded.waited_ns, 300.0);
    assert_eq!(recorded.acquisitions, 5);
    assert_eq!(recorded.free_ns, 20.0);
    assert_eq!(recorded.preempted_ns, 0.0);
}

#[test]
fn a_signal_ends_the_wait_that_it_ended_and_another_is_a_delay() {
    let condition = 0x9000;
    let wait = |at| {
        let (lock, stack, timed) = (A, 7, false);
        (
            at,
            Event::Wait {
                condition,
                lock,
                stack,
                timed,
            },
        )
    };
    let signal = Event::Signal {
        condition,
        broadcast: false,
    };
    let woken = Event::Woken { timed_out: false };
    let mut waiter = hold(A, 1, [100, 120, 3000]);
    // Once a signal ends it, once nothing that was recorded.
    waiter.splice(2..2, [wait(200), (1000, woken), wait(1100), (2000, woken)]);
    let mut other = hold(A, 2, [800, 820, 900]);
    other.extend([(950, signal), (4000, signal)]);
    let program = program(&[waiter, other], 4).unwrap();
    assert_eq!(program.channels, 1);
    let [waiter, other] = &program.threads[..] else {
        panic!("two threads");
    };
    assert_eq!(
        waiter.steps[1..10],
        [
            acquire(0),
            Step::Work(80),
            release(0),
            Step::Await { channel: 0 },
            acquire(0),
            Step::Work(100),
            release(0),
            Step::Idle(900),
            acquire(0),
        ]
    );
    let posts = |step: &&Step| matches!(step, Step::Post { .. });
    let posts: Vec<&Step> = other.steps.iter().filter(posts).collect();
    let (channel, times) = (0, 1);
    assert_eq!(posts, [&Step::Post { channel, times }]);
    assert_eq!(program.recorded.unmatched_ns, 900.0);
    assert!(!program.can_be_extrapolated());
}

#[test]
fn a_sleep_is_a_delay_and_no_work_and_a_wait_for_files_is_not_known() {
    let with = |timed| {
        let mut sleeper = hold(A, 1, [100, 120, 5000]);
        // It sleeps within the section, and after it.
        sleeper.splice(
            2..2,
            [
                (200, Event::Sleep { timed: true }),
                (1200, Event::Slept),
                (1300, Event::Sleep { timed }),
                (4300, Event::Slept),
            ],
        );
        let mut other = hold(A, 2, [150, 5120, 5200]);
        other.push((6000, Event::Ended));
        program(&[sleeper, other], 2).unwrap()
    };
    let timed = with(true);
    assert_eq!(
        timed.threads[0].steps[1..8],
        [
            acquire(0),
            Step::Work(80),
            Step::Idle(1000),
            Step::Work(100),
            Step::Idle(3000),
            Step::Work(700),
            release(0),
        ]
    );
    assert!(timed.can_be_extrapolated());
    assert_eq!(timed.recorded.unmatched_ns, 0.0);
    let files = with(false);
    assert_eq!(files.recorded.unmatched_ns, 3000.0);
    assert!(!files.can_be_extrapolated());
}

/// Returns two threads that read under one lock, each for 100 ns a turn after 300 ns, whose
/// operations take no time that is recorded. Before every other turn of a thread the
/// other one reads, and then 80 ns more pass, with the lock's line.
fn readers() -> Vec<Records> {
    let access = Access {
        shared: true,
        attempt: Attempt::Waits,
    };
    let frames = locklab_trace::Frames(&[[7, 0, 0, 0, 0, 0, 0, 0]]);
    let (lock, stack) = (A, 1);
    let request = Event::Request {
        lock,
        stack,
        access,
    };
    let of_thread = |offset: u64| {
        let mut records = vec![(offset, Event::Stack { number: 1, frames })];
        for round in 0..100 {
            for from in [380, 780] {
                let from = offset + 880 * round + from;
                records.extend([
                    (from, request),
                    (from, Event::Acquired),
                    (from + 100, Event::Release { lock }),
                    (from + 100, Event::Released),
                ]);
            }
        }
        records
    };
    vec![of_thread(0), of_thread(440)]
}

#[test]
fn what_fetching_a_shared_lock_took_is_in_no_step() {
    let program = program(&readers(), 2).unwrap();
    let recorded = &program.recorded;
    assert_eq!(recorded.fetch_ns, Some(80.0));
    assert_eq!(recorded.waited_ns, 0.0);
    let works = |step: &Step| matches!(step, Step::Work(300));
    let works = program.threads[1].steps.iter().filter(|step| works(step));
    assert_eq!(works.count(), 200);
}

/// Returns two threads with one lock for 20 ns a turn, two turns each, 300 ns apart.
/// Before the first of the two the other thread had the lock, and 80 ns more pass, with
/// its line. In every fourth round the other thread asks while the first one has the
/// lock, whose section is 80 ns longer then, with the line that it releases.
fn turns() -> Vec<Records> {
    let (lock, stack, access) = (A, 1, common::WRITE);
    let request = Event::Request {
        lock,
        stack,
        access,
    };
    let frames = locklab_trace::Frames(&[[7, 0, 0, 0, 0, 0, 0, 0]]);
    let explained = vec![(0, Event::Stack { number: 1, frames })];
    let mut threads = vec![explained.clone(), explained];
    let mut from = 0;
    for round in 0..200 {
        let longer = if round % 4 == 0 { 80 } else { 0 };
        // Asked, had, given up.
        for (thread, [asked, had, given_up]) in [
            (0, [380, 380, 400]),
            (0, [700, 700, 720 + longer]),
            (1, [740, 740 + longer, 760 + longer]),
            (1, [1060 + longer, 1060 + longer, 1080 + longer]),
        ] {
            threads[thread].extend([
                (from + asked, request),
                (from + had, Event::Acquired),
                (from + given_up, Event::Release { lock }),
                (from + given_up, Event::Released),
            ]);
        }
        from += 720 + longer;
    }
    threads
}

#[test]
fn what_fetching_a_lock_took_before_it_was_waited_for_is_in_no_step() {
    let program = program(&turns(), 2).unwrap();
    assert_eq!(program.recorded.fetch_ns, Some(80.0));
    assert_eq!(program.locks[0].contended, 50);
    let [first, other] = &program.threads[..] else {
        panic!("two threads");
    };
    let turn = [acquire(0), Step::Work(20), release(0), Step::Work(300)];
    // Without what is before the first acquisition, and after the last release.
    for steps in [first, other].map(|thread| &thread.steps[1..1597]) {
        let others = steps.chunks(4).filter(|steps| *steps != turn);
        assert_eq!(others.count(), 0);
    }
}

#[test]
fn births_and_ends_of_threads_are_waited_for() {
    let mut main = vec![(500, Event::Create { thread: 1 })];
    main.extend(hold(A, 1, [600, 620, 700]));
    main.push((800, Event::Join { handle: 77 }));
    main.push((2000, Event::Joined));
    main.extend(hold(A, 1, [2100, 2120, 2200]));
    let (handle, task) = (77, 4);
    let mut other = vec![(550, Event::Started { handle, task })];
    other.extend(hold(A, 2, [1000, 1020, 1100]));
    other.push((1900, Event::Ended));
    let program = program(&[main, other], 4).unwrap();
    let [main, other] = &program.threads[..] else {
        panic!("two threads");
    };
    assert!(matches!(other.steps[0], Step::Await { channel: 0 }));
    assert!(main.steps.contains(&Step::Post {
        channel: 0,
        times: 1
    }));
    assert!(main.steps.contains(&Step::Await { channel: 1 }));
    assert!(other.steps.contains(&Step::Post {
        channel: 1,
        times: 1
    }));
    assert!(program.can_be_extrapolated());
}

/// Returns eight readers of two locks and a writer of another: 100 rounds each.
fn readers_and_a_writer() -> Vec<Records> {
    let read = Access {
        shared: true,
        attempt: Attempt::Waits,
    };
    let mut threads = Vec::new();
    for reader in 0..8 {
        let mut records = Vec::new();
        for round in 0..100 {
            let at = 2000 * round + 10 * reader;
            let mut one = hold(A, 1, [at, at + 20, at + 100]);
            let (lock, stack, access) = (A, 1, read);
            one[0].1 = Event::Request {
                lock,
                stack,
                access,
            };
            records.extend(one);
            records.extend(hold(B, 2, [at + 1000, at + 1020, at + 1100]));
        }
        threads.push(records);
    }
    let mut writer = Vec::new();
    for round in 0..100 {
        let at = 2000 * round + 500;
        writer.extend(hold(A, 3, [at, at + 20, at + 200]));
    }
    threads.push(writer);
    threads
}

#[test]
fn threads_that_do_the_same_are_a_class_and_scale() {
    let mut threads = readers_and_a_writer();
    // Stacks have numbers of their threads; these explain them alike.
    for records in &mut threads {
        for number in 1..4 {
            let frames = match number {
                1 => &[[1, 0, 0, 0, 0, 0, 0, 0]],
                2 => &[[2, 0, 0, 0, 0, 0, 0, 0]],
                _ => &[[3, 0, 0, 0, 0, 0, 0, 0]],
            };
            let frames = locklab_trace::Frames(frames);
            records.insert(0, (0, Event::Stack { number, frames }));
        }
    }
    let program = program(&threads, 16).unwrap();
    let sizes: Vec<(usize, bool)> = program
        .classes
        .iter()
        .map(|class| (class.threads, class.scales))
        .collect();
    assert_eq!(sizes, [(8, true), (1, false)]);
    assert_eq!(program.classes[0].sites.len(), 2);
    assert_eq!(program.classes[1].sites[0].0.frames, [3]);
    assert!(program.locks[0].shared || program.locks[1].shared);
    assert_eq!(program.scaling_threads(), 8);
    assert_eq!(program.cast(None, 1).len(), 9);
    assert_eq!(program.cast(Some(2), 1).len(), 3);
    let more = program.cast(Some(20), 1);
    assert_eq!(more.len(), 21);
    assert_eq!(more, program.cast(Some(20), 1));
    assert_ne!(more, program.cast(Some(20), 2));
    for role in &more {
        let thread = &program.threads[role.thread];
        assert!(thread.rests().contains(&role.start));
    }
    // Copies begin elsewhere.
    assert!(more.iter().any(|role| role.start > 0));
}

#[test]
fn what_threads_without_a_cpu_lost_is_no_work() {
    // There are four threads on two CPUs: each computes 100 us, and once it seems to
    // compute for 3 ms more.
    let threads: Vec<Records> = (0..4)
        .map(|thread| {
            let mut at = 100_000;
            let mut records = hold(A, 1, [0, 20, 40 + thread]);
            for round in 0..40 {
                at += if round == 10 * thread {
                    3_000_000
                } else {
                    100_000
                };
                records.extend(hold(A, 1, [at, at + 20, at + 40]));
            }
            records
        })
        .collect();
    let program = program(&threads, 2).unwrap();
    let recorded = &program.recorded;
    let missing = 2.0 * recorded.window_ns;
    assert!(
        recorded.preempted_ns > 0.9 * missing.min(12e6),
        "{recorded:?}"
    );
    let longest = program.threads.iter().flat_map(|thread| &thread.steps);
    let longest = longest.filter_map(|step| match step {
        Step::Work(ns) => Some(*ns),
        _ => None,
    });
    assert!(longest.max().unwrap() < 3_000_000);
    let whole = self::program(&threads, 4).unwrap();
    assert_eq!(whole.recorded.preempted_ns, 0.0);
}

/// Returns what the system says of a thread that ran so long and was switched so often.
fn switches(voluntary: u64, involuntary: u64, ran_ns: u64) -> Event<'static> {
    Event::Switches {
        voluntary,
        involuntary,
        ran_ns,
        took: 0,
    }
}

/// Returns a thread that holds a lock, loses its CPU for long while it computes, and holds it
/// again: it computes for 1880 ns between.
fn without_cpu(voluntary: u64, involuntary: u64) -> Records {
    let mut records = vec![(50, switches(0, 0, 7000))];
    records.extend(hold(A, 1, [100, 120, 200]));
    records.push((500_000, switches(voluntary, involuntary, 7000 + 170 + 1880)));
    records.extend(hold(A, 1, [500_000, 500_020, 500_100]));
    records.push((500_200, Event::Ended));
    records
}

#[test]
fn a_thread_that_lost_its_cpu_computes_as_long_as_it_had_one() {
    let threads = [without_cpu(0, 1), without_cpu(0, 1)];
    let program = program(&threads, 2).unwrap();
    for thread in &program.threads {
        assert_eq!(thread.steps[5], Step::Work(1880), "{:?}", thread.steps);
        assert_eq!(thread.steps[6], acquire(0), "{:?}", thread.steps);
    }
    let recorded = &program.recorded;
    assert_eq!(recorded.preempted_ns, 2.0 * (499_780.0 - 1880.0));
    assert_eq!(recorded.unmatched_ns, 0.0);
    assert!(program.can_be_extrapolated());
}

#[test]
fn a_thread_that_waits_for_what_was_not_recorded_has_a_delay() {
    let threads = [without_cpu(1, 0), without_cpu(1, 0)];
    let program = program(&threads, 2).unwrap();
    for thread in &program.threads {
        let [idle, work] = [Step::Idle(499_780 - 1880), Step::Work(1880)];
        assert_eq!(thread.steps[5..7], [idle, work], "{:?}", thread.steps);
    }
    let recorded = &program.recorded;
    assert_eq!(recorded.preempted_ns, 0.0);
    assert_eq!(recorded.unmatched_ns, 2.0 * (499_780.0 - 1880.0));
    // Nobody knows what more threads would wait for.
    assert!(!program.can_be_extrapolated());
}

#[test]
fn what_the_recorder_took_to_ask_is_no_work() {
    let work = |took| {
        let mut records = without_cpu(0, 1);
        // One that takes the lock at once, and is timed.
        records[6].0 = 500_000;
        records.insert(5, (230, Event::Cost { ticks: 2 }));
        for (_, event) in &mut records {
            if let Event::Switches { took: asked, .. } = event {
                *asked = took;
            }
        }
        let program = program(&[records.clone(), records], 2).unwrap();
        program.threads[0].steps.clone()
    };
    let (without, asked) = (work(0), work(30));
    let differ = |(one, two): (&Step, &Step)| (one != two).then_some([*one, *two]);
    let different: Vec<[Step; 2]> = without.iter().zip(&asked).filter_map(differ).collect();
    let [[Step::Work(more), Step::Work(less)]] = different[..] else {
        panic!("{different:?}");
    };
    assert_eq!(more - less, 30);
}

#[test]
fn a_thread_with_locks_of_its_own_keeps_its_work() {
    // It loses its CPU once among many short pieces of work.
    let own: Records = (0..200)
        .flat_map(|turn| {
            let late = if turn < 100 { 0 } else { 900_000 };
            let at = 1000 * turn + 100 + late;
            hold(B, 1, [at, at + 20, at + 40])
        })
        .collect();
    let other = |at: u64| hold(A, 1, [at, at + 20, at + 40]);
    let sharing: Records = (0..100)
        .flat_map(|turn| other(10_000 * turn + 50))
        .collect();
    let threads = [own, sharing.clone(), sharing];
    let recorded = program(&threads, 2).unwrap();
    let own = &recorded.threads[0];
    assert!(own.work_ns > 150_000.0, "{:?}", own.steps);
}

#[test]
fn more_threads_than_cpus_have_a_longer_window() {
    let threads: Vec<Records> = (0..3)
        .map(|thread| {
            let turn = |turn: u64| {
                let at = 100_000 * turn + 10_000 * thread + 100;
                hold(A, 1, [at, at + 20, at + 40])
            };
            (0..10_000).flat_map(turn).collect()
        })
        .collect();
    let limits = Limits {
        acquisitions: 1000,
        ..Limits::default()
    };
    let acquisitions = |cpus| {
        let program = Program::of(&trace(&threads, cpus), &limits).unwrap();
        program.recorded.acquisitions
    };
    assert_eq!(acquisitions(3), 1000);
    let crowded = acquisitions(2);
    assert!((7000..=8000).contains(&crowded), "{crowded}");
}

#[test]
fn a_limited_window_is_in_the_middle_and_whole() {
    let limits = Limits {
        acquisitions: 300,
        ..Limits::default()
    };
    let trace = trace(&readers_and_a_writer(), 16);
    let program = Program::of(&trace, &limits).unwrap();
    let recorded = &program.recorded;
    assert_eq!(recorded.acquisitions, 300);
    assert!(recorded.from_ns > 0.3 * recorded.whole_ns, "{recorded:?}");
    assert!(recorded.window_ns < 0.3 * recorded.whole_ns, "{recorded:?}");
}

#[test]
fn a_thread_that_is_alone_only_in_the_window_is_not_said_to_be_the_only_one() {
    let often = (0..4000).flat_map(|turn| {
        let at = 100 * turn + 1000;
        hold(A, 1, [at, at + 20, at + 40])
    });
    let once = hold(A, 1, [100, 120, 140]);
    let limits = Limits {
        acquisitions: 1000,
        ..Limits::default()
    };
    let recorded = trace(&[often.collect(), once], 2);
    let fault = Program::of(&recorded, &limits).unwrap_err();
    assert_eq!(fault, Fault::OneThreadThere);
}

#[test]
fn what_cannot_be_run_again_is_said_in_a_sentence() {
    assert_eq!(program(&[], 2).unwrap_err(), Fault::Empty);
    let none = vec![(0, Event::Ended)];
    assert_eq!(
        program(std::slice::from_ref(&none), 2).unwrap_err(),
        Fault::NoLock
    );
    let one = hold(A, 1, [100, 120, 140]);
    assert_eq!(program(&[one, none], 2).unwrap_err(), Fault::OneThread);
    for fault in [
        Fault::Empty,
        Fault::NoLock,
        Fault::OneThread,
        Fault::OneThreadThere,
        Fault::NotWhole,
    ] {
        assert!(fault.to_string().len() > 40);
    }
}

#[test]
fn what_if_a_lock_were_used_otherwise() {
    let program = program(&two_threads(), 2).unwrap();
    let shorter = program.with_holds_of(0, 0.5);
    assert_eq!(
        shorter.threads[1].steps[1..4],
        [acquire(0), Step::Work(25), release(0)]
    );
    // What is held inside is shorter too, what is outside is not.
    assert_eq!(shorter.threads[0].steps[4], Step::Work(40));
    assert_eq!(shorter.threads[1].steps[4], Step::Work(80));
    let split = program.with_split(0, 8, 1);
    assert_eq!(split.locks.len(), program.locks.len() + 7);
    for (thread, before) in split.threads.iter().zip(&program.threads) {
        assert_eq!(thread.rests().len(), before.rests().len());
    }
    let read = program.with_readers_of(0, 2);
    let shared = |program: &locklab_replay::Program| {
        let steps = program.threads.iter().flat_map(|thread| &thread.steps);
        steps
            .filter(|step| matches!(step, Step::Acquire { shared: true, .. }))
            .count()
    };
    assert_eq!((shared(&program), shared(&read)), (0, 1));
    let free = program.without_locks();
    assert!(
        free.threads[0]
            .steps
            .iter()
            .all(|step| !matches!(step, Step::Acquire { .. }))
    );
}

#[test]
fn a_thread_that_only_makes_others_is_left_out() {
    let mut main = vec![
        (0, Event::Create { thread: 1 }),
        (10, Event::Create { thread: 2 }),
    ];
    main.push((20, Event::Join { handle: 7 }));
    main.push((5000, Event::Joined));
    let other = |handle| {
        let mut records = vec![(50, Event::Started { handle, task: 4 })];
        records.extend(hold(
            A,
            1,
            [100 * handle, 100 * handle + 20, 100 * handle + 50],
        ));
        records.push((4000, Event::Ended));
        records
    };
    let program = program(&[main, other(7), other(8)], 4).unwrap();
    assert_eq!(program.threads.len(), 2);
    assert_eq!(program.recorded.left_out_threads, 1);
    for thread in &program.threads {
        let waits = |step: &Step| matches!(step, Step::Await { .. });
        assert!(!thread.steps.iter().any(waits), "{:?}", thread.steps);
    }
}
