//! Small programs as text: threads divided by `|`, statements by `;`.
//!
//! `W x 1 rlx` writes, `R x acq` reads, `U x 1 sc` adds, `S x 2 rel` swaps,
//! `C x 0 1 acq_rel` compares and exchanges (it fails relaxed), `F sc` is a fence, and
//! `A x 1 acq` waits until x is 1.

use locklab_graph::model::{self, Location, Orders};
use locklab_graph::{Explorer, Options, Place, Report, Source, Step};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Write(u64, Ordering),
    Read(Ordering),
    Add(u64, Ordering),
    Swap(u64, Ordering),
    Exchange(u64, u64, Ordering),
    Await(u64, Ordering),
    Fence(Ordering),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) op: Op,
    /// Which location; 0 for a fence.
    pub(crate) location: usize,
}

pub(crate) type Program = Vec<Vec<Statement>>;

fn order(text: &str) -> Ordering {
    match text {
        "rlx" => Ordering::Relaxed,
        "acq" => Ordering::Acquire,
        "rel" => Ordering::Release,
        "acq_rel" => Ordering::AcqRel,
        "sc" => Ordering::SeqCst,
        _ => panic!("no ordering: {text}"),
    }
}

fn statement(text: &str) -> Statement {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let last = order(words.last().unwrap());
    let op = match words[0] {
        "W" => Op::Write(number(2), last),
        "R" => Op::Read(last),
        "U" => Op::Add(number(2), last),
        "S" => Op::Swap(number(2), last),
        "C" => Op::Exchange(number(2), number(3), last),
        "A" => Op::Await(number(2), last),
        "F" => Op::Fence(last),
        other => panic!("no statement: {other}"),
    };
    let location = match op {
        Op::Fence(_) => 0,
        _ => usize::from(words[1].as_bytes()[0] - b'w'),
    };
    Statement { op, location }
}

pub(crate) fn parse(text: &str) -> Program {
    let thread = |thread: &str| {
        thread
            .split(';')
            .map(|text| statement(text.trim()))
            .collect()
    };
    text.split('|').map(thread).collect()
}

/// Locations: w, x, y, z.
pub(crate) const LOCATIONS: usize = 4;

fn run(statement: Statement, locations: &[Location], place: Place) -> Option<u64> {
    let at = locations[statement.location];
    match statement.op {
        Op::Write(value, order) => {
            model::store(at, value, order, place);
            None
        }
        Op::Read(order) => Some(model::load(at, order, place)),
        Op::Add(value, order) => Some(model::rmw(at, order, place, |old| Some(old + value))),
        Op::Swap(value, order) => Some(model::rmw(at, order, place, |_| Some(value))),
        Op::Exchange(expected, new, order) => {
            let orders = Orders {
                success: order,
                failure: Ordering::Relaxed,
            };
            let got = model::compare_exchange(at, expected, new, orders, false, place);
            Some(got.unwrap_or_else(|old| old))
        }
        Op::Await(value, order) => Some(model::await_load(at, order, place, |now| now == value)),
        Op::Fence(order) => {
            model::fence(order, place);
            None
        }
    }
}

/// The values that the reads of an execution have read, thread by thread.
pub(crate) type Values = Vec<u64>;

/// The number of a statement: what names its events.
pub(crate) fn name(thread: usize, index: usize) -> usize {
    thread * 100 + index
}

/// Which statement each read reads from (`None`: the beginning), and the statements that
/// write each location, in order.
pub(crate) type Shape = (BTreeMap<usize, Option<usize>>, Vec<Vec<usize>>);

fn shape(steps: &[Step]) -> Shape {
    let name = |step: &Step| match step.place {
        Place::Address(name) => name as usize,
        Place::Source { .. } => usize::MAX,
    };
    let of = |source: Source| match source {
        Source::Initial => None,
        Source::Write(write) => {
            let found = steps.iter().find(|step| step.id == write).map(name);
            found.filter(|&name| name != usize::MAX)
        }
    };
    let mut reads = BTreeMap::new();
    let mut writes: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    for step in steps {
        if let Some(source) = step.source {
            reads.insert(name(step), of(source));
        }
        if let (Some((key, _)), Some(position)) = (step.location, step.position) {
            writes.entry(key).or_default().push((position, name(step)));
        }
    }
    let sorted = |mut all: Vec<(usize, usize)>| {
        all.sort_unstable();
        let names = all.into_iter().map(|(_, name)| name);
        names.filter(|&name| name != usize::MAX).collect()
    };
    (reads, writes.into_values().map(sorted).collect())
}

/// Explores a program; returns the values and the shape of each execution.
pub(crate) fn explore(program: &Program) -> (Report, Vec<(Values, Shape)>) {
    explore_with(program, Options::default())
}

pub(crate) fn explore_with(program: &Program, options: Options) -> (Report, Vec<(Values, Shape)>) {
    let values: Rc<RefCell<Vec<Values>>> = Rc::default();
    let (threads, seen) = (program.clone(), values.clone());
    let test = move || {
        *seen.borrow_mut() = vec![Vec::new(); threads.len()];
        let locations: Rc<[Location]> = (0..LOCATIONS).map(|_| Location::new(8)).collect();
        for &location in locations.iter() {
            model::create(location, 0, Place::here());
        }
        let spawned: Vec<_> = threads
            .iter()
            .cloned()
            .enumerate()
            .map(|(thread, statements)| {
                let (locations, seen) = (locations.clone(), seen.clone());
                let code = move || {
                    for (index, statement) in statements.into_iter().enumerate() {
                        let place = Place::Address(name(thread, index) as u64);
                        let value = run(statement, &locations, place);
                        seen.borrow_mut()[thread].extend(value);
                    }
                };
                model::spawn(code, Place::here())
            })
            .collect();
        for id in spawned {
            model::join(id, Place::here());
        }
    };
    let mut all = Vec::new();
    let report = Explorer::new(options).check_each(test, |steps| {
        all.push((values.borrow().concat(), shape(steps)));
    });
    (report, all)
}
