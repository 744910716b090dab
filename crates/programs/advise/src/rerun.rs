//! The recorded program, run again by real threads on the machine that recorded it.
//!
//! On another machine nothing is measured, and the advice says so. Nor is the program
//! replayed while the CPUs are nearer to each other, or farther apart, than when it
//! was recorded: the host of a virtual machine moves them, and rates follow.

use crate::here::Here;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_native::{Native, Replay, gate, round_trip};
use locklab_replay::Program;
use locklab_trace::{Apart, Info};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// For how long the program is replayed.
const TIME: Duration = Duration::from_secs(2);
/// How often that is tried, if the CPUs move meanwhile.
const ATTEMPTS: usize = 3;
/// For how long the CPUs are waited for, if they are elsewhere.
const PATIENCE: Duration = Duration::from_secs(8);

/// The machine that runs this command, if the recording was made on it.
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
    native: Result<Native, String>,
    program: impl FnOnce() -> Result<Program, Error>,
    (file, apart): (&Path, Apart),
    interrupt: &Arc<AtomicBool>,
) -> Result<Here, Error> {
    let native = match native {
        Ok(native) => native,
        Err(why) => return Ok(Here::Not(why)),
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
        let rate = gate::replayed_by_recorded(&native, replay.clone(), TIME, interrupt);
        match rate {
            Ok(_) if elsewhere(apart).is_some() => {}
            Ok(rate) => return Ok(Here::Rate(rate)),
            Err(why) => return Ok(Here::Not(why)),
        }
    }
    Ok(Here::Not("the CPUs were moved during each attempt".into()))
}

/// The round trip now, if it is of another place than that of the recording.
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
