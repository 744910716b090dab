//! The big lock that OpenBSD ships: a ticket lock, and a ticket and depth for
//! each CPU.

use super::Queue;
use crate::line::CacheLine;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use core::ops::Deref;

/// One CPU's ticket and recursion depth, 8 bytes: eight CPUs share a line.
#[repr(C)]
pub struct Packed<P: Platform> {
    ticket: P::U32,
    depth: P::U32,
}

/// One CPU's ticket and recursion depth, on a line of their own.
pub type Padded<P> = CacheLine<Packed<P>>;

impl<P: Platform> Default for Packed<P> {
    fn default() -> Self {
        Self {
            ticket: P::U32::new(0),
            depth: P::U32::new(0),
        }
    }
}

/// The memory layout of the CPUs' states: [`Packed`] or [`Padded`].
///
/// # Safety
/// [`CpuState::state`] always returns the same reference, into `self`.
pub unsafe trait CpuState<P: Platform>: Default + Send + Sync + 'static {
    /// Name of the lock with this layout.
    const NAME: &'static str;
    /// Summary of the lock with this layout.
    const SUMMARY: &'static str;
    /// A state without a ticket, at depth 0.
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self;
    /// Returns the state itself.
    fn state(&self) -> &Packed<P>;
}

// SAFETY: itself.
unsafe impl<P: Platform> CpuState<P> for Packed<P> {
    const NAME: &'static str = "mplock-ticket";
    const SUMMARY: &'static str = "the big lock; a ticket lock, the states of 8 CPUs to a line";
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        ticket: P::U32::ZERO,
        depth: P::U32::ZERO,
    };

    #[inline(always)]
    fn state(&self) -> &Packed<P> {
        self
    }
}

// SAFETY: its only field.
unsafe impl<P: Platform> CpuState<P> for Padded<P> {
    const NAME: &'static str = "mplock-ticket-padded";
    const SUMMARY: &'static str = "the big lock; a ticket lock, each CPU's state on a line";
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = CacheLine(Packed::FREE);

    #[inline(always)]
    fn state(&self) -> &Packed<P> {
        self.deref()
    }
}

/// The two counters, on one line.
#[repr(C, align(64))]
#[derive(Default)]
struct Counters<U> {
    /// The ticket that holds the lock, if it has been drawn.
    serving: U,
    /// The ticket of the next arrival.
    next: U,
}

/// A ticket lock with per-CPU states of layout `S`.
///
/// **Paper:** Reed and Kanodia 1979, as [`crate::Ticket`]; the layout is that of
/// the thread of 21 December 2025 on OpenBSD's tech list, where it is the
/// subject: "now serving" shares a line with "next ticket", so that each
/// arrival takes the line away from all who wait and from the holder, who
/// writes it to release; and eight CPUs write their states on one line.
///
/// **Size:** one line, and 8 bytes per CPU ([`Packed`]) or 64 ([`Padded`]). Per
/// waiter: nothing. **Fairness:** first come, first served.
#[repr(C, align(64))]
pub struct TicketQueue<P: Platform, S, const MAXCPUS: usize> {
    cpus: [S; MAXCPUS],
    counters: Counters<P::U32>,
}

impl<P: Platform, S: CpuState<P>, const MAXCPUS: usize> TicketQueue<P, S, MAXCPUS> {
    #[cold]
    #[inline(never)]
    fn wait(&self, ticket: u32) {
        // B2: pairs with B3.
        self.counters
            .serving
            .spin_until(Ordering::Acquire, |serving| serving == ticket);
    }
}

impl<P: Platform, S: CpuState<P>, const MAXCPUS: usize> Default for TicketQueue<P, S, MAXCPUS> {
    fn default() -> Self {
        Self {
            cpus: core::array::from_fn(|_| S::default()),
            counters: Counters {
                serving: P::U32::new(0),
                next: P::U32::new(0),
            },
        }
    }
}

// SAFETY: a ticket is given to one CPU (fetch_add, or the compare-and-swap)
// and served after the one before it has left.
unsafe impl<P: Platform, S: CpuState<P>, const MAXCPUS: usize> Queue<P>
    for TicketQueue<P, S, MAXCPUS>
{
    const NAME: &'static str = S::NAME;
    const SUMMARY: &'static str = S::SUMMARY;
    const PROMISES: &'static str = "wraps";
    const PAPER: &'static str = "Reed and Kanodia 1979; OpenBSD tech list, December 2025";
    const TRY: bool = true;
    const MAXCPUS: usize = MAXCPUS;
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        cpus: [const { S::FREE }; MAXCPUS],
        counters: Counters {
            serving: P::U32::ZERO,
            next: P::U32::ZERO,
        },
    };
    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        Self {
            counters: Counters {
                serving: P::U32::new(u32::MAX),
                next: P::U32::new(u32::MAX),
            },
            ..Self::default()
        }
    }

    unsafe fn init(&self) {
        for cpu in &self.cpus {
            cpu.state().ticket.store(0, Ordering::Relaxed);
            cpu.state().depth.store(0, Ordering::Relaxed);
        }
        self.counters.serving.store(0, Ordering::Relaxed);
        self.counters.next.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn depth(&self, cpu: usize) -> &P::U32 {
        &self.cpus[cpu].state().depth
    }

    #[inline(always)]
    unsafe fn enter(&self, cpu: usize) {
        let ticket = self.counters.next.fetch_add(1, Ordering::Relaxed);
        self.cpus[cpu]
            .state()
            .ticket
            .store(ticket, Ordering::Relaxed);
        // B1: pairs with B3.
        if self.counters.serving.load(Ordering::Acquire) != ticket {
            self.wait(ticket);
        }
    }

    #[inline(always)]
    unsafe fn try_enter(&self, cpu: usize) -> bool {
        let ticket = self.counters.serving.load(Ordering::Relaxed);
        if self
            .counters
            .next
            .compare_exchange(
                ticket,
                ticket.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_err()
        {
            return false;
        }
        self.cpus[cpu]
            .state()
            .ticket
            .store(ticket, Ordering::Relaxed);
        // B1': as B1. Ours already, unless the counters went all the way
        // round between the two reads above.
        if self.counters.serving.load(Ordering::Acquire) != ticket {
            self.wait(ticket);
        }
        true
    }

    #[inline(always)]
    fn served(&self, cpu: usize) -> bool {
        self.cpus[cpu].state().ticket.load(Ordering::Relaxed)
            == self.counters.serving.load(Ordering::Relaxed)
    }

    #[inline(always)]
    unsafe fn leave(&self, _: usize) {
        // Only the holder writes `serving`.
        let serving = self.counters.serving.load(Ordering::Relaxed);
        // B3: pairs with B1, B1' and B2.
        self.counters
            .serving
            .store(serving.wrapping_add(1), Ordering::Release);
    }
}
