// SPDX-License-Identifier: GPL-2.0-or-later
//! Blocks for a modelled front end: each distinct block once, however often QEMU translates
//! it, and what each of them lost.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::mem::MaybeUninit;
use std::path::Path;

use locklab_frontend::icache::{Block, CodeMap};
use locklab_frontend::{Event, Exit, Instruction, Kind, Site, Sites, branch};

use crate::output;

/// Names what identifies a block: a hash of where its instructions lie, and of how it ends.
/// Their bytes are not in it, so that code which writes itself over and over does not fill the
/// memory with blocks that are alike to the front end.
type Key = u64;

/// Places for blocks that are made at a time.
const PLACES: usize = 4096;

/// All blocks that were translated.
pub(crate) struct Known {
    sites: Sites,
    blocks: HashMap<Key, &'static Site>,
    /// Places for the next blocks, one after the other: loading a block is what a run waits for,
    /// and blocks that are translated in turn are mostly executed in turn.
    free: &'static mut [MaybeUninit<Site>],
    /// Says where each block begins, by its number, with its bytes, instructions, kind and
    /// target.
    described: Vec<Described>,
    /// A block's bytes, hashed, by its place.
    bytes: HashMap<u64, u64>,
    rewritten: u64,
}

struct Described {
    address: u64,
    bytes: u64,
    instructions: usize,
    exit: Exit,
    branch: u64,
}

impl Known {
    pub(crate) fn new(sites: Sites) -> Self {
        Known {
            sites,
            blocks: HashMap::new(),
            free: &mut [],
            described: Vec::new(),
            bytes: HashMap::new(),
            rewritten: 0,
        }
    }

    pub(crate) fn code(&mut self) -> &mut CodeMap {
        self.sites.code()
    }

    /// Returns how many times a block was translated whose place had held another block
    /// before, cut at the same two ends.
    pub(crate) fn rewritten(&self) -> u64 {
        self.rewritten
    }

    /// Returns the block of these instructions, with `code`, their bytes, in the same order.
    pub(crate) fn site(
        &mut self,
        instructions: &[Instruction],
        code: &[Vec<u8>],
        blocks: Vec<Block>,
    ) -> &'static Site {
        let hash = |value: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        let bytes = hash(&|hasher| code.hash(hasher));
        let (first, last) = (instructions[0], instructions[instructions.len() - 1]);
        let ends = hash(&|hasher| (first.place, last.place, last.bytes).hash(hasher));
        if self
            .bytes
            .insert(ends, bytes)
            .is_some_and(|before| before != bytes)
        {
            self.rewritten += 1;
        }
        let mut exit = code
            .last()
            .map_or_else(Exit::default, |bytes| branch::exit(last.address, bytes));
        if branch::is_barrier(code.iter().map(Vec::as_slice)) {
            exit.kind = Kind::Barrier;
        }
        let key = hash(&|hasher| {
            for instruction in instructions {
                (instruction.address, instruction.place, instruction.bytes).hash(hasher);
            }
            (exit.kind, exit.target).hash(hasher);
        });
        if let Some(site) = self.blocks.get(&key) {
            return site;
        }
        self.described.push(Described {
            address: first.address,
            bytes: last.address + u64::from(last.bytes) - first.address,
            instructions: instructions.len(),
            exit,
            branch: last.address,
        });
        let site = self.sites.site(instructions, blocks, exit);
        let site = self.keep(site);
        self.blocks.insert(key, site);
        site
    }

    /// Keeps a block for good.
    fn keep(&mut self, site: Site) -> &'static Site {
        if self.free.is_empty() {
            self.free = Box::leak(Box::new_uninit_slice(PLACES));
        }
        let (place, rest) = std::mem::take(&mut self.free)
            .split_first_mut()
            .expect("there are places");
        self.free = rest;
        place.write(site)
    }

    /// Writes the blocks that lost something, as CSV in the order of their first translation.
    /// `events` are by number.
    ///
    /// # Errors
    /// A message for the user when the file cannot be written.
    pub(crate) fn write(&self, path: &Path, events: &[[u64; Event::COUNT]]) -> Result<(), String> {
        let mut csv = String::from("address,bytes,instructions,kind,branch,target");
        for (_, name) in Event::ALL {
            let _ = write!(csv, ",{name}");
        }
        csv.push('\n');
        for (site, events) in self.described.iter().zip(events) {
            if events.iter().all(|&n| n == 0) {
                continue;
            }
            let target = site
                .exit
                .target
                .map_or(String::new(), |target| format!("{target:#x}"));
            let _ = write!(
                csv,
                "{:#x},{},{},{:?},{:#x},{target}",
                site.address, site.bytes, site.instructions, site.exit.kind, site.branch
            );
            for n in events {
                let _ = write!(csv, ",{n}");
            }
            csv.push('\n');
        }
        output::replace(path, &csv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_frontend::Processor;
    use locklab_frontend::icache::Geometry;

    #[test]
    fn code_that_is_written_over_is_counted_and_takes_no_memory_if_it_is_alike() {
        let processor = Processor::named("zen-3").unwrap();
        let sites = Sites::new(&processor, Geometry::default()).unwrap();
        let mut known = Known::new(sites);
        let placed = [(0x1000, 5), (0x1005, 1)].map(|(address, bytes)| Instruction {
            address,
            place: address,
            bytes,
        });
        let mut site = |constant: u8, end: u8| {
            let code = [vec![0xb8, constant, 0, 0, 0], vec![end]];
            let blocks = known.code().blocks(0x1000, 6, 2);
            (known.site(&placed, &code, blocks).number, known.rewritten())
        };
        // mov $1, %eax; ret, and then with another constant: the same to the front end.
        assert_eq!(site(1, 0xc3), (0, 0));
        assert_eq!(site(2, 0xc3), (0, 1));
        assert_eq!(site(2, 0xc3), (0, 1));
        assert_eq!(site(1, 0xc3), (0, 2), "back again");
        // With a nop at its end it is another block.
        assert_eq!(site(1, 0x90), (1, 3));
    }

    #[test]
    fn a_block_that_is_translated_again_after_each_switch_is_kept_once() {
        let processor = Processor::named("zen-3").unwrap();
        let sites = Sites::new(&processor, Geometry::default()).unwrap();
        let mut known = Known::new(sites);
        // mov %rax, %cr3 at two addresses, of two address spaces that share the page.
        let code = [vec![0x0f, 0x22, 0xd8]];
        for switch in 0..100_000_u64 {
            let placed = [Instruction {
                address: 0x40_0000 + (switch % 2) * 0x1000,
                place: 0x7f00_0000,
                bytes: 3,
            }];
            let blocks = known.code().blocks(0x7f00_0000, 3, 1);
            let site = known.site(&placed, &code, blocks);
            assert_eq!(u64::from(site.number), switch % 2);
        }
        assert_eq!((known.blocks.len(), known.described.len()), (2, 2));
        assert_eq!((known.bytes.len(), known.rewritten()), (1, 0));
    }
}
