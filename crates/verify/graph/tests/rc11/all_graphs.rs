//! Enumerates every graph of a small program and keeps those that RC11 allows, by the
//! relations as the paper writes them: an update is one event here, and a relation is a
//! matrix. The engine must find the same graphs, none twice.

use super::program::{LOCATIONS, Op, Program, Shape, Statement, explore_with, name};
use locklab_graph::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// A relation between events.
#[derive(Clone, PartialEq)]
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn of(size: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        Self(
            (0..size)
                .map(|a| (0..size).map(|b| holds(a, b)).collect())
                .collect(),
        )
    }

    fn or(&self, other: &Self) -> Self {
        Self::of(self.0.len(), |a, b| self.0[a][b] || other.0[a][b])
    }

    /// Both, one after the other.
    fn then(&self, other: &Self) -> Self {
        let size = self.0.len();
        Self::of(size, |a, c| {
            (0..size).any(|b| self.0[a][b] && other.0[b][c])
        })
    }

    fn only(&self, holds: impl Fn(usize, usize) -> bool) -> Self {
        Self::of(self.0.len(), |a, b| self.0[a][b] && holds(a, b))
    }

    fn optional(&self) -> Self {
        Self::of(self.0.len(), |a, b| a == b || self.0[a][b])
    }

    fn closure(&self) -> Self {
        let mut all = self.clone();
        loop {
            let more = all.or(&all.then(&all));
            if more == all {
                return all;
            }
            all = more;
        }
    }

    fn is_irreflexive(&self) -> bool {
        (0..self.0.len()).all(|a| !self.0[a][a])
    }

    fn is_acyclic(&self) -> bool {
        self.closure().is_irreflexive()
    }
}

/// An event: `name` of its statement; location, and whether it reads and writes.
#[derive(Clone, Copy)]
struct Node {
    name: usize,
    statement: Statement,
    reads: bool,
    writes: bool,
}

/// The events of a program; the first ones are the initial writes.
struct Candidate {
    nodes: Vec<Node>,
    /// What each event reads from.
    source: Vec<Option<usize>>,
    /// The position of each write in the order of its location.
    position: Vec<usize>,
}

fn can_read(op: Op) -> bool {
    !matches!(op, Op::Write(..) | Op::Fence(_))
}

fn can_write(op: Op) -> bool {
    matches!(
        op,
        Op::Write(..) | Op::Add(..) | Op::Swap(..) | Op::Exchange(..)
    )
}

/// Returns what an event that has read this writes, if it writes; `None` outside if it
/// cannot have read this.
fn effect(op: Op, read: u64) -> Option<Option<u64>> {
    match op {
        Op::Write(value, _) | Op::Swap(value, _) => Some(Some(value)),
        Op::Add(value, _) => Some(Some(read + value)),
        Op::Exchange(expected, new, _) => Some((read == expected).then_some(new)),
        Op::Await(value, _) => (read == value).then_some(None),
        Op::Read(_) | Op::Fence(_) => Some(None),
    }
}

impl Candidate {
    fn order(&self, event: usize) -> Ordering {
        let node = &self.nodes[event];
        match node.statement.op {
            Op::Exchange(_, _, order) => match node.writes {
                true => order,
                false => Relaxed,
            },
            Op::Write(_, order)
            | Op::Read(order)
            | Op::Add(_, order)
            | Op::Swap(_, order)
            | Op::Await(_, order)
            | Op::Fence(order) => order,
        }
    }

    /// Returns whether RC11 allows it.
    fn is_consistent(&self) -> bool {
        let nodes = &self.nodes;
        let relation = |holds: &dyn Fn(usize, usize) -> bool| Relation::of(nodes.len(), holds);
        let initial = |a: usize| a < LOCATIONS;
        let fence = |a: usize| matches!(nodes[a].statement.op, Op::Fence(_)) && !initial(a);
        let at = |a: usize| (!fence(a)).then_some(nodes[a].statement.location);
        let same = |a: usize, b: usize| at(a).is_some() && at(a) == at(b);
        let sc = |a: usize| !initial(a) && self.order(a) == SeqCst;
        let acquires = |a: usize| matches!(self.order(a), Acquire | AcqRel | SeqCst);
        let releases = |a: usize| !initial(a) && matches!(self.order(a), Release | AcqRel | SeqCst);

        let sb = relation(&|a, b| {
            (initial(a) && !initial(b))
                || (!initial(a)
                    && !initial(b)
                    && nodes[a].name / 100 == nodes[b].name / 100
                    && a < b)
        });
        let rf = relation(&|a, b| self.source[b] == Some(a));
        let mo = relation(&|a, b| {
            same(a, b) && nodes[a].writes && nodes[b].writes && self.position[a] < self.position[b]
        });
        let rb = relation(&|a, b| a != b && self.source[a].is_some_and(|source| mo.0[source][b]));
        if !sb.or(&rf).is_acyclic() {
            return false;
        }
        let update = |a: usize| nodes[a].reads && nodes[a].writes;
        let through = rf.only(|_, b| update(b)).closure().optional();
        let rs = through.only(|a, _| nodes[a].writes && !initial(a));
        // What releases: the write, or a fence before it; what acquires likewise.
        let from = relation(&|a, b| {
            releases(a) && ((a == b && nodes[a].writes) || (fence(a) && sb.0[a][b]))
        });
        let to = relation(&|a, b| {
            acquires(b)
                && ((a == b && nodes[b].reads) || (fence(b) && sb.0[a][b] && nodes[a].reads))
        });
        let sw = from.then(&rs).then(&rf).then(&to);
        let hb = sb.or(&sw).closure();
        let eco = rf.or(&mo).or(&rb).closure();
        if !hb.then(&eco.optional()).is_irreflexive() || !eco.is_irreflexive() {
            return false;
        }
        let between = rb.then(&mo);
        if (0..nodes.len()).any(|a| update(a) && between.0[a][a]) {
            return false;
        }
        let elsewhere = sb.only(|a, b| !same(a, b));
        let scb = sb
            .or(&elsewhere.then(&hb).then(&elsewhere))
            .or(&hb.only(same))
            .or(&mo)
            .or(&rb);
        let fence_sc = |a: usize| fence(a) && sc(a);
        let left = relation(&|a, b| sc(a) && (a == b || (fence_sc(a) && hb.0[a][b])));
        let right = relation(&|a, b| sc(b) && (a == b || (fence_sc(b) && hb.0[a][b])));
        let base = left.then(&scb).then(&right);
        let fences = hb
            .or(&hb.then(&eco).then(&hb))
            .only(|a, b| fence_sc(a) && fence_sc(b));
        base.or(&fences).is_acyclic()
    }

    fn shape(&self) -> Shape {
        let named = |event: usize| (event >= LOCATIONS).then(|| self.nodes[event].name);
        let mut reads = BTreeMap::new();
        for (event, source) in self.source.iter().enumerate() {
            if let Some(source) = source {
                reads.insert(self.nodes[event].name, named(*source));
            }
        }
        let writes = (0..LOCATIONS).map(|location| {
            let here = |&event: &usize| {
                let node = &self.nodes[event];
                event >= LOCATIONS && node.writes && node.statement.location == location
            };
            let mut all: Vec<usize> = (0..self.nodes.len()).filter(here).collect();
            all.sort_unstable_by_key(|&event| self.position[event]);
            all.into_iter()
                .map(|event| self.nodes[event].name)
                .collect()
        });
        (reads, writes.collect())
    }
}

/// Returns every consistent graph of a program.
fn enumerate(program: &Program) -> BTreeSet<Shape> {
    let mut nodes: Vec<Node> = (0..LOCATIONS)
        .map(|location| Node {
            name: usize::MAX,
            statement: Statement {
                op: Op::Write(0, Relaxed),
                location,
            },
            reads: false,
            writes: true,
        })
        .collect();
    for (thread, statements) in program.iter().enumerate() {
        for (index, &statement) in statements.iter().enumerate() {
            nodes.push(Node {
                name: name(thread, index),
                statement,
                reads: can_read(statement.op),
                writes: can_write(statement.op),
            });
        }
    }
    let readers: Vec<usize> = (0..nodes.len())
        .filter(|&event| nodes[event].reads)
        .collect();
    let mut found = BTreeSet::new();
    let mut source = vec![None; nodes.len()];
    choose_sources(&nodes, &readers, &mut source, &mut found);
    found
}

fn choose_sources(
    nodes: &[Node],
    readers: &[usize],
    source: &mut Vec<Option<usize>>,
    found: &mut BTreeSet<Shape>,
) {
    let Some((&reader, rest)) = readers.split_first() else {
        return choose_orders(nodes, source, found);
    };
    for write in 0..nodes.len() {
        let same = nodes[write].statement.location == nodes[reader].statement.location;
        if write != reader && nodes[write].writes && same {
            source[reader] = Some(write);
            choose_sources(nodes, rest, source, found);
        }
    }
    source[reader] = None;
}

fn choose_orders(nodes: &[Node], source: &[Option<usize>], found: &mut BTreeSet<Shape>) {
    // The values, as far as they do not depend on themselves.
    let mut written: Vec<Option<Option<u64>>> = vec![None; nodes.len()];
    for _ in 0..=nodes.len() {
        for event in 0..nodes.len() {
            let read = match source[event] {
                None => Some(0),
                Some(from) => match written[from] {
                    Some(None) => return,
                    Some(value) => value,
                    None => None,
                },
            };
            if let Some(read) = read {
                match effect(nodes[event].statement.op, read) {
                    Some(value) => written[event] = Some(value),
                    None => return,
                }
            }
        }
    }
    let mut nodes = nodes.to_vec();
    for (event, node) in nodes.iter_mut().enumerate() {
        match written[event] {
            Some(value) => node.writes &= value.is_some(),
            None => return,
        }
    }
    let mut candidate = Candidate {
        position: vec![0; nodes.len()],
        source: source.to_vec(),
        nodes,
    };
    order_location(&mut candidate, 0, found);
}

fn order_location(candidate: &mut Candidate, location: usize, found: &mut BTreeSet<Shape>) {
    if location == LOCATIONS {
        if candidate.is_consistent() {
            found.insert(candidate.shape());
        }
        return;
    }
    let nodes = &candidate.nodes;
    let here = |&event: &usize| nodes[event].writes && nodes[event].statement.location == location;
    let writes: Vec<usize> = (LOCATIONS..nodes.len()).filter(here).collect();
    permute(candidate, location, &writes, 1, found);
}

fn permute(
    candidate: &mut Candidate,
    location: usize,
    writes: &[usize],
    position: usize,
    found: &mut BTreeSet<Shape>,
) {
    if writes.is_empty() {
        return order_location(candidate, location + 1, found);
    }
    for &write in writes {
        candidate.position[write] = position;
        let rest: Vec<usize> = writes
            .iter()
            .copied()
            .filter(|&other| other != write)
            .collect();
        permute(candidate, location, &rest, position + 1, found);
    }
}

/// Draws numbers, the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Draws a program of so many threads with so many statements at most, on so many
    /// locations.
    fn program(
        &mut self,
        threads: usize,
        length: usize,
        locations: usize,
        only_sc: bool,
    ) -> Program {
        let mut value = 0;
        let mut thread = |_| {
            let length = 1 + self.below(length);
            let statement = |_| {
                value += 1;
                let any = match only_sc {
                    true => [SeqCst; 3],
                    false => [Relaxed, self.of(&[Release, Acquire]), SeqCst],
                };
                let order = self.of(&any);
                let update = self.of(&[Relaxed, Acquire, Release, AcqRel, SeqCst]);
                let (write, read) = match order {
                    Release => (Release, Acquire),
                    Acquire => (Release, Acquire),
                    other => (other, other),
                };
                let op = match self.below(10) {
                    0..=2 => Op::Write(value, write),
                    3..=5 => Op::Read(read),
                    6 => Op::Add(10 * value, update),
                    7 => Op::Swap(value, update),
                    8 => Op::Exchange(self.of(&[0, 1, 2]), value, update),
                    _ => match self.below(2) {
                        0 => Op::Await(self.of(&[0, 1, 2]), read),
                        _ => Op::Fence(self.of(&[Acquire, Release, AcqRel, SeqCst, SeqCst])),
                    },
                };
                let location = match op {
                    Op::Fence(_) => 0,
                    _ => self.below(locations),
                };
                Statement { op, location }
            };
            (0..length).map(statement).collect()
        };
        (0..threads).map(&mut thread).collect()
    }
}

fn compare(
    seed: u64,
    count: usize,
    threads: usize,
    length: usize,
    locations: usize,
    only_sc: bool,
) {
    let mut draw = Draw(seed);
    let mut compared = 0;
    for _ in 0..count {
        let program = draw.program(threads, length, locations, only_sc);
        let options = Options {
            deadlocks: false,
            ..Options::default()
        };
        let (report, all) = explore_with(&program, options);
        assert!(report.error.is_none(), "{program:?}: {:?}", report.error);
        let expected = enumerate(&program);
        let shapes: BTreeSet<Shape> = all.iter().map(|(_, shape)| shape.clone()).collect();
        let missing = expected.difference(&shapes).next();
        assert!(missing.is_none(), "missing: {missing:?} of {program:?}");
        let excess = shapes.difference(&expected).next();
        assert!(excess.is_none(), "not allowed: {excess:?} of {program:?}");
        assert_eq!(shapes.len(), all.len(), "explored twice: {program:?}");
        compared += usize::from(!all.is_empty());
    }
    assert!(compared > count / 2, "most programs have no execution");
}

#[test]
fn two_threads_have_the_same_graphs() {
    compare(1, 150, 2, 4, 2, false);
}

#[test]
fn three_threads_have_the_same_graphs() {
    compare(2, 100, 3, 2, 2, false);
    compare(3, 4, 3, 3, 2, false);
}

#[test]
fn one_location_has_the_same_graphs() {
    compare(4, 25, 3, 2, 1, false);
}

#[test]
fn sequentially_consistent_programs_have_the_same_graphs() {
    compare(5, 60, 3, 2, 2, true);
}
