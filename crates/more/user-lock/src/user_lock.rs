//! A compiled lock of the user's own, for the matrix, the simulator and the
//! checker.

use crate::compile::{self, Compiled, Unit};
use crate::explain::{PATIENCE, Runner, explain};
use crate::inspect::{self, Facts};
use crate::isolate::{Lost, in_child};
use crate::kernel;
use crate::mutate;
use crate::own_test::{self, Rules};
use crate::simulate::{self, Answer};
use crate::source::Source;
use locklab_host::error::Error;
use locklab_locks::{Fairness, Info};
use locklab_native::subject::Subject;
use locklab_sim::{Foreign, Scenario, SimError, Simulation};
use locklab_verify::{Candidate, Property};
use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A lock that was compiled from a file. Clones share the compiled objects,
/// which are removed with the last.
#[derive(Clone, Debug)]
pub struct UserLock {
    name: String,
    compiled: Arc<Compiled>,
    unit: Arc<(Unit, Option<TempDir>)>,
    patience: Duration,
    dependencies: bool,
}

impl UserLock {
    /// Returns the lock that `name` denotes ([`Source::parse`]), compiled with the
    /// flags `cflags` in addition to Locklab's; `None` if it is a name of the
    /// catalogue.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file does not exist or has no ending of C or
    /// C++, [`Error::Failed`] if there is no compiler, or the file does not
    /// compile.
    pub fn named(name: &str, cflags: &[String]) -> Result<Option<Self>, Error> {
        match Source::parse(name)? {
            Some(source) => Self::from(&source, cflags).map(Some),
            None => Ok(None),
        }
    }

    /// Compiles the lock of a source.
    ///
    /// # Errors
    /// The same errors as [`UserLock::named`].
    pub fn from(source: &Source, cflags: &[String]) -> Result<Self, Error> {
        let name = source.name();
        let (unit, tree) = match source {
            Source::File(path) => {
                let unit = Unit {
                    file: path.clone(),
                    name: name.clone(),
                    flags: cflags.to_vec(),
                };
                (unit, None)
            }
            Source::Kernel(lock) => {
                let (unit, tree) = kernel::unit(lock, cflags)?;
                (unit, Some(tree))
            }
        };
        Ok(Self {
            name,
            compiled: Arc::new(compile::compile(&unit)?),
            unit: Arc::new((unit, tree)),
            patience: PATIENCE,
            dependencies: false,
        })
    }

    /// Returns the same lock, whose code may run for `patience` without an access.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the same lock, for the checker of which address dependencies order, as in
    /// a kernel's lock.
    #[must_use]
    pub fn with_dependencies(self) -> Self {
        Self {
            dependencies: true,
            ..self
        }
    }

    /// Returns the name in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the properties that its file declares.
    pub fn facts(&self) -> &Facts {
        &self.compiled.facts
    }

    /// Simulates it in a child process.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are more threads than the lock has room for,
    /// [`Error::Failed`] if it contains what cannot be simulated or does not
    /// work in this scenario, the scenario does not fit its machine, or the
    /// child cannot be started.
    pub fn simulate(&self, scenario: &Scenario) -> Result<Simulation, Error> {
        self.room_for(scenario.threads)?;
        let facts = self.facts();
        let library = self.compiled.instrumented(&self.unit.0)?;
        match self.in_child(Runner::Cpu, library, || {
            simulate::simulate(library, facts, scenario)
        })? {
            Answer::Well(simulation) => Ok(*simulation),
            Answer::Badly(why) => Err(Error::Failed(format!("{}: {why}", self.name))),
        }
    }

    /// Returns the properties that `verify` checks: those that every lock promises, and
    /// those that its file declares (first come, first served; `try_lock`).
    /// Threads have numbers below 4, and `LOCKLAB_CHECKER` is defined when the
    /// file is compiled.
    ///
    /// # Errors
    /// The same errors as [`UserLock::named`], if it does not compile with
    /// `LOCKLAB_CHECKER` defined.
    pub fn promises(&self) -> Result<Vec<Property>, Error> {
        let checked = compile::compile_for_checker(&self.unit.0)?;
        Ok(own_test::promises(
            checked.library,
            checked.facts,
            self.rules(),
            (checked.folder, self.unit.clone()),
        ))
    }

    fn rules(&self) -> Rules {
        Rules {
            // A kernel's plain accesses are ordered by its own memory model.
            races: self.unit.1.is_none() && !self.facts().plain_is_relaxed,
            // Those of a kernel are in the headers around it.
            dependencies: self.dependencies && self.unit.1.is_none(),
        }
    }

    /// Returns the file as a program whose outcomes are wanted: each of so many threads calls
    /// one of `lab_lock`, `lab_unlock`, `lab_read_lock` and `lab_read_unlock`, and at the
    /// end `lab_is_locked` says how it has ended.
    ///
    /// # Errors
    /// As [`UserLock::promises`].
    pub fn litmus(&self, threads: usize) -> Result<Property, Error> {
        let checked = compile::compile_for_checker(&self.unit.0)?;
        let kept = (checked.folder, self.unit.clone());
        let rules = self.rules();
        let litmus = own_test::litmus(checked.library, checked.facts, rules, threads, kept);
        Ok(litmus)
    }

    /// Returns the assumptions of the checker about this lock's memory orderings beyond
    /// what its source says; empty if nothing.
    pub fn assumptions(&self) -> &'static str {
        let strict = |flag: &String| flag == "-DLOCKLAB_STRICT";
        match self.unit.1 {
            None if self.dependencies => kernel::DEPENDENCIES_OF_A_FILE,
            None if self.facts().plain_is_relaxed => {
                "Plain accesses of this file count as relaxed ones (LOCKLAB_PLAIN_IS_RELAXED), on \
                 which these verdicts hang."
            }
            None => "",
            Some(_) if self.unit.0.flags.iter().any(strict) => kernel::STRICT,
            Some(_) => kernel::WITH_DEPENDENCIES,
        }
    }

    /// Returns the lock in the form that the checker takes.
    ///
    /// # Errors
    /// The same errors as [`UserLock::promises`].
    pub fn candidate(&self) -> Result<Candidate, Error> {
        Ok(Candidate {
            name: self.name.clone(),
            properties: self.promises()?,
            drawn: false,
            mutants: match self.unit.1 {
                None => mutate::mutants(&self.unit.0, self.rules()),
                // Its text is a wrapper of ours around the kernel's.
                Some(_) => Vec::new(),
            },
        })
    }

    /// Returns the properties that are known without running it, under this name.
    pub fn subject(&self, name: &str) -> Subject {
        let facts = self.facts();
        Subject {
            info: Info {
                // It lives as long as the process, which registers only few
                // names.
                name: name.to_owned().leak(),
                summary: "your own",
                paper: "",
                fairness: if facts.fifo {
                    Fairness::Fifo
                } else {
                    Fairness::Unfair
                },
                try_lock: facts.try_lock,
                readers_share: facts.readers_share,
                max_cpus: facts.max_cpus.unwrap_or(locklab_locks::MAX_CPUS),
                bytes_per_waiter: if facts.ctx_bytes > 1 {
                    facts.ctx_bytes
                } else {
                    0
                },
                ..inspect::INFO
            },
            bytes: facts.lock_bytes,
            context_free: facts.ctx_bytes <= 1,
            peer: false,
            measured: true,
        }
    }

    /// Makes every scenario find it under `name`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it contains what cannot be simulated.
    pub fn register(&self, name: &str) -> Result<(), Error> {
        self.compiled.instrumented(&self.unit.0)?;
        locklab_sim::register(name, Arc::new(self.clone()));
        Ok(())
    }

    /// Returns the object for this machine's own CPUs.
    pub(crate) fn native_object(&self) -> &Path {
        &self.compiled.native
    }

    /// Runs `work` in a child process; the code in `library` runs on `runner`.
    pub(crate) fn in_child<T: Serialize + DeserializeOwned>(
        &self,
        runner: Runner,
        library: &Path,
        work: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        in_child(self.patience, work).map_err(|lost| self.explain(lost, runner, library))
    }

    /// Checks that this many CPUs may use it.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are more than `LOCKLAB_CPUS` allows.
    pub fn room_for(&self, threads: usize) -> Result<(), Error> {
        match self.facts().max_cpus {
            Some(most) if threads > most => Err(Error::Usage(format!(
                "{} has room for {most} CPUs (LOCKLAB_CPUS), and {threads} threads were asked \
                 for; ask for fewer or make room",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// Describes how a child ended, in one sentence with the line of the file.
    pub(crate) fn explain(&self, lost: Lost, runner: Runner, library: &Path) -> Error {
        explain(&self.name, self.patience, lost, runner, library)
    }
}

impl Foreign for UserLock {
    fn simulate(&self, scenario: &Scenario) -> Result<Simulation, SimError> {
        Ok(Self::simulate(self, scenario)?)
    }
}
