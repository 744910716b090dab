//! The time of profiles and of recordings, in ticks: the processor's counter, or the
//! monotonic clock where there is none that runs at one rate.

use core::sync::atomic::{AtomicBool, Ordering};

static NANOSECONDS: AtomicBool = AtomicBool::new(false);

/// Takes the monotonic clock from now on.
pub fn use_nanoseconds() {
    NANOSECONDS.store(true, Ordering::Relaxed);
}

/// Returns the present time, in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    if NANOSECONDS.load(Ordering::Relaxed) {
        nanoseconds()
    } else {
        counter()
    }
}

/// Returns whether the processor has a counter that runs at one rate on all CPUs.
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

/// Reads that counter.
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

/// Reads the monotonic clock.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
