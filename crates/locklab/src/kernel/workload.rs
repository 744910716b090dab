//! What runs inside a guest: names, programs, and the plan that the guest's
//! first program is given.

use serde::{Deserialize, Serialize};

/// A workload, as the guest's first program knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
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
    /// The kernel's own torture test of a lock: a check, not a comparison
    Locktorture,
}

/// A program that the guest needs, with the Debian package that has it.
pub type Program = (&'static str, &'static str);

impl Workload {
    /// Its name on the command line and in files.
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
            Self::Locktorture => "locktorture",
        }
    }

    /// Programs that it runs.
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
            _ => &[],
        }
    }

    /// Modules of the build that it loads itself.
    #[must_use]
    pub fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Locktorture => &["kernel/torture.ko", "kernel/locking/locktorture.ko"],
            _ => &[],
        }
    }

    /// Memory of the guest, in MiB.
    #[must_use]
    pub fn memory_mib(self) -> u32 {
        match self {
            Self::RocksdbDeleteseq | Self::FsMark => 1536,
            _ => 512,
        }
    }

    /// What it needs on the kernel's command line.
    #[must_use]
    pub fn cmdline(self) -> &'static str {
        match self {
            // XFS wants 300 MB; pages are taken as they are written.
            Self::FsMark => "brd.rd_nr=1 brd.rd_size=524288",
            _ => "",
        }
    }

    /// Units of work by default: seconds of a run under TCG.
    #[must_use]
    pub fn operations(self) -> u64 {
        match self {
            Self::Boot => 1,
            Self::Fstat => 50_000,
            Self::ContextSwitch | Self::ContextSwitchThreads => 20_000,
            Self::NginxChurn => 500,
            Self::RocksdbDeleteseq => 50_000,
            Self::FsMark => 500,
            Self::Locktorture => 5,
        }
    }
}

/// How much of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Which.
    pub workload: Workload,
    /// Units of work in the measured part (of each process, where there are
    /// several; seconds for locktorture).
    pub operations: u64,
    /// Processes, where there are several.
    pub processes: u64,
}

impl Load {
    /// The plan for the guest: one `KEY VALUE` a line.
    #[must_use]
    pub fn plan(&self) -> String {
        let amount = match self.workload {
            Workload::Locktorture => "seconds",
            _ => "operations",
        };
        format!(
            "workload {}\n{amount} {}\nprocesses {}\n",
            self.workload.name(),
            self.operations,
            self.processes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_workload_is_one_of_the_guests() {
        let guest = include_str!("../../kernel/init.c");
        for workload in Workload::value_variants() {
            let name = workload.name();
            assert!(
                guest.contains(&format!("!strcmp(workload, \"{name}\")")),
                "{name}"
            );
            let value = workload.to_possible_value().unwrap();
            assert_eq!(value.get_name(), name);
            assert_eq!(serde_json::to_value(workload).unwrap(), name);
        }
    }
}
