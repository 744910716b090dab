//! The file that the interposer writes and `locklab run` reads.
//!
//! One for each program image (a fork goes on with its parent's, an `exec`
//! begins another), mapped shared: so what was counted is there however the
//! program ends, and counting allocates nothing and calls nobody. The two
//! sides are built from this one description of it.
//!
//! It must stay plain memory: atomics and bytes at fixed places.
#![no_std]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The variable that names the folder for the files.
pub const FOLDER_VARIABLE: &str = "LOCKLAB_REPORT";
/// The variable that asks for a profile, if it is not empty.
pub const PROFILE_VARIABLE: &str = "LOCKLAB_PROFILE";

/// First word of the file. Changes with the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lockrep2");
/// Call sites of a profile. A power of two; the rest share the first place.
pub const SITES: usize = 4096;
/// Threads count apart, in so many places a site, so that counting does not
/// contend where the locks do not.
pub const STRIPES: usize = 8;

/// The file.
#[repr(C, align(64))]
pub struct Report {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// The process that began it.
    pub process: AtomicU32,
    /// Whether [`Report::sites`] is used.
    pub profile: AtomicU32,
    /// Whether ticks are nanoseconds; else [`counter`] counts them.
    pub nanoseconds: AtomicU32,
    /// Forks that went on with this file.
    pub forks: AtomicU32,
    /// Mutexes and spinlocks initialised that stay glibc's: robust,
    /// process-shared, of a priority protocol.
    pub kept_mutexes: AtomicU64,
    /// Operations on such mutexes.
    pub kept_operations: AtomicU64,
    /// Process-shared condition variables initialised.
    pub kept_conditions: AtomicU64,
    /// Acquisitions by threads for which the lock had no room in its queue.
    pub outside: AtomicU64,
    /// How often a waiter slept for a lock.
    pub sleeps: AtomicU64,
    /// How often a lock was handed to a thread that slept, and stood idle
    /// until that ran.
    pub handoffs: AtomicU64,
    /// How long the locks stood idle then, in nanoseconds, in all.
    pub idle: AtomicU64,
    /// Acquisitions that passed a thread that slept.
    pub passes: AtomicU64,
    /// By the hash of their address; see [`Report::find`].
    pub sites: [Site; SITES],
}

/// A place in the program where a lock is initialised or first acquired, and
/// what became of all the locks of that place.
#[repr(C, align(64))]
pub struct Site {
    /// The address after the call; 0: no site here.
    pub address: AtomicU64,
    /// Where that is in the file it was mapped from.
    pub offset: AtomicU64,
    /// 1 once `offset` and `module` are there.
    pub known: AtomicU32,
    _free: u32,
    /// The path of that file, ending in zeros; cut at the front if longer.
    pub module: [AtomicU32; 58],
    /// The counts of some of the threads.
    pub counts: [Counts; STRIPES],
}

/// Times in ticks.
#[repr(C, align(64))]
pub struct Counts {
    /// How often a lock was acquired.
    pub acquired: AtomicU64,
    /// How often it was not free at the first look.
    pub contended: AtomicU64,
    /// Time from that look to the acquisition, in all.
    pub waited: AtomicU64,
    /// The longest of these.
    pub longest_wait: AtomicU64,
    /// Time from acquisition to release, in all.
    pub held: AtomicU64,
    /// The longest of these.
    pub longest_hold: AtomicU64,
    /// How many holds `held` adds up.
    pub holds: AtomicU64,
}

/// Bytes of the file.
pub const BYTES: usize = size_of::<Report>();

impl Report {
    /// The number of the site at `address`, and whether it is new, in which
    /// case the caller fills it in. 0, where sites that find no room share
    /// the counts, if the table is full.
    pub fn find(&self, address: u64) -> (usize, bool) {
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        for step in 0..64 {
            let number = (hash as usize + step) % SITES;
            if number == 0 {
                continue;
            }
            let place = &self.sites[number].address;
            match place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (number, true),
                Err(there) if there == address => return (number, false),
                Err(_) => {}
            }
        }
        (0, false)
    }
}

/// Whether the processor has a counter that runs at one pace on all CPUs.
pub fn has_counter() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64")
    }
}

/// That counter.
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: readable by programs under Linux.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack, nomem));
        }
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        nanoseconds()
    }
}

/// The monotonic clock.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
