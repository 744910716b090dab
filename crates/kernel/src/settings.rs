//! Settings of guests: options of the command line, and keys of a file of
//! kernels.

use crate::kvm::ProbeOptions;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::settings::{Limit, NewName, Renamed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How guests are run.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GuestSettings {
    /// Units of work in the measured part [default: the workload's]
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// CPUs of a guest; more than one require KVM [default: 1]
    #[arg(long, value_name = "N")]
    pub vcpus: Option<u64>,
    /// Time limit of one boot, in seconds [default: 900]
    #[arg(long, value_name = "SECONDS")]
    pub boot_limit: Option<Limit>,
    /// Its old name.
    #[arg(long, hide = true)]
    #[schemars(skip)]
    pub time_limit: Option<Renamed<BootLimit>>,
    /// Do not use KVM; count by the model
    #[arg(long)]
    pub tcg: bool,
    /// Probe KVM again, whatever was found since the machine was started
    #[arg(long, conflicts_with = "tcg")]
    pub probe: bool,
}

/// What `time_limit` meant where kernels are booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootLimit {}

impl NewName for BootLimit {
    const SENTENCE: &'static str = "a time limit is of a whole comparison, and this limits one \
                                    boot; write --boot-limit, in a file boot_limit";
}

/// The limit of a boot, unless another was given.
pub const BOOT_LIMIT: Limit = Limit::seconds(900);

impl GuestSettings {
    /// CPUs of a guest.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are several without KVM. This is checked
    /// before a build of many minutes.
    pub fn vcpus(&self) -> Result<u64, Error> {
        match self.vcpus.unwrap_or(1) {
            2.. if self.tcg => Err(Error::Usage(
                "several vCPUs take KVM; leave out --tcg or --vcpus".into(),
            )),
            vcpus => Ok(vcpus),
        }
    }

    /// The time limit of a boot.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.boot_limit.unwrap_or(BOOT_LIMIT).duration()
    }

    /// Whether KVM is used, and looked for again.
    #[must_use]
    pub fn probe_options(&self) -> ProbeOptions {
        ProbeOptions {
            tcg: self.tcg,
            again: self.probe,
        }
    }
}
