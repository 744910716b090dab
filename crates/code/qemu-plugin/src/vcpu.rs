// SPDX-License-Identifier: GPL-2.0-or-later
//! The state of each vCPU, and the callbacks that run with every block.
//!
//! In user mode a vCPU is a thread, and vCPUs run in parallel. Each has a
//! cache and tallies of its own and takes no lock; nothing here may touch
//! another vCPU's cache, but anyone may read its tallies.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use locklab_icache::{Block, Cache, Counts, Tally};

use crate::api::{Id, OnExec};
use crate::session;

/// User or kernel code: which of a vCPU's tallies counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    User = 0,
    Kernel = 1,
}

/// Counts of both modes, indexed by [`Mode`].
pub(crate) type ByMode = [Counts; 2];

/// A vCPU. Never freed, so that callbacks may hold on to it.
struct Vcpu {
    tallies: [Tally; 2],
    own: UnsafeCell<Own>,
}

/// Holds what only the vCPU's own thread touches.
struct Own {
    cache: Cache,
    /// Holds the address of the REP instruction executed last, and the instructions
    /// counted in its mode by then.
    rep: (u64, u64),
}

/// vCPUs that are counted; in user mode, threads alive at one time.
const LIMIT: usize = 8192;

static VCPUS: [AtomicPtr<Vcpu>; LIMIT] = [const { AtomicPtr::new(ptr::null_mut()) }; LIMIT];

/// Is true if a vCPU beyond the limit appeared.
static BEYOND_LIMIT: AtomicBool = AtomicBool::new(false);

/// Returns the vCPU of this index; `None` beyond the limit.
#[inline(always)]
fn get(index: c_uint) -> Option<&'static Vcpu> {
    // V1: pairs with V2, so the vCPU is seen as it was made.
    let vcpu = VCPUS.get(index as usize)?.load(Ordering::Acquire);
    // SAFETY: null or from V2, and never freed.
    unsafe { vcpu.as_ref() }
}

/// Runs when a vCPU appears: gives it an empty cache. In user mode an index
/// is used again when its thread has ended; the counts are kept.
pub(crate) extern "C" fn on_init(_id: Id, index: c_uint) {
    let Some(session) = session::get() else {
        return;
    };
    if let Some(vcpu) = get(index) {
        // SAFETY: the index belongs to no running thread but the one that is
        // starting, so no other thread accesses `own`.
        unsafe { (*vcpu.own.get()).cache.clear() };
    } else if let Some(slot) = VCPUS.get(index as usize) {
        let vcpu = Box::new(Vcpu {
            tallies: Default::default(),
            own: UnsafeCell::new(Own {
                cache: Cache::new(session.geometry(), session.prefetch()),
                rep: (0, u64::MAX),
            }),
        });
        // V2: pairs with V1.
        slot.store(Box::into_raw(vcpu), Ordering::Release);
    } else {
        BEYOND_LIMIT.store(true, Ordering::Relaxed);
    }
}

/// Returns whether every vCPU was counted.
pub(crate) fn all_counted() -> bool {
    !BEYOND_LIMIT.load(Ordering::Relaxed)
}

/// Returns the counts of every vCPU so far, by index.
pub(crate) fn read_all() -> Vec<ByMode> {
    (0..LIMIT as c_uint)
        .map_while(get)
        .map(|vcpu| [vcpu.tallies[0].read(), vcpu.tallies[1].read()])
        .collect()
}

/// Returns the callback for a block of this mode; its userdata are the block's bits.
pub(crate) fn on_block(mode: Mode, block: Block) -> OnExec {
    match (mode, block.lines()) {
        (Mode::User, 1) => run_lines::<0, 1>,
        (Mode::User, 2) => run_lines::<0, 2>,
        (Mode::User, _) => run::<0>,
        (Mode::Kernel, 1) => run_lines::<1, 1>,
        (Mode::Kernel, 2) => run_lines::<1, 2>,
        (Mode::Kernel, _) => run::<1>,
    }
}

extern "C" fn run_lines<const MODE: usize, const LINES: usize>(index: c_uint, block: *mut c_void) {
    let Some(vcpu) = get(index) else { return };
    // SAFETY: QEMU calls on the vCPU's own thread, one callback at a time.
    let own = unsafe { &mut *vcpu.own.get() };
    own.cache
        .run_lines::<LINES>(Block::from_bits(block as u64), &vcpu.tallies[MODE]);
}

extern "C" fn run<const MODE: usize>(index: c_uint, block: *mut c_void) {
    let Some(vcpu) = get(index) else { return };
    // SAFETY: as above.
    let own = unsafe { &mut *vcpu.own.get() };
    own.cache
        .run(Block::from_bits(block as u64), &vcpu.tallies[MODE]);
}

/// A block that is, or ends with, a REP string instruction. QEMU iterates by
/// entering a block that is nothing but that instruction again and again; a
/// real CPU fetches and counts it once.
pub(crate) struct Repeated {
    /// Holds the address of the REP instruction.
    pub(crate) address: u64,
    /// It is the whole block.
    pub(crate) alone: bool,
    pub(crate) blocks: Box<[Block]>,
    /// Executions, without iterations, if requested.
    pub(crate) executions: Option<&'static AtomicU64>,
}

/// Returns the callback for a block with a REP instruction; its userdata is a
/// `&'static Repeated`.
pub(crate) fn on_repeated(mode: Mode) -> OnExec {
    match mode {
        Mode::User => run_repeated::<0>,
        Mode::Kernel => run_repeated::<1>,
    }
}

extern "C" fn run_repeated<const MODE: usize>(index: c_uint, repeated: *mut c_void) {
    let Some(vcpu) = get(index) else { return };
    // SAFETY: registered with a `&'static Repeated`.
    let repeated = unsafe { &*repeated.cast::<Repeated>() };
    // SAFETY: as in `run`.
    let own = unsafe { &mut *vcpu.own.get() };
    let tally = &vcpu.tallies[MODE];
    // Nothing else was counted since: this is a further iteration.
    if repeated.alone && own.rep == (repeated.address, tally.instructions()) {
        return;
    }
    for &block in &repeated.blocks {
        own.cache.run(block, tally);
    }
    own.rep = (repeated.address, tally.instructions());
    if let Some(executions) = repeated.executions
        && session::is_open()
    {
        executions.fetch_add(1, Ordering::Relaxed);
    }
}
