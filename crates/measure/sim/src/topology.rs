//! Says which CPUs are near which, and the order in which threads use them.

use crate::distance::Distance;
use crate::machine::{FigureKey, Machine};
use crate::rng::Rng;
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};

/// The order in which threads are given CPUs. A file has its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Placement {
    /// The cores of one socket, then their sibling threads, then the next
    /// socket, as pinned by the native backend.
    #[default]
    Compact,
    /// Threads take CPUs in the order of their numbers, sibling threads next to each other, as
    /// a virtual machine numbers its CPUs.
    Numbered,
    /// One core of each socket in turn, siblings last, as an idle machine's
    /// scheduler does.
    Spread,
    /// Cores in an order drawn from the seed, siblings last: where threads
    /// that are not pinned may be.
    Random,
}

impl Placement {
    /// Every kind, by name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("compact", Self::Compact),
        ("numbered", Self::Numbered),
        // The same, in the word of benchmarks that pin their threads so.
        ("siblings-first", Self::Numbered),
        ("spread", Self::Spread),
        ("random", Self::Random),
    ];

    /// Returns the name on the command line and in experiment files.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find_map(|(name, placement)| (*placement == self).then_some(*name))
            .expect("ALL has them all")
    }

    /// Returns the placement of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none; the message lists all.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, placement)| *placement).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::Usage(format!(
                "no placement is called `{name}`; there are {}",
                known.join(", ")
            ))
        })
    }
}

impl From<Placement> for &'static str {
    fn from(placement: Placement) -> Self {
        placement.name()
    }
}

impl TryFrom<String> for Placement {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        Self::named(&name)
    }
}

/// A machine's hardware threads. Hardware thread `h` is thread `h %
/// threads_per_core` of core `h / threads_per_core`; cores are numbered
/// socket by socket, cluster by cluster.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) threads_per_core: usize,
    cores_per_cluster: usize,
    clusters_per_socket: usize,
    pub(crate) sockets: usize,
    /// Clusters of small cores, the last of each socket.
    small_clusters: usize,
    /// Cluster and socket of each core, so that no access divides.
    groups: Box<[(u16, u16)]>,
}

impl Topology {
    pub(crate) fn new(machine: &Machine) -> Self {
        let cores_per_cluster = machine.get(FigureKey::TopologyCores) as usize;
        let clusters_per_socket = machine.get(FigureKey::TopologyClusters) as usize;
        let sockets = machine.sockets();
        let group = |core: usize| {
            let cluster = core / cores_per_cluster;
            (cluster as u16, (cluster / clusters_per_socket) as u16)
        };
        Self {
            threads_per_core: machine.get(FigureKey::TopologyThreads) as usize,
            cores_per_cluster,
            clusters_per_socket,
            sockets,
            small_clusters: machine.get(FigureKey::TopologySmallClusters) as usize,
            groups: (0..sockets * clusters_per_socket * cores_per_cluster)
                .map(group)
                .collect(),
        }
    }

    pub(crate) fn cores(&self) -> usize {
        self.groups.len()
    }

    #[inline]
    pub(crate) fn cluster(&self, core: usize) -> usize {
        self.groups[core].0.into()
    }

    /// Returns whether a core is a small one.
    pub(crate) fn is_small(&self, core: usize) -> bool {
        let within = self.cluster(core) % self.clusters_per_socket;
        within >= self.clusters_per_socket - self.small_clusters
    }

    /// Returns whether there are small cores.
    pub(crate) fn has_small(&self) -> bool {
        self.small_clusters > 0
    }

    #[inline]
    pub(crate) fn socket(&self, core: usize) -> usize {
        self.groups[core].1.into()
    }

    /// Returns the cores of the cluster that `core` is in.
    #[inline]
    pub(crate) fn cluster_range(&self, core: usize) -> std::ops::Range<usize> {
        let first = self.cluster(core) * self.cores_per_cluster;
        first..first + self.cores_per_cluster
    }

    /// Returns the cores of the socket that `core` is in.
    #[inline]
    pub(crate) fn socket_range(&self, core: usize) -> std::ops::Range<usize> {
        let cores = self.cores_per_cluster * self.clusters_per_socket;
        let first = self.socket(core) * cores;
        first..first + cores
    }

    /// Returns the distance between cores; `Core` for the same one.
    #[inline]
    pub(crate) fn distance(&self, a: usize, b: usize) -> Distance {
        let (one, other) = (self.groups[a], self.groups[b]);
        if a == b {
            Distance::Core
        } else if one.0 == other.0 {
            Distance::Cluster
        } else if one.1 == other.1 {
            Distance::Socket
        } else {
            Distance::Remote
        }
    }

    /// Returns the hardware threads in the order in which threads get them; `seed`
    /// is for random placements.
    pub(crate) fn order(&self, placement: Placement, seed: u64) -> Vec<usize> {
        let per_socket = self.cores_per_cluster * self.clusters_per_socket;
        // These are not the engine's draws: each seed has its own order of
        // cores.
        let rng = Rng::new(seed ^ 0x706c_6163_656d_656e);
        let drawn: Vec<u64> = (0..self.cores()).map(|_| rng.next()).collect();
        let mut all: Vec<usize> = (0..self.cores() * self.threads_per_core).collect();
        all.sort_by_key(|&hardware| {
            let (core, sibling) = (
                hardware / self.threads_per_core,
                hardware % self.threads_per_core,
            );
            let (socket, within) = (core / per_socket, core % per_socket);
            match placement {
                Placement::Numbered => (hardware as u64, 0, 0),
                Placement::Compact => (socket as u64, sibling, within),
                Placement::Spread => (sibling as u64, within, socket),
                // Siblings come last: a scheduler takes an idle core first, and a big one.
                Placement::Random => (
                    sibling as u64,
                    self.is_small(core).into(),
                    drawn[core] as usize,
                ),
            }
        });
        all
    }
}

#[cfg(test)]
#[path = "../tests/unit/topology.rs"]
mod tests;
