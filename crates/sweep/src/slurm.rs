//! Slurm's own commands: they submit the open chunks of a sweep as one job array,
//! and list its jobs.
//!
//! No process of Locklab stays running: Slurm starts the tasks, and their state is
//! in the folder and in Slurm's queue. Jobs are found by their name, so nothing
//! is lost if the submitting command is killed. This module must never cancel a
//! job.

use crate::hardware::Fleet;
use crate::state;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A task gets SIGUSR1 this many seconds before its time limit.
const WARNING: u32 = 30;

/// Options that are passed to `sbatch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `--partition`.
    pub partition: Option<String>,
    /// `--account`.
    pub account: Option<String>,
    /// `--time`.
    pub time: Option<String>,
    /// `--constraint`.
    pub constraint: Option<String>,
    /// `--requeue`.
    pub requeue: bool,
}

impl Options {
    /// The options as arguments of `sbatch`.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in [
            ("partition", &self.partition),
            ("account", &self.account),
            ("time", &self.time),
            ("constraint", &self.constraint),
        ] {
            if let Some(value) = value {
                words.push(format!("--{name}={value}"));
            }
        }
        if self.requeue {
            words.push("--requeue".into());
        }
        words
    }
}

/// A job that was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its job number.
    pub id: String,
    /// Name that the job was submitted with.
    pub name: String,
    /// Its tasks in Slurm's notation, as `0-3,7`; or the feature of its node.
    pub tasks: String,
}

/// Tasks of a sweep that are in Slurm's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Tasks that wait for a node.
    pub pending: BTreeSet<usize>,
    /// Tasks that run.
    pub running: BTreeSet<usize>,
}

impl Queued {
    /// Whether no task waits or runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty()
    }
}

/// The name of all jobs of the sweep in a folder.
#[must_use]
pub fn job_name(folder: &Path) -> String {
    let hash = Sha256::digest(folder.to_string_lossy().as_bytes());
    let short: String = hash.iter().take(6).map(|b| format!("{b:02x}")).collect();
    format!("locklab-sweep-{short}")
}

/// Numbers in Slurm's notation, as `0-3,7`.
#[must_use]
pub fn list(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for n in numbers {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == *n => *end = *n,
            _ => parts.push((*n, *n)),
        }
    }
    let part = |(from, to): &(usize, usize)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The arguments of `sbatch` that all jobs of a sweep have in common.
fn job(folder: &Path, name: &str, log: &str) -> Vec<String> {
    let path = folder.display();
    let mut words: Vec<String> = ["sbatch", "--parsable", "--ntasks=1", "--open-mode=append"]
        .map(str::to_owned)
        .into();
    words.extend([
        format!("--job-name={name}"),
        format!("--output={path}/logs/{log}.log"),
        format!("--chdir={path}"),
        format!("--signal=B:USR1@{WARNING}"),
    ]);
    words
}

/// Tasks of a sweep that are submitted as one job array.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// The folder of the sweep.
    pub folder: &'a Path,
    /// What the tasks do.
    pub work: Work,
    /// Their numbers.
    pub tasks: &'a [usize],
    /// The job that must have ended before they start.
    pub after: Option<&'a str>,
}

/// What the tasks of a job array do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A chunk of a sweep of models, by one thread.
    Chunk,
    /// The build of a kernel.
    Build,
    /// A layout of two kernels, whose guests run at the same time.
    Layout,
}

impl Work {
    /// Name of the jobs of a sweep that do this.
    fn job_name(self, folder: &Path) -> String {
        match self {
            Self::Chunk | Self::Layout => job_name(folder),
            Self::Build => format!("{}-builds", job_name(folder)),
        }
    }

    /// Its name in the part of a sweep that a task carries out.
    fn word(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Build => "build",
            Self::Layout => "layout",
        }
    }
}

/// The command that submits these tasks as one job array.
#[must_use]
pub fn submission(array: &Array<'_>, options: &Options) -> Vec<String> {
    let (path, work) = (array.folder, array.work);
    let (log, cpus) = match work {
        Work::Chunk => ("%4a", 1),
        Work::Layout => ("%4a", 2),
        Work::Build => ("build-%a", 2),
    };
    let mut words = job(path, &work.job_name(path), log);
    words.extend([
        format!("--cpus-per-task={cpus}"),
        format!("--array={}", list(array.tasks)),
    ]);
    // A build that failed says so again in each layout, which would wait for
    // ever if it had to succeed.
    words.extend(
        array
            .after
            .map(|job| format!("--dependency=afterany:{job}")),
    );
    words.extend(options.words());
    words.extend([format!("{}/task.sh", path.display()), work.word().into()]);
    words
}

/// The command that submits the task of a feature: one exclusive node, which is
/// the node of the earlier task if there was one.
#[must_use]
pub fn node_submission(fleet: &Fleet, options: &Options, feature: &str) -> Vec<String> {
    let path = fleet.path();
    let name = format!("{}-{feature}", job_name(path));
    let mut words = job(path, &name, feature);
    words.extend(["--nodes=1".into(), "--exclusive".into()]);
    words.extend(options.words());
    words.push(format!("--constraint={feature}"));
    if let Some(status) = fleet.status(feature) {
        words.push(format!("--nodelist={}", status.node));
    }
    let script = format!("{}/task.sh", path.display());
    words.extend([script, "node".into(), feature.to_owned()]);
    words
}

/// Submits tasks as one job array, and records the job in the folder.
///
/// # Errors
/// There is no `sbatch`, it refused the job (nothing was submitted then), or the
/// folder cannot be written.
pub fn submit(array: &Array<'_>, options: &Options) -> Result<Job, String> {
    write_script(array.folder, options)?;
    let words = submission(array, options);
    let name = array.work.job_name(array.folder);
    submitted(array.folder, &words, name, list(array.tasks))
}

/// Submits the task of a feature's node, and records the job in the folder.
///
/// # Errors
/// Those of [`submit`].
pub fn submit_node(fleet: &Fleet, options: &Options, feature: &str) -> Result<Job, String> {
    write_script(fleet.path(), options)?;
    let words = node_submission(fleet, options, feature);
    let name = format!("{}-{feature}", job_name(fleet.path()));
    submitted(fleet.path(), &words, name, feature.to_owned())
}

fn submitted(folder: &Path, words: &[String], name: String, tasks: String) -> Result<Job, String> {
    let output = run(words)?;
    // With --parsable, sbatch prints the job number, then the name of the cluster
    // if there are several.
    let id = output.trim().split(';').next().unwrap_or_default();
    let job = Job {
        id: id.to_owned(),
        name,
        tasks,
    };
    let mut jobs = jobs(folder);
    jobs.push(job.clone());
    state::write_json(&folder.join("jobs.json"), &jobs)?;
    Ok(job)
}

/// The jobs that were submitted so far. An unreadable list counts as empty,
/// because Slurm also finds the jobs by their name.
fn jobs(folder: &Path) -> Vec<Job> {
    state::read_json(&folder.join("jobs.json")).unwrap_or_default()
}

/// Writes the script of every task. Its arguments are what the task does, and
/// which, if that is not the task's number in its array.
fn write_script(folder: &Path, options: &Options) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find locklab: {e}"))?;
    let requeue = if options.requeue { " --requeue" } else { "" };
    let text = format!(
        "#!/bin/sh\n# Written by locklab: one task of the sweep.\n\
         exec {} sweep --task {} --part \"$1:${{2:-$SLURM_ARRAY_TASK_ID}}\"{requeue}\n",
        quoted(&program.to_string_lossy()),
        quoted(&folder.to_string_lossy()),
    );
    let path = folder.join("task.sh");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, executable))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Tasks of the sweep in a folder that are in Slurm's queue.
///
/// # Errors
/// There is no `squeue`, or Slurm's controller does not answer.
pub fn queued(folder: &Path) -> Result<Queued, String> {
    let output = run(&[
        "squeue".into(),
        "--noheader".into(),
        "--array".into(),
        format!("--name={}", job_name(folder)),
        "--format=%K %T".into(),
    ])?;
    Ok(read_queue(&output))
}

/// Features whose tasks are in Slurm's queue.
///
/// # Errors
/// Those of [`queued`].
pub fn queued_features(fleet: &Fleet) -> Result<Vec<String>, String> {
    let name = job_name(fleet.path());
    let of = |feature: &String| format!("{name}-{feature}");
    let names: Vec<String> = fleet.features.iter().map(of).collect();
    let output = run(&[
        "squeue".into(),
        "--noheader".into(),
        format!("--name={}", names.join(",")),
        "--format=%j".into(),
    ])?;
    let is_queued = |feature: &&String| output.lines().any(|line| line.trim() == of(feature));
    Ok(fleet.features.iter().filter(is_queued).cloned().collect())
}

fn read_queue(output: &str) -> Queued {
    let mut queued = Queued::default();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let (Some(task), Some(state)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(task) = task.parse() else { continue };
        match state {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => {
                queued.pending.insert(task);
            }
            _ => {
                queued.running.insert(task);
            }
        }
    }
    queued
}

/// The state in Slurm of the last task of a chunk or layout, with reason and exit code;
/// `None` if Slurm has dropped its record.
#[must_use]
pub fn account(folder: &Path, chunk: usize) -> Option<String> {
    let (jobs, name) = (jobs(folder), job_name(folder));
    jobs.iter()
        .rev()
        .filter(|job| job.name == name)
        .find_map(|job| account_of(&format!("{}_{chunk}", job.id)))
}

/// The same for the last job of a feature.
#[must_use]
pub fn node_account(fleet: &Fleet, feature: &str) -> Option<String> {
    let jobs = jobs(fleet.path());
    let job = jobs.iter().rev().find(|job| job.tasks == feature)?;
    account_of(&job.id)
}

fn account_of(job: &str) -> Option<String> {
    let words = ["scontrol", "--oneliner", "show", "job", job];
    read_account(&run(&words.map(str::to_owned)).ok()?)
}

fn read_account(output: &str) -> Option<String> {
    let field = |name: &str| {
        let words = output.split_whitespace();
        let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next()
    };
    let state = field("JobState")?;
    let mut text = state.to_owned();
    if let Some(reason) = field("Reason").filter(|reason| *reason != "None") {
        text += &format!(" ({reason})");
    }
    if let Some(exit) = field("ExitCode").filter(|exit| *exit != "0:0") {
        text += &format!(", exit code {exit}");
    }
    if let Some(node) = field("NodeList").filter(|node| !node.is_empty() && *node != "(null)") {
        text += &format!(", on {node}");
    }
    Some(text)
}

/// Puts the calling task back into Slurm's queue.
///
/// # Errors
/// This process is not a task of Slurm, or `scontrol` refused.
pub fn requeue_this() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok();
    let array = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    let task = match array {
        Some((job, task)) => format!("{job}_{task}"),
        None => variable("SLURM_JOB_ID").ok_or("this is no task of Slurm")?,
    };
    run(&["scontrol".into(), "requeue".into(), task]).map(|_| ())
}

/// Runs a command of Slurm, and returns its standard output.
fn run(words: &[String]) -> Result<String, String> {
    let output = Command::new(&words[0]).args(&words[1..]).output();
    let output = output.map_err(|e| match e.kind() {
        ErrorKind::NotFound => format!(
            "there is no {} on this machine: Slurm's commands are missing (Debian: apt-get \
             install slurm-client); without --slurm the sweep runs on this machine's cores",
            words[0]
        ),
        _ => format!("{} does not start: {e}", words[0]),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(refusal(&words[0], &String::from_utf8_lossy(&output.stderr)))
}

/// The error for a refusal of Slurm: its reason, and what to do next.
fn refusal(command: &str, said: &str) -> String {
    let said = said
        .lines()
        .map(|line| line.trim().trim_start_matches(&format!("{command}: ")))
        .map(|line| line.trim_start_matches("error: ").trim())
        .find(|line| !line.is_empty())
        .unwrap_or("it does not say why");
    let has = |words: &[&str]| {
        let said = said.to_lowercase();
        words.iter().any(|word| said.contains(word))
    };
    let next = if has(&["partition"]) {
        "'sinfo' lists the partitions, and --partition names one"
    } else if has(&["feature"]) {
        "'sinfo --format=%f' lists the features, and --constraint names one"
    } else if has(&["array"]) {
        "this cluster takes smaller arrays ('scontrol show config' says MaxArraySize): begin the \
         sweep in another --folder with a smaller --array"
    } else if has(&["munge", "credential", "authentication", "security context"]) {
        "munged must run here with the cluster's key, and the clocks of all nodes must agree \
         within 5 minutes"
    } else if has(&[
        "contact",
        "connection",
        "resolve",
        "configuration",
        "communication",
    ]) {
        "the cluster's controller does not answer; the folder keeps what is done, and the same \
         command goes on later"
    } else if has(&["time"]) {
        "give --time as minutes or as hours:minutes:seconds"
    } else if has(&["account"]) {
        "give --account with one of yours"
    } else {
        "nothing was lost, and the same command tries again"
    };
    format!("{command} failed: {}; {next}", said.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_slurm_takes_them() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[4]), "4");
        assert_eq!(list(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
    }

    #[test]
    fn a_queue_is_read() {
        let queued = read_queue("3 RUNNING\n4 PENDING\nN/A PENDING\n\n5 COMPLETING\n");
        assert_eq!(queued.running, BTreeSet::from([3, 5]));
        assert_eq!(queued.pending, BTreeSet::from([4]));
        assert!(read_queue("").is_empty());
    }

    #[test]
    fn what_slurm_remembers_of_a_task_is_read() {
        let line = "JobId=5 ArrayJobId=4 ArrayTaskId=0 JobName=x JobState=FAILED \
                    Reason=NonZeroExitCode Dependency=(null) ExitCode=1:0 NodeList=localhost \
                    BatchHost=localhost";
        assert_eq!(
            read_account(line).unwrap(),
            "FAILED (NonZeroExitCode), exit code 1:0, on localhost"
        );
        let killed = "JobState=CANCELLED Reason=None ExitCode=0:9 NodeList=n1";
        assert_eq!(
            read_account(killed).unwrap(),
            "CANCELLED, exit code 0:9, on n1"
        );
        assert_eq!(read_account(""), None);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        // As Slurm 22.05 says it.
        for (said, part) in [
            (
                "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job \
                 submission failed: Invalid partition name specified\n",
                "invalid partition specified: nope; 'sinfo' lists",
            ),
            (
                "sbatch: error: Batch job submission failed: Invalid feature specification",
                "--constraint names one",
            ),
            (
                "sbatch: error: Batch job submission failed: Invalid job array specification",
                "MaxArraySize",
            ),
            ("sbatch: error: Invalid --time specification", "give --time"),
            (
                "sbatch: error: Batch job submission failed: Protocol authentication error",
                "munged must run",
            ),
            ("", "it does not say why"),
        ] {
            let refusal = refusal("sbatch", said);
            assert!(refusal.contains(part), "{refusal}");
            assert_eq!(refusal.lines().count(), 1);
        }
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted("/a b/it's"), "'/a b/it'\\''s'");
    }
}
