//! `locklab machine check FILE --locks`: every lock on this machine and on its model.
//!
//! What was measured is kept beside the file, raw, and the result in it, for reports that use it.

use super::fitted::{fitted, pairs};
use crate::arguments::Common;
use crate::comparison::show;
use crate::output::{FileFormat, check_writable, print, write_file};
use locklab_document::number;
use locklab_harness::progress::Progress;
use locklab_harness::store;
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_native::{MOST_LOCKS, Native, default_threads, every_lock, round_trip, subject};
use locklab_published::factor_error;
use locklab_published::recorded::{Fitted, Recording, Row};
use locklab_sim::{Arch, CHECKED, FigureKey, Machine, can_be_simulated};
use locklab_workload::Cells;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The number of blocks of each cell.
const BLOCKS: u32 = 9;
/// The lengths of both sections, in the matrix's units.
const LENGTHS: [u64; 2] = [1, 32];
/// A model whose figures differ from this machine's by more than this factor is of another.
const OTHER: f64 = 1.3;
/// A place whose transfers differ from those of all models by more than this gets its own.
const MOVED: f64 = 1.25;

/// Checks the model of this machine in `file`, with these locks, or all if none is named.
///
/// # Errors
/// [`Error::Usage`] if the file is no model of this machine, or fewer than two locks can be
/// compared; [`Error::Failed`] if that cannot be measured or written; [`Error::Interrupted`]
/// after Ctrl-C.
pub(super) fn check(
    file: &Path,
    only: &[String],
    seed: u64,
    common: &Common,
) -> Result<ExitCode, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::Usage(format!("cannot read {}: {e}", file.display())))?;
    let machine = Machine::parse(&file.display().to_string(), &text)?;
    let native = Native::probe();
    let pairs = pairs(&native.topology)?;
    is_this(&machine, &native)?;
    let cells = Cells {
        threads: default_threads(native.topology.order.len()),
        critical: vec![1],
        non_critical: LENGTHS.to_vec(),
        ..Cells::default()
    };
    let locks = locks_of(only, cells.most_threads())?;
    let raw = file.with_extension("locks.json");
    if common.dry_run {
        return print(&format!(
            "Would measure {} in {} of {}, and write {}.\n",
            number::count(locks.len(), "lock"),
            number::count(BLOCKS as usize, "block"),
            number::count(cells.places().len(), "cell"),
            raw.display()
        ));
    }
    check_writable(file, FileFormat::Machine, common.force)?;
    check_writable(&raw, FileFormat::Locks, common.force)?;
    let interrupt = interrupt::listen()?;
    let (a, b) = pairs[0];
    // With more CPUs than two a round trip says which CPUs as much as where they are.
    let many = native.topology.order.len() > 2;
    // The host of a virtual machine moves its CPUs: a place that has no model gets one.
    let mut fits: Vec<(f64, Fitted)> = Vec::new();
    let place = |fits: &mut Vec<(f64, Fitted)>| -> Result<(), Error> {
        let [Some(transfers), Some(stores)] =
            [round_trip::transfers(a, b), round_trip::measure(a, b)]
        else {
            // The block says that it was disturbed.
            return Ok(());
        };
        let is = |known: f64| factor_error(known, transfers) <= MOVED;
        if fits.iter().any(|(known, _)| many || is(*known)) {
            return Ok(());
        }
        let of_file = 2.0 * machine.get(FigureKey::TransferSocketNs);
        let text = match many || is(of_file) {
            true => text.clone(),
            false => fitted(&native, &pairs, file)?.1,
        };
        fits.push((
            transfers,
            Fitted {
                round_trip_ns: stores,
                file: text,
            },
        ));
        Ok(())
    };
    let progress = Progress::new(1, "blocks", common.quiet);
    let mut rows = Vec::new();
    // A block has room for so many locks.
    let parts = locks.len().div_ceil(MOST_LOCKS);
    for part in locks.chunks(locks.len().div_ceil(parts)) {
        let measured = every_lock::measure(
            &native,
            part,
            &cells,
            BLOCKS,
            Arc::clone(&interrupt),
            |block| {
                progress.set(u64::from(block), u64::from(BLOCKS), "locks");
                place(&mut fits)
            },
        )?;
        rows.extend(measured.into_iter().map(|row| Row {
            lock: part[row.lock].clone(),
            threads: row.threads,
            critical: row.lengths[0] as u32,
            non_critical: row.lengths[1] as u32,
            round_trip_ns: row.round_trip.filter(|_| !many),
            ops_per_s: row.rate,
        }));
    }
    drop(progress);
    if fits.is_empty() {
        return Err(Error::Failed(
            "no two CPUs ran at the same time; the machine is too busy, try again".into(),
        ));
    }
    let recording = Recording {
        machine: format!(
            "{}; load {}",
            native.machine.name,
            native.environment.load.known().unwrap_or("unknown")
        ),
        date: format!("{} UTC", store::now()?),
        fits: fits.into_iter().map(|(_, fit)| fit).collect(),
        rows,
    };
    let compared = recording.compare(seed, native.topology.order.len())?;
    write_file(&raw, &format!("{:#}\n", serde_json::json!(recording)))?;
    if let Some(sentence) = compared.sentence(&recording.date) {
        write_file(file, &with_result(&text, &machine, &sentence))?;
    }
    show(&compared.document(&recording), common)
}

/// Returns the locks of these names, or all if none is named, that so many threads can use both
/// here and in the simulator.
fn locks_of(only: &[String], threads: usize) -> Result<Vec<String>, Error> {
    for name in only {
        subject::find(name)?;
    }
    let locks: Vec<String> = (subject::all().iter())
        .filter(|lock| lock.measured && lock.info.max_cpus >= threads)
        .filter(|lock| can_be_simulated(lock.info.name))
        .map(|lock| lock.info.name.to_owned())
        .filter(|lock| only.is_empty() || only.contains(lock))
        .collect();
    if locks.len() < 2 {
        return Err(Error::Usage(
            "--locks compares two locks or more that are both measured and simulated; name others, \
             or leave the names out for all"
                .into(),
        ));
    }
    Ok(locks)
}

/// Returns the text of a machine file with this result in the place of an older one.
fn with_result(text: &str, machine: &Machine, sentence: &str) -> String {
    let head = format!("[{CHECKED}]\n");
    let before = text.split_once(&head).map_or(text, |(before, _)| before);
    format!(
        "{}\n\n{head}found = {sentence:?}\nfigures = \"{}\"\n",
        before.trim_end(),
        machine.digest()
    )
}

/// Refuses a model of another machine, and says what differs.
fn is_this(machine: &Machine, native: &Native) -> Result<(), Error> {
    let other = |what: String| {
        Err(Error::Usage(format!(
            "{} is the model of another machine: {what}; make one of this machine by `locklab \
             machine fit FILE`",
            machine.name
        )))
    };
    let here = match cfg!(target_arch = "aarch64") {
        true => Arch::Aarch64,
        false => Arch::X86_64,
    };
    if machine.arch != here {
        return other("it has other instructions".into());
    }
    let cpus = native.topology.order.len();
    if machine.cpus() != cpus {
        return other(format!(
            "it has {} CPUs, and {cpus} may be used here",
            machine.cpus()
        ));
    }
    let cycle = native.calibration.cycle_ns;
    for (key, value) in [
        (FigureKey::CoreClockGhz, 1.0 / cycle),
        (
            FigureKey::CoreUnitCycles,
            native.calibration.unit_ns / cycle,
        ),
    ] {
        if factor_error(machine.get(key), value) > OTHER {
            return other(format!(
                "its {key} is {}, and here it is {value:.1}",
                machine.get(key)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_replaces_an_older_one_and_is_void_with_other_figures() {
        let text = include_str!("../../../../machines/flat-16.toml");
        let machine = Machine::parse("m.toml", text).unwrap();
        assert_eq!(machine.checked, None);
        let once = with_result(text, &machine, "Right in 9 of 10.");
        let twice = with_result(&once, &machine, "Right in 8 of 10.");
        let read = Machine::parse("m.toml", &twice).unwrap();
        assert_eq!(read.checked.as_deref(), Some("Right in 8 of 10."));
        assert_eq!(twice.matches("[checked]").count(), 1);
        let changed = twice.replace("clock_ghz = 2.0", "clock_ghz = 2.5");
        assert_ne!(changed, twice);
        assert_eq!(Machine::parse("m.toml", &changed).unwrap().checked, None);
    }

    #[test]
    fn one_lock_has_nothing_beside_it() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            locks_of(&names, 2)
        };
        assert_eq!(of(&["mcs", "ticket"]).unwrap().len(), 2);
        assert!(of(&[]).unwrap().len() > 30);
        for (names, why) in [
            (&["ticket"][..], "two locks or more"),
            (&["ticket", "ticket"], "two locks or more"),
            (&["tickt", "mcs"], "the closest are"),
        ] {
            let error = of(names).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_model_of_another_machine_is_refused_with_the_difference() {
        let native = Native::probe();
        let machine = Machine::builtin("xeon-6-e-288").unwrap();
        let why = is_this(&machine, &native).unwrap_err().to_string();
        let differs = ["it has 288 CPUs, and ", "other instructions"];
        assert!(differs.iter().any(|what| why.contains(what)), "{why}");
    }
}
