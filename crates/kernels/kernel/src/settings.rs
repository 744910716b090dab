//! Settings of guests: options of the command line, and keys of a file of
//! kernels.

use crate::workload::Load;
use clap::Args;
use locklab_frontend::Processor;
use locklab_harness::settings::{Limit, NewName, Renamed};
use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Says how guests are run.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Kernels in a guest")]
#[serde(default)]
pub struct GuestSettings {
    /// Units of work in the measured part; the workload's by default.
    #[arg(skip)]
    pub operations: Option<u64>,
    /// CPUs of the virtual machine; without KVM 2 for nginx-churn, one of which is counted and
    /// runs the server alone, and 1 for all others [default: 1]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub vcpus: Option<u64>,
    /// Time limit of one boot, in seconds; 900 by default.
    #[arg(skip)]
    pub boot_limit: Option<Limit>,
    /// The name of this limit in 0.2, refused with the new one.
    #[arg(skip)]
    #[schemars(skip)]
    pub time_limit: Option<Renamed<BootLimit>>,
    /// Each workload runs once more in every pair and records which of the kernel's locks
    /// were waited for; kernels are then built with its tracepoints.
    #[arg(skip)]
    pub lock_profile: bool,
    /// The processor whose front end is modelled: where QEMU's translator counts, a name
    /// that locklab frontend knows, or none [default: the file's, or none]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub processor: Option<String>,
    /// Model a prefetcher of the L1i: a miss brings in the next line too
    #[arg(long, hide_short_help = true)]
    pub next_line: bool,
    /// KVM is not used; QEMU's translator counts.
    #[arg(skip)]
    pub tcg: bool,
    /// KVM is tested again, even if it was tested since this machine was booted.
    #[arg(skip)]
    pub probe: bool,
}

/// `[test_machine]`: a test machine on which the kernels run, reached by ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TestMachineSettings {
    /// The machine, as `ssh:root@testhost`.
    pub on: Option<Target>,
    /// Address of the network card that the measured kernels use; that of the
    /// ssh connection by default.
    pub mac: Option<String>,
    /// IPv4 address of the measured kernels, as `192.0.2.7/24`; that of the ssh
    /// connection by default.
    pub ip: Option<String>,
    /// The router to that address; the machine's own by default.
    pub gateway: Option<String>,
    /// Says where each measured kernel starts from.
    pub boot: BootFrom,
    /// CPUs that the measured kernels bring up; all by default.
    pub cpus: Option<u64>,
    /// A command on this machine that switches the other off and on again.
    pub power_cycle: Option<String>,
    /// A command on this machine that prints the other's console for as long as
    /// it runs.
    pub console: Option<String>,
    /// Serial number of a disk of the machine that fs-mark makes a file system on:
    /// what is there is lost. `--scratch-disk` must say the same; a RAM disk
    /// without both.
    pub scratch_disk: Option<String>,
    /// Holds the value of `--scratch-disk`.
    #[serde(skip)]
    pub typed_disk: Option<String>,
    /// Seconds within which a kernel is up, a workload ends, and the machine is
    /// home again.
    pub limit: Option<Limit>,
}

impl TestMachineSettings {
    /// Returns the serial number of the disk that may be overwritten, if there is one.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file and the command line do not name the same, or it is no serial
    /// number.
    pub fn disk(&self) -> Result<Option<&str>, Error> {
        let serial = match (self.scratch_disk.as_deref(), self.typed_disk.as_deref()) {
            (None, None) => return Ok(None),
            (Some(file), Some(typed)) if file == typed => file,
            (Some(file), Some(typed)) => {
                return Err(Error::Usage(format!(
                    "the file names the disk {file}, and --scratch-disk {typed}: nothing is \
                     overwritten unless both name the same"
                )));
            }
            (Some(file), None) => {
                return Err(Error::Usage(format!(
                    "fs-mark would overwrite the disk with the serial number {file}; confirm it \
                     by --scratch-disk {file}, or leave scratch_disk out of [test_machine]"
                )));
            }
            (None, Some(typed)) => {
                return Err(Error::Usage(format!(
                    "--scratch-disk {typed} is overwritten by fs-mark only if the file says so \
                     too; write scratch_disk = \"{typed}\" in [test_machine]"
                )));
            }
        };
        if self.on.is_none() {
            return Err(Error::Usage(
                "a scratch disk is one of a test machine; give --host ssh:root@testhost".into(),
            ));
        }
        let good = serial.trim() == serial
            && (1..=128).contains(&serial.len())
            && !serial.chars().any(char::is_control);
        match good {
            true => Ok(Some(serial)),
            false => Err(Error::Usage(format!(
                "'{serial}' is not the serial number of a disk"
            ))),
        }
    }
}

/// Says where a measured kernel starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BootFrom {
    /// The machine's own system, after a restart: each kernel finds the
    /// machine as its firmware left it.
    #[default]
    Home,
    /// The kernel before it: quicker, and devices are as that one left them.
    Chain,
}

/// A test machine, as `ssh:root@testhost`: what follows the colon is ssh's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Target(String);

impl Target {
    /// Returns what ssh is given as its destination.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let destination = text.strip_prefix("ssh:").unwrap_or_default();
        let good = !destination.starts_with('-')
            && destination
                .chars()
                .all(|c| !c.is_whitespace() && !c.is_control());
        match (destination, good) {
            ("", _) | (_, false) => Err(format!(
                "'{text}' is not a test machine; write ssh:root@testhost, or another name that ssh knows"
            )),
            _ => Ok(Self(destination.to_owned())),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        format!("ssh:{}", target.0)
    }
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

/// Says how KVM is looked for.
#[derive(Clone, Copy, Debug)]
pub struct ProbeOptions {
    /// Says whether to use TCG without a probe.
    pub tcg: bool,
    /// Says whether to probe again, whatever was found before.
    pub again: bool,
}

/// Stands for `time_limit`, the name of the limit of a boot in 0.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootLimit {}

impl NewName for BootLimit {
    const SENTENCE: &'static str = "a time limit is of a whole comparison, and this limits one \
                                    boot; write boot_limit";
}

/// The limit of a boot, unless another was given.
pub const BOOT_LIMIT: Limit = Limit::seconds(900);

impl GuestSettings {
    /// Returns the CPUs of a guest.
    #[must_use]
    pub fn vcpus(&self) -> u64 {
        self.vcpus.unwrap_or(1)
    }

    /// Checks the loads where the translator was asked for, before a build of many minutes.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of them needs KVM, by [`Load::check_in_turn`].
    pub fn check(&self, loads: &[Load]) -> Result<(), Error> {
        if self.tcg {
            for load in loads {
                load.check_in_turn().map_err(Error::Usage)?;
            }
        }
        Ok(())
    }

    /// Returns the processor whose front end is modelled, if any.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no processor of this name.
    pub fn processor(&self) -> Result<Option<&str>, Error> {
        match self.processor.as_deref() {
            None | Some("none") => Ok(None),
            Some(name) => Processor::named(name)
                .map(|_| Some(name))
                .map_err(|e| Error::Usage(e.to_string())),
        }
    }

    /// Refuses what only guests of QEMU have.
    ///
    /// # Errors
    /// If such an option was given, with what a test machine has instead.
    pub fn refuse_on_a_test_machine(&self) -> Result<(), Error> {
        for (given, option, instead) in [
            (self.vcpus.is_some(), "--vcpus", "give [test_machine] cpus"),
            (
                self.boot_limit.is_some(),
                "boot_limit",
                "give [test_machine] limit",
            ),
            (self.next_line, "--next-line", "leave it out"),
            (self.tcg, "tcg", "leave it out"),
            (self.probe, "probe", "leave it out"),
        ] {
            if given {
                return Err(Error::Usage(format!(
                    "{option} is for guests of QEMU, and these kernels run on a test machine; \
                     {instead}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the time limit of a boot.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.boot_limit.unwrap_or(BOOT_LIMIT).duration()
    }

    /// Returns whether KVM is used, and looked for again.
    #[must_use]
    pub fn probe_options(&self) -> ProbeOptions {
        ProbeOptions {
            tcg: self.tcg,
            again: self.probe,
        }
    }
}
