//! Answers to recordings that are written down here: every recording gets one, and none
//! says more than the model allows.

use locklab_advise::{Answer, Candidate, Request};
use locklab_document::render::{self, Colour};
use locklab_replay::Names;
use locklab_sim::Machine;
use locklab_trace::{Access, Attempt, Event, Frames, Header, LockKind, Module, file};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const LOCK: u64 = 0x5500_0000_1000;
const MINE: u64 = 0x5500_0000_2000;
const CONDITION: u64 = 0x5500_0000_3000;

type Records = Vec<(u64, Event<'static>)>;

/// Names without files.
struct NoFiles;

impl Names for NoFiles {
    fn place(&mut self, _: &[(PathBuf, u64)]) -> String {
        "take file.c:7 (server)".into()
    }

    fn data(&mut self, _: &[Module], _: u64, address: u64) -> Option<String> {
        (address == LOCK).then(|| "the_lock (server)".into())
    }
}

fn stack() -> (u64, Event<'static>) {
    let frames = Frames(&[[7, 0, 0, 0, 0, 0, 0, 0]]);
    (0, Event::Stack { number: 1, frames })
}

fn request(lock: u64) -> Event<'static> {
    Event::Request {
        lock,
        stack: 1,
        access: Access {
            shared: false,
            attempt: Attempt::Waits,
        },
    }
}

fn hold(lock: u64, [asks, has, gives_up]: [u64; 3]) -> Records {
    vec![
        (asks, request(lock)),
        (has, Event::Acquired),
        (gives_up, Event::Release { lock }),
        (gives_up + 25, Event::Released),
    ]
}

/// Returns two threads that take one lock in turn, and wait `handoff` for it each time.
fn in_turn(inside: u64, handoff: u64) -> Vec<Records> {
    let mut threads = vec![vec![stack()]; 2];
    let mut free_at = 1000;
    let mut asks = [100, 500];
    for turn in 0..3000 {
        let thread = turn % 2;
        let has = asks[thread].max(free_at) + handoff;
        threads[thread].extend(hold(LOCK, [asks[thread], has, has + inside]));
        free_at = has + inside;
        asks[thread] = free_at + 1000;
    }
    threads
}

/// Returns a lock made of a mutex and a condition: each thread drops it, waits for
/// another lock, and takes it again while it holds that.
fn mutex_and_condition() -> Vec<Records> {
    let mut threads = vec![vec![stack()]; 2];
    let mut now = 1000;
    for turn in 0..2000 {
        let (one, other) = (turn % 2, (turn + 1) % 2);
        // The other waits for the condition under the lock, and is signalled at the end.
        threads[other].extend([
            (now, request(LOCK)),
            (now + 20, Event::Acquired),
            (
                now + 40,
                Event::Wait {
                    condition: CONDITION,
                    lock: LOCK,
                    stack: 1,
                    timed: false,
                },
            ),
        ]);
        threads[one].extend(hold(MINE, [now + 100, now + 120, now + 3000]));
        let signal = Event::Signal {
            condition: CONDITION,
            broadcast: false,
        };
        threads[one].extend([
            (now + 4000, request(LOCK)),
            (now + 4020, Event::Acquired),
            (now + 4040, signal),
            (now + 4060, Event::Release { lock: LOCK }),
            (now + 4080, Event::Released),
        ]);
        threads[other].extend([
            (now + 9000, Event::Woken { timed_out: false }),
            (now + 9020, Event::Release { lock: LOCK }),
            (now + 9040, Event::Released),
        ]);
        now += 10_000;
    }
    threads
}

fn answer(threads: &[Records]) -> Answer {
    asked(threads, Vec::new())
}

fn asked(threads: &[Records], on: Vec<Machine>) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let last = threads
        .iter()
        .flatten()
        .map(|(tick, _)| *tick)
        .max()
        .unwrap();
    let header = Header::new(1.0, 0, 512, "a machine, 2 CPUs", "./server --hot");
    std::fs::write(&path, file(&header, threads, last).unwrap()).unwrap();
    of(&path, on)
}

fn of(path: &Path, on: Vec<Machine>) -> Answer {
    let machine = Machine::named("flat-16").unwrap();
    let asked = Request {
        file: path,
        other: None,
        on,
        here: Some(machine),
        threads: Vec::new(),
        locks: vec![
            Candidate::named("mcs").unwrap(),
            Candidate::named("ttas").unwrap(),
        ],
        replay: false,
        draws: 2,
        seed: 1,
        workers: 2,
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    let asking = asked.read().unwrap();
    asking.answer(&mut NoFiles, &interrupt, |_, _| {}).unwrap()
}

fn words(answer: &Answer) -> String {
    answer.document.data["advice"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_paragraph_has_few_sentences_and_the_lock_a_name() {
    let answer = answer(&in_turn(3000, 20_000));
    let words = words(&answer);
    assert!(words.contains("Nearly all of it is waiting"), "{words}");
    assert!(words.matches(". ").count() <= 3, "{words}");
    let text = render::text(&answer.document, Colour::Plain);
    assert!(text.contains("the_lock (server)"), "{text}");
    assert!(text.contains("while nobody held it"), "{text}");
    let bound = &answer.document.data["bound"];
    assert!(bound["share"].as_f64().unwrap() > 0.8, "{bound}");
}

#[test]
fn a_lock_made_of_a_mutex_and_a_condition_is_answered() {
    // Elsewhere more may be to gain, so it is simulated whatever was waited for.
    let on = vec![Machine::named("flat-16").unwrap()];
    let answer = asked(&mutex_and_condition(), on);
    assert_eq!(answer.nothing, None);
    assert!(!words(&answer).is_empty());
}

#[test]
fn locks_that_the_c_library_keeps_are_not_to_be_replaced() {
    let mut threads = in_turn(3000, 20_000);
    let kind = LockKind::ROBUST.and(LockKind::SHARED);
    threads[0].insert(1, (50, Event::Kind { lock: LOCK, kind }));
    let answer = answer(&threads);
    let words = words(&answer);
    assert!(words.contains("robust, process-shared"), "{words}");
    assert!(!words.contains("Try "), "{words}");
    assert_eq!(answer.document.data["confirm"], serde_json::Value::Null);
}

#[test]
fn a_lock_that_must_stay_is_named_however_little_was_waited() {
    let kind = LockKind::ROBUST.and(LockKind::SHARED);
    let takes = |thread: u64| {
        (0..3000).flat_map(move |turn| {
            let at = 10_000 * (2 * turn + thread);
            hold(LOCK, [at + 100, at + 120, at + 3000])
        })
    };
    // They never meet; and one alone never meets another.
    for count in [2, 1] {
        let mut threads = vec![vec![stack(), (50, Event::Kind { lock: LOCK, kind })]; 2];
        for (thread, records) in (0..count).zip(&mut threads) {
            records.extend(takes(thread));
        }
        let answer = answer(&threads);
        let words = words(&answer);
        assert!(answer.nothing.is_some(), "{words}");
        assert!(words.contains("is robust, process-shared"), "{words}");
    }
}

#[test]
fn a_lock_that_must_stay_is_not_said_to_need_another() {
    let mut threads = in_turn(3000, 20_000);
    let kind = LockKind::ROBUST;
    threads[0].insert(1, (50, Event::Kind { lock: LOCK, kind }));
    let words = words(&answer(&threads));
    assert!(words.starts_with("Keep the lock"), "{words}");
    assert!(!words.contains("use a lock that"), "{words}");
}

#[test]
fn a_lock_of_the_program_s_own_is_replaced_in_its_source() {
    // As quick as the model has it, so that it says what helps.
    let mut threads = in_turn(3000, 2000);
    let kind = LockKind::OWN;
    threads[0].insert(1, (50, Event::Kind { lock: LOCK, kind }));
    let answer = answer(&threads);
    let words = words(&answer);
    assert!(
        words.contains("in the place of the program's own lock"),
        "{words}"
    );
    assert_eq!(answer.document.data["confirm"], serde_json::Value::Null);
}

#[test]
fn threads_that_wait_are_not_one_thread_because_one_is_alone_in_a_short_window() {
    let mut threads = in_turn(3000, 20_000);
    let end = threads[1].last().unwrap().0 + 10_000;
    // A window of the usual length lies here, where most locks are taken.
    let alone = (0..32_000).flat_map(|turn| {
        let at = end + 100 * turn;
        hold(LOCK, [at, at + 20, at + 40])
    });
    threads[0].extend(alone);
    let answer = answer(&threads);
    assert_eq!(answer.nothing, None);
    let words = words(&answer);
    assert!(words.contains("Threads with work spend 8"), "{words}");
}
