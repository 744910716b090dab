//! The machine that recorded: a model of it, by what the recording met and this machine
//! measures, and the recorded program, run again by its real threads.
//!
//! On another machine nothing is measured, and the advice says so. Nor is the program
//! replayed while the CPUs are nearer to each other, or farther apart, than when it
//! was recorded: the host of a virtual machine moves them, and rates follow. It must never
//! take what is measured now for what was recorded, nor a replayed rate for a simulated one.

use crate::candidate::Candidate;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_native::contention::{self, Contention};
use locklab_native::{Native, Replay, gate, round_trip, scheduling};
use locklab_replay::{Program, Recorded, Recording};
use locklab_sim::{FigureKey, Machine, Waiters};
use locklab_trace::{Apart, Info};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Says whether the program was replayed by real threads, under its own lock, on the
/// machine that recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum Here {
    /// It ran at so many times its recorded rate.
    Rate(f64),
    /// It was not, for this reason.
    Not(String),
}

/// Returns a model with the costs of futexes on this machine. All transfers between its
/// CPUs take what one between two of them took when it was recorded, or takes now, if
/// nothing else is known.
pub(crate) fn measured(
    mut machine: Machine,
    native: &Native,
    apart: Apart,
) -> Result<Machine, Error> {
    let [a, b, ..] = native.topology.order[..] else {
        return Ok(machine);
    };
    let trip = match apart {
        Apart::Stayed(trip) => Some(trip),
        Apart::Moved([one, two]) => Some((one + two) / 2.0),
        Apart::Unknown => round_trip::alternating(a, b),
    };
    if let Some(trip) = trip {
        machine = with_transfers(machine, trip / 2.0)?;
        machine.description += &format!(", {:.0} ns between two of them", trip / 2.0);
    }
    if let (Some(now), Some(found)) = (round_trip::alternating(a, b), contention::measure(a, b)) {
        machine = with_contention(machine, found, now / 2.0)?;
    }
    if let Some(scheduling) = scheduling::measure(a, b) {
        for (key, us) in scheduling.figures() {
            machine = machine.with(key.parse()?, us).map_err(failed)?;
        }
        machine.description += &format!(
            ", and what futexes cost, measured now: {:.1} µs for a call, {:.1} µs to wake, {:.1} µs \
             until the woken one runs (the slowest tenth {:.1} times as long as the quickest); on a busy machine that is not what a program meets",
            scheduling.call / 1e3,
            scheduling.wake_call / 1e3,
            scheduling.wake / 1e3,
            scheduling.wake_spread
        );
    }
    Ok(machine)
}

/// Returns a model whose contended lines do what those of two CPUs do that are `one_way` ns
/// apart. Shares of a transfer stay where it takes another time.
fn with_contention(machine: Machine, found: Contention, one_way: f64) -> Result<Machine, Error> {
    // Neither share of a transfer may be too much beside what the other was.
    let mut machine = machine
        .with(FigureKey::TransferRequestShare, 0.0)
        .and_then(|machine| machine.with(FigureKey::TransferSnoopShare, 0.0))
        .and_then(|machine| machine.with(FigureKey::CoreOwnReuse, 0.0))
        .map_err(failed)?;
    for (key, value) in found.figures(one_way) {
        machine = machine.with(key.parse()?, value).map_err(failed)?;
    }
    machine.description += &format!(
        ", a line that another wants kept for {:.0} ns of the {:.0} from a visit to the next",
        found.kept, found.visit
    );
    Ok(machine)
}

/// The distances over which a line may be transferred.
const TRANSFERS: [FigureKey; 3] = [
    FigureKey::TransferClusterNs,
    FigureKey::TransferSocketNs,
    FigureKey::TransferRemoteNs,
];

/// Returns a model in which every transfer takes so long.
fn with_transfers(mut machine: Machine, ns: f64) -> Result<Machine, Error> {
    let ns = ns.max(1.0);
    let mut keys = TRANSFERS;
    // What is nearer never takes longer, not even meanwhile.
    if ns > machine.get(TRANSFERS[2]) {
        keys.reverse();
    }
    for key in keys {
        machine = machine.with(key, ns).map_err(failed)?;
    }
    Ok(machine)
}

/// Returns the machine in each place where its CPUs were while it recorded. If the host of a
/// virtual machine moved them meanwhile, the recording is of both places, where locks
/// differ, and neither is the mean of the two.
pub(crate) fn places(machine: &Machine, apart: Apart) -> Result<Vec<Machine>, Error> {
    let [near, _, far] = TRANSFERS.map(|key| machine.get(key));
    let Apart::Moved(trips) = apart else {
        return Ok(vec![machine.clone()]);
    };
    // Of CPUs at several distances it is not known which were moved.
    if near != far {
        return Ok(vec![machine.clone()]);
    }
    let in_place = |trip: f64| {
        let mut there = with_transfers(machine.clone(), trip / 2.0)?;
        there.name = format!("{} at {:.0} ns", machine.name, trip / 2.0);
        there.description += &format!(
            "; while its CPUs were {:.0} ns apart, as for a part of the recording",
            trip / 2.0
        );
        Ok(there)
    };
    trips.into_iter().map(in_place).collect()
}

/// The factor by which a recorded wake-up may take longer than the model's. Beyond that
/// the recording lacks what was waited for, and the gate has to say so.
const PLAUSIBLE: f64 = 10.0;

/// Returns a model with the times that calls of the system, waking a thread and fetching a
/// lock from another thread took while the program was recorded, if the recording has
/// enough of them. On a machine that is not idle these times are several times as long,
/// and in some virtual machines they change from minute to minute.
pub(crate) fn as_recorded(
    mut machine: Machine,
    recorded: &Recorded,
    apart: Apart,
) -> Result<Machine, Error> {
    // Where all are as far apart; otherwise it is not known which they were.
    let [near, _, far] = TRANSFERS.map(|key| machine.get(key));
    if let Some(fetch) = recorded.fetch_ns
        && near == far
    {
        // No line takes longer than there and back, as measured when it was recorded; what
        // does is other data that came with it, as after a sleep.
        let fetch = match apart {
            Apart::Stayed(trip) => fetch.min(trip),
            Apart::Moved([one, two]) => fetch.min(one.max(two)),
            Apart::Unknown => fetch,
        };
        machine = with_transfers(machine, fetch)?;
        machine.description +=
            &format!("; as recorded, {fetch:.0} ns to fetch a lock that another thread had");
    }
    if let Some(call) = recorded.call_ns
        && call <= PLAUSIBLE * 1e3 * machine.get(FigureKey::SchedulerCallUs)
    {
        machine = machine
            .with(FigureKey::SchedulerCallUs, call / 1e3)
            .map_err(failed)?;
        machine.description += &format!("; as recorded, {:.2} µs for a call", call / 1e3);
    }
    let us = |key| 1e3 * machine.get(key);
    let (own_call, own_wake) = (
        us(FigureKey::SchedulerWakeCallUs),
        us(FigureKey::SchedulerWakeUs),
    );
    if let Some(call) = recorded.wake_call_ns
        && call <= PLAUSIBLE * own_call
    {
        machine = machine
            .with(FigureKey::SchedulerWakeCallUs, call / 1e3)
            .map_err(failed)?;
        machine.description += &format!("; as recorded, {:.1} µs to wake a thread", call / 1e3);
    }
    // With more threads than CPUs it waited for a CPU too.
    if let Some(wake) = recorded.wake_ns
        && wake <= PLAUSIBLE * own_wake
        && recorded.preempted_ns < 0.01 * recorded.work_ns
    {
        let spread = match recorded.wake_spread {
            Some(spread) => spread.clamp(1.0, 100.0),
            None => machine.get(FigureKey::SchedulerWakeSpread),
        };
        machine = machine.with_wakes(wake / 1e3, spread).map_err(failed)?;
        machine.description += &format!("; as recorded, {:.1} µs until it ran", wake / 1e3);
    }
    Ok(machine)
}

/// Returns the failure of a figure that was measured or recorded: no argument is at fault.
fn failed(error: Error) -> Error {
    Error::Failed(error.into())
}

/// The time for which the program is replayed.
const TIME: Duration = Duration::from_secs(2);
/// Sets how often that is tried, if the CPUs move meanwhile.
const ATTEMPTS: usize = 3;
/// The time for which the CPUs are waited for, if they are elsewhere.
const PATIENCE: Duration = Duration::from_secs(8);

/// Returns the machine that runs this command, if the recording was made on it.
///
/// # Errors
/// Why it cannot say anything of the recording.
pub(crate) fn native(info: &Info) -> Result<Native, String> {
    let name = Environment::read().name();
    match info.machine == name {
        true => Ok(Native::probe()),
        false => Err(format!(
            "it was recorded on {}, and this is {name}",
            info.machine
        )),
    }
}

/// Replays the program of this recording, with the recorder's part of each
/// operation, by real threads under its own lock, where the CPUs are as far apart as
/// they were.
///
/// # Errors
/// [`Error::Failed`] if the recording describes no program.
pub(crate) fn replayed(
    native: &Result<Native, String>,
    program: impl FnOnce() -> Result<Program, Error>,
    (file, apart): (&Path, Apart),
    interrupt: &Arc<AtomicBool>,
) -> Result<Here, Error> {
    let native = match native {
        Ok(native) => native,
        Err(why) => return Ok(Here::Not(why.clone())),
    };
    if let Apart::Moved([one, two]) = apart {
        return Ok(Here::Not(format!(
            "its CPUs were moved while it was recorded: a round trip of a cache line between them \
             took {one:.0} ns at first and {two:.0} ns at the end"
        )));
    }
    let replay = match Replay::new(program()?, &file.display().to_string()) {
        Ok(replay) => replay,
        Err(why) => return Ok(Here::Not(why.into())),
    };
    for _ in 0..ATTEMPTS {
        if let Err(why) = wait_for(apart, interrupt) {
            return Ok(Here::Not(why));
        }
        let rate = gate::replayed_by_recorded(native, replay.clone(), TIME, interrupt);
        match rate {
            Ok(_) if elsewhere(apart).is_some() => {}
            Ok(rate) => return Ok(Here::Rate(rate)),
            Err(why) => return Ok(Here::Not(why.into())),
        }
    }
    Ok(Here::Not("the CPUs were moved during each attempt".into()))
}

/// Replays the program by real threads under a lock that the model recommends, and under its
/// own, in turn.
pub(crate) fn tried(
    native: &Result<Native, String>,
    program: &Program,
    (lock, recording): (&Candidate, &Recording),
    interrupt: &Arc<AtomicBool>,
) -> Here {
    let native = match native {
        Ok(native) => native,
        Err(why) => return Here::Not(why.clone()),
    };
    // Waiters of a replay spin unless the lock itself sleeps.
    let sleeps = lock.sleeps_by_itself() || lock.waiters == Waiters::Spin;
    if !sleeps && program.threads.len() > program.running() {
        return Here::Not(
            "its waiters sleep, and in a replay with more threads than CPUs they would spin".into(),
        );
    }
    let replay = Replay::new(program.clone(), &recording.path().display().to_string());
    let rate = replay
        .and_then(|replay| gate::replayed_by_own(native, replay, &lock.lock, TIME, interrupt));
    rate.map_or_else(|why| Here::Not(why.into()), Here::Rate)
}

/// Returns the round trip now, if it is of another place than that of the recording.
fn elsewhere(apart: Apart) -> Option<[f64; 2]> {
    let Apart::Stayed(then) = apart else {
        return None;
    };
    match Apart::of([Some(then), round_trip::here()]) {
        Apart::Moved(both) => Some(both),
        _ => None,
    }
}

/// Waits until the CPUs are as far apart as when it was recorded.
fn wait_for(apart: Apart, interrupt: &AtomicBool) -> Result<(), String> {
    let since = Instant::now();
    while let Some([then, now]) = elsewhere(apart) {
        if since.elapsed() > PATIENCE || interrupt.load(Ordering::Relaxed) {
            return Err(format!(
                "a round trip of a cache line between its CPUs takes {now:.0} ns now, and took \
                 {then:.0} ns when it was recorded"
            ));
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_transfer_are_those_of_the_machine_whatever_the_model_had() {
        for name in ["xeon-8160", "skylake-6700hq", "epyc-7763-2s", "graviton2"] {
            for (kept, visit) in [(20.0, 55.0), (60.0, 20.0), (0.0, 90.0)] {
                let found = Contention {
                    kept,
                    visit,
                    migrates: 1.0,
                    ahead: 0.5,
                };
                let machine = Machine::builtin(name).unwrap();
                let machine = with_contention(machine, found, 60.0).unwrap();
                let (request, snoop) = found.shares(60.0);
                assert_eq!(machine.get(FigureKey::TransferRequestShare), request);
                assert_eq!(machine.get(FigureKey::TransferSnoopShare), snoop);
                assert_eq!(machine.get(FigureKey::DirectoryMigrates), 1.0);
                assert_eq!(machine.get(FigureKey::CoreReadsAhead), 0.5);
            }
        }
    }
    use crate::question::generic;

    #[test]
    fn fetching_a_lock_takes_no_longer_than_a_round_trip() {
        let transfer = |fetch_ns, apart| {
            let recorded = Recorded {
                fetch_ns: Some(fetch_ns),
                ..Recorded::default()
            };
            let machine = as_recorded(generic(2).unwrap(), &recorded, apart).unwrap();
            machine.get(FigureKey::TransferRemoteNs)
        };
        assert_eq!(transfer(233.0, Apart::Stayed(52.0)), 52.0);
        assert_eq!(transfer(40.0, Apart::Stayed(52.0)), 40.0);
        assert_eq!(transfer(233.0, Apart::Moved([52.0, 190.0])), 190.0);
        assert_eq!(transfer(233.0, Apart::Unknown), 233.0);
    }

    #[test]
    fn a_machine_whose_cpus_were_moved_is_asked_about_in_both_places() {
        let machine = generic(2).unwrap();
        let both = places(&machine, Apart::Moved([60.0, 440.0])).unwrap();
        let there: Vec<_> = both
            .iter()
            .map(|there| (there.name.as_str(), TRANSFERS.map(|key| there.get(key))))
            .collect();
        assert_eq!(
            there,
            [
                ("the machine that recorded at 30 ns", [30.0; 3]),
                ("the machine that recorded at 220 ns", [220.0; 3])
            ]
        );
        let same = vec![machine.clone()];
        assert_eq!(places(&machine, Apart::Stayed(60.0)).unwrap(), same);
        assert_eq!(places(&machine, Apart::Unknown).unwrap(), same);
        // Which of its CPUs were moved is not known.
        let server = Machine::builtin("epyc-7763-2s").unwrap();
        let moved = Apart::Moved([60.0, 440.0]);
        assert_eq!(places(&server, moved).unwrap(), vec![server.clone()]);
    }
}
