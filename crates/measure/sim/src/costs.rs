//! Holds what a machine charges: its figures in cycles of its clock, and its rules.

use crate::machine::{Arbitration, Arch, FigureKey, Machine};

/// The machine's figures in cycles, and its rules.
pub(crate) struct Costs {
    /// Transfer of a line, by `Distance`.
    pub(crate) transfer: [u64; 5],
    pub(crate) memory: u64,
    /// Reading what no core holds exclusively, within a socket.
    pub(crate) llc: u64,
    /// Says whether that is no longer than from another core of the socket.
    pub(crate) llc_is_nearest: bool,
    /// Says whether atomics of contended lines are done at the line's home.
    pub(crate) far_atomics: bool,
    /// Says how long one of those keeps the home busy.
    pub(crate) far_rmw: u64,
    /// Time from the loss of a line until a CPU that sleeps on it reads it; 0
    /// if it polls.
    pub(crate) wfe: u64,
    /// Chance that a read before a read-modify-write asks for the only copy, in
    /// 1024ths.
    pub(crate) early_ownership: usize,
    /// Chance that a line which is used after a locked operation is asked for with the line of
    /// that, in 1024ths.
    pub(crate) reads_ahead: usize,
    /// Chance that an access which a core begins while its line serves a sibling
    /// thread is done before the line leaves, in 1024ths.
    pub(crate) line_reuse: usize,
    /// Chance that a locked operation directly after another is done before the line
    /// leaves, in 1024ths.
    pub(crate) own_reuse: usize,
    /// Chance that a read of a line which another core has written takes the only copy, in
    /// 1024ths.
    pub(crate) migrates: usize,
    /// Chance that a waiting write is served before reads, in 1024ths.
    pub(crate) writes_first: usize,
    /// Share of a transfer until the owner loses a line that no other CPU wants,
    /// in 1024ths.
    pub(crate) travel_share: u64,
    /// The snoop's share, in 1024ths.
    pub(crate) snoop_share: u64,
    /// The spread of latencies, in 1024ths.
    pub(crate) spread: u64,
    pub(crate) shared_read: u64,
    pub(crate) invalidate: u64,
    /// Says whether a write to a shared line waits for the farthest core of all.
    pub(crate) broadcast: bool,
    pub(crate) rmw: u64,
    pub(crate) unit: u64,
    pub(crate) mask: u64,
    pub(crate) l1: u64,
    pub(crate) l2: u64,
    pub(crate) pause: u64,
    pub(crate) store_buffer: usize,
    pub(crate) drain: u64,
    /// A system call that finds nothing to do.
    pub(crate) system_call: u64,
    /// The slowdown beside a sibling thread, in 1024ths.
    pub(crate) smt: u64,
    /// The factor by which work takes longer on a small core, in 1024ths.
    pub(crate) small: u64,
    pub(crate) clock_ghz: f64,
    pub(crate) x86: bool,
    pub(crate) virtualized: bool,
    pub(crate) arbitration: Arbitration,
    pub(crate) interrupt: (f64, u64),
    pub(crate) steal: (f64, u64),
}

impl Costs {
    pub(crate) fn new(machine: &Machine) -> Self {
        let ghz = machine.get(FigureKey::CoreClockGhz);
        let cycles = |key: FigureKey| machine.get(key) as u64;
        let ns = |key: FigureKey| (machine.get(key) * ghz).round() as u64;
        // Mean cycles between two, and cycles of one.
        let pair = |rate: FigureKey, length: FigureKey| {
            let rate = machine.get(rate);
            let mean = if rate > 0.0 { ghz * 1e9 / rate } else { 0.0 };
            (mean, (machine.get(length) * 1e3 * ghz) as u64)
        };
        let l1 = cycles(FigureKey::CoreL1Cycles);
        let transfer = [
            l1,
            l1,
            ns(FigureKey::TransferClusterNs),
            ns(FigureKey::TransferSocketNs),
            ns(FigureKey::TransferRemoteNs),
        ];
        let llc = match ns(FigureKey::TransferLlcNs) {
            0 => u64::MAX,
            llc => llc,
        };
        Self {
            transfer,
            memory: ns(FigureKey::TransferMemoryNs),
            llc,
            llc_is_nearest: llc <= transfer[2].min(transfer[3]),
            far_atomics: machine.get(FigureKey::CoreFarAtomics) > 0.0,
            far_rmw: ns(FigureKey::CoreFarRmwNs),
            wfe: cycles(FigureKey::CoreWfeCycles),
            early_ownership: (machine.get(FigureKey::CoreEarlyOwnership) * 1024.0) as usize,
            reads_ahead: (machine.get(FigureKey::CoreReadsAhead) * 1024.0) as usize,
            line_reuse: (machine.get(FigureKey::CoreLineReuse) * 1024.0) as usize,
            own_reuse: (machine.get(FigureKey::CoreOwnReuse) * 1024.0) as usize,
            migrates: (machine.get(FigureKey::DirectoryMigrates) * 1024.0) as usize,
            writes_first: (machine.get(FigureKey::DirectoryWritesFirst) * 1024.0) as usize,
            travel_share: ((machine.get(FigureKey::TransferRequestShare)
                + machine.get(FigureKey::TransferSnoopShare))
                * 1024.0) as u64,
            snoop_share: (machine.get(FigureKey::TransferSnoopShare) * 1024.0) as u64,
            spread: (machine.get(FigureKey::TransferSpread) * 1024.0) as u64,
            shared_read: ns(FigureKey::DirectorySharedReadNs),
            invalidate: ns(FigureKey::DirectoryInvalidateNs),
            broadcast: machine.get(FigureKey::DirectoryBroadcast) > 0.0,
            rmw: cycles(FigureKey::CoreRmwCycles),
            unit: cycles(FigureKey::CoreUnitCycles),
            mask: cycles(FigureKey::CoreMaskCycles),
            l1,
            l2: cycles(FigureKey::CoreL2Cycles),
            pause: cycles(FigureKey::CorePauseCycles),
            store_buffer: cycles(FigureKey::CoreStoreBuffer) as usize,
            drain: cycles(FigureKey::CoreDrainCycles),
            system_call: (machine.get(FigureKey::SchedulerCallUs) * 1e3 * ghz) as u64,
            smt: (machine.get(FigureKey::CoreSmtSlowdown) * 1024.0) as u64,
            small: (1024.0 / machine.get(FigureKey::CoreSmallSpeed)) as u64,
            clock_ghz: ghz,
            x86: machine.arch == Arch::X86_64,
            virtualized: machine.get(FigureKey::VmVcpus) > 0.0,
            arbitration: machine.arbitration,
            interrupt: pair(FigureKey::InterruptsPerSecond, FigureKey::InterruptsUs),
            steal: pair(FigureKey::VmStealPerSecond, FigureKey::VmStealUs),
        }
    }
}
