//! The code of simulated CPUs, each a coroutine.

use crate::engine::Engine;
use crate::run::run;
use crate::stack::{ColouredStack, give_back, take_stack};
use corosensei::Coroutine;
use corosensei::stack::Stack;

/// Coroutines that may be abandoned before they end.
#[derive(Default)]
pub(crate) struct Coroutines(Vec<Coroutine<(), (), (), ColouredStack>>);

impl Coroutines {
    /// Runs them, one for each CPU of the engine, in its order of CPUs.
    pub(crate) fn run(&mut self, engine: &Engine) {
        engine.memory.stacks.borrow_mut().sort_unstable();
        run(engine, &mut self.0);
    }
}

/// Makes the next CPU of an engine run `code`, which holds nothing that must be
/// dropped: it may be abandoned before it ends.
///
/// # Safety
/// What `code` borrows outlives `coroutines`.
pub(crate) unsafe fn coroutine(
    coroutines: &mut Coroutines,
    engine: &Engine,
    cpu: usize,
    code: impl FnOnce(),
) {
    let code = move |yielder: &corosensei::Yielder<(), ()>, ()| {
        engine.cpus[cpu].yielder.set(yielder);
        code();
    };
    let stack = take_stack();
    engine
        .memory
        .stacks
        .borrow_mut()
        .push((stack.base().get(), cpu));
    // SAFETY: promised by the caller.
    let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, code) };
    coroutines.0.push(coroutine);
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        for mut coroutine in self.0.drain(..) {
            if !coroutine.done() {
                // SAFETY: what is left on the stack is the lock's and the
                // workload's frames, which own nothing that must be dropped.
                unsafe { coroutine.force_reset() };
            }
            give_back(coroutine.into_stack());
        }
    }
}
