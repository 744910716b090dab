//! A small x86-64 kernel that counts under Locklab's queued spinlock, on every CPU.
//!
//! It is the shortest complete answer to "how do I use `QSpinlock` in a kernel?":
//! [`Kernel`] tells the locks which CPU they run on and where its queue nodes are,
//! and [`COUNT`] is an ordinary guard around a number. It takes no interrupt and
//! has no scheduler, so nothing preempts a holder; a kernel that has either must
//! disable preemption from before `lock` until after the guard is dropped.

#![no_std]
#![no_main]

mod machine;

use core::sync::atomic::{AtomicUsize, Ordering};
use locklab_locks::{Host, Native, QSpinlock, QueueNodes, lock_api};

/// The most CPUs for which `boot.s` has stacks.
const CPUS: usize = 64;

/// Says how often each CPU counts.
const ROUNDS: u64 = 20_000;

/// This kernel, as the locks see it.
struct Kernel;

/// The queue nodes of each CPU. No lock of this kernel needs more.
static NODES: [QueueNodes<Native<Kernel>>; CPUS] = [const { QueueNodes::NEW }; CPUS];

// SAFETY: each CPU took a number of its own at boot, below CPUS (`main_of_cpu`
// stops the others), and has its own entry of NODES. Nothing here unwinds.
unsafe impl Host for Kernel {
    fn cpu() -> usize {
        machine::cpu()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
        &NODES[cpu]
    }
}

/// Four bytes, first come first served, and the number behind them.
static COUNT: lock_api::Mutex<QSpinlock<Native<Kernel>>, u64> = lock_api::Mutex::new(0);

/// CPUs that have counted.
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Runs on every CPU, from `boot.s`; number 0 came first.
#[unsafe(no_mangle)]
extern "C" fn main_of_cpu(number: u32) -> ! {
    let number = number as usize;
    if number >= CPUS {
        machine::halt();
    }
    machine::set_cpu(number);
    let cpus = match number {
        0 => machine::start_other_cpus(),
        _ => 0,
    };
    for _ in 0..ROUNDS {
        *COUNT.lock() += 1;
    }
    // Release: pairs with the first CPU's Acquire load, which then reads COUNT.
    DONE.fetch_add(1, Ordering::Release);
    if number > 0 {
        machine::halt();
    }
    // Acquire: pairs with every CPU's Release increment.
    while DONE.load(Ordering::Acquire) < cpus {
        core::hint::spin_loop();
    }
    let count = *COUNT.lock();
    let expected = ROUNDS * cpus as u64;
    machine::print("CPUs ");
    machine::print_number(cpus as u64);
    machine::print(", counted ");
    machine::print_number(count);
    machine::print(" of ");
    machine::print_number(expected);
    machine::print(", size of the lock ");
    machine::print_number(size_of::<QSpinlock<Native<Kernel>>>() as u64);
    machine::print(" bytes\n");
    machine::exit(count == expected)
}
