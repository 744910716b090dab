//! Says how far CPUs are from one another, by what a handoff between them crosses.

/// The distance between two CPUs, by what a handoff between them crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Means the same CPU.
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
    /// All distances, nearest first.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Core,
        Self::Cluster,
        Self::Socket,
        Self::Remote,
    ];

    /// Returns the name, as printed.
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
