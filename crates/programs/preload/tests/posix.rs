//! Runs small programs that check what POSIX says, under each lock.

mod support;

use locklab_locks::catalogue;
use support::{compile, interposer, run, succeed, under};

const WAITS: [&str; 3] = ["spin", "spin-then-park", "barging"];

fn locks() -> impl Iterator<Item = &'static str> {
    catalogue::ALL.iter().map(|entry| entry.info.name)
}

/// Tests each lock in turn, four at a time: the programs mostly sleep.
fn with_each(locks: impl Iterator<Item = &'static str>, test: impl Fn(&str) + Sync) {
    let locks = std::sync::Mutex::new(locks.collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(lock) = locks.lock().unwrap().pop() else {
                        break;
                    };
                    test(lock);
                }
            });
        }
    });
}

fn recursive(lock: &str) -> bool {
    catalogue::ALL
        .iter()
        .any(|entry| entry.info.name == lock && entry.info.recursive)
}

#[test]
fn mutexes_and_spinlocks_conform_under_every_lock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "conform.c", &[]) else {
        return;
    };
    succeed(&mut std::process::Command::new(&program), 120);
    with_each(locks().chain(["pthread"]), |lock| {
        for wait in WAITS {
            let mut command = under(lock, wait, &program);
            // A big lock knows its holder by number: nobody else lets go.
            if recursive(lock) {
                command.arg("no-others");
            }
            assert_eq!(succeed(&mut command, 120), "conforms\n", "{lock} {wait}");
        }
    });
}

fn with_readers() -> impl Iterator<Item = &'static str> {
    let reads = catalogue::ALL
        .iter()
        .filter(|entry| entry.info.readers_share);
    reads.map(|entry| entry.info.name)
}

#[test]
fn rwlocks_conform_on_every_lock_with_readers_and_on_glibcs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "rwlock.c", &[]) else {
        return;
    };
    succeed(&mut std::process::Command::new(&program), 120);
    with_each(with_readers(), |lock| {
        for wait in WAITS {
            let mut command = under(lock, wait, &program);
            let conforms = succeed(command.arg("forks"), 120);
            assert_eq!(conforms, "conforms\n", "{lock} {wait}");
        }
    });
    // A lock for mutexes, another for rwlocks.
    for (mutexes, rwlocks) in [
        ("mcs", None),
        ("pthread", None),
        ("bravo", Some("pthread")),
        ("mcs", Some("rw-queued")),
        ("pthread", Some("bravo")),
        ("mplock-mcs", Some("phase-fair")),
    ] {
        let mut command = under(mutexes, "barging", &program);
        if let Some(rwlocks) = rwlocks {
            command.env("LOCKLAB_RWLOCK", rwlocks);
        }
        assert_eq!(
            succeed(&mut command, 120),
            "conforms\n",
            "{mutexes} {rwlocks:?}"
        );
    }
}

#[test]
fn mutexes_of_c11_conform_under_every_lock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "c11.c", &[]) else {
        return;
    };
    succeed(&mut std::process::Command::new(&program), 120);
    with_each(locks().chain(["pthread"]), |lock| {
        for wait in ["spin-then-park", "barging"] {
            let mut command = under(lock, wait, &program);
            assert_eq!(succeed(&mut command, 120), "conforms\n", "{lock} {wait}");
        }
    });
}

/// Under the locks without a try_lock of their own it lets itself in round
/// the lock.
#[test]
fn who_tries_and_who_queues_keep_their_nodes_apart() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "tries.c", &[]) else {
        return;
    };
    let apart = catalogue::ALL
        .iter()
        .filter(|entry| !entry.info.try_lock || entry.info.recursive);
    with_each(apart.map(|entry| entry.info.name).chain(["mcs"]), |lock| {
        for wait in ["spin-then-park", "barging"] {
            assert_eq!(
                succeed(&mut under(lock, wait, &program), 60),
                "met\n",
                "{lock} {wait}"
            );
        }
    });
}

/// Returns where the lock's waiters can give up, a timed lock has a place in its queue;
/// elsewhere it polls.
#[test]
fn a_timed_lock_gives_up_or_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "timed.c", &[]) else {
        return;
    };
    for (lock, wait, order) in [
        ("mcs-timeout", "spin", Some("in-order")),
        ("mcs-timeout", "spin-then-park", None),
        ("mcs-timeout", "barging", None),
        ("mcs", "spin-then-park", None),
        ("mcs", "barging", None),
        ("clh", "spin-then-park", None),
        ("pthread", "spin-then-park", None),
    ] {
        assert_eq!(
            succeed(under(lock, wait, &program).args(order), 120),
            "timed\n",
            "{lock} {wait}"
        );
    }
}

#[test]
fn a_forked_child_uses_what_its_thread_held() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "fork.c", &[]) else {
        return;
    };
    with_each(locks(), |lock| {
        for wait in ["spin-then-park", "barging"] {
            assert_eq!(
                succeed(&mut under(lock, wait, &program), 120),
                "forked\n",
                "{lock} {wait}"
            );
        }
    });
}

#[test]
fn condition_variables_work_under_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "cond.cpp", &["-std=c++17"]) else {
        return;
    };
    for lock in [
        "ttas",
        "ticket",
        "mcs",
        "clh",
        "anderson",
        "qspinlock",
        "pthread",
    ] {
        assert_eq!(
            succeed(&mut under(lock, "spin-then-park", &program), 120),
            "waited\n",
            "{lock}"
        );
    }
}

/// LiTL never reuses thread numbers and stops at 2048.
#[test]
fn thirty_thousand_threads_come_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "threads.c", &[]) else {
        return;
    };
    // (The number of a thread that ended is another's: anderson has 512.)
    for (lock, threads) in [
        ("mcs", "30000"),
        ("qspinlock", "3000"),
        ("clh", "3000"),
        ("anderson", "30000"),
    ] {
        let grown: i64 = succeed(under(lock, "spin", &program).arg(threads), 60)
            .trim()
            .parse()
            .unwrap();
        assert!(grown < 1024, "{lock}: grew by {grown} KiB");
    }
}

/// Threads beyond those that a lock has room for try instead of queueing.
#[test]
fn more_threads_at_once_than_a_lock_has_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "crowd.c", &[]) else {
        return;
    };
    let mut bounded = 0;
    for entry in catalogue::ALL.iter().filter(|e| e.info.max_cpus < 700) {
        bounded += 1;
        let mut crowd = under(entry.info.name, "spin-then-park", &program);
        let counted = succeed(crowd.arg("700"), 120);
        assert_eq!(counted, "14000\n", "{}", entry.info.name);
    }
    assert!(bounded > 0);
}

#[test]
fn a_wrong_choice_is_one_sentence_and_nothing_runs() {
    let cases = [
        (
            "nonesuch",
            "spin",
            "locklab: there is no lock 'nonesuch'; 'locklab locks' lists them\n",
        ),
        (
            "mcs",
            "sleep",
            "locklab: LOCKLAB_WAIT is 'sleep'; it can be barging, spin-then-park or spin\n",
        ),
        (
            "",
            "spin",
            "locklab: LOCKLAB_LOCK is not set: name a lock (locklab locks), or use 'locklab run'\n",
        ),
    ];
    for (lock, wait, sentence) in cases {
        let output = run(under(lock, wait, "echo").arg("ran"), 10);
        assert_eq!(String::from_utf8_lossy(&output.stderr), sentence);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
    }
}

/// LiTL names two trylocks wrongly, so that they reach glibc.
#[test]
fn every_function_of_the_family_is_exported() {
    let object = std::fs::read(interposer()).unwrap();
    for name in [
        "pthread_mutex_init",
        "pthread_mutex_destroy",
        "pthread_mutex_lock",
        "pthread_mutex_trylock",
        "pthread_mutex_timedlock",
        "pthread_mutex_clocklock",
        "pthread_mutex_unlock",
        "__pthread_mutex_init",
        "__pthread_mutex_destroy",
        "__pthread_mutex_lock",
        "__pthread_mutex_trylock",
        "__pthread_mutex_unlock",
        "pthread_cond_init",
        "pthread_cond_destroy",
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "pthread_cond_clockwait",
        "pthread_cond_signal",
        "pthread_cond_broadcast",
        "pthread_spin_init",
        "pthread_spin_destroy",
        "pthread_spin_lock",
        "pthread_spin_trylock",
        "pthread_spin_unlock",
        "pthread_rwlock_init",
        "pthread_rwlock_destroy",
        "pthread_rwlock_rdlock",
        "pthread_rwlock_wrlock",
        "pthread_rwlock_tryrdlock",
        "pthread_rwlock_trywrlock",
        "pthread_rwlock_timedrdlock",
        "pthread_rwlock_timedwrlock",
        "pthread_rwlock_clockrdlock",
        "pthread_rwlock_clockwrlock",
        "pthread_rwlock_unlock",
        "__pthread_rwlock_init",
        "__pthread_rwlock_destroy",
        "__pthread_rwlock_rdlock",
        "__pthread_rwlock_wrlock",
        "__pthread_rwlock_tryrdlock",
        "__pthread_rwlock_trywrlock",
        "__pthread_rwlock_unlock",
        "mtx_init",
        "mtx_destroy",
        "mtx_lock",
        "mtx_trylock",
        "mtx_timedlock",
        "mtx_unlock",
        "cnd_init",
        "cnd_destroy",
        "cnd_signal",
        "cnd_broadcast",
        "cnd_wait",
        "cnd_timedwait",
    ] {
        let symbol = std::ffi::CString::new(name).unwrap();
        // A name of the dynamic symbol table stands between zeros.
        let found = object
            .windows(name.len() + 2)
            .any(|bytes| bytes[0] == 0 && &bytes[1..] == symbol.as_bytes_with_nul());
        assert!(found, "{name}");
    }
}
