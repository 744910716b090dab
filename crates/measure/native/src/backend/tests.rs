//! Blocks of a few milliseconds, of sound locks and of unsound ones. Nothing
//! here says how fast anything is.

use super::*;
use crate::plan::Spec;
use locklab_harness::experiment::{Invalid, Order};
use locklab_harness::matrix::{
    LATENCY_MAX, LATENCY_P50, LATENCY_P99, OPS, READ_P50, READ_P999, READ_STARVED, WRITE_P50,
    WRITE_P999, WRITE_STARVED,
};
use locklab_judge::Family;
use locklab_locks::{NativePlatform, RawLock};
use locklab_workload::{Cells, Choice, Distribution, Mix, Unit};
use std::sync::atomic::{AtomicU32, Ordering};

fn design() -> Design {
    Design {
        pairs: 8,
        seed: 3,
        delta: 0.01,
        family: Family::FalseDiscovery,
        aa: false,
        retry: 0,
    }
}

/// Returns a specification with short slices of one cell.
fn short(threads: usize) -> Spec {
    Spec {
        cells: Cells {
            threads: vec![threads],
            ..Cells::default()
        },
        slice: Some(Duration::from_micros(200)),
        time: Duration::from_millis(50),
        ..Spec::new("ticket", "tas")
    }
}

fn turn(seed: u64) -> Turn {
    Turn {
        cell: 0,
        pair: 0,
        order: Order::Together,
        seed,
    }
}

/// Measures one block of `codes`, all that were disturbed left out.
fn block_of(codes: [LockCode; 2], spec: Spec, interrupt: bool) -> Result<[Sample; 2], Stopped> {
    let native = Native::probe();
    let plan = Plan::new(spec, &native).unwrap();
    let interrupt = Arc::new(AtomicBool::new(interrupt));
    let (mut slices, experiment) = native.backend_of(codes, plan, design(), interrupt).unwrap();
    slices.run_together(&experiment.cells[0], &turn(5))
}

fn is_check_failed(sample: &Sample) -> bool {
    matches!(sample.invalid, Some(Invalid::CheckFailed(_)))
}

/// Returns the locks whose code can run here.
fn measured() -> impl Iterator<Item = crate::subject::Subject> {
    let all = crate::subject::all().into_iter();
    all.filter(|subject| subject.measured)
}

#[test]
fn every_lock_runs_and_keeps_its_count() {
    for subject in measured() {
        for threads in [1, 3] {
            let code = crate::subject::code(subject.info.name).unwrap();
            let samples = block_of([code, code], short(threads), false).unwrap();
            // A loaded machine may void a block; it may not fail a check.
            for sample in samples {
                assert!(
                    !is_check_failed(&sample),
                    "{}: {:?}",
                    subject.info.name,
                    sample.invalid
                );
                if sample.invalid.is_none() {
                    // More threads than CPUs may wait through a short slice
                    // for one that has none.
                    let did = threads == 3 || sample.values[OPS] > 0.0;
                    assert!(did, "{}", subject.info.name);
                    let shares = sample.detail["per_thread"].as_array().unwrap();
                    assert_eq!(shares.len(), threads);
                }
            }
        }
    }
}

#[test]
fn processes_run_every_lock_that_can() {
    for subject in measured() {
        if !subject.info.shared_memory {
            continue;
        }
        let code = crate::subject::code(subject.info.name).unwrap();
        let spec = Spec {
            cells: Cells {
                latency: true,
                ..short(2).cells
            },
            processes: true,
            ..short(2)
        };
        for sample in block_of([code, code], spec, false).unwrap() {
            assert!(
                !is_check_failed(&sample),
                "{}: {:?}",
                subject.info.name,
                sample.invalid
            );
        }
    }
}

#[test]
fn latency_and_fstat_are_measured() {
    let code = crate::subject::code("tas").unwrap();
    let spec = Spec {
        cells: Cells {
            work: locklab_workload::Work::Fstat,
            critical: vec![0],
            latency: true,
            ..short(1).cells
        },
        ..short(1)
    };
    // Tried again where a loaded machine voids the block, or a slice of it has no acquisition.
    let [sample, _] = (0..20)
        .map(|_| block_of([code, code], spec.clone(), false).unwrap())
        .find(|[sample, _]| sample.invalid.is_none() && sample.values.contains_key(LATENCY_P50))
        .unwrap();
    let of = |name: &str| sample.values[name];
    assert!(of(LATENCY_P50) <= of(LATENCY_P99) && of(LATENCY_P99) <= of(LATENCY_MAX));
}

#[test]
fn waits_of_readers_and_of_writers_are_apart_where_there_are_both() {
    let code = crate::subject::code("phase-fair").unwrap();
    let sample = |reads| {
        let spec = Spec {
            cells: Cells {
                mix: Mix {
                    reads,
                    ..Mix::default()
                },
                latency: true,
                ..short(2).cells
            },
            ..short(2)
        };
        // Tried again where a loaded machine voids the block, or a side had no CPU for long
        // enough to read and to write.
        let asked: &[&str] = match reads {
            0 => &[LATENCY_P50],
            _ => &[LATENCY_P50, READ_P50, WRITE_P50],
        };
        (0..200)
            .map(|_| block_of([code, code], spec.clone(), false).unwrap())
            .find(|[first, _]| {
                let values = &first.values;
                first.invalid.is_none() && asked.iter().all(|&name| values.contains_key(name))
            })
            .map(|[sample, _]| sample.values)
            .unwrap()
    };
    let of = sample(50);
    assert!(of[READ_P50] <= of[READ_P999] && of[WRITE_P50] <= of[WRITE_P999]);
    assert!(of[READ_P999].max(of[WRITE_P999]) <= of[LATENCY_MAX]);
    for name in [READ_STARVED, WRITE_STARVED] {
        assert!((0.0..=1.0).contains(&of[name]), "{name}: {}", of[name]);
    }
    let alone = sample(0);
    assert!(alone.contains_key(LATENCY_P50) && !alone.contains_key(WRITE_P50));
}

#[test]
fn both_sides_share_address_and_slices_and_another_block_has_others() {
    let code = crate::subject::code("mcs").unwrap();
    let native = Native::probe();
    let plan = Plan::new(short(1), &native).unwrap();
    let (mut slices, experiment) = native
        .backend_of([code, code], plan, design(), Arc::default())
        .unwrap();
    let mut addresses = std::collections::HashSet::new();
    for seed in 0..8 {
        let [b, e] = slices
            .run_together(&experiment.cells[0], &turn(seed))
            .unwrap();
        assert_eq!(b.detail["address"], e.detail["address"]);
        assert_eq!(b.detail["slices"], e.detail["slices"]);
        addresses.insert(b.detail["address"].to_string());
    }
    assert!(addresses.len() > 4);
}

#[test]
fn an_interrupt_ends_a_block_without_a_sample() {
    let code = crate::subject::code("ticket").unwrap();
    for processes in [false, true] {
        let spec = Spec {
            processes,
            time: Duration::from_secs(3600),
            ..short(2)
        };
        assert_eq!(
            block_of([code, code], spec, true),
            Err(Stopped::Interrupted)
        );
    }
}

/// Admits everybody.
#[derive(Default)]
struct Open;

// SAFETY: it is not what it says; that is the point. What it fails to
// protect are atomics and bytes that nobody reads.
unsafe impl RawLock<NativePlatform> for Open {
    type Ctx = ();
    const INFO: locklab_locks::Info = <crate::peers::Std as RawLock<_>>::INFO;
    unsafe fn lock(&self, (): &()) {}
    unsafe fn unlock(&self, (): &()) {}
}

#[test]
fn a_lock_that_does_not_exclude_is_found_out() {
    if locklab_host::topology::allowed().len() == 1 {
        return;
    }
    let codes = [
        crate::subject::code("ticket").unwrap(),
        LockCode::of::<Open>(),
    ];
    // There are no units: they would race.
    let spec = Spec {
        cells: Cells {
            unit: Unit::Nanoseconds,
            critical: vec![0],
            non_critical: vec![0],
            ..short(4).cells
        },
        ..short(4)
    };
    let found = (0..50).any(|_| {
        let [sound, open] = block_of(codes, spec.clone(), false).unwrap();
        assert!(!is_check_failed(&sound));
        is_check_failed(&open)
    });
    assert!(found);
}

/// Kills the process that takes it for the hundredth time, and is never
/// released by it.
#[derive(Default)]
struct Deadly {
    held: AtomicBool,
    turns: AtomicU32,
}

// SAFETY: one holder at a time.
unsafe impl RawLock<NativePlatform> for Deadly {
    type Ctx = ();
    const INFO: locklab_locks::Info = <crate::peers::Std as RawLock<_>>::INFO;
    unsafe fn lock(&self, (): &()) {
        while self.held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        if self.turns.fetch_add(1, Ordering::Relaxed) == 99 {
            // SAFETY: ends this process, a child of the test.
            unsafe { libc::raise(libc::SIGKILL) };
        }
    }
    unsafe fn unlock(&self, (): &()) {
        self.held.store(false, Ordering::Release);
    }
}

#[test]
fn a_process_that_dies_with_the_lock_voids_the_block_and_hangs_nobody() {
    let code = LockCode::of::<Deadly>();
    let spec = Spec {
        processes: true,
        ..short(3)
    };
    for sample in block_of([code, code], spec, false).unwrap() {
        let Some(Invalid::Failed(why)) = sample.invalid else {
            panic!("it went well");
        };
        assert_eq!(why, "a process was killed by SIGKILL");
    }
}

/// Lets everybody in to read, beside writers too.
#[derive(Default)]
struct Careless(crate::peers::Pthread);

// SAFETY: it is not what it says; that is the point. What it fails to protect
// are atomics.
unsafe impl RawLock<NativePlatform> for Careless {
    type Ctx = ();
    const INFO: locklab_locks::Info = locklab_locks::Info {
        readers_share: true,
        ..<crate::peers::Pthread as RawLock<_>>::INFO
    };
    unsafe fn lock(&self, (): &()) {
        // SAFETY: of the caller.
        unsafe { self.0.lock(&()) };
    }
    unsafe fn unlock(&self, (): &()) {
        // SAFETY: of the caller.
        unsafe { self.0.unlock(&()) };
    }
    unsafe fn read_lock(&self, (): &()) {}
    unsafe fn read_unlock(&self, (): &()) {}
}

#[test]
fn a_writer_beside_a_reader_is_found_out() {
    if locklab_host::topology::allowed().len() == 1 {
        return;
    }
    let codes = [
        crate::subject::code("bravo").unwrap(),
        LockCode::of::<Careless>(),
    ];
    let spec = Spec {
        cells: Cells {
            critical: vec![200],
            mix: Mix {
                reads: 50,
                lines: 4,
                ..Mix::default()
            },
            ..short(2).cells
        },
        ..short(2)
    };
    let found = (0..50).any(|_| {
        let [sound, careless] = block_of(codes, spec.clone(), false).unwrap();
        assert!(!is_check_failed(&sound), "{:?}", sound.invalid);
        is_check_failed(&careless)
    });
    assert!(found);
}

#[test]
fn turns_of_every_mix_keep_the_increments_of_all_locks() {
    let mix = Mix {
        reads: 30,
        lines: 3,
        distribution: Distribution::Bursty,
        choice: Choice::Zipf,
        nested: true,
        hold_sleep_ns: 0,
        hog: 0,
    };
    for (lock, latency, processes) in [
        ("qspinlock", false, false),
        ("clh", true, false),
        ("phase-fair", false, true),
        ("rw-queued", true, false),
    ] {
        let code = crate::subject::code(lock).unwrap();
        let spec = Spec {
            cells: Cells {
                critical: vec![4],
                locks: vec![5],
                mix,
                latency,
                ..short(2).cells
            },
            processes,
            ..short(2)
        };
        for sample in block_of([code, code], spec, false).unwrap() {
            // A loaded machine may void a block; it may not fail a check.
            assert!(!is_check_failed(&sample), "{lock}: {:?}", sample.invalid);
            if sample.invalid.is_none() && sample.values.contains_key("streak_mean") {
                assert!(sample.values["streak_mean"] >= 0.5, "{lock}");
            }
        }
    }
}

/// Readers meet inside: none leaves before all have come in.
#[test]
fn readers_overlap_where_the_lock_lets_them() {
    struct Meet;
    impl locklab_locks::catalogue::Visitor<NativePlatform> for Meet {
        type Output = ();
        fn visit<L: RawLock<NativePlatform>>(self) {
            const READERS: usize = 3;
            let lock = L::default();
            let inside = std::sync::Barrier::new(READERS);
            std::thread::scope(|scope| {
                for _ in 0..READERS {
                    scope.spawn(|| {
                        let context = L::Ctx::default();
                        // SAFETY: the context is ours; both stay in place.
                        unsafe { lock.read_lock(&context) };
                        inside.wait();
                        // SAFETY: held for reading.
                        unsafe { lock.read_unlock(&context) };
                    });
                }
            });
        }
    }
    let shared: Vec<_> = measured().filter(|s| s.info.readers_share).collect();
    assert!(shared.len() >= 3);
    for subject in shared {
        crate::subject::visit(subject.info.name, Meet).unwrap();
    }
}

/// A store finds an experiment, and the bias of its set-up, by these texts.
#[test]
fn the_texts_of_which_keys_are_made_are_those_of_version_0_2() {
    let native = Native::probe();
    let interrupt = Arc::new(AtomicBool::new(false));
    let of = |spec: Spec| {
        let plan = Plan::new(spec, &native).unwrap();
        let code = crate::subject::code("ticket").unwrap();
        let made = native.backend_of([code, code], plan, design(), Arc::clone(&interrupt));
        let (slices, experiment) = made.unwrap();
        let mut bias = slices.bias_fingerprint(&experiment.cells[0]).unwrap();
        bias["machine"].take();
        let print = slices.fingerprint();
        assert_eq!(
            print.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["machine", "spec"]
        );
        assert_eq!(print["spec"], experiment.spec);
        [print["spec"].to_string(), bias.to_string()]
    };
    let usual = Spec {
        time: Duration::from_secs(1),
        ..Spec::new("ticket", "mcs")
    };
    let [spec, bias] = of(usual.clone());
    assert_eq!(
        spec,
        r#"{"baseline":"ticket","critical":[1],"experiment":"mcs","latency":false,"layout":null,"non_critical":[1],"pin":null,"processes":false,"slice":null,"threads":[1,2],"time":{"nanos":0,"secs":1},"unit":"units","work":"units"}"#
    );
    assert_eq!(serde_json::from_str::<Spec>(&spec).unwrap(), usual);
    assert_eq!(
        bias,
        r#"{"baseline":"ticket","lengths":["units","units"],"machine":null,"set-up":[null,false,false],"slice":[null,null]}"#
    );
    let other = Spec {
        cells: Cells {
            locks: vec![2],
            mix: Mix {
                reads: 10,
                choice: Choice::Zipf,
                ..Mix::default()
            },
            unit: Unit::Nanoseconds,
            critical: vec![100],
            non_critical: vec![100],
            latency: true,
            ..usual.cells
        },
        trace: Some("program.trace".into()),
        slice: Some(Duration::from_micros(900)),
        ..usual
    };
    let [spec, bias] = of(other.clone());
    assert_eq!(
        spec,
        r#"{"baseline":"ticket","critical":[100],"experiment":"mcs","latency":true,"layout":null,"locks":[2],"mix":{"choice":"zipf","distribution":"fixed","lines":1,"nested":false,"reads":10},"non_critical":[100],"pin":null,"processes":false,"slice":{"nanos":900000,"secs":0},"threads":[1,2],"time":{"nanos":0,"secs":1},"trace":"program.trace","unit":"nanoseconds","work":"units"}"#
    );
    assert_eq!(serde_json::from_str::<Spec>(&spec).unwrap(), other);
    assert_eq!(
        bias,
        r#"{"baseline":"ticket","lengths":["nanoseconds","units"],"machine":null,"mix":{"choice":"zipf","distribution":"fixed","lines":1,"nested":false,"reads":10},"set-up":[null,false,true],"slice":[{"nanos":900000,"secs":0},null]}"#
    );
}
