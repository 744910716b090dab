//! The machine behind the stand-in: QEMU with three disks, started again by a power
//! cycle, and a port before it whose connections can be broken.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

/// Disks beside its own: files with their serial numbers. The first is empty, on the
/// other is something.
pub(super) const DISKS: [(&str, &str); 2] = [("scratch", "S3EW-1"), ("precious", "S3EW-2")];

/// The running machine.
pub(super) struct Machine {
    folder: PathBuf,
    inner: Arc<AtomicU16>,
    child: Child,
}

impl Machine {
    pub(super) fn start(folder: &Path, inner: Arc<AtomicU16>) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = port.local_addr().unwrap().port();
        let card = format!("user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22");
        let _ = std::fs::remove_file(folder.join("qmp"));
        // This is one log of all power cycles.
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

    pub(super) fn cycle(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        *self = Self::start(&self.folder.clone(), self.inner.clone());
    }

    /// Stops its processor for good, as a kernel that hangs.
    pub(super) fn hang(&self) {
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

/// Passes connections on to the machine. If `break_one` asks for it, it breaks one in
/// which a workload runs: `log` is what ssh says of a run, and says when the machine
/// has started it.
pub(super) fn proxy(inner: Arc<AtomicU16>, break_one: Arc<AtomicBool>, log: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (inner, break_one, log) = (inner.clone(), break_one.clone(), log.clone());
            std::thread::spawn(move || {
                let client = client.ok()?;
                let port = inner.load(Ordering::Relaxed);
                let machine = TcpStream::connect(("127.0.0.1", port)).ok()?;
                // Uploads come in pieces, each of which waits for an answer.
                for side in [&client, &machine] {
                    side.set_nodelay(true).ok()?;
                }
                let up = (client.try_clone().ok()?, machine.try_clone().ok()?);
                let up = std::thread::spawn(move || pass(up.0, up.1));
                let down = (machine.try_clone().ok()?, client.try_clone().ok()?);
                let down = std::thread::spawn(move || pass(down.0, down.1));
                while !up.is_finished() && !down.is_finished() {
                    std::thread::sleep(Duration::from_millis(500));
                    // One call follows the other, so the log is of this one.
                    let runs = break_one.load(Ordering::Relaxed) && is_started(&log);
                    if !runs {
                        continue;
                    }
                    // Until the workload is in a session of its own.
                    std::thread::sleep(Duration::from_secs(2));
                    if !up.is_finished() && !down.is_finished() {
                        break_one.store(false, Ordering::Relaxed);
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = machine.shutdown(Shutdown::Both);
                    }
                }
                Some(())
            });
        }
    });
    port
}

fn is_started(log: &Path) -> bool {
    std::fs::read_to_string(log).is_ok_and(|text| text.contains("exec request accepted"))
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16384];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
