//! What the interposer counts, for `locklab run` to print.
//!
//! The counts lie in a file that the command reads when the program has
//! ended, however it ended; see `locklab_preload_report`. Without a command
//! that asks, they lie in memory that nobody reads.

use crate::choice::variable;
use crate::mutex::Mutex;
use crate::{choice, futex, thread};
use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use locklab_preload_report::{BYTES, Counts, MAGIC, Report, STRIPES, counter, has_counter};

static REPORT: AtomicPtr<Report> = AtomicPtr::new(ptr::null_mut());
static PROFILING: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: AtomicBool = AtomicBool::new(false);

const RELAXED: Ordering = Ordering::Relaxed;

fn report() -> Option<&'static Report> {
    // SAFETY: null, or a mapping that stays.
    unsafe { REPORT.load(RELAXED).as_ref() }
}

/// Whether each acquisition is timed.
#[inline]
pub(crate) fn profiling() -> bool {
    PROFILING.load(RELAXED)
}

/// Begins the file, if there is to be one.
pub(crate) fn start() {
    let Some(folder) = variable(c"LOCKLAB_REPORT") else {
        return;
    };
    let Some(report) = begin(folder) else {
        return;
    };
    // SAFETY: a fresh mapping of zeros, which are a valid report.
    let report: &Report = unsafe { &*report };
    report.magic.store(MAGIC, RELAXED);
    report.process.store(std::process::id(), RELAXED);
    let nanoseconds = !has_counter();
    report.nanoseconds.store(u32::from(nanoseconds), RELAXED);
    NANOSECONDS.store(nanoseconds, RELAXED);
    REPORT.store(ptr::from_ref(report).cast_mut(), RELAXED);
    if variable(c"LOCKLAB_PROFILE").is_some() && !choice::is_glibc() {
        report.profile.store(1, RELAXED);
        PROFILING.store(true, RELAXED);
    }
}

/// Makes and maps a file that nobody else has: by process number, and by a
/// count, since an `exec` keeps the number.
fn begin(folder: &str) -> Option<*mut Report> {
    let mut path = [0u8; 4096];
    for count in 0..1000u32 {
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            let room = path.get_mut(length..length + bytes.len())?;
            room.copy_from_slice(bytes);
            length += bytes.len();
            Some(())
        };
        put(folder.as_bytes())?;
        put(b"/")?;
        put(&decimal(std::process::id()))?;
        put(b"-")?;
        put(&decimal(count))?;
        put(b"\0")?;
        let path = CStr::from_bytes_until_nul(&path).ok()?;
        // SAFETY: a C string, and our own descriptor.
        let report = futex::keep_errno(|| unsafe {
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            let file = libc::open(path.as_ptr(), flags, 0o600);
            if file < 0 {
                return if *libc::__errno_location() == libc::EEXIST {
                    Ok(None)
                } else {
                    Err(())
                };
            }
            let report = if libc::ftruncate(file, BYTES as libc::off_t) == 0 {
                libc::mmap(
                    ptr::null_mut(),
                    BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    file,
                    0,
                )
            } else {
                libc::MAP_FAILED
            };
            libc::close(file);
            if report == libc::MAP_FAILED {
                Err(())
            } else {
                Ok(Some(report.cast()))
            }
        });
        match report {
            Ok(None) => {}
            Ok(report) => return report,
            Err(()) => return None,
        }
    }
    None
}

/// Ten digits.
fn decimal(mut number: u32) -> [u8; 10] {
    let mut digits = [b'0'; 10];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// In a process just forked, which goes on with the file.
pub(crate) fn forked() {
    if let Some(report) = report() {
        report.forks.fetch_add(1, RELAXED);
    }
}

fn add(place: impl FnOnce(&'static Report) -> &'static AtomicU64) {
    if let Some(report) = report() {
        place(report).fetch_add(1, RELAXED);
    }
}

/// An operation on a mutex that is glibc's.
#[inline]
pub(crate) fn kept_by_glibc() {
    add(|report| &report.kept_operations);
}

/// A mutex or spinlock initialised that is glibc's.
pub(crate) fn kept_one_by_glibc() {
    add(|report| &report.kept_mutexes);
}

/// A condition variable initialised that is glibc's.
pub(crate) fn kept_condition_by_glibc() {
    add(|report| &report.kept_conditions);
}

/// An acquisition by a thread for which the queue has no room.
pub(crate) fn outside() {
    add(|report| &report.outside);
}

/// Whether anybody reads what is counted.
#[inline]
pub(crate) fn reports() -> bool {
    !REPORT.load(RELAXED).is_null()
}

/// A waiter has slept; `idle` is how long the lock stood idle, in nanoseconds,
/// if it was handed to the sleeper.
pub(crate) fn slept(idle: Option<u64>) {
    if let Some(report) = report() {
        report.sleeps.fetch_add(1, RELAXED);
        if let Some(idle) = idle {
            report.handoffs.fetch_add(1, RELAXED);
            report.idle.fetch_add(idle, RELAXED);
        }
    }
}

/// So many acquisitions have passed a sleeper.
pub(crate) fn passed(passes: u32) {
    if let Some(report) = report() {
        report.passes.fetch_add(u64::from(passes), RELAXED);
    }
}

/// Now, for a profile.
#[inline]
pub(crate) fn ticks() -> u64 {
    if NANOSECONDS.load(RELAXED) {
        locklab_preload_report::nanoseconds()
    } else {
        counter()
    }
}

/// The number of a call site, 0 if there is no room for it. `caller` is the
/// address after the call, or 0 if it is not known.
pub(crate) fn site(caller: usize) -> u32 {
    let Some(report) = report().filter(|_| caller != 0) else {
        return 0;
    };
    let (number, new) = report.find(caller as u64);
    if new {
        let site = &report.sites[number];
        locate(caller, |offset, module| {
            site.offset.store(offset, RELAXED);
            // The end of a long path says more than its start; the last
            // word stays zero.
            let words = site.module.len() - 1;
            let from = module.len().saturating_sub(words * 4);
            for (word, bytes) in site.module.iter().zip(module[from..].chunks(4)) {
                let mut padded = [0; 4];
                padded[..bytes.len()].copy_from_slice(bytes);
                word.store(u32::from_ne_bytes(padded), RELAXED);
            }
            // R1: pairs with the reader's look at `known`.
            site.known.store(1, Ordering::Release);
        });
    }
    number as u32
}

/// Finds the file that is mapped at an address, and where in it that is. By
/// reading the kernel's list: the loader's own would need its lock.
fn locate(address: usize, found: impl FnOnce(u64, &[u8])) {
    let mut line = [0u8; 1024];
    let mut buffer = [0u8; 1024];
    let mut length = 0;
    // SAFETY: a C string, our own descriptor and buffers.
    futex::keep_errno(|| unsafe {
        let path: *const c_char = c"/proc/self/maps".as_ptr();
        let file = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        'file: loop {
            let got = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
            let Some(bytes) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else {
                break;
            };
            if bytes.is_empty() {
                break;
            }
            for &byte in bytes {
                if byte == b'\n' {
                    if let Some((offset, module)) = mapping(&line[..length], address) {
                        found(offset, module);
                        break 'file;
                    }
                    length = 0;
                } else if let Some(place) = line.get_mut(length) {
                    *place = byte;
                    length += 1;
                }
            }
        }
        libc::close(file);
    });
}

/// A line of `/proc/self/maps`, if `address` is in it: its place in the file,
/// and the file.
fn mapping(line: &[u8], address: usize) -> Option<(u64, &[u8])> {
    // from-to permissions offset device inode path
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let hexadecimal = |text: &[u8]| {
        let text = core::str::from_utf8(text).ok()?;
        u64::from_str_radix(text, 16).ok()
    };
    let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
    let (from, to) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    if !(from..to).contains(&(address as u64)) {
        return None;
    }
    let offset = hexadecimal(fields.nth(1)?)?;
    let path = fields.nth(2)?.trim_ascii();
    Some((offset + (address as u64 - from), path))
}

/// Acquires the lock, timed.
///
/// # Safety
/// A mutex of ours.
pub(crate) unsafe fn acquire(mutex: &Mutex, caller: usize) {
    let began = ticks();
    // SAFETY: of the caller.
    let waited = unsafe { (choice::ops().lock_and_tell)(mutex) };
    acquired(mutex, caller, waited.then_some(began));
}

/// The lock has been acquired; after a wait if that has a beginning.
pub(crate) fn acquired(mutex: &Mutex, caller: usize, began: Option<u64>) {
    if mutex.site() == 0 {
        mutex.set_site(site(caller));
    }
    let now = ticks();
    if let Some(counts) = counts(mutex) {
        counts.acquired.fetch_add(1, RELAXED);
        if let Some(began) = began {
            let wait = now.saturating_sub(began);
            counts.contended.fetch_add(1, RELAXED);
            counts.waited.fetch_add(wait, RELAXED);
            counts.longest_wait.fetch_max(wait, RELAXED);
        }
    }
    // SAFETY: the caller holds it.
    unsafe { (choice::ops().since)(mutex) }.store(now, RELAXED);
}

/// The lock is about to be released.
pub(crate) fn releasing(mutex: &Mutex) {
    // SAFETY: the caller holds it.
    let since = unsafe { (choice::ops().since)(mutex) }.swap(0, RELAXED);
    if let Some(counts) = counts(mutex).filter(|_| since != 0) {
        let hold = ticks().saturating_sub(since);
        counts.held.fetch_add(hold, RELAXED);
        counts.holds.fetch_add(1, RELAXED);
        counts.longest_hold.fetch_max(hold, RELAXED);
    }
}

fn counts(mutex: &Mutex) -> Option<&'static Counts> {
    let site = report()?.sites.get(mutex.site() as usize)?;
    Some(&site.counts[thread::number() % STRIPES])
}
