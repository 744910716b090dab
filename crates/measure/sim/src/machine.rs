//! A machine: the figures that the simulator needs, and where each
//! comes from.
//!
//! A machine is a list of named figures ([`FIGURES`] says which exist, in
//! what unit and within what bounds) plus an instruction set and the way a
//! contended line is arbitrated. Each figure either has a source or is marked
//! as an assumption, which may have a band of plausible values. Nothing here
//! knows of locks or workloads, and nothing may be tuned to one.

use crate::check::Check;
use locklab_host::error::Error;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The most cores of a machine.
pub(crate) const MAX_CORES: usize = 512;

/// The rule by which one of the waiting requests for a line is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Any of those that have arrived, with equal chances.
    Random,
    /// The one that arrived first.
    Fifo,
    /// They are served in rounds over all waiting requests: those from the cluster of the core
    /// that had the line last, then those from its socket, then the others; the
    /// first to arrive among equals. Later arrivals wait for the next round,
    /// and the core that had the line is not preferred to its neighbours.
    Nearest,
}

impl Arbitration {
    /// Every kind, by name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("random", Self::Random),
        ("fifo", Self::Fifo),
        ("nearest", Self::Nearest),
    ];

    /// Returns the name in a machine file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Fifo => "fifo",
            Self::Nearest => "nearest",
        }
    }
}

/// The instruction set, where it matters: whether a byte of a lock word
/// can be stored by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// Byte and half-word stores inside a lock word.
    X86_64,
    /// Has whole-word read-modify-writes only.
    Aarch64,
}

/// Says why a figure has its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The figure is published or measured; the text says where.
    Source(String),
    /// The figure is assumed; the text says why.
    Assumption(String),
    /// Set by the caller for this run.
    Override,
}

/// One figure of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The value, in the unit of its [`FigureKind`].
    pub value: f64,
    /// The origin of the value.
    pub origin: Origin,
    /// The lowest and highest plausible value, where that is stated.
    pub band: Option<(f64, f64)>,
}

/// The definition of a figure, for all machines.
#[derive(Debug)]
pub struct FigureKind {
    /// Names the figure.
    pub key: FigureKey,
    /// The unit, as printed.
    pub unit: &'static str,
    /// Least and greatest value allowed.
    pub allowed: (f64, f64),
    /// Says whether it is a count, without a fraction.
    pub whole: bool,
    /// The value if the file has none, or `None` if the file must have one.
    pub default: Option<f64>,
    /// The meaning, as printed.
    pub meaning: &'static str,
}

macro_rules! figures {
    ($($name:ident $key:literal, $unit:literal, $low:literal ..= $high:literal, $whole:literal, $default:expr, $meaning:literal;)*) => {
        /// A figure of a machine, by which code asks for it; a file has its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FigureKey {
            $(#[doc = $meaning] $name,)*
        }

        /// Every figure that a machine file may hold, in the order of the keys.
        pub const FIGURES: &[FigureKind] = &[$(FigureKind {
            key: FigureKey::$name, unit: $unit, allowed: ($low, $high), whole: $whole,
            default: $default, meaning: $meaning,
        }),*];

        impl FigureKey {
            /// Returns `table.key`, as a machine file has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)*
                }
            }
        }
    };
}

figures! {
    TopologySockets "topology.sockets", "", 1.0..=16.0, true, None, "sockets (NUMA nodes)";
    TopologyClusters "topology.clusters", "", 1.0..=64.0, true, Some(1.0), "core clusters (CCX, module) a socket";
    TopologyCores "topology.cores", "", 1.0..=512.0, true, None, "cores a cluster";
    TopologyThreads "topology.threads", "", 1.0..=8.0, true, Some(1.0), "hardware threads a core";
    TopologySmallClusters "topology.small_clusters", "", 0.0..=63.0, true, Some(0.0), "clusters of small cores, the last ones of each socket";
    TopologyColumns "topology.columns", "", 0.0..=64.0, true, Some(0.0), "columns of the mesh on which a cluster's cores lie; 0: they lie on a ring";
    CoreClockGhz "core.clock_ghz", "GHz", 0.1..=10.0, false, None, "clock under load; also what a simulated cycle is";
    CorePauseCycles "core.pause_cycles", "cycles", 1.0..=1000.0, true, None, "one relax (x86 `pause`, Arm `isb` or `yield`)";
    CoreL1Cycles "core.l1_cycles", "cycles", 1.0..=20.0, true, None, "load that hits L1";
    CoreL2Cycles "core.l2_cycles", "cycles", 1.0..=100.0, true, None, "load that hits the core's L2";
    CoreRmwCycles "core.rmw_cycles", "cycles", 1.0..=200.0, true, None, "atomic read-modify-write on a line already owned; the line stays meanwhile";
    CoreUnitCycles "core.unit_cycles", "cycles", 1.0..=1000.0, true, Some(15.0), "one unit of the benchmark's work, its cache hits included";
    CoreMaskCycles "core.mask_cycles", "cycles", 0.0..=1000.0, true, Some(20.0), "masking interrupts before an acquisition, and as much again for unmasking them after the release; 0: a program, which does neither";
    CoreStoreBuffer "core.store_buffer", "entries", 0.0..=256.0, true, None, "store buffer; 0: stores wait for their line";
    CoreDrainCycles "core.drain_cycles", "cycles", 0.0..=200.0, true, Some(10.0), "mean, from an empty store buffer until a read-modify-write that waited for it has its line locked";
    CoreFarAtomics "core.far_atomics", "", 0.0..=1.0, true, Some(0.0), "1: an atomic on a line that another core has used is done at the line's home (Arm LSE, far)";
    CoreFarRmwNs "core.far_rmw_ns", "ns", 0.0..=1000.0, false, Some(0.0), "how long a far atomic keeps the line's home busy";
    CoreWfeCycles "core.wfe_cycles", "cycles", 0.0..=10000.0, true, Some(0.0), "from the loss of a line until a CPU that sleeps on it (Arm `wfe`) reads it again; 0: a spin polls, with relaxes between";
    CoreEarlyOwnership "core.early_ownership", "fraction", 0.0..=1.0, false, Some(0.0), "how often a read that a read-modify-write follows at once has asked for the only copy: execution out of order";
    CoreReadsAhead "core.reads_ahead", "fraction", 0.0..=1.0, false, Some(0.0), "how often what follows a read-modify-write is asked for before that, while the CPU computes what precedes it: execution out of order";
    CoreLineReuse "core.line_reuse", "fraction", 0.0..=1.0, false, Some(1.0), "how often an access that a core begins while its line serves a sibling thread is done before the line leaves for a waiting core";
    CoreOwnReuse "core.own_reuse", "fraction", 0.0..=1.0, false, Some(0.0), "how often the read-modify-write that a thread does directly after another is done before the line leaves for a waiting core";
    CoreSmallSpeed "core.small_speed", "fraction", 0.05..=1.0, false, Some(1.0), "work that a small core does while a big one does 1";
    CoreSmtSlowdown "core.smt_slowdown", "factor", 1.0..=4.0, false, Some(1.0), "how much longer work takes while the sibling thread works too";
    TransferClusterNs "transfer.cluster_ns", "ns", 1.0..=10000.0, false, None, "cache line from a core to another of the same cluster";
    TransferSocketNs "transfer.socket_ns", "ns", 1.0..=10000.0, false, None, "cache line from another cluster of the same socket";
    TransferRemoteNs "transfer.remote_ns", "ns", 1.0..=10000.0, false, None, "cache line from another socket";
    TransferMemoryNs "transfer.memory_ns", "ns", 1.0..=10000.0, false, None, "line that no cache holds";
    TransferLlcNs "transfer.llc_ns", "ns", 0.0..=10000.0, false, Some(0.0), "line that no core holds exclusively, read from the last-level cache of the socket; 0: as from the nearest copy";
    TransferRequestShare "transfer.request_share", "fraction", 0.0..=0.9, false, Some(0.1), "part of a transfer in which the request travels to the directory, where it queues";
    TransferSnoopShare "transfer.snoop_share", "fraction", 0.0..=0.9, false, Some(0.1), "part of a transfer in which the directory's snoop travels to the owner, who uses the line meanwhile";
    TransferSpread "transfer.spread", "fraction", 0.0..=0.9, false, Some(0.35), "how much a transfer may take less or more, by where its line has its home";
    TransferStopNs "transfer.stop_ns", "ns", 0.0..=100.0, false, Some(0.0), "what a message takes from one stop of a cluster's ring or mesh to the next; transfers are means over all places; 0: all places are alike";
    DirectorySharedReadNs "directory.shared_read_ns", "ns", 0.0..=1000.0, false, None, "how long one shared read keeps a line's directory entry busy";
    DirectoryInvalidateNs "directory.invalidate_ns", "ns", 0.0..=1000.0, false, None, "added to a write for each further sharer it invalidates";
    DirectoryBroadcast "directory.broadcast", "", 0.0..=1.0, true, Some(0.0), "1: the directory knows the owner of a line and not who shares it: a write to a shared line waits for the farthest core of the machine, and the owner answers every read of what it wrote, one after the other";
    DirectoryMigrates "directory.migrates", "fraction", 0.0..=1.0, false, Some(0.0), "how often a read of a line that another core has written takes the only copy from it, as a line that migrates (A. Cox and R. Fowler, ISCA 1993), so that a write which follows needs no request";
    DirectoryWritesFirst "directory.writes_first", "fraction", 0.0..=1.0, false, Some(0.0), "how often a write that waits for a line is served before the reads that wait";
    InterruptsPerSecond "interrupts.per_second", "1/s", 0.0..=1e6, false, Some(0.0), "interrupts a CPU, held off while interrupts are masked";
    InterruptsUs "interrupts.us", "us", 0.0..=10000.0, false, Some(0.0), "length of one";
    VmVcpus "vm.vcpus", "", 0.0..=1024.0, true, Some(0.0), "virtual CPUs; 0: not a virtual machine";
    VmSliceUs "vm.slice_us", "us", 1.0..=1e6, false, Some(3000.0), "time slice of the hypervisor's scheduler";
    VmSwitchUs "vm.switch_us", "us", 0.0..=1000.0, false, Some(2.0), "one virtual CPU out and another in";
    VmPleWindowCycles "vm.ple_window_cycles", "cycles", 0.0..=1e9, true, Some(4096.0), "pausing until the first pause-loop exit, each further one after twice as long; 0: never";
    VmPleWaitUs "vm.ple_wait_us", "us", 0.0..=1e6, false, Some(3000.0), "what a ready virtual CPU must have waited for a pause-loop exit to yield to it";
    VmHaltUs "vm.halt_us", "us", 0.0..=1000.0, false, Some(1.0), "halting: until the CPU is free for another";
    VmKickUs "vm.kick_us", "us", 0.0..=1000.0, false, Some(1.0), "what a kick costs the one who kicks";
    VmWakeUs "vm.wake_us", "us", 0.0..=1000.0, false, Some(3.0), "from the kick until the halted one runs";
    VmStealPerSecond "vm.steal_per_second", "1/s", 0.0..=1e6, false, Some(0.0), "times a second that the host takes a physical CPU away, whatever the guest masks";
    VmStealUs "vm.steal_us", "us", 0.0..=1e6, false, Some(0.0), "for how long";
    SchedulerSliceUs "scheduler.slice_us", "us", 1.0..=1e6, false, Some(2800.0), "for how long a thread runs while others wait for its CPU";
    SchedulerSwitchUs "scheduler.switch_us", "us", 0.0..=1000.0, false, Some(1.5), "one thread out and another in";
    SchedulerCallUs "scheduler.call_us", "us", 0.0..=1000.0, false, Some(0.2), "a futex call that waits for nothing, because the word has changed; half of it before it looks at the word, half after";
    SchedulerWakeNobodyUs "scheduler.wake_nobody_us", "us", 0.0..=1000.0, false, Some(0.15), "a futex call that finds nobody to wake; half of it before it looks, half after";
    SchedulerYieldUs "scheduler.yield_us", "us", 0.0..=1000.0, false, Some(0.4), "sched_yield where no other thread is ready";
    SchedulerSleepUs "scheduler.sleep_us", "us", 0.0..=1000.0, false, Some(0.8), "what a wait that sleeps takes beyond that, until the CPU is free for another thread";
    SchedulerWakeCallUs "scheduler.wake_call_us", "us", 0.0..=1000.0, false, Some(1.0), "a futex call that wakes a thread";
    SchedulerWakeUs "scheduler.wake_us", "us", 0.0..=10000.0, false, Some(3.0), "median, from the end of that call until the woken one runs, on an idle CPU";
    SchedulerWakeSpread "scheduler.wake_spread", "factor", 1.0..=100.0, false, Some(2.0), "how many times as long the slowest tenth of these takes as the quickest tenth";
    SchedulerLatencyUs "scheduler.latency_us", "us", 0.0..=1e6, false, Some(0.0), "the period in which each thread of a CPU is to run once, by the rule of Linux before 6.6; 0 for the rule since";
}

/// A modelled machine. Made by [`Machine::parse`], [`Machine::read`] or
/// [`Machine::builtin`].
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name of the machine.
    pub name: String,
    /// One line on what it represents.
    pub description: String,
    /// The instruction set, which decides how stores become visible.
    pub arch: Arch,
    /// Says how a contended line is arbitrated.
    pub arbitration: Arbitration,
    /// The reason for that assumption.
    pub arbitration_origin: Origin,
    /// The figures by key. Every key of [`FIGURES`] is here.
    pub figures: BTreeMap<FigureKey, Figure>,
    /// The keys whose value is a default of the format.
    pub defaulted: Vec<FigureKey>,
    /// Published microbenchmarks, which the model must reproduce.
    pub checks: Vec<Check>,
    /// How far the model was right of locks on the machine itself, as a sentence: what
    /// `locklab machine check FILE --locks` found with these figures.
    pub checked: Option<String>,
}

impl Machine {
    /// Returns the value of a figure, in its unit.
    pub fn get(&self, key: FigureKey) -> f64 {
        self.figures[&key].value
    }

    fn count(&self, key: FigureKey) -> usize {
        self.get(key) as usize
    }

    /// Returns the number of sockets.
    pub fn sockets(&self) -> usize {
        self.count(FigureKey::TopologySockets)
    }

    /// Cores of the whole machine.
    pub fn cores(&self) -> usize {
        self.sockets()
            * self.count(FigureKey::TopologyClusters)
            * self.count(FigureKey::TopologyCores)
    }

    /// Returns the hardware threads of the whole machine.
    pub fn hardware_threads(&self) -> usize {
        self.cores() * self.count(FigureKey::TopologyThreads)
    }

    /// Returns the CPUs that software sees: virtual ones of a virtual machine.
    pub fn cpus(&self) -> usize {
        match self.count(FigureKey::VmVcpus) {
            0 => self.hardware_threads(),
            vcpus => vcpus,
        }
    }

    /// Returns the same machine with a different value for one figure.
    ///
    /// # Errors
    /// [`Error::Usage`] if it may not have that value.
    pub fn with(mut self, key: FigureKey, value: f64) -> Result<Self, Error> {
        key.kind().check(value)?;
        if let Some(figure) = self.figures.get_mut(&key) {
            figure.value = value;
            figure.origin = Origin::Override;
        }
        match self.contradiction() {
            Some((_, what)) => Err(Error::Usage(what)),
            None => Ok(self),
        }
    }

    /// Returns the same machine where a woken thread runs after `mean_us` on average, and the
    /// slowest tenth takes `spread` times as long as the quickest tenth. What a machine has of
    /// them is the median.
    ///
    /// # Errors
    /// [`Error::Usage`] if the figures may not have these values.
    pub fn with_wakes(self, mean_us: f64, spread: f64) -> Result<Self, Error> {
        let mean_by_median = mean_wake(spread);
        self.with(FigureKey::SchedulerWakeUs, mean_us / mean_by_median)?
            .with(FigureKey::SchedulerWakeSpread, spread)
    }

    /// Gives an assumed figure a value that its band allows: whole if it is a
    /// count. The caller must check for contradictions.
    pub(crate) fn set(&mut self, key: FigureKey, value: f64) {
        if let Some(figure) = self.figures.get_mut(&key) {
            figure.value = if key.kind().whole {
                value.round()
            } else {
                value
            };
        }
    }

    /// Returns what is wrong with what a machine says of its small cores.
    fn small_cores_fault(&self) -> Option<(FigureKey, String)> {
        let small = FigureKey::TopologySmallClusters;
        let (count, clusters) = (self.get(small), self.get(FigureKey::TopologyClusters));
        let slower = self.get(FigureKey::CoreSmallSpeed) < 1.0;
        let what = match count > 0.0 {
            true if count >= clusters => {
                format!("`{small}` is {count} of {clusters} clusters; leave at least one big one")
            }
            true if self.get(FigureKey::TopologyThreads) > 1.0 => format!(
                "`{small}` is for cores without siblings; set `topology.threads` to 1, and leave \
                 the siblings of the big cores out"
            ),
            false if slower => {
                let speed = FigureKey::CoreSmallSpeed;
                return Some((
                    speed,
                    format!("`{speed}` is of small cores; give `{small}` too"),
                ));
            }
            _ => return None,
        };
        Some((small, what))
    }

    /// Returns a hash of its figures, by which a result of `machine check --locks` says what it is
    /// of.
    pub fn digest(&self) -> String {
        let figures = self.figures.iter();
        let lines = figures.map(|(key, figure)| format!("{key}={}\n", figure.value));
        let text: String = lines.chain([self.arbitration.name().to_owned()]).collect();
        // The hash of Fowler, Noll and Vo.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("{hash:016x}")
    }

    /// Returns the first two figures that cannot both be true, by the key of the one
    /// to change.
    pub(crate) fn contradiction(&self) -> Option<(FigureKey, String)> {
        let ordered = [
            (FigureKey::CoreL1Cycles, FigureKey::CoreL2Cycles),
            (FigureKey::TransferClusterNs, FigureKey::TransferSocketNs),
            (FigureKey::TransferSocketNs, FigureKey::TransferRemoteNs),
        ];
        for (near, far) in ordered {
            let (low, high) = (self.get(near), self.get(far));
            if low > high {
                return Some((
                    near,
                    format!(
                        "`{near}` ({low}) is greater than `{far}` ({high}): what is nearer cannot take longer"
                    ),
                ));
            }
        }
        let cores = self.cores();
        if cores > MAX_CORES {
            return Some((
                FigureKey::TopologyCores,
                format!(
                    "the topology has {cores} cores; at most {} can be simulated",
                    MAX_CORES
                ),
            ));
        }
        if self.hardware_threads() > 1024 {
            return Some((
                FigureKey::TopologyThreads,
                "the topology has more than 1024 hardware threads".to_owned(),
            ));
        }
        if let Some(fault) = self.small_cores_fault() {
            return Some(fault);
        }
        if self.get(FigureKey::TransferRequestShare) + self.get(FigureKey::TransferSnoopShare)
            > 0.95
        {
            return Some((
                FigureKey::TransferSnoopShare,
                "`transfer.request_share` and `transfer.snoop_share` together leave less than a twentieth of a transfer for the data".to_owned(),
            ));
        }
        for (rate, length) in [
            (FigureKey::InterruptsPerSecond, FigureKey::InterruptsUs),
            (FigureKey::VmStealPerSecond, FigureKey::VmStealUs),
        ] {
            if self.get(rate) * self.get(length) >= 0.9e6 {
                return Some((
                    length,
                    format!(
                        "`{rate}` times `{length}` leaves less than a tenth of the time for work"
                    ),
                ));
            }
        }
        None
    }

    /// Returns the assumptions with a band, which the module `band` sweeps.
    pub fn banded(&self) -> impl Iterator<Item = (FigureKey, (f64, f64))> + '_ {
        self.figures
            .iter()
            .filter_map(|(key, figure)| Some((*key, figure.band?)))
    }
}

impl FigureKey {
    /// Returns the table of a machine file that has it.
    pub fn table(self) -> &'static str {
        self.name().split_once('.').map_or("", |(table, _)| table)
    }

    /// Returns the definition of the figure.
    pub fn kind(self) -> &'static FigureKind {
        &FIGURES[self as usize]
    }
}

/// Orders keys by name, in which order bands are drawn and fingerprints are made: an order
/// of the table would change with it.
impl Ord for FigureKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for FigureKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for FigureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FigureKey {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let mut kinds = FIGURES.iter();
        let found = kinds.find(|kind| kind.key.name() == name);
        found
            .map(|kind| kind.key)
            .ok_or_else(|| Error::Usage(format!("no figure of a machine is called `{name}`")))
    }
}

impl FigureKind {
    /// Checks that a value is allowed; the message says which are.
    pub(crate) fn check(&self, value: f64) -> Result<(), Error> {
        let (low, high) = self.allowed;
        if !(low..=high).contains(&value) || (self.whole && value.fract() != 0.0) {
            let sort = if self.whole { "whole number" } else { "number" };
            return Err(Error::Usage(format!(
                "`{}` is {value}; allowed is a {sort} from {low} to {high}{}{}",
                self.key,
                if self.unit.is_empty() { "" } else { " " },
                self.unit
            )));
        }
        Ok(())
    }
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        /// The machines that come with Locklab: name and file.
        pub const BUILTIN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../machines/", $name, ".toml")))),*];
    };
}

builtin! {
    "amd64-8",
    "apple-m1-pro",
    "apple-m2-air",
    "core-i9-9900k",
    "epyc-7601",
    "epyc-7763-2s",
    "flat-16",
    "graviton2",
    "graviton3",
    "graviton4",
    "icelake-1035g4",
    "ivybridge-ex-4s",
    "opteron-6168-4s",
    "ryzen-5700x",
    "skylake-6138-2s",
    "skylake-6700hq",
    "xeon-6-e-288",
    "xeon-8160",
    "xeon-8380-2s",
    "xeon-8380-vm",
    "xeon-e5-10c-2s",
    "xeon-e5-2699v4-2s",
}

/// The part of all wake-ups between the quickest and the slowest tenth.
pub(crate) const BETWEEN_TENTHS: f64 = 0.8;

/// Returns the mean of wake-ups of this spread by their median.
fn mean_wake(spread: f64) -> f64 {
    let half = spread.max(1.0).ln() / (2.0 * BETWEEN_TENTHS);
    if half < 1e-6 { 1.0 } else { half.sinh() / half }
}
