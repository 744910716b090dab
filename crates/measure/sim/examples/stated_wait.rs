//! A mutex that is handed over after a stated wait, simulated beside four others in all
//! cells of the default matrix: in how many it is best, or within 2 % of the best, at
//! equal share. `results/mutexes.md` says what came of it.
//!
//! `cargo run --release -p locklab-sim --example stated_wait -- xeon-8380-2s 2 1 2 4 8`:
//! the machine, how many of its CPUs (0: all), the numbers of threads. The twin in C,
//! `crates/more/own-lock/tests/c/futex/stated_wait.c`, is what the model checker runs;
//! this one has the simulator's clock, which a file in C has not.

use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use locklab_locks::{Info, RawLock, host::QueueNode};
use locklab_sim::{
    Machine, Scenario, Sim, SimError, Simulation, Stop, Workload, simulate, simulate_lock,
};
use std::ptr;

/// The time for which the head of the queue lets others by, ns.
const AWAKE: u64 = 25_000;
/// The same for a head that slept.
const WOKEN: u64 = 25_000;
/// The time for which a waiter spins before it sleeps, ns.
const SPIN: u64 = 500_000;
/// The factor by which the head waits longer before the next read than a read takes.
const POLITE: u64 = 8;

// Bits 0 to 7 of the word: held, or held while the head of the queue sleeps.
const HELD: u32 = 1;
const HEAD_SLEEPS: u32 = 3;
const HELD_MASK: u32 = 0xff;
/// Only the head of the queue enters.
const CLOSED: u32 = 1 << 8;

// `granted` of a queue node.
const WAITS: u32 = 0;
const HEAD: u32 = 1;
const SLEEPS: u32 = 2;

/// The word: as above, and the tail of the queue in its high half.
struct StatedWait {
    word: <Sim as Platform>::U32,
}

fn node_of(tail: u16) -> &'static QueueNode<Sim> {
    // SAFETY: a lock that queues with them.
    unsafe { &Sim::queue_nodes(usize::from(tail) - 1).levels()[0] }
}

impl StatedWait {
    fn take_if_free(&self) -> bool {
        self.word
            .compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn pass_the_queue(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & (HELD_MASK | CLOSED) == 0 {
            let held = word | HELD;
            match self
                .word
                .compare_exchange(word, held, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    fn wait(&self) {
        if self.pass_the_queue() {
            return;
        }
        let began = Sim::now();
        let tail = Sim::cpu() as u16 + 1;
        let node = node_of(tail);
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.granted.store(WAITS, Ordering::Relaxed);
        let before = self.word.swap_high_half(tail, Ordering::AcqRel);
        let mut patience = began + AWAKE;
        if before != 0 {
            let link = ptr::from_ref(node).cast_mut();
            node_of(before).next.store(link, Ordering::Release);
            if Self::wait_to_be_head(node, began + SPIN) {
                patience = Sim::now() + WOKEN;
            }
        }
        self.wait_as_head(tail, node, patience);
    }

    /// Returns whether it slept.
    fn wait_to_be_head(node: &QueueNode<Sim>, until: u64) -> bool {
        while Sim::now() < until {
            let reads = Patience::Reads(64);
            let granted = node.granted.spin(Ordering::Acquire, reads, |granted| {
                if granted == HEAD {
                    Poll::Done
                } else {
                    Poll::Relax(1)
                }
            });
            if granted == HEAD {
                return false;
            }
        }
        if node
            .granted
            .compare_exchange(WAITS, SLEEPS, Ordering::Relaxed, Ordering::Acquire)
            .is_err()
        {
            return false;
        }
        while node.granted.load(Ordering::Acquire) != HEAD {
            Sim::wait(&node.granted, SLEEPS);
        }
        true
    }

    fn wait_as_head(&self, tail: u16, node: &QueueNode<Sim>, mut patience: u64) {
        let mut closed = false;
        loop {
            let before = Sim::now();
            let mut word = self.word.load(Ordering::Relaxed);
            if self.take_as_head(tail, node, &mut word) {
                return;
            }
            let after = Sim::now();
            if closed && after < patience + SPIN {
                Sim::relax();
            } else if closed {
                self.sleep_as_head(word);
                closed = false;
                patience = Sim::now();
            } else if after >= patience {
                self.word.fetch_or(CLOSED, Ordering::Relaxed);
                closed = true;
            } else {
                let until = (after + POLITE * (after - before)).min(patience);
                while Sim::now() < until {
                    Sim::relax();
                }
            }
        }
    }

    fn take_as_head(&self, tail: u16, node: &QueueNode<Sim>, word: &mut u32) -> bool {
        while *word & HELD_MASK == 0 {
            let last = (*word >> 16) as u16 == tail;
            let held = if last { HELD } else { (*word & !CLOSED) | HELD };
            match self
                .word
                .compare_exchange(*word, held, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if last => return true,
                Ok(_) => {
                    let next = node
                        .next
                        .spin_until(Ordering::Acquire, |next| !next.is_null());
                    // SAFETY: a node of the platform, which live for ever.
                    let next = unsafe { &*next };
                    if next.granted.swap(HEAD, Ordering::Release) == SLEEPS {
                        Sim::wake(&next.granted);
                    }
                    return true;
                }
                Err(now) => *word = now,
            }
        }
        false
    }

    fn sleep_as_head(&self, mut word: u32) {
        while matches!(word & HELD_MASK, HELD | HEAD_SLEEPS) {
            let asleep = (word & !(HELD_MASK | CLOSED)) | HEAD_SLEEPS;
            match self
                .word
                .compare_exchange(word, asleep, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Sim::wait(&self.word, asleep),
                Err(now) => word = now,
            }
        }
    }
}

impl Default for StatedWait {
    fn default() -> Self {
        Self {
            word: <Sim as Platform>::U32::new(0),
        }
    }
}

// SAFETY: only a compare-and-swap of a word that is not held takes it. (The model
// checker runs the twin.)
unsafe impl RawLock<Sim> for StatedWait {
    type Ctx = ();

    const INFO: Info = Info {
        name: "stated-wait",
        summary: "handed over after a stated wait",
        parks: true,
        cpu_numbers: true,
        touches_after_release: true,
        ..Info::BASE
    };

    unsafe fn lock(&self, (): &()) {
        if !self.take_if_free() {
            self.wait();
        }
    }

    unsafe fn try_lock(&self, (): &()) -> bool {
        self.take_if_free()
    }

    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    unsafe fn unlock(&self, (): &()) {
        // To 2, which is still held, if the head sleeps.
        if self.word.fetch_sub(HELD, Ordering::Release) & HELD_MASK != HELD {
            self.word.store_low_byte(0, Ordering::Release);
            Sim::wake(&self.word);
        }
    }
}

const OTHERS: [&str; 4] = ["std", "parking_lot", "pthread", "pthread-adaptive"];
const SEEDS: u64 = 2;

/// Returns the million operations a second at equal share: those of the thread with the
/// fewest, times the threads.
fn at_equal_share(
    scenario: &Scenario,
    run: fn(&Scenario) -> Result<Simulation, SimError>,
) -> Result<f64, SimError> {
    let mut sum = 0.0;
    for seed in 1..=SEEDS {
        let scenario = Scenario {
            seed,
            ..scenario.clone()
        };
        let outcome = run(&scenario)?.outcome;
        let fewest = outcome.ops_by_thread.iter().min().copied().unwrap_or(0);
        sum += fewest as f64 * scenario.threads as f64 / outcome.seconds / 1e6;
    }
    Ok(sum / SEEDS as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, cpus, threads @ ..] = &arguments[..] else {
        return Err("wanted: MACHINE CPUS THREADS..., as in xeon-8380-2s 2 1 2 4 8".into());
    };
    let machine = Machine::builtin(machine).ok_or("no machine of that name")?;
    let cpus: usize = cpus.parse()?;
    println!("M operations a second at equal share, simulated; *: within 2 % of the best other");
    for threads in threads {
        let threads: usize = threads.parse()?;
        for non_critical in [1, 32] {
            let (mut cells, mut within) = (0, [0; OTHERS.len() + 1]);
            for critical in [0, 1, 2, 4, 8, 16, 32, 64, 128] {
                let work = Workload::Matrix {
                    critical,
                    non_critical,
                };
                let mut scenario = Scenario::new(machine.clone(), "", work, threads);
                scenario.hardware_threads = (cpus > 0).then_some(cpus);
                scenario.stop = match cpus > 0 && threads > cpus {
                    true => Stop::slices(&machine),
                    false => Stop::Milliseconds(4.0),
                };
                let mut figures = vec![at_equal_share(&scenario, simulate_lock::<StatedWait>)?];
                for other in OTHERS {
                    other.clone_into(&mut scenario.lock);
                    figures.push(at_equal_share(&scenario, simulate)?);
                }
                let best = figures[1..].iter().copied().fold(0.0, f64::max);
                print!("{threads:>3} {critical:>3} {non_critical:>2}");
                for (figure, within) in figures.iter().zip(&mut within) {
                    let close = *figure >= 0.98 * best;
                    *within += u32::from(close);
                    print!(" {figure:>6.2}{}", if close { '*' } else { ' ' });
                }
                println!();
                cells += 1;
            }
            println!(
                "    of {cells}: stated-wait {}, {OTHERS:?} {:?}",
                within[0],
                &within[1..]
            );
        }
    }
    Ok(())
}
