//! The table "when it does not come back", row by row, with a script that stands
//! for ssh and the machine.

use super::returning::{BEFORE_PANIC, LAST_LINES, tail};
use super::*;
use crate::outcome::parse;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;

/// A machine that a script plays, in a folder of its own.
struct Fixture {
    folder: tempfile::TempDir,
    interrupt: AtomicBool,
}

impl Fixture {
    fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            interrupt: AtomicBool::new(false),
        };
        for (name, text) in [
            ("place", "home"),
            ("count", "1"),
            ("next", "up"),
            ("run", "ok"),
            ("version", "#1 SMP test"),
            ("probe", crate::test_machine::home::EXAMPLE),
            ("log", ""),
            ("image", "an image"),
            ("initramfs", "an initramfs"),
        ] {
            stage.set(name, text);
        }
        let ssh = include_str!("ssh.sh").replace("STATE", stage.path("").to_str().unwrap());
        stage.set("ssh", &ssh);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(stage.path("ssh"), mode).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn get(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.trim().to_owned()
    }

    fn cache(&self) -> Cache<'_> {
        Cache {
            root: self.folder.path().into(),
            interrupt: &self.interrupt,
            quiet: true,
        }
    }

    fn machine<'a>(&self, cache: &'a Cache<'a>, settings: TestMachineSettings) -> Machine<'a> {
        let session = Session::without_keys().unwrap();
        std::fs::write(session.file("test-machine"), "a program").unwrap();
        let ssh = Ssh::by(self.path("ssh"), "root@testhost", session.path());
        let mut machine = Machine::at_home(cache, session, ssh, settings).unwrap();
        machine.pause = Duration::from_millis(1);
        machine
    }

    /// Starts the test's kernel.
    fn start(&self, machine: &mut Machine<'_>) -> Result<Up, Trouble> {
        machine.start(&Start {
            image: &self.path("image"),
            initramfs: &self.path("initramfs"),
            cmdline: "panic=5",
            version: &["6.1.0".into(), "#1 SMP test".into()],
        })
    }

    /// Returns a command that brings the machine home, whatever it does: in a boot of its
    /// own, as a real one does.
    fn power_cycle(&self) -> String {
        format!(
            "cd {}; echo $(($(cat count) + 1)) >count; echo home >place; echo cycle >>log",
            self.folder.path().display()
        )
    }
}

/// Returns settings with a limit that is long enough for a script on any machine, or
/// short where it must run out.
fn limited(seconds: f64) -> TestMachineSettings {
    TestMachineSettings {
        limit: Some(Limit::try_from(seconds).unwrap()),
        ..TestMachineSettings::default()
    }
}

const LONG: f64 = 3600.0;

/// Says where a limit must run out, by looks and not by time.
const FEW_LOOKS: u32 = 20;

fn failed(trouble: Trouble) -> (String, Vec<String>) {
    match trouble {
        Trouble::Failed { why, console } => (why, console),
        other => panic!("{other:?}"),
    }
}

fn fatal(trouble: Trouble) -> String {
    match trouble {
        Trouble::Fatal(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kernel_is_started_proved_and_measured_and_the_machine_is_home_again() {
    let stage = Fixture::new();
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    for _ in 0..2 {
        let up = stage.start(&mut machine).unwrap();
        assert_eq!(up.facts.token(), up.token);
        assert_eq!(
            stage.get("cmdline"),
            format!("panic=5 locklab.token={}", up.token)
        );
        let results = machine.run("0", "workload fstat\n").unwrap();
        assert_eq!(parse(&results).unwrap().elapsed_ns, 50);
        assert_eq!(stage.get("plan-0"), "workload fstat");
        machine.go_home().unwrap();
        assert_eq!(stage.get("place"), "home");
    }
    assert_eq!(stage.get("test-machine"), "a program");
    // Nothing is asked between the start of a run and its end.
    let log = stage.get("log");
    let lines: Vec<&str> = log.lines().collect();
    let ran = lines
        .iter()
        .position(|line| *line == "kernel run 0")
        .unwrap();
    assert_eq!(lines[ran - 1], "kernel put plan-0");
    assert_eq!(lines[ran + 1], "kernel reboot");
}

#[test]
fn in_a_chain_the_next_kernel_is_started_from_the_one_before() {
    let stage = Fixture::new();
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    let one = stage.start(&mut machine).unwrap();
    let two = stage.start(&mut machine).unwrap();
    assert_ne!(one.token, two.token);
    assert!(stage.get("log").contains("kernel load\nkernel exec"));
    drop(machine);
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn a_kernel_that_is_refused_leaves_the_machine_untouched_and_says_why() {
    let stage = Fixture::new();
    stage.set(
        "refuse",
        "locklab: the kernel refuses the image: lockdown\n",
    );
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    let why = fatal(stage.start(&mut machine).unwrap_err());
    assert!(
        why.contains("lockdown") && why.contains("untouched"),
        "{why}"
    );
    assert_eq!(stage.get("place"), "home");
    assert!(
        stage
            .get("log")
            .contains("test-machine unload; rm -rf /dev/shm/locklab")
    );
    assert!(!stage.get("log").contains("test-machine exec"));
}

#[test]
fn a_kernel_that_panics_costs_its_sample_and_the_next_one_starts() {
    let stage = Fixture::new();
    stage.set("next", "panic");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    let (why, console) = failed(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("came home by itself"), "{why}");
    assert_eq!(console, ["Kernel panic - not syncing: from pstore"]);
    stage.set("next", "up");
    stage.start(&mut machine).unwrap();
    stage.set("run", "panic");
    let (why, _) = failed(machine.run("0", "").unwrap_err());
    assert!(why.contains("while a workload ran"), "{why}");
    stage.start(&mut machine).unwrap();
}

#[test]
fn a_kernel_that_hangs_is_ended_by_a_power_cycle() {
    let stage = Fixture::new();
    stage.set("next", "hang");
    let cache = stage.cache();
    let settings = TestMachineSettings {
        power_cycle: Some(stage.power_cycle()),
        console: Some("echo 'last words'; exec sleep 1000".into()),
        ..limited(LONG)
    };
    let mut machine = stage.machine(&cache, settings);
    machine.looks = FEW_LOOKS;
    machine.listen().unwrap();
    let (why, console) = failed(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("not up within"), "{why}");
    assert!(
        console
            .iter()
            .all(|line| line == "last words" || line.contains("pstore"))
    );
    assert_eq!(stage.get("place"), "home");
    // And one that hangs while it measures.
    stage.set("next", "up");
    stage.set("run", "hang");
    stage.start(&mut machine).unwrap();
    let (why, _) = failed(machine.run("0", "").unwrap_err());
    assert!(why.contains("no longer answers"), "{why}");
    assert_eq!(stage.get("log").matches("cycle").count(), 2);
}

#[test]
fn without_a_power_cycle_a_hang_is_the_end_and_says_how_to_go_on() {
    let stage = Fixture::new();
    stage.set("next", "hang");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    machine.looks = FEW_LOOKS;
    let why = fatal(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("--resume") && why.contains("reboot"), "{why}");
    // The same when the command fails.
    let stage = Fixture::new();
    stage.set("next", "hang");
    let cache = stage.cache();
    let settings = TestMachineSettings {
        power_cycle: Some("echo 'no such outlet' >&2; exit 3".into()),
        ..limited(LONG)
    };
    let mut machine = stage.machine(&cache, settings);
    machine.looks = FEW_LOOKS;
    let why = fatal(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("no such outlet"), "{why}");
}

#[test]
fn what_answers_must_prove_which_kernel_it_is() {
    let stage = Fixture::new();
    stage.set("next", "wrong");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    let (why, _) = failed(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("another kernel"), "{why}");
    assert_eq!(stage.get("place"), "home");
    // The right token, and another kernel than the image's header names.
    stage.set("next", "up");
    stage.set("version", "#2 SMP other");
    let (why, _) = failed(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("#2 SMP other"), "{why}");
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn results_are_collected_after_a_broken_connection() {
    let stage = Fixture::new();
    stage.set("run", "lost");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    stage.start(&mut machine).unwrap();
    let results = machine.run("0", "").unwrap();
    assert_eq!(parse(&results).unwrap().work, 10);
    assert!(stage.get("log").contains("kernel facts\nkernel results 0"));
}

#[test]
fn a_workload_that_cannot_run_or_does_not_end_costs_its_sample() {
    let stage = Fixture::new();
    stage.set("run", "fail");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    stage.start(&mut machine).unwrap();
    let results = machine.run("0", "").unwrap();
    let why = parse(&results).unwrap_err().unwrap();
    assert!(why.contains("no such plan"), "{why}");
    drop(machine);
    stage.set("run", "slow");
    let mut machine = stage.machine(&cache, limited(LONG));
    stage.start(&mut machine).unwrap();
    // The only time that must pass: the workload never ends.
    machine.settings.limit = limited(1.0).limit;
    let (why, _) = failed(machine.run("0", "").unwrap_err());
    assert!(why.contains("did not end"), "{why}");
    assert_eq!(stage.get("place"), "home");
}

/// The stand-in found this: the connection of the command that starts a kernel
/// may never end, because the machine is gone before it is closed.
#[test]
fn a_start_whose_connection_does_not_end_is_a_start() {
    let stage = Fixture::new();
    stage.set("next", "late");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    machine.look = Duration::from_secs(5);
    stage.start(&mut machine).unwrap();
    assert_eq!(stage.get("place"), "kernel");
    drop(machine);
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn a_machine_that_does_not_leave_is_not_measured() {
    let stage = Fixture::new();
    stage.set("next", "stay");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    machine.looks = FEW_LOOKS;
    let why = fatal(stage.start(&mut machine).unwrap_err());
    assert!(why.contains("did not leave"), "{why}");
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn ctrl_c_brings_the_machine_home_first() {
    let stage = Fixture::new();
    stage.set("run", "slow");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    stage.start(&mut machine).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stage.path("running").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            stage.interrupt.store(true, Ordering::Relaxed);
        });
        assert_eq!(machine.run("0", ""), Err(Trouble::Interrupted));
    });
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn ctrl_c_in_a_boot_is_heard_by_the_kernel_once_it_is_up() {
    let stage = Fixture::new();
    stage.set("next", "slow");
    let cache = stage.cache();
    let mut machine = stage.machine(&cache, limited(LONG));
    machine.looks = FEW_LOOKS;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while stage.get("place") != "booting" {
                std::thread::yield_now();
            }
            stage.interrupt.store(true, Ordering::Relaxed);
        });
        assert_eq!(stage.start(&mut machine), Err(Trouble::Interrupted));
    });
    assert_eq!(stage.get("place"), "home");
}

#[test]
fn a_machine_that_does_not_answer_is_said_before_anything_is_done() {
    let stage = Fixture::new();
    stage.set("place", "gone");
    let cache = stage.cache();
    let session = Session::without_keys().unwrap();
    let ssh = Ssh::by(stage.path("ssh"), "root@testhost", session.path());
    let found = Machine::at_home(&cache, session, ssh, limited(LONG));
    let why = found.err().unwrap().to_string();
    assert!(why.contains("ssh root@testhost by hand"), "{why}");
    // Nothing is claimed of a machine that has not answered yet.
    stage.interrupt.store(true, Ordering::Relaxed);
    let (session, ssh) = (
        Session::without_keys().unwrap(),
        Ssh::by(stage.path("ssh"), "root@testhost", stage.path("").as_path()),
    );
    let found = Machine::at_home(&cache, session, ssh, limited(LONG));
    let why = found.err().unwrap().to_string();
    assert!(
        why.contains("nothing was started on root@testhost"),
        "{why}"
    );
}

#[test]
fn the_panic_is_shown_however_long_the_trace_below_it() {
    let text = |trace: usize| {
        let mut text: String = (0..30).map(|n| format!("boot {n}\n")).collect();
        text.push_str("Kernel panic - not syncing: no init\n\n");
        text.extend((0..trace).map(|n| format!("trace {n}\n")));
        text
    };
    for trace in [0, 3, 200] {
        let shown = tail(&text(trace));
        assert!(shown.len() <= LAST_LINES);
        assert_eq!(shown[BEFORE_PANIC], "Kernel panic - not syncing: no init");
    }
    let last = tail(&text(0).replace("panic", "end"));
    assert_eq!(last.len(), LAST_LINES);
    assert_eq!(last[LAST_LINES - 1], "Kernel end - not syncing: no init");
}
