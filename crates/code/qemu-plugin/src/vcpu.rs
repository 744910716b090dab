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

use locklab_frontend::icache::{Block, Cache, Counts, Tally};
use locklab_frontend::{Event, EventTally, Events, Frontend, Site};

use crate::api::{Id, OnExec};
use crate::sampling::{Intervals, Phase, Sampler, Sums};
use crate::seen::{ByMode, Mode, Seen};
use crate::session;

/// A vCPU. Never freed, so that callbacks may hold on to it.
struct Vcpu {
    tallies: [Tally; 2],
    events: [EventTally; 2],
    /// The counts of a sampled run after its exact part.
    sampled: [Sampled; 2],
    intervals: Intervals,
    own: UnsafeCell<Own>,
}

/// Holds what was counted in one mode in the intervals of a sampled run.
#[derive(Default)]
struct Sampled {
    tally: Tally,
    events: EventTally,
    /// Instructions between the intervals.
    skipped: AtomicU64,
}

impl Sampled {
    /// Counts instructions between the intervals. Only the vCPU's own thread may.
    #[inline(always)]
    fn skip(&self, instructions: u64) {
        let skipped = self.skipped.load(Ordering::Relaxed) + instructions;
        self.skipped.store(skipped, Ordering::Relaxed);
    }

    fn read(&self) -> Seen {
        Seen {
            counts: self.tally.read(),
            events: self.events.read(),
        }
    }

    /// Returns the sum of the intervals for all instructions, or `None` if nothing was skipped.
    fn scaled(&self) -> Option<Seen> {
        let skipped = self.skipped.load(Ordering::Relaxed);
        let seen = self.read();
        let counted = seen.counts.instructions;
        if counted == 0 {
            return (skipped > 0).then(|| Seen {
                counts: Counts {
                    instructions: skipped,
                    ..Counts::default()
                },
                events: Events::default(),
            });
        }
        let factor = 1.0 + skipped as f64 / counted as f64;
        let scale = |n: u64| (n as f64 * factor).round() as u64;
        let mut all = Seen {
            counts: Counts {
                instructions: counted + skipped,
                fetches: scale(seen.counts.fetches),
                misses: scale(seen.counts.misses),
            },
            events: Events::default(),
        };
        for (event, _) in Event::ALL {
            all.events[event] = scale(seen.events[event]);
        }
        all.events.by_hash = seen.events.by_hash.map(scale);
        Some(all)
    }
}

/// Holds what only the vCPU's own thread touches.
struct Own {
    cache: Cache,
    /// Takes the place of `cache` when a processor is modelled.
    frontend: Option<Frontend<'static>>,
    /// Holds the address of the REP instruction executed last, and the instructions
    /// counted in its mode by then.
    rep: (u64, u64),
    /// Says which blocks are simulated, when not all are.
    sampler: Sampler,
    /// The counts made while the state is warmed up, which nobody reads.
    unread: (Tally, EventTally),
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
        let own = unsafe { &mut *vcpu.own.get() };
        own.cache.clear();
        if let Some(frontend) = &mut own.frontend {
            frontend.restart();
        }
    } else if let Some(slot) = VCPUS.get(index as usize) {
        let vcpu = Box::new(Vcpu {
            tallies: Default::default(),
            events: Default::default(),
            own: UnsafeCell::new(Own {
                cache: Cache::new(session.geometry(), session.prefetch()),
                frontend: session.frontend(),
                rep: (0, u64::MAX),
                sampler: Sampler::new(session.sample().unwrap_or_default(), index),
                unread: Default::default(),
            }),
            sampled: Default::default(),
            intervals: Intervals::default(),
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
        .map(|vcpu| {
            [0, 1].map(|mode| {
                let exact = Seen {
                    counts: vcpu.tallies[mode].read(),
                    events: vcpu.events[mode].read(),
                };
                match vcpu.sampled[mode].scaled() {
                    Some(sampled) => exact + sampled,
                    None => exact,
                }
            })
        })
        .collect()
}

/// Says how much of a sampled run was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Instructions that were counted one by one.
    pub(crate) simulated: u64,
    /// Instructions that the intervals stand for, with those in them.
    pub(crate) sampled: u64,
    pub(crate) sums: Sums,
}

/// Returns how much of the run so far was counted.
pub(crate) fn share() -> Share {
    let mut share = Share::default();
    for vcpu in (0..LIMIT as c_uint).map_while(get) {
        share.sums = share.sums.plus(vcpu.intervals.read());
        for mode in [0, 1] {
            let counted = vcpu.sampled[mode].tally.instructions();
            share.simulated += vcpu.tallies[mode].instructions() + counted;
            share.sampled += counted + vcpu.sampled[mode].skipped.load(Ordering::Relaxed);
        }
    }
    share
}

/// Adds up the events of each block over all vCPUs, by the block's number. For the end of a run
/// only.
///
/// # Safety
/// No vCPU executes a block during the call.
pub(crate) unsafe fn read_sites() -> Vec<[u64; Event::COUNT]> {
    let mut sum: Vec<[u64; Event::COUNT]> = Vec::new();
    for vcpu in (0..LIMIT as c_uint).map_while(get) {
        // SAFETY: the caller's promise.
        let own = unsafe { &*vcpu.own.get() };
        let sites = own.frontend.as_ref().map_or(&[][..], Frontend::sites);
        if sites.len() > sum.len() {
            sum.resize(sites.len(), [0; Event::COUNT]);
        }
        for (sum, site) in sum.iter_mut().zip(sites) {
            for (sum, &n) in sum.iter_mut().zip(site) {
                *sum += u64::from(n);
            }
        }
    }
    sum
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

/// Instructions that fit beside the address of a site.
const FEW: u64 = align_of::<Site>() as u64 - 1;

/// Returns a site as userdata: its address, and in the bits that its alignment leaves free its
/// instructions, or [`FEW`] if there are as many or more. A block that is skipped is not looked
/// at then, which it would have to be fetched for.
pub(crate) fn site_bits(site: &'static Site) -> u64 {
    ptr::from_ref(site) as u64 | site.instructions().min(FEW)
}

/// Returns the site of such userdata.
///
/// # Safety
/// The bits are from [`site_bits`].
#[inline(always)]
unsafe fn site_of(bits: *mut c_void) -> &'static Site {
    // SAFETY: the caller's promise; only the low bits were changed, and sites are never freed.
    unsafe {
        &*bits
            .map_addr(|address| address & !(FEW as usize))
            .cast::<Site>()
    }
}

/// Returns the callback for a block of this mode when a front end is modelled; its userdata is
/// that of [`site_bits`].
pub(crate) fn on_site(mode: Mode, sampled: bool) -> OnExec {
    match (mode, sampled) {
        (Mode::User, false) => run_site::<0>,
        (Mode::Kernel, false) => run_site::<1>,
        (Mode::User, true) => run_sampled::<0>,
        (Mode::Kernel, true) => run_sampled::<1>,
    }
}

extern "C" fn run_sampled<const MODE: usize>(index: c_uint, bits: *mut c_void) {
    let Some(vcpu) = get(index) else { return };
    // SAFETY: as in `run`.
    let own = unsafe { &mut *vcpu.own.get() };
    let few = bits.addr() as u64 & FEW;
    if own.sampler.phase == Phase::Skipped && few < FEW && few <= own.sampler.left {
        own.sampler.left -= few;
        vcpu.sampled[MODE].skip(few);
        return;
    }
    // SAFETY: registered with bits from `site_bits`.
    sample::<MODE>(vcpu, own, unsafe { site_of(bits) });
}

/// Executes a block as the phase of a sampled run demands.
#[inline(always)]
fn sample<const MODE: usize>(vcpu: &'static Vcpu, own: &mut Own, site: &'static Site) {
    let instructions = site.instructions();
    let sampled = &vcpu.sampled[MODE];
    if own.sampler.phase == Phase::Skipped {
        sampled.skip(instructions);
    } else if let Some(frontend) = &mut own.frontend {
        match own.sampler.phase {
            Phase::Exact => frontend.run(site, &vcpu.tallies[MODE], &vcpu.events[MODE]),
            Phase::Counted => frontend.run(site, &sampled.tally, &sampled.events),
            Phase::WarmUp | Phase::Skipped => {
                sampled.skip(instructions);
                frontend.run(site, &own.unread.0, &own.unread.1);
            }
        }
    }
    match own.sampler.left.checked_sub(instructions) {
        Some(left) => own.sampler.left = left,
        None => next_phase(vcpu, own),
    }
}

#[cold]
fn next_phase(vcpu: &Vcpu, own: &mut Own) {
    if own.sampler.phase == Phase::Counted
        && let Some(processor) = session::get().and_then(|session| session.processor())
    {
        let seen = vcpu.sampled[0].read() + vcpu.sampled[1].read();
        vcpu.intervals.add(processor, seen);
    }
    own.sampler.advance();
    if let Some(frontend) = &mut own.frontend {
        if own.sampler.phase == Phase::WarmUp {
            frontend.resume();
        }
        frontend.weigh(own.sampler.weight());
    }
}

extern "C" fn run_site<const MODE: usize>(index: c_uint, bits: *mut c_void) {
    let Some(vcpu) = get(index) else { return };
    // SAFETY: registered with bits from `site_bits`.
    let site = unsafe { site_of(bits) };
    // SAFETY: as in `run`.
    let own = unsafe { &mut *vcpu.own.get() };
    if let Some(frontend) = &mut own.frontend {
        frontend.run(site, &vcpu.tallies[MODE], &vcpu.events[MODE]);
    }
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
    /// Holds the same for a front end.
    pub(crate) site: Option<&'static Site>,
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
    let repeated: &'static Repeated = unsafe { &*repeated.cast::<Repeated>() };
    // SAFETY: as in `run`.
    let own = unsafe { &mut *vcpu.own.get() };
    let tally = &vcpu.tallies[MODE];
    let instructions = || {
        let sampled = &vcpu.sampled[MODE];
        let skipped = sampled.skipped.load(Ordering::Relaxed);
        tally.instructions() + sampled.tally.instructions() + skipped
    };
    // Nothing else was counted since: this is a further iteration.
    if repeated.alone && own.rep == (repeated.address, instructions()) {
        return;
    }
    match repeated.site {
        Some(site) if session::get().is_some_and(|session| session.sample().is_some()) => {
            sample::<MODE>(vcpu, own, site);
        }
        Some(site) => {
            if let Some(frontend) = &mut own.frontend {
                frontend.run(site, tally, &vcpu.events[MODE]);
            }
        }
        None => {
            for &block in &repeated.blocks {
                own.cache.run(block, tally);
            }
        }
    }
    own.rep = (repeated.address, instructions());
    if let Some(executions) = repeated.executions
        && session::is_open()
    {
        executions.fetch_add(1, Ordering::Relaxed);
    }
}
