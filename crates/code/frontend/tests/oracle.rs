//! The cache against a naive one: every set a list in order of last use.

use std::collections::VecDeque;

use locklab_frontend::icache::{Cache, CodeMap, Counts, Geometry, Prefetch, Tally};
use proptest::prelude::*;

/// LRU as one would explain it; lines are addresses divided by the line size.
struct Naive {
    geometry: Geometry,
    prefetch: bool,
    current: Option<u64>,
    /// Most recently used first.
    sets: Vec<VecDeque<u64>>,
    counts: Counts,
}

impl Naive {
    fn new(geometry: Geometry, prefetch: bool) -> Self {
        let sets = vec![VecDeque::new(); geometry.sets() as usize];
        Naive {
            geometry,
            prefetch,
            current: None,
            sets,
            counts: Counts::default(),
        }
    }

    fn run(&mut self, address: u64, bytes: u64, instructions: u16) {
        self.counts.instructions += u64::from(instructions);
        let line_size = u64::from(self.geometry.line());
        for line in address / line_size..=(address + bytes - 1) / line_size {
            if self.current != Some(line) {
                self.current = Some(line);
                self.counts.fetches += 1;
                let set = (line % u64::from(self.geometry.sets())) as usize;
                if !self.sets[set].contains(&line) {
                    self.counts.misses += 1;
                    let next = line + 1;
                    if self.prefetch && next * line_size / 4096 == line * line_size / 4096 {
                        self.touch(next);
                    }
                }
                self.touch(line);
            }
        }
    }

    /// Makes the line its set's most recent one.
    fn touch(&mut self, line: u64) {
        let set = &mut self.sets[(line % u64::from(self.geometry.sets())) as usize];
        set.retain(|&held| held != line);
        set.push_front(line);
        set.truncate(self.geometry.ways() as usize);
    }
}

fn geometries() -> impl Strategy<Value = Geometry> {
    (4..=8_u32, 0..=7_u32, 1..=12_u32).prop_map(|(line, sets, ways)| {
        Geometry::new(ways << (line + sets), ways, 1 << line).unwrap_or_default()
    })
}

/// Blocks of code in a few far regions, dense enough to conflict and return.
fn programs() -> impl Strategy<Value = Vec<(u64, u64, u16)>> {
    let region = prop_oneof![Just(0_u64), Just(0x40_0000), Just(0xffff_ffff_8100_0000)];
    let block = (region, 0..40_000_u64, 1..300_u64, 1..60_u16)
        .prop_map(|(region, at, bytes, instructions)| (region + at, bytes, instructions));
    prop::collection::vec(block, 1..40)
        .prop_flat_map(|blocks| prop::collection::vec(prop::sample::select(blocks), 1..400))
}

proptest! {
    #[test]
    fn counts_as_the_naive_one(geometry in geometries(), program in programs(), prefetch: bool) {
        let mut naive = Naive::new(geometry, prefetch);
        let mut code = CodeMap::new(geometry);
        let kind = if prefetch { Prefetch::NextLine } else { Prefetch::None };
        let mut cache = Cache::new(geometry, kind);
        let tally = Tally::default();
        for (step, &(address, bytes, instructions)) in program.iter().enumerate() {
            naive.run(address, bytes, instructions);
            for block in code.blocks(address, bytes, instructions) {
                // The quick way and the general one must agree.
                match block.lines() {
                    1 if step % 2 == 0 => cache.run_lines::<1>(block, &tally),
                    2 if step % 2 == 0 => cache.run_lines::<2>(block, &tally),
                    3 if step % 2 == 0 => cache.run_lines::<3>(block, &tally),
                    _ => cache.run(block, &tally),
                }
            }
            prop_assert_eq!(tally.read(), naive.counts, "after step {}", step);
        }
    }

    #[test]
    fn how_code_is_cut_into_blocks_does_not_matter(
        geometry in geometries(),
        program in programs(),
        cut in 1..40_u64,
    ) {
        let mut code = CodeMap::new(geometry);
        let [mut whole, mut pieces] = [0; 2].map(|_| Cache::new(geometry, Prefetch::None));
        let tallies = [Tally::default(), Tally::default()];
        for (address, bytes, _) in program {
            for block in code.blocks(address, bytes, 0) {
                whole.run(block, &tallies[0]);
            }
            for from in (0..bytes).step_by(cut as usize) {
                for block in code.blocks(address + from, cut.min(bytes - from), 0) {
                    pieces.run(block, &tallies[1]);
                }
            }
        }
        prop_assert_eq!(tallies[0].read(), tallies[1].read());
    }

    #[test]
    fn a_block_fits_in_a_word(address: u64, bytes in 1..8192_u64, instructions: u16) {
        let mut code = CodeMap::new(Geometry::default());
        for block in code.blocks(address, bytes, instructions) {
            prop_assert_eq!(locklab_frontend::icache::Block::from_bits(block.to_bits()), block);
        }
    }
}

/// Runs `bytes` of straight code `times` times; fetches and misses.
fn walk(cache: &mut Cache, geometry: Geometry, bytes: u64, times: u32) -> (u64, u64) {
    let mut code = CodeMap::new(geometry);
    let blocks = code.blocks(0x40_0000, bytes, 0);
    let tally = Tally::default();
    for _ in 0..times {
        for &block in &blocks {
            cache.run(block, &tally);
        }
    }
    (tally.read().fetches, tally.read().misses)
}

#[test]
fn code_that_fits_misses_once() {
    let geometry = Geometry::default();
    let mut cache = Cache::new(geometry, Prefetch::None);
    assert_eq!(walk(&mut cache, geometry, 32 * 1024, 10), (5120, 512));
}

#[test]
fn code_one_line_too_long_misses_in_one_set() {
    let geometry = Geometry::default();
    let mut cache = Cache::new(geometry, Prefetch::None);
    // 9 lines take turns in the 8 ways of the first set: LRU's worst case.
    assert_eq!(
        walk(&mut cache, geometry, 32 * 1024 + 64, 10),
        (5130, 513 + 9 * 9)
    );
}

#[test]
fn next_line_prefetch_halves_the_misses_of_straight_code() {
    let geometry = Geometry::default();
    let mut cache = Cache::new(geometry, Prefetch::NextLine);
    assert_eq!(walk(&mut cache, geometry, 32 * 1024, 1), (512, 256));
}

#[test]
fn a_cleared_cache_is_empty() {
    let geometry = Geometry::default();
    let mut cache = Cache::new(geometry, Prefetch::None);
    for bytes in [64, 4096] {
        let cold = walk(&mut cache, geometry, bytes, 1);
        assert_eq!(cold, (bytes / 64, bytes / 64));
        cache.clear();
    }
    // Nor is the line that was fetched last still being read.
    walk(&mut cache, geometry, 64, 1);
    cache.clear();
    assert_eq!(walk(&mut cache, geometry, 64, 1), (1, 1));
}
