//! The assembly for parts of a word against its portable twin: the defaults of
//! `LockWord`, which every other machine and the checker use.

use crate::common::yielding::{Portable, Word};
use locklab_locks::platform::{Atomic, LockWord, Ordering};
use std::sync::atomic::AtomicU32;
use std::thread;

const R: Ordering = Ordering::Relaxed;

/// A word that has only the defaults.
type Twin = Word<Portable>;

/// A method's answer, and the word after it.
type Step = (
    &'static str,
    fn(&AtomicU32, u32) -> u64,
    fn(&Twin, u32) -> u64,
);

fn of<T>(result: Result<T, u16>) -> u64 {
    result.map_or_else(|ticket| 1 << 32 | u64::from(ticket), |_| 0)
}

macro_rules! steps {
    ($($name:literal: |$word:ident, $value:ident| $call:expr;)*) => {
        &[$(($name, |$word: &AtomicU32, $value| $call, |$word: &Twin, $value| $call)),*]
    };
}

const STEPS: &[Step] = steps! {
    "take_if_zero": |word, value| u64::from(word.take_if_zero(value, Ordering::Acquire));
    "draw_ticket": |word, _value| of(word.draw_ticket(Ordering::Acquire));
    "store_low_byte": |word, value| {
        word.store_low_byte(value as u8, Ordering::Release);
        0
    };
    "store_low_byte of 0": |word, _value| {
        word.store_low_byte(0, Ordering::Release);
        0
    };
    "store_low_byte of 1": |word, _value| {
        word.store_low_byte(1, R);
        0
    };
    "store_low_half": |word, value| {
        word.store_low_half(value as u16, R);
        0
    };
    "increment_low_half": |word, _value| {
        word.increment_low_half(Ordering::Release);
        0
    };
    "swap_high_half": |word, value| u64::from(word.swap_high_half(value as u16, Ordering::AcqRel));
};

#[test]
fn parts_are_those_of_the_portable_twin() {
    fastrand::seed(13);
    let edges = [
        0,
        1,
        0xff,
        0x100,
        0xffff,
        0x1_0000,
        0xffff_0000,
        0x0001_0001,
        u32::MAX,
    ];
    for turn in 0..20_000 {
        // Edges come first among themselves, then anything; equal halves often.
        let pick = |n: usize| match edges.get(n) {
            Some(&edge) => edge,
            None if fastrand::bool() => fastrand::u32(..),
            None => u32::from(fastrand::u16(..)) * 0x1_0001,
        };
        let (start, value) = (pick(turn / 16), pick(turn % 16));
        for (name, ours, twin) in STEPS {
            let word = AtomicU32::new(start);
            let portable = <Twin as Atomic<u32>>::new(start);
            assert_eq!(
                ours(&word, value),
                twin(&portable, value),
                "{name} of {value:#x} on {start:#x}: answer"
            );
            assert_eq!(
                Atomic::load(&word, R),
                portable.load(R),
                "{name} of {value:#x} on {start:#x}: word"
            );
        }
    }
}

/// Who owns a part writes it while others write the rest; nothing is lost.
#[test]
fn parts_of_a_word_do_not_disturb_each_other() {
    let turns: u32 = if cfg!(miri) { 50 } else { 50_000 };
    let word = AtomicU32::new(0);
    thread::scope(|scope| {
        // The low half counts, by both ways of writing it.
        scope.spawn(|| {
            for turn in 0..turns {
                let before = Atomic::load(&word, R) as u16;
                assert_eq!(before, turn as u16, "the low half is its owner's");
                if turn % 3 == 0 {
                    word.store_low_half(before.wrapping_add(1), Ordering::Release);
                } else {
                    word.increment_low_half(Ordering::Release);
                }
            }
        });
        // In the high half two CPUs swap in what nobody else does.
        for cpu in 1..3 {
            let word = &word;
            scope.spawn(move || {
                for turn in 0..turns {
                    let ours = (turn as u16 & 0x3fff) << 2 | cpu;
                    let before = word.swap_high_half(ours, Ordering::AcqRel);
                    assert_ne!(before, ours, "somebody put back what was ours");
                }
            });
        }
    });
    assert_eq!(word.into_inner() as u16, turns as u16);

    // Tickets: as many as were drawn, each once, none by an unlock.
    let word = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..turns / 50 {
                    if let Err(ticket) = word.draw_ticket(Ordering::Acquire) {
                        word.spin(
                            Ordering::Acquire,
                            locklab_locks::platform::Patience::Forever,
                            |word| {
                                if word as u16 == ticket {
                                    locklab_locks::platform::Poll::Done
                                } else {
                                    thread::yield_now();
                                    locklab_locks::platform::Poll::Relax(1)
                                }
                            },
                        );
                    }
                    word.increment_low_half(Ordering::Release);
                }
            });
        }
    });
    let tickets = 3 * (turns / 50);
    assert_eq!(word.into_inner(), tickets << 16 | tickets & 0xffff);
}

/// The machine code of a function, from its start.
#[cfg(all(
    not(miri),
    target_endian = "little",
    any(target_arch = "aarch64", target_arch = "riscv64")
))]
fn unlock_code<const BYTES: usize>() -> [u8; BYTES] {
    use locklab_locks::{QSpinlock, RawLock};

    #[inline(never)]
    extern "C" fn unlock(lock: &QSpinlock) {
        // SAFETY: the test only reads the code.
        unsafe { RawLock::unlock(lock, &()) }
    }
    // SAFETY: code can be read, and more of it follows this function.
    unsafe { std::ptr::read_unaligned(unlock as *const () as *const [u8; BYTES]) }
}

#[test]
#[cfg(all(not(miri), target_endian = "little", target_arch = "aarch64"))]
fn an_unlock_is_one_release_store_of_a_byte() {
    const RET: u32 = 0xd65f_03c0;
    let code = unlock_code::<32>();
    let instructions: Vec<u32> = code
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        .take_while(|&instruction| instruction != RET)
        .collect();
    let is_stlrb = |instruction: &&u32| **instruction & 0xffff_fc00 == 0x089f_fc00;
    assert_eq!(
        instructions.iter().filter(is_stlrb).count(),
        1,
        "{instructions:x?}"
    );
    assert!(
        instructions.len() <= 2,
        "and a zero to store: {instructions:x?}"
    );
}

#[test]
#[cfg(all(not(miri), target_endian = "little", target_arch = "riscv64"))]
fn an_unlock_is_a_fence_and_a_store() {
    // fence rw, w
    const FENCE: [u8; 4] = 0x0310_000f_u32.to_le_bytes();
    let code = unlock_code::<16>();
    assert!(code.windows(4).any(|part| part == FENCE), "{code:x?}");
}

/// A wait watches the word by an exclusive load, and sleeps.
#[test]
#[cfg(all(not(miri), feature = "wfe", target_arch = "aarch64"))]
fn a_wait_sleeps_until_the_line_is_written() {
    #[inline(never)]
    extern "C" fn wait(word: &AtomicU32) -> u32 {
        word.spin_until(Ordering::Acquire, |value| value != 0)
    }
    assert_eq!(wait(&AtomicU32::new(7)), 7);
    // SAFETY: code can be read, and more of it follows this function.
    let code: [u32; 12] =
        unsafe { std::ptr::read_unaligned(wait as *const () as *const [u32; 12]) };
    let watch = |&instruction: &u32| instruction & 0xffff_fc00 == 0x885f_fc00;
    assert!(code.iter().any(watch), "{code:x?}");
    assert!(code.contains(&0xd503_205f), "{code:x?}");

    let word = AtomicU32::new(0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&word));
        thread::sleep(std::time::Duration::from_millis(2));
        Atomic::store(&word, 9, Ordering::Release);
        assert_eq!(waiter.join().unwrap(), 9);
    });
}
