//! Slurm's own commands: they submit the open chunks of a sweep as one job array,
//! and list its jobs.
//!
//! No process of Locklab stays running: Slurm starts the tasks, and their state is
//! in the folder and in Slurm's queue. Jobs are found by their name, so nothing
//! is lost if the submitting command is killed. This module must never cancel a
//! job.

use crate::folder::{Folder, not_written};
use crate::task::Task;
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A task gets SIGUSR1 this many seconds before its time limit.
const WARNING: u32 = 30;

/// Options that are passed to `sbatch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `--partition`: where the tasks run.
    pub partition: Option<String>,
    /// `--account`: who is charged for them.
    pub account: Option<String>,
    /// `--time`: the limit of one task.
    pub time: Option<String>,
    /// `--constraint`: features that nodes must have.
    pub constraint: Option<String>,
    /// `--requeue`: whether a task that was preempted is queued again.
    pub requeue: bool,
}

impl Options {
    /// Returns the options as arguments of `sbatch`.
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
    /// The number that Slurm gave it.
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
    pub pending: BTreeSet<Task>,
    /// Tasks that run on a node.
    pub running: BTreeSet<Task>,
}

impl Queued {
    /// Returns whether no task waits or runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty()
    }

    /// Returns whether a task waits or runs.
    #[must_use]
    pub fn has(&self, task: &Task) -> bool {
        self.pending.contains(task) || self.running.contains(task)
    }
}

/// Returns the name of all jobs of the sweep in a folder.
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

/// Returns the name of the job of a task of the sweep in a folder. Those of chunks and
/// of layouts share one.
fn job_of(folder: &Path, task: &Task) -> String {
    let name = job_name(folder);
    match task {
        Task::Chunk(_) | Task::Layout(_) => name,
        Task::Build(_) => format!("{name}-builds"),
        Task::Node(feature) => format!("{name}-{feature}"),
    }
}

/// Returns those of the tasks that one job carries out, in order: an array of all that
/// have numbers, and a job for each node.
pub fn batches(tasks: &[Task]) -> impl Iterator<Item = &[Task]> {
    tasks.chunk_by(|one, other| one.number().is_some() && other.number().is_some())
}

/// Returns the command that submits the tasks of one job, which begins when the job
/// `after` has ended. A node is exclusive, and is that of the earlier task if
/// there was one.
#[must_use]
pub fn submission(
    folder: &Folder,
    batch: &[Task],
    after: Option<&str>,
    options: &Options,
) -> Vec<String> {
    let (path, task) = (folder.path().display(), &batch[0]);
    let log = match task {
        Task::Chunk(_) | Task::Layout(_) => "%4a".to_owned(),
        Task::Build(_) => "build-%a".to_owned(),
        Task::Node(feature) => feature.clone(),
    };
    let mut words: Vec<String> = ["sbatch", "--parsable", "--ntasks=1", "--open-mode=append"]
        .map(str::to_owned)
        .into();
    words.extend([
        format!("--job-name={}", job_of(folder.path(), task)),
        format!("--output={path}/logs/{log}.log"),
        format!("--chdir={path}"),
        format!("--signal=B:USR1@{WARNING}"),
    ]);
    let script = format!("{path}/task.sh");
    let (kind, which) = task.words();
    if let Task::Node(feature) = task {
        words.extend(["--nodes=1".into(), "--exclusive".into()]);
        words.extend(options.words());
        words.push(format!("--constraint={feature}"));
        if let Some(status) = folder.status(task) {
            words.push(format!("--nodelist={}", status.node));
        }
        words.extend([script, kind.into(), which]);
        return words;
    }
    let numbers: Vec<usize> = batch.iter().filter_map(Task::number).collect();
    words.extend([
        format!("--cpus-per-task={}", task.cores()),
        format!("--array={}", list(&numbers)),
    ]);
    // A build that failed says so again in each layout, which would wait for
    // ever if it had to succeed.
    words.extend(after.map(|job| format!("--dependency=afterany:{job}")));
    words.extend(options.words());
    words.extend([script, kind.into()]);
    words
}

/// Submits the tasks of one job, and records it in the folder.
///
/// # Errors
/// There is no `sbatch`, it refused the job (nothing was submitted then), or the
/// folder cannot be written.
pub fn submit(
    folder: &Folder,
    batch: &[Task],
    after: Option<&str>,
    options: &Options,
) -> Result<Job, Error> {
    write_script(folder.path(), options)?;
    let output = run(&submission(folder, batch, after, options))?;
    // With --parsable, sbatch prints the job number, then the name of the cluster
    // if there are several.
    let id = output.trim().split(';').next().unwrap_or_default();
    let numbers: Vec<usize> = batch.iter().filter_map(Task::number).collect();
    let job = Job {
        id: id.to_owned(),
        name: job_of(folder.path(), &batch[0]),
        tasks: match &batch[0] {
            Task::Node(feature) => feature.clone(),
            _ => list(&numbers),
        },
    };
    let mut jobs = jobs(folder);
    jobs.push(job.clone());
    folder.write_json("jobs.json", &jobs)?;
    Ok(job)
}

/// Returns the jobs that were submitted so far. An unreadable list counts as empty,
/// because Slurm also finds the jobs by their name.
fn jobs(folder: &Folder) -> Vec<Job> {
    folder.read_json("jobs.json").unwrap_or_default()
}

/// Writes the script of every task. Its arguments are what the task does, and
/// which, if that is not the task's number in its array.
fn write_script(folder: &Path, options: &Options) -> Result<(), Error> {
    let program =
        std::env::current_exe().map_err(|e| Error::Failed(format!("cannot find locklab: {e}")))?;
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
        .map_err(|e| not_written(&path, e))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns those of the tasks of a sweep that are in Slurm's queue.
///
/// # Errors
/// There is no `squeue`, or Slurm's controller does not answer.
pub fn queued(folder: &Folder, tasks: &[Task]) -> Result<Queued, Error> {
    let names: BTreeSet<String> = tasks.iter().map(|t| job_of(folder.path(), t)).collect();
    let names: Vec<String> = names.into_iter().collect();
    let output = run(&[
        "squeue".into(),
        "--noheader".into(),
        "--array".into(),
        format!("--name={}", names.join(",")),
        "--format=%j %K %T".into(),
    ])?;
    Ok(read_queue(&output, folder.path(), tasks))
}

fn read_queue(output: &str, folder: &Path, tasks: &[Task]) -> Queued {
    let key = |task: &Task| (job_of(folder, task), task.number());
    let known: HashMap<_, &Task> = tasks.iter().map(|task| (key(task), task)).collect();
    let mut queued = Queued::default();
    for line in output.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(number), Some(state)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // A job that is no array has no number.
        let Some(task) = known.get(&(name.to_owned(), number.parse().ok())) else {
            continue;
        };
        let of = match state {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => {
                &mut queued.pending
            }
            _ => &mut queued.running,
        };
        of.insert((*task).clone());
    }
    queued
}

/// Returns the state in Slurm of the last job of a task, with reason and exit code;
/// `None` if Slurm has dropped its record.
#[must_use]
pub fn account(folder: &Folder, task: &Task) -> Option<String> {
    let (jobs, name) = (jobs(folder), job_of(folder.path(), task));
    let id = |job: &Job| match task.number() {
        Some(number) => format!("{}_{number}", job.id),
        None => job.id.clone(),
    };
    let of_task = jobs.iter().rev().filter(|job| job.name == name);
    of_task.map(id).find_map(|id| account_of(&id))
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
pub fn requeue_this() -> Result<(), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    let array = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    let task = match array {
        Some((job, task)) => format!("{job}_{task}"),
        None => variable("SLURM_JOB_ID")
            .ok_or_else(|| Error::Failed("this process is no task of Slurm".into()))?,
    };
    run(&["scontrol".into(), "requeue".into(), task]).map(|_| ())
}

/// Runs a command of Slurm, and returns its standard output.
fn run(words: &[String]) -> Result<String, Error> {
    let output = Command::new(&words[0]).args(&words[1..]).output();
    let output = output.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::Failed(format!(
            "there is no {} on this machine: Slurm's commands are missing (Debian: apt-get \
             install slurm-client); without --slurm the sweep runs on this machine's cores",
            words[0]
        )),
        _ => Error::Failed(format!("{} does not start: {e}", words[0])),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = refusal(&words[0], &String::from_utf8_lossy(&output.stderr));
    Err(Error::Failed(why))
}

/// Returns the error for a refusal of Slurm: its reason, and what to do next.
fn refusal(command: &str, reply: &str) -> String {
    let reply = reply
        .lines()
        .map(|line| line.trim().trim_start_matches(&format!("{command}: ")))
        .map(|line| line.trim_start_matches("error: ").trim())
        .find(|line| !line.is_empty())
        .unwrap_or("it does not say why");
    let has = |words: &[&str]| {
        let reply = reply.to_lowercase();
        words.iter().any(|word| reply.contains(word))
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
         command continues later"
    } else if has(&["time"]) {
        "give --time as minutes or as hours:minutes:seconds"
    } else if has(&["account"]) {
        "give --account with one of yours"
    } else {
        "nothing was lost, and the same command tries again"
    };
    format!("{command} failed: {}; {next}", reply.trim_end_matches('.'))
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
        let folder = Path::new("/shared/s.sweep");
        let name = job_name(folder);
        let mut tasks: Vec<Task> = (0..6).map(Task::Chunk).collect();
        tasks.push(Task::Node("icelake".into()));
        let lines = [
            "3 RUNNING",
            "4 PENDING",
            "N/A PENDING",
            "",
            "5 COMPLETING",
            "9 RUNNING",
        ];
        let text: String = lines.map(|line| format!("{name} {line}\n")).concat();
        let queued = read_queue(&text, folder, &tasks);
        assert_eq!(
            queued.running,
            BTreeSet::from([Task::Chunk(3), Task::Chunk(5)])
        );
        assert_eq!(queued.pending, BTreeSet::from([Task::Chunk(4)]));
        let node = read_queue(&format!("{name}-icelake N/A RUNNING\n"), folder, &tasks);
        assert!(node.has(&tasks[6]) && node.running.len() == 1);
        assert!(read_queue("", folder, &tasks).is_empty());
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
