//! Tests what must hold of any front end, whatever its sizes.

use locklab_frontend::icache::{Counts, Geometry, Prefetch, Tally};
use locklab_frontend::{
    Event, EventTally, Events, Exit, Frontend, Instruction, Kind, Processor, Site, Sites,
};
use proptest::prelude::*;

/// A front end with what it counts.
struct Bench {
    sites: Sites,
    frontend: Frontend<'static>,
    tally: Tally,
    events: EventTally,
}

impl Bench {
    fn new(processor: &Processor) -> Self {
        let l1i = Geometry::default();
        let mut frontend = Frontend::new(processor, l1i, Prefetch::None).unwrap();
        frontend.note_sites();
        Bench {
            sites: Sites::new(processor, l1i).unwrap(),
            frontend,
            tally: Tally::default(),
            events: EventTally::default(),
        }
    }

    /// Returns a block of `instructions` of four bytes from `start` that ends with `kind`.
    fn site(&mut self, start: u64, instructions: u64, kind: Kind) -> &'static Site {
        let blocks = self
            .sites
            .code()
            .blocks(start, 4 * instructions, instructions as u16);
        let list: Vec<_> = (0..instructions)
            .map(|n| Instruction {
                address: start + 4 * n,
                place: start + 4 * n,
                bytes: 4,
            })
            .collect();
        Box::leak(Box::new(self.sites.site(
            &list,
            blocks,
            Exit { kind, target: None },
        )))
    }

    fn run(&mut self, site: &'static Site) {
        self.frontend.run(site, &self.tally, &self.events);
    }

    /// Returns the events of a hundred rounds through these blocks, after two that warm up.
    fn rounds(&mut self, sites: &[&'static Site]) -> Events {
        let round = |bench: &mut Self| sites.iter().for_each(|site| bench.run(site));
        (0..2).for_each(|_| round(self));
        let (_, before) = self.counts();
        (0..100).for_each(|_| round(self));
        self.counts().1 - before
    }

    fn counts(&self) -> (Counts, Events) {
        (self.tally.read(), self.events.read())
    }
}

fn zen3() -> Processor {
    Processor::named("zen-3").unwrap()
}

/// Misses and mispredictions of all kinds.
fn losses(events: &Events) -> u64 {
    Event::ALL
        .iter()
        .filter(|(event, _)| !matches!(event, Event::Taken | Event::Fetching | Event::Returned))
        .map(|(event, _)| events[*event])
        .sum()
}

#[test]
fn a_loop_that_fits_loses_nothing_once_warm() {
    for name in Processor::names() {
        let mut bench = Bench::new(&Processor::named(name).unwrap());
        // This is a ring of 64 blocks, 4 KiB: no lines, targets or operations are too many.
        let sites: Vec<_> = (0..64)
            .map(|n| bench.site(0x1_0000 + 64 * n, 5, Kind::Jump))
            .collect();
        assert_eq!(losses(&bench.rounds(&sites)), 0, "{name}");
    }
}

/// Returns the cycles of a stretch in a ring of 40, of six instructions each, that begin so many
/// bytes after an aligned line.
fn cycles_of_a_stretch(processor: &Processor, offset: u64) -> f64 {
    let mut bench = Bench::new(processor);
    let sites: Vec<_> = (0..40)
        .map(|n| bench.site(0x1_0000 + 192 * n + offset, 6, Kind::Jump))
        .collect();
    processor.cycles(6 * 4000, &bench.rounds(&sites)).value / 4000.0
}

#[test]
fn a_stretch_in_two_windows_is_fetched_later_than_one_that_is_in_one() {
    let processor = Processor::named("emerald-rapids").unwrap();
    // Six instructions take a cycle to dispatch, and the branch one to fetch.
    for (offset, cycles) in [(0, 1.0), (40, 1.0), (44, 2.0), (60, 2.0)] {
        let ours = cycles_of_a_stretch(&processor, offset);
        assert!((ours - cycles).abs() < 0.01, "{offset}: {ours}");
    }
    // A file from before the figure existed has none for windows.
    let mut old = processor;
    old.op_window_cycles.value = 0.0;
    assert!((cycles_of_a_stretch(&old, 60) - 1.0).abs() < 0.01);
}

#[test]
fn what_interrupts_a_stretch_ends_it() {
    let processor = Processor::named("emerald-rapids").unwrap();
    // An interrupt, which no branch explains, then a system call.
    for kind in [Kind::None, Kind::Privilege] {
        let mut bench = Bench::new(&processor);
        let (first, second) = (
            bench.site(0x1000, 6, kind),
            bench.site(0x9_0000, 6, Kind::Jump),
        );
        for _ in 0..10 {
            bench.run(first);
            bench.run(second);
        }
        let (_, events) = bench.counts();
        assert_eq!(events[Event::Fetching], 0, "{kind:?}");
    }
}

#[test]
fn code_that_is_larger_than_a_cache_misses_each_time() {
    let mut bench = Bench::new(&zen3());
    // 2 MiB in a ring: L1i, the operations and L2 lose every line before it comes again.
    let sites: Vec<_> = (0..32_768)
        .map(|n| bench.site(0x10_0000 + 64 * n, 16, Kind::None))
        .collect();
    for _ in 0..3 {
        sites.iter().for_each(|site| bench.run(site));
    }
    let (counts, events) = bench.counts();
    let lines = 3 * 32_768;
    assert_eq!(counts.misses, lines);
    assert_eq!(
        events[Event::L2Redirected] + events[Event::L2Streamed],
        lines
    );
    assert_eq!(events[Event::Decoded], 16 * lines);
    assert_eq!(events[Event::DecodeSwitch], 1);
    assert_eq!(events[Event::Interruption], 2, "back to the start");
    assert!(events[Event::L2Redirected] <= 3, "one for each start");
}

/// Calls to `depth` and back, `rounds` times.
fn recursion(processor: &Processor, depth: u64, rounds: u64) -> Events {
    let mut bench = Bench::new(processor);
    let calls: Vec<_> = (0..depth)
        .map(|n| bench.site(0x1_0000 + 64 * n, 2, Kind::Call))
        .collect();
    let leaf = bench.site(0x8_0000, 2, Kind::Return);
    let returns: Vec<_> = (0..depth)
        .map(|n| bench.site(0x1_0000 + 64 * n + 8, 2, Kind::Return))
        .collect();
    let turn = bench.site(0x9_0000, 2, Kind::Jump);
    for _ in 0..rounds {
        bench.run(turn);
        calls.iter().for_each(|site| bench.run(site));
        bench.run(leaf);
        // The outermost call returns to a jump.
        returns
            .iter()
            .skip(1)
            .rev()
            .for_each(|site| bench.run(site));
        let out = bench.site(0x1_0008, 2, Kind::Jump);
        bench.run(out);
    }
    bench.counts().1
}

#[test]
fn deeper_calls_than_the_return_stack_mispredict_by_the_excess() {
    let processor = zen3();
    let held = processor.return_stack.value as u64;
    for (depth, wrong) in [
        (1, 0),
        (held, 0),
        (held + 1, 1),
        (held + 9, 9),
        (3 * held, 2 * held),
    ] {
        let events = recursion(&processor, depth, 10);
        assert_eq!(events[Event::Return], 10 * wrong, "{depth} calls");
    }
}

#[test]
fn a_stack_that_falls_back_knows_returns_that_go_where_they_went() {
    let processor = Processor::named("coffee-lake").unwrap();
    let held = processor.return_stack.value as u64;
    let events = recursion(&processor, held + 8, 10);
    assert_eq!(events[Event::Return], 8, "in the first round only");
}

#[test]
fn indirect_calls_are_known_while_they_go_to_one_target() {
    let wrong = |targets: &[u64], rounds: usize| {
        let mut bench = Bench::new(&zen3());
        let call = bench.site(0x1_0000, 3, Kind::IndirectCall);
        let back = bench.site(0x1_000c, 3, Kind::Jump);
        let functions: Vec<_> = targets
            .iter()
            .map(|n| bench.site(0x2_0000 + 4096 * n, 3, Kind::Return))
            .collect();
        for _ in 0..rounds {
            for function in &functions {
                bench.run(call);
                bench.run(function);
                bench.run(back);
            }
        }
        bench.counts().1[Event::Indirect]
    };
    assert_eq!(wrong(&[0], 1000), 1);
    // Targets that come in turn are known by the path, after a while.
    assert!((2..100).contains(&wrong(&[0, 1, 2], 1000)));
}

#[test]
fn a_barrier_makes_targets_unknown_and_is_named_as_the_cause() {
    let mut bench = Bench::new(&zen3());
    let ring: Vec<_> = (0..8)
        .map(|n| bench.site(0x1_0000 + 64 * n, 4, Kind::Jump))
        .collect();
    let barrier = bench.site(0x1_0200, 4, Kind::Barrier);
    let back = bench.site(0x1_0210, 4, Kind::Jump);
    let round = |bench: &mut Bench, barrier: Option<&'static Site>| {
        ring.iter()
            .copied()
            .chain(barrier)
            .for_each(|site| bench.run(site));
        bench.run(back);
    };
    round(&mut bench, Some(barrier));
    round(&mut bench, Some(barrier));
    let (_, before) = bench.counts();
    for _ in 0..5 {
        round(&mut bench, Some(barrier));
    }
    let flushed = bench.counts().1 - before;
    assert_eq!(flushed[Event::Barrier], 5);
    assert_eq!(
        flushed[Event::FlushedDecoded],
        5 * 9,
        "eight in the ring, and the way back"
    );
    assert_eq!(
        flushed[Event::TargetDecoded],
        0,
        "nothing else made them unknown"
    );
}

#[test]
fn a_million_barriers_take_no_time() {
    let mut bench = Bench::new(&zen3());
    let many: Vec<_> = (0..5000)
        .map(|n| bench.site(0x10_0000 + 64 * n, 4, Kind::Jump))
        .collect();
    many.iter().for_each(|site| bench.run(site));
    let barrier = bench.site(0x1_0000, 4, Kind::Barrier);
    let space = bench.site(0x1_0010, 4, Kind::AddressSpace);
    for _ in 0..1_000_000 {
        bench.run(barrier);
        bench.run(space);
    }
    let events = bench.counts().1;
    assert_eq!(events[Event::Barrier], 1_000_000);
    assert!(events[Event::AddressSpace] >= 999_999);
}

/// Returns one step of a random program: which of some blocks runs.
fn programs() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..24_usize, 1..600)
}

const KINDS: [Kind; 8] = [
    Kind::None,
    Kind::Conditional,
    Kind::Jump,
    Kind::Call,
    Kind::Return,
    Kind::IndirectCall,
    Kind::IndirectJump,
    Kind::Barrier,
];

fn execute(processor: &Processor, program: &[usize], rounds: usize) -> (Counts, Events, Events) {
    let mut bench = Bench::new(processor);
    let sites: Vec<_> = (0..24)
        .map(|n| {
            bench.site(
                0x1_0000 + 1000 * n as u64 / 4 * 4,
                3 + n as u64 % 5,
                KINDS[n % 8],
            )
        })
        .collect();
    for _ in 0..rounds {
        program.iter().for_each(|&n| bench.run(sites[n]));
    }
    let mut by_site = Events::default();
    for site in bench.frontend.sites() {
        for (event, _) in Event::ALL {
            by_site[event] += u64::from(site[event as usize]);
        }
    }
    let (counts, events) = bench.counts();
    (counts, events, by_site)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_repeats_exactly_and_its_parts_add_up(program in programs()) {
        let (counts, events, by_site) = execute(&zen3(), &program, 2);
        let (counts2, events2, _) = execute(&zen3(), &program, 2);
        prop_assert_eq!((counts, events), (counts2, events2));
        for (event, name) in Event::ALL {
            if event != Event::Taken {
                prop_assert_eq!(events[event], by_site[event], "{}", name);
            }
        }
        let misses: u64 = [Event::L1Redirected, Event::L1Streamed, Event::L2Redirected, Event::L2Streamed]
            .iter().map(|event| events[*event]).sum();
        prop_assert_eq!(misses, counts.misses);
        prop_assert!(events[Event::Decoded] <= counts.instructions);
        prop_assert!(events[Event::L2Redirected] + events[Event::L2Streamed] <= 24 * 2);
    }

    #[test]
    fn more_ways_never_miss_more(program in programs()) {
        // LRU: with as many sets, what a cache holds contains what one with fewer ways does.
        let mut small = zen3();
        let mut large = zen3();
        small.btb1_entries.value = 8.0;
        small.btb1_ways.value = 2.0;
        small.btb2_entries.value = 16.0;
        small.btb2_ways.value = 2.0;
        large.btb1_entries.value = 16.0;
        large.btb1_ways.value = 4.0;
        large.btb2_entries.value = 32.0;
        large.btb2_ways.value = 4.0;
        let missed = |processor: &Processor| {
            let events = execute(processor, &program, 3).1;
            let nowhere = events[Event::TargetDecoded] + events[Event::FlushedDecoded];
            (nowhere, nowhere + events[Event::TargetSlow] + events[Event::FlushedSlow])
        };
        let (few, many) = (missed(&small), missed(&large));
        prop_assert!(many.0 <= few.0 && many.1 <= few.1, "{:?} {:?}", few, many);
    }
}
