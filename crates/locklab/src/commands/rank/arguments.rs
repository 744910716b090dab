//! What `locklab rank` is asked: its options. Nothing is run here.

use super::needs::Need;
use crate::cli::OwnLockArgs;
use crate::commands::matrix::{ModelledSettings, NativeSettings, Threads, distinct};
use crate::comparing::ComparingArgs;
use clap::Args;
use locklab_lab::list::Numbers;
use locklab_lab::settings::DesignSettings;

/// `locklab rank`
///
/// Without names it ranks every lock that does what is needed.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Locks: names, C or C++ files, locks of a kernel (kernel:qspinlock)
    #[arg(value_name = "LOCK")]
    pub locks: Vec<String>,
    /// What every lock must be able to do: try, timeout, fifo, recursive,
    /// shared-memory, no-context, bytes<=N
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub needs: Vec<Need>,
    /// The lock that is in use today: the report says whether to keep it
    #[arg(long, value_name = "LOCK")]
    pub against: Option<String>,
    /// Numbers of threads, such as 1,2,4..64 [default: as in a matrix]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 1]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Numbers>,
    /// Lengths of the non-critical section [default: 32]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Numbers>,
    /// Measure the latency of each acquisition too, in slices of their own; a
    /// simulation always has it
    #[arg(long)]
    pub latency: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub design: DesignSettings,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its option has its own")]
    pub own: OwnLockArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub here: NativeSettings,
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub modelled: ModelledSettings,
}

/// The lengths to rank at.
pub(super) fn lengths(given: &Option<Numbers>, default: u64) -> Vec<u64> {
    distinct(given.as_ref().map_or(&[default][..], |list| &list.0))
}
