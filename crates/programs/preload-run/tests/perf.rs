//! Recordings made of what `perf script` writes of a kernel's locks.

use locklab_preload_run::{FromPerf, Recorded};
use serde_json::Value;

/// Returns what becomes of a text.
fn made(text: &[u8]) -> Result<Recorded, String> {
    let folder = tempfile::tempdir().unwrap();
    let from = FromPerf {
        text: folder.path().join("perf.txt"),
        file: folder.path().join("kernel.trace"),
    };
    std::fs::write(&from.text, text).unwrap();
    from.run().map_err(|error| {
        let text = error.to_string();
        text.replace(&format!("{}/", folder.path().display()), "")
    })
}

fn json(text: &str) -> Value {
    made(text.as_bytes()).unwrap().json()
}

/// Returns the locks with what is known of each, by address.
fn locks(json: &Value) -> Vec<(String, u64, u64, f64, f64)> {
    let mut locks: Vec<_> = json["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| {
            let counts = &lock["counts"];
            (
                lock["address"].as_str().unwrap().to_owned(),
                counts["acquired"].as_u64().unwrap(),
                counts["contended"].as_u64().unwrap(),
                counts["waited_ns"].as_f64().unwrap(),
                counts["held_ns"].as_f64().unwrap(),
            )
        })
        .collect();
    locks.sort_by(|a, b| a.0.cmp(&b.0));
    locks
}

#[test]
fn waits_are_paired_by_thread_and_lock() {
    // As perf 6.1 pads them, with names of commands that have spaces and colons.
    let json = json(
        " rqspinlock::wai 30946 [000]  3628.219780: lock:contention_begin: 0xffff888627c2ba80 (flags=SPIN)
   my prog: [x]   31052 [001]  3628.219781: lock:contention_begin: 0xffff888627c2ba80 (flags=SPIN)
   my prog: [x]   31052 [001]  3628.219785:   lock:contention_end: 0xffff888627c2ba80 (ret=0)
 rqspinlock::wai 30946 [000]  3628.219790:   lock:contention_end: 0xffff888627c2ba80 (ret=0)
",
    );
    let lock = "0xffff888627c2ba80".to_owned();
    assert_eq!(locks(&json), [(lock, 2, 2, 14_000.0, 0.0)]);
    assert_eq!(json["threads"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["verdict"],
        "2 waits took 14.0 µs in all. 100 % of that was for the lock at 0xffff888627c2ba80."
    );
    assert!(
        json["notes"][0]
            .as_str()
            .unwrap()
            .starts_with("perf recorded only waits")
    );
}

#[test]
fn a_wait_within_a_wait_takes_nothing_from_it() {
    // The spinlock of a mutex's queue, and on another CPU that of an interrupt;
    // the task that idles is one for each CPU. Nanoseconds as with --ns.
    let json = json(
        "prog 10/12 [000] 1.000000100: lock:contention_begin: 0xa0 (flags=MUTEX)
prog 10/12 [000] 1.000000200: lock:contention_begin: 0xb0 (flags=SPIN)
prog 10/12 [000] 1.000000250: lock:contention_end: 0xb0 (ret=0)
swapper 0 [000] 1.000000300: lock:contention_begin: 0xc0 (flags=READ|PERCPU)
swapper 0 [001] 1.000000310: lock:contention_begin: 0xc0 (flags=READ|PERCPU)
swapper 0 [000] 1.000000350: lock:contention_end: 0xc0 (ret=0)
swapper 0 [001] 1.000000360: lock:contention_end: 0xc0 (ret=0)
prog 10/12 [001] 1.000000400: lock:contention_end: 0xa0 (ret=0)
",
    );
    let waited: Vec<_> = locks(&json)
        .into_iter()
        .map(|lock| (lock.0, lock.2, lock.3))
        .collect();
    let expected = [("0xa0", 1, 300.0), ("0xb0", 1, 50.0), ("0xc0", 2, 100.0)];
    assert_eq!(
        waited,
        expected.map(|(lock, waits, ns)| (lock.to_owned(), waits, ns))
    );
}

#[test]
fn what_ended_otherwise_is_no_acquisition_and_what_did_not_end_waits() {
    let json = json(
        "a 1 [000] 1.000001: lock:contention_begin: 0xa0 (flags=MUTEX)
a 1 [000] 1.000003: lock:contention_end: 0xa0 (ret=-4)
b 2 [000] 1.000004: lock:contention_begin: 0xa0 (flags=MUTEX)
c 3 [000] 1.000005: lock:contention_end: 0xa0 (ret=0)
c 3 [000] 1.000006: lock:contention_begin: 0xb0 (flags=MUTEX)
c 3 [000] 1.000009: lock:contention_end: 0xb0 (ret=0)
",
    );
    let waited: Vec<_> = locks(&json)
        .into_iter()
        .map(|lock| (lock.0, lock.1, lock.3))
        .collect();
    assert_eq!(waited[0].0, "0xa0");
    assert_eq!((waited[0].1, waited[1].1), (0, 1));
    assert_eq!(
        json["notes"][0]
            .as_str()
            .unwrap()
            .split(" of /")
            .next()
            .unwrap(),
        "1 wait whose begin is missing was left out, the first in line 4"
    );
}

#[test]
fn calls_have_the_names_that_perf_gives() {
    let json = json(
        "# captured on    : Mon Nov 23 13:00:00 2026
sched-messaging    3409 [001]  7152.904029: lock:contention_begin: 0xc00000c80904ef00 (flags=SPIN)
\tc0000000001e926c __traceiter_contention_begin+0x6c ([kernel.kallsyms])
\tc000000000f8a178 native_queued_spin_lock_slowpath+0x1f8 ([kernel.kallsyms])
\t               0 [unknown] ([unknown])

sched-messaging    3409 [001]  7152.904031: lock:contention_end: 0xc00000c80904ef00 (ret=0)
\tc0000000001e9000 __traceiter_contention_end+0x0 ([kernel.kallsyms])

",
    );
    assert_eq!(
        json["sites"][0]["name"],
        "native_queued_spin_lock_slowpath+0x1f8"
    );
}

#[test]
fn lockdep_has_holds_too() {
    let json = json(
        "a 1 [000] 1.000001: lock:lock_acquire: 0xa0 &l->lock
a 1 [000] 1.000002: lock:lock_acquired: 0xa0 &l->lock
b 2 [001] 1.000003: lock:lock_acquire: 0xa0 &l->lock
b 2 [001] 1.000003: lock:lock_contended: 0xa0 &l->lock
a 1 [000] 1.000004: lock:lock_acquire: 0xffffffff82a0b3c0 read rcu_read_lock
a 1 [000] 1.000005: lock:lock_release: 0xffffffff82a0b3c0 rcu_read_lock
a 1 [000] 1.000006: lock:lock_acquire: 0xb0 try &q->lock
a 1 [000] 1.000007: lock:lock_release: 0xb0 &q->lock
a 1 [000] 1.000008: lock:lock_release: 0xa0 &l->lock
b 2 [001] 1.000010: lock:lock_acquired: 0xa0 &l->lock
b 2 [001] 1.000011: lock:lock_release: 0xa0 &l->lock
b 2 [001] 1.000011: lock:contention_begin: 0xd0 (flags=SPIN)
",
    );
    assert_eq!(
        locks(&json),
        [
            ("0xa0".to_owned(), 2, 1, 7_000.0, 7_000.0),
            ("0xb0".to_owned(), 1, 0, 0.0, 1_000.0),
        ]
    );
}

/// Without the holder's records lockdep still says that the lock was held.
#[test]
fn a_wait_counts_from_contended_to_acquired_whoever_held_the_lock() {
    let waiter =
        "kworker/0:1 101 [000] 50.000002: lock:lock_acquire: 0xffff88810a000018 &rq->__lock
kworker/0:1 101 [000] 50.000003: lock:lock_contended: 0xffff88810a000018 &rq->__lock
kworker/0:1 101 [000] 50.000009: lock:lock_acquired: 0xffff88810a000018 &rq->__lock
kworker/0:1 101 [000] 50.000012: lock:lock_release: 0xffff88810a000018 &rq->__lock
";
    let found = json(waiter);
    let lock = "0xffff88810a000018".to_owned();
    assert_eq!(locks(&found), [(lock.clone(), 1, 1, 6_000.0, 3_000.0)]);
    let verdict = found["verdict"].as_str().unwrap();
    assert!(
        verdict.contains("100 % of the waiting is for the lock &rq->__lock (0xffff88810a000018)."),
        "{verdict}"
    );
    assert_eq!(found["locks"][0]["name"], "&rq->__lock");
    // With the holder's events it is the same.
    let holder = "dd 201 [001] 50.000000: lock:lock_acquire: 0xffff88810a000018 &rq->__lock
dd 201 [001] 50.000001: lock:lock_acquired: 0xffff88810a000018 &rq->__lock
dd 201 [001] 50.000008: lock:lock_release: 0xffff88810a000018 &rq->__lock
";
    let found = json(&format!("{holder}{waiter}"));
    assert_eq!(locks(&found), [(lock, 2, 1, 6_000.0, 10_000.0)]);
}

#[test]
fn a_site_is_the_first_call_that_is_not_of_the_lock() {
    let wait = |at: u32, caller: &str| {
        format!(
            "a 1 [000] 1.00000{at}: lock:contention_begin: 0xa0 (flags=MUTEX)
\tffffffff810f8a18 __mutex_lock.constprop.0+0x1f8 ([kernel.kallsyms])
\tffffffff810f8b18 mutex_lock+0x18 ([kernel.kallsyms])
\t{caller} ([kernel.kallsyms])

a 1 [000] 1.00000{}: lock:contention_end: 0xa0 (ret=0)

",
            at + 1
        )
    };
    let text =
        wait(1, "ffffffff810fff18 pipe_read+0x2a") + &wait(3, "ffffffff810fee18 pipe_write+0x3a");
    let found = json(&text);
    let sites = found["sites"].as_array().unwrap();
    let mut names: Vec<&str> = sites
        .iter()
        .map(|site| site["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["pipe_read+0x2a", "pipe_write+0x3a"]);
}

#[test]
fn bad_input_is_said_in_a_sentence() {
    let why = |text: &str| made(text.as_bytes()).map(drop).unwrap_err();
    assert_eq!(
        why("hello\n"),
        "perf.txt: line 1 is no line of 'perf script' or tracefs"
    );
    assert_eq!(
        why("\na 1 [000] 1.000001: lock:contention_begin: 0xa0 (flags=SPIN)\n<html>\n"),
        "perf.txt: line 3 is no line of 'perf script' or tracefs"
    );
    let none = "perf.txt: it has no event of a lock; 'perf lock record' or 'perf record -e lock:* \
                -a' records them";
    assert_eq!(why(""), none);
    assert_eq!(
        why("a 1 [000] 1.000001: sched:sched_switch: prev_comm=a\n"),
        none
    );
    assert_eq!(
        why("a 1 [000] 1.000001: lock:contention_end: 0xa0 (ret=0)\n"),
        "perf.txt: no wait in it has a begin and an end; the end in line 1 has no begin"
    );
    assert_eq!(
        why("a 1 [000] 1.000001: lock:contention_begin: (____ptrval____) (flags=SPIN)\n"),
        "perf.txt: line 1 has no address of a lock; record as root, with kernel.kptr_restrict 0"
    );
    assert_eq!(
        why("PERFILE2\0\0"),
        "perf.txt: it is what 'perf record' wrote; 'perf script -i' makes text of it"
    );
}

/// A text as the kernel writes it, with the options that name and number the calls.
const TRACEFS: &str = "# tracer: nop
#
# entries-in-buffer/entries-written: 5/5   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
     my prog [x]-31052   [001] d..2.     3.219781: contention_begin: ffff888627c2ba80 (flags=SPIN)
CPU:0 [LOST 12 EVENTS]
          <idle>-0       [000] d.h1.     3.219782: contention_end: ffffffff82a0b0c0 (ret=0)
     my prog [x]-31052   [001] d..2.     3.219783: <stack trace>
 => trace_event_raw_event_contention_begin+0x8a/0xd0 <ffffffff811c4d3a>
 => native_queued_spin_lock_slowpath+0x1f8/0x2c0 <ffffffff810f8a18>
 => xfs_buf_lock+0x2a/0x60 [xfs] <ffffffffc0a1230a>
     my prog [x]-31052   [001] d..2.     3.219785: contention_end: ffff888627c2ba80 (ret=0)
";

#[test]
fn what_the_kernel_itself_writes_is_read_too() {
    let json = json(TRACEFS);
    assert_eq!(
        locks(&json),
        [("0xffff888627c2ba80".to_owned(), 1, 1, 4_000.0, 0.0)]
    );
    assert_eq!(json["sites"][0]["name"], "xfs_buf_lock+0x2a");
    let waits = locklab_trace::kernel_waits(TRACEFS).unwrap();
    assert_eq!(waits.unmatched, 1);
    let [wait] = waits.waits.as_slice() else {
        panic!("{waits:?}")
    };
    assert_eq!(
        (wait.lock, wait.nanoseconds),
        (0xffff_8886_27c2_ba80, 4_000)
    );
    assert_eq!(wait.kind, "SPIN");
    assert_eq!(
        wait.calls,
        ["native_queued_spin_lock_slowpath", "xfs_buf_lock"]
    );
}
