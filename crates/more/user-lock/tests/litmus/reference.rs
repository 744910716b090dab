//! Computes what RC11 allows (O. Lahav et al., "Repairing Sequential Consistency in
//! C/C++11", PLDI 2017), without sequentially consistent accesses: by an abstract
//! machine with views, in which a store may come anywhere in the modification order
//! that its thread's view allows (J. Kang et al., "A Promising Semantics for
//! Relaxed-Memory Concurrency", POPL 2017, without promises). All states are visited,
//! and no wait is shortened: it shares nothing with the checker.

use super::program::{Op, Program, REGISTERS, WORDS};
use locklab_locks::platform::Ordering;
use std::collections::{BTreeSet, HashSet};

const LOCATIONS: usize = WORDS.len();

/// Holds for each word the place of a message in its modification order.
type View = [u8; LOCATIONS];

fn join(view: &mut View, other: &View) {
    for (mine, theirs) in view.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Message {
    value: u64,
    /// Holds what who acquires it sees.
    view: View,
    /// It comes right after the one that it read.
    updates: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    next: usize,
    /// Says that it is within an operation of several accesses.
    within: bool,
    current: View,
    acquired: View,
    released: View,
    /// Holds what its last releasing store to each word released: later stores of the
    /// thread to that word go on with it.
    sequence: [View; LOCATIONS],
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    words: [Vec<Message>; LOCATIONS],
    threads: Vec<Thread>,
    fences: View,
    registers: [u64; REGISTERS],
    own_stores: bool,
}

/// Names what a release sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// RC11 and C11: its thread's later stores to the word, and updates.
    WithOwnStores,
    /// Rust, and C++ from 2020 on: updates only.
    UpdatesOnly,
}

/// Describes what a program may come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) outcomes: BTreeSet<u64>,
    pub(crate) deadlock: bool,
}

const fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

const fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

impl State {
    fn new(threads: usize, sequence: Sequence) -> Self {
        let first = Message {
            value: 0,
            view: [0; LOCATIONS],
            updates: false,
        };
        let thread = Thread {
            next: 0,
            within: false,
            current: [0; LOCATIONS],
            acquired: [0; LOCATIONS],
            released: [0; LOCATIONS],
            sequence: [[0; LOCATIONS]; LOCATIONS],
        };
        Self {
            words: std::array::from_fn(|_| vec![first.clone()]),
            threads: vec![thread; threads],
            fences: [0; LOCATIONS],
            registers: [0; REGISTERS],
            own_stores: sequence == Sequence::WithOwnStores,
        }
    }

    /// Returns every read of a word that a thread may make: the value, and its place.
    fn reads(&self, thread: usize, word: usize, order: Ordering) -> Vec<(u64, usize, Self)> {
        let first = usize::from(self.threads[thread].current[word]);
        (first..self.words[word].len())
            .map(|place| {
                let mut after = self.clone();
                let message = &self.words[word][place];
                let thread = &mut after.threads[thread];
                for view in [&mut thread.current, &mut thread.acquired] {
                    view[word] = view[word].max(place as u8);
                }
                join(&mut thread.acquired, &message.view);
                if acquires(order) {
                    join(&mut thread.current, &message.view);
                }
                (message.value, place, after)
            })
            .collect()
    }

    /// Puts a message at a place of a word.
    fn insert(
        mut self,
        thread: usize,
        word: usize,
        place: usize,
        (value, order, read): (u64, Ordering, Option<View>),
    ) -> Self {
        let shift = |view: &mut View| {
            if usize::from(view[word]) >= place {
                view[word] += 1;
            }
        };
        self.words
            .iter_mut()
            .flatten()
            .for_each(|m| shift(&mut m.view));
        shift(&mut self.fences);
        for thread in &mut self.threads {
            let Thread {
                current,
                acquired,
                released,
                sequence,
                ..
            } = thread;
            [current, acquired, released].into_iter().for_each(shift);
            sequence.iter_mut().for_each(shift);
        }
        let of = &mut self.threads[thread];
        of.current[word] = place as u8;
        of.acquired[word] = of.acquired[word].max(place as u8);
        let mut view = of.released;
        if releases(order) {
            view = of.current;
            of.sequence[word] = view;
        }
        if self.own_stores {
            join(&mut view, &of.sequence[word]);
        }
        view[word] = place as u8;
        if let Some(mut read) = read {
            shift(&mut read);
            join(&mut view, &read);
        }
        let message = Message {
            value,
            view,
            updates: read.is_some(),
        };
        self.words[word].insert(place, message);
        self
    }

    fn stores(&self, thread: usize, word: usize, value: u64, order: Ordering) -> Vec<Self> {
        let first = usize::from(self.threads[thread].current[word]) + 1;
        (first..=self.words[word].len())
            .filter(|&place| self.words[word].get(place).is_none_or(|next| !next.updates))
            .map(|place| {
                self.clone()
                    .insert(thread, word, place, (value, order, None))
            })
            .collect()
    }

    /// Returns every read-modify-write: the value read, and the state after it.
    fn updates(
        &self,
        thread: usize,
        word: usize,
        order: Ordering,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Vec<(u64, Self)> {
        let mut all = Vec::new();
        for (old, place, after) in self.reads(thread, word, order) {
            let Some(value) = new(old) else { continue };
            if self.words[word]
                .get(place + 1)
                .is_none_or(|next| !next.updates)
            {
                let read = self.words[word][place].view;
                let message = (value, order, Some(read));
                all.push((old, after.insert(thread, word, place + 1, message)));
            }
        }
        all
    }

    fn fence(mut self, thread: usize, order: Ordering) -> Self {
        let of = &mut self.threads[thread];
        if acquires(order) {
            of.current = of.acquired;
        }
        if order == Ordering::SeqCst {
            join(&mut of.current, &self.fences);
            self.fences = of.current;
            of.acquired = of.current;
        }
        if releases(order) {
            of.released = of.current;
        }
        self
    }

    fn done(mut self, thread: usize) -> Self {
        self.threads[thread].next += 1;
        self.threads[thread].within = false;
        self
    }

    fn keep(mut self, register: usize, value: u64) -> Self {
        self.registers[register] = value;
        self
    }

    /// Returns the order of a compare-and-swap that fails.
    fn failure(order: Ordering) -> Ordering {
        match order {
            Ordering::Acquire | Ordering::AcqRel => Ordering::Acquire,
            _ => Ordering::Relaxed,
        }
    }

    /// Returns every step that a thread may take.
    fn steps(&self, thread: usize, op: Op) -> Vec<Self> {
        let done = |(old, state): (u64, Self), r: usize| state.keep(r, old).done(thread);
        let fails = |w: usize, order: Ordering| self.reads(thread, w, Self::failure(order));
        match op {
            Op::Load(w, r, order) => {
                let reads = self.reads(thread, w, order).into_iter();
                reads
                    .map(|(value, _, state)| done((value, state), r))
                    .collect()
            }
            Op::Store(w, v, order) => {
                let stores = self.stores(thread, w, v, order).into_iter();
                stores.map(|state| state.done(thread)).collect()
            }
            Op::Add(w, v, r, order) => {
                let updates = self
                    .updates(thread, w, order, |old| Some(old + v))
                    .into_iter();
                updates.map(|update| done(update, r)).collect()
            }
            Op::Swap(w, v, r, order) => {
                let updates = self.updates(thread, w, order, |_| Some(v)).into_iter();
                updates.map(|update| done(update, r)).collect()
            }
            Op::Compare(w, a, b, r, order) => {
                let swap = |old| (old == a).then_some(b);
                let updates = self.updates(thread, w, order, swap).into_iter();
                let failed = fails(w, order).into_iter();
                let failed = failed.filter(|(value, ..)| *value != a);
                updates
                    .chain(failed.map(|(value, _, state)| (value, state)))
                    .map(|result| done(result, r))
                    .collect()
            }
            Op::Weak(w, a, b, r, order) => {
                let swap = |old| (old == a).then_some(b);
                let updates = self.updates(thread, w, order, swap).into_iter();
                let failed = fails(w, order).into_iter();
                updates
                    .map(|(_, state)| (1, state))
                    .chain(failed.map(|(_, _, state)| (0, state)))
                    .map(|result| done(result, r))
                    .collect()
            }
            Op::Fence(order) => vec![self.clone().fence(thread, order).done(thread)],
            Op::Wait(w, v, order) => {
                let reads = self.reads(thread, w, order).into_iter();
                reads
                    .map(|(value, _, state)| match value == v {
                        true => state.done(thread),
                        false => state,
                    })
                    .collect()
            }
            Op::Take(w, a, b, order) if self.threads[thread].within => {
                let swap = |old| (old == a).then_some(b);
                let updates = self.updates(thread, w, order, swap).into_iter();
                let failed = fails(w, order).into_iter();
                let failed = failed.filter(|(value, ..)| *value != a);
                let again = |mut state: Self| {
                    state.threads[thread].within = false;
                    state
                };
                updates
                    .map(|(_, state)| state.done(thread))
                    .chain(failed.map(|(_, _, state)| again(state)))
                    .collect()
            }
            Op::Take(w, a, ..) => {
                let reads = self.reads(thread, w, Ordering::Relaxed).into_iter();
                reads
                    .map(|(value, _, mut state)| {
                        state.threads[thread].within = value == a;
                        state
                    })
                    .collect()
            }
            Op::Either(words, v, order) => {
                let second = self.threads[thread].within;
                let reads = self.reads(thread, words[usize::from(second)], order);
                reads
                    .into_iter()
                    .map(|(value, _, mut state)| {
                        if value == v {
                            return state.done(thread);
                        }
                        state.threads[thread].within = !second;
                        state
                    })
                    .collect()
            }
        }
    }

    /// Returns whether the thread goes round for ever if nothing changes any more.
    fn waits(&self, thread: usize, op: Op) -> bool {
        let newest = |w: usize| self.words[w].last().map_or(0, |message| message.value);
        !self.threads[thread].within
            && match op {
                Op::Wait(w, v, _) => newest(w) != v,
                Op::Take(w, a, ..) => newest(w) != a,
                Op::Either(words, v, _) => words.into_iter().all(|w| newest(w) != v),
                _ => false,
            }
    }
}

/// Returns all that a program may come to.
pub(crate) fn allowed(program: &Program, sequence: Sequence) -> Allowed {
    let mut allowed = Allowed::default();
    let mut seen = HashSet::new();
    let mut open = vec![State::new(program.threads.len(), sequence)];
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let next = |thread: usize| program.threads[thread].get(state.threads[thread].next);
        let threads = 0..program.threads.len();
        let unfinished: Vec<_> = threads.filter_map(|t| Some((t, *next(t)?))).collect();
        if unfinished.is_empty() {
            let last = |word: &Vec<Message>| word.last().map_or(0, |message| message.value);
            let words: Vec<u64> = state.words.iter().map(last).collect();
            allowed
                .outcomes
                .insert(program.outcome(&state.registers, &words));
            continue;
        }
        allowed.deadlock |= unfinished.iter().all(|&(t, op)| state.waits(t, op));
        for (thread, op) in unfinished {
            open.extend(state.steps(thread, op));
        }
    }
    allowed
}
