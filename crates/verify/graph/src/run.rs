//! Runs the code of a test: its threads are coroutines, begun again for each execution,
//! and fed the values of the graph as far as it goes. Then the first thread that can go on
//! adds events, and after it the next.
//!
//! Threads of the graph's part run in an order in which each write comes before its reads,
//! so that plain memory holds in each execution what it should.

use crate::arena::Arenas;
use crate::event::{Event, EventId, Kind, MAX_THREADS, NOWHERE, Place, Source};
use crate::explore::Exploration;
use crate::options::Options;
use crate::replay::Guide;
use crate::report::{FailureKind, Limit, Report};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Why a thread does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// There is no such thread yet.
    Absent,
    /// It goes on when it is its turn.
    Ready,
    /// It has done what the graph has of it.
    AtEnd,
    /// The same, within a read-modify-write that has read.
    WithinUpdate,
    /// It has to see this event first, which the graph has.
    After(EventId),
    /// It waits for the end of this thread.
    Joins(usize),
    /// It goes on when no other can.
    Yields,
    /// Its last event is a read that did not end its wait.
    Waits,
    /// What it has read since this event did not end its wait.
    WaitsSince(usize),
    /// The round of a loop that has begun at this event has left memory as it was: another
    /// round is of interest only if somebody sees into this one.
    Undone(usize),
    /// Its loop, of which a round has begun at this event, is not followed further.
    Cut(usize),
    /// It does not go on, and this execution is of no interest.
    Blocked,
    /// It has ended.
    Ended,
}

type Code = Box<dyn FnOnce()>;

/// A round of a loop that a thread runs again and again, with what it has read in it, to
/// see whether it is a wait.
#[derive(Clone, Copy)]
pub(crate) struct Dry {
    pub(crate) since: usize,
    pub(crate) next: usize,
    pub(crate) rounds: u32,
}

/// A round of a loop: where it began, the location read there, and its events.
pub(crate) type Round = (Place, u32, usize);

/// What an exploration knows while it runs.
pub(crate) struct State {
    pub(crate) explore: Exploration,
    pub(crate) options: Options,
    /// How many of its events each thread has gone through.
    pub(crate) at: [usize; MAX_THREADS],
    pub(crate) status: [Status; MAX_THREADS],
    /// When each thread last let others run, of all that have.
    pub(crate) yielded: [u64; MAX_THREADS],
    pub(crate) yields: u64,
    /// The thread that runs.
    pub(crate) current: usize,
    /// Whether events are added, not only repeated.
    pub(crate) live: bool,
    /// How many threads, and how many locations, each thread has made.
    pub(crate) spawned: [usize; MAX_THREADS],
    pub(crate) made: [u64; MAX_THREADS],
    /// How often each thread's weak exchanges have failed without a reason.
    pub(crate) weak_failures: [u32; MAX_THREADS],
    /// The number of each thread, by the one that makes it and how many it made before.
    pub(crate) children: HashMap<(usize, usize), usize>,
    /// Plain writes whose values are in memory, but not yet in the graph.
    pub(crate) unseen: [Vec<EventId>; MAX_THREADS],
    /// In which execution the initial value of a location was last asked for.
    pub(crate) touched: Vec<u64>,
    pub(crate) execution: u64,
    /// The blocks of memory that this execution has allocated, with their sizes.
    pub(crate) allocated: BTreeMap<u64, (usize, Place)>,
    pub(crate) arenas: Arenas,
    pub(crate) bounded: BTreeMap<Place, u64>,
    /// The loops of threads that are tried.
    pub(crate) dry: [Option<Dry>; MAX_THREADS],
    /// Loops that have ended by themselves, and those that have not.
    pub(crate) counted: BTreeSet<Round>,
    pub(crate) waits: BTreeSet<Place>,
    /// Whether something was learnt about a loop, so that the exploration begins again.
    pub(crate) again: bool,
    /// Threads that exist, but have no coroutine yet.
    new: Vec<(usize, Code)>,
    yielders: [*const Yielder<(), ()>; MAX_THREADS],
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    /// Whether code of a test runs, and where it has panicked.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANICKED: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Does something with the state of the exploration that runs on this thread.
pub(crate) fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(|state| {
        act(state
            .as_mut()
            .expect("this is called within `Explorer::check`"))
    })
}

/// Returns whether this is called within a test.
pub(crate) fn is_running() -> bool {
    STATE
        .try_with(|state| state.try_borrow().is_ok_and(|state| state.is_some()))
        .unwrap_or(false)
}

/// Does something that may have to wait for other threads.
pub(crate) fn step<R>(mut attempt: impl FnMut(&mut State, usize) -> Result<R, Status>) -> R {
    loop {
        let outcome = with(|state| {
            let thread = state.current;
            let outcome = match state.is_over() {
                true => Err(Status::Blocked),
                false => attempt(state, thread),
            };
            outcome.map_err(|status| {
                state.status[thread] = status;
                state.yielders[thread]
            })
        });
        match outcome {
            Ok(done) => return done,
            // SAFETY: the yielder belongs to the coroutine that runs this.
            Err(yielder) => unsafe { (*yielder).suspend(()) },
        }
    }
}

impl State {
    fn new(options: Options) -> Self {
        Self {
            explore: Exploration::default(),
            options,
            at: [0; MAX_THREADS],
            status: [Status::Absent; MAX_THREADS],
            yielded: [0; MAX_THREADS],
            yields: 0,
            current: 0,
            live: false,
            spawned: [0; MAX_THREADS],
            made: [0; MAX_THREADS],
            weak_failures: [0; MAX_THREADS],
            children: HashMap::new(),
            unseen: Default::default(),
            touched: Vec::new(),
            execution: 0,
            allocated: BTreeMap::new(),
            arenas: Arenas::default(),
            bounded: BTreeMap::new(),
            dry: [None; MAX_THREADS],
            counted: BTreeSet::new(),
            waits: BTreeSet::new(),
            again: false,
            new: Vec::new(),
            yielders: [std::ptr::null(); MAX_THREADS],
        }
    }

    fn begin(&mut self, main: Code) {
        self.at = [0; MAX_THREADS];
        self.status = [Status::Absent; MAX_THREADS];
        self.live = false;
        self.spawned = [0; MAX_THREADS];
        self.made = [0; MAX_THREADS];
        self.weak_failures = [0; MAX_THREADS];
        self.unseen.iter_mut().for_each(Vec::clear);
        self.dry = [None; MAX_THREADS];
        self.allocated.clear();
        self.arenas.begin();
        self.explore.quiet = false;
        self.execution += 1;
        self.new.clear();
        self.start(0, main);
    }

    /// Returns whether the current execution need not be continued.
    fn is_over(&self) -> bool {
        self.again || self.explore.discarded || self.explore.failure.is_some()
    }

    /// Makes a thread that exists run this.
    pub(crate) fn start(&mut self, thread: usize, code: Code) {
        self.status[thread] = Status::Ready;
        self.new.push((thread, code));
    }

    /// Returns the next event of a thread, if the graph has it, and goes past it.
    pub(crate) fn next(
        &mut self,
        thread: usize,
        kind: Kind,
        place: Place,
    ) -> Result<Option<EventId>, Status> {
        if self.dry[thread].is_some() {
            return self.next_dry(thread, kind, place).map(Some);
        }
        let id = EventId::new(thread, self.at[thread]);
        if id.index() == self.explore.graph.len(thread) {
            if !self.live {
                return Err(match kind {
                    Kind::UpdateWrite => Status::WithinUpdate,
                    _ => Status::AtEnd,
                });
            }
            if let Some(guide) = &self.explore.guide
                && guide.front().is_none_or(|&(next, _)| next != thread)
            {
                return Err(Status::AtEnd);
            }
            if id.index() >= self.options.events {
                let message = format!(
                    "thread {thread} does not end: it has {} events at {place}",
                    id.index()
                );
                self.explore.fail(FailureKind::TooLong, message, place);
                return Err(Status::Blocked);
            }
            return Ok(None);
        }
        let event = self.explore.graph.get(id);
        if std::mem::discriminant(&event.kind) != std::mem::discriminant(&kind) {
            let message = format!(
                "thread {thread} does not do the same when it reads the same: {:?} at {}, then \
                 {kind:?} at {place}",
                event.kind, event.place
            );
            self.explore
                .fail(FailureKind::NotDeterministic, message, place);
            return Err(Status::Blocked);
        }
        if event.kind.reads()
            && let Source::Write(write) = event.source
            && !event.stuck
            && self.at[write.thread()] <= write.index()
        {
            return Err(Status::After(write));
        }
        self.at[thread] += 1;
        Ok(Some(id))
    }

    /// Returns the next event of a round that is run again.
    fn next_dry(&mut self, thread: usize, kind: Kind, place: Place) -> Result<EventId, Status> {
        let dry = self.dry[thread]
            .as_mut()
            .expect("a round that is run again");
        // At its first event, which is done again if the thread goes on.
        if dry.rounds >= self.options.rounds {
            let since = dry.since;
            self.waits
                .insert(self.explore.graph.threads[thread][since].place);
            return Err(Status::WaitsSince(since));
        }
        let id = EventId::new(thread, dry.next);
        let event = self.explore.graph.get(id);
        if event.place != place || event.kind != kind {
            return Err(self.ends_by_itself(thread));
        }
        dry.next += 1;
        if dry.next == self.at[thread] {
            dry.next = dry.since;
            dry.rounds += 1;
        }
        Ok(id)
    }

    /// Notes that the loop of a thread which is tried is no wait: the exploration begins
    /// again, and knows it.
    pub(crate) fn ends_by_itself(&mut self, thread: usize) -> Status {
        if let Some(dry) = self.dry[thread] {
            let first = &self.explore.graph.threads[thread][dry.since];
            let round = (first.place, first.location, self.at[thread] - dry.since);
            self.counted.insert(round);
            self.again = true;
        }
        Status::Blocked
    }

    /// Returns whether a thread can go on.
    fn can_go_on(&self, thread: usize) -> bool {
        match self.status[thread] {
            Status::Ready => true,
            Status::Yields => self.explore.guide.is_some(),
            Status::AtEnd | Status::WithinUpdate => self.live,
            Status::WaitsSince(since) => {
                self.live && self.explore.quiet && !self.has_read_the_newest(thread, since)
            }
            Status::Undone(since) => {
                self.live && (self.explore.guide.is_some() || self.is_of_use(thread, since))
            }
            Status::After(event) => self.at[event.thread()] > event.index(),
            Status::Joins(child) => self.status[child] == Status::Ended,
            _ => false,
        }
    }

    /// Returns the thread that has let others run for the longest.
    fn eldest_yield(&self) -> Option<usize> {
        let yields = |&thread: &usize| self.status[thread] == Status::Yields;
        let threads = (0..MAX_THREADS).filter(yields);
        threads.min_by_key(|&thread| self.yielded[thread])
    }

    /// Returns the thread that goes on.
    fn choose_thread(&mut self) -> Option<usize> {
        let threads = || 0..MAX_THREADS;
        if !self.live {
            let goes_on = threads().find(|&thread| self.can_go_on(thread));
            if let Some(thread) = goes_on.or_else(|| self.eldest_yield()) {
                return Some(thread);
            }
            self.live = true;
            // An update that has read writes before anything else happens.
            let within = |&thread: &usize| self.status[thread] == Status::WithinUpdate;
            if let Some(thread) = threads().find(within) {
                return Some(thread);
            }
        }
        if let Some(guide) = &self.explore.guide {
            let begun = |&thread: &usize| self.status[thread] == Status::Ready;
            let next = guide.front().map(|&(thread, _)| thread);
            let next = next.filter(|&thread| self.can_go_on(thread));
            return threads().find(begun).or(next);
        }
        let goes_on = threads().find(|&thread| self.can_go_on(thread));
        goes_on.or_else(|| self.eldest_yield())
    }

    /// Lets those that wait for this location look again, in a set-up.
    pub(crate) fn look_again(&mut self, location: u32) {
        for thread in 0..self.explore.graph.threads.len() {
            let last = EventId::new(thread, self.at[thread].saturating_sub(1));
            match self.status[thread] {
                Status::Waits if self.explore.graph.get(last).location == location => {
                    self.explore.graph.restrict(|id, _| id != last);
                    self.at[thread] -= 1;
                    self.status[thread] = Status::Ready;
                }
                Status::WaitsSince(_) => {
                    self.dry[thread] = None;
                    self.status[thread] = Status::Ready;
                }
                _ => {}
            }
        }
    }

    /// Begins a set-up, or ends it: what waits then is explored from there.
    pub(crate) fn set_up(&mut self, begins: bool) {
        let first = self.execution == 1;
        self.explore.quiet = begins;
        if begins {
            let known = self.at[self.current] < self.explore.graph.len(self.current);
            if !(known || first && self.explore.is_one()) {
                let place = Place::here();
                let message = format!("a set-up at {place} comes after a choice");
                self.explore.fail(FailureKind::TooLong, message, place);
            }
        } else if first {
            let graph = &mut self.explore.graph;
            let mut waiting = Vec::new();
            for thread in 0..graph.threads.len() {
                let since = match self.status[thread] {
                    Status::Waits => self.at[thread] - 1,
                    Status::WaitsSince(since) => since,
                    _ => continue,
                };
                for index in since..self.at[thread] {
                    graph.threads[thread][index].fixed = false;
                    waiting.push(EventId::new(thread, index));
                }
            }
            graph.make_newest(&waiting);
            for location in &mut graph.locations {
                let stays = |write: &&EventId| !waiting.contains(write);
                location.fixed = location.writes.iter().filter(stays).count();
            }
        }
    }

    /// Returns whether a thread would read the same again, of what it has read since an event.
    pub(crate) fn has_read_the_newest(&self, thread: usize, since: usize) -> bool {
        let graph = &self.explore.graph;
        graph.threads[thread][since..self.at[thread]]
            .iter()
            .all(|event| {
                let newest = || graph.newest(event.location);
                match (event.kind, event.kind.reads()) {
                    (Kind::PlainRead, _) => match newest() {
                        Source::Write(write) => event.hb.has(write),
                        Source::Initial => true,
                    },
                    (_, true) => event.value == graph.written(event.location, newest()),
                    _ => true,
                }
            })
    }

    /// Returns whether a round of a loop, which began at this event, has left memory as its
    /// thread knew it: each location that it has written holds what it held before.
    pub(crate) fn is_undone(&self, thread: usize, since: usize) -> bool {
        let graph = &self.explore.graph;
        let events = &graph.threads[thread][..self.at[thread]];
        let changes = |event: &Event| event.kind.writes() || event.kind == Kind::PlainWrite;
        let takes_back = |location: u32| {
            let here = |event: &&Event| event.location == location;
            let first = events[since..]
                .iter()
                .position(|event| here(&event) && changes(event));
            let before = &events[..since + first.unwrap_or(0)];
            let known = |event: &&Event| here(event) && (changes(event) || event.kind.reads());
            let initial = graph.locations[location as usize].initial;
            let before = before
                .iter()
                .rfind(known)
                .map_or(initial, |event| event.value);
            let last = events.iter().rfind(|event| here(event) && changes(event));
            last.is_some_and(|last| last.value == before)
        };
        events[since..].iter().all(|event| match event.kind {
            Kind::Fence | Kind::PlainRead => true,
            // The next round has no such failure or time-out.
            Kind::Choice(_) => event.value == 0,
            _ if changes(event) => takes_back(event.location),
            kind => kind.reads(),
        })
    }

    /// Returns whether another round of a loop may do what one execution less does not show:
    /// the last one, which has taken back what it wrote, was seen, or is of a set-up that is
    /// over.
    pub(crate) fn is_of_use(&self, thread: usize, since: usize) -> bool {
        let round = &self.explore.graph.threads[thread][since..self.at[thread]];
        match self.explore.quiet {
            true => !self.has_read_the_newest(thread, since),
            false => round.iter().any(|event| event.fixed) || self.is_seen(thread, since),
        }
    }

    /// Returns whether another thread, in what is no vain round of a loop itself, has read
    /// what such a round has written and taken back, or has written in between.
    fn is_seen(&self, thread: usize, since: usize) -> bool {
        let graph = &self.explore.graph;
        let vain = |id: EventId| match self.status[id.thread()] {
            Status::Waits => id.index() + 1 == self.at[id.thread()],
            Status::WaitsSince(first) | Status::Undone(first) | Status::Cut(first) => {
                id.index() >= first
            }
            _ => false,
        };
        let round = since..self.at[thread];
        let own = |&id: &EventId| id.thread() == thread && round.contains(&id.index());
        let other = |&id: &EventId| id.thread() != thread && !vain(id);
        let events = graph.threads[thread][round.clone()].iter();
        let locations: BTreeSet<u32> = events.map(|event| event.location).collect();
        locations
            .into_iter()
            .filter(|&location| location != NOWHERE)
            .any(|location| {
                let location = &graph.locations[location as usize];
                let Some(first) = location.writes.iter().position(own) else {
                    return false;
                };
                let last = location.writes.iter().rposition(own).unwrap_or(first);
                let within = &location.writes[first..last];
                let reads = |read: &EventId| {
                    let source = graph.get(*read).source;
                    other(read) && within.iter().any(|&write| source == Source::Write(write))
                };
                within.iter().any(other) || location.reads.iter().any(reads)
            })
    }

    /// Returns whether what a thread waits for is not there.
    fn waits_in_vain(&self, thread: usize) -> bool {
        match self.status[thread] {
            Status::Waits => self.has_read_the_newest(thread, self.at[thread] - 1),
            Status::WaitsSince(first) | Status::Undone(first) | Status::Cut(first) => {
                self.has_read_the_newest(thread, first)
            }
            Status::Joins(_) | Status::Ended | Status::Absent => true,
            _ => false,
        }
    }

    /// Judges an execution that has come to its end.
    fn judge(&mut self, report: &mut Report, see: &mut dyn FnMut(&Exploration)) {
        let of = |status: Status| matches!(status, Status::Ended | Status::Absent);
        let events = self.explore.graph.added.len();
        report.events = report.events.max(events);
        let threads = self
            .status
            .iter()
            .filter(|&&status| status != Status::Absent);
        report.threads = report.threads.max(threads.count());
        if self.status.iter().all(|&status| of(status)) {
            report.executions += 1;
            see(&self.explore);
            if self.options.leaks
                && let Some((address, (size, place))) = self.allocated.first_key_value()
            {
                let message =
                    format!("{size} bytes at {address:#x}, allocated at {place}, are never freed");
                let place = *place;
                self.explore.fail(FailureKind::Leak, message, place);
            }
        } else if self.options.deadlocks
            && (0..MAX_THREADS).all(|thread| self.waits_in_vain(thread))
        {
            let waits = |thread: usize| {
                let place = self.explore.graph.last(thread).map(|event| event.place);
                let status = self.status[thread];
                let waiting = !of(status) && !matches!(status, Status::Joins(_));
                waiting
                    .then_some(place)
                    .flatten()
                    .map(|place| (thread, place))
            };
            let all: Vec<_> = (0..MAX_THREADS).filter_map(waits).collect();
            let each: Vec<_> = all
                .iter()
                .map(|(thread, place)| format!("thread {thread} at {place}"))
                .collect();
            let message = format!("deadlock: nobody ends the wait of {}", each.join(", "));
            let place = all.last().map_or_else(Place::here, |&(_, place)| place);
            report.executions += 1;
            self.explore.fail(FailureKind::Deadlock, message, place);
        } else {
            report.blocked += 1;
        }
    }
}

type Thread = Coroutine<(), (), (), DefaultStack>;

/// The stacks of threads: each thread has the same in every execution.
#[derive(Default)]
struct Stacks(Vec<Option<DefaultStack>>);

impl Stacks {
    fn take(&mut self, thread: usize, bytes: usize) -> DefaultStack {
        if self.0.len() <= thread {
            self.0.resize_with(thread + 1, || None);
        }
        self.0[thread]
            .take()
            .unwrap_or_else(|| DefaultStack::new(bytes).expect("address space for a stack"))
    }
}

/// Runs one execution: what the graph has of it, and then what comes.
fn execute(main: Code, stacks: &mut Stacks) {
    let bytes = with(|state| {
        state.begin(main);
        state.options.stack
    });
    let mut coroutines: Vec<Option<Thread>> = (0..MAX_THREADS).map(|_| None).collect();
    loop {
        let (next, new) = with(|state| {
            let new = std::mem::take(&mut state.new);
            let next = match state.is_over() {
                true => None,
                false => state.choose_thread(),
            };
            if let Some(thread) = next {
                state.status[thread] = Status::Ready;
                state.current = thread;
            }
            (next, new)
        });
        for (thread, code) in new {
            let body = move |yielder: &Yielder<(), ()>, ()| {
                with(|state| state.yielders[thread] = yielder);
                run_thread(code);
            };
            let stack = stacks.take(thread, bytes);
            // SAFETY: the code of a test is `'static`.
            let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, body) };
            coroutines[thread] = Some(coroutine);
        }
        let Some(thread) = next else { break };
        let coroutine = coroutines[thread]
            .as_mut()
            .expect("a thread that was started");
        coroutine.resume(());
        if coroutine.done() {
            with(|state| state.status[thread] = Status::Ended);
        }
    }
    for (thread, coroutine) in coroutines.into_iter().enumerate() {
        if let Some(mut coroutine) = coroutine {
            if !coroutine.done() {
                // SAFETY: what the frames own is leaked, and nobody refers to them.
                unsafe { coroutine.force_reset() };
            }
            stacks.0[thread] = Some(coroutine.into_stack());
        }
    }
}

/// Runs the code of a thread between its first and its last event.
fn run_thread(code: Code) {
    let place = Place::here();
    step(|state, thread| {
        if state.next(thread, Kind::Begin, place)?.is_none() {
            let parent = state.parent(thread);
            state
                .explore
                .add_after(thread, Kind::Begin, Ordering::Relaxed, place, parent);
            state.at[thread] += 1;
        }
        Ok(())
    });
    let ended = std::panic::catch_unwind(AssertUnwindSafe(code));
    if let Err(payload) = ended {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let place = PANICKED.take().unwrap_or(place);
        let message = format!("{} at {place}", text.unwrap_or("a panic"));
        with(|state| match state.dry[state.current] {
            Some(_) => {
                state.ends_by_itself(state.current);
            }
            None => state.explore.fail(FailureKind::Assertion, message, place),
        });
        return;
    }
    step(|state, thread| {
        state.see_plain_writes(thread);
        if state.next(thread, Kind::End, place)?.is_none() {
            state
                .explore
                .add(thread, Kind::End, Ordering::Relaxed, place);
            state.at[thread] += 1;
        }
        Ok(())
    });
}

/// Makes panics of a test silent: they are reported with the execution.
fn keep_panics_silent() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                return before(info);
            }
            let source = |at: &std::panic::Location<'_>| Place::Source {
                // Leaked once for each failure, of which an exploration has one.
                file: String::leak(at.file().to_owned()),
                line: at.line(),
                column: at.column(),
            };
            PANICKED.set(info.location().map(source));
        }));
    });
}

/// Explores a test.
pub(crate) fn check(
    options: &Options,
    guide: Option<Guide>,
    test: Rc<dyn Fn()>,
    see: &mut dyn FnMut(&Exploration),
) -> Report {
    keep_panics_silent();
    let begin = Instant::now();
    let mut report = Report::default();
    let mut state = State::new(options.clone());
    state.explore.guide = guide.clone();
    let before = STATE.replace(Some(state));
    assert!(before.is_none(), "a test explores another test");
    INSIDE.set(true);
    let mut stacks = Stacks::default();
    loop {
        let test = test.clone();
        execute(Box::new(move || test()), &mut stacks);
        let more = with(|state| {
            if state.again {
                let counted = std::mem::take(&mut state.counted);
                *state = State {
                    counted,
                    ..State::new(options.clone())
                };
                state.explore.guide = guide.clone();
                report = Report::default();
                return true;
            }
            if state.explore.failure.is_none() {
                match std::mem::take(&mut state.explore.discarded) {
                    true => report.discarded += 1,
                    false => state.judge(&mut report, see),
                }
            }
            if state.explore.failure.is_some() {
                return false;
            }
            let more = state.explore.next();
            if state.explore.failure.is_some() {
                return false;
            }
            report.limit = match more {
                false => None,
                true if report.executions + report.blocked >= options.executions => {
                    Some(Limit::Executions)
                }
                true if options.duration.is_some_and(|most| begin.elapsed() >= most) => {
                    Some(Limit::Duration)
                }
                true if state.explore.events_kept()
                    > options.memory / size_of::<crate::event::Event>() =>
                {
                    Some(Limit::Memory)
                }
                true => None,
            };
            more && report.limit.is_none()
        });
        if !more {
            break;
        }
    }
    INSIDE.set(false);
    let state = STATE.take().expect("the exploration that has run");
    report.error = state.explore.failure;
    report.waits = state.waits.into_iter().collect();
    report.bounded = state.bounded.into_iter().collect();
    report.took = begin.elapsed();
    report
}
