//! The workloads of a guest: names, programs, and the plan that the guest's
//! first program reads.

use crate::lengths::Lengths;
use locklab_harness::experiment::Key;
use locklab_harness::metric::{INSTRUCTIONS_KERNEL, L1I_MISSES_KERNEL};
use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload, as the guest's first program knows it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Boots, and nothing else
    Boot,
    /// fstat(2) by N processes, each on a file of its own
    Fstat,
    /// Two processes that wake each other through pipes
    ContextSwitch,
    /// Two threads that wake each other through pipes
    ContextSwitchThreads,
    /// ab against nginx, a connection for each request
    NginxChurn,
    /// db_bench -benchmarks=deleteseq, on a RAM file system
    RocksdbDeleteseq,
    /// fs_mark on XFS on a RAM disk
    FsMark,
    /// make of files of the kernel with gcc, from a RAM file system
    KernelBuild,
    /// Threads in the kernel that hold a spinlock for chosen lengths
    SpinlockMatrix,
    /// The kernel's own torture test of a lock: a check, not a comparison
    Locktorture,
}

/// A program that the guest needs, with the Debian package that has it.
pub type Program = (&'static str, &'static str);

impl Workload {
    /// Returns the name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Fstat => "fstat",
            Self::ContextSwitch => "context-switch",
            Self::ContextSwitchThreads => "context-switch-threads",
            Self::NginxChurn => "nginx-churn",
            Self::RocksdbDeleteseq => "rocksdb-deleteseq",
            Self::FsMark => "fs-mark",
            Self::KernelBuild => "kernel-build",
            Self::SpinlockMatrix => "spinlock-matrix",
            Self::Locktorture => "locktorture",
        }
    }

    /// Returns the programs that it runs.
    #[must_use]
    pub fn programs(self) -> &'static [Program] {
        match self {
            Self::NginxChurn => &[
                ("/usr/sbin/nginx", "nginx-light"),
                ("/usr/bin/ab", "apache2-utils"),
            ],
            Self::RocksdbDeleteseq => &[("/usr/bin/db_bench", "rocksdb-tools")],
            Self::FsMark => &[
                ("/usr/bin/fs_mark", "fsmark"),
                ("/usr/sbin/mkfs.xfs", "xfsprogs"),
            ],
            // And the compiler, wherever it is.
            Self::KernelBuild => &[("/usr/bin/make", "make"), ("/bin/sh", "dash")],
            _ => &[],
        }
    }

    /// Returns the modules of the build that it loads itself.
    #[must_use]
    pub fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Locktorture => &["kernel/torture.ko", "kernel/locking/locktorture.ko"],
            _ => &[],
        }
    }

    /// Returns a change to both kernels without which it cannot run: a patch of Locklab
    /// by its name and text, and the option that enables it.
    #[must_use]
    pub fn needs(self) -> Option<[&'static str; 3]> {
        match self {
            Self::SpinlockMatrix => Some([
                "spinlock-matrix.patch",
                include_str!("../experiments/patches/spinlock-matrix.patch"),
                "CONFIG_LOCKLAB_SPINLOCK_MATRIX=y",
            ]),
            _ => None,
        }
    }

    /// Returns the metric that decides. A loop that fits into the cache has hardly any
    /// misses, so for a lock in one it is the instructions.
    #[must_use]
    pub fn primary(self) -> &'static str {
        match self {
            Self::SpinlockMatrix => INSTRUCTIONS_KERNEL,
            _ => L1I_MISSES_KERNEL,
        }
    }

    /// Returns the CPU that its server has to itself where there are two, for a workload
    /// that has a server; the guest's program names it too.
    #[must_use]
    pub fn server_cpu(self) -> Option<u64> {
        (self == Self::NginxChurn).then_some(1)
    }

    /// Returns the memory of the guest, in MiB.
    #[must_use]
    pub fn memory_mib(self) -> u32 {
        match self {
            Self::RocksdbDeleteseq | Self::FsMark | Self::KernelBuild => 1536,
            _ => 512,
        }
    }

    /// Returns the units of work by default: seconds of a run under TCG.
    #[must_use]
    pub fn operations(self) -> u64 {
        match self {
            Self::Boot => 1,
            Self::Fstat => 50_000,
            Self::ContextSwitch | Self::ContextSwitchThreads => 20_000,
            Self::NginxChurn => 500,
            Self::RocksdbDeleteseq => 50_000,
            Self::FsMark => 500,
            Self::KernelBuild => 10,
            Self::SpinlockMatrix => 2_000,
            Self::Locktorture => 5,
        }
    }
}

/// A workload with its amount of work and its number of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// The program that runs in the guest.
    pub workload: Workload,
    /// Units of work in the measured part (of each process, where there are
    /// several; of the fastest thread, in each cell of a matrix; seconds for
    /// locktorture).
    pub operations: u64,
    /// Processes, where there are several.
    pub processes: u64,
    /// CPUs of the guest.
    pub vcpus: u64,
    /// The cells of a matrix, for the workload that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lengths: Option<Lengths>,
    /// The serial number of the disk that fs-mark overwrites; it takes a RAM disk
    /// without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Says whether the kernel's waits for locks are recorded, and nothing else is
    /// taken from the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
}

impl Load {
    /// Returns the workload of one process on one CPU; a matrix has the lengths of report 3.
    #[must_use]
    pub fn new(workload: Workload) -> Self {
        Self {
            workload,
            operations: workload.operations(),
            processes: 1,
            vcpus: 1,
            lengths: (workload == Workload::SpinlockMatrix).then(Lengths::default),
            disk: None,
            profile: false,
        }
    }

    /// Checks the load.
    ///
    /// # Errors
    /// If operations, processes or vCPUs are zero, or the lengths of a matrix
    /// are invalid (see [`Lengths::check`]).
    pub fn check(&self) -> Result<(), Error> {
        if self.operations == 0 || self.processes == 0 || self.vcpus == 0 {
            return Err(Error::Usage(
                "operations, processes and vCPUs start at 1".into(),
            ));
        }
        match &self.lengths {
            Some(lengths) => lengths.check(self.vcpus),
            None => Ok(()),
        }
    }

    /// Checks that QEMU's translator can count it, whose CPUs take turns: several then show
    /// what each of them runs, and never a lock that is waited for.
    ///
    /// # Errors
    /// A sentence, if it has several CPUs and is not a server with its client.
    pub fn check_in_turn(&self) -> Result<(), String> {
        match self.vcpus {
            1 => Ok(()),
            2 if self.workload.server_cpu().is_some() => Ok(()),
            vcpus => Err(format!(
                "{} on {vcpus} vCPUs needs KVM: QEMU's translator runs vCPUs in turn, so that no \
                 lock is contended as on hardware; leave out --vcpus (nginx-churn can have 2, one \
                 for the server and one for its client)",
                self.workload.name()
            )),
        }
    }

    /// Returns whether the translator runs its CPUs in turn, by a clock of instructions: what
    /// only looks at locks runs on CPUs that wait for one another.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        !self.profile && self.workload != Workload::Locktorture
    }

    /// Returns the CPU whose counts are those of the workload; all of them if none is named.
    #[must_use]
    pub fn counted_cpu(&self) -> Option<u64> {
        self.workload.server_cpu().filter(|cpu| *cpu < self.vcpus)
    }

    /// Returns the options that it needs on the kernel's command line.
    #[must_use]
    pub fn cmdline(&self) -> &'static str {
        match (self.workload, &self.disk) {
            // XFS needs 300 MB; pages are allocated as they are written.
            (Workload::FsMark, None) => "brd.rd_nr=1 brd.rd_size=524288",
            _ => "",
        }
    }

    /// Returns the plan for the guest: one `KEY VALUE` per line.
    #[must_use]
    pub fn plan(&self) -> String {
        let amount = match self.workload {
            Workload::Locktorture => "seconds",
            _ => "operations",
        };
        let mut plan = format!(
            "workload {}\n{amount} {}\nprocesses {}\nvcpus {}\n",
            self.workload.name(),
            self.operations,
            self.processes,
            self.vcpus
        );
        if let Some(lengths) = &self.lengths {
            let list = |of: &[u64]| of.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            plan.push_str(&format!(
                "threads {}\ncritical {}\nnon-critical {}\n",
                list(&lengths.threads(self.vcpus)),
                list(&lengths.critical),
                list(&lengths.non_critical)
            ));
        }
        if let Some(serial) = &self.disk {
            plan.push_str(&format!("disk {serial}\n"));
        }
        if self.profile {
            plan.push_str("profile locks\n");
        }
        plan
    }
}

/// Returns the key of a load in a variant.
pub fn cell_key(load: &Load, variant: &str) -> Key {
    Key::workload(load.workload.name(), variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_workload_is_one_of_the_guests() {
        let guest = include_str!("../guest/workloads.c");
        for workload in Workload::value_variants() {
            let name = workload.name();
            assert!(
                guest.contains(&format!("!strcmp(plan.workload, \"{name}\")")),
                "{name}"
            );
            let value = workload.to_possible_value().unwrap();
            assert_eq!(value.get_name(), name);
            assert_eq!(serde_json::to_value(workload).unwrap(), name);
        }
    }

    #[test]
    fn a_matrix_is_planned_for_the_cpus_that_are_there() {
        let load = Load {
            vcpus: 2,
            ..Load::new(Workload::SpinlockMatrix)
        };
        assert_eq!(
            load.plan(),
            "workload spinlock-matrix\noperations 2000\nprocesses 1\nvcpus 2\nthreads 1,2\n\
             critical 0,1,2,4,8,16,32,64,128\nnon-critical 1,32\n"
        );
        assert!(!Load::new(Workload::Fstat).plan().contains("critical"));
    }

    #[test]
    fn several_cpus_in_turn_are_for_a_server_and_its_client() {
        let load = |workload, vcpus| Load {
            vcpus,
            ..Load::new(workload)
        };
        let two = load(Workload::NginxChurn, 2);
        assert_eq!((two.check_in_turn(), two.counted_cpu()), (Ok(()), Some(1)));
        assert_eq!(load(Workload::NginxChurn, 1).counted_cpu(), None);
        assert_eq!(load(Workload::Fstat, 1).check_in_turn(), Ok(()));
        for wrong in [load(Workload::Fstat, 2), load(Workload::NginxChurn, 3)] {
            let why = wrong.check_in_turn().unwrap_err();
            assert!(
                why.contains("needs KVM") && why.contains("can have 2"),
                "{why}"
            );
        }
        let programs = include_str!("../guest/programs.c");
        assert!(programs.contains("#define SERVER_CPU 1\n"));
        assert!(two.in_turn() && !load(Workload::Locktorture, 4).in_turn());
    }

    #[test]
    fn the_patch_of_a_workload_has_its_option_and_our_licence() {
        let [name, text, option] = Workload::SpinlockMatrix.needs().unwrap();
        assert!(name.ends_with(".patch"));
        let symbol = option.trim_start_matches("CONFIG_").trim_end_matches("=y");
        assert!(text.contains(&format!("+config {symbol}\n")));
        assert!(text.contains("+// SPDX-License-Identifier: GPL-2.0"));
    }
}
