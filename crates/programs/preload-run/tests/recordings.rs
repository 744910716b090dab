//! Programs that are recorded: what is said of them is what they did.

use locklab_host::cpu_use::CpuUse;
use locklab_preload_run::{Client, Recorded, Recording, SYSTEM_START};
use locklab_trace::{Event, Trace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::Duration;

/// The program beside the tests; `None`, after saying so, without a compiler.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| compile("threads", &[]));

fn compile(name: &str, more: &[&str]) -> Option<PathBuf> {
    compile_file("threads.c", name, more)
}

/// Compiles a file of `tests/c`.
fn compile_file(source: &str, name: &str, more: &[&str]) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(source);
    let compiled = Command::new("gcc")
        .args([
            "-g",
            "-O1",
            "-fno-inline",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
        ])
        .args(more)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status();
    let Ok(status) = compiled else {
        println!("skipped: no gcc; install the package gcc");
        return None;
    };
    assert!(status.success(), "the program compiles");
    Some(program)
}

fn recording(folder: &Path, words: &[&str]) -> Recording {
    Recording {
        file: folder.join("recording"),
        seconds: None,
        megabytes: 16,
        whole: true,
        command: words.iter().map(Into::into).collect(),
        round_trip: || None,
        cpu_use: || None,
        client: None,
    }
}

/// Returns the exit status, the text, and the findings.
fn record(recording: Recording) -> (u8, String, Value) {
    let (status, recorded) = recording.ready().unwrap().run(true).unwrap();
    (status, recorded.text(), recorded.json())
}

/// Runs the program for `what`.
fn run(what: &str) -> Option<(u8, String, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let program = PROGRAM.as_ref()?;
    let words = [program.to_str().unwrap(), what];
    Some(record(recording(folder.path(), &words)))
}

fn acquired(json: &Value) -> Vec<u64> {
    let locks = json["locks"].as_array().unwrap();
    locks
        .iter()
        .map(|lock| lock["counts"]["acquired"].as_u64().unwrap())
        .collect()
}

#[test]
fn each_acquisition_is_there_with_its_place_and_its_thread() {
    let Some((status, text, json)) = run("two") else {
        return;
    };
    assert_eq!(status, 7);
    assert_eq!(acquired(&json), [200]);
    assert_eq!(json["threads"].as_array().unwrap().len(), 3);
    assert_eq!(json["ended"], "program");
    assert_eq!(json["missing_blocks"], 0);
    let name = json["sites"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("take threads.c:"), "{name}");
    // Requests, releases and two joins.
    assert_eq!(json["operations"], 402);
    assert!(json["overhead"]["ns_per_operation"].as_f64().unwrap() > 0.0);
    assert!(text.contains("#1 take threads.c:"), "{text}");
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 72 || line.starts_with("Command")),
        "{text}"
    );
}

#[test]
fn of_a_thread_that_acquires_and_releases_in_turn_both_are_timed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    record(recording(
        folder.path(),
        &[program.to_str().unwrap(), "two"],
    ));
    let trace = Trace::read(std::fs::read(folder.path().join("recording")).unwrap()).unwrap();
    let mut timed = [0, 0];
    for thread in &trace.threads {
        let mut releases = false;
        for (_, event) in trace.events(thread) {
            match event {
                Event::Acquired => releases = false,
                Event::Released => releases = true,
                Event::Cost { .. } => timed[usize::from(releases)] += 1,
                _ => {}
            }
        }
    }
    assert!(timed.iter().all(|&times| times > 0), "{timed:?}");
}

/// Recording takes a large part of such a program's time, on any machine.
#[test]
fn a_program_that_recording_would_slow_is_recorded_in_windows() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let words = [program.to_str().unwrap(), "busy"];
    let busy = Recording {
        megabytes: 512,
        whole: false,
        ..recording(folder.path(), &words)
    };
    let (status, text, json) = record(busy);
    assert_eq!(status, 7);
    let windows = &json["windows"];
    assert!(windows["count"].as_u64().unwrap() >= 1, "{json}");
    assert!(windows["share"].as_f64().unwrap() < 0.9, "{json}");
    assert!(text.contains("recorded in"), "{text}");
    assert_eq!(json["threads"].as_array().unwrap().len(), 1);
    // What is held between windows is not known, and no hold.
    let counts = &json["locks"][0]["counts"];
    let recorded = json["recorded_ns"].as_f64().unwrap();
    assert!(counts["acquired"].as_u64().unwrap() > 1000, "{json}");
    assert!(counts["held_ns"].as_f64().unwrap() < recorded, "{json}");
    assert!(
        counts["waited_ns"].as_f64().unwrap() < recorded / 10.0,
        "{json}"
    );
}

#[test]
fn who_asks_for_the_whole_time_gets_no_windows() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let words = [program.to_str().unwrap(), "busy"];
    // Longer than what is recorded before it is decided, and short to read.
    let busy = Recording {
        seconds: Some(0.15),
        megabytes: 512,
        ..recording(folder.path(), &words)
    };
    let (status, _, json) = record(busy);
    assert_eq!(status, 7);
    assert!(json["windows"].is_null(), "{json}");
}

#[test]
fn threads_that_follow_one_another_share_blocks() {
    let Some((_, _, json)) = run("many") else {
        return;
    };
    assert_eq!(acquired(&json), [30_000]);
    assert_eq!(json["threads"].as_array().unwrap().len(), 301);
    assert!(
        json["bytes"].as_u64().unwrap() < 1 << 20,
        "{}",
        json["bytes"]
    );
}

#[test]
fn a_wait_is_that_for_the_holder_and_a_condition_is_none() {
    let Some((_, _, held)) = run("hold") else {
        return;
    };
    assert_eq!(held["locks"][0]["counts"]["contended"], 1);
    assert!(held["threads"][1]["waited_ns"].as_f64().unwrap() > 0.0);
    // The main thread sleeps for 20 ms while the other waits for the condition.
    let (_, text, condition) = run("condition").unwrap();
    let waiter = &condition["threads"][1];
    assert_eq!(waiter["waited_ns"], 0.0, "{text}");
    assert!(waiter["idle_ns"].as_f64().unwrap() > 19e6, "{text}");
}

#[test]
fn sleeps_and_waits_for_files_are_no_work() {
    let Some((status, text, json)) = run("sleep") else {
        return;
    };
    assert_eq!(status, 7);
    assert!(
        json["threads"][0]["idle_ns"].as_f64().unwrap() > 89e6,
        "{text}"
    );
    // Two pairs and nine sleeps.
    assert_eq!(json["operations"], 13);
}

#[test]
fn waits_that_are_not_recorded_are_no_work() {
    let Some((status, text, json)) = run("blocks") else {
        return;
    };
    assert_eq!(status, 7, "{text}");
    // What they were for is not known.
    let unknown = json["threads"][0]["unknown_ns"].as_f64().unwrap();
    assert!(unknown > 39e6, "{text}");
    // Two pairs, and nothing of the waits.
    assert_eq!(json["operations"], 4);
}

#[test]
fn rwlocks_and_tries_are_recorded_with_what_they_got() {
    let Some((status, _, json)) = run("readers") else {
        return;
    };
    assert_eq!(status, 7);
    assert_eq!(acquired(&json), [3]);
}

#[test]
fn a_cancelled_wait_unwinds_through_the_recorder() {
    let Some((status, text, json)) = run("cancel") else {
        return;
    };
    assert_eq!(status, 7, "{text}");
    assert_eq!(acquired(&json), [3]);
}

#[test]
fn a_fork_and_an_exec_are_images_of_their_own_with_all_they_did() {
    let Some((status, text, json)) = run("fork") else {
        return;
    };
    assert_eq!(status, 1, "the child's status is not 0: {text}");
    assert_eq!(acquired(&json), [15, 20, 50]);
    let forked: Vec<_> = json["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["forked"].as_bool().unwrap())
        .collect();
    assert_eq!(forked, [false, true, false]);
    assert_eq!(json["images"][1]["process"], json["images"][2]["process"]);
    assert!(text.contains("3 program images were recorded, 1 of them made by fork"));
}

#[test]
fn what_was_recorded_before_a_kill_is_there() {
    let Some((status, _, json)) = run("kill") else {
        return;
    };
    assert_eq!(status, 137);
    assert_eq!(acquired(&json), [1000]);
}

#[test]
fn a_full_file_ends_the_recording_and_not_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = &*PROGRAM else {
        return;
    };
    let full = Recording {
        megabytes: 1,
        ..recording(folder.path(), &[program.to_str().unwrap(), "long"])
    };
    let (status, text, json) = record(full);
    assert_eq!(status, 7);
    assert_eq!(json["ended"], "full");
    assert!(json["bytes"].as_u64().unwrap() <= 1 << 20);
    let [taken] = acquired(&json)[..] else {
        panic!("{json}");
    };
    assert!(taken > 50_000 && taken < 400_000, "{taken}");
    assert!(
        text.contains("--megabytes gives a recording more"),
        "{text}"
    );
    // It is read again, and says the same.
    let again = Recorded::read(&folder.path().join("recording")).unwrap();
    assert_eq!(again.text(), text);
}

#[test]
fn a_fork_of_the_recorder_is_no_part_of_the_program() {
    static CALLED: AtomicBool = AtomicBool::new(false);
    static FORKED: AtomicI32 = AtomicI32::new(0);
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let forks = Recording {
        // It is called before the program and after it, while the file is mapped. Any command
        // that is started then is such a fork, until it has memory of its own.
        round_trip: || {
            if !CALLED.swap(true, Relaxed) {
                return None;
            }
            // SAFETY: the child calls nothing but `pause`.
            match unsafe { libc::fork() } {
                0 => loop {
                    // SAFETY: it only waits for a signal.
                    unsafe { libc::pause() };
                },
                child => FORKED.store(child, Relaxed),
            }
            None
        },
        ..recording(folder.path(), &[program.to_str().unwrap(), "two"])
    };
    let (_, text, _) = record(forks);
    let child = FORKED.load(Relaxed);
    assert!(child > 0, "no fork: {child}");
    // SAFETY: they end our own child, and wait for it.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert!(!text.contains("still runs"), "{text}");
}

#[test]
fn it_says_how_far_apart_the_cpus_were_and_whether_they_moved() {
    static NEAR: AtomicBool = AtomicBool::new(true);
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let moved = Recording {
        round_trip: || {
            Some(if NEAR.swap(false, Relaxed) {
                50.0
            } else {
                440.0
            })
        },
        ..recording(folder.path(), &[program.to_str().unwrap(), "two"])
    };
    let (_, text, json) = record(moved);
    assert_eq!(json["round_trips_ns"], serde_json::json!([50.0, 440.0]));
    let words: Vec<&str> = text.split_whitespace().collect();
    let says = "took 50 ns at first and 440 ns at the end";
    assert!(words.join(" ").contains(says), "{text}");
    let (_, text, json) = run("two").unwrap();
    assert_eq!(json["round_trips_ns"], serde_json::json!([null, null]));
    assert!(!text.contains("moved"), "{text}");
}

#[test]
fn it_says_if_others_had_the_cpus_that_the_program_needed() {
    static BEFORE: AtomicBool = AtomicBool::new(true);
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let shared = Recording {
        // On a machine of any size nothing is left.
        cpu_use: || {
            let before = BEFORE.swap(false, Relaxed);
            Some(CpuUse {
                at_ns: if before { 0 } else { 1_000_000_000 },
                all: Duration::from_secs(if before { 0 } else { 100_001 }),
                own: Duration::from_secs(u64::from(!before)),
            })
        },
        ..recording(folder.path(), &[program.to_str().unwrap(), "two"])
    };
    let (_, text, json) = record(shared);
    assert_eq!(json["cpus_used"], serde_json::json!([1.0, 100_000.0]));
    let words: Vec<&str> = text.split_whitespace().collect();
    let says = "Other programs used 100000.0 CPUs during the recording";
    assert!(words.join(" ").contains(says), "{text}");
    let (_, text, json) = run("two").unwrap();
    assert_eq!(json["cpus_used"], serde_json::Value::Null);
    assert!(!text.contains("other programs"), "{text}");
}

#[test]
fn a_time_ends_the_recording_and_not_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = &*PROGRAM else {
        return;
    };
    let short = Recording {
        seconds: Some(1e-6),
        ..recording(folder.path(), &[program.to_str().unwrap(), "long"])
    };
    let (status, _, json) = record(short);
    assert_eq!(status, 7);
    assert_eq!(json["ended"], "seconds");
    assert!(acquired(&json).iter().sum::<u64>() < 400_000);
}

#[test]
fn a_file_that_is_cut_off_is_read_and_judged_by_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = &*PROGRAM else {
        return;
    };
    let whole = recording(folder.path(), &[program.to_str().unwrap(), "many"]);
    let file = whole.file.clone();
    let (_, _, all) = record(whole);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let cut = Recorded::read(&file).unwrap();
    assert!(acquired(&cut.json())[0] < acquired(&all)[0]);
    assert!(
        cut.text().contains("No verdict: the file is not whole"),
        "{}",
        cut.text()
    );
}

#[test]
fn bad_input_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let Some(alone) = &*PROGRAM else {
        return;
    };
    let (_, text, _) = record(recording(
        folder.path(),
        &[alone.to_str().unwrap(), "alone"],
    ));
    assert!(
        text.contains("Nothing to gain: the program has one thread"),
        "{text}"
    );
    let (_, text, _) = record(recording(
        folder.path(),
        &[alone.to_str().unwrap(), "nothing"],
    ));
    assert!(
        text.contains("No pthread mutex or rwlock was taken"),
        "{text}"
    );
    let missing = recording(folder.path(), &["/no/such/program"]);
    let error = missing
        .ready()
        .unwrap()
        .run(true)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("/no/such/program does not start: "),
        "{error}"
    );
    let foreign = Recording {
        file: alone.clone(),
        ..recording(folder.path(), &["true"])
    };
    let error = foreign.ready().unwrap_err().to_string();
    assert!(
        error.ends_with("is there and is no recording; name another file"),
        "{error}"
    );
    // One by the kernel's events may be replaced.
    let other = folder.path().join("other");
    std::fs::write(&other, format!("{SYSTEM_START},\n")).unwrap();
    let replaced = Recording {
        file: other,
        ..recording(folder.path(), &["true"])
    };
    assert!(replaced.ready().is_ok());
    let error = Recorded::read(alone).err().unwrap().to_string();
    assert!(
        error.ends_with("it is no recording of 'locklab record'"),
        "{error}"
    );
    let Some(fixed) = compile("fixed", &["-static"]) else {
        return;
    };
    let (status, text, _) = record(recording(folder.path(), &[fixed.to_str().unwrap(), "two"]));
    assert_eq!(status, 7);
    let flat = text.replace('\n', " ");
    assert!(
        flat.contains("Nothing was recorded: fixed is linked statically, and loads no recorder."),
        "{text}"
    );
}

/// The recorder asks how often a thread had no CPU, unless a filter forbids the question.
#[test]
fn a_question_that_a_filter_forbids_is_not_asked() {
    let source = "../../../preload/tests/c/sandboxed.c";
    let Some(program) = compile_file(source, "sandboxed", &[]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let number = libc::SYS_getrusage.to_string();
    let words = [program.to_str().unwrap(), &number];
    let (status, text, json) = record(recording(folder.path(), &words));
    assert_eq!(status, 0, "{text}");
    let all: u64 = acquired(&json).iter().sum();
    assert!(all == 80_000 || all == 0, "{text}");
}

/// A shell that records nothing is not the program; what it started is named.
#[test]
fn a_static_program_that_a_shell_starts_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("spins.c");
    let text = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2); }\n";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("spins");
    let compiled = Command::new("gcc")
        .arg("-static")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: no static libc; install the packages gcc and libc6-dev");
        return;
    }
    let line = format!("{}; :", program.display());
    let (_, text, _) = record(recording(folder.path(), &["sh", "-c", &line]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("No pthread lock was taken; spins is linked statically"),
        "{text}"
    );
    assert!(text.contains("'locklab record --system'"), "{text}");
}

#[test]
fn a_client_is_the_program_s_and_one_that_is_not_there_is_said() {
    let Some(program) = PROGRAM.as_ref() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let with = |client| {
        record(Recording {
            client: Some(client),
            ..recording(folder.path(), &[program.to_str().unwrap(), "two"])
        })
    };
    let says = "the client did not run when the program ended";
    let (_, text, _) = with(Client::Process(std::process::id()));
    assert!(!text.contains(says), "{text}");
    let (_, text, _) = with(Client::named("no-such-program"));
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(says), "{text}");
}
