//! Tests what can go wrong before a kernel boots, on a tree that only has a kernel's
//! make targets: patches, configuration, build, Ctrl-C. And, with a script in place
//! of QEMU, the exit codes for `git bisect` and where a comparison is resumed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Behaves as the kernel's makefiles: options are kept or dropped, and a
/// finished step is not repeated.
const MAKEFILE: &str = r#"
allnoconfig:
	grep -v DROPPED $(KCONFIG_ALLCONFIG) > $(O)/.config
vmlinux: $(O)/one.o $(O)/two.o
	gcc -c main.c -o $(O)/vmlinux
	echo 'cmd_vmlinux := cp .config vmlinux; : link-vmlinux.sh' > $(O)/.vmlinux.cmd
	env -0 > $(O)/.locklab-link-environment
$(O)/one.o: main.c
	@echo '  CC      one.o'
	@! grep -n error main.c || { echo "main.c:2:1: error: expected ';'" >&2; false; }
	@date +%s%N > $@
$(O)/two.o: $(O)/one.o
	@sleep $${TEST_SLEEP:-0}
	@touch $@
bzImage:
	@mkdir -p $(O)/arch/x86/boot
	@cp $(O)/.config $(O)/arch/x86/boot/bzImage
modules:
	@true
"#;

/// Behaves as QEMU with the plugin: the configuration of the "kernel" decides
/// the counts.
const QEMU: &str = r#"#!/bin/sh
[ "$1" != --version ] || { echo 'QEMU emulator version 7.2.0'; exit; }
here=$(dirname "$0")
echo >> "$here/boots"
[ ! -e "$here/stall" ] || [ $(wc -l < "$here/boots") -lt 5 ] || exec sleep 1000
while [ $# -gt 0 ]; do [ "$1" != -kernel ] || image=$2; shift; done
misses=1000
! grep -q CONFIG_WORSE "$image" || misses=1100
! grep -q CONFIG_BETTER "$image" || misses=900
! grep -q CONFIG_PANICS "$image" || { echo 'Kernel panic - not syncing: x' > console; exit; }
printf 'unit call\nwork 10\nelapsed-ns 5\ndone\n' > results
mode='"instructions": 9000, "l1i_fetches": 5000, "l1i_misses"'
cat > counts.json <<END
{"markers": {"begins": 1, "ends": 1}, "all_vcpus_counted": true,
 "user": {$mode: 10}, "kernel": {$mode: $misses}}
END
"#;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    /// Returns none where a program that builds kernels is missing.
    fn new() -> Option<Self> {
        for (program, argument) in [
            ("make", "--version"),
            ("flex", "--version"),
            ("bison", "--version"),
            ("bc", "--version"),
            ("ld.lld", "--version"),
            ("gcc", "--version"),
        ] {
            if Command::new(program).arg(argument).output().is_err() {
                println!("skipped: {program} is missing (cargo xtask install)");
                return None;
            }
        }
        for header in ["/usr/include/gelf.h", "/usr/include/openssl/opensslv.h"] {
            if !Path::new(header).is_file() {
                println!("skipped: {header} is missing (cargo xtask install)");
                return None;
            }
        }
        let lab = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (file, text) in [
            ("linux/Kconfig", ""),
            ("linux/scripts/x", ""),
            ("linux/Makefile", MAKEFILE),
            ("linux/main.c", "int main;\nint other;\n"),
            ("linux/arch/x86/Kconfig", "config X86\n\tdef_bool y\n"),
        ] {
            let path = lab.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Some(lab)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, experiment: &str) -> Command {
        self.kernel(&["build", "--json"], experiment)
    }

    fn kernel(&self, arguments: &[&str], experiment: &str) -> Command {
        let file = self.path("x.toml");
        let text = format!("kind = 'kernel'\nname = 'x'\n[kernel]\nsource = 'linux'\n{experiment}");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        command
            .args((arguments.first() != Some(&"compare")).then_some("kernel"))
            .args(arguments)
            .arg("--cache")
            .arg(self.path("cache"))
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if matches!(arguments.first(), Some(&("compare" | "bisect"))) {
            command.arg("--store").arg(self.path("store.sqlite"));
        }
        command
    }

    /// Returns a command of the lab with the script in the place of QEMU.
    fn boots(&self, command: &str, experiment: &str) -> Command {
        let mut command = self.kernel(
            &[command, "--set", "tcg=true", "--workload", "fstat"],
            experiment,
        );
        self.with_script(&mut command);
        command
    }

    /// Puts the script in the place of QEMU.
    fn with_script(&self, command: &mut Command) {
        use std::os::unix::fs::PermissionsExt;
        let programs = self.path("programs");
        std::fs::create_dir_all(&programs).unwrap();
        let qemu = programs.join("qemu-system-x86_64");
        std::fs::write(&qemu, QEMU).unwrap();
        std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
        let plugin = self.path("plugin.so");
        std::fs::write(&plugin, "").unwrap();
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        command.env("PATH", path).env("LOCKLAB_QEMU_PLUGIN", plugin);
    }

    /// Returns how often the script was started as QEMU.
    fn booted(&self) -> usize {
        let boots = std::fs::read_to_string(self.path("programs/boots"));
        boots.unwrap_or_default().lines().count()
    }

    /// Runs `kernel bisect`; returns exit code and output.
    fn bisect(&self, experiment: &str) -> (Option<i32>, String) {
        let output = self.boots("bisect", experiment).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    fn run(&self, experiment: &str) -> Output {
        self.command(experiment).output().unwrap()
    }

    fn refused(&self, experiment: &str, code: i32, needle: &str) {
        let output = self.run(experiment);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(needle), "{said}");
    }

    /// Returns the objects of the first build, when it is the only one.
    fn objects(&self) -> Option<PathBuf> {
        let builds = std::fs::read_dir(self.path("cache/builds")).ok()?;
        let build = builds.flatten().next()?.path();
        Some(build.join("objects"))
    }
}

const OTHER: &str = "[experiment]\noptions = ['CONFIG_OTHER=y']\n";

#[test]
fn what_goes_wrong_is_said_with_its_place() {
    let Some(lab) = Lab::new() else { return };
    std::fs::write(
        lab.path("p"),
        "--- a/main.c\n+++ b/main.c\n@@ -1,2 +1,2 @@\n int main;\n-int another;\n+int x;\n",
    )
    .unwrap();
    lab.refused(
        "[baseline]\npatches = ['p']\n[experiment]\n",
        1,
        "does not apply: in main.c, hunk #1 FAILED at 1",
    );
    lab.refused(
        "[baseline]\npatches = ['none']\n[experiment]\n",
        2,
        "cannot read the patch",
    );
    lab.refused(
        "config = 'none.config'\n[experiment]\noptions = ['CONFIG_A=y']\n",
        2,
        "none.config",
    );
    lab.refused(
        "options = ['CONFIG_DROPPED=y']\n[experiment]\noptions = ['CONFIG_A=y']\n",
        1,
        "drops CONFIG_DROPPED=y",
    );
    std::fs::write(lab.path("linux/main.c"), "int main\nint error;\n").unwrap();
    lab.refused(OTHER, 1, "main.c:2:1: error: expected ';'; log: ");
    std::fs::write(lab.path("linux/.config"), "").unwrap();
    lab.refused(OTHER, 2, "was built in");
}

#[test]
fn a_build_goes_on_where_ctrl_c_stopped_it_and_is_then_kept() {
    let Some(lab) = Lab::new() else { return };
    let child = lab.command(OTHER).env("TEST_SLEEP", "60").spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    // The shell makes the file before `date` writes to it: one that is still
    // empty is not built yet.
    let (one, before) = loop {
        let one = lab.objects().map(|objects| objects.join("one.o"));
        let made = one.and_then(|one| Some((std::fs::read_to_string(&one).ok()?, one)));
        if let Some((text, one)) = made.filter(|(text, _)| text.ends_with('\n')) {
            break (one, text);
        }
        assert!(Instant::now() < end, "the build does not start");
        std::thread::sleep(Duration::from_millis(20));
    };
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("continues from there"), "{said}");

    let second = lab.run(OTHER);
    assert!(second.status.success(), "{second:?}");
    assert_eq!(std::fs::read_to_string(&one).unwrap(), before);
    let built = |output: &Output| {
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["builds"].as_array().unwrap().clone()
    };
    assert_eq!(built(&second).len(), 2);
    assert!(built(&second).iter().all(|b| b["seconds"].is_number()));
    let third = lab.run(OTHER);
    assert!(built(&third).iter().all(|b| b["seconds"].is_null()));
}

#[test]
fn commands_that_want_the_same_kernels_at_once_both_get_them() {
    let Some(lab) = Lab::new() else { return };
    // Changed trees, so that copies are made; and a build that takes a while.
    let marks = "[baseline]\nselect = ['A']\n[experiment]\nselect = ['B']\n";
    let mut commands: Vec<_> = (0..4).map(|_| lab.command(marks)).collect();
    let all: Vec<_> = commands
        .iter_mut()
        .map(|command| command.env("TEST_SLEEP", "0.3").spawn().unwrap())
        .collect();
    for child in all {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}

#[test]
fn git_bisect_is_told_good_bad_skip_and_stop() {
    let Some(lab) = Lab::new() else { return };
    let with = |option: &str| format!("[experiment]\noptions = ['CONFIG_{option}=y']\n");
    for (option, code, needle) in [
        ("OTHER", 0, "flat"),
        ("BETTER", 0, "**+"),
        ("WORSE", 1, "**-"),
        ("DROPPED", 125, "drops CONFIG_DROPPED=y"),
        ("PANICS", 125, "the guest's kernel panicked"),
    ] {
        let (exit, said) = lab.bisect(&with(option));
        assert_eq!(exit, Some(code), "{option}: {said}");
        assert!(said.contains(needle), "{option}: {said}");
    }
    // A revision that does not build is skipped, and a file that makes no
    // sense is no fault of a revision.
    std::fs::write(lab.path("linux/main.c"), "int main\nint error;\n").unwrap();
    let (exit, said) = lab.bisect(&with("OTHER"));
    assert_eq!(exit, Some(125), "{said}");
    assert!(said.contains("main.c:2:1: error"), "{said}");
    let (exit, said) = lab.bisect("[experiment]\n");
    assert_eq!(exit, Some(128), "{said}");
    assert!(said.contains("the same kernel"), "{said}");
}

#[test]
fn a_comparison_goes_on_after_the_pairs_that_are_there() {
    let Some(lab) = Lab::new() else { return };
    std::fs::create_dir_all(lab.path("programs")).unwrap();
    std::fs::write(lab.path("programs/stall"), "").unwrap();
    let child = lab.boots("compare", OTHER).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while lab.booted() < 6 {
        assert!(Instant::now() < end, "the third pair does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");

    std::fs::remove_file(lab.path("programs/stall")).unwrap();
    let again = |resume: bool, pairs: usize| {
        let before = lab.booted();
        let mut command = lab.boots("compare", OTHER);
        if resume {
            command.arg("--resume");
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        // The first run is repeated twice: to see whether counts repeat, and
        // what the plugin costs.
        assert_eq!(lab.booted() - before, 2 * pairs + 2, "{said}");
        said
    };
    let said = again(true, 6);
    assert!(said.contains("2 pairs are there"), "{said}");
    // A finished comparison is never resumed.
    assert!(again(true, 8).contains("starting a new one"));
    again(false, 8);
}
