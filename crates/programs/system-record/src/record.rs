//! Records a target by the kernel's events, into a file.

use crate::acquire::{Known, events};
use crate::collect::{Collected, Until, Why, collect};
use crate::cost::of_a_record;
use crate::kinds::EventKind;
use crate::open::{Open, Scope, cpus};
use crate::raw;
use crate::recording::{Head, Source, Stopped, is_start};
use crate::report::SystemRecorded;
use crate::start::Waiting;
use crate::target::{Target, cgroup, family, processes, threads};
use locklab_host::clock;
use locklab_host::cpu_use::CpuUse;
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use locklab_host::process::not_started;
use locklab_preload_run::{exit_number, signals};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Describes what to record, and into which file.
#[derive(Clone, Debug)]
pub struct SystemRecording {
    /// The file for the recording.
    pub file: PathBuf,
    /// A program's waits, or those for the kernel's locks.
    pub source: Source,
    /// Says whose waits are recorded.
    pub target: Target,
    /// The time for which is recorded; [`None`] until a program ends.
    pub seconds: Option<f64>,
    /// The most room that the kernel's records may take meanwhile, in units of 2^20 bytes.
    pub megabytes: u32,
    /// Says whether all of the time is recorded, however much that slows the program, and
    /// not windows of it. The waits for the kernel's own locks always are.
    pub whole: bool,
}

/// A recording that can begin.
#[derive(Debug)]
pub struct ReadyForSystem(SystemRecording);

/// Seconds for which a process that runs is recorded, where nobody says it.
const SECONDS: f64 = 5.0;

impl SystemRecording {
    /// Checks what can be checked before anything runs.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file is there and no recording, or the time or the room is
    /// none, or there is no such target.
    pub fn ready(self) -> Result<ReadyForSystem, Error> {
        if matches!(&self.target, Target::Command(words) if words.is_empty()) {
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
        Ok(ReadyForSystem(self))
    }
}

/// Refuses to write over what is no recording of this kind.
fn check_file(path: &Path) -> Result<(), Error> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let mut start = Vec::new();
    let regular = file.metadata().is_ok_and(|data| data.is_file());
    let read = file.by_ref().take(64).read_to_end(&mut start);
    match regular
        && read.is_ok()
        && (start.is_empty() || is_start(&start) || start.starts_with(b"locktrac"))
    {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "{} is there and is no recording; name another file",
            path.display()
        ))),
    }
}

/// Names what runs while it is recorded.
enum Running {
    Child(Child),
    Other(u32),
    Cgroup(PathBuf),
}

impl Running {
    /// Returns what says which processes are recorded, at any time.
    fn processes(&self) -> impl Fn() -> Vec<u32> + Sync + use<> {
        let first = match self {
            Self::Child(child) => Ok(child.id()),
            Self::Other(process) => Ok(*process),
            Self::Cgroup(path) => Err(path.clone()),
        };
        move || match &first {
            Ok(process) => family(*process).unwrap_or_default(),
            Err(path) => processes(path),
        }
    }
}

impl ReadyForSystem {
    /// Returns what would be done, in a line.
    #[must_use]
    pub fn line(&self) -> String {
        let recording = &self.0;
        let what = match recording.source {
            Source::System => "futex calls, context switches and wake-ups",
            Source::Kernel => "waits for the kernel's locks",
        };
        format!(
            "would record the {what} of '{}' into {}",
            recording.target.name(),
            recording.file.display()
        )
    }

    /// Runs a program and records it. With `quiet_output` the program's standard output
    /// goes to standard error. Returns the program's exit status as a shell gives it (0
    /// for what runs on), and what was recorded.
    ///
    /// # Errors
    /// [`Error::Failed`] if the kernel does not permit it, the target does not start or is
    /// not there, or the file cannot be written.
    pub fn run(self, quiet_output: bool) -> Result<(u8, SystemRecorded), Error> {
        let path = self.0.file.clone();
        let was_there = path.exists();
        // What cannot be written is found before the program starts.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|e| Error::Failed(format!("{}: {e}", path.display())))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            Error::Failed(format!(
                "{}: another recording is written there now; name another file",
                path.display()
            ))
        })?;
        let recorded = self.record(&file, quiet_output);
        if recorded.is_err() && !was_there {
            // An empty file is in nobody's way.
            let _ = fs::remove_file(&path);
        }
        recorded
    }

    fn record(self, file: &File, quiet_output: bool) -> Result<(u8, SystemRecorded), Error> {
        let recording = self.0;
        let failed =
            |what: &Path, why: std::io::Error| Error::Failed(format!("{}: {why}", what.display()));
        let name = recording.target.name();
        let kinds = match recording.source {
            Source::System => &EventKind::SYSTEM[..],
            Source::Kernel => &EventKind::KERNEL[..],
        };
        let mut before = Known::default();
        let cost = || match recording.source {
            Source::System => of_a_record(),
            Source::Kernel => None,
        };
        let (from, record_ns);
        // It lies beside the file, where the user expects room; it has no name.
        let folder = std::path::absolute(&recording.file);
        let folder = folder.as_deref().ok().and_then(Path::parent);
        let mut spool = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|e| failed(&recording.file, e))?;
        let (mut open, running) = match &recording.target {
            Target::Command(words) => {
                signals::listen();
                let program = Path::new(&words[0]);
                let start = |e| not_started(program, &e);
                let waiting = Waiting::fork(words, quiet_output).map_err(start)?;
                let scope = match recording.source {
                    Source::System => Scope::Starting(waiting.process),
                    Source::Kernel => Scope::Machine,
                };
                let mut open = match Open::new(&scope, kinds, &name) {
                    Ok(open) => open,
                    Err(e) => {
                        waiting.cancel();
                        return Err(e);
                    }
                };
                record_ns = cost();
                from = clock::now();
                if recording.source == Source::Kernel {
                    open.enable().map_err(start)?;
                }
                let child = waiting.begin().map_err(start)?;
                (open, Running::Child(child))
            }
            Target::Process(process) => {
                let family = family(*process)?;
                let tasks = family
                    .iter()
                    .flat_map(|one| threads(*one).unwrap_or_default());
                let tasks: Vec<u32> = tasks.collect();
                before = Known::of(&family);
                let scope = match recording.source {
                    Source::System => Scope::Threads(&tasks),
                    Source::Kernel => Scope::Machine,
                };
                let mut open = Open::new(&scope, kinds, &name)?;
                record_ns = cost();
                from = clock::now();
                open.enable().map_err(|e| failed(&recording.file, e))?;
                (open, Running::Other(*process))
            }
            Target::Cgroup(path) => {
                let (path, folder) = cgroup(path)?;
                before = Known::of(&processes(&path));
                let mut open = Open::new(&Scope::Cgroup(&folder), kinds, &name)?;
                record_ns = cost();
                from = clock::now();
                open.enable().map_err(|e| failed(&recording.file, e))?;
                (open, Running::Cgroup(path))
            }
        };
        let seconds = match running {
            Running::Child(_) => recording.seconds,
            _ => Some(recording.seconds.unwrap_or(SECONDS)),
        };
        let processes = running.processes();
        let used = CpuUse::now();
        let until = Until {
            ended: &AtomicBool::new(false),
            deadline: seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds)),
            bytes: u64::from(recording.megabytes) << 20,
            in_windows: record_ns.filter(|_| !recording.whole),
            processes: &processes,
        };
        let (collected, status, to) = std::thread::scope(|scope| {
            let collecting = scope.spawn(|| {
                let why = collect(&mut open, &spool, &until);
                (why, clock::now())
            });
            let status = match running {
                Running::Child(child) => signals::wait(child).map_or(1, exit_number),
                Running::Other(process) => {
                    watch(process, || collecting.is_finished());
                    0
                }
                Running::Cgroup(_) => {
                    while !collecting.is_finished() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    0
                }
            };
            let now = clock::now();
            // Release pairs with the Acquire of who collects.
            until.ended.store(true, Ordering::Release);
            let (why, then) = collecting
                .join()
                .unwrap_or_else(|_| (Err(std::io::Error::other("it ended early")), now));
            (why, status, then.min(now))
        });
        let after = CpuUse::now();
        // What was recorded until the disk was full is kept.
        let Collected { why, gaps } = collected.unwrap_or(Collected {
            why: Why::Full,
            gaps: Vec::new(),
        });
        let mut bytes = Vec::new();
        spool
            .rewind()
            .and_then(|()| spool.read_to_end(&mut bytes))
            .map_err(|e| failed(&recording.file, e))?;
        let records = raw::read(&bytes, &open.kinds);
        drop(bytes);
        let machine = Environment::read().name();
        let mut head = Head::new(recording.source, &name, &machine, cpus().len());
        head.length = to.saturating_sub(from);
        head.record_ns = record_ns;
        // Of what it did not start the time is not known, so neither is that of others.
        if let (Target::Command(_), Some(before), Some(after)) = (&recording.target, used, after) {
            head.others = Some(before.cpus_until(&after).1);
        }
        head.stopped = match why {
            Why::Told => Stopped::Program,
            Why::Deadline => Stopped::Seconds,
            Why::Full => Stopped::Full,
        };
        let events = events(records, before, head, (from, gaps));
        file.set_len(0)
            .and_then(|()| events.write(file))
            .map_err(|e| failed(&recording.file, e))?;
        Ok((status, SystemRecorded::of(events, &recording.file)))
    }
}

/// Waits until a process ends, or the recording does.
fn watch(process: u32, over: impl Fn() -> bool) {
    let state = format!("/proc/{process}/stat");
    let runs = || {
        let text = fs::read_to_string(&state).unwrap_or_default();
        // Behind the name, which may have spaces and brackets.
        text.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    while !over() && runs() {
        std::thread::sleep(Duration::from_millis(20));
    }
}
