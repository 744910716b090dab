//! Locks in memory that two processes share, each at an address of its own.
#![cfg(all(target_os = "linux", not(miri)))]

mod common;

use common::{STRESS, Shared};
use locklab_locks::catalogue::{self, BigVisitor, Visitor};
use locklab_locks::{BigLock, NativePlatform, RawLock, Threads};
use std::ptr;
use std::time::Instant;

const TURNS: u64 = 4_000;
/// CPU numbers that no thread of this program gets by itself.
const PARENT: usize = 500;
const CHILD: usize = 501;

/// Memory without a name that can be mapped more than once.
struct Memory {
    file: libc::c_int,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        // SAFETY: a constant name; the result is checked.
        let file = unsafe { libc::memfd_create(c"lock".as_ptr(), 0) };
        assert!(
            file >= 0,
            "memfd_create: {}",
            std::io::Error::last_os_error()
        );
        // SAFETY: our own file.
        let sized = unsafe { libc::ftruncate(file, bytes as libc::off_t) };
        assert_eq!(sized, 0);
        Self { file, bytes }
    }

    /// Maps it once more, at a new address. Safe in a forked child: one call.
    fn map(&self) -> *mut libc::c_void {
        // SAFETY: a new mapping of our own file.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                self.bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.file,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        at
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own file. The mappings stay until the program ends.
        unsafe { libc::close(self.file) };
    }
}

/// Uses the lock from this process and from a forked one.
///
/// # Safety
/// `ours` is a mapping of `memory`, and a free lock is there.
unsafe fn contend<L: RawLock<NativePlatform>>(memory: &Memory, ours: *mut Shared<L>) {
    assert!(L::INFO.shared_memory);
    let report = Memory::new(size_of::<u64>());
    let made_there = report.map().cast::<u64>();
    let deadline = Instant::now() + STRESS;
    // SAFETY: the child only computes, maps memory and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: the parent is another, and there is no third.
        unsafe { Threads::assume_cpu(CHILD) };
        let theirs = memory.map().cast::<Shared<L>>();
        assert_ne!(ours, theirs, "two addresses");
        let ctx = L::Ctx::default();
        // SAFETY: a lock that works in shared memory; the context stays until
        // the exit.
        unsafe {
            made_there.write((*theirs).use_lock(&ctx, TURNS, deadline));
            libc::_exit(0);
        }
    }
    // SAFETY: the child is another, and there is no third.
    unsafe { Threads::assume_cpu(PARENT) };
    let ctx = L::Ctx::default();
    // SAFETY: as in the child; exclusive again once the child has ended.
    unsafe {
        let made = (*ours).use_lock(&ctx, TURNS, deadline);
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0, "{}: the child failed", L::INFO.name);
        let made_there = made_there.read();
        assert!(made > 0 && made_there > 0, "{}", L::INFO.name);
        assert_eq!((*ours).counted(), made + made_there, "{}", L::INFO.name);
    }
}

struct Fresh;

impl Visitor<NativePlatform> for Fresh {
    type Output = ();

    fn visit<L: RawLock<NativePlatform>>(self) {
        let memory = Memory::new(size_of::<Shared<L>>());
        let ours = memory.map().cast::<Shared<L>>();
        // SAFETY: the mapping is large enough, page-aligned, and ours.
        unsafe {
            ours.write(Shared::new(L::default()));
            contend(&memory, ours);
        }
    }
}

#[test]
fn two_processes_share_a_lock_at_two_addresses() {
    for entry in catalogue::ALL
        .iter()
        .filter(|entry| entry.info.shared_memory)
    {
        catalogue::visit(entry.info.name, Fresh).unwrap();
    }
}

/// Big locks are made where they lie: from zeros, and from rubbish by `init`.
struct InPlace {
    rubbish: bool,
}

impl BigVisitor<NativePlatform> for InPlace {
    type Output = ();

    fn visit<L: BigLock<NativePlatform>>(self) {
        let memory = Memory::new(size_of::<Shared<L>>());
        let ours = memory.map().cast::<Shared<L>>();
        // SAFETY: the mapping is large enough, page-aligned, and ours; every
        // bit pattern is a valid lock word.
        unsafe {
            if self.rubbish {
                ptr::write_bytes((&raw mut (*ours).lock).cast::<u8>(), 0xa5, size_of::<L>());
                (*ours).lock.init();
            }
            contend(&memory, ours);
        }
    }
}

#[test]
fn a_big_lock_is_made_in_shared_memory() {
    for entry in catalogue::ALL.iter().filter(|entry| entry.info.recursive) {
        for rubbish in [false, true] {
            catalogue::visit_big(entry.info.name, InPlace { rubbish }).unwrap();
        }
    }
}
