//! Tests what two recordings of one program say of how long its locks are held.

use crate::common;

use common::{Records, hold, trace};
use locklab_replay::{Growth, Limits, NoGrowth, Program, Step};
use locklab_trace::{Event, Frames, Payload};

const A: u64 = 0x1000;

/// Returns so many threads that take one lock by turns and hold it for `inside`; the file of
/// the program is mapped to `mapped`.
fn turns(threads: u64, inside: u64, mapped: u64) -> Vec<Records> {
    (0..threads)
        .map(|thread| {
            let frames = match mapped {
                0x10_0000 => &[[0x40, 0, 0x10, 0, 0, 0, 0, 0]],
                _ => &[[0x40, 0, 0x70, 0, 0, 0, 0, 0]],
            };
            let frames = Frames(frames);
            let module = Event::Module {
                from: mapped,
                to: mapped + 0x1000,
                offset: 0,
                path: Payload(b"/usr/bin/program"),
            };
            let mut records = vec![(0, Event::Stack { number: 1, frames })];
            if thread == 0 {
                records.insert(0, (0, module));
            }
            for round in 0..200 {
                let at = 1000 + (round * threads + thread) * 1000;
                records.extend(hold(A, 1, [at, at + 20, at + 20 + inside]));
            }
            records
        })
        .collect()
}

fn program(threads: &[Records], cpus: usize) -> Program {
    Program::of(&trace(threads, cpus), &Limits::default()).unwrap()
}

/// Returns the mean work under the lock.
fn inside(program: &Program) -> f64 {
    let (mut held, mut sum, mut count) = (false, 0, 0_u32);
    for step in program.threads.iter().flat_map(|thread| &thread.steps) {
        match step {
            Step::Acquire { .. } => held = true,
            Step::Release { .. } => {
                held = false;
                count += 1;
            }
            Step::Work(ns) if held => sum += ns,
            _ => {}
        }
    }
    sum as f64 / f64::from(count)
}

#[test]
fn holds_grow_as_a_power_of_the_threads_that_run_at_a_time() {
    let few = program(&turns(2, 100, 0x10_0000), 16);
    let many = program(&turns(8, 200, 0x70_0000), 16);
    let growth = Growth::between(&few, &many).unwrap();
    assert_eq!(growth.running, [2, 8]);
    assert!((growth.times - 2.0).abs() < 0.01, "{growth:?}");
    assert!((growth.overall() - 0.5).abs() < 0.01, "{growth:?}");
    assert_eq!(growth.common, 1.0);
    assert!((inside(&many) - 200.0).abs() < 2.0);
    for (threads, ns) in [(2, 100.0), (8, 200.0), (32, 400.0)] {
        for program in [&few, &many] {
            let with = program.with_running(&growth, threads);
            assert!(
                (inside(&with) / ns - 1.0).abs() < 0.02,
                "{threads}: {}",
                inside(&with)
            );
            let outside = |program: &Program| program.threads[0].steps[0];
            assert_eq!(outside(&with), outside(program));
        }
    }
    let with = many.with_running(&growth, 32);
    assert!(with.recorded.work_ns > many.recorded.work_ns);
    // The threads of few are cast as those of many.
    assert_eq!(few.cast_as(&many, 1).unwrap().len(), 8);
}

#[test]
fn holds_that_are_shorter_with_more_threads_are_taken_as_equal() {
    let few = program(&turns(2, 200, 0x10_0000), 16);
    let many = program(&turns(8, 150, 0x70_0000), 16);
    let growth = Growth::between(&few, &many).unwrap();
    assert_eq!(growth.overall(), 0.0);
    let with = many.with_running(&growth, 32);
    assert_eq!(inside(&with), inside(&many));
}

#[test]
fn recordings_that_say_nothing_of_growth_say_why() {
    let few = program(&turns(2, 100, 0x10_0000), 2);
    let many = program(&turns(8, 200, 0x70_0000), 2);
    assert_eq!(Growth::between(&few, &many), Err(NoGrowth::AsMany(2)));
    let (few, mut many) = (
        program(&turns(2, 100, 0x10_0000), 16),
        program(&turns(8, 200, 0x70_0000), 16),
    );
    many.modules[0].path = b"/usr/bin/another".to_vec();
    assert_eq!(Growth::between(&few, &many), Err(NoGrowth::NoPlace));
    assert_eq!(few.cast_as(&many, 1), None);
    // One thread alone says how long it holds.
    let limits = Limits {
        one_thread: true,
        ..Limits::default()
    };
    let one = Program::of(&trace(&turns(1, 50, 0x10_0000), 16), &limits).unwrap();
    let many = program(&turns(8, 200, 0x70_0000), 16);
    let growth = Growth::between(&one, &many).unwrap();
    assert!((growth.times - 4.0).abs() < 0.05, "{growth:?}");
}
