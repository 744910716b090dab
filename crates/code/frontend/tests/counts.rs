//! The counts of one drawn program, to the last digit. A change that only makes the model
//! faster must leave them alone; one that makes it another model renews them, and says so.

use locklab_frontend::icache::{Geometry, Prefetch, Tally};
use locklab_frontend::{
    Event, EventTally, Exit, Frontend, Instruction, Kind, Processor, Site, Sites,
};

/// Blocks of the program, 64 bytes apart, and how many of them are executed.
const BLOCKS: u64 = 6000;
const EXECUTED: u64 = 400_000;

/// Returns the events of the program.
fn events(processor: &Processor) -> Vec<u64> {
    let l1i = Geometry::default();
    let mut sites = Sites::new(processor, l1i).unwrap();
    let mut frontend = Frontend::new(processor, l1i, Prefetch::None).unwrap();
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let blocks: Vec<Site> = (0..BLOCKS)
        .map(|number| {
            let (start, length) = (0x40_0000 + 64 * number, 1 + draw() % 14);
            let list: Vec<_> = (0..length)
                .map(|n| Instruction {
                    address: start + 4 * n,
                    place: start + 4 * n,
                    bytes: 4,
                })
                .collect();
            let kind = match draw() % 16 {
                0..10 => Kind::Conditional,
                10..12 => Kind::Jump,
                12 => Kind::Call,
                13 => Kind::Return,
                14 => Kind::IndirectJump,
                _ if number % 101 == 0 => Kind::Barrier,
                _ => Kind::None,
            };
            let lines = sites.code().blocks(start, 4 * length, length as u16);
            sites.site(&list, lines, Exit { kind, target: None })
        })
        .collect();
    let (tally, events) = (Tally::default(), EventTally::default());
    let (mut at, mut calls) = (0_usize, Vec::new());
    for step in 0..EXECUTED {
        frontend.run(&blocks[at], &tally, &events);
        let chance = draw();
        // Most of the time the program stays in a small part of itself, which moves.
        let near = (step / 4000 * 160 + chance % 400) % BLOCKS;
        let far = chance / 7 % BLOCKS;
        // A branch goes where the step before it went, or elsewhere in one of eight cases.
        let usual = (at as u64 * 31 + step % 3) % 400 + step / 4000 * 160;
        at = match chance % 64 {
            0 => far as usize,
            1..8 => near as usize,
            8..12 => calls.pop().unwrap_or(0),
            12..16 => {
                calls.push((at + 1) % BLOCKS as usize);
                (usual % BLOCKS) as usize
            }
            _ => (usual % BLOCKS) as usize,
        };
        calls.truncate(100);
    }
    let read = events.read();
    Event::ALL.iter().map(|(event, _)| read[*event]).collect()
}

#[test]
fn a_drawn_program_has_the_counts_that_it_had() {
    let had = [
        (
            "skylake-sp",
            vec![
                375406, 685076, 15150, 4858, 4708, 1292, 2154924, 122940, 159585, 1164, 3751,
                16025, 24144, 684, 0, 62525, 4675, 359, 0, 0, 24234,
            ],
        ),
        (
            "zen-3",
            vec![
                375406, 1121070, 15171, 4837, 4710, 1290, 681781, 61265, 4200, 1138, 3751, 16025,
                24828, 0, 0, 62431, 4675, 359, 0, 0, 24234,
            ],
        ),
        (
            "zen-5",
            vec![
                375406, 342538, 15171, 4837, 4710, 1290, 186712, 19971, 0, 1138, 3751, 16025,
                24828, 0, 0, 62431, 4675, 359, 0, 0, 24234,
            ],
        ),
    ];
    let now = had
        .each_ref()
        .map(|(name, _)| (*name, events(&Processor::named(name).unwrap())));
    assert_eq!(now, had);
}
