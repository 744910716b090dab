//! The one way in which a subject's program is started: on its CPUs, with its
//! lock, build and environment, counted, logged and limited in time.
//!
//! It ensures that every workload treats a subject alike and counts the same
//! processes. It must never read a figure from an output.

use crate::completed::{Completed, modelled};
use crate::counters::{Counters, Counting, Filter};
use crate::fault::Fault;
use crate::icache::Model;
use crate::output::tail;
use crate::subject::Subject;
use locklab_harness::experiment::Values;
use locklab_host::error::Error;
use locklab_host::process::{Launch, Running, find};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Starts programs.
#[derive(Debug)]
pub struct Launcher {
    /// CPUs that this process may use, best first.
    pub allowed: Vec<usize>,
    /// CPUs that the user asked for; empty if none.
    pub cpus: Vec<usize>,
    /// Time limit of one run.
    pub limit: Duration,
    /// Set by Ctrl-C.
    pub interrupt: Arc<AtomicBool>,
    /// Holds what the kernel and the hardware count of every run.
    pub counters: Counters,
    /// The i-cache model under which subjects run, if they do.
    pub model: Option<Model>,
    /// Says which misses are counted in this run.
    pub filter: Filter,
    /// Seed of all random choices of a workload in this run: the same for both
    /// sides of a pair, and different for every pair.
    pub seed: u64,
    scratch: tempfile::TempDir,
    logs: PathBuf,
    log: String,
}

/// A subject's server.
#[derive(Debug)]
pub struct Server {
    /// The process, whose children are killed with it.
    pub running: Running,
    counting: Option<Counting>,
    modelled: bool,
    log: PathBuf,
}

impl Launcher {
    /// Returns a launcher for programs that may use the CPUs `allowed` and end within
    /// `limit`; nothing is pinned or counted, and logs are removed with the
    /// launcher.
    ///
    /// # Errors
    /// If no temporary folder can be made.
    pub fn new(
        allowed: Vec<usize>,
        limit: Duration,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let scratch = tempfile::Builder::new()
            .prefix("locklab-")
            .tempdir()
            .map_err(|e| {
                Error::Failed(format!(
                    "cannot make a temporary folder: {e}; set TMPDIR to another"
                ))
            })?;
        let logs = scratch.path().join("logs");
        let mut launcher = Self {
            allowed,
            cpus: Vec::new(),
            limit,
            interrupt,
            counters: Counters::none(),
            model: None,
            filter: Filter::User,
            seed: 1,
            scratch,
            logs: PathBuf::new(),
            log: "run".into(),
        };
        launcher.keep_logs(logs)?;
        Ok(launcher)
    }

    /// Keeps the logs of runs in this folder from now on.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn keep_logs(&mut self, folder: PathBuf) -> Result<(), Error> {
        std::fs::create_dir_all(&folder).map_err(|e| {
            Error::Failed(format!(
                "cannot make the folder of logs {}: {e}; give another with --set logs=DIR",
                folder.display()
            ))
        })?;
        self.logs = folder;
        Ok(())
    }

    /// Returns the folder of the logs.
    #[must_use]
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// Returns a folder that is removed with the launcher.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Makes an empty folder below it.
    ///
    /// # Errors
    /// [`Fault::Unrunnable`] if it cannot be made.
    pub fn fresh(&self, name: &str) -> Result<PathBuf, Fault> {
        let folder = self.scratch().join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| unusable(&folder, &e))?;
        }
        std::fs::create_dir_all(&folder).map_err(|e| unusable(&folder, &e))?;
        Ok(folder)
    }

    /// Names the logs of the run that begins, its seed, and which misses are
    /// counted in it.
    pub fn begin(&mut self, log: &str, seed: u64, filter: Filter) {
        log.clone_into(&mut self.log);
        self.seed = seed;
        self.filter = filter;
    }

    /// Returns the `n`th CPU to use: of the requested ones, or else of the allowed
    /// ones.
    #[must_use]
    pub fn cpu(&self, n: usize) -> Vec<usize> {
        let from = if self.cpus.is_empty() {
            &self.allowed
        } else {
            &self.cpus
        };
        if from.is_empty() {
            return Vec::new();
        }
        vec![from[n % from.len()]]
    }

    /// Returns the number of CPUs to use.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        let asked = if self.cpus.is_empty() {
            self.allowed.len()
        } else {
            self.cpus.len()
        };
        asked.max(1)
    }

    /// Returns the CPUs, as text for the report.
    #[must_use]
    pub fn cpus_text(&self) -> String {
        if self.cpus.is_empty() {
            format!(
                "not pinned; may use {}",
                locklab_host::topology::ranges(&self.allowed)
            )
        } else {
            format!("pinned to {}", locklab_host::topology::ranges(&self.cpus))
        }
    }

    /// Returns the launch of a subject's program.
    ///
    /// # Errors
    /// [`Fault::Unrunnable`] if there is no such program, or no library for its
    /// lock.
    pub fn launch<A: Into<OsString> + Clone>(
        &self,
        subject: &Subject,
        program: &str,
        arguments: &[A],
        cpus: &[usize],
    ) -> Result<Launch, Fault> {
        let file = find(program, &subject.folders())
            .ok_or_else(|| Fault::Unrunnable(format!("there is no program '{program}'")))?;
        Ok(Launch {
            program: file,
            arguments: arguments.iter().cloned().map(Into::into).collect(),
            environment: subject.environment()?,
            folder: self.scratch().to_path_buf(),
            cpus: cpus.to_vec(),
            fixed: false,
        })
    }

    fn log_path(&mut self, part: &str) -> PathBuf {
        let part = if part.is_empty() {
            String::new()
        } else {
            format!("-{part}")
        };
        // A dot would be taken for a file name extension.
        let name = format!("{}{part}", self.log).replace(['.', '/'], "_");
        self.logs.join(name)
    }

    /// Runs a subject's program from start to end, counted.
    ///
    /// # Errors
    /// [`Fault`] if it did not start, took too long, or was interrupted. Its
    /// exit status is left to [`Completed::check`].
    pub fn run<A: Into<OsString> + Clone>(
        &mut self,
        subject: &Subject,
        program: &str,
        arguments: &[A],
        cpus: &[usize],
    ) -> Result<Completed, Fault> {
        let launch = self.launch(subject, program, arguments, cpus)?;
        self.run_launch(&launch)
    }

    /// Runs a launch that a workload has changed.
    ///
    /// # Errors
    /// The same errors as [`Launcher::run`].
    pub fn run_launch(&mut self, launch: &Launch) -> Result<Completed, Fault> {
        self.serve(launch)?.wait(self.limit, &self.interrupt)
    }

    /// Starts a subject's server, counted.
    ///
    /// # Errors
    /// The same errors as [`Launcher::run`].
    pub fn serve(&mut self, launch: &Launch) -> Result<Server, Fault> {
        let log = self.log_path("");
        let emulated = match &self.model {
            Some(model) => {
                let name = launch.program.file_name().unwrap_or_default();
                let emulated = model.emulated(launch, name, &log, None);
                Some(emulated?)
            }
            None => None,
        };
        let counting = self.counters.open(self.filter)?;
        let launch = emulated.as_ref().unwrap_or(launch);
        Ok(Server {
            running: launch.start(&log)?,
            counting,
            modelled: emulated.is_some(),
            log,
        })
    }

    /// Runs a program that is not a subject, such as a client or a tool: with
    /// no lock, no build, and not counted.
    ///
    /// # Errors
    /// The same errors as [`Launcher::run`], and [`Fault::Failed`] if the tool
    /// fails.
    pub fn tool<A: Into<OsString> + Clone>(
        &mut self,
        program: &str,
        arguments: &[A],
        cpus: &[usize],
    ) -> Result<Completed, Fault> {
        let launch = self.launch(&Subject::default(), program, arguments, cpus)?;
        let log = self.log_path(program.rsplit('/').next().unwrap_or(program));
        let (limit, interrupt) = (self.limit, &self.interrupt);
        // Counters follow what the thread that opened them starts; this is
        // another thread.
        let ended = std::thread::scope(|scope| {
            let run = || launch.run(&log, limit, interrupt);
            match scope.spawn(run).join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let done = Completed {
            ended: ended?,
            out: tail(&log.with_extension("out")),
            err: tail(&log.with_extension("err")),
            counts: Values::new(),
        };
        done.check()?;
        Ok(done)
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    /// [`Fault::Interrupted`] after Ctrl-C.
    pub fn sleep(&self, time: Duration) -> Result<(), Fault> {
        std::thread::sleep(time);
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted);
        }
        Ok(())
    }
}

impl Server {
    /// Waits for the server to end.
    ///
    /// # Errors
    /// [`Fault`] if it took too long, was interrupted, or its counters cannot
    /// be read.
    pub fn wait(self, limit: Duration, interrupt: &AtomicBool) -> Result<Completed, Fault> {
        let ended = self.running.wait(limit, interrupt)?;
        let mut counts = match self.counting {
            Some(counting) => counting.read().map_err(|e| Fault::Counter(e.to_string())),
            None => Ok(Values::new()),
        };
        if self.modelled {
            counts = modelled(&self.log, &ended).map_err(|e| Fault::Failed(e.to_string()));
        }
        Ok(Completed {
            out: tail(&self.log.with_extension("out")),
            err: tail(&self.log.with_extension("err")),
            // If the program failed, that is the fault to report, not an error
            // of its counters.
            counts: match counts {
                Err(e) if ended.failure().is_none() => return Err(e),
                counts => counts.unwrap_or_default(),
            },
            ended,
        })
    }

    /// Returns the end of its standard error so far.
    #[must_use]
    pub fn standard_error(&self) -> String {
        tail(&self.log.with_extension("err"))
    }
}

fn unusable(folder: &Path, e: &std::io::Error) -> Fault {
    Fault::Unrunnable(format!("cannot use {}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(limit: Duration) -> Launcher {
        let never = Arc::new(AtomicBool::new(false));
        Launcher::new(vec![0, 3], limit, never).unwrap()
    }

    fn shell(launcher: &mut Launcher, script: &str) -> Result<Completed, Fault> {
        launcher.run(&Subject::default(), "sh", &["-c", script], &[])
    }

    #[test]
    fn a_run_has_its_output_its_figures_and_its_log() {
        let mut launcher = launcher(Duration::from_secs(60));
        launcher.begin("a.b/c-001-baseline", 7, Filter::User);
        let done = shell(&mut launcher, "echo $LC_ALL; echo why >&2; exit 3").unwrap();
        assert_eq!((done.out.as_str(), done.err.as_str()), ("C\n", "why\n"));
        let failed = Fault::Failed("exit status 3; it said: why".into());
        assert_eq!(done.check(), Err(failed));
        assert!(done.figures()["elapsed"] > 0.0);
        // Neither a dot nor a slash of a title may name another file.
        let log = launcher.logs().join("a_b_c-001-baseline.out");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "C\n");
    }

    #[test]
    fn what_takes_too_long_failed_and_what_is_missing_cannot_run() {
        let mut launcher = launcher(Duration::from_millis(200));
        let Err(Fault::Failed(why)) = shell(&mut launcher, "sleep 1000") else {
            panic!()
        };
        assert!(why.contains("ran longer than 0.2 s"), "{why}");
        let missing = launcher.run(&Subject::default(), "no-such-program", &[""], &[]);
        assert!(matches!(missing, Err(Fault::Unrunnable(_))), "{missing:?}");
        launcher.interrupt.store(true, Ordering::Relaxed);
        let interrupted = shell(&mut launcher, "sleep 1000");
        assert!(
            matches!(interrupted, Err(Fault::Interrupted)),
            "{interrupted:?}"
        );
    }

    #[test]
    fn cpus_are_those_that_were_asked_for_else_the_allowed() {
        let mut launcher = launcher(Duration::from_secs(1));
        assert_eq!((launcher.cpu(1), launcher.cpu_count()), (vec![3], 2));
        assert_eq!(launcher.cpus_text(), "not pinned; may use 0,3");
        launcher.cpus = vec![5];
        assert_eq!((launcher.cpu(1), launcher.cpu_count()), (vec![5], 1));
        assert_eq!(launcher.cpus_text(), "pinned to 5");
    }
}
