//! The file that the interposer writes and `locklab run` reads.
//!
//! There is one for each program image (a fork goes on with its parent's, an `exec`
//! begins another), mapped shared: so the counts exist however the program ends, and
//! counting allocates nothing and calls nothing. The two sides are built from this
//! one description of it.
//!
//! It must stay plain memory: atomics and bytes at fixed places.
#![no_std]

pub mod clock;
pub mod maps;
pub mod message;
pub mod real;
pub mod sandbox;
pub mod unwind;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The variable that names the folder for the files.
pub const FOLDER_VARIABLE: &str = "LOCKLAB_REPORT";
/// The variable that requests a profile, if it is not empty.
pub const PROFILE_VARIABLE: &str = "LOCKLAB_PROFILE";

/// First word of the file. Changes with the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lockrep5");
/// The most mutexes that a profile distinguishes. This size and those below are
/// powers of two; an entry that finds its table full shares the first place of
/// that table.
pub const SITES: usize = 4096;
/// The most call stacks of a profile.
pub const STACKS: usize = 4096;
/// The most mutexes of one stack that have sites of their own; those beyond
/// them share one.
pub const MUTEXES: u32 = 256;
/// Number of frames of a call stack, from the call of the lock outwards.
pub const FRAMES: usize = 12;
/// The most mapped parts of files.
pub const MODULES: usize = 256;
/// The most pairs of a mutex and a stack that waited for it, or held it.
pub const LINKS: usize = 8192;
/// Threads count separately, in this many places per site, so that counting
/// does not contend where the locks do not.
pub const STRIPES: usize = 8;

/// The file, as it is mapped.
#[repr(C, align(64))]
pub struct Report {
    /// [`MAGIC`], by which a reader knows the format.
    pub magic: AtomicU64,
    /// The process that began it.
    pub process: AtomicU32,
    /// Says whether there is a profile.
    pub profile: AtomicU32,
    /// Says whether ticks are nanoseconds; else [`clock::counter`] counts them.
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
    /// Process-shared rwlocks initialised.
    pub kept_rwlocks: AtomicU64,
    /// 1 once the program uses rwlocks while all of them are glibc's.
    pub rwlocks_of_glibc: AtomicU32,
    /// Acquisitions by threads for which the lock had no room in its queue.
    pub outside: AtomicU64,
    /// Says how often a waiter slept for a lock.
    pub sleeps: AtomicU64,
    /// Says how often a lock was handed to a sleeping thread, and was idle
    /// until that thread ran.
    pub handoffs: AtomicU64,
    /// Total time for which the locks were idle then, in nanoseconds.
    pub idle: AtomicU64,
    /// Number of acquisitions that passed the head of a queue.
    pub passes: AtomicU64,
    /// The mapped files; the first entries are used.
    pub modules: [Module; MODULES],
    /// Stacks, placed by the hash of their frames.
    pub stacks: [Stack; STACKS],
    /// The stacks that waited and held, by the hash of both ends.
    pub links: [Link; LINKS],
    /// Sites, placed by the hash of mutex and stack.
    pub sites: [Site; SITES],
}

/// A mapped part of a file.
#[repr(C)]
pub struct Module {
    /// 1 once the other fields are set.
    pub known: AtomicU32,
    /// The lowest mapped address.
    pub from: AtomicU64,
    /// The address after the last.
    pub to: AtomicU64,
    /// Offset in the file of the first address.
    pub offset: AtomicU64,
    /// The path of the file, ending in zeros; cut at the front if longer.
    pub path: [AtomicU32; 60],
}

/// A call stack at the first use of a mutex, or at a wait.
#[repr(C)]
pub struct Stack {
    /// Hash of the frames; 0 if the place is free.
    pub key: AtomicU64,
    /// 1 once the frames are set.
    pub known: AtomicU32,
    /// Sites that began with this stack.
    pub mutexes: AtomicU32,
    /// Addresses after the calls, from the call of the lock outwards; 0 after
    /// the last.
    pub frames: [AtomicU64; FRAMES],
}

/// The kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waited for the mutex.
    Waited,
    /// Held it while others waited.
    Held,
}

/// A stack that waited for a mutex, or held it while others waited.
#[repr(C)]
pub struct Link {
    /// See [`Link::key`]; 0 if the place is free.
    pub key: AtomicU64,
    /// Says how often that happened.
    pub count: AtomicU64,
    /// Total time in ticks.
    pub ticks: AtomicU64,
}

impl Link {
    /// Returns the key of a site, a stack and a role.
    pub fn key(site: u32, stack: u32, role: Role) -> u64 {
        1 << 63 | u64::from(site) << 32 | u64::from(stack) << 1 | u64::from(role == Role::Held)
    }

    /// Returns site, stack and role of a key.
    pub fn ends(key: u64) -> (u32, u32, Role) {
        let role = if key & 1 == 1 {
            Role::Held
        } else {
            Role::Waited
        };
        ((key >> 32) as u32 & 0x7fff_ffff, (key as u32) >> 1, role)
    }
}

/// A mutex that was initialised or first acquired by one stack.
#[repr(C, align(64))]
pub struct Site {
    /// Hash of both; 0 if the place is free.
    pub key: AtomicU64,
    /// The address of the mutex; 0 if several share the site.
    pub mutex: AtomicU64,
    /// The number of the stack; 0 if not known.
    pub stack: AtomicU32,
    /// The most threads that waited at once.
    pub most_waiters: AtomicU32,
    /// The counts of some of the threads.
    pub counts: [Counts; STRIPES],
}

/// The counts of a site, with times in ticks.
#[repr(C, align(64))]
pub struct Counts {
    /// Says how often a lock was acquired.
    pub acquired: AtomicU64,
    /// Says how often it was not free at the first attempt.
    pub contended: AtomicU64,
    /// Total time from that attempt to the acquisition.
    pub waited: AtomicU64,
    /// The longest of these.
    pub longest_wait: AtomicU64,
    /// Total time from acquisition to release.
    pub held: AtomicU64,
    /// The longest of these.
    pub longest_hold: AtomicU64,
    /// The number of holds that `held` adds up.
    pub holds: AtomicU64,
}

/// Size of the file in bytes.
pub const BYTES: usize = size_of::<Report>();

/// Returns the place of `key` in a table, and whether it is new, in which case the
/// caller fills it in. 0, which entries without room share, if the table is
/// full.
pub fn find<T>(table: &[T], key: u64, of: impl Fn(&T) -> &AtomicU64) -> (usize, bool) {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    for step in 0..64 {
        let number = (hash as usize + step) % table.len();
        if number == 0 {
            continue;
        }
        let place = of(&table[number]);
        match place.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return (number, true),
            Err(there) if there == key => return (number, false),
            Err(_) => {}
        }
    }
    (0, false)
}
