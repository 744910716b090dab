//! Merges the arguments of `locklab compare` into an experiment file: they
//! take precedence.

use super::CompareArgs;
use crate::list::Lengths;
use locklab_host::libraries::preload_library;
use locklab_programs::subject::{PTHREAD, PTHREAD_INTERPOSED};
use locklab_programs::workloads::{OutputMetric, WorkloadSpec};
use locklab_programs::{File, Inline, Subject};

impl CompareArgs {
    /// The experiment file, or an empty one, with the options applied.
    ///
    /// # Errors
    /// If the file cannot be read or parsed, or an option is malformed or
    /// contradicts another; the message names it.
    pub(super) fn settings(&self) -> Result<File, String> {
        let mut file = match &self.file {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        self.write_subjects(&mut file)?;
        self.write_workloads(&mut file)?;
        let list = |list: &Lengths| list.0.iter().map(|n| usize::try_from(*n)).collect();
        if let Some(pin) = &self.pin {
            let cpus: Result<_, _> = list(pin);
            file.pin = Some(cpus.map_err(|_| "--pin names a CPU that no machine has".to_owned())?);
        }
        file.warm_up = self.warm_up.or(file.warm_up);
        file.time_limit = self.time_limit.or(file.time_limit);
        file.counters = self.counters.or(file.counters);
        Ok(file)
    }

    fn write_subjects(&self, file: &mut File) -> Result<(), String> {
        let baseline = &mut file.baseline;
        write_over(&mut baseline.command, &self.baseline);
        write_over(&mut baseline.lock, &self.baseline_lock);
        write_over(&mut baseline.build, &self.baseline_build);
        variables(baseline, &self.baseline_env)?;
        let experiment = &mut file.experiment;
        write_over(&mut experiment.command, &self.experiment);
        write_over(&mut experiment.lock, &self.experiment_lock);
        write_over(&mut experiment.build, &self.experiment_build);
        variables(experiment, &self.experiment_env)?;
        if let Some(inline) = &self.inline {
            let [never, always] = Inline::parse_pair(inline)?;
            (file.baseline.inline, file.experiment.inline) = (Some(never), Some(always));
        }
        if self.comparing.aa {
            file.experiment = file.baseline.clone();
        }
        check_lock(&file.baseline)?;
        check_lock(&file.experiment)
    }

    fn write_workloads(&self, file: &mut File) -> Result<(), String> {
        if !self.workload.is_empty() {
            let workloads = self.workload.iter().map(|name| WorkloadSpec::parse(name));
            file.workload = workloads.collect::<Result<_, _>>()?;
        }
        let command = (!self.command.is_empty())
            .then(|| shlex::try_join(self.command.iter().map(String::as_str)))
            .transpose()
            .map_err(|e| format!("the command after -- cannot be written as a line: {e}"))?;
        let has_command = command.is_some() || file.baseline.command.is_some();
        if file.workload.is_empty() && has_command {
            file.workload.push(WorkloadSpec {
                name: "command".into(),
                ..WorkloadSpec::default()
            });
        }
        for workload in &mut file.workload {
            write_over(&mut workload.scale, &self.scale);
            if workload.name == "command" {
                write_over(&mut workload.command, &command);
                for metric in &self.metric {
                    workload.metric.push(OutputMetric::parse(metric)?);
                }
            }
        }
        let builds_itself = |workload: &WorkloadSpec| workload.name == "call-sites";
        if self.inline.is_some() && self.build.is_none() && !file.workload.iter().all(builds_itself)
        {
            return Err(
                "--inline is of call-sites, which builds its own program; for another give \
                 --build CMD, which builds it twice"
                    .into(),
            );
        }
        Ok(())
    }
}

fn write_over<T: Clone>(setting: &mut Option<T>, option: &Option<T>) {
    if option.is_some() {
        setting.clone_from(option);
    }
}

fn variables(subject: &mut Subject, given: &[String]) -> Result<(), String> {
    for one in given {
        let (name, value) = one
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("'{one}' sets no variable; write NAME=VALUE"))?;
        subject.env.insert(name.into(), value.into());
    }
    Ok(())
}

/// Checks that there is such a lock, and the interposer that puts it under
/// mutexes.
fn check_lock(subject: &Subject) -> Result<(), String> {
    let Some(lock) = subject.lock.as_deref().filter(|lock| *lock != PTHREAD) else {
        return Ok(());
    };
    if lock != PTHREAD_INTERPOSED && locklab_native::subject::find(lock)?.peer {
        return Err(format!(
            "'{lock}' cannot be put under pthread mutexes; 'locklab locks' lists those that can"
        ));
    }
    preload_library().map(|_| ())
}
