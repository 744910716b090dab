//! The code between two taken branches, and how much longer it takes to fetch than to dispatch.
//! The branch and each further window of the micro-op cache take a while; instructions are
//! dispatched in the processor's width meanwhile.

use crate::processor::Processor;

/// One cycle, in the unit in which fetching is counted up.
const CYCLE: f64 = 65536.0;
/// The same in sixteenths of a cycle.
const SIXTEENTH: u64 = 65536 / 16;

/// Follows a stretch from the target of one taken branch to the next.
#[derive(Debug)]
pub(crate) struct Stretch {
    start: u64,
    instructions: u64,
    /// Cycles of a taken branch, of a further window and of dispatching an instruction.
    taken: u64,
    window: u64,
    instruction: u64,
    /// Bits of an address within a window.
    shift: u32,
    /// What is too little for a sixteenth yet.
    rest: u64,
}

impl Stretch {
    pub(crate) fn new(processor: &Processor) -> Self {
        let in_units = |cycles: f64| (cycles * CYCLE) as u64;
        Stretch {
            start: 0,
            instructions: 0,
            taken: in_units(processor.taken.value),
            window: in_units(processor.op_window_cycles.value),
            instruction: in_units(1.0 / processor.width.value),
            shift: (processor.op_window.value as u32).ilog2(),
            rest: 0,
        }
    }

    /// Begins a stretch at this address.
    #[inline(always)]
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
        self.instructions = 0;
    }

    /// Executes so many instructions more of it.
    #[inline(always)]
    pub(crate) fn run(&mut self, instructions: u64) {
        self.instructions += instructions;
    }

    /// Ends the stretch with a taken branch before `end`; returns the sixteenths of a cycle by
    /// which it was fetched later than dispatched.
    #[inline(always)]
    pub(crate) fn end(&mut self, end: u64) -> u32 {
        let further = ((end - 1) >> self.shift).saturating_sub(self.start >> self.shift);
        let fetched = self.taken + further * self.window;
        let late = fetched.saturating_sub(self.instructions * self.instruction) + self.rest;
        self.rest = late % SIXTEENTH;
        (late / SIXTEENTH) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Stretch {
        Stretch::new(&Processor::named(name).unwrap())
    }

    #[test]
    fn dispatch_hides_what_is_fetched_meanwhile() {
        let mut stretch = of("emerald-rapids");
        // One window, then three, of 1, 6, 12 and 60 instructions.
        for (end, late) in [(64, [13, 0, 0, 0]), (192, [45, 32, 16, 0])] {
            let ours = [1, 6, 12, 60].map(|instructions| {
                stretch.begin(0);
                stretch.run(instructions);
                stretch.end(end)
            });
            assert_eq!(ours, late, "{end}");
        }
    }

    #[test]
    fn no_part_of_a_cycle_is_lost() {
        let mut stretch = of("zen-3");
        let mut late = 0;
        for _ in 0..600 {
            stretch.begin(0);
            stretch.run(1);
            late += stretch.end(4);
        }
        assert_eq!(late, 600 * 16 * 5 / 6);
    }
}
