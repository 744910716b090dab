//! One boot of one kernel in QEMU, and what came out of it.
//!
//! Under TCG the plugin counts between the markers, and everything that could
//! differ from boot to boot is fixed: one vCPU, instructions as the clock,
//! the date, the seed, no devices that bring in the outside. A guest that
//! panics, hangs, runs out of memory or says that it failed gives its last
//! console lines and no counts; it must never be taken for a result.

use crate::error::Error;
use crate::kernel::tools::{Tool, find, first_line};
use crate::process::{Launch, Trouble};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// The processor, by KVM.
    Kvm,
    /// QEMU's translator, with the plugin.
    Tcg,
}

/// QEMU and the plugin.
#[derive(Clone, Debug)]
pub struct Qemu {
    tool: Tool,
    /// Its version, as it says.
    pub version: String,
    /// The plugin.
    pub plugin: PathBuf,
}

/// A boot.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// bzImage, or vmlinux with a PVH entry.
    pub image: &'a Path,
    /// What it boots into.
    pub initramfs: &'a Path,
    /// Added to the command line.
    pub cmdline: &'a str,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Seed of all that is random in the guest.
    pub seed: u64,
    /// TCG or KVM.
    pub accelerator: Accelerator,
    /// Whether the plugin counts; without, TCG for comparison of speed.
    pub counted: bool,
    /// A run takes no longer.
    pub limit: Duration,
}

/// Counts of one mode between the markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounts {
    /// Instructions.
    pub instructions: u64,
    /// Fetches of lines.
    pub l1i_fetches: u64,
    /// Misses of the modelled cache.
    pub l1i_misses: u64,
}

/// Counts between the markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of programs.
    pub user: ModeCounts,
    /// Of the kernel.
    pub kernel: ModeCounts,
}

/// What a guest that came to its end gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Units of work in the measured part.
    pub work: u64,
    /// What a unit is: request, call, switch.
    pub unit: String,
    /// Time of the measured part by the guest's clock; under TCG this is a
    /// count of instructions and no time.
    pub elapsed_ns: u64,
    /// Counts; none under KVM.
    pub counts: Option<Counts>,
    /// All lines that the guest sent.
    pub said: BTreeMap<String, String>,
    /// Time of the whole boot on this machine, in seconds.
    pub wall_seconds: f64,
    /// CPU time of QEMU, in seconds.
    pub cpu_seconds: f64,
}

/// Why a boot gave nothing: one sentence, then the console's last lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What happened.
    pub why: String,
    /// The last lines of the console.
    pub console: Vec<String>,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)?;
        if !self.console.is_empty() {
            f.write_str("; the console's last lines:")?;
        }
        self.console
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// How a boot ended.
pub type Outcome = Result<Measured, Invalid>;

impl Qemu {
    /// Finds QEMU and the plugin.
    ///
    /// # Errors
    /// One is missing.
    pub fn find() -> Result<Self, Error> {
        let tool = find("qemu-system-x86_64", "qemu-system-x86")?;
        let version = first_line(&tool.path, "--version")?;
        let plugin = plugin()?;
        if plugin.as_os_str().as_encoded_bytes().contains(&b',') {
            return Err(Error::Failed(format!(
                "{} has a comma in its path, which QEMU does not take for a plugin; move it",
                plugin.display()
            )));
        }
        Ok(Self {
            tool,
            version,
            plugin,
        })
    }

    /// The command line of a boot whose files are in `folder`.
    #[must_use]
    pub fn arguments(&self, boot: &Boot<'_>) -> Vec<OsString> {
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| list.extend(words.iter().map(OsString::from));
        add(&["-nodefaults", "-no-reboot", "-nic", "none", "-vga", "none"]);
        add(&["-display", "none", "-smp", "1"]);
        add(&["-m", &boot.memory_mib.to_string()]);
        match boot.accelerator {
            Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
            Accelerator::Tcg => {
                // Five levels of page tables are slow to walk in software.
                add(&["-accel", "tcg", "-cpu", "max,la57=off"]);
                add(&["-icount", "shift=0,sleep=off"]);
                add(&["-rtc", "base=2020-01-01,clock=vm"]);
                add(&["-seed", &boot.seed.to_string()]);
            }
        }
        add(&["-chardev", "file,id=console,path=console"]);
        add(&["-serial", "chardev:console"]);
        add(&["-chardev", "file,id=results,path=results"]);
        // With an eventfd the main loop answers, at a time of its own.
        add(&["-device", "virtio-serial-pci,ioeventfd=off"]);
        add(&["-device", "virtserialport,chardev=results,name=locklab"]);
        // Boot output costs serial writes; a panic is printed all the same.
        let cmdline = format!(
            "console=ttyS0 quiet panic=-1 oops=panic nokaslr {}",
            boot.cmdline
        );
        add(&["-append", cmdline.trim_end()]);
        list.extend(["-kernel".into(), boot.image.into()]);
        list.extend(["-initrd".into(), boot.initramfs.into()]);
        if boot.accelerator == Accelerator::Tcg && boot.counted {
            let mut plugin = self.plugin.clone().into_os_string();
            plugin.push(",out=counts.json");
            list.extend(["-plugin".into(), plugin]);
        }
        list
    }

    /// Boots once; files of the run are left in `folder`.
    ///
    /// # Errors
    /// QEMU does not start, or Ctrl-C. A guest that fails is an [`Invalid`]
    /// outcome and no error.
    pub fn boot(
        &self,
        boot: &Boot<'_>,
        folder: &Path,
        interrupt: &AtomicBool,
    ) -> Result<Outcome, Error> {
        let cannot =
            |e: std::io::Error| Error::Failed(format!("cannot write {}: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(cannot)?;
        for name in ["console", "results", "counts.json"] {
            let _ = std::fs::remove_file(folder.join(name));
        }
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|e| Error::Failed(format!("{}: {e}", path.display())))
        };
        let (image, initramfs) = (absolute(boot.image)?, absolute(boot.initramfs)?);
        let boot = Boot {
            image: &image,
            initramfs: &initramfs,
            ..boot.clone()
        };
        let launch = Launch {
            program: self.tool.path.clone(),
            arguments: self.arguments(&boot),
            environment: Vec::new(),
            folder: folder.to_owned(),
            cpus: Vec::new(),
            fixed: false,
        };
        let ended = match launch.run(&folder.join("qemu"), boot.limit, interrupt) {
            Ok(ended) => ended,
            Err(Trouble::TooLong(limit)) => {
                return Ok(Err(invalid(
                    format!(
                        "the guest did not end within {} s (hung, or too slow: --time-limit)",
                        limit.as_secs()
                    ),
                    folder,
                )));
            }
            Err(trouble) => return Err(crate::kernel::tools::stopped("QEMU", trouble)),
        };
        let errors = std::fs::read_to_string(folder.join("qemu.err")).unwrap_or_default();
        if let Some(failure) = ended.failure() {
            return Err(self.refused(&errors, &failure));
        }
        Ok(
            read(folder, boot.accelerator == Accelerator::Tcg && boot.counted).map(|measured| {
                Measured {
                    wall_seconds: ended.usage.elapsed,
                    cpu_seconds: ended.usage.user + ended.usage.system,
                    ..measured
                }
            }),
        )
    }

    /// QEMU itself failed: what it said, and for the plugin which versions
    /// are known to work.
    fn refused(&self, errors: &str, failure: &str) -> Error {
        let said = errors
            .lines()
            .find(|line| !line.trim().is_empty() && !line.contains("warning:"))
            .unwrap_or(failure);
        let hint = if errors.contains("plugin") || errors.contains("API version") {
            "; the plugin is tested with QEMU 7.2 and 10.0 and written for plugin APIs 1 to 6"
        } else {
            ""
        };
        Error::Failed(format!("QEMU ({}) failed: {said}{hint}", self.version))
    }

    /// Whether a kernel boots under KVM within 20 seconds. A device node that
    /// exists and hangs is a reason to say no, not to hang.
    ///
    /// # Errors
    /// Ctrl-C.
    pub fn probe_kvm(
        &self,
        boot: &Boot<'_>,
        folder: &Path,
        interrupt: &AtomicBool,
    ) -> Result<Result<(), String>, Error> {
        if let Err(e) = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
        {
            return Ok(Err(format!("/dev/kvm: {e}")));
        }
        let probe = Boot {
            accelerator: Accelerator::Kvm,
            limit: Duration::from_secs(20),
            ..boot.clone()
        };
        match self.boot(&probe, folder, interrupt) {
            Ok(Ok(_)) => Ok(Ok(())),
            Ok(Err(invalid)) => Ok(Err(format!("a probe boot failed: {}", invalid.why))),
            Err(Error::Interrupted(text)) => Err(Error::Interrupted(text)),
            Err(other) => Ok(Err(other.to_string())),
        }
    }
}

/// The plugin: beside the command, or where the variable says.
fn plugin() -> Result<PathBuf, Error> {
    const NAME: &str = "liblocklab_qemu_plugin.so";
    if let Some(path) = std::env::var_os("LOCKLAB_QEMU_PLUGIN") {
        return Ok(path.into());
    }
    let folders = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()))
        .map(|folder| {
            [
                folder.join(NAME),
                folder.join("../lib").join(NAME),
                folder.join("../release").join(NAME),
            ]
        });
    folders
        .into_iter()
        .flatten()
        .find(|file| file.is_file())
        .ok_or_else(|| {
            Error::Failed(format!(
                "the QEMU plugin {NAME} is not beside this command; build it (cargo build \
                 --release -p locklab-qemu-plugin) or name it in LOCKLAB_QEMU_PLUGIN"
            ))
        })
}

fn read(folder: &Path, counted: bool) -> Outcome {
    let results = std::fs::read_to_string(folder.join("results")).unwrap_or_default();
    let said = said(&results);
    if let Some(why) = said.get("failed") {
        return Err(invalid(format!("the guest failed: {why}"), folder));
    }
    if !said.contains_key("done") {
        let console = std::fs::read(folder.join("console")).unwrap_or_default();
        let why = cause(&String::from_utf8_lossy(&console));
        return Err(invalid(why, folder));
    }
    let number = |name: &str| said.get(name).and_then(|value| value.parse::<u64>().ok());
    let (Some(work), Some(elapsed_ns)) = (number("work"), number("elapsed-ns")) else {
        return Err(invalid(
            "the guest sent an incomplete result".into(),
            folder,
        ));
    };
    let counts = if counted {
        let text = std::fs::read_to_string(folder.join("counts.json")).unwrap_or_default();
        match read_counts(&text) {
            Ok(counts) => Some(counts),
            Err(why) => return Err(invalid(why, folder)),
        }
    } else {
        None
    };
    Ok(Measured {
        work,
        unit: said.get("unit").cloned().unwrap_or_default(),
        elapsed_ns,
        counts,
        said,
        wall_seconds: 0.0,
        cpu_seconds: 0.0,
    })
}

fn said(results: &str) -> BTreeMap<String, String> {
    results
        .lines()
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn read_counts(text: &str) -> Result<Counts, String> {
    #[derive(Deserialize)]
    struct Markers {
        begins: u64,
        ends: u64,
    }
    #[derive(Deserialize)]
    struct Report {
        markers: Markers,
        all_vcpus_counted: bool,
        #[serde(flatten)]
        counts: Counts,
    }
    let report: Report = serde_json::from_str(text)
        .map_err(|e| format!("the plugin's report cannot be read: {e}"))?;
    if (report.markers.begins, report.markers.ends) != (1, 1) {
        return Err(format!(
            "the plugin saw {} begin and {} end markers instead of one each",
            report.markers.begins, report.markers.ends
        ));
    }
    if !report.all_vcpus_counted {
        return Err("the plugin did not count every vCPU".into());
    }
    Ok(report.counts)
}

/// What a console says of a guest that ended without a result.
fn cause(console: &str) -> String {
    for (needle, what) in [
        ("Out of memory: Killed", "the guest ran out of memory"),
        (
            "System is deadlocked on memory",
            "the guest ran out of memory",
        ),
        ("Kernel panic", "the guest's kernel panicked"),
    ] {
        if let Some(line) = console.lines().find(|line| line.contains(needle)) {
            let line = line.split("] ").last().unwrap_or(line).trim();
            return format!("{what} ({line})");
        }
    }
    "the guest ended without a result".into()
}

fn invalid(why: String, folder: &Path) -> Invalid {
    let console = std::fs::read(folder.join("console")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    Invalid {
        why,
        console: lines
            .iter()
            .skip(lines.len().saturating_sub(12))
            .map(|line| line.trim_end().to_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(results: &str, console: &str, counts: &str) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("results", results),
            ("console", console),
            ("counts.json", counts),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        read(folder.path(), true)
    }

    const GOOD: &str = "booted-ms 900\nunit call\nwork 10\nelapsed-ns 5\ndone\n";

    fn counts(begins: u64) -> String {
        let mode = r#"{"instructions": 2, "l1i_fetches": 3, "l1i_misses": 4}"#;
        format!(
            r#"{{"schema": 1, "markers": {{"begins": {begins}, "ends": 1}},
                "all_vcpus_counted": true, "user": {mode}, "kernel": {mode}}}"#
        )
    }

    #[test]
    fn a_good_run_is_read() {
        let measured = outcome(GOOD, "", &counts(1)).unwrap();
        assert_eq!((measured.work, measured.unit.as_str()), (10, "call"));
        assert_eq!(measured.counts.unwrap().kernel.l1i_misses, 4);
    }

    #[test]
    fn what_went_wrong_is_said_and_never_a_result() {
        for (results, console, counts, needle) in [
            (
                "",
                "a\n[ 1.0] Kernel panic - not syncing: x\n",
                counts(1),
                "panicked (Kernel panic",
            ),
            (
                "work 1\n",
                "Out of memory: Killed process 3 (ab)\n",
                counts(1),
                "out of memory",
            ),
            ("failed cannot pin\n", "", counts(1), "cannot pin"),
            ("work 10\n", "", counts(1), "without a result"),
            ("done\n", "", counts(1), "incomplete"),
            (GOOD, "", counts(0), "0 begin"),
            (GOOD, "", String::new(), "report cannot be read"),
        ] {
            let invalid = outcome(results, console, &counts).unwrap_err();
            assert!(invalid.to_string().contains(needle), "{invalid}");
        }
    }

    #[test]
    fn the_last_lines_of_the_console_are_kept() {
        let console: String = (0..40).map(|i| format!("line {i}\r\n\n")).collect();
        let invalid = outcome("", &console, "").unwrap_err();
        assert_eq!(invalid.console.len(), 12);
        assert_eq!(invalid.console.last().unwrap(), "line 39");
    }

    #[test]
    fn a_plugin_of_another_api_names_those_that_work() {
        let qemu = Qemu {
            tool: Tool {
                name: "q",
                path: "/q".into(),
                environment: vec![],
            },
            version: "QEMU emulator version 11.0".into(),
            plugin: "/p.so".into(),
        };
        let error = qemu.refused(
            "qemu: could not load plugin: API version 9\n",
            "exit status 1",
        );
        let text = error.to_string();
        assert!(
            text.contains("version 11.0") && text.contains("7.2 and 10.0"),
            "{text}"
        );
    }
}
