//! The counts of the interposer, which `locklab run` prints.
//!
//! The counts lie in a file that the command reads when the program has
//! ended, however it ended; see `locklab_profile`. Without such a
//! command they lie in memory that is never read.

use crate::mutex::Mutex;
use crate::own::Guarded;
use crate::process::variable;
use crate::{chosen, futex, site, stack, thread};
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
pub(crate) use locklab_profile::clock::ticks;
use locklab_profile::clock::{self, has_counter};
use locklab_profile::{
    BYTES, Counts, Link, MAGIC, MUTEXES, Module, Report, Role, STRIPES, Site, find, maps,
};
use locklab_pthread_protocols::publication::{publish, published};

static REPORT: AtomicPtr<Report> = AtomicPtr::new(ptr::null_mut());
static PROFILING: AtomicBool = AtomicBool::new(false);

const RELAXED: Ordering = Ordering::Relaxed;

fn report() -> Option<&'static Report> {
    // SAFETY: null, or a mapping that stays.
    unsafe { REPORT.load(RELAXED).as_ref() }
}

/// Returns whether each acquisition is timed.
#[inline]
pub(crate) fn profiling() -> bool {
    PROFILING.load(RELAXED)
}

/// Begins the file, if one is requested.
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
    if !has_counter() {
        report.nanoseconds.store(1, RELAXED);
        clock::use_nanoseconds();
    }
    REPORT.store(ptr::from_ref(report).cast_mut(), RELAXED);
    if variable(c"LOCKLAB_PROFILE").is_some() {
        report.profile.store(1, RELAXED);
        PROFILING.store(true, RELAXED);
    }
}

/// Makes and maps a file with a unique name, from the process number and a
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

/// Returns a number as ten digits.
fn decimal(mut number: u32) -> [u8; 10] {
    let mut digits = [b'0'; 10];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Notes that the process has just been forked; it continues with the same
/// file.
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

/// Counts an operation on a mutex that is glibc's.
#[inline]
pub(crate) fn kept_by_glibc() {
    add(|report| &report.kept_operations);
}

/// Counts the initialisation of a mutex or spinlock that is glibc's.
pub(crate) fn kept_one_by_glibc() {
    add(|report| &report.kept_mutexes);
}

/// Counts the initialisation of a rwlock that is glibc's.
pub(crate) fn kept_rwlock_by_glibc() {
    add(|report| &report.kept_rwlocks);
}

/// Notes that the program uses rwlocks, which are all glibc's.
#[inline]
pub(crate) fn rwlocks_of_glibc() {
    if let Some(report) = report() {
        // Read before it is written: threads that only read share the line.
        if report.rwlocks_of_glibc.load(RELAXED) == 0 {
            report.rwlocks_of_glibc.store(1, RELAXED);
        }
    }
}

/// Counts the initialisation of a condition variable that is glibc's.
pub(crate) fn kept_condition_by_glibc() {
    add(|report| &report.kept_conditions);
}

/// Counts an acquisition by a thread for which the queue has no room.
pub(crate) fn outside() {
    add(|report| &report.outside);
}

/// Returns whether the counts are read.
#[inline]
pub(crate) fn reports() -> bool {
    !REPORT.load(RELAXED).is_null()
}

/// Notes that a waiter has slept; `idle` is how long the lock was idle, in
/// nanoseconds, if it was handed to the sleeper.
pub(crate) fn slept(idle: Option<u64>) {
    if let Some(report) = report() {
        report.sleeps.fetch_add(1, RELAXED);
        if let Some(idle) = idle {
            report.handoffs.fetch_add(1, RELAXED);
            report.idle.fetch_add(idle, RELAXED);
        }
    }
}

/// Counts acquisitions that passed the head of a queue.
pub(crate) fn passed(passes: u32) {
    if let Some(report) = report() {
        report.passes.fetch_add(u64::from(passes), RELAXED);
    }
}

/// Returns the number of the site of a mutex that is initialised or first acquired by
/// the call that returns to `caller`; 0 if there is no room for it, or the
/// caller is not known.
pub(crate) fn site(mutex: &Mutex, caller: usize) -> u32 {
    let Some(report) = report().filter(|_| caller != 0) else {
        return 0;
    };
    let stack = stack(report, caller);
    let several = &report.stacks[stack as usize].mutexes;
    let mut address = ptr::from_ref(mutex).addr() as u64;
    if stack == 0 || several.load(RELAXED) >= MUTEXES {
        address = 0;
    }
    let key = (address ^ u64::from(stack) << 48).max(1);
    let (number, new) = find(&report.sites, key, |site| &site.key);
    if new {
        let site = &report.sites[number];
        several.fetch_add(1, RELAXED);
        site.mutex.store(address, RELAXED);
        site.stack.store(stack, RELAXED);
    }
    number as u32
}

/// Returns the number of the stack outside the call that returns to `caller`, 0 if
/// there is no room for it.
fn stack(report: &'static Report, caller: usize) -> u32 {
    let frames = stack::walk(caller);
    // FNV-1a, by words.
    let key = frames.iter().fold(0xcbf2_9ce4_8422_2325, |hash, frame| {
        (hash ^ frame).wrapping_mul(0x0100_0000_01b3)
    });
    let (number, new) = find(&report.stacks, key.max(1), |stack| &stack.key);
    if new {
        let stack = &report.stacks[number];
        for (place, frame) in stack.frames.iter().zip(frames) {
            place.store(frame, RELAXED);
            if frame != 0 {
                module(report, frame);
            }
        }
        // The reader looks at `known` with Acquire.
        publish(&stack.known, 1);
    }
    number as u32
}

/// Guards the entries of modules.
static MODULES: Guarded = Guarded::new();

/// Records the file that is mapped at `address`, if it is not recorded yet.
fn module(report: &'static Report, address: u64) {
    let holds = |module: &Module| {
        published(&module.known) == 1
            && (module.from.load(RELAXED)..module.to.load(RELAXED)).contains(&address)
    };
    if report.modules.iter().any(holds) {
        return;
    }
    MODULES.with(|| {
        let free = report
            .modules
            .iter()
            .find(|module| module.known.load(RELAXED) == 0);
        let Some(module) = free.filter(|_| !report.modules.iter().any(holds)) else {
            return;
        };
        maps::each(|mapped| {
            if !(mapped.from..mapped.to).contains(&address) {
                return ControlFlow::Continue(());
            }
            let path = mapped.path;
            module.from.store(mapped.from, RELAXED);
            module.to.store(mapped.to, RELAXED);
            module.offset.store(mapped.offset, RELAXED);
            // The end of a long path says more than its start; the last
            // word stays zero.
            let words = module.path.len() - 1;
            let from = path.len().saturating_sub(words * 4);
            for (word, bytes) in module.path.iter().zip(path[from..].chunks(4)) {
                let mut padded = [0; 4];
                padded[..bytes.len()].copy_from_slice(bytes);
                word.store(u32::from_ne_bytes(padded), RELAXED);
            }
            // Here too the reader looks with Acquire.
            publish(&module.known, 1);
            ControlFlow::Break(())
        });
    });
}

/// Returns the guard, which the child of a fork resets.
pub(crate) fn guard() -> &'static Guarded {
    &MODULES
}

/// Acquires a lock by `first`, if that returns that it was free, or else by
/// `wait`; returns when the wait began.
pub(crate) fn wait_for(
    mutex: &Mutex,
    first: impl FnOnce() -> bool,
    wait: impl FnOnce(),
) -> Option<u64> {
    let began = ticks();
    if first() {
        return None;
    }
    mutex.waiters.fetch_add(1, RELAXED);
    wait();
    mutex.waiters.fetch_sub(1, RELAXED);
    Some(began)
}

/// Notes that the lock has been acquired, after a wait if `began` is set.
pub(crate) fn acquired(mutex: &Mutex, caller: usize, began: Option<u64>) {
    let now = counted(mutex, caller, began);
    since(mutex).store(now, RELAXED);
}

/// Notes an acquisition as [`acquired`] does; the caller keeps the time that this returns,
/// in ticks.
pub(crate) fn counted(mutex: &Mutex, caller: usize, began: Option<u64>) -> u64 {
    if site::number(mutex) == 0 {
        site::set(mutex, site(mutex, caller));
    }
    let now = ticks();
    if let Some(site) = site_of(mutex) {
        let counts = counts(site);
        counts.acquired.fetch_add(1, RELAXED);
        if let Some(began) = began {
            let wait = now.saturating_sub(began);
            counts.contended.fetch_add(1, RELAXED);
            counts.waited.fetch_add(wait, RELAXED);
            counts.longest_wait.fetch_max(wait, RELAXED);
            // The waiting function is determined when the lock is no longer
            // held.
            let thread = thread::header();
            thread.waited_at.store(site::number(mutex), RELAXED);
            thread.waited.store(wait, RELAXED);
        }
    }
    now
}

/// The part of an acquisition that is recorded once the lock is released.
#[derive(Clone, Copy)]
pub(crate) struct Released {
    site: u32,
    /// Says how long its thread waited for it, in ticks, or 0.
    waited: u64,
    /// Says how long it was held, if others waited meanwhile, or 0.
    held: u64,
}

/// Is called when the lock is about to be released.
pub(crate) fn releasing(mutex: &Mutex) -> Option<Released> {
    releasing_since(mutex, since(mutex).swap(0, RELAXED))
}

/// Notes a release as [`releasing`] does, of a lock held since this time, in ticks.
pub(crate) fn releasing_since(mutex: &Mutex, since: u64) -> Option<Released> {
    let place = site_of(mutex).filter(|_| since != 0)?;
    // Only the holder counts them: its own wait is over. They leave one by one,
    // so there were never more while it held.
    let waiters = mutex.waiters.load(RELAXED);
    if waiters != 0 {
        place.most_waiters.fetch_max(waiters, RELAXED);
    }
    let counts = counts(place);
    let hold = ticks().saturating_sub(since);
    counts.held.fetch_add(hold, RELAXED);
    counts.holds.fetch_add(1, RELAXED);
    counts.longest_hold.fetch_max(hold, RELAXED);
    let held = if waiters != 0 { hold } else { 0 };
    Released::of(site::number(mutex), held)
}

/// Notes a release as [`releasing`] does, by one of several readers: how long it held the
/// lock is not known.
pub(crate) fn releasing_reader(mutex: &Mutex) -> Option<Released> {
    Released::of(site::number(mutex), 0)
}

impl Released {
    /// Describes the release of a lock that was `held` for so long while others waited,
    /// with the wait of this thread.
    fn of(site: u32, held: u64) -> Option<Self> {
        let thread = thread::header();
        let mut waited = 0;
        if thread.waited_at.load(RELAXED) == site {
            thread.waited_at.store(0, RELAXED);
            waited = thread.waited.load(RELAXED);
        }
        (waited != 0 || held != 0).then_some(Self { site, waited, held })
    }
}

/// The first this many walks of a thread's stack are all made, and then every
/// 16th, which counts for 16: a walk takes a microsecond or more.
const ALL_WALKS: u32 = 256;
const SAMPLED: u32 = 16;

/// Notes that the lock has been released, by the call that returns to `caller`.
pub(crate) fn released(released: Option<Released>, caller: usize) {
    let (Some(released), Some(report)) = (released.filter(|_| caller != 0), report()) else {
        return;
    };
    let walks = &thread::header().walks;
    let number = walks.load(RELAXED);
    // Beyond the walks that are all made it cycles through the sampled ones.
    walks.store(
        if number == u32::MAX {
            ALL_WALKS
        } else {
            number + 1
        },
        RELAXED,
    );
    let weight = if number < ALL_WALKS {
        1
    } else if number.is_multiple_of(SAMPLED) {
        u64::from(SAMPLED)
    } else {
        return;
    };
    let stack = stack(report, caller);
    for (ticks, role) in [(released.waited, Role::Waited), (released.held, Role::Held)] {
        if ticks != 0 {
            let key = Link::key(released.site, stack, role);
            let link = &report.links[find(&report.links, key, |link| &link.key).0];
            link.count.fetch_add(weight, RELAXED);
            link.ticks.fetch_add(weight * ticks, RELAXED);
        }
    }
}

fn site_of(mutex: &Mutex) -> Option<&'static Site> {
    report()?.sites.get(site::number(mutex) as usize)
}

fn counts(site: &Site) -> &Counts {
    &site.counts[thread::number() % STRIPES]
}

/// Returns the time when the holder acquired it, in ticks.
fn since(mutex: &Mutex) -> &AtomicU64 {
    if chosen::is_glibc() {
        // SAFETY: part of the words that glibc leaves alone, see
        // `site`.
        unsafe { AtomicU64::from_ptr(mutex.slot.as_ptr().cast()) }
    } else {
        // SAFETY: the caller holds it.
        unsafe { (chosen::ops().since)(mutex) }
    }
}
