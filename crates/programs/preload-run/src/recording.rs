//! A program that is recorded while it runs.
//!
//! Makes the file with all the room that it may need, so that a full disk is
//! found before the program starts, and never by the program; gives back what
//! was not used.

use crate::client::Client;
use crate::not_loaded::{self, Watch};
use crate::program::{ended_by_a_filter, exit_number, line_of, preload};
use crate::recorded::Recorded;
use crate::signals;
use crate::windows::Windows;
use locklab_host::cpu_use::CpuUse;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::process::not_started;
use locklab_host::shell;
use locklab_profile::clock::{counter, has_counter, nanoseconds};
use locklab_trace::{FILE_VARIABLE, FIRST, Header, MAGIC, Stopped, close, file_bytes, room};
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::NonNull;

/// The start of a recording by the kernel's events, which one of this kind may replace.
pub const SYSTEM_START: &str = "{\"locklab\":\"system recording\"";

/// A program to record.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file for the recording.
    pub file: PathBuf,
    /// The time for which it records, if not until the program ends.
    pub seconds: Option<f64>,
    /// The most room that it takes, in units of 2^20 bytes.
    pub megabytes: u32,
    /// Says whether all of the time is recorded, however much that slows the program, and
    /// not windows of it.
    pub whole: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Measures how far apart the machine's CPUs are: the round trip of a cache line, in
    /// nanoseconds. The host of a virtual machine moves them.
    pub round_trip: fn() -> Option<f64>,
    /// The CPU time of all programs and of this one's children until now: other programs
    /// may have the CPUs that the program needs.
    pub cpu_use: fn() -> Option<CpuUse>,
    /// A client on the same machine, whose CPU time is the program's.
    pub client: Option<Client>,
}

/// A program that is ready to be recorded.
#[derive(Debug)]
pub struct ReadyToRecord {
    recording: Recording,
    library: PathBuf,
    variables: [(&'static str, OsString); 2],
}

impl Recording {
    /// Finds the recorder, and checks the file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file is there and no recording, or the time or
    /// the room is none; [`Error::Failed`] if the recorder is not built.
    pub fn ready(self) -> Result<ReadyToRecord, Error> {
        if self.command.is_empty() {
            return Err(Error::Usage("name a program to record, after --".into()));
        }
        if self.megabytes == 0 {
            return Err(Error::Usage(
                "--megabytes 0 leaves no room to record; give 1 or more".into(),
            ));
        }
        if self.seconds.is_some_and(|s| !s.is_finite() || s <= 0.0) {
            return Err(Error::Usage("--seconds must be more than 0".into()));
        }
        check_file(&self.file)?;
        let library = locklab_libraries::recorder()?;
        let file = std::path::absolute(&self.file)
            .map_err(|e| Error::Failed(format!("{}: {e}", self.file.display())))?;
        Ok(ReadyToRecord {
            variables: [
                (
                    "LD_PRELOAD",
                    preload(&library, std::env::var_os("LD_PRELOAD")),
                ),
                (FILE_VARIABLE, file.into()),
            ],
            library,
            recording: self,
        })
    }
}

/// Refuses to write over what is no recording.
pub(crate) fn check_file(path: &Path) -> Result<(), Error> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let regular = file.metadata().is_ok_and(|data| data.is_file());
    let mut start = Vec::new();
    let read = (&mut file)
        .take(SYSTEM_START.len() as u64)
        .read_to_end(&mut start);
    let recordings = [&MAGIC[..], SYSTEM_START.as_bytes()];
    let known = read.is_ok()
        && (start.is_empty() || recordings.iter().any(|begin| start.starts_with(begin)));
    if regular && known {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} is there and is no recording; name another file",
        path.display()
    )))
}

impl ReadyToRecord {
    /// Returns the shell command for the same run, once the file is there.
    #[must_use]
    pub fn line(&self) -> String {
        line_of(&self.variables, &self.recording.command)
    }

    /// Runs the program to its end. With `quiet_output` its standard output goes
    /// to standard error. Returns its exit status as a shell gives it, and what
    /// was recorded.
    ///
    /// # Errors
    /// [`Error::Failed`] if there is no room for the file, or the program does
    /// not start.
    pub fn run(self, quiet_output: bool) -> Result<(u8, Recorded), Error> {
        let path = &self.recording.file;
        let failed = |why: String| Error::Failed(format!("{}: {why}", path.display()));
        let words: Vec<_> = self
            .recording
            .command
            .iter()
            .map(|w| w.to_string_lossy())
            .collect();
        let before = (self.recording.round_trip)();
        let (file, header) = make(&self.recording, &shell::line(&words)).map_err(failed)?;
        let program = &self.recording.command[0];
        let mut command = Command::new(program);
        command
            .args(&self.recording.command[1..])
            .envs(self.variables);
        if quiet_output {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        if let Some(ns) = before {
            header.note_round_trip(false, ns);
        }
        let used = (self.recording.cpu_use)();
        let client = || self.recording.client.as_ref().and_then(Client::cpu_time);
        let client_before = client();
        // What was recorded until a signal is still reported.
        signals::listen();
        let mut watch = None;
        let windows = (!self.recording.whole)
            .then(|| file.try_clone().ok())
            .flatten()
            .map(|file| Windows::begin(header, file, ticks));
        let status = match command.spawn().and_then(|child| {
            watch = Some(Watch::begin(child.id(), &self.library));
            signals::wait(child)
        }) {
            Ok(status) => status,
            Err(e) => {
                let _ = fs::remove_file(path);
                return Err(not_started(Path::new(program), &e));
            }
        };
        if let Some(windows) = windows {
            windows.end();
        }
        let client_after = client();
        if let (Some(before), Some(after)) = (used, (self.recording.cpu_use)()) {
            let (program, others) = before.cpus_until(&after);
            let seconds = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
            let had = client_after.unwrap_or_default();
            let had = had.saturating_sub(client_before.unwrap_or_default());
            let client = (had.as_secs_f64() / seconds.max(1e-3)).min(others);
            header.note_cpus_used(program + client, others - client);
        }
        let now = ticks(header);
        if now > header.deadline {
            header.stop(header.deadline, Stopped::Deadline);
        }
        header.stop(now, Stopped::Ended);
        if let Some(ns) = (self.recording.round_trip)() {
            header.note_round_trip(true, ns);
        }
        // A file that keeps its unused room is a recording all the same.
        let _ = file.set_len(close(header));
        let lives_on = match &still_run(path)[..] {
            [] => None,
            [one] => Some(format!(
                "process {one} of the program still runs, and what it does from here on is not \
                 in the recording; keep it in the foreground to record it"
            )),
            some => Some(format!(
                "processes {} of the program still run, and what they do from here on is not in \
                 the recording; keep them in the foreground to record them",
                some.join(", ")
            )),
        };
        let mut notes: Vec<_> = lives_on.into_iter().collect();
        if self.recording.client.is_some() && client_after.is_none() {
            notes.push(
                "the client did not run when the program ended, so its CPU time counts as others'"
                    .into(),
            );
        }
        let without = watch.map(Watch::end).unwrap_or_default();
        let why = not_loaded::why(program).or((!without.is_empty()).then(|| without.join(", ")));
        if !without.is_empty() {
            notes.push(format!(
                "a part of the program loaded no recorder: {}; 'locklab record --system' records \
                 all of it",
                without.join(", ")
            ));
        }
        notes.extend(ended_by_a_filter(status));
        let recorded = Recorded::read(path)?.with_why_empty(why).with_notes(notes);
        Ok((exit_number(status), recorded))
    }
}

/// Returns the processes that still have the file mapped, by number and name: parts of
/// the program that live on.
fn still_run(file: &Path) -> Vec<String> {
    let Ok(file) = file.canonicalize() else {
        return Vec::new();
    };
    let file = file.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lives = |entry: fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let maps = fs::read_to_string(entry.path().join("maps")).ok()?;
        let mapped = number != std::process::id() && maps.lines().any(|l| l.ends_with(&file));
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        mapped.then(|| format!("{number} ({})", name.trim_end()))
    };
    processes.filter_map(lives).collect()
}

fn ticks(header: &Header) -> u64 {
    match header.clock {
        1 => nanoseconds(),
        _ => counter(),
    }
}

/// Makes the file, with its header mapped.
fn make(recording: &Recording, command: &str) -> Result<(File, &'static Header), String> {
    let blocks = room(recording.megabytes);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&recording.file)
        .map_err(|e| format!("cannot be written: {e}"))?;
    posix_fallocate(&file, 0, file_bytes(blocks).cast_signed()).map_err(|errno| {
        let _ = fs::remove_file(&recording.file);
        match errno {
            Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => format!(
                "there is no room for {} MB, which a recording may take; --megabytes sets less",
                recording.megabytes
            ),
            errno => format!("cannot be written: {errno}"),
        }
    })?;
    let (nanoseconds_per_tick, clock) = match has_counter() {
        true => (nanoseconds_per_tick(), 0),
        false => (1.0, 1),
    };
    let machine = Environment::read().name();
    let mut header = Header::new(nanoseconds_per_tick, 0, blocks, &machine, command);
    header.clock = clock;
    if let Ok(folder) = std::env::current_dir() {
        header.note_folder(&folder.to_string_lossy());
    }
    header.began = ticks(&header);
    if let Some(seconds) = recording.seconds {
        header.deadline = header.began + (seconds * 1e9 / nanoseconds_per_tick) as u64;
    }
    file.write_all(header.bytes())
        .map_err(|e| format!("cannot be written: {e}"))?;
    let bytes = NonZeroUsize::new(FIRST).expect("a header is not empty");
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping, of a file that has this size.
    let header = unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, &file, 0) }
        .map_err(|errno| format!("cannot be mapped: {errno}"))?;
    // A fork of ours, which a command is until it has memory of its own, is no part of the program
    // (`still_run`). A system that cannot do this is only less exact.
    // SAFETY: the mapping above, which nothing of ours uses in a fork.
    let _ = unsafe { madvise(header, FIRST, MmapAdvise::MADV_DONTFORK) };
    let header: NonNull<Header> = header.cast();
    // SAFETY: it was just written, is never unmapped, and changes by atomics.
    Ok((file, unsafe { header.as_ref() }))
}

/// Returns the nanoseconds in a tick of the processor's counter, measured for 10 ms.
fn nanoseconds_per_tick() -> f64 {
    let (from, began) = (counter(), nanoseconds());
    let mut now = began;
    while now - began < 10_000_000 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        now = nanoseconds();
    }
    (now - began) as f64 / counter().saturating_sub(from).max(1) as f64
}
