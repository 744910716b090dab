//! `locklab advise`: recordings that are written down here, what is said of
//! them, and bad input.

use crate::common::golden::golden;
use assert_cmd::Command;
use locklab_trace::{
    Access, Attempt, BLOCK, Encoder, Event, FIRST, Frames, Header, Stopped, VERSION, close,
    file_bytes,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

const LOCK: u64 = 0x5500_0000_1000;

/// Returns the file of a recording of these threads, on a machine of four CPUs.
fn write(folder: &Path, threads: &[Vec<(u64, Event<'static>)>]) -> PathBuf {
    let blocks = 512;
    let header = Header::new(1.0, 0, blocks, "a machine, 4 CPUs", "./server --hot");
    let mut bytes = vec![0; usize::try_from(file_bytes(blocks)).unwrap()];
    let mut last = 1;
    for (number, records) in threads.iter().enumerate() {
        let thread = number as u64;
        let begin = Event::Begin { thread, image: 0 };
        let mut encoder = Encoder::default();
        let (mut at, mut end) = (0, 0);
        for (tick, event) in records {
            last = last.max(*tick);
            let used = match encoder.write(*tick, event, &mut bytes[at..end]) {
                Some(used) => used,
                None => {
                    at = header.claim().expect("room for the records");
                    end = at + BLOCK;
                    at += encoder.write(*tick, &begin, &mut bytes[at..end]).unwrap();
                    encoder.write(*tick, event, &mut bytes[at..end]).unwrap()
                }
            };
            at += used;
        }
    }
    header.stop(last, Stopped::Ended);
    bytes.truncate(usize::try_from(close(&header)).unwrap());
    bytes[..FIRST].copy_from_slice(header.bytes());
    let drawn = threads.iter().map(Vec::len).sum::<usize>();
    let file = folder.join(format!("recording-{}-{drawn}", threads.len()));
    std::fs::write(&file, bytes).unwrap();
    file
}

/// Returns four threads that take one lock in order of arrival: they compute for about
/// `outside`, hold for `inside`, and a thread that has to wait has the lock
/// `handoff` after the other gave it up.
fn hot(outside: u64, inside: u64, handoff: u64) -> Vec<Vec<(u64, Event<'static>)>> {
    hot_of(4, [outside, inside, handoff])
}

/// Returns the same of so many threads.
fn hot_of(threads: usize, [outside, inside, handoff]: [u64; 3]) -> Vec<Vec<(u64, Event<'static>)>> {
    let stack = Event::Stack {
        number: 1,
        frames: Frames(&[[7, 0, 0, 0, 0, 0, 0, 0]]),
    };
    let of = threads;
    let mut threads = vec![vec![(0, stack)]; of];
    let mut next: Vec<(u64, usize)> = (0..of).map(|thread| (97 * thread as u64, thread)).collect();
    let (mut free_at, mut drawn) = (0, 12_345_u64);
    for _ in 0..4000 {
        next.sort_unstable();
        let (asks, thread) = next[0];
        let has = match asks >= free_at {
            true => asks + 25,
            false => free_at + handoff,
        };
        let gives_up = has + inside;
        free_at = gives_up + 10;
        let access = Access {
            shared: false,
            attempt: Attempt::Waits,
        };
        let (lock, stack) = (LOCK, 1);
        let request = Event::Request {
            lock,
            stack,
            access,
        };
        threads[thread].extend([
            (asks, request),
            (has, Event::Acquired),
            (gives_up, Event::Release { lock }),
            (gives_up + 25, Event::Released),
        ]);
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        next[0].0 = gives_up + 25 + outside / 2 + (drawn >> 33) % (outside + 1);
    }
    threads
}

fn advise(file: &Path, arguments: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(["advise", "--quiet"]).arg(file);
    command.args(arguments.split_whitespace());
    command
}

const FEW: &str = "--locks mcs,ttas --draws 2";

fn document(file: &Path, arguments: &str) -> Value {
    let out = advise(file, &format!("{arguments} --json"))
        .assert()
        .success();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

#[test]
fn advice_begins_with_what_no_lock_can_beat_and_ends_with_what_it_rests_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &hot(100_000, 10_000, 4000));
    let html = folder.path().join("report.html");
    let arguments = format!("{FEW} --threads 4,8 --on flat-16 --html {}", html.display());
    let out = advise(&file, &arguments).assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    for part in [
        "Locks of server: what to do",
        "No lock can gain more than",
        "simulation of that window",
        "On flat-16",
        "4 threads",
        "8 threads",
        "(ideal)",
        "If the hottest lock were split in eight,",
        "0x550000001000",
        "What this rests on",
    ] {
        // A sentence may go on in the next line.
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "no '{part}' in {text}");
    }
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 72).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("Rate over threads"), "a chart");
    // Its lines have names, and the axis of the timeline has times.
    for name in [">today's</text>", ">(ideal)</text>"] {
        assert!(page.contains(name), "no {name}");
    }
    assert!(!page.contains("></text>"), "an axis without names");
}

/// Returns what the command prints in a folder: reports name a recording by its path there.
fn printed(folder: &Path, words: &str) -> String {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.current_dir(folder).args(words.split_whitespace());
    let out = command.arg("--quiet").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 72).collect();
    assert!(wide.is_empty(), "{wide:?}");
    text
}

#[test]
fn reports_on_a_recording_are_golden_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let busy = file(write(folder.path(), &hot(20_000, 10_000, 4000)));
    let folder = folder.path();
    golden(
        "record.txt",
        &printed(folder, &format!("results show {busy}")),
    );
    // Neither this machine's clock nor its threads have a part in it.
    let elsewhere = format!("{FEW} --threads 4,8 --on flat-16 --here flat-16 --no-replay");
    golden(
        "advise.txt",
        &printed(folder, &format!("advise {busy} {elsewhere}")),
    );
    write(folder, &hot_of(2, [100_000, 10_000, 4000]));
    golden("advise-many.txt", &printed(folder, "advise ."));
}

#[test]
fn the_same_seed_gives_the_same_advice_and_more_threads_wait_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &hot(100_000, 10_000, 4000));
    let arguments = format!("{FEW} --threads 4,12 --on flat-16");
    let found = document(&file, &arguments);
    assert_eq!(found, document(&file, &arguments));
    assert_eq!(found["provenance"]["source"], "simulation");
    assert_eq!(found["gate"]["passes"], true);
    let score = found["validation"][0].as_str().unwrap();
    assert!(score.contains("(contended, same socket) with published figures"));
    let rate = |point: usize, which: &str| {
        let run = &found["points"][point];
        match which {
            "today" => run["today"]["threads_at_work"].as_f64().unwrap(),
            _ => run["ideal"]["run"]["threads_at_work"].as_f64().unwrap(),
        }
    };
    for point in [0, 1] {
        assert!(rate(point, "today") <= 1.01 * rate(point, "ideal"));
    }
    // Twelve threads want the lock for longer than there is.
    assert!(rate(0, "today") > 3.0, "{found:#}");
    assert!(rate(1, "ideal") < 11.5, "{found:#}");
}

#[test]
fn a_second_recording_says_how_holds_grow_and_must_predict_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let few = write(folder.path(), &hot_of(2, [100_000, 8_000, 4000]));
    let many = write(folder.path(), &hot_of(4, [100_000, 10_000, 4000]));
    let arguments = format!("{FEW} --threads 16 --on flat-16");
    let both = format!("{} {arguments}", few.display());
    let found = document(&many, &both);
    let said = &found["gate"]["fewer_threads"];
    assert_eq!(said["threads"], serde_json::json!([2, 4]), "{said}");
    let close = |value: &Value, to: f64, by: f64| (value.as_f64().unwrap() / to - 1.0).abs() < by;
    assert!(close(&said["ratio"], 1.0, 0.1), "{said}");
    assert!(close(&said["holds_longer"], 1.25, 0.02), "{said}");
    // In either order they are the same two recordings.
    let other = document(&few, &format!("{} {arguments}", many.display()));
    assert_eq!(found, other);
    // With sixteen threads holds are longer than recorded, and the lock limits more.
    let alone = document(&many, &arguments);
    let rate = |found: &Value| found["points"][0]["ideal"]["run"]["acquisitions_per_s"].as_f64();
    assert!(rate(&found) < rate(&alone).map(|rate| 0.8 * rate));
    assert_eq!(alone["gate"]["fewer_threads"], Value::Null);
    // One that computed four times as long between its holds predicts another rate.
    let slow = write(folder.path(), &hot_of(3, [400_000, 10_000, 4000]));
    let both = format!("{} {arguments}", slow.display());
    let found = document(&many, &both);
    assert_eq!(found["gate"]["passes"], false);
    assert!(found["gate"]["fewer_threads"]["ratio"].as_f64().unwrap() < 0.85);
    let out = advise(&many, &many.display().to_string()).assert().code(1);
    let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(error.contains("both recordings have 4 threads"), "{error}");
}

#[test]
fn a_model_that_is_far_off_gives_the_bound_and_no_sizes() {
    let folder = tempfile::tempdir().unwrap();
    // Waits are a hundred times as long as a wake-up takes.
    let file = write(folder.path(), &hot(20_000, 10_000, 400_000));
    let out = advise(&file, FEW).assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    for part in [
        "of their time waiting for locks",
        "Where the waiting goes, as recorded",
        "What would make this better",
    ] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "no '{part}' in {text}");
    }
    let found = document(&file, FEW);
    assert_eq!(found["gate"]["gives_sizes"], false);
    assert_eq!(found["points"][0]["locks"][0]["band"], Value::Null);
    assert!(found["bound"]["share"].as_f64().unwrap() > 0.5, "{found:#}");
    let words = found["advice"].as_str().unwrap();
    assert!(words.matches(". ").count() <= 3, "few sentences: {words}");
}

#[test]
fn without_contention_there_is_nothing_to_gain() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &hot(4_000_000, 50, 100));
    let out = advise(&file, "").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let words = "% faster.\n";
    assert!(
        text.starts_with("Nothing to gain: threads with work spend 0"),
        "{text}"
    );
    assert!(text.ends_with(words) && text.lines().count() == 1, "{text}");
    // A page says so too.
    let page = folder.path().join("page.html");
    let asks = format!("--html {}", page.display());
    advise(&file, &asks).assert().success();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("Nothing to gain: threads with work spend 0"),
        "{page}"
    );
    // One thread waits for nobody, on no machine.
    let one = write(folder.path(), &hot(100_000, 10_000, 4000)[..1]);
    let out = advise(&one, "--on flat-16 --threads 8").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert_eq!(
        text,
        "Nothing to gain: only one thread takes locks, and never waits.\n"
    );
}

#[test]
fn bad_input_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &hot(100_000, 10_000, 4000));
    let whole = std::fs::read(&file).unwrap();
    let says = |bytes: &[u8], arguments: &str, code: i32, words: &str| {
        let other = folder.path().join("other");
        std::fs::write(&other, bytes).unwrap();
        let out = advise(&other, arguments).assert().code(code);
        let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(error.contains(words), "no '{words}' in {error}");
    };
    says(&whole[..whole.len() - 5000], "", 1, "not whole");
    says(b"\x7fELF and so on", "", 1, "no recording");
    let mut newer = whole.clone();
    newer[8] = VERSION as u8 + 1;
    says(&newer, "", 1, "of format");
    says(&whole, "--on atlantis", 2, "atlantis");
    says(&whole, "--locks cardboard", 2, "cardboard");
    says(&whole, "--threads 0", 2, "zero threads");
    let none = write(folder.path(), &[vec![(10, Event::Ended)]]);
    says(&std::fs::read(none).unwrap(), "", 1, "no pthread lock");
    let out = advise(Path::new("/nowhere/at/all"), "").assert().code(1);
    let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn a_folder_of_recordings_gets_one_answer_with_the_share_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let quiet = write(folder.path(), &hot_of(2, [100_000, 10_000, 4000]));
    let busy = write(folder.path(), &hot(20_000, 10_000, 4000));
    std::fs::write(folder.path().join("notes.txt"), "no recording").unwrap();
    let answer = document(folder.path(), "");
    assert_eq!(answer["kind"], "advice of many");
    let recordings = answer["recordings"].as_array().unwrap();
    let files: Vec<&str> = recordings
        .iter()
        .filter_map(|r| r["file"].as_str())
        .collect();
    assert_eq!(files, [busy.to_str().unwrap(), quiet.to_str().unwrap()]);
    let shares = recordings
        .iter()
        .map(|one| one["share_of_all_waiting"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    let share = answer["bound"]["share"].as_f64().unwrap();
    let alone = |file: &Path| document(file, FEW)["bound"]["share"].as_f64().unwrap();
    assert!(share < alone(&busy) && share > alone(&quiet), "{share}");
    let text = advise(folder.path(), "").assert().success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert!(text.contains("Locks of 2 recordings: what to do"), "{text}");

    let other = write(folder.path(), &hot_of(3, [20_000, 10_000, 4000]));
    let three = advise(&busy, "--json")
        .arg(&quiet)
        .arg(&other)
        .assert()
        .success();
    let three: Value = serde_json::from_slice(&three.get_output().stdout).unwrap();
    assert_eq!(three["recordings"].as_array().unwrap().len(), 3);
}

#[test]
fn what_cannot_be_asked_of_many_recordings_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let failed = advise(folder.path(), "").assert().code(1);
    let why = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(
        why.contains("has no recording of 'locklab record'"),
        "{why}"
    );
    write(folder.path(), &hot(20_000, 10_000, 4000));
    let failed = advise(folder.path(), "--locks mcs").assert().code(2);
    let why = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(why.contains("are for one recording"), "{why}");
}
