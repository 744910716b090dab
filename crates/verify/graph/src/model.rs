//! What a test does, call by call, for a front end: atomics and plain memory by address
//! or by number, threads, waits and choices.
//!
//! All functions here work only on a thread of a test ([`crate::Explorer::check`]). Each
//! names the place in the code that a trace shows. A test must do the same whenever it
//! reads the same: it has no other inputs, and no other state that lives longer than an
//! execution.

use crate::arena::ARENA;
use crate::event::{EventId, Exchange, Kind, MAX_THREADS, Place, Source};
use crate::graph::Access;
use crate::replay::Guide;
use crate::report::FailureKind;
use crate::run::{Dry, State, Status, step, with};
use std::sync::atomic::Ordering;

/// The numbers of locations that are no addresses have this bit.
const NUMBERED: u64 = 1 << 63;

/// A place in memory that is accessed as one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    key: u64,
    size: u32,
}

impl Location {
    /// Returns a location of the engine alone, which has a number and no memory, and is 0 at
    /// the beginning.
    pub fn new(size: u32) -> Self {
        with(|state| {
            let thread = state.current;
            let made = state.made[thread];
            state.made[thread] += 1;
            Self {
                key: NUMBERED | (thread as u64) << 48 | made << 4,
                size,
            }
        })
    }

    /// Returns the location of so many bytes of memory; at most 8 for an atomic access.
    ///
    /// # Safety
    /// The memory is valid until the execution ends, and nobody but the test's threads
    /// accesses it.
    pub unsafe fn memory(address: usize, size: u32) -> Self {
        Self {
            key: address as u64,
            size,
        }
    }

    /// Returns a second location, of eight bytes, for what belongs to this one: such as the
    /// queue of those who sleep there. This one has no memory.
    pub fn beside(self) -> Self {
        Self {
            key: self.key | 8,
            size: 8,
        }
    }

    fn is_memory(self) -> bool {
        is_memory(self.key)
    }
}

fn is_memory(key: u64) -> bool {
    key & NUMBERED == 0
}

/// Reads memory of up to eight bytes.
///
/// # Safety
/// It is valid.
unsafe fn peek(address: u64, size: u32) -> u64 {
    let mut bytes = [0_u8; 8];
    let size = (size as usize).min(8);
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size) };
    u64::from_le_bytes(bytes)
}

impl State {
    /// Returns the number of a location, whose initial value is known from now on.
    fn locate(&mut self, location: Location) -> u32 {
        let number = self.explore.location(location.key, location.size);
        let at = number as usize;
        if self.touched.len() <= at {
            self.touched.resize(at + 1, 0);
        }
        if self.touched[at] != self.execution {
            self.touched[at] = self.execution;
            if location.is_memory() && location.size <= 8 {
                // SAFETY: promised by who made the location.
                let initial = unsafe { peek(location.key, location.size) };
                self.explore.graph.locations[at].initial = initial;
            }
        }
        number
    }

    /// Takes the values of plain writes, which have been made by now, from memory.
    pub(crate) fn see_plain_writes(&mut self, thread: usize) {
        for id in std::mem::take(&mut self.unseen[thread]) {
            let event = self.explore.graph.get_mut(id);
            let (address, size) = self.explore.keys[event.location as usize];
            // SAFETY: promised by who made the location.
            event.value = unsafe { peek(address, size) };
        }
    }

    /// Returns where the round of a loop began that comes to this read again, if that round
    /// has changed nothing.
    fn round_since(&self, thread: usize, kind: Kind, location: u32, place: Place) -> Option<usize> {
        for index in (0..self.at[thread]).rev() {
            let event = &self.explore.graph.threads[thread][index];
            if event.kind == kind && event.location == location && event.place == place {
                let round = (place, location, self.at[thread] - index);
                return (self.options.rounds > 0 && !self.counted.contains(&round))
                    .then_some(index);
            }
            if !self.changes_nothing(thread, index) {
                return None;
            }
        }
        None
    }

    /// Checks that a thread accesses the location of an event that it repeats.
    fn is_same(&mut self, id: EventId, location: u32) -> Result<(), Status> {
        let event = self.explore.graph.get(id);
        if event.location == location {
            return Ok(());
        }
        if self.dry[id.thread()].is_some() {
            return Err(self.ends_by_itself(id.thread()));
        }
        let place = event.place;
        let message = format!(
            "thread {} accesses another location at {place} when it reads the same",
            id.thread
        );
        self.explore
            .fail(FailureKind::NotDeterministic, message, place);
        Err(Status::Blocked)
    }

    /// Returns whether memory is the same after an event: a read, a fence, or an update
    /// that wrote what it had read.
    fn changes_nothing(&self, thread: usize, index: usize) -> bool {
        let events = &self.explore.graph.threads[thread];
        match events[index].kind {
            Kind::Fence | Kind::PlainRead => true,
            Kind::UpdateWrite => events[index].value == events[index - 1].value,
            kind => kind.reads(),
        }
    }

    /// Returns the event that made a thread.
    pub(crate) fn parent(&self, thread: usize) -> Option<EventId> {
        let graph = &self.explore.graph;
        let makes = |id: &&EventId| graph.get(**id).kind == Kind::Spawn(thread as u16);
        graph.added.iter().find(makes).copied()
    }
}

fn access(
    state: &mut State,
    kind: Kind,
    location: Location,
    order: Ordering,
    place: Place,
) -> Access {
    Access {
        kind,
        order,
        location: state.locate(location),
        value: 0,
        exchange: None,
        place,
    }
}

/// Adds a read of a location to the graph, and returns the value that it reads.
fn read_as(
    kind: Kind,
    location: Location,
    order: Ordering,
    exchange: Option<Exchange>,
    place: Place,
    mut ends: impl FnMut(u64) -> bool,
) -> u64 {
    step(|state, thread| {
        state.see_plain_writes(thread);
        let number = state.locate(location);
        // What the graph has of a thread goes past its waits.
        if state.dry[thread].is_none()
            && state.at[thread] == state.explore.graph.len(thread)
            && let Some(since) = state.round_since(thread, kind, number, place)
            && (!state.explore.quiet || state.has_read_the_newest(thread, since))
        {
            let (next, rounds) = (since, 0);
            state.dry[thread] = Some(Dry {
                since,
                next,
                rounds,
            });
        }
        let id = match state.next(thread, kind, place)? {
            Some(id) => {
                state.is_same(id, number)?;
                let graph = &mut state.explore.graph;
                let value = graph.written(number, graph.get(id).source);
                let newest = graph.newest(number) == graph.get(id).source;
                let event = graph.get_mut(id);
                event.value = value;
                if let (Some(old), Some(new)) = (&mut event.exchange, exchange) {
                    old.expected = new.expected;
                }
                if !event.stuck && !ends(value) {
                    // Only what reads the newest can be revisited.
                    if !newest {
                        state.explore.discarded = true;
                        return Err(Status::Blocked);
                    }
                    event.stuck = true;
                    graph.set_clocks(id, None);
                }
                id
            }
            None => {
                let mut new = access(state, kind, location, order, place);
                new.exchange = exchange;
                state.at[thread] += 1;
                state.explore.add_read(thread, new, &mut ends)
            }
        };
        let event = state.explore.graph.get(id);
        match event.stuck {
            true => Err(Status::Waits),
            false => Ok(event.value),
        }
    })
}

/// Writes.
fn write_as(kind: Kind, location: Location, value: u64, order: Ordering, place: Place) {
    step(|state, thread| {
        state.see_plain_writes(thread);
        let mut new = access(state, kind, location, order, place);
        new.value = value;
        match state.next(thread, kind, place)? {
            // An address may be another one in another execution.
            Some(id) => {
                state.is_same(id, new.location)?;
                state.explore.graph.get_mut(id).value = value;
            }
            None => {
                state.at[thread] += 1;
                if state.explore.add_write(thread, new).is_err() {
                    state.explore.discarded = true;
                    return Err(Status::Blocked);
                }
                if state.explore.quiet {
                    state.look_again(new.location);
                }
            }
        }
        Ok(())
    });
}

/// Reads atomically.
pub fn load(location: Location, order: Ordering, place: Place) -> u64 {
    read_as(Kind::Load, location, order, None, place, |_| true)
}

/// Waits until it reads a value for which `ends` holds: one event, whatever the thread
/// has seen meanwhile. `ends` must depend on the value alone.
pub fn await_load(
    location: Location,
    order: Ordering,
    place: Place,
    ends: impl FnMut(u64) -> bool,
) -> u64 {
    read_as(Kind::Await, location, order, None, place, ends)
}

/// Writes atomically.
pub fn store(location: Location, value: u64, order: Ordering, place: Place) {
    write_as(Kind::Store, location, value, order, place);
}

/// Reads and, where `update` returns a value, writes it, in one atomic step. Returns what
/// was read. `update` must depend on the value alone.
pub fn rmw(
    location: Location,
    order: Ordering,
    place: Place,
    update: impl FnOnce(u64) -> Option<u64>,
) -> u64 {
    let old = read_as(Kind::UpdateRead, location, order, None, place, |_| true);
    if let Some(new) = update(old) {
        write_as(Kind::UpdateWrite, location, new, order, place);
    }
    old
}

/// Waits until it reads a value for which `update` returns one, and writes that, in one
/// atomic step. Returns what was read. `update` must depend on the value alone.
pub fn await_rmw(
    location: Location,
    order: Ordering,
    place: Place,
    update: impl Fn(u64) -> Option<u64>,
) -> u64 {
    let kind = Kind::UpdateRead;
    let old = read_as(kind, location, order, None, place, |value| {
        update(value).is_some()
    });
    if let Some(new) = update(old) {
        write_as(Kind::UpdateWrite, location, new, order, place);
    }
    old
}

/// The orderings of a compare-and-exchange.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// Where it writes.
    pub success: Ordering,
    /// Where it does not.
    pub failure: Ordering,
}

/// Writes `new` if it reads `expected`. Returns what was read: as `Ok` if `new` was
/// written. A `weak` one may fail without a reason, as often as
/// [`Options::weak_failures`](crate::Options::weak_failures) says.
pub fn compare_exchange(
    location: Location,
    expected: u64,
    new: u64,
    orders: Orders,
    weak: bool,
    place: Place,
) -> Result<u64, u64> {
    let may_fail =
        weak && with(|state| state.weak_failures[state.current] < state.options.weak_failures);
    if may_fail && choose(2, place) == 1 {
        with(|state| state.weak_failures[state.current] += 1);
        return Err(load(location, orders.failure, place));
    }
    let exchange = Exchange {
        expected,
        success: orders.success,
        failure: orders.failure,
    };
    let kind = Kind::UpdateRead;
    let old = read_as(
        kind,
        location,
        orders.success,
        Some(exchange),
        place,
        |_| true,
    );
    if old != expected {
        return Err(old);
    }
    write_as(Kind::UpdateWrite, location, new, orders.success, place);
    Ok(old)
}

/// Executes a fence.
pub fn fence(order: Ordering, place: Place) {
    step(|state, thread| {
        state.see_plain_writes(thread);
        if state.next(thread, Kind::Fence, place)?.is_none() {
            state.explore.add(thread, Kind::Fence, order, place);
            state.at[thread] += 1;
        }
        Ok(())
    });
}

/// Says that plain memory is about to be read. The caller reads it afterwards. Where the
/// newest write is atomic, its value is put into memory here.
pub fn read(location: Location, place: Place) {
    plain(Kind::PlainRead, location, None, place);
}

/// Says that plain memory is about to be written. The caller writes it afterwards, before
/// its next call of this module.
pub fn write(location: Location, place: Place) {
    plain(Kind::PlainWrite, location, None, place);
}

/// Begins the life of a location that has no memory, with this value: a plain write.
pub fn create(location: Location, value: u64, place: Place) {
    plain(Kind::PlainWrite, location, Some(value), place);
}

/// Ends the life of a location: whoever accesses it must have done so before.
pub fn retire(location: Location, place: Place) {
    plain(Kind::Free, location, None, place);
}

fn plain(kind: Kind, location: Location, value: Option<u64>, place: Place) {
    step(|state, thread| {
        let mut new = access(state, kind, location, Ordering::Relaxed, place);
        let number = new.location;
        new.value = value.unwrap_or(0);
        // The same again is no other event, until something else has happened.
        let graph = &state.explore.graph;
        let known = graph.threads.get(thread).is_some_and(|events| {
            let own = &events[..state.at[thread]];
            own.iter()
                .rev()
                .take_while(|event| event.kind.is_plain())
                .any(|event| {
                    event.location == number
                        && (event.kind == kind
                            || (kind, event.kind) == (Kind::PlainRead, Kind::PlainWrite))
                })
        });
        if known && kind != Kind::Free {
            return Ok(());
        }
        let id = match state.next(thread, kind, place)? {
            Some(id) => id,
            None => {
                state.at[thread] += 1;
                state.explore.add_plain(thread, new)
            }
        };
        let graph = &mut state.explore.graph;
        if let Some(value) = value {
            graph.get_mut(id).value = value;
        } else if kind == Kind::PlainWrite && location.is_memory() && location.size <= 8 {
            state.unseen[thread].push(id);
        } else if kind == Kind::PlainRead && location.is_memory() && location.size <= 8 {
            let source = graph.newest(number);
            if let Source::Write(write) = source
                && graph.get(write).kind.writes()
            {
                let bytes = graph.get(write).value.to_le_bytes();
                // SAFETY: promised by who made the location; the size is at most 8.
                unsafe {
                    let to = location.key as *mut u8;
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, location.size as usize);
                }
            }
        }
        Ok(())
    });
}

/// Creates a thread, and returns its number.
pub fn spawn(code: impl FnOnce() + 'static, place: Place) -> usize {
    let mut code = Some(code);
    step(|state, thread| {
        state.see_plain_writes(thread);
        let made = (thread, state.spawned[thread]);
        let next = state.children.len() + 1;
        let child = *state.children.entry(made).or_insert(next);
        if child >= MAX_THREADS {
            let message = format!("more than {MAX_THREADS} threads, the last at {place}");
            state.explore.fail(FailureKind::TooLong, message, place);
            return Err(Status::Blocked);
        }
        let kind = Kind::Spawn(child as u16);
        if state.next(thread, kind, place)?.is_none() {
            state.explore.add(thread, kind, Ordering::Relaxed, place);
            state.at[thread] += 1;
        }
        state.spawned[thread] += 1;
        if let Some(code) = code.take() {
            state.start(child, Box::new(code));
        }
        Ok(child)
    })
}

/// Waits until a thread has ended.
pub fn join(child: usize, place: Place) {
    step(|state, thread| {
        state.see_plain_writes(thread);
        if state.dry[thread].is_some() {
            return Err(state.ends_by_itself(thread));
        }
        if state.status[child] != Status::Ended {
            return Err(Status::Joins(child));
        }
        let kind = Kind::Join(child as u16);
        if state.next(thread, kind, place)?.is_none() {
            let last = state.explore.graph.len(child) - 1;
            let end = EventId::new(child, last);
            let order = Ordering::Relaxed;
            state
                .explore
                .add_after(thread, kind, order, place, Some(end));
            state.at[thread] += 1;
        }
        Ok(())
    });
}

/// Sets a test up in one order, which is the same in every execution: the thread that
/// calls goes on until it waits or [lets others run](let_others_run), each read sees the
/// newest, and all that is explored comes afterwards. It must come before anything else
/// has more than one outcome.
pub fn set_up(body: impl FnOnce()) {
    with(|state| state.set_up(true));
    body();
    with(|state| state.set_up(false));
}

/// Lets the other threads go on until they wait or end. What follows must not depend on it
/// outside of a [`set_up`].
pub fn let_others_run() {
    let mut asked = false;
    step(|state, thread| match std::mem::replace(&mut asked, true) {
        _ if state.dry[thread].is_some() => Err(state.ends_by_itself(thread)),
        false => {
            state.yields += 1;
            state.yielded[thread] = state.yields;
            Err(Status::Yields)
        }
        true => Ok(()),
    });
}

/// Returns the number of the thread that calls it; the first is 0.
pub fn thread_id() -> usize {
    with(|state| state.current)
}

/// Returns a number below `of`, each in executions of its own: what nothing else decides,
/// such as whether time is up.
pub fn choose(of: u32, place: Place) -> u32 {
    step(|state, thread| {
        state.see_plain_writes(thread);
        if state.next(thread, Kind::Choice(of), place)?.is_none() {
            state.explore.add_choice(thread, of, place);
            state.at[thread] += 1;
        }
        let index = state.at[thread] - 1;
        Ok(state.explore.graph.threads[thread][index].value as u32)
    })
}

/// Ends the execution for this thread unless the condition holds: what follows is of no
/// interest otherwise, and nobody who waits for it is a deadlock.
pub fn assume(condition: bool) {
    if !condition {
        block_forever();
    }
}

/// Stops this thread, as [`assume`] does.
pub fn block_forever() -> ! {
    step(|_, _| -> Result<(), Status> { Err(Status::Blocked) });
    unreachable!("a thread that is blocked does not go on")
}

/// Returns how many events this thread has gone through: for [`wait_round`].
pub fn position() -> usize {
    with(|state| state.at[state.current])
}

/// Says that a round of a loop, which began at this [`position`], has not ended a wait,
/// and that the next would do the same if it read the same. If the round has changed
/// nothing in memory, the thread waits here until it has read something else in it, so
/// the call does not return. If it has taken back what it has changed, as one that looks at
/// a word under a guard, the same holds unless somebody sees what the round has written:
/// then the call returns. Otherwise it returns, and the caller bounds the rounds.
pub fn wait_round(since: usize) {
    step(|state, thread| {
        let round = since..state.at[thread];
        let graph = &state.explore.graph;
        let quiet = |index: usize| {
            let writes = graph.threads[thread][index].kind.writes();
            !writes && state.changes_nothing(thread, index)
        };
        let known = state.at[thread] < graph.len(thread);
        let guided = |guide: &Guide| guide.front().is_some_and(|&(next, _)| next == thread);
        if known || round.is_empty() || state.explore.guide.as_ref().is_some_and(guided) {
            return Ok(());
        }
        let (goes_on, status) = match round.clone().all(quiet) {
            true => {
                let stale = || !state.has_read_the_newest(thread, since);
                (
                    state.live && state.explore.quiet && stale(),
                    Status::WaitsSince(since),
                )
            }
            false => {
                let of_use = || state.live && state.is_of_use(thread, since);
                let goes_on = !state.is_undone(thread, since) || of_use();
                (goes_on, Status::Undone(since))
            }
        };
        if goes_on { Ok(()) } else { Err(status) }
    });
}

/// Returns whether a round of a loop, which began at this [`position`], has taken back what
/// it has changed in memory.
pub fn is_undone(since: usize) -> bool {
    with(|state| {
        let thread = state.current;
        // What is seen now may be changed before the next event.
        let unseen = state.unseen[thread].clone();
        state.see_plain_writes(thread);
        state.unseen[thread] = unseen;
        state.is_undone(thread, since)
    })
}

/// Stops this thread since its loop, whose last round began at this [`position`], has run
/// often enough, and notes that executions with more rounds were left out. The next round
/// must do the same if it reads the same: where nobody else goes on, and the round has read
/// what there is, that is a deadlock.
pub fn cut_loop(since: usize, place: Place) -> ! {
    with(|state| *state.bounded.entry(place).or_default() += 1);
    step(|_, _| -> Result<(), Status> { Err(Status::Cut(since)) });
    unreachable!("a thread whose loop was cut does not go on")
}

/// Says that the execution fails, and why.
pub fn error(message: impl Into<String>, place: Place) -> ! {
    let message = message.into();
    with(|state| state.explore.fail(FailureKind::Assertion, message, place));
    block_forever()
}

/// Allocates memory, at the same address in each execution that comes here in the same
/// way. Its bytes are not zero.
pub fn allocate(size: usize, align: usize, place: Place) -> usize {
    step(|state, thread| {
        state.see_plain_writes(thread);
        let known = state.next(thread, Kind::Allocate, place)?;
        let Some(address) = state.arenas.allocate(thread, size, align) else {
            let message =
                format!("a thread allocates more than {ARENA} bytes, the last at {place}");
            state.explore.fail(FailureKind::TooLong, message, place);
            return Err(Status::Blocked);
        };
        if known.is_none() {
            let id = state
                .explore
                .add(thread, Kind::Allocate, Ordering::Relaxed, place);
            state.explore.graph.get_mut(id).value = address;
            state.at[thread] += 1;
        }
        state.allocated.insert(address, (size, place));
        Ok(address as usize)
    })
}

/// Frees memory that was allocated: whoever accesses it must have done so before.
pub fn free(address: usize, place: Place) {
    let size = step(|state, _| match state.allocated.get(&(address as u64)) {
        Some(&(size, _)) => Ok(size),
        None => {
            let message = format!("{address:#x}, freed at {place}, is not allocated");
            state.explore.fail(FailureKind::BadFree, message, place);
            Err(Status::Blocked)
        }
    });
    // SAFETY: the memory of the arenas lives as long as the exploration.
    let location = unsafe { Location::memory(address, size as u32) };
    retire(location, place);
    with(|state| state.allocated.remove(&(address as u64)));
}
