//! Programs that are written down, and how they are run.

use locklab_replay::{Class, Lock, Program, Recorded, Step, Thread};
use locklab_sim::{
    FigureKey, Machine, Placement, Replay, Replayed, SimError, Subject, Waiters, replay,
};

pub(crate) fn acquire(lock: u32) -> Step {
    Step::Acquire {
        lock,
        shared: false,
    }
}

pub(crate) fn release(lock: u32) -> Step {
    Step::Release { lock }
}

/// Returns a program of these threads, all of one class.
pub(crate) fn program(threads: &[&[Step]], locks: usize, channels: usize) -> Program {
    let lock = Lock {
        image: 0,
        address: 0,
        shared: false,
        acquired: 0,
        contended: 0,
        waited_ns: 0.0,
        held_ns: 0.0,
        migration_ns: None,
    };
    Program {
        locks: vec![lock; locks],
        threads: threads
            .iter()
            .enumerate()
            .map(|(number, steps)| Thread {
                number: number as u64,
                class: 0,
                steps: steps.to_vec(),
                work_ns: 1000.0,
            })
            .collect(),
        channels,
        classes: vec![Class {
            threads: threads.len(),
            scales: true,
            acquisitions_per_s: 0.0,
            work: 1.0,
            sites: Vec::new(),
        }],
        modules: Vec::new(),
        holds: Vec::new(),
        recorded: Recorded::default(),
    }
}

/// Runs a program under a lock, which spins and then sleeps with `+park`, and lets running
/// threads pass with `+barging`, or under an ideal one.
pub(crate) fn run(
    program: &Program,
    lock: Option<&str>,
    cpus: usize,
) -> Result<Replayed, SimError> {
    let lock = lock.map_or(Subject::Ideal, |lock| match lock.split_once('+') {
        Some((lock, "barging")) => Subject::Lock(lock, Waiters::Barging),
        Some((lock, _)) => Subject::Lock(lock, Waiters::SpinThenPark),
        None => Subject::Lock(lock, Waiters::Spin),
    });
    run_under(program, lock, cpus)
}

pub(crate) fn run_under(
    program: &Program,
    lock: Subject<'_>,
    cpus: usize,
) -> Result<Replayed, SimError> {
    let machine = Machine::builtin("flat-16").unwrap();
    // Wake-ups that differ would hide small differences between locks.
    let machine = machine.with(FigureKey::SchedulerWakeSpread, 1.0).unwrap();
    run_on(&machine, program, lock, cpus)
}

/// Runs a program on a machine of one's own.
pub(crate) fn run_on(
    machine: &Machine,
    program: &Program,
    lock: Subject<'_>,
    cpus: usize,
) -> Result<Replayed, SimError> {
    replay(&Replay {
        machine,
        lock,
        program,
        roles: &program.cast(None, 1),
        hardware_threads: Some(cpus),
        placement: Placement::Spread,
        seed: 1,
        work_ns: 20e6,
        most_events: u64::MAX,
    })
}

/// Works outside and inside one lock for so many nanoseconds.
pub(crate) fn turn(outside: u64, inside: u64) -> [Step; 4] {
    [
        Step::Work(outside),
        acquire(0),
        Step::Work(inside),
        release(0),
    ]
}
