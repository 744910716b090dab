//! The stand-in for a test machine: its two kernels, its disk, the user's ssh
//! configuration that leads to it, and locklab's command with all of that.

use super::machine::{DISKS, Machine, proxy};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16};
use std::time::{Duration, Instant};

/// The limit of a boot where none must run out, in seconds: longer than any boot in
/// the translator beside any other work.
pub(super) const PATIENT: u64 = 7200;

/// A ready kernel, unpacked from its package.
pub(super) struct Ready {
    pub(super) image: PathBuf,
    pub(super) modules: PathBuf,
    /// The configuration that it was built with.
    pub(super) config: PathBuf,
    pub(super) release: String,
}

/// Returns the two kernels in `target/test-machine-kernels`, the older first.
fn kernels() -> Option<[Ready; 2]> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-machine-kernels");
    let root = root.canonicalize().ok()?;
    let mut found: Vec<Ready> = std::fs::read_dir(&root)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let folder = entry.path();
            let modules = std::fs::read_dir(folder.join("lib/modules")).ok()?;
            let modules = modules.flatten().next()?.path();
            let release = modules.file_name()?.to_str()?.to_owned();
            let image = folder.join(format!("boot/vmlinuz-{release}"));
            let config = folder.join(format!("boot/config-{release}"));
            image.is_file().then_some(Ready {
                image,
                modules,
                config,
                release,
            })
        })
        .collect();
    found.sort_by(|one, other| one.release.cmp(&other.release));
    found.try_into().ok()
}

/// The stand-in: QEMU, started again by a power cycle, behind a port whose
/// connections can be broken.
pub(super) struct StandIn {
    folder: PathBuf,
    pub(super) kernels: [Ready; 2],
    pub(super) machine: Machine,
    /// Says whether the next connection in which a workload runs is broken.
    pub(super) break_one: Arc<AtomicBool>,
    /// The time that its own system took to answer for the first time.
    first_boot: Duration,
}

impl StandIn {
    pub(super) fn new(name: &str) -> Self {
        Self::of_configuration(name, |_, _| None)
    }

    /// Returns one whose own system says that it has a configuration, which `configuration`
    /// may write in its folder.
    pub(super) fn of_configuration(
        name: &str,
        configuration: impl FnOnce(&[Ready; 2], &Path) -> Option<PathBuf>,
    ) -> Self {
        let began = Instant::now();
        let kernels = kernels()
            .expect("two kernels in target/test-machine-kernels (cargo xtask test --test-machine)");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("test-machine-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let run = |command: &mut Command| {
            let output = command.current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "user"]));
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_machine_stand_in/disk.sh");
        let [_, home] = &kernels;
        let config = configuration(&kernels, &folder).unwrap_or_default();
        run(Command::new("sh")
            .arg(script)
            .args([&home.image, &home.modules])
            .args(["user.pub", "disk"])
            .arg(config));
        for (name, _) in DISKS {
            let disk = std::fs::File::create(folder.join(name)).unwrap();
            disk.set_len(512 << 20).unwrap();
        }
        let precious = std::fs::File::options()
            .write(true)
            .open(folder.join("precious"));
        std::os::unix::fs::FileExt::write_all_at(&precious.unwrap(), b"letters", 70_000).unwrap();
        let (inner, break_one) = (
            Arc::new(AtomicU16::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let machine = Machine::start(&folder, inner.clone());
        let port = proxy(inner, break_one.clone(), folder.join("run.log"));
        // A user's configuration, which locklab must go by.
        let at = folder.display();
        let config = format!(
            "Host stand-in\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {at}/user\n \
             StrictHostKeyChecking accept-new\n UserKnownHostsFile {at}/known\n"
        );
        std::fs::write(folder.join("config"), config).unwrap();
        // Of a run ssh says when it began.
        let ssh = format!(
            "#!/bin/sh\nrm -f {at}/run.log\nfor last; do :; done\ncase $last in\n\
             'run '*) exec /usr/bin/ssh -vv -E {at}/run.log -F {at}/config \"$@\" ;;\n\
             *) exec /usr/bin/ssh -F {at}/config \"$@\" ;;\nesac\n"
        );
        std::fs::write(folder.join("bin/ssh"), ssh).unwrap();
        run(Command::new("chmod").args(["755", "bin/ssh"]));
        let mut stand_in = Self {
            folder,
            kernels,
            machine,
            break_one,
            first_boot: Duration::ZERO,
        };
        while stand_in.boot_id().is_none() {
            std::thread::sleep(Duration::from_millis(500));
        }
        stand_in.first_boot = began.elapsed();
        stand_in
    }

    /// Returns a limit that a boot which hangs exceeds, and no other boot: some times what
    /// the first boot took, so that it is longer where the machine is slower.
    pub(super) fn limit_of_a_hang(&self) -> u64 {
        (self.first_boot.as_secs() * 12).max(150)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Waits until a command has come so far, as long as it runs.
    pub(super) fn wait(&self, child: &mut Child, what: &str, done: impl Fn() -> bool) {
        while !done() {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{what}: the command ended before, {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Returns the boot id of its own system, if that answers.
    pub(super) fn boot_id(&self) -> Option<String> {
        let output = Command::new(self.path("bin/ssh"))
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "stand-in"])
            .arg("cat /proc/sys/kernel/random/boot_id")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let id = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| id.trim().to_owned())
    }

    /// Returns how often a measured kernel began to boot: the machine's own is quiet.
    pub(super) fn boots(&self) -> usize {
        let serial = std::fs::read(self.path("serial")).unwrap_or_default();
        let serial = String::from_utf8_lossy(&serial);
        serial.matches("] Linux version ").count()
    }

    /// Writes the experiment file; `more` is added to the experiment's command
    /// line, and `limit` is that of a boot, in seconds. A translator beside other work is too slow for the check of the
    /// timer, which panics then.
    pub(super) fn file(&self, operations: u64, more: &str, limit: u64) {
        let [old, new] = &self.kernels;
        let side =
            |ready: &Ready| format!("image = {:?}\nmodules = {:?}\n", ready.image, ready.modules);
        let at = self.folder.display();
        let text = format!(
            "kind = \"kernel\"\nname = \"two-ready-kernels\"\n[kernel]\ncmdline = \"no_timer_check\"\n[baseline]\n{}[experiment]\n{}cmdline = \"{more}\"\n\
             [[workload]]\nname = \"fstat\"\noperations = 1000\nprocesses = 2\n\
             [[workload]]\nname = \"context-switch\"\noperations = {operations}\n\
             [test_machine]\non = \"ssh:stand-in\"\nlimit = {limit}\n\
             console = \"exec tail -n 0 -F {at}/serial\"\n\
             power_cycle = \"touch {at}/cycle; while [ -e {at}/cycle ]; do sleep 1; done\"\n",
            side(old),
            side(new),
        );
        std::fs::write(self.path("experiment.toml"), text).unwrap();
    }

    /// Writes an experiment file in which fs-mark may overwrite a disk.
    pub(super) fn file_with_disk(&self, serial: &str) {
        self.file(500, "", PATIENT);
        let path = self.path("experiment.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let (name, rest) = text.split_once("[kernel]").unwrap();
        let (sides, _) = rest.split_once("[[workload]]").unwrap();
        let (_, machine) = rest.split_once("[test_machine]\n").unwrap();
        let text = format!(
            "{name}lock_profile = true\n[kernel]{sides}[[workload]]\nname = \"fs-mark\"\n\
             operations = 20\n[test_machine]\nscratch_disk = \"{serial}\"\n{machine}"
        );
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut path = std::ffi::OsString::from(self.path("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../target/release/liblocklab_qemu_plugin.so");
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        command
            .args(arguments)
            .arg("--store")
            .arg(self.path("store.sqlite"))
            .env("PATH", path)
            .env("LOCKLAB_QEMU_PLUGIN", plugin)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn compare(&self, arguments: &[&str]) -> Child {
        let file = self.path("experiment.toml");
        let all = [&["compare", file.to_str().unwrap()], arguments].concat();
        self.command(&all).spawn().unwrap()
    }

    /// Returns every sample of the store.
    pub(super) fn samples(&self) -> Vec<Value> {
        let output = self
            .command(&["results", "export", "--json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Checks that every sample that counts is of the kernel that it names.
    pub(super) fn assert_kernels(&self) {
        for sample in self.samples() {
            let kernel = &sample["detail"]["kernel"];
            if !sample["invalid"].is_null() {
                continue;
            }
            let [old, new] = &self.kernels;
            let side = if sample["side"] == "baseline" {
                old
            } else {
                new
            };
            assert_eq!(kernel["release"], side.release.as_str(), "{sample}");
            assert_eq!(kernel["image"], side.image.to_str().unwrap(), "{sample}");
        }
    }
}
