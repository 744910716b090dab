//! One boot of one kernel in QEMU.
//!
//! Under TCG the plugin counts between the markers, and everything that could
//! differ from boot to boot is fixed: vCPUs take turns, with instructions as the clock,
//! the date, the seed, no devices with outside input. A guest that hangs
//! must never hang the cache.

use crate::cache::{Tool, find, first_line};
use crate::outcome::{self, Measured, Outcome};
use crate::settings::GuestSettings;
use locklab_host::error::Error;
use locklab_host::process::{Launch, Trouble};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Says what executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// The processor, by KVM.
    Kvm,
    /// QEMU's translator, with the plugin.
    Tcg,
}

impl Accelerator {
    /// Returns the meaning of a nanosecond of the guest's clock.
    #[must_use]
    pub fn clock_unit(self) -> &'static str {
        match self {
            Self::Kvm => "nanoseconds",
            // With -icount each instruction advances the clock by one.
            Self::Tcg => "instructions",
        }
    }
}

/// QEMU and the plugin.
#[derive(Clone, Debug)]
pub struct Qemu {
    pub(crate) tool: Tool,
    /// The version that QEMU reports.
    pub version: String,
    /// The file of our plugin, which counts instructions and misses.
    pub plugin: PathBuf,
    /// The name of the processor whose front end the plugin models beside its L1i.
    pub processor: Option<String>,
    /// Says whether a miss of the modelled L1i brings in the next line too.
    pub next_line: bool,
}

/// The parameters of a boot.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// bzImage, or vmlinux with a PVH entry.
    pub image: &'a Path,
    /// The initramfs that it boots into.
    pub initramfs: &'a Path,
    /// Options added to the kernel command line.
    pub cmdline: &'a str,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// CPUs of the guest.
    pub vcpus: u64,
    /// Says whether CPUs take turns under TCG, by a clock of instructions, so that counts
    /// repeat. Otherwise each is a thread of the host, for a check of locks.
    pub in_turn: bool,
    /// The CPU that is counted; all of them if none is named.
    pub counted_cpu: Option<u64>,
    /// Seed of all randomness in the guest.
    pub seed: u64,
    /// TCG or KVM.
    pub accelerator: Accelerator,
    /// Says whether the plugin counts; without it TCG runs for a comparison of
    /// speed.
    pub counted: bool,
    /// Says whether the guest is told that it runs on a machine of its own: a guest
    /// that knows better waits by `virt_spin_lock()` instead of in the queue of
    /// its queued spinlocks, and its tracepoints see nothing of that. One CPU
    /// that is counted is always told the truth: it never waits.
    pub alone: bool,
    /// The time limit of a run.
    pub limit: Duration,
}

impl Qemu {
    /// Finds QEMU and the plugin.
    ///
    /// # Errors
    /// [`Error::Failed`] if QEMU or the plugin is missing, or the plugin's path
    /// has a comma. The message says what to install or to build.
    pub fn find() -> Result<Self, Error> {
        let tool = find("qemu-system-x86_64", "qemu-system-x86")?;
        let version = first_line(&tool.path, "--version")?;
        let plugin = locklab_host::libraries::qemu_plugin()?;
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
            processor: None,
            next_line: false,
        })
    }

    /// Returns the same with what the settings say is modelled.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no processor of that name.
    pub fn modelling(mut self, settings: &GuestSettings) -> Result<Self, Error> {
        self.processor = settings.processor()?.map(str::to_owned);
        self.next_line = settings.next_line;
        Ok(self)
    }

    /// Returns the command line of a boot whose files are in `folder`.
    #[must_use]
    pub fn arguments(&self, boot: &Boot<'_>) -> Vec<OsString> {
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| list.extend(words.iter().map(OsString::from));
        add(&["-nodefaults", "-no-reboot", "-nic", "none", "-vga", "none"]);
        // Each CPU is a socket: the firmware's table, which a kernel without
        // ACPI reads, has only the first CPU of a socket.
        let cpus = format!("{0},sockets={0},cores=1,threads=1", boot.vcpus);
        add(&["-display", "none", "-smp", &cpus]);
        add(&["-m", &boot.memory_mib.to_string()]);
        match boot.accelerator {
            Accelerator::Kvm => {
                let cpu = match boot.alone {
                    true => "host,-hypervisor,kvm=off",
                    false => "host",
                };
                add(&["-accel", "kvm", "-cpu", cpu]);
            }
            // A check, never a time: with instructions as the clock CPUs would
            // take turns, and never wait for one another.
            Accelerator::Tcg if !boot.in_turn => {
                let cpu = match boot.alone {
                    true => "max,la57=off,-hypervisor",
                    false => "max,la57=off",
                };
                add(&["-accel", "tcg,thread=multi", "-cpu", cpu]);
            }
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
        // With an eventfd the main loop answers, at an unpredictable time.
        add(&["-device", "virtio-serial-pci,ioeventfd=off"]);
        add(&["-device", "virtserialport,chardev=results,name=locklab"]);
        // Boot output costs serial writes; a panic is printed anyway.
        let mut cmdline = "console=ttyS0 quiet panic=-1 oops=panic nokaslr".to_owned();
        if boot.accelerator == Accelerator::Tcg && !boot.in_turn {
            // The host may delay a timer longer than the kernel's test allows.
            cmdline.push_str(" no_timer_check");
        } else if boot.accelerator == Accelerator::Tcg {
            // The kernel would calibrate the timer of its local APIC by polling
            // the clock for 100 ms of it, ten million times, and the translator
            // leaves its loop at each: nine tenths of a boot. The PIT ticks
            // instead.
            cmdline.push_str(" nolapic_timer");
            if boot.vcpus > 1 {
                // The guest's first program brings up the others, which start at one time: so
                // the counter of one is good for all, and the time needs no system call.
                cmdline.push_str(" no_timer_check tsc=reliable maxcpus=1");
            }
        }
        let cmdline = format!("{cmdline} {}", boot.cmdline);
        add(&["-append", cmdline.trim_end()]);
        list.extend(["-kernel".into(), boot.image.into()]);
        list.extend(["-initrd".into(), boot.initramfs.into()]);
        if boot.accelerator == Accelerator::Tcg && boot.counted {
            let mut plugin = self.plugin.clone().into_os_string();
            plugin.push(",out=counts.json");
            if let Some(processor) = &self.processor {
                plugin.push(format!(",processor={processor}"));
            }
            if self.next_line {
                plugin.push(",prefetch=next-line");
            }
            if let Some(cpu) = boot.counted_cpu {
                plugin.push(format!(",vcpu={cpu}"));
            }
            list.extend(["-plugin".into(), plugin]);
        }
        list
    }

    /// Boots once; files of the run are left in `folder`.
    ///
    /// # Errors
    /// [`Error`] if a file cannot be written, QEMU does not start, or after
    /// Ctrl-C. A guest that fails is an invalid outcome and not an error.
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
        let running = launch
            .start(&folder.join("qemu"))
            .map_err(|trouble| crate::cache::stopped("QEMU", trouble))?;
        // The guest's first line arrives when it is ready for the workload; its
        // own clock does not show how long that took here.
        let started = Instant::now();
        let first_line = folder.join("results");
        let mut boot_seconds = None;
        while boot_seconds.is_none()
            && !running.has_ended()
            && started.elapsed() < boot.limit
            && !interrupt.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_millis(20));
            if first_line.metadata().is_ok_and(|facts| facts.len() > 0) {
                boot_seconds = Some(started.elapsed().as_secs_f64());
            }
        }
        let ended = match running.wait(boot.limit, interrupt) {
            Ok(ended) => ended,
            Err(Trouble::TooLong(limit)) => {
                return Ok(Err(outcome::invalid(
                    format!(
                        "the guest did not end within {} s (hung, or too slow: --set boot_limit=SECONDS)",
                        limit.as_secs_f64()
                    ),
                    folder,
                )));
            }
            Err(trouble) => return Err(crate::cache::stopped("QEMU", trouble)),
        };
        let errors = std::fs::read_to_string(folder.join("qemu.err")).unwrap_or_default();
        if let Some(failure) = ended.failure() {
            return Err(self.refused(&errors, &failure));
        }
        Ok(
            outcome::read(folder, boot.accelerator == Accelerator::Tcg && boot.counted).map(
                |measured| Measured {
                    boot_seconds: boot_seconds.unwrap_or(ended.usage.elapsed),
                    wall_seconds: ended.usage.elapsed,
                    cpu_seconds: ended.usage.user + ended.usage.system,
                    ..measured
                },
            ),
        )
    }

    /// Returns the error of a failure of QEMU itself: its message, and for the plugin
    /// the versions that are known to work.
    fn refused(&self, errors: &str, failure: &str) -> Error {
        let reason = errors
            .lines()
            .find(|line| !line.trim().is_empty() && !line.contains("warning:"))
            .unwrap_or(failure);
        let hint = if errors.contains("plugin") || errors.contains("API version") {
            "; the plugin is tested with QEMU 7.2 and 10.0 and written for plugin APIs 1 to 6"
        } else {
            ""
        };
        Error::Failed(format!("QEMU ({}) failed: {reason}{hint}", self.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu() -> Qemu {
        Qemu {
            tool: Tool {
                name: "q",
                path: "/q".into(),
                environment: vec![],
            },
            version: "QEMU emulator version 11.0".into(),
            plugin: "/p.so".into(),
            processor: Some("zen-3".into()),
            next_line: false,
        }
    }

    #[test]
    fn translated_cpus_take_turns_or_run_at_once() {
        let arguments = |vcpus, counted, counted_cpu: Option<u64>| {
            let boot = Boot {
                image: Path::new("vmlinux"),
                initramfs: Path::new("initramfs"),
                cmdline: "",
                memory_mib: 512,
                vcpus,
                seed: 1,
                accelerator: Accelerator::Tcg,
                in_turn: counted,
                counted_cpu,
                counted,
                alone: !counted,
                limit: Duration::from_secs(1),
            };
            let qemu = Qemu {
                next_line: counted_cpu.is_some(),
                ..qemu()
            };
            qemu.arguments(&boot).join(&OsString::from(" "))
        };
        let one = arguments(1, true, None).into_string().unwrap();
        assert!(one.contains("-icount") && one.contains("nolapic_timer"));
        assert!(one.ends_with("/p.so,out=counts.json,processor=zen-3"));
        assert!(!one.contains("maxcpus"));
        let server = arguments(2, true, Some(1)).into_string().unwrap();
        assert!(server.contains("-icount") && server.contains("nolapic_timer"));
        assert!(
            server.contains("maxcpus=1") && server.ends_with("zen-3,prefetch=next-line,vcpu=1")
        );
        let two = arguments(2, false, None).into_string().unwrap();
        assert!(two.contains("tcg,thread=multi") && two.contains("-smp 2,"));
        assert!(two.contains(",-hypervisor"));
        assert!(!two.contains("-icount") && !two.contains("nolapic_timer"));
    }

    #[test]
    fn a_plugin_of_another_api_names_those_that_work() {
        let qemu = qemu();
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
