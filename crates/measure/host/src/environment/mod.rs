//! The kind of this machine, and its settings.
//!
//! Every report carries these facts, so that a reader can judge a figure
//! without asking. A fact that cannot be read gives the reason; none is ever
//! guessed, and nothing here panics on a machine without /proc or /sys.
//! This module never changes a setting.

mod fact;
mod root;

pub use fact::Fact;

use root::{Root, bracketed, on_off};
use std::path::Path;

/// The machine and its settings at one moment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The processor's name, as the kernel reports it.
    pub processor: Fact,
    /// Sockets, cores, CPUs.
    pub topology: Fact,
    /// The hypervisor's name, or "none".
    pub hypervisor: Fact,
    /// NUMA nodes and the CPUs of each.
    pub numa: Fact,
    /// CPUs that this process may use, and its quota if there is one.
    pub allowed: Fact,
    /// Kernel release and architecture.
    pub kernel: Fact,
    /// The compiler that built this program, and so the locks.
    pub compiler: Fact,
    /// Frequency governor, of all CPUs.
    pub governor: Fact,
    /// Turbo or boost: on or off.
    pub turbo: Fact,
    /// Simultaneous multithreading: on, off, or not supported.
    pub smt: Fact,
    /// CPU vulnerabilities and the kernel's mitigations.
    pub mitigations: Fact,
    /// NMI watchdog, which takes a counter: on or off.
    pub nmi_watchdog: Fact,
    /// `kernel.perf_event_paranoid`.
    pub perf_paranoid: Fact,
    /// Address space layout randomisation.
    pub aslr: Fact,
    /// Transparent huge pages.
    pub huge_pages: Fact,
    /// The kernel's clock source.
    pub clock_source: Fact,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Fact,
    /// Boot options that change timing, such as isolcpus and mitigations.
    pub boot_options: Fact,
    /// The number of CPUs that a control group allows, if one limits them.
    pub quota: Option<f64>,
}

/// Counts the periods in which a CPU quota has stopped threads of this process so far;
/// `None` without a quota.
#[must_use]
pub fn throttled() -> Option<u64> {
    Root(Path::new("/")).throttled()
}

impl Environment {
    /// Reads the environment of this machine.
    #[must_use]
    pub fn read() -> Self {
        let mut environment = Self::read_from(Path::new("/"));
        if let Some(name) = cpuid_hypervisor() {
            environment.hypervisor = Fact::Known(name);
        }
        environment
    }

    /// Reads the environment of the machine whose /proc and /sys are below
    /// `root`.
    #[must_use]
    pub fn read_from(root: &Path) -> Self {
        let root = Root(root);
        Self {
            processor: root.processor(),
            topology: root.topology(),
            hypervisor: root.hypervisor(),
            numa: root.numa(),
            allowed: root.allowed(),
            quota: root.quota(),
            kernel: root
                .read("proc/sys/kernel/osrelease")
                .map(|release| format!("Linux {release}, {}", std::env::consts::ARCH)),
            compiler: Fact::Known(env!("LOCKLAB_COMPILER").into()),
            governor: root.governor(),
            turbo: root.turbo(),
            smt: root.smt(),
            mitigations: root.mitigations(),
            nmi_watchdog: root
                .read("proc/sys/kernel/nmi_watchdog")
                .map(|x| on_off(x != "0")),
            perf_paranoid: root.read("proc/sys/kernel/perf_event_paranoid"),
            aslr: root.read("proc/sys/kernel/randomize_va_space").map(|x| {
                match x {
                    "0" => "off",
                    "1" => "on, without the heap",
                    _ => "on",
                }
                .into()
            }),
            huge_pages: root
                .read("sys/kernel/mm/transparent_hugepage/enabled")
                .map(|x| bracketed(x).to_owned()),
            clock_source: root
                .read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: root.read("proc/loadavg").map(|x| {
                let averages: Vec<&str> = x.split_whitespace().take(3).collect();
                averages.join(" ")
            }),
            boot_options: root.boot_options(),
        }
    }

    /// Returns a name for the machine: processor and number of CPUs.
    #[must_use]
    pub fn name(&self) -> String {
        let processor = self.processor.known().unwrap_or("an unknown processor");
        match self.topology.known() {
            Some(topology) => format!("{processor}, {topology}"),
            None => processor.to_owned(),
        }
    }

    /// Returns whether a hypervisor was seen.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.hypervisor.known().is_some_and(|h| h != "none")
    }

    /// Returns the facts as a report prints them, in its order.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        [
            ("Machine", &self.processor),
            ("CPUs", &self.topology),
            ("Hypervisor", &self.hypervisor),
            ("NUMA", &self.numa),
            ("Allowed", &self.allowed),
            ("Kernel", &self.kernel),
            ("Boot options", &self.boot_options),
            ("Compiler", &self.compiler),
            ("Governor", &self.governor),
            ("Turbo", &self.turbo),
            ("SMT", &self.smt),
            ("Mitigations", &self.mitigations),
            ("NMI watchdog", &self.nmi_watchdog),
            ("ASLR", &self.aslr),
            ("Huge pages", &self.huge_pages),
            ("Clock source", &self.clock_source),
            ("Load", &self.load),
        ]
        .map(|(name, fact)| (name.to_owned(), fact.to_string()))
        .into()
    }

    /// Returns the facts about this machine that a reader of contended figures must
    /// know.
    #[must_use]
    pub fn caveats(&self) -> Vec<String> {
        let mut list = Vec::new();
        if self.is_virtual() {
            list.push(
                "A virtual machine: the host moves its CPUs and runs others on them; figures \
                 are over the placements that it gave."
                    .into(),
            );
        }
        if let Some(governor) = self.governor.known().filter(|g| *g != "performance") {
            list.push(format!(
                "The governor is {governor}: frequencies change during a run; 'performance' \
                 holds them."
            ));
        }
        if let Some(quota) = self.quota {
            list.push(format!(
                "A quota of {quota:.2} CPUs (the control group's CFS bandwidth): threads that \
                 have used it up are stopped for the rest of each period. Use no more threads, \
                 or lift it."
            ));
        }
        let load = self
            .load
            .known()
            .and_then(|l| l.split(' ').next()?.parse().ok());
        if let Some(load) = load.filter(|load: &f64| *load >= 0.5) {
            list.push(format!(
                "The load was {load} before the first run: something else ran."
            ));
        }
        list
    }
}

/// Returns the hypervisor that CPUID names; `None` where there is no CPUID.
fn cpuid_hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use raw_cpuid::{CpuId, Hypervisor};
        let cpuid = CpuId::new();
        if !cpuid.get_feature_info()?.has_hypervisor() {
            return Some("none".into());
        }
        let name = match cpuid.get_hypervisor_info().map(|h| h.identify()) {
            Some(Hypervisor::Unknown(..)) | None => return None,
            Some(known) => format!("{known:?}"),
        };
        Some(name)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let environment = Environment::read_from(root.path());
        (root, environment)
    }

    #[test]
    fn a_machine_without_proc_says_why_for_each_fact() {
        let (_root, environment) = machine(&[]);
        for (name, value) in environment.facts() {
            if name != "Compiler" && name != "CPUs" {
                assert!(value.starts_with("unknown ("), "{name}: {value}");
            }
        }
        assert!(environment.caveats().is_empty());
        assert!(!environment.is_virtual());
    }

    #[test]
    fn a_server_is_read() {
        let cpus = "sys/devices/system/cpu";
        let (_root, environment) = machine(&[
            (
                "proc/cpuinfo",
                "model name\t: Example  9000\nflags\t\t: fpu hypervisor\n",
            ),
            ("proc/sys/kernel/osrelease", "6.19.0\n"),
            ("proc/sys/kernel/nmi_watchdog", "1\n"),
            ("proc/loadavg", "2.50 1.00 0.50 1/300 4711\n"),
            (
                "proc/cmdline",
                "root=/dev/sda quiet isolcpus=2,3 -- mitigations=off\n",
            ),
            ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n"),
            ("proc/self/cgroup", "0::/job\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            (&format!("{cpus}/online"), "0-2,7\n"),
            (&format!("{cpus}/cpu0/topology/physical_package_id"), "0\n"),
            (
                &format!("{cpus}/cpu0/topology/thread_siblings_list"),
                "0,2\n",
            ),
            (
                &format!("{cpus}/cpu0/cpufreq/scaling_governor"),
                "powersave\n",
            ),
            (&format!("{cpus}/cpu2/topology/physical_package_id"), "0\n"),
            (
                &format!("{cpus}/cpu2/topology/thread_siblings_list"),
                "0,2\n",
            ),
            (&format!("{cpus}/intel_pstate/no_turbo"), "1\n"),
            (&format!("{cpus}/smt/control"), "on\n"),
            (&format!("{cpus}/smt/active"), "1\n"),
            (
                &format!("{cpus}/vulnerabilities/meltdown"),
                "Mitigation: PTI\n",
            ),
            (&format!("{cpus}/vulnerabilities/l1tf"), "Not affected\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("sys/devices/system/node/node0/cpulist", "0-7\n"),
        ]);
        assert_eq!(environment.name(), "Example 9000, 1 socket, 1 core, 4 CPUs");
        let facts = environment.facts();
        let fact = |name: &str| &facts.iter().find(|(n, _)| n == name).unwrap().1;
        assert_eq!(fact("Hypervisor"), "yes, of unknown name");
        assert_eq!(fact("Allowed"), "CPUs 0-1; quota: 1.50 CPUs");
        assert_eq!(fact("Boot options"), "isolcpus=2,3");
        assert_eq!(fact("Governor"), "powersave");
        assert_eq!(fact("Turbo"), "off");
        assert_eq!(fact("SMT"), "on");
        assert_eq!(fact("Mitigations"), "on: meltdown (PTI); vulnerable: none");
        assert_eq!(fact("NMI watchdog"), "on");
        assert_eq!(fact("Huge pages"), "madvise");
        assert_eq!(fact("NUMA"), "node 0: CPUs 0-7");
        assert_eq!(environment.caveats().len(), 4);
        assert!(environment.caveats()[2].starts_with("A quota of 1.50 CPUs"));
    }

    #[test]
    fn a_quota_of_the_older_control_groups_is_read_and_no_quota_is_none() {
        for (quota, expected) in [("50000\n", Some(0.5)), ("-1\n", None)] {
            let folder = "sys/fs/cgroup/cpu,cpuacct/job";
            let (root, environment) = machine(&[
                (
                    "proc/self/cgroup",
                    "4:memory:/x\n3:cpu,cpuacct:/job\n0::/\n",
                ),
                (&format!("{folder}/cpu.cfs_quota_us"), quota),
                (&format!("{folder}/cpu.cfs_period_us"), "100000\n"),
                (
                    &format!("{folder}/cpu.stat"),
                    "nr_periods 9\nnr_throttled 3\n",
                ),
            ]);
            assert_eq!(environment.quota, expected);
            assert_eq!(Root(root.path()).throttled(), expected.map(|_| 3));
        }
    }

    #[test]
    fn the_least_quota_of_a_group_and_those_around_it_counts_with_all_that_stopped() {
        let (root, environment) = machine(&[
            ("proc/self/cgroup", "0::/a.slice/b.scope\n"),
            ("sys/fs/cgroup/cpu.stat", "nr_throttled 1000\n"),
            ("sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n"),
            (
                "sys/fs/cgroup/a.slice/cpu.stat",
                "usage_usec 5\nnr_throttled 4\n",
            ),
            ("sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(environment.quota, Some(1.5));
        assert_eq!(Root(root.path()).throttled(), Some(4));
    }

    #[test]
    fn this_machine_is_read_without_a_panic() {
        let environment = Environment::read();
        assert!(!environment.name().is_empty());
        assert_eq!(environment.facts().len(), 17);
    }
}
