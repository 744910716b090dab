//! Reads /proc and /sys below any root folder.
//!
//! There is one function per fact, each of which returns the reason if it finds
//! none.

use super::fact::Fact;
use std::path::{Path, PathBuf};

/// Boot options that change what is measured; the others are left out of reports.
const BOOT_OPTIONS: [&str; 16] = [
    "mitigations",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "nosmt",
    "maxcpus",
    "nr_cpus",
    "idle",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "nopvspin",
    "preempt",
    "clocksource",
    "tsc",
];

/// Holds the folder of /proc and /sys.
pub(super) struct Root<'a>(pub(super) &'a Path);

impl Root<'_> {
    /// Returns a file's text without its last newline.
    pub(super) fn read(&self, path: &str) -> Fact {
        match std::fs::read(self.0.join(path)) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                match text.trim() {
                    "" => Fact::Unknown(format!("/{path} is empty")),
                    text => Fact::Known(text.to_owned()),
                }
            }
            Err(error) => Fact::Unknown(match error.kind() {
                std::io::ErrorKind::NotFound => format!("no /{path}"),
                std::io::ErrorKind::PermissionDenied => format!("may not read /{path}"),
                _ => format!("/{path}: {error}"),
            }),
        }
    }

    /// Reads a file, with a reason of its own if the file does not exist.
    fn read_or(&self, path: &str, why: &str) -> Fact {
        match self.0.join(path).try_exists() {
            Ok(false) => Fact::Unknown(why.into()),
            _ => self.read(path),
        }
    }

    /// Returns the names in a folder that consist of `prefix` and a number, in order of
    /// the numbers.
    fn numbered(&self, folder: &str, prefix: &str) -> Vec<(usize, PathBuf)> {
        let Ok(entries) = std::fs::read_dir(self.0.join(folder)) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let number = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
                Some((number, Path::new(folder).join(&name)))
            })
            .collect();
        found.sort();
        found
    }

    fn at(&self, folder: &Path, file: &str) -> Fact {
        match folder.join(file).to_str() {
            Some(path) => self.read(path),
            None => Fact::Unknown("a path that is not UTF-8".into()),
        }
    }

    pub(super) fn processor(&self) -> Fact {
        let info = match self.read("proc/cpuinfo") {
            Fact::Known(info) => info,
            unknown => return unknown,
        };
        // These are the keys of x86 and s390, RISC-V and LoongArch, 32-bit ARM, and POWER.
        for key in ["model name", "uarch", "Processor", "cpu"] {
            if let Some(value) = field(&info, key) {
                return Fact::Known(value.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
        match (field(&info, "CPU implementer"), field(&info, "CPU part")) {
            (Some(implementer), Some(part)) => {
                Fact::Known(format!("ARM implementer {implementer}, part {part}"))
            }
            _ => Fact::Unknown("/proc/cpuinfo names no model".into()),
        }
    }

    pub(super) fn topology(&self) -> Fact {
        let online = self.read("sys/devices/system/cpu/online");
        let count = match online.known().and_then(count_cpus) {
            Some(count) => count,
            None => match std::thread::available_parallelism() {
                Ok(n) => return Fact::Known(plural(n.get(), "CPU", "CPUs")),
                Err(error) => return Fact::Unknown(error.to_string()),
            },
        };
        let mut cores = std::collections::BTreeSet::new();
        let mut sockets = std::collections::BTreeSet::new();
        for (_, cpu) in self.numbered("sys/devices/system/cpu", "cpu") {
            let topology = cpu.join("topology");
            let socket = self.at(&topology, "physical_package_id");
            if let Some(socket) = socket.known() {
                sockets.insert(socket.to_owned());
            }
            if let Some(siblings) = self.at(&topology, "thread_siblings_list").known() {
                cores.insert(siblings.to_owned());
            }
        }
        if cores.is_empty() || sockets.is_empty() {
            return Fact::Known(plural(count, "CPU", "CPUs"));
        }
        Fact::Known(format!(
            "{}, {}, {}",
            plural(sockets.len(), "socket", "sockets"),
            plural(cores.len(), "core", "cores"),
            plural(count, "CPU", "CPUs")
        ))
    }

    pub(super) fn hypervisor(&self) -> Fact {
        for path in [
            "sys/hypervisor/type",
            "proc/device-tree/hypervisor/compatible",
        ] {
            if let Fact::Known(name) = self.read(path) {
                return Fact::Known(name.trim_matches('\0').to_owned());
            }
        }
        let flags = match self.read("proc/cpuinfo") {
            Fact::Known(info) => field(&info, "flags").map(str::to_owned),
            Fact::Unknown(_) => None,
        };
        match flags {
            Some(flags) if flags.split(' ').any(|f| f == "hypervisor") => {
                Fact::Known("yes, of unknown name".into())
            }
            // On x86 every hypervisor that does not hide itself sets this flag.
            Some(_) => Fact::Known("none".into()),
            None => Fact::Unknown("this architecture does not report it".into()),
        }
    }

    pub(super) fn numa(&self) -> Fact {
        let nodes = self.numbered("sys/devices/system/node", "node");
        if nodes.is_empty() {
            return Fact::Unknown("no /sys/devices/system/node".into());
        }
        let cpus: Vec<String> = nodes
            .iter()
            .map(|(n, path)| {
                let list = self.at(path, "cpulist");
                format!("node {n}: CPUs {}", list.known().unwrap_or("none"))
            })
            .collect();
        Fact::Known(cpus.join("; "))
    }

    pub(super) fn allowed(&self) -> Fact {
        let status = match self.read("proc/self/status") {
            Fact::Known(status) => status,
            unknown => return unknown,
        };
        let Some(list) = field(&status, "Cpus_allowed_list") else {
            return Fact::Unknown("/proc/self/status does not say".into());
        };
        let mut text = format!("CPUs {list}");
        if let Some(isolated) = self.read("sys/devices/system/cpu/isolated").known() {
            text.push_str(&format!("; isolated: {isolated}"));
        }
        if let Some(quota) = self.quota() {
            text.push_str(&format!("; quota: {quota:.2} CPUs"));
        }
        Fact::Known(text)
    }

    /// Returns the number of CPUs that the control groups of this process allow, if one of
    /// them or of those around it limits them.
    pub(super) fn quota(&self) -> Option<f64> {
        let quotas = self
            .cpu_groups()
            .into_iter()
            .filter_map(|g| self.quota_of(&g));
        quotas.reduce(f64::min)
    }

    /// Counts the periods in which the threads of those groups were stopped so far, because
    /// their quota was used up; `None` without a quota.
    pub(super) fn throttled(&self) -> Option<u64> {
        let limited = self
            .cpu_groups()
            .into_iter()
            .filter(|g| self.quota_of(g).is_some());
        let periods = limited.filter_map(|group| {
            let stat = self.read(&format!("{group}/cpu.stat"));
            let of = |line: &str| line.strip_prefix("nr_throttled ")?.trim().parse().ok();
            stat.known()?.lines().find_map(of)
        });
        periods.reduce(|a: u64, b| a + b)
    }

    /// Returns the folders of the control groups that may limit this process's CPUs: its own
    /// one and those around it.
    fn cpu_groups(&self) -> Vec<String> {
        let groups = self.read("proc/self/cgroup");
        let found = groups.known().unwrap_or_default().lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, own) = (fields.next()?, fields.next()?);
            // Version 1 is mounted by the names of its controllers.
            let mounted = match controllers {
                "" => "sys/fs/cgroup".into(),
                _ if controllers.split(',').any(|name| name == "cpu") => {
                    format!("sys/fs/cgroup/{controllers}")
                }
                _ => return None,
            };
            Some((mounted, own.trim_matches('/').to_owned()))
        });
        let Some((mounted, own)) = found else {
            return Vec::new();
        };
        let ends = own.match_indices('/').map(|(at, _)| at).chain([own.len()]);
        let below = ends
            .filter(|at| *at > 0)
            .map(|at| format!("{mounted}/{}", &own[..at]));
        std::iter::once(mounted.clone()).chain(below).collect()
    }

    fn quota_of(&self, group: &str) -> Option<f64> {
        let ratio = |quota: &str, period: &str| {
            let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
            (quota > 0.0 && period > 0.0).then_some(quota / period)
        };
        let file = |name: &str| self.read(&format!("{group}/{name}"));
        match file("cpu.max").known() {
            Some(max) => {
                let (quota, period) = max.split_once(' ')?;
                ratio(quota, period)
            }
            None => ratio(
                file("cpu.cfs_quota_us").known()?,
                file("cpu.cfs_period_us").known()?,
            ),
        }
    }

    pub(super) fn governor(&self) -> Fact {
        let mut names = std::collections::BTreeSet::new();
        for (_, cpu) in self.numbered("sys/devices/system/cpu", "cpu") {
            if let Fact::Known(name) = self.at(&cpu.join("cpufreq"), "scaling_governor") {
                names.insert(name);
            }
        }
        if names.is_empty() {
            return Fact::Unknown("no cpufreq, as in most virtual machines".into());
        }
        Fact::Known(names.into_iter().collect::<Vec<_>>().join(" and "))
    }

    pub(super) fn turbo(&self) -> Fact {
        if let Fact::Known(off) = self.read("sys/devices/system/cpu/intel_pstate/no_turbo") {
            return Fact::Known(on_off(off == "0"));
        }
        self.read_or(
            "sys/devices/system/cpu/cpufreq/boost",
            "no switch for it, as in most virtual machines",
        )
        .map(|on| on_off(on == "1"))
    }

    pub(super) fn smt(&self) -> Fact {
        let control = self.read("sys/devices/system/cpu/smt/control");
        if control.known() == Some("notsupported") {
            return Fact::Known("not supported, or hidden by the hypervisor".into());
        }
        self.read("sys/devices/system/cpu/smt/active")
            .map(|on| on_off(on == "1"))
    }

    pub(super) fn mitigations(&self) -> Fact {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        let Ok(entries) = std::fs::read_dir(self.0.join(folder)) else {
            return Fact::Unknown(format!("no /{folder}"));
        };
        let mut states: Vec<(String, String)> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let Fact::Known(state) = self.read(&format!("{folder}/{name}")) else {
                    return None;
                };
                Some((name, state))
            })
            .collect();
        states.sort();
        let of = |prefix: &str| -> Vec<String> {
            states
                .iter()
                .filter_map(|(name, state)| {
                    let rest = state.strip_prefix(prefix)?;
                    // The first mitigation is the one that costs time.
                    let first = rest.trim_start_matches([':', ' ']).split([';', ',']).next();
                    Some(match first {
                        Some(first) if !first.is_empty() => format!("{name} ({first})"),
                        _ => name.clone(),
                    })
                })
                .collect()
        };
        let (mitigated, vulnerable) = (of("Mitigation"), of("Vulnerable"));
        let list = |what: &[String]| match what {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        Fact::Known(format!(
            "on: {}; vulnerable: {}",
            list(&mitigated),
            list(&vulnerable)
        ))
    }

    pub(super) fn boot_options(&self) -> Fact {
        self.read("proc/cmdline").map(|line| {
            let found: Vec<&str> = line
                .split_whitespace()
                .take_while(|word| *word != "--")
                .filter(|word| {
                    let name = word.split('=').next().unwrap_or(word);
                    BOOT_OPTIONS.contains(&name)
                })
                .collect();
            if found.is_empty() {
                "none that change timing".into()
            } else {
                found.join(" ")
            }
        })
    }
}

/// Returns the value of `key : value` in a file of such lines.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// Returns the option that is in force: "always [madvise] never".
pub(super) fn bracketed(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(choice, _)| choice)
}

/// Returns the number of CPUs in a list such as 0-3,8.
fn count_cpus(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| match range.split_once('-') {
            None => range.trim().parse::<usize>().ok().map(|_| 1),
            Some((a, b)) => {
                let (a, b): (usize, usize) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
                b.checked_sub(a)?.checked_add(1)
            }
        })
        .try_fold(0_usize, |sum, n| sum.checked_add(n?))
}

pub(super) fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("0-3,8,10-11"), Some(7));
        assert_eq!(count_cpus("3-0"), None);
        assert_eq!(count_cpus("x"), None);
    }
}
