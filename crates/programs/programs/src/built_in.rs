//! Locklab's own programs that workloads run: a hidden command, so that they
//! are processes like any other and take a lock, an environment and counters
//! in the same way. Their output is read only by their workload.

use crate::fault::Fault;
use crate::workloads::switching::{Between, By};
use locklab_host::child;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "workload-program";

/// Returns the path of the running executable.
pub(crate) fn program() -> Result<String, Fault> {
    let unrunnable =
        |e: &dyn std::fmt::Display| Fault::Unrunnable(format!("cannot find myself: {e}"));
    // A test's executable is not the command; the test sets the path of the
    // command.
    let path = match std::env::var_os("LOCKLAB_COMMAND") {
        Some(path) => path.into(),
        None => std::env::current_exe().map_err(|e| unrunnable(&e))?,
    };
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| unrunnable(&"its path is not UTF-8"))
}

/// An error of such a program; its workload shows the text.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// Memory that children share: zeroed words on lines of their own.
struct Shared {
    words: &'static [Line],
}

#[repr(align(128))]
struct Line(AtomicU64);

impl Shared {
    fn new(words: usize) -> Result<Self, ProgramError> {
        use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
        let bytes = std::num::NonZeroUsize::new(words * size_of::<Line>()).ok_or("no words")?;
        // SAFETY: new memory, at an address of the kernel's choice.
        let memory = unsafe {
            mmap_anonymous(
                None,
                bytes,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
            )?
        };
        // SAFETY: zeroed, page-aligned, large enough, never unmapped, and
        // atomics may be shared between processes.
        let words = unsafe { std::slice::from_raw_parts(memory.cast().as_ptr(), words) };
        Ok(Self { words })
    }

    fn word(&self, n: usize) -> &'static AtomicU64 {
        &self.words[n].0
    }
}

fn reap(child: Pid) -> Result<(), ProgramError> {
    match waitpid(child, None)? {
        WaitStatus::Exited(_, 0) => Ok(()),
        other => Err(format!("a process ended with {other:?}").into()),
    }
}

/// Starts a child that does `work`, and fails if that does.
fn start(work: impl FnOnce() -> Result<(), ProgramError>) -> Result<Pid, ProgramError> {
    // SAFETY: this process has one thread; the child makes system calls only.
    Ok(unsafe { child::start(None, || u8::from(work().is_err())) }?)
}

/// Runs `processes` processes that call fstat(2) in a loop for `time`; returns
/// the text that the workload reads: calls a second and Jain's index.
///
/// # Errors
/// If a process cannot be started, does not start within 30 s, or fails.
pub fn fstat(processes: usize, time: Duration) -> Result<String, ProgramError> {
    const GO: usize = 0;
    const READY: usize = 1;
    const FIRST: usize = 2;
    let shared = Shared::new(FIRST + processes)?;
    let (go, ready) = (shared.word(GO), shared.word(READY));
    let mut children = Vec::with_capacity(processes);
    for n in 0..processes {
        // Its own file, without a name that could be left behind.
        let file = tempfile::tempfile()?;
        children.push(start(|| {
            use std::os::fd::AsRawFd;
            let descriptor = file.as_raw_fd();
            ready.fetch_add(1, Ordering::Relaxed);
            while go.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            let mut calls = 0;
            // At least once, however late it is scheduled.
            loop {
                for _ in 0..64 {
                    // SAFETY: zero is a value of these plain numbers.
                    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
                    // SAFETY: our descriptor and our structure.
                    if unsafe { libc::fstat(descriptor, &raw mut stat) } != 0 {
                        return Err("fstat".into());
                    }
                    std::hint::black_box(&stat);
                }
                calls += 64;
                if go.load(Ordering::Relaxed) != 1 {
                    break;
                }
            }
            shared.word(FIRST + n).store(calls, Ordering::Relaxed);
            Ok(())
        })?);
    }
    let end = Instant::now() + Duration::from_secs(30);
    while ready.load(Ordering::Relaxed) < processes as u64 {
        if Instant::now() > end {
            return Err("the processes did not start within 30 s".into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let started = Instant::now();
    go.store(1, Ordering::Relaxed);
    std::thread::sleep(time);
    go.store(2, Ordering::Relaxed);
    let seconds = started.elapsed().as_secs_f64();
    for child in children {
        reap(child)?;
    }
    let calls: Vec<f64> = (0..processes)
        .map(|n| shared.word(FIRST + n).load(Ordering::Relaxed) as f64)
        .collect();
    let sum: f64 = calls.iter().sum();
    let squares: f64 = calls.iter().map(|c| c * c).sum();
    let jain = sum * sum / (calls.len() as f64 * squares);
    Ok(format!("throughput {}\njain {jain}\n", sum / seconds))
}

/// Returns the time-stamp counter, read after all earlier instructions.
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut cpu = 0;
        // SAFETY: every x86-64 that Linux runs on with this program has it.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a counter that Linux lets user mode read.
        unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // Nanoseconds stand for ticks.
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
            t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
        })
    }
}

/// One of two threads or processes that alternate.
trait Turns {
    /// Wakes the other and sleeps until it has done the same.
    fn pass(&mut self) -> std::io::Result<()>;
    /// Sleeps until it is its turn for the first time.
    fn first(&mut self) -> std::io::Result<()>;
    /// Wakes the other and does not wait.
    fn last(&mut self) -> std::io::Result<()>;
}

struct Futex {
    word: &'static AtomicU32,
    me: u32,
}

impl Futex {
    fn wait(&self) -> std::io::Result<()> {
        // F1: pairs with F2, the turn that the other gave.
        while self.word.load(Ordering::Acquire) != self.me {
            // SAFETY: a word that lives as long as the process.
            let slept = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.word.as_ptr(),
                    libc::FUTEX_WAIT,
                    1 - self.me,
                    std::ptr::null::<libc::timespec>(),
                )
            };
            let error = std::io::Error::last_os_error();
            let again = [libc::EAGAIN, libc::EINTR];
            if slept != 0 && !again.contains(&error.raw_os_error().unwrap_or(0)) {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Turns for Futex {
    fn pass(&mut self) -> std::io::Result<()> {
        self.last()?;
        self.wait()
    }

    fn last(&mut self) -> std::io::Result<()> {
        // F2: pairs with F1.
        self.word.store(1 - self.me, Ordering::Release);
        // SAFETY: as in `wait`.
        if unsafe { libc::syscall(libc::SYS_futex, self.word.as_ptr(), libc::FUTEX_WAKE, 1) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    }

    fn first(&mut self) -> std::io::Result<()> {
        self.wait()
    }
}

struct Pipe {
    from: std::io::PipeReader,
    to: std::io::PipeWriter,
}

impl Turns for Pipe {
    fn pass(&mut self) -> std::io::Result<()> {
        self.last()?;
        self.first()
    }

    fn last(&mut self) -> std::io::Result<()> {
        self.to.write_all(&[1])
    }

    fn first(&mut self) -> std::io::Result<()> {
        self.from.read_exact(&mut [0])
    }
}

/// Lets two wake each other on one CPU; returns the text that the workload
/// reads: ticks a switch, the mean of `means` means and the lowest and highest
/// of them.
///
/// # Errors
/// If a system call or the other process fails.
pub fn context_switch(
    between: Between,
    by: By,
    switches: u64,
    means: u64,
) -> Result<String, ProgramError> {
    let (mut one, mut other): (Box<dyn Turns + Send>, Box<dyn Turns + Send>) = match by {
        By::Futex => {
            let shared = Shared::new(1)?;
            // SAFETY: the first half of a word that lives as long as the
            // process, and of which nothing else is used.
            let word: &'static AtomicU32 = unsafe { &*shared.word(0).as_ptr().cast::<AtomicU32>() };
            (
                Box::new(Futex { word, me: 0 }),
                Box::new(Futex { word, me: 1 }),
            )
        }
        By::Pipe => {
            let (from_one, to_other) = std::io::pipe()?;
            let (from_other, to_one) = std::io::pipe()?;
            (
                Box::new(Pipe {
                    from: from_other,
                    to: to_other,
                }),
                Box::new(Pipe {
                    from: from_one,
                    to: to_one,
                }),
            )
        }
    };
    // Each pass is two switches: there and back. One more warms up.
    let passes = (switches / 2).max(1);
    let total = passes * (means + 1);
    let partner = move || -> Result<(), ProgramError> {
        other.first()?;
        for _ in 1..total {
            other.pass()?;
        }
        // Wakes the other one last time and does not wait.
        other.last()?;
        Ok(())
    };
    let measure = |one: &mut dyn Turns| -> Result<Vec<f64>, ProgramError> {
        let mut all = Vec::new();
        for mean in 0..=means {
            let started = ticks();
            for _ in 0..passes {
                one.pass()?;
            }
            if mean > 0 {
                all.push((ticks() - started) as f64 / (2 * passes) as f64);
            }
        }
        Ok(all)
    };
    let all = match between {
        Between::Threads => {
            let thread = std::thread::spawn(partner);
            let all = measure(one.as_mut())?;
            thread.join().map_err(|_| "the other thread panicked")??;
            all
        }
        Between::Processes => {
            let child = start(partner)?;
            let all = measure(one.as_mut())?;
            reap(child)?;
            all
        }
    };
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let lowest = all.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = all.iter().copied().fold(0.0, f64::max);
    Ok(format!(
        "switch {mean}\nswitch-lowest {lowest}\nswitch-highest {highest}\n"
    ))
}
