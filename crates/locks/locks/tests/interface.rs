//! Tests what every lock promises beside exclusion: try_lock, constants, names, the
//! big lock's recursion, guards.

use locklab_locks::catalogue::{self, BigVisitor, Visitor};
use locklab_locks::host::*;
use locklab_locks::kernel::*;
use locklab_locks::mutex::*;
use locklab_locks::queue::*;
use locklab_locks::spin::*;
use locklab_locks::*;
use std::collections::HashSet;
use std::thread;

type N = NativePlatform;

/// Runs `f` on a thread of its own, which to the locks is another CPU.
fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

#[test]
fn each_lock_is_described_as_reports_need_it() {
    let names: Vec<_> = catalogue::ALL.iter().map(|entry| entry.info.name).collect();
    let unique: HashSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "a name is used twice: {names:?}");
    for entry in catalogue::ALL {
        let info = entry.info;
        assert!(
            info.name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}: lower case with dashes",
            info.name
        );
        assert!(
            info.summary.len() <= 60,
            "{}: one line of a table",
            info.name
        );
        assert!(!info.paper.is_empty(), "{}: names its paper", info.name);
        assert!(info.max_cpus >= 2 && entry.bytes > 0);
    }
    assert!(catalogue::visit::<N, _>("no-such-lock", TryLock).is_none());
}

/// Returns the size that a lock's documentation begins with, if that is a number.
fn documented_size(text: &str) -> Option<usize> {
    match text.split([' ', '.']).next()? {
        "one" if text.starts_with("one pointer") => Some(size_of::<usize>()),
        "two" if text.starts_with("two pointers") => Some(2 * size_of::<usize>()),
        number => {
            let unit = text[number.len()..].trim_start_matches(" byte");
            let ends = unit.trim_start_matches('s').starts_with(['.', ',']);
            number.parse().ok().filter(|_| ends)
        }
    }
}

#[test]
fn sizes_are_what_the_documentation_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let texts: Vec<String> = files
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .collect();
    let mut checked = 0;
    for entry in catalogue::ALL {
        let name = format!("name: \"{}\"", entry.info.name);
        let Some(text) = texts.iter().find(|text| text.contains(&name)) else {
            continue;
        };
        let sizes = text.split("**Size:** ").skip(1);
        let sizes: Vec<usize> = sizes.filter_map(documented_size).collect();
        if !sizes.is_empty() {
            // A file of two locks has a size of each.
            assert!(sizes.contains(&entry.bytes), "{name}: {sizes:?}");
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} sizes");
    // What a context and an array add.
    assert_eq!(size_of::<Anderson<N, 8>>(), 64 + 8 * 64);
    assert_eq!(size_of::<Twa>(), 64 + 64 * 4);
    assert_eq!(size_of::<MplockTicket<N, 64>>(), 64 * 8 + 64);
    assert_eq!(size_of::<MplockMcs<N, 64>>(), 64 * 64 + 64);
    let nodes = [size_of::<McsNode>(), size_of::<ClhHandle>() / 2];
    assert_eq!(nodes, [64; 2]);
}

/// Users see what is at the root first: there are modules for the rest.
#[test]
fn the_root_has_at_most_fifty_names() {
    let text = include_str!("../src/lib.rs");
    let mut names = HashSet::new();
    for item in text.split("\npub ").skip(1) {
        let Some((item, _)) = item
            .split_once([';', '\n'])
            .filter(|_| !item.starts_with("use"))
        else {
            let (paths, _) = item.split_once(';').expect("an item's end");
            let list = paths.rsplit(['{', ':', ' ']).next().unwrap_or(paths);
            let list = paths.split_once('{').map_or(list, |(_, list)| list);
            names.extend(
                list.split([',', '}'])
                    .map(str::trim)
                    .filter(|name| !name.is_empty()),
            );
            continue;
        };
        names.extend(item.trim_end_matches(" {").split(' ').nth(1));
    }
    assert!(
        (30..=50).contains(&names.len()),
        "{}: {names:?}",
        names.len()
    );
    assert!(
        names.contains("Ticket") && names.contains("queue"),
        "{names:?}"
    );
}

struct TryLock;

impl Visitor<N> for TryLock {
    type Output = ();

    fn visit<L: RawLock<N>>(self) {
        let lock = Box::new(L::default());
        let (ours, theirs) = (
            Box::<L::Ctx>::default(),
            crate::common::Sendable(Box::<L::Ctx>::default()),
        );
        let theirs = &theirs;
        let name = L::INFO.name;
        let other_gets_it = || {
            elsewhere(|| {
                let crate::common::Sendable(ctx) = theirs;
                // SAFETY: each thread has its context; all outlive the test.
                unsafe {
                    let got = lock.try_lock(ctx);
                    if got {
                        lock.unlock(ctx);
                    }
                    got
                }
            })
        };
        for round in 0..3 {
            // SAFETY: as above.
            unsafe {
                assert_eq!(
                    other_gets_it(),
                    L::INFO.try_lock,
                    "{name}: free, round {round}"
                );
                lock.lock(&ours);
                assert!(!other_gets_it(), "{name}: held by lock, round {round}");
                lock.unlock(&ours);
                assert_eq!(lock.try_lock(&ours), L::INFO.try_lock, "{name}: free again");
                if L::INFO.try_lock {
                    assert!(!other_gets_it(), "{name}: held by try_lock, round {round}");
                    lock.unlock(&ours);
                }
            }
        }
    }
}

#[test]
fn try_lock_succeeds_on_a_free_lock_and_fails_on_a_held_one() {
    for entry in catalogue::ALL {
        catalogue::visit(entry.info.name, TryLock).unwrap();
    }
}

struct Recursion;

impl BigVisitor<N> for Recursion {
    type Output = ();

    fn visit<L: BigLock<N>>(self) {
        let name = L::INFO.name;
        let lock = &*Box::new(L::default());
        // SAFETY: no contexts; every acquisition below is released.
        unsafe {
            assert!(!lock.held(), "{name}: nobody holds a new lock");
            assert_eq!(lock.release_all(), 0, "{name}: nothing to release");
            for depth in 1..=3 {
                lock.lock(&());
                assert!(lock.held(), "{name}: held at depth {depth}");
            }
            let again = lock.try_lock(&());
            assert_eq!(again, L::INFO.try_lock, "{name}: recursive try_lock");
            if !again {
                lock.lock(&());
            }
            assert!(
                !elsewhere(|| lock.held()),
                "{name}: not held by another CPU"
            );
            assert!(
                !elsewhere(|| lock.try_lock(&())),
                "{name}: excludes another CPU"
            );
            lock.unlock(&());
            assert!(lock.held(), "{name}: three levels left");
            assert_eq!(lock.release_all(), 3, "{name}: depth");
            assert!(!lock.held(), "{name}: released");
            elsewhere(|| {
                lock.lock(&());
                assert!(lock.held(), "{name}: free after release_all");
                lock.unlock(&());
                assert!(!lock.held(), "{name}: unlocked");
            });
            lock.acquire_count(3);
            for _ in 0..3 {
                assert!(lock.held());
                lock.unlock(&());
            }
            assert!(!lock.held(), "{name}: three locks, three unlocks");

            // A lock in any state is free after init.
            lock.lock(&());
            elsewhere(|| lock.init());
            assert!(!lock.held(), "{name}: free after init");
            elsewhere(|| {
                lock.lock(&());
                lock.unlock(&());
            });

            // All levels are let go of while others wait.
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            lock.lock(&());
                            lock.lock(&());
                            assert_eq!(lock.release_all(), 2, "{name}: under contention");
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn big_locks_recurse_and_release_all() {
    let mut visited = 0;
    for entry in catalogue::ALL {
        let found = catalogue::visit_big(entry.info.name, Recursion).is_some();
        assert_eq!(found, entry.info.recursive, "{}", entry.info.name);
        visited += usize::from(found);
    }
    assert_eq!(visited, 5);
}

struct Shares;

impl catalogue::SharedVisitor<N> for Shares {
    type Output = bool;

    fn visit<L: RawLock<N, Ctx = ()> + lock_api::RawRwLockDowngrade>(self) -> bool {
        let lock = L::default();
        lock.lock_shared();
        let shared = lock.try_lock_shared();
        // SAFETY: two readers entered.
        unsafe {
            lock.unlock_shared();
            lock.unlock_shared();
        }
        shared
    }
}

#[test]
fn the_locks_that_readers_share_are_listed_as_such() {
    for entry in catalogue::ALL {
        let shared = catalogue::visit_shared(entry.info.name, Shares);
        let expected = entry.info.readers_share.then_some(true);
        assert_eq!(shared, expected, "{}", entry.info.name);
    }
}

/// A lock and its context in statics; that every lock can be one, the
/// catalogue shows, which does not compile otherwise.
#[test]
fn a_lock_and_its_context_can_be_statics() {
    static LOCK: Clh = Clh::new();
    static CONTEXT: crate::common::Sendable<ClhHandle> = crate::common::Sendable(ClhHandle::new());
    let crate::common::Sendable(context) = &CONTEXT;
    // SAFETY: both stay, and only this test uses them.
    unsafe {
        RawLock::<N>::lock(&LOCK, context);
        RawLock::<N>::unlock(&LOCK, context);
    }
}

fn guards<L: lock_api::RawMutex + Send + Sync>() {
    let total = lock_api::Mutex::<L, u64>::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    *total.lock() += 1;
                }
            });
        }
    });
    let guard = total.lock();
    assert_eq!(*guard, 2000);
    assert!(total.try_lock().is_none(), "held");
    drop(guard);
    assert!(total.try_lock().is_some(), "free");
}

#[test]
fn context_free_locks_stand_behind_ordinary_guards() {
    guards::<Tas>();
    guards::<Ttas>();
    guards::<TtasWord>();
    guards::<VirtSpin>();
    guards::<VirtSpinDelay>();
    guards::<VirtSpinBackoff>();
    guards::<Ticket>();
    guards::<TicketProp>();
    guards::<QSpinlock>();
    guards::<QSpinlockVirt>();
    guards::<QSpinlockPv>();
    guards::<QSpinlockCna>();
    guards::<RqSpinlock>();
    guards::<Outline<Ticket>>();
    guards::<Futex>();
    guards::<FutexAdaptive>();
}

#[test]
fn locks_with_nodes_stand_behind_closures() {
    let mcs = NodeMutex::<Mcs, u64>::new(Mcs::new(), 0);
    let anderson = NodeMutex::<Anderson, u64>::new(Anderson::new(), 0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    mcs.with(|total| *total += 1);
                    anderson.with(|total| *total += 1);
                }
            });
        }
    });
    assert_eq!(mcs.try_with(|total| *total), Some(2000));
    assert_eq!(anderson.try_with(|total| *total), Some(2000));
}

#[test]
fn a_lock_is_released_when_its_critical_section_panics() {
    let mcs = NodeMutex::<Mcs, u64>::new(Mcs::new(), 0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        mcs.with(|_| std::panic::resume_unwind(Box::new(())));
    }));
    assert!(panicked.is_err());
    assert!(mcs.try_with(|_| ()).is_some(), "free again");
}

#[test]
#[cfg_attr(
    miri,
    ignore = "takes hours; the model checker begins at the last ticket"
)]
fn slots_and_tickets_go_round() {
    // More acquisitions than Anderson slots and than 16-bit tickets.
    let small = Anderson::<N, 2>::new();
    let ctx = AndersonSlot::new();
    let ticket = Ticket::<N>::new();
    let prop = TicketProp::<N>::new();
    for _ in 0..70_000 {
        // SAFETY: one thread, each released before the next.
        unsafe {
            small.lock(&ctx);
            small.unlock(&ctx);
            RawLock::<N>::lock(&ticket, &());
            RawLock::<N>::unlock(&ticket, &());
            assert!(RawLock::<N>::try_lock(&prop, &()));
            RawLock::<N>::unlock(&prop, &());
        }
    }
}
