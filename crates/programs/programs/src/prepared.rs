//! Machine settings that reduce noise: set with
//! `--prepare`, and restored afterwards.
//!
//! Settings that need a reboot or change the set of CPUs (SMT, mitigations) are
//! only read, by [`locklab_host::environment`]; so are huge pages, which are a
//! property of the question and not noise.

use locklab_host::message;
use std::path::{Path, PathBuf};

/// The settings and their values.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("NMI watchdog", "proc/sys/kernel/nmi_watchdog", "0"),
    (
        "perf_event_paranoid",
        "proc/sys/kernel/perf_event_paranoid",
        "1",
    ),
    ("ASLR", "proc/sys/kernel/randomize_va_space", "0"),
    ("turbo", "sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    ("boost", "sys/devices/system/cpu/cpufreq/boost", "0"),
];

/// Settings that were changed; they are restored when this is dropped.
#[derive(Debug, Default)]
pub struct Prepared {
    before: Vec<(PathBuf, String)>,
    /// A sentence for each setting that was changed or could not be.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Changes the settings that can be changed below `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        let mut prepared = Self::default();
        for (name, path, wanted) in SETTINGS {
            prepared.set(name, &root.join(path), wanted);
        }
        let cpus = root.join("sys/devices/system/cpu");
        let mut governors: Vec<PathBuf> = std::fs::read_dir(&cpus)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("cpufreq/scaling_governor"))
            .filter(|path| path.is_file())
            .collect();
        governors.sort();
        for governor in governors {
            prepared.set("governor", &governor, "performance");
        }
        prepared
    }

    fn set(&mut self, name: &str, path: &Path, wanted: &str) {
        let Ok(before) = std::fs::read_to_string(path) else {
            // This machine does not have the setting.
            return;
        };
        let before = before.trim().to_owned();
        // A lower value permits more; it stays if it permits enough already.
        let open = name == "perf_event_paranoid" && before.parse().is_ok_and(|n: i32| n <= 1);
        if before == wanted || open {
            return;
        }
        match std::fs::write(path, wanted) {
            Ok(()) => {
                self.notes.push(format!(
                    "{name} was {before} and is {wanted} during the runs."
                ));
                self.before.push((path.to_owned(), before));
            }
            Err(e) => {
                self.notes
                    .push(format!("{name} is {before} and cannot be set: {e}."));
            }
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for (path, before) in self.before.drain(..).rev() {
            if let Err(e) = std::fs::write(&path, &before) {
                message::print(format_args!(
                    "locklab: could not put {} back to {before}: {e}",
                    path.display()
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let read = |path: &str| std::fs::read_to_string(root.path().join(path)).unwrap();
        let governor = "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
        let (watchdog, paranoid) = (
            "proc/sys/kernel/nmi_watchdog",
            "proc/sys/kernel/perf_event_paranoid",
        );
        write(watchdog, "1\n");
        write(paranoid, "-1\n");
        write(governor, "powersave\n");
        let prepared = Prepared::new(root.path());
        assert_eq!(
            (read(watchdog).as_str(), read(governor).as_str()),
            ("0", "performance")
        );
        assert_eq!(read(paranoid), "-1\n");
        assert_eq!(prepared.notes.len(), 2, "{:?}", prepared.notes);
        drop(prepared);
        assert_eq!(
            (read(watchdog).as_str(), read(governor).as_str()),
            ("1", "powersave")
        );
    }
}
