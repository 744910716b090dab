//! What can go wrong before a kernel boots, on a tree that is a kernel to
//! nobody but make: patches, configuration, build, Ctrl-C.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// As the kernel's makefiles behave: options are kept or dropped, and a step
/// that is done is not done again.
const MAKEFILE: &str = r#"
allnoconfig:
	grep -v DROPPED $(KCONFIG_ALLCONFIG) > $(O)/.config
vmlinux: $(O)/one.o $(O)/two.o
	cp $(O)/one.o $(O)/vmlinux
$(O)/one.o: main.c
	@echo '  CC      one.o'
	@! grep -n error main.c || { echo "main.c:2:1: error: expected ';'" >&2; false; }
	@date +%s%N > $@
$(O)/two.o: $(O)/one.o
	@sleep $${TEST_SLEEP:-0}
	@touch $@
bzImage modules:
	@true
"#;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    /// None where a program that builds kernels is missing.
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
                eprintln!("skipped: {program} is missing (cargo xtask install)");
                return None;
            }
        }
        for header in ["/usr/include/gelf.h", "/usr/include/openssl/opensslv.h"] {
            if !Path::new(header).is_file() {
                eprintln!("skipped: {header} is missing (cargo xtask install)");
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
        let file = self.path("x.toml");
        let text = format!("name = 'x'\n[kernel]\nsource = 'linux'\n{experiment}");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_locklab"));
        command
            .args(["kernel", "build", "--json", "--cache"])
            .arg(self.path("cache"))
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
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

    /// The objects of the first build, when it is the only one.
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
    lab.refused(OTHER, 2, "has been built in");
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
    assert!(said.contains("goes on from there"), "{said}");

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
