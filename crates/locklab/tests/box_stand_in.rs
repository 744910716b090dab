//! Kernels on a test machine, with a stand-in for it: a guest of QEMU that boots
//! a system of its own from a disk, and nothing but ssh leads to it. Run by
//! `cargo xtask test --box`, which installs what it needs. Figures mean nothing
//! here, and the report must say so.
//!
//! Both kernels are ready ones of Debian, of different versions: a sample says
//! which kernel it is of, so that no sample can be of the wrong one.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a boot in the translator beside other tests.
const PATIENCE: Duration = Duration::from_secs(600);

/// Disks beside its own: files with their serial numbers. The first is empty, on the
/// other is something.
const DISKS: [(&str, &str); 2] = [("scratch", "S3EW-1"), ("precious", "S3EW-2")];

/// A ready kernel, unpacked from its package.
struct Ready {
    image: PathBuf,
    modules: PathBuf,
    release: String,
}

/// The two kernels in `target/box-kernels`, the older first.
fn kernels() -> Option<[Ready; 2]> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/box-kernels");
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
            image.is_file().then_some(Ready {
                image,
                modules,
                release,
            })
        })
        .collect();
    found.sort_by(|one, other| one.release.cmp(&other.release));
    found.try_into().ok()
}

/// The stand-in: QEMU, started again by a power cycle, behind a port whose
/// connections can be broken.
struct StandIn {
    folder: PathBuf,
    kernels: [Ready; 2],
    machine: Machine,
    /// Whether the next connection that only waits is broken.
    break_one: Arc<AtomicBool>,
}

/// The running machine.
struct Machine {
    folder: PathBuf,
    inner: Arc<AtomicU16>,
    child: Child,
}

impl Machine {
    fn start(folder: &Path, inner: Arc<AtomicU16>) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = port.local_addr().unwrap().port();
        let card = format!("user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22");
        let _ = std::fs::remove_file(folder.join("qmp"));
        // One log of all power cycles.
        let serial = std::fs::File::options()
            .create(true)
            .append(true)
            .open(folder.join("serial"))
            .unwrap();
        let child = Command::new("qemu-system-x86_64")
            .args(["-nodefaults", "-display", "none", "-vga", "none"])
            .args([
                "-accel",
                "tcg",
                "-cpu",
                "max,la57=off",
                "-smp",
                "1",
                "-m",
                "1024",
            ])
            // The first of the disks, and the one from which it starts.
            .args(["-drive", "file=disk,format=raw,if=none,id=disk"])
            .args([
                "-device",
                "virtio-blk-pci,drive=disk,bootindex=0",
                "-nic",
                &card,
            ])
            .args(
                DISKS
                    .map(|(name, serial)| {
                        [
                            "-drive".to_owned(),
                            format!("file={name},format=raw,if=none,id={name}"),
                            "-device".to_owned(),
                            format!("virtio-blk-pci,drive={name},serial={serial}"),
                        ]
                    })
                    .concat(),
            )
            .args(["-serial", "stdio", "-qmp", "unix:qmp,server=on,wait=off"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(serial)
            .spawn()
            .unwrap();
        inner.store(port, Ordering::Relaxed);
        Self {
            folder: folder.into(),
            inner,
            child,
        }
    }

    fn cycle(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        *self = Self::start(&self.folder.clone(), self.inner.clone());
    }

    /// Stops its processor for good, as a kernel that hangs.
    fn hang(&self) {
        let mut qmp = UnixStream::connect(self.folder.join("qmp")).unwrap();
        for command in ["qmp_capabilities", "stop"] {
            writeln!(qmp, "{{\"execute\": \"{command}\"}}").unwrap();
        }
        // Its answers: a greeting, and one for each command.
        let (mut heard, mut buffer) = (String::new(), [0; 1024]);
        while heard.matches("\"return\"").count() < 2 {
            let n = qmp.read(&mut buffer).unwrap();
            heard.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes connections on to the machine, and breaks one that only waits if that
/// was asked for.
fn proxy(inner: Arc<AtomicU16>, break_one: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (inner, break_one) = (inner.clone(), break_one.clone());
            std::thread::spawn(move || {
                let client = client.ok()?;
                let port = inner.load(Ordering::Relaxed);
                let machine = TcpStream::connect(("127.0.0.1", port)).ok()?;
                let idle = Arc::new(AtomicBool::new(false));
                let up = (client.try_clone().ok()?, machine.try_clone().ok()?);
                let one = idle.clone();
                std::thread::spawn(move || pass(up.0, up.1, &one));
                let down = (machine.try_clone().ok()?, client.try_clone().ok()?);
                let other = idle.clone();
                std::thread::spawn(move || pass(down.0, down.1, &other));
                // A run is the only call that is silent for so long once it was
                // let in; an upload never is.
                loop {
                    idle.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_secs(4));
                    if client.peer_addr().is_err() || machine.peer_addr().is_err() {
                        return Some(());
                    }
                    if idle.load(Ordering::Relaxed) && break_one.swap(false, Ordering::Relaxed) {
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = machine.shutdown(Shutdown::Both);
                        return Some(());
                    }
                }
            });
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, idle: &AtomicBool) {
    let mut buffer = [0; 16384];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        idle.store(false, Ordering::Relaxed);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl StandIn {
    fn new(name: &str) -> Self {
        let kernels =
            kernels().expect("two kernels in target/box-kernels (cargo xtask test --box)");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("box-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let run = |command: &mut Command| {
            let output = command.current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "user"]));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/box/disk.sh");
        let [_, home] = &kernels;
        run(Command::new("sh")
            .arg(script)
            .args([&home.image, &home.modules])
            .args(["user.pub", "disk"]));
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
        let port = proxy(inner, break_one.clone());
        // A user's configuration, which locklab must go by.
        let at = folder.display();
        let config = format!(
            "Host stand-in\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {at}/user\n \
             StrictHostKeyChecking accept-new\n UserKnownHostsFile {at}/known\n"
        );
        std::fs::write(folder.join("config"), config).unwrap();
        let ssh = format!("#!/bin/sh\nexec /usr/bin/ssh -F {at}/config \"$@\"\n");
        std::fs::write(folder.join("bin/ssh"), ssh).unwrap();
        run(Command::new("chmod").args(["755", "bin/ssh"]));
        let stand_in = Self {
            folder,
            kernels,
            machine,
            break_one,
        };
        stand_in.wait("it boots its own system", || stand_in.boot_id().is_some());
        stand_in
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "{what}: not in time");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// The boot id of its own system, if that answers.
    fn boot_id(&self) -> Option<String> {
        let output = Command::new(self.path("bin/ssh"))
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "stand-in"])
            .arg("cat /proc/sys/kernel/random/boot_id")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let id = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| id.trim().to_owned())
    }

    /// How often a measured kernel began to boot: the machine's own is quiet.
    fn boots(&self) -> usize {
        let serial = std::fs::read(self.path("serial")).unwrap_or_default();
        let serial = String::from_utf8_lossy(&serial);
        serial.matches("] Linux version ").count()
    }

    /// Writes the experiment file; `more` is added to the experiment's command
    /// line. A translator beside other work is too slow for the check of the
    /// timer, which panics then.
    fn file(&self, operations: u64, more: &str) {
        let [old, new] = &self.kernels;
        let side =
            |ready: &Ready| format!("image = {:?}\nmodules = {:?}\n", ready.image, ready.modules);
        let at = self.folder.display();
        let text = format!(
            "kind = \"kernel\"\nname = \"two-ready-kernels\"\n[kernel]\ncmdline = \"no_timer_check\"\n[baseline]\n{}[experiment]\n{}cmdline = \"{more}\"\n\
             [[workload]]\nname = \"fstat\"\noperations = 1000\nprocesses = 2\n\
             [[workload]]\nname = \"context-switch\"\noperations = {operations}\n\
             [box]\non = \"ssh:stand-in\"\nlimit = 150\n\
             console = \"exec tail -n 0 -F {at}/serial\"\n\
             power_cycle = \"touch {at}/cycle; while [ -e {at}/cycle ]; do sleep 1; done\"\n",
            side(old),
            side(new),
        );
        std::fs::write(self.path("experiment.toml"), text).unwrap();
    }

    /// Writes an experiment file in which fs-mark may overwrite a disk.
    fn file_with_disk(&self, serial: &str) {
        self.file(500, "");
        let path = self.path("experiment.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let (name, rest) = text.split_once("[kernel]").unwrap();
        let (sides, _) = rest.split_once("[[workload]]").unwrap();
        let (_, machine) = rest.split_once("[box]\n").unwrap();
        let text = format!(
            "{name}lock_profile = true\n[kernel]{sides}[[workload]]\nname = \"fs-mark\"\n\
             operations = 20\n[box]\nscratch_disk = \"{serial}\"\n{machine}"
        );
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut path = std::ffi::OsString::from(self.path("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        command
            .args(arguments)
            .arg("--store")
            .arg(self.path("store.sqlite"))
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn compare(&self, arguments: &[&str]) -> Child {
        let file = self.path("experiment.toml");
        let all = [&["kernel", "compare", file.to_str().unwrap()], arguments].concat();
        self.command(&all).spawn().unwrap()
    }

    /// Every sample of the store.
    fn samples(&self) -> Vec<Value> {
        let output = self
            .command(&["results", "export", "--format", "jsonl"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Every sample that counts is of the kernel that it names.
    fn assert_kernels(&self) {
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

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, error)
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --box"]
fn three_pairs_with_a_broken_connection_and_a_hang_lose_nothing_else() {
    let mut stand_in = StandIn::new("pairs");
    // Long enough in the translator to be found waiting.
    stand_in.file(60_000, "");
    let doctor = stand_in
        .command(&["doctor", "--on", "ssh:stand-in"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("mean nothing"), "{doctor:?}");
    let before = stand_in.boot_id();
    assert!(before.is_some(), "the doctor changed nothing");

    let child = stand_in.compare(&["--pairs", "3"]);
    let (child, done) = (std::cell::RefCell::new(child), AtomicBool::new(false));
    let mut hung = false;
    // The trial, then the first boot that counts.
    stand_in.wait("the first boot", || stand_in.boots() >= 2);
    stand_in.break_one.store(true, Ordering::Relaxed);
    while !done.load(Ordering::Relaxed) {
        if !hung && stand_in.boots() >= 4 {
            stand_in.machine.hang();
            hung = true;
        }
        if stand_in.path("cycle").exists() {
            stand_in.machine.cycle();
            std::fs::remove_file(stand_in.path("cycle")).unwrap();
        }
        done.store(
            child.borrow_mut().try_wait().unwrap().is_some(),
            Ordering::Relaxed,
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let (output, error) = ended(child.into_inner());
    assert!(
        hung && !stand_in.break_one.load(Ordering::Relaxed),
        "{error}"
    );
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("mean nothing"), "{report}{error}");
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 2 * 2 * 3, "{report}{error}");
    // The boot that hung cost its samples of both workloads, with the reason.
    let lost: Vec<&Value> = samples.iter().filter(|s| !s["invalid"].is_null()).collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    for sample in lost {
        assert!(
            sample["invalid"].to_string().contains("not up within"),
            "{sample}"
        );
    }
    stand_in.assert_kernels();
    assert!(stand_in.boot_id().is_some_and(|id| Some(id) != before));
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --box"]
fn a_kernel_that_panics_costs_its_sample_and_shows_its_last_lines() {
    let stand_in = StandIn::new("panic");
    // There is no such first program.
    stand_in.file(500, "rdinit=/none");
    let (output, error) = ended(stand_in.compare(&["--pairs", "1"]));
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 4, "{output:?}{error}");
    stand_in.assert_kernels();
    for sample in samples {
        let failed = sample["invalid"].to_string();
        if sample["side"] == "baseline" {
            assert_eq!(failed, "null", "{sample}");
        } else {
            assert!(failed.contains("came home by itself"), "{sample}");
            let console = sample["detail"]["console"].to_string();
            assert!(console.contains("Kernel panic"), "{sample}");
        }
    }
    assert!(stand_in.boot_id().is_some());
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --box"]
fn fs_mark_overwrites_the_disk_that_both_named_and_locks_are_profiled() {
    let stand_in = StandIn::new("disk");
    let [(_, scratch), (_, precious)] = DISKS;
    // What is there is found before anything is written.
    stand_in.file_with_disk(precious);
    let before = std::fs::read(stand_in.path("precious")).unwrap();
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", precious]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        error.contains("is not empty and is not overwritten"),
        "{error}"
    );
    assert!(before == std::fs::read(stand_in.path("precious")).unwrap());
    // A name that no disk has.
    stand_in.file_with_disk("S3EW-3");
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", "S3EW-3"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(error.contains("S3EW-1 (vdb), S3EW-2 (vdc)"), "{error}");

    stand_in.file_with_disk(scratch);
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--scratch-disk", scratch]));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("S3EW-1 (vdb, 512 MiB)"), "{report}{error}");
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 2, "{report}{error}");
    stand_in.assert_kernels();
    for sample in samples {
        assert!(sample["invalid"].is_null(), "{sample}");
        assert!(sample["time"].as_f64().unwrap() > 0.0, "{sample}");
        // One CPU of a translator may wait for nothing.
        assert!(
            sample["detail"]["locks"]["run"]["translated"] == true,
            "{sample}"
        );
    }
    assert!(report.contains("Locks waited for, fs-mark"), "{report}");
    let written = std::fs::read(stand_in.path("scratch")).unwrap();
    assert_eq!(&written[..4], b"XFSB");
    assert!(before == std::fs::read(stand_in.path("precious")).unwrap());
}

/// By hand, because it builds a kernel: LOCKLAB_BOX_CONFIG names a whole
/// configuration of Linux 6.1 that the stand-in then says it has, and
/// LOCKLAB_BOX_CACHE a folder of kernel builds.
#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --box"]
fn a_kernel_of_the_machine_s_own_configuration_is_built_and_booted() {
    let variable = |name| std::env::var(name).ok();
    let [Some(_), Some(cache)] = ["LOCKLAB_BOX_CONFIG", "LOCKLAB_BOX_CACHE"].map(variable) else {
        println!("skipped: LOCKLAB_BOX_CONFIG and LOCKLAB_BOX_CACHE are not set");
        return;
    };
    let stand_in = StandIn::new("config");
    stand_in.file(500, "");
    let path = stand_in.path("experiment.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = text.split_once("[[workload]]").unwrap();
    let text = format!(
        "kind = \"kernel\"\nname = \"own-configuration\"\n[kernel]\nsource = \"debian:6.1\"\n\
         config = \"box\"\ncmdline = \"no_timer_check\"\n[experiment]\ncmdline = \"quiet\"\n\
         [[workload]]{rest}"
    );
    std::fs::write(&path, text).unwrap();
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--cache", &cache]));
    let samples = stand_in.samples();
    assert_eq!(samples.len(), 4, "{output:?}{error}");
    for sample in samples {
        assert!(sample["invalid"].is_null(), "{sample}");
        let release = sample["detail"]["kernel"]["release"].as_str().unwrap();
        assert!(release.starts_with("6.1"), "{sample}");
        let cmdline = sample["detail"]["kernel"]["cmdline"].to_string();
        assert_eq!(cmdline.contains(" quiet"), sample["side"] == "experiment");
    }
    assert!(stand_in.boot_id().is_some());
}

#[test]
#[ignore = "boots a test machine's stand-in: cargo xtask test --box"]
fn ctrl_c_brings_it_home_and_resume_goes_on() {
    let stand_in = StandIn::new("interrupt");
    stand_in.file(500, "");
    let child = stand_in.compare(&["--pairs", "1"]);
    // The trial was the first.
    stand_in.wait("a measured kernel", || stand_in.boots() >= 2);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let (output, error) = ended(child);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(error.contains("Ctrl-C again"), "{error}");
    assert!(stand_in.boot_id().is_some(), "{error}");
    let (output, error) = ended(stand_in.compare(&["--pairs", "1", "--resume"]));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("mean nothing"), "{report}{error}");
    let whole = stand_in.samples();
    let whole = whole.iter().filter(|sample| sample["invalid"].is_null());
    assert!(whole.count() >= 4, "{error}");
    stand_in.assert_kernels();
}
