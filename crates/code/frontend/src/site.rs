//! Blocks of code as the model executes them. Everything that does not depend on what ran
//! before is worked out once, when a block is met first.

use std::collections::HashMap;
use std::fmt;

use crate::icache::{Block, CodeMap, Geometry, GeometryError};

use crate::branch::{Exit, Kind};
use crate::ops::Window;
use crate::processor::Processor;

/// An instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Holds the address of the instruction.
    pub address: u64,
    /// The address by which caches distinguish its line: that of physical memory, or the same.
    pub place: u64,
    /// Its length in bytes.
    pub bytes: u8,
}

/// A block: instructions from the first to the last, one after the other. It fills one line of
/// the data cache of the CPU that runs the model, because loading it is what a run waits for.
#[derive(Debug)]
#[repr(align(64))]
pub struct Site {
    pub(crate) start: u64,
    /// Says where the code goes on that follows it in memory.
    pub(crate) next: u64,
    /// Its lines on the first page.
    pub(crate) block: Block,
    /// Its first window of the micro-op cache.
    pub(crate) window: Window,
    /// Holds what it has beyond these; most blocks have nothing.
    pub(crate) more: Option<Box<More>>,
    /// The number of the block, from 0 in the order of the first call.
    pub number: u32,
    /// The number of the branch that ends it.
    pub(crate) branch: u32,
    pub(crate) kind: Kind,
    /// Bytes of its last instruction.
    last: u8,
}

/// Describes what a block has beyond its first lines and its first window.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) blocks: Box<[Block]>,
    pub(crate) windows: Box<[Window]>,
}

const _: () = assert!(size_of::<Site>() == 64);

impl Site {
    /// Returns its instructions.
    #[inline(always)]
    pub fn instructions(&self) -> u64 {
        self.block.instructions()
    }

    /// Returns the address of the branch that ends it.
    #[inline(always)]
    pub(crate) fn branch_address(&self) -> u64 {
        self.next - u64::from(self.last)
    }
}

/// Gives blocks and branches their numbers. One serves every vCPU of a run.
#[derive(Debug)]
pub struct Sites {
    code: CodeMap,
    /// Bytes of a line, and of a window of the micro-op cache.
    line: u32,
    window: u32,
    branches: HashMap<u64, u32>,
    sites: u32,
}

impl Sites {
    /// Makes an empty map for front ends of this processor with such an L1i.
    ///
    /// # Errors
    /// [`CacheMismatch`] if `l1i` does not fit the processor's other caches.
    pub fn new(processor: &Processor, l1i: Geometry) -> Result<Self, CacheMismatch> {
        let l2 = l2_geometry(processor, l1i)?;
        // The number of a line names its set in the larger cache, and so in the smaller.
        let largest = if l2.sets() > l1i.sets() { l2 } else { l1i };
        Ok(Sites {
            code: CodeMap::new(largest),
            line: l1i.line(),
            window: processor.op_window.value as u32,
            branches: HashMap::new(),
            sites: 0,
        })
    }

    /// Returns the map of lines.
    pub fn code(&mut self) -> &mut CodeMap {
        &mut self.code
    }

    /// Returns the block of these instructions, which `blocks` cover line by line, and which
    /// ends with `exit`.
    ///
    /// # Panics
    /// When there are no instructions or no `blocks`, or after 2^32 blocks.
    pub fn site(&mut self, instructions: &[Instruction], blocks: Vec<Block>, exit: Exit) -> Site {
        let (first, last) = (instructions[0], instructions[instructions.len() - 1]);
        let number = self.sites;
        self.sites = self.sites.checked_add(1).expect("fewer than 2^32 blocks");
        let branches = self.branches.len() as u32;
        let branch = match exit.kind {
            Kind::None => 0,
            _ => *self.branches.entry(last.address).or_insert(branches),
        };
        let mut windows = self.windows(instructions);
        let window = windows.remove(0);
        let rest = &blocks[1..];
        Site {
            start: first.address,
            next: last.address + u64::from(last.bytes),
            block: blocks[0],
            window,
            more: (!rest.is_empty() || !windows.is_empty()).then(|| {
                Box::new(More {
                    blocks: rest.into(),
                    windows: windows.into(),
                })
            }),
            number,
            branch,
            kind: exit.kind,
            last: last.bytes,
        }
    }

    fn windows(&mut self, instructions: &[Instruction]) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        let a_line = self.line / self.window;
        for instruction in instructions {
            let line = self.code.line(instruction.place).number();
            let window = instruction.place % u64::from(self.line) / u64::from(self.window);
            let number = line * a_line + window as u32;
            let start = 1 << (instruction.place % u64::from(self.window));
            match windows.last_mut() {
                Some(last) if last.number == number => last.starts |= start,
                _ => windows.push(Window {
                    number,
                    starts: start,
                }),
            }
        }
        windows
    }
}

/// Says why an L1i does not fit the other caches of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheMismatch {
    /// Its lines are shorter than a window of the micro-op cache.
    Line {
        /// Bytes of a line.
        line: u32,
        /// Bytes of a window.
        window: u32,
    },
    /// The L2 cannot have such lines.
    L2 {
        /// The name of the processor.
        processor: String,
        /// The rule of caches that they break.
        why: GeometryError,
    },
}

impl fmt::Display for CacheMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, window } => write!(
                f,
                "lines of {line} bytes are shorter than the micro-op cache's window of {window}"
            ),
            Self::L2 { processor, why } => write!(f, "the L2 of {processor}: {why}"),
        }
    }
}

impl std::error::Error for CacheMismatch {}

/// Returns the L2 cache of a processor, with the lines of its L1i.
pub(crate) fn l2_geometry(processor: &Processor, l1i: Geometry) -> Result<Geometry, CacheMismatch> {
    let window = processor.op_window.value as u32;
    let line = l1i.line();
    if line < window {
        return Err(CacheMismatch::Line { line, window });
    }
    Geometry::new(
        processor.l2_size.value as u32,
        processor.l2_ways.value as u32,
        line,
    )
    .map_err(|why| CacheMismatch::L2 {
        processor: processor.name.clone(),
        why,
    })
}
