//! Recordings that were made once say the same for ever, and a program that is recorded now
//! says what it does.

use locklab_system_record::{
    Source, SystemRecorded, SystemRecording, Target, is_permitted, is_system_recording,
};
use nix::fcntl::{Flock, FlockArg};
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The folder, seen from that of the crate, in which its tests run: reports name it.
const FOLDER: &str = "tests/recordings";

/// The reports on all recordings of the folder, beside golden files.
#[test]
fn a_recording_says_the_same_for_ever() {
    let renew = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut read = 0;
    for entry in fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rec") {
            continue;
        }
        assert!(is_system_recording(&path), "{}", path.display());
        let text = SystemRecorded::read(&path).unwrap().text();
        let golden = path.with_extension("txt");
        if renew {
            fs::write(&golden, &text).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(text, expected, "{}", golden.display());
        read += 1;
    }
    assert!(read >= 4, "{read} recordings");
}

static SHARED: Mutex<u64> = Mutex::new(0);

#[inline(never)]
fn hold_the_shared_lock() {
    let mut number = SHARED.lock().unwrap();
    *number += 1;
    std::thread::sleep(Duration::from_micros(50));
}

/// Returns what the test below records: two threads that hold one lock while they sleep.
#[test]
#[ignore = "a program for another test"]
fn program_that_contends() {
    let end = Instant::now() + Duration::from_millis(200);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while Instant::now() < end {
                    hold_the_shared_lock();
                }
            });
        }
    });
}

/// Returns what the test below records: waits for any of two words, and a wake-up by the
/// operation that changes a second word.
#[test]
#[ignore = "a program for another test"]
fn program_that_waits_for_any() {
    /// The kernel's `futex_waitv`.
    #[repr(C)]
    struct Awaited {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }
    /// Words of 32 bits, of this process alone.
    const PRIVATE_U32: u32 = 2 | 128;
    const WAKE_OP_PRIVATE: i32 = 5 | 128;
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let (one, two) = (&words[0], &words[1]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                let awaited = [one, two].map(|word| Awaited {
                    value: turn.into(),
                    address: word.as_ptr() as u64,
                    flags: PRIVATE_U32,
                    reserved: 0,
                });
                while one.load(Relaxed) == turn {
                    // SAFETY: a system call with two words that outlive it.
                    unsafe { libc::syscall(libc::SYS_futex_waitv, &raw const awaited, 2, 0, 0, 0) };
                }
            }
        });
        for turn in 0..TURNS {
            std::thread::sleep(Duration::from_millis(2));
            two.store(turn + 1, Relaxed);
            one.store(turn + 1, Relaxed);
            // SAFETY: a system call with two words that outlive it; the operation adds 0.
            unsafe {
                let (one, two) = (one.as_ptr(), two.as_ptr());
                libc::syscall(libc::SYS_futex, one, WAKE_OP_PRIVATE, 1, 1, two, 1 << 28)
            };
        }
    });
}

const TURNS: u32 = 30;

#[test]
fn waits_for_any_of_several_words_are_seen() {
    if may_not() {
        return;
    }
    // SAFETY: a system call that is refused: it waits for no word.
    let none = unsafe { libc::syscall(libc::SYS_futex_waitv, 0, 0, 0, 0, 0) };
    let why = std::io::Error::last_os_error();
    if none < 0 && why.raw_os_error() == Some(libc::ENOSYS) {
        println!("skipped: this kernel has no futex_waitv");
        return;
    }
    let mut words = contends();
    words[1] = "program_that_waits_for_any".into();
    let (status, json) = record(Target::Command(words), Source::System, None);
    assert_eq!(status, 0);
    let waits = json["futex_waits"].as_u64().unwrap();
    assert!(waits >= u64::from(TURNS) / 2, "{json:#}");
}

fn record(target: Target, source: Source, seconds: Option<f64>) -> (u8, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let recording = SystemRecording {
        file: folder.path().join("recording"),
        source,
        target,
        seconds,
        megabytes: 64,
        whole: true,
    };
    let (status, recorded) = recording.ready().unwrap().run(false).unwrap();
    (status, recorded.json())
}

fn contends() -> Vec<std::ffi::OsString> {
    let own = std::env::current_exe().unwrap();
    vec![
        own.into(),
        "program_that_contends".into(),
        "--exact".into(),
        "--ignored".into(),
    ]
}

fn may_not() -> bool {
    let not = !is_permitted();
    if not {
        println!("skipped: recording by the kernel's events needs CAP_PERFMON");
    }
    not
}

#[test]
fn a_program_of_rust_is_recorded_with_its_lock_and_call_site() {
    if may_not() {
        return;
    }
    let (status, json) = record(Target::Command(contends()), Source::System, None);
    assert_eq!(status, 0);
    let lock = &json["locks"][0];
    assert_eq!(lock["kind"], "Rust std", "{json:#}");
    let name = lock["name"].as_str().unwrap();
    assert!(name.contains("hold_the_shared_lock"), "{name}");
    assert!(json["waiting_share"].as_f64().unwrap() > 0.0);
    assert_eq!(json["ended"], "program");
}

#[test]
fn a_process_that_runs_is_recorded_and_not_ended() {
    if may_not() {
        return;
    }
    let mut words = contends();
    words[1] = "program_that_contends_for_long".into();
    let mut child = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let (status, json) = record(Target::Process(child.id()), Source::System, Some(0.3));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status, 0);
    let name = json["locks"][0]["name"].as_str().unwrap_or_default();
    assert!(name.contains("hold_the_shared_lock"), "{json:#}");
    assert_eq!(json["ended"], "seconds");
}

/// A server may have a process for each client, and wait itself.
#[test]
fn the_children_of_a_process_that_runs_are_recorded_with_it() {
    if may_not() {
        return;
    }
    let mut words = contends();
    words[1] = "program_that_contends_for_long".into();
    // A shell with a command behind the program stays its parent.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" >/dev/null & echo $!; wait; :", "sh"]);
    shell.args(&words).stdout(std::process::Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let (_, json) = record(Target::Process(shell.id()), Source::System, Some(0.3));
    Command::new("kill").arg(line.trim()).status().unwrap();
    shell.wait().unwrap();
    let name = json["locks"][0]["name"].as_str().unwrap_or_default();
    assert!(name.contains("hold_the_shared_lock"), "{json:#}");
}

/// Returns what the tests above record.
#[test]
#[ignore = "a program for another test"]
fn program_that_contends_for_long() {
    for _ in 0..150 {
        program_that_contends();
    }
}

#[test]
fn what_does_not_start_or_is_not_there_is_a_sentence() {
    if may_not() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let failure = |target: Target, name: &str| {
        let file = folder.path().join(name);
        let recording = SystemRecording {
            file: file.clone(),
            source: Source::System,
            target,
            seconds: None,
            megabytes: 1,
            whole: true,
        };
        let why = recording
            .ready()
            .unwrap()
            .run(false)
            .map(|_| ())
            .unwrap_err();
        (why.to_string(), file.exists())
    };
    let (why, left) = failure(Target::Command(vec!["/does/not/exist".into()]), "a");
    assert!(why.starts_with("/does/not/exist does not start: "), "{why}");
    assert!(!left);
    let (why, _) = failure(Target::Process(4_000_000), "b");
    assert_eq!(why, "there is no process 4000000");
    let (why, _) = failure(Target::Cgroup("/no/such/group".into()), "c");
    assert!(why.contains("is no control group"), "{why}");
    let file = fs::File::create(folder.path().join("d")).unwrap();
    let written = Flock::lock(file, FlockArg::LockExclusive).unwrap();
    let (why, left) = failure(Target::Command(vec!["true".into()]), "d");
    assert!(
        why.contains("another recording is written there now"),
        "{why}"
    );
    assert!(left);
    drop(written);
}

#[test]
fn a_file_that_is_no_recording_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes");
    fs::write(&file, "my notes").unwrap();
    let recording = SystemRecording {
        file: file.clone(),
        source: Source::System,
        target: Target::Command(vec!["true".into()]),
        seconds: None,
        megabytes: 1,
        whole: true,
    };
    let why = recording.ready().map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("is there and is no recording"), "{why}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "my notes");
}

/// Waits of each thread by 'perf lock contention -t': how many, and nanoseconds with half of
/// their last digit.
fn perf_counts(data: &std::path::Path) -> Vec<(u64, u64, f64, f64)> {
    let run = Command::new("perf")
        .args(["lock", "contention", "-t", "-E", "100000", "-i"])
        .arg(data)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let text = text + &String::from_utf8_lossy(&run.stderr);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let unit = match *words.get(2)? {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
        let number: f64 = words[1].parse().ok()?;
        let thread = words.get(7)?.parse().ok()?;
        Some((thread, words[0].parse().ok()?, number * unit, unit * 0.005))
    };
    text.lines().filter_map(row).collect()
}

/// The waits that this crate pairs are those that perf pairs, of the same events.
#[test]
fn waits_for_the_kernels_locks_are_those_that_perf_counts() {
    if may_not() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let work = "for i in 1 2 3; do (find /usr/share -type f | head -500 | xargs cat > /dev/null) \
                & done; wait";
    let recorded = Command::new("perf")
        .args(["lock", "record", "-o"])
        .arg(&data)
        .args(["--", "sh", "-c", work])
        .output();
    if !recorded.is_ok_and(|run| run.status.success()) {
        println!("skipped: 'perf lock record' is not there, or not permitted");
        return;
    }
    let script = Command::new("perf")
        .args(["script", "--ns", "-i"])
        .arg(&data)
        .output()
        .unwrap();
    let found = locklab_trace::kernel_waits(&String::from_utf8_lossy(&script.stdout)).unwrap();
    let theirs = perf_counts(&data);
    let mut compared = 0;
    // The idle tasks of all CPUs are one thread to perf.
    for (thread, waits, nanoseconds, rounded) in theirs.iter().filter(|row| row.0 != 0) {
        let ours = found.waits.iter().filter(|wait| wait.task == *thread);
        let (count, sum) = ours.fold((0, 0.0), |(count, sum), wait| {
            (count + 1, sum + wait.nanoseconds as f64)
        });
        // perf counts those that go on when the recording ends.
        assert!(
            count == *waits || count + 1 == *waits,
            "{thread}: {count}, perf {waits}"
        );
        assert!(
            (sum - nanoseconds).abs() <= *rounded,
            "{thread}: {sum}, perf {nanoseconds}"
        );
        compared += 1;
    }
    assert!(compared > 0 || found.waits.iter().all(|wait| wait.task == 0));
}
