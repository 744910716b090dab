// SPDX-License-Identifier: GPL-2.0-or-later
//! Blocks for a modelled front end: each distinct block once, however often QEMU translates
//! it, and what each of them lost.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::path::Path;

use locklab_frontend::{Event, Exit, Instruction, Kind, Site, Sites, branch};
use locklab_icache::{Block, CodeMap};

use crate::output;

/// Names what identifies a block: a hash of its instructions, with their bytes and
/// places.
type Key = u64;

/// All blocks that were translated.
pub(crate) struct Known {
    sites: Sites,
    blocks: HashMap<Key, &'static Site>,
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
            described: Vec::new(),
            bytes: HashMap::new(),
            rewritten: 0,
        }
    }

    pub(crate) fn code(&mut self) -> &mut CodeMap {
        self.sites.code()
    }

    /// Returns how many times a block was met whose place had held another block before,
    /// cut at the same two ends.
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
        let key = hash(&|hasher| {
            for instruction in instructions {
                (instruction.address, instruction.place).hash(hasher);
            }
            bytes.hash(hasher);
        });
        if let Some(site) = self.blocks.get(&key) {
            return site;
        }
        let (first, last) = (instructions[0], instructions[instructions.len() - 1]);
        let end = hash(&|hasher| (first.place, last.place, last.bytes).hash(hasher));
        if self
            .bytes
            .insert(end, bytes)
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
        self.described.push(Described {
            address: first.address,
            bytes: last.address + u64::from(last.bytes) - first.address,
            instructions: instructions.len(),
            exit,
            branch: last.address,
        });
        let site: &'static Site = Box::leak(Box::new(self.sites.site(instructions, blocks, exit)));
        self.blocks.insert(key, site);
        site
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
