//! Names for lines of code. A line is known in the model by a small dense
//! number, so that asking whether it is in the cache is one array access and
//! not a search through a set. Numbers are given page by page in the order of
//! first use and do not encode where the line lies.

use std::collections::HashMap;

use crate::icache::geometry::Geometry;
use crate::icache::geometry::PAGE;

/// A line of code, numbered by [`CodeMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineId(pub(crate) u32);

impl LineId {
    /// Returns the number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A stretch of code that runs from its first instruction to its last, within
/// one page: its lines and its number of instructions.
///
/// It is 64 bits wide ([`to_bits`](Self::to_bits)), so an emulator can hand
/// it to a callback in place of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub(crate) first: LineId,
    pub(crate) lines: u16,
    pub(crate) instructions: u16,
}

impl Block {
    /// Returns the instructions in the block.
    #[inline]
    pub fn instructions(self) -> u64 {
        self.instructions.into()
    }

    /// Returns the lines that the block touches.
    #[inline]
    pub fn lines(self) -> u16 {
        self.lines
    }

    /// Returns the block in one word.
    pub fn to_bits(self) -> u64 {
        u64::from(self.first.0) << 32 | u64::from(self.lines) << 16 | u64::from(self.instructions)
    }

    /// Returns the inverse of [`to_bits`](Self::to_bits).
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Block {
            first: LineId((bits >> 32) as u32),
            lines: (bits >> 16) as u16,
            instructions: bits as u16,
        }
    }
}

/// Gives lines of code their numbers. One map serves every cache of a run.
///
/// Addresses are those by which the cache distinguishes lines: virtual ones for
/// one process; for a whole machine, where several processes reuse virtual
/// addresses, physical ones.
#[derive(Debug)]
pub struct CodeMap {
    lines_a_page: u32,
    line_shift: u32,
    /// Page address to the number of its first line.
    pages: HashMap<u64, u32>,
    /// Pages seen of each colour. A number's low bits must name its line's
    /// set; where a way is larger than a page, that fixes the page's place
    /// (its colour) among the numbers.
    colours: Vec<u32>,
}

impl CodeMap {
    /// Makes an empty map for caches of this geometry.
    pub fn new(geometry: Geometry) -> Self {
        let lines_a_page = PAGE / geometry.line();
        CodeMap {
            lines_a_page,
            line_shift: geometry.line().trailing_zeros(),
            pages: HashMap::new(),
            colours: vec![0; (geometry.sets() / lines_a_page).max(1) as usize],
        }
    }

    /// Returns the blocks, one per page, that cover `bytes` bytes of code from
    /// `address`. The instructions are counted on the first of them.
    ///
    /// # Panics
    /// When about 2^32 lines (256 GiB of code at 64-byte lines) were seen.
    pub fn blocks(&mut self, address: u64, bytes: u64, instructions: u16) -> Vec<Block> {
        let last = address.saturating_add(bytes.max(1) - 1);
        let page = u64::from(PAGE);
        (address / page..=last / page)
            .map(|number| {
                let from = address.max(number * page);
                let to = last.min(number * page + (page - 1));
                let lines = (to >> self.line_shift) - (from >> self.line_shift) + 1;
                Block {
                    first: self.line(from),
                    lines: lines as u16, // at most 256 per page
                    instructions: if from == address { instructions } else { 0 },
                }
            })
            .collect()
    }

    /// Returns the line that holds the byte at `address`.
    ///
    /// # Panics
    /// In the same cases as [`blocks`](Self::blocks).
    pub fn line(&mut self, address: u64) -> LineId {
        let page = address / u64::from(PAGE);
        let (lines_a_page, colours) = (self.lines_a_page, &mut self.colours);
        let first = *self.pages.entry(page).or_insert_with(|| {
            let colour = page as usize % colours.len();
            let rank = colours[colour];
            colours[colour] += 1;
            rank.checked_mul(colours.len() as u32)
                .and_then(|n| n.checked_add(colour as u32))
                .and_then(|n| n.checked_mul(lines_a_page))
                .filter(|n| n.checked_add(lines_a_page).is_some())
                .expect("code has fewer than 2^32 lines")
        });
        let in_page = (address % u64::from(PAGE)) >> self.line_shift;
        LineId(first + in_page as u32)
    }
}
