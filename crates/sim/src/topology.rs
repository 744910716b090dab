//! Which CPUs are close to each other.

use crate::machine::Machine;

/// How far a CPU is from another: what a handoff between them crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same CPU.
    Cpu = 0,
    /// Another hardware thread of the same core.
    Core = 1,
    /// Another core of the same cluster.
    Cluster = 2,
    /// Another cluster of the same socket.
    Socket = 3,
    /// Another socket.
    Remote = 4,
}

impl Distance {
    /// All, nearest first.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Core,
        Self::Cluster,
        Self::Socket,
        Self::Remote,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "same CPU",
            Self::Core => "same core",
            Self::Cluster => "same cluster",
            Self::Socket => "same socket",
            Self::Remote => "other socket",
        }
    }
}

/// In which order threads are given CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The cores of one socket, then their sibling threads, then the next
    /// socket: as the native instrument pins.
    #[default]
    Compact,
    /// In the order of their numbers, sibling threads next to each other: as
    /// a virtual machine numbers its CPUs.
    Numbered,
    /// One core of each socket in turn, siblings last: what an idle machine's
    /// scheduler does.
    Spread,
}

/// A machine's hardware threads. Hardware thread `h` is thread `h %
/// threads_per_core` of core `h / threads_per_core`; cores are numbered
/// socket by socket, cluster by cluster.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) threads_per_core: usize,
    cores_per_cluster: usize,
    clusters_per_socket: usize,
    sockets: usize,
}

impl Topology {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self {
            threads_per_core: machine.get("topology.threads") as usize,
            cores_per_cluster: machine.get("topology.cores") as usize,
            clusters_per_socket: machine.get("topology.clusters") as usize,
            sockets: machine.sockets(),
        }
    }

    pub(crate) fn cores(&self) -> usize {
        self.sockets * self.clusters_per_socket * self.cores_per_cluster
    }

    #[inline]
    pub(crate) fn cluster(&self, core: usize) -> usize {
        core / self.cores_per_cluster
    }

    #[inline]
    pub(crate) fn socket(&self, core: usize) -> usize {
        core / (self.cores_per_cluster * self.clusters_per_socket)
    }

    /// The cores of the cluster that `core` is in.
    #[inline]
    pub(crate) fn cluster_range(&self, core: usize) -> std::ops::Range<usize> {
        let first = self.cluster(core) * self.cores_per_cluster;
        first..first + self.cores_per_cluster
    }

    /// The cores of the socket that `core` is in.
    #[inline]
    pub(crate) fn socket_range(&self, core: usize) -> std::ops::Range<usize> {
        let cores = self.cores_per_cluster * self.clusters_per_socket;
        let first = self.socket(core) * cores;
        first..first + cores
    }

    /// Between cores; `Core` for the same one.
    #[inline]
    pub(crate) fn distance(&self, a: usize, b: usize) -> Distance {
        if a == b {
            Distance::Core
        } else if self.cluster(a) == self.cluster(b) {
            Distance::Cluster
        } else if self.socket(a) == self.socket(b) {
            Distance::Socket
        } else {
            Distance::Remote
        }
    }

    /// The hardware threads in the order in which threads get them.
    pub(crate) fn order(&self, placement: Placement) -> Vec<usize> {
        let per_socket = self.cores_per_cluster * self.clusters_per_socket;
        let mut all: Vec<usize> = (0..self.cores() * self.threads_per_core).collect();
        all.sort_by_key(|&hardware| {
            let (core, sibling) = (
                hardware / self.threads_per_core,
                hardware % self.threads_per_core,
            );
            let (socket, within) = (core / per_socket, core % per_socket);
            match placement {
                Placement::Numbered => (hardware, 0, 0),
                Placement::Compact => (socket, sibling, within),
                Placement::Spread => (sibling, within, socket),
            }
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_by_two_by_two() -> Topology {
        Topology {
            threads_per_core: 2,
            cores_per_cluster: 2,
            clusters_per_socket: 1,
            sockets: 2,
        }
    }

    #[test]
    fn compact_fills_a_socket_and_spread_alternates() {
        let topology = two_by_two_by_two();
        assert_eq!(topology.order(Placement::Compact), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(topology.order(Placement::Spread), [0, 4, 2, 6, 1, 5, 3, 7]);
    }

    #[test]
    fn distances() {
        let topology = two_by_two_by_two();
        assert_eq!(topology.distance(0, 0), Distance::Core);
        assert_eq!(topology.distance(0, 1), Distance::Cluster);
        assert_eq!(topology.distance(0, 2), Distance::Remote);
    }
}
