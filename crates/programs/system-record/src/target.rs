//! Says whose events are recorded.

use locklab_host::error::Error;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Says whose waits are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program that is started, and its children.
    Command(Vec<OsString>),
    /// A process that runs, with its descendants, of now and later.
    Process(u32),
    /// Means what runs in a control group: a container, or a service.
    Cgroup(PathBuf),
}

/// Says where control groups of the second version are mounted.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

impl Target {
    /// Returns the target in words, as a command line or a name.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Command(words) => words
                .iter()
                .map(|word| word.to_string_lossy())
                .collect::<Vec<_>>()
                .join(" "),
            Self::Process(number) => match fs::read(format!("/proc/{number}/cmdline")) {
                Ok(line) if !line.is_empty() => String::from_utf8_lossy(&line)
                    .trim_end_matches('\0')
                    .replace('\0', " "),
                _ => format!("process {number}"),
            },
            Self::Cgroup(path) => format!("cgroup {}", path.display()),
        }
    }
}

/// Returns the threads of a process, now.
///
/// # Errors
/// [`Error::Failed`] if it does not run.
pub(crate) fn threads(process: u32) -> Result<Vec<u32>, Error> {
    let gone = || Error::Failed(format!("there is no process {process}"));
    let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(|_| gone())?;
    let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    match numbers.is_empty() {
        true => Err(gone()),
        false => Ok(numbers),
    }
}

/// Returns a process and its descendants now, but for this one and its own: a server may
/// have a process for each client, and this command may be a descendant of what it records.
///
/// # Errors
/// [`Error::Failed`] if it does not run.
pub(crate) fn family(process: u32) -> Result<Vec<u32>, Error> {
    threads(process)?;
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for number in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent(number) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut family = vec![process];
    let mut at = 0;
    while let Some(next) = family.get(at) {
        let of = children.remove(next).unwrap_or_default();
        family.extend(of.into_iter().filter(|child| *child != std::process::id()));
        at += 1;
    }
    Ok(family)
}

/// Returns the parent of a process, if that runs.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have any character, and the state.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the open folder of a control group, by its path, or by that below the mount.
///
/// # Errors
/// [`Error::Usage`] if there is none.
pub(crate) fn cgroup(path: &Path) -> Result<(PathBuf, File), Error> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let places = CGROUPS.iter().map(|mount| Path::new(mount).join(below));
    std::iter::once(path.to_path_buf())
        .chain(places)
        .find_map(|place| {
            let file = File::open(&place).ok()?;
            place
                .join("cgroup.procs")
                .is_file()
                .then_some((place, file))
        })
        .ok_or_else(|| {
            Error::Usage(format!(
                "{} is no control group; /proc/PID/cgroup has that of a process of the container",
                path.display()
            ))
        })
}

/// Returns the processes that are in a control group now.
pub(crate) fn processes(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}
