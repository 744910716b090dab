//! The CPUs that this process may use, and the order in which threads take
//! them.
//!
//! The order is physical cores first, then their SMT siblings, then the next
//! NUMA node in the same way, so that a matrix of few threads stays on one
//! node, and a few more threads do not share cores. Without `/sys` every
//! allowed CPU counts as a core of one node. Never fails, and never pins
//! anything by itself.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The CPUs in the order in which threads are pinned to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Kernel numbers of the allowed CPUs, best first.
    pub order: Vec<usize>,
    /// Is true if `/sys` said which CPUs share a core or a node; otherwise the
    /// order is that of the affinity mask.
    pub known: bool,
    /// Physical cores among them.
    pub cores: usize,
    /// NUMA nodes among them.
    pub nodes: usize,
}

/// The core and node of one CPU.
struct Place {
    cpu: usize,
    core: String,
    node: usize,
}

impl Topology {
    /// Returns the topology of this machine, limited to this process's affinity mask.
    #[must_use]
    pub fn read() -> Self {
        Self::of(&allowed(), Path::new("/sys/devices/system/cpu"))
    }

    /// Returns the topology of the CPUs `allowed`, as the folder `sys` describes them.
    #[must_use]
    pub fn of(allowed: &[usize], sys: &Path) -> Self {
        let places: Option<Vec<Place>> = allowed.iter().map(|cpu| place(*cpu, sys)).collect();
        let Some(places) = places else {
            return Self {
                order: allowed.to_vec(),
                known: false,
                cores: allowed.len(),
                nodes: 1,
            };
        };
        // Nodes and cores are ranked by their first appearance, so the node
        // of the first allowed CPU comes first.
        let mut nodes: Vec<usize> = Vec::new();
        let mut seen_of_core: HashMap<&str, usize> = HashMap::new();
        let mut keyed: Vec<((usize, usize), usize)> = places
            .iter()
            .map(|place| {
                let node = nodes
                    .iter()
                    .position(|n| *n == place.node)
                    .unwrap_or_else(|| {
                        nodes.push(place.node);
                        nodes.len() - 1
                    });
                let seen = seen_of_core.entry(&place.core).or_default();
                let sibling = *seen;
                *seen += 1;
                ((node, sibling), place.cpu)
            })
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        Self {
            order: keyed.into_iter().map(|(_, cpu)| cpu).collect(),
            known: true,
            cores: seen_of_core.len(),
            nodes: nodes.len(),
        }
    }
}

fn place(cpu: usize, sys: &Path) -> Option<Place> {
    let folder = sys.join(format!("cpu{cpu}"));
    let core = fs::read_to_string(folder.join("topology/thread_siblings_list")).ok()?;
    // A kernel without NUMA has no node links: all CPUs are one node.
    let node = fs::read_dir(&folder)
        .ok()?
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .next()
        .unwrap_or(0);
    Some(Place {
        cpu,
        core: core.trim().to_owned(),
        node,
    })
}

/// Returns the CPUs that the affinity mask allows, ascending; one for each unit of
/// available parallelism if it cannot be read.
#[must_use]
pub fn allowed() -> Vec<usize> {
    match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => (0..CpuSet::count())
            .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
            .collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Returns whether this process has a real-time policy (FIFO, round robin, deadline).
/// Spinning threads then shut out everything else on their CPUs, including the
/// thread that ends a run.
#[must_use]
pub fn real_time() -> bool {
    // SAFETY: asks about this process; no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    policy >= 0 && ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy)
}

/// Returns whether this process has the policy SCHED_IDLE: any other program that wants a
/// CPU takes it.
#[must_use]
pub fn idle_policy() -> bool {
    // SAFETY: as above.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy >= 0 && policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_IDLE
}

/// Binds the calling thread to `cpu`. Returns whether the kernel agreed; if
/// not, the thread continues unpinned.
pub fn pin_to(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).is_ok() && sched_setaffinity(Pid::from_raw(0), &set).is_ok()
}

/// Returns ascending CPU numbers as `0-3,8`.
#[must_use]
pub fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == n => *end = n,
            _ => parts.push((n, n)),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_numbers_are_shortened_to_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    /// Returns a folder like `/sys/devices/system/cpu` of CPUs (core, node).
    fn sys(cpus: &[(&str, usize)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, (siblings, node)) in cpus.iter().enumerate() {
            let folder = root.path().join(format!("cpu{cpu}"));
            fs::create_dir_all(folder.join("topology")).unwrap();
            fs::create_dir_all(folder.join(format!("node{node}"))).unwrap();
            fs::write(
                folder.join("topology/thread_siblings_list"),
                format!("{siblings}\n"),
            )
            .unwrap();
        }
        root
    }

    #[test]
    fn cores_then_siblings_then_other_nodes() {
        // Two nodes of two cores of two threads, numbered as on a Xeon.
        let root = sys(&[
            ("0,4", 0),
            ("1,5", 0),
            ("2,6", 1),
            ("3,7", 1),
            ("0,4", 0),
            ("1,5", 0),
            ("2,6", 1),
            ("3,7", 1),
        ]);
        let all: Vec<usize> = (0..8).collect();
        let topology = Topology::of(&all, root.path());
        assert_eq!(topology.order, [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!((topology.cores, topology.nodes), (4, 2));
        // A mask that allows only a sibling makes it the core's first.
        assert_eq!(Topology::of(&[4, 5, 1], root.path()).order, [4, 5, 1]);
        // The node of the first allowed CPU comes first.
        assert_eq!(Topology::of(&[2, 3, 6], root.path()).order, [2, 3, 6]);
    }

    #[test]
    fn without_sys_the_mask_is_the_order() {
        let root = tempfile::tempdir().unwrap();
        let topology = Topology::of(&[3, 5], root.path());
        assert_eq!(topology.order, [3, 5]);
        assert!(!topology.known);
    }
}
