//! Threads of Rust that hold one mutex for so many steps, and think for as many: the programs
//! `rust-std` and `rust-parking_lot` of the table, which are this one with `--sections`.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Runs threads under a mutex of this kind, and prints their rate in steps under the lock, so
/// that longer sections do not count as fewer.
pub(crate) fn sections(words: &[String]) -> Result<(), String> {
    let [kind, threads, hold] = words else {
        return Err("--sections takes std or parking_lot, threads, and steps".into());
    };
    let number = |word: &String| {
        word.parse::<u64>()
            .map_err(|_| format!("'{word}' is no number"))
    };
    let (threads, hold) = (number(threads)?, number(hold)?);
    let turns = match kind.as_str() {
        "std" => {
            let lock = std::sync::Mutex::new((0, 0));
            let turn = |section: Section| {
                if let Ok(mut shared) = lock.lock() {
                    section(&mut shared);
                }
            };
            run(threads, hold, &turn);
            lock.lock().map(|shared| shared.1).unwrap_or(0)
        }
        "parking_lot" => {
            let lock = parking_lot::Mutex::new((0, 0));
            run(threads, hold, &|section: Section| section(&mut lock.lock()));
            lock.lock().1
        }
        other => return Err(format!("there is no mutex '{other}' here")),
    };
    println!("rate {}", turns * hold);
    Ok(())
}

/// Describes what is done under the lock, to its data: a value, and turns.
type Section<'a> = &'a dyn Fn(&mut (u64, u64));

fn run(threads: u64, hold: u64, turn: &(dyn Fn(Section<'_>) + Sync)) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for me in 0..threads {
            let over = &over;
            scope.spawn(move || {
                let mut own = me;
                while !over.load(Ordering::Relaxed) {
                    turn(&|shared| *shared = (steps(shared.0, hold), shared.1 + 1));
                    own = steps(own, hold);
                }
                black_box(own);
            });
        }
        thread::sleep(Duration::from_secs(1));
        over.store(true, Ordering::Relaxed);
    });
}

fn steps(mut value: u64, count: u64) -> u64 {
    for _ in 0..count {
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    value
}
