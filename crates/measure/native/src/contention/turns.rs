//! What a CPU finds of lines that another one has written, where the two take turns: whether
//! a read takes the only copy, and whether what follows a locked operation is read while the
//! CPU still computes what comes before it.
//!
//! In its turn a CPU adds to lines that the other has written, and to lines of the same kind
//! that it reads first; adds to the first once more, which finds them; and adds to some after
//! a computation, without and with a read of one more such line after it. Each addition needs
//! the result of the one before. Lines are in pages of their own, so that no prefetcher
//! foresees them.

use super::both::{Line, on_both};
use crate::round_trip::median;
use crate::work::steps_from;
use locklab_host::clock;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of lines of each kind, and of turns of each CPU.
const LINES: usize = 16;
const TURNS: usize = 60;
/// Steps of the computation before an addition: some hundred cycles, which is within what a
/// processor looks ahead and longer than a transfer.
const STEPS: u64 = 40;
/// How long a CPU waits at most for its turn, ns: the other may have lost its CPU.
const LOST: u64 = 20_000_000;

/// Shares, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    /// By how much an addition after a read is nearer to one to a line of one's own than to
    /// one to a line of the other core.
    pub(super) migrates: f64,
    /// By how much of a transfer a read after an addition is shorter.
    pub(super) ahead: f64,
}

#[repr(align(4096))]
struct Page([AtomicUsize; 512]);

/// Times of an addition, ns: to a line of the other core, to one's own, to one that was read
/// before, after a computation, and after one with a read that follows.
#[derive(Clone, Copy, Debug)]
struct Times {
    other: f64,
    own: f64,
    read: f64,
    computed: f64,
    with_read: f64,
}

/// Measures between two CPUs; `None` if one lost its CPU for long.
pub(super) fn measure(a: usize, b: usize) -> Option<Shares> {
    let page = || Page([const { AtomicUsize::new(0) }; 512]);
    let pages: Box<[Page]> = std::iter::repeat_with(page).take(5 * LINES).collect();
    // Which line of its page: not the same of all, or they would share a set of the cache.
    let words: Vec<&AtomicUsize> = (pages.iter().enumerate())
        .map(|(at, page)| &page.0[at * 7 % 64 * 8])
        .collect();
    let turn = Line::default();
    let times = on_both([a, b], |which| {
        let mut times = Vec::with_capacity(TURNS);
        for at in (which..2 * TURNS).step_by(2) {
            if !awaits(&turn.0, at) {
                break;
            }
            times.push(take(&words));
            // T1: pairs with the load of `awaits`, so that turns do not overlap.
            turn.0.store(at + 1, Ordering::Release);
        }
        times
    });
    shares(&times)
}

fn awaits(turn: &AtomicUsize, at: usize) -> bool {
    let start = clock::now();
    // T1: pairs with the store that passes the turn.
    while turn.load(Ordering::Acquire) != at {
        if clock::now() - start > LOST {
            return false;
        }
        spin_loop();
    }
    true
}

/// Makes one turn. R1: the words carry no data.
fn take(words: &[&AtomicUsize]) -> Times {
    let of = |kind: usize| &words[kind * LINES..][..LINES];
    let (read, unread, only, first, second) = (of(0), of(1), of(2), of(3), of(4));
    // Each addition waits for the one before it, or their lines would come together.
    let timed = |words: &[&AtomicUsize], steps: u64, then: &dyn Fn(usize)| {
        let start = clock::now();
        let mut before = 0;
        for at in 0..LINES {
            let zero = steps_from(before, steps) ^ before;
            before = words[at + zero].fetch_add(1, Ordering::Relaxed);
            then(at);
        }
        black_box(before);
        (clock::now() - start) as f64 / LINES as f64
    };
    let nothing = |_| {};
    let sum: usize = read.iter().map(|word| word.load(Ordering::Relaxed)).sum();
    // This addition waits for all these reads.
    black_box(AtomicUsize::new(sum).fetch_add(1, Ordering::SeqCst));
    let times = Times {
        other: timed(unread, 1, &nothing),
        read: timed(read, 1, &nothing),
        own: timed(unread, 1, &nothing),
        computed: timed(only, STEPS, &nothing),
        with_read: timed(first, STEPS, &|at| {
            black_box(second[at].load(Ordering::Relaxed));
        }),
    };
    for word in second {
        word.fetch_add(1, Ordering::Relaxed);
    }
    times
}

fn shares(times: &[Times]) -> Option<Shares> {
    if times.len() < TURNS {
        return None;
    }
    let of = |figure: fn(&Times) -> f64| median(&times.iter().map(figure).collect::<Vec<_>>());
    let (other, own) = (of(|times| times.other), of(|times| times.own));
    let read = of(|times| times.read);
    let (computed, with_read) = (of(|times| times.computed), of(|times| times.with_read));
    let transfer = other - own;
    (transfer > 0.0).then(|| Shares {
        migrates: ((other - read) / transfer).clamp(0.0, 1.0),
        ahead: (1.0 - (with_read - computed) / transfer).clamp(0.0, 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_a_share_of_a_transfer() {
        let of = |read, with_read| {
            let times = Times {
                other: 70.0,
                own: 10.0,
                read,
                computed: 170.0,
                with_read,
            };
            shares(&[times; TURNS]).map(|found| (found.migrates, found.ahead))
        };
        assert_eq!(of(10.0, 230.0), Some((1.0, 0.0)));
        assert_eq!(of(70.0, 170.0), Some((0.0, 1.0)));
        assert_eq!(of(25.0, 185.0), Some((0.75, 0.75)));
        assert_eq!(of(5.0, 300.0), Some((1.0, 0.0)));
        assert!(shares(&[]).is_none());
    }
}
