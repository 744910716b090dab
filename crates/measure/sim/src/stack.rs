//! The stacks of simulated CPUs, which are used again and again.

use crate::arena::LINE;
use corosensei::stack::{DefaultStack, Stack, StackPointer};
use std::cell::RefCell;

/// Enough for any lock of the catalogue; a guard page ends the process before
/// an overflow harms another stack.
const STACK_BYTES: usize = 32 * 1024;

/// Stacks begin on pages, so that the frames of all simulated CPUs would
/// compete for the same sets of the host's first-level cache, which keeps eight
/// or twelve of them. Each begins this much further down than the one before
/// it, within a page.
const COLOUR_BYTES: usize = 9 * LINE;

const PAGE_BYTES: usize = 4096;

/// A stack that begins somewhat below its highest address.
pub(crate) struct ColouredStack {
    stack: DefaultStack,
    base: StackPointer,
}

impl ColouredStack {
    fn new(number: usize) -> std::io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES + PAGE_BYTES)?;
        let below = number * COLOUR_BYTES % PAGE_BYTES;
        let base = StackPointer::new(stack.base().get() - below).unwrap_or(stack.base());
        Ok(Self { stack, base })
    }
}

// SAFETY: what is above the base of a stack is not used, and the rest has the
// guard page of the whole and the bytes that it must have. The base is aligned,
// since whole cache lines are left out.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

thread_local! {
    /// The stacks of simulations that have ended, for reuse, and how many were
    /// made.
    static STACKS: RefCell<(Vec<ColouredStack>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

/// Returns a stack that nobody uses.
pub(crate) fn take_stack() -> ColouredStack {
    STACKS.with_borrow_mut(|(stacks, made)| {
        stacks.pop().unwrap_or_else(|| {
            *made += 1;
            ColouredStack::new(*made).expect("address space for a stack of 36 KiB")
        })
    })
}

/// Keeps a stack for another CPU.
pub(crate) fn give_back(stack: ColouredStack) {
    STACKS.with_borrow_mut(|(stacks, _)| stacks.push(stack));
}
