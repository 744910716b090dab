//! Has what the models are made of: a lock, a context for each thread, the data that
//! the lock protects, and the threads themselves.

use super::definition::Lock;
use crate::coverage;
use crate::execution::{self, MAX_THREADS, WaitRule};
use crate::journal::Operation;
use crate::specification::{Answer, Interface, Operation as Call, Reference, Wrong};
use crate::subject::{Context, Instance};
use crate::threads::{Data, Thread};
pub(crate) use crate::threads::{join, join_all, spawn};
use locklab_locks::{Fairness, Info};
use std::cell::RefCell;

/// A lock, a context for each thread, and the data that the lock protects.
pub(super) struct Table {
    lock: Box<dyn Instance>,
    /// Holds what its answers are compared with, one after the other.
    reference: RefCell<Reference>,
    pub(super) info: Info,
    contexts: Vec<Context>,
    /// Every access without a happens-before from the one before is a race,
    /// which the engine reports.
    data: Data,
    /// The threads that were inside, in order. Seen by the harness only.
    entered: RefCell<Vec<usize>>,
    /// The threads that have read inside, in order.
    read: RefCell<Vec<usize>>,
}

impl Table {
    pub(super) fn new(lock: &Lock, threads: usize) -> &'static Self {
        Self::with(lock, threads, false)
    }

    /// Lives until [`Table::finish`]; for ever if the model fails, because
    /// what loom has abandoned must not be dropped.
    pub(super) fn with(lock: &Lock, threads: usize, about_to_wrap: bool) -> &'static Self {
        Self::around(lock.make(about_to_wrap), lock.info(), threads)
    }

    /// Makes a table with a lock whose memory contains anything.
    pub(super) fn of_garbage(lock: &Lock, threads: usize) -> &'static Self {
        let made = execution::of_garbage(|| lock.make(false));
        Self::around(made, lock.info(), threads)
    }

    /// Makes a table with a lock of which all is asked that the reference knows: for
    /// threads that take several in one order, so that nothing is a deadlock, and tell
    /// where they wait.
    pub(super) fn strict(
        lock: &Lock,
        threads: usize,
        about_to_wrap: bool,
        in_order: bool,
    ) -> &'static Self {
        let table = Self::with(lock, threads, about_to_wrap);
        let interface = Interface {
            detects_deadlocks: false,
            overtakes: in_order.then_some(0),
            ..interface(&table.info)
        };
        *table.reference.borrow_mut() = Reference::new(interface, MAX_THREADS);
        table
    }

    fn around(lock: Box<dyn Instance>, info: Info, threads: usize) -> &'static Self {
        let (address, bytes) = lock.memory();
        execution::owns(None, address, bytes);
        let contexts = (0..threads).map(|cpu| context(&*lock, cpu)).collect();
        Box::leak(Box::new(Self {
            lock,
            reference: RefCell::new(reference(&info)),
            info,
            contexts,
            data: Data::new(),
            entered: RefCell::default(),
            read: RefCell::default(),
        }))
    }

    /// Returns the context of the thread that calls.
    pub(super) fn own(&self) -> &Context {
        &self.contexts[execution::cpu()]
    }

    /// Enters the critical section alone.
    #[track_caller]
    pub(super) fn enter(&self) {
        execution::remark(Operation::Enter, || {
            self.data.add(1);
            self.entered.borrow_mut().push(execution::cpu());
        });
    }

    /// Stays inside, where others may read too.
    #[track_caller]
    pub(super) fn enter_reading(&self) {
        execution::remark(Operation::Read, || {
            self.data.read();
            self.read.borrow_mut().push(self.entered.borrow().len());
        });
    }

    /// Returns who was inside, in order.
    pub(super) fn entered(&self) -> Vec<usize> {
        self.entered.borrow().clone()
    }

    /// Returns how many had been inside when each reader read.
    pub(super) fn read_after(&self) -> Vec<usize> {
        self.read.borrow().clone()
    }

    /// Calls an operation, and compares its answer with the reference's. The
    /// call is over, with all that it has put off, before another begins.
    fn call<R>(
        &self,
        call: Call,
        body: impl FnOnce() -> R,
        answer: impl FnOnce(&R) -> Answer,
    ) -> R {
        self.call_until(call, u64::MAX, body, answer)
    }

    fn call_until<R>(
        &self,
        call: Call,
        deadline: u64,
        body: impl FnOnce() -> R,
        answer: impl FnOnce(&R) -> Answer,
    ) -> R {
        let cpu = execution::cpu();
        // Two holders are a race of what they do inside, which loom reports.
        let right = |answer: Result<(), Wrong>| match answer {
            Ok(()) | Err(Wrong::TwoHolders) => {}
            Err(wrong) => panic!("{wrong}"),
        };
        right(self.reference.borrow_mut().begin(cpu, call));
        let result = body();
        execution::leave_lock();
        let in_time = execution::time() < deadline;
        let answer = answer(&result);
        coverage::called(call, answer);
        right(self.reference.borrow_mut().end(cpu, answer, in_time));
        result
    }

    pub(super) fn lock(&self) {
        self.lock_with(self.own());
    }

    pub(super) fn lock_with(&self, context: &Context) {
        // SAFETY: each thread uses its own context, one acquisition at a
        // time; the table stays in place.
        let body = || unsafe { self.lock.lock(context) };
        self.call(Call::Lock, body, |()| Answer::Done);
    }

    /// Acquires the lock; before each of its accesses `before_each` is called, and the accesses
    /// are counted until this thread keeps a place.
    pub(super) fn lock_watched(&'static self, before_each: impl Fn() + 'static) {
        let cpu = execution::cpu();
        execution::before_each_access(move || {
            let counted = self.reference.borrow_mut().accesses(cpu);
            counted.unwrap_or_else(|wrong| panic!("{wrong}"));
            before_each();
        });
        self.note_wait();
        self.lock();
        execution::before_no_access();
    }

    /// Notes that this thread keeps its place when it next waits without limit.
    fn note_wait(&'static self) {
        execution::interrupt_wait(move || {
            if execution::waits_without_limit() {
                self.reference.borrow_mut().waits(execution::cpu());
            } else {
                self.note_wait();
            }
        });
    }

    pub(super) fn try_lock(&self) -> bool {
        self.try_lock_with(self.own())
    }

    /// Tries without being allowed to wait.
    pub(super) fn try_lock_at_once(&self) -> bool {
        execution::set_wait_rule(WaitRule::MustNotWait);
        let got = self.try_lock();
        execution::set_wait_rule(WaitRule::Free);
        got
    }

    pub(super) fn try_lock_with(&self, context: &Context) -> bool {
        // SAFETY: as `lock_with`.
        let body = || unsafe { self.lock.try_lock(context) };
        if !self.info.try_lock {
            return body();
        }
        self.call(Call::TryLock, body, done_if)
    }

    pub(super) fn lock_until(&self, context: &Context, deadline: u64) -> bool {
        // SAFETY: as `lock_with`; the context stays and is used with this
        // lock only.
        let body = || unsafe { self.lock.lock_until(context, deadline) };
        self.call_until(Call::LockUntil, deadline, body, done_if)
    }

    /// Acquires, or fails for a reason of the lock's own.
    pub(super) fn lock_or_fail(&self) -> bool {
        // SAFETY: the lock has no contexts; the table stays in place.
        let body = || unsafe { self.lock.lock_or_fail() };
        self.call(Call::LockUntil, body, done_if)
    }

    /// Does the same with a lock that fails so for the sake of time after `limit` only.
    pub(super) fn lock_or_fail_within(&self, limit: u64) -> bool {
        let deadline = execution::time().saturating_add(limit);
        // SAFETY: as `lock_or_fail`.
        let body = || unsafe { self.lock.lock_or_fail() };
        self.call_until(Call::LockUntil, deadline, body, done_if)
    }

    /// Notes that this thread waits where it keeps its place.
    pub(super) fn keeps_place(&self) {
        self.reference.borrow_mut().waits(execution::cpu());
    }

    /// Returns how often this thread holds the lock.
    pub(super) fn levels(&self) -> u32 {
        self.reference.borrow().levels(execution::cpu())
    }

    /// Says whether the lock is held, as the calling thread, alone, knows.
    pub(super) fn says_it_is_locked(&self, held: bool) {
        let answer = self.lock.is_locked();
        assert_ne!(answer, Some(!held), "the lock is wrong about being held");
    }

    pub(super) fn is_idle(&self, context: &Context) -> bool {
        self.lock.is_idle(context)
    }

    pub(super) fn read(&self) {
        // SAFETY: as `lock_with`.
        let body = || unsafe { self.lock.read(self.own()) };
        self.call(Call::Read, body, |()| Answer::Done);
    }

    /// Tries to read, without being allowed to wait.
    pub(super) fn try_read(&self) -> bool {
        execution::set_wait_rule(WaitRule::MustNotWait);
        // SAFETY: as `lock_with`.
        let body = || unsafe { self.lock.try_read(self.own()) };
        let got = self.call(Call::TryRead, body, done_if);
        execution::set_wait_rule(WaitRule::Free);
        got
    }

    /// Makes the writer a reader.
    pub(super) fn downgrade(&self) {
        // SAFETY: the models call it while they hold the lock alone.
        let body = || unsafe { self.lock.downgrade() };
        self.call(Call::Downgrade, body, |()| Answer::Done);
    }

    pub(super) fn held(&self) -> bool {
        self.call(Call::Held, || self.lock.held(), done_if)
    }

    pub(super) fn release_all(&self) -> u32 {
        // SAFETY: as `unlock_with`, of each level.
        let body = || unsafe { self.lock.release_all() };
        self.call(Call::ReleaseAll, body, |&levels| Answer::Levels(levels))
    }

    pub(super) fn acquire_count(&self, levels: u32) {
        // SAFETY: as `lock_with`.
        let body = || unsafe { self.lock.acquire_count(levels) };
        self.call(Call::AcquireCount(levels), body, |()| Answer::Done);
    }

    /// Makes the lock free, whatever its memory contained. No other thread uses
    /// it.
    pub(super) fn init(&self) {
        // SAFETY: as the caller says.
        unsafe { self.lock.init() };
        execution::leave_lock();
        *self.reference.borrow_mut() = reference(&self.info);
    }

    /// Returns a context of the lock, of this thread.
    pub(super) fn context(&self) -> Context {
        context(&*self.lock, execution::cpu())
    }

    /// Acquires, and tells the others as soon as its doorway is done.
    pub(super) fn lock_and_arrive(&self) {
        execution::set_wait_rule(WaitRule::Doorway);
        self.lock();
        execution::arrive(execution::cpu());
    }

    /// Does the same for reading.
    pub(super) fn read_and_arrive(&self) {
        execution::set_wait_rule(WaitRule::Doorway);
        self.read();
        execution::arrive(execution::cpu());
    }

    pub(super) fn unlock(&self) {
        self.unlock_with(self.own());
    }

    pub(super) fn unlock_with(&self, context: &Context) {
        // SAFETY: the models call it after they have acquired.
        let body = || unsafe { self.lock.unlock(context) };
        self.call(Call::Unlock, body, |()| Answer::Done);
    }

    /// Releases one reader.
    pub(super) fn read_unlock(&self) {
        // SAFETY: the models call it while they read.
        let body = || unsafe { self.lock.read_unlock(self.own()) };
        self.call(Call::ReadUnlock, body, |()| Answer::Done);
    }

    /// Acquires, uses the data, releases.
    pub(super) fn section(&self) {
        self.lock();
        self.enter();
        self.unlock();
    }

    /// Does what `section` does; the others know when its doorway is done.
    pub(super) fn section_and_arrive(&self) {
        self.lock_and_arrive();
        self.enter();
        self.unlock();
    }

    /// Reads the data, where others may read too.
    pub(super) fn read_section(&self) {
        self.read();
        self.enter_reading();
        self.read_unlock();
    }

    /// Does what `section` does, and reads before it releases.
    pub(super) fn section_and_downgrade(&self) {
        self.lock();
        self.enter();
        let entered = self.entered.borrow().len();
        self.downgrade();
        assert_eq!(
            self.entered.borrow().len(),
            entered,
            "a writer enters while the one before becomes a reader"
        );
        self.enter_reading();
        self.read_unlock();
    }

    /// Does what `section` does, if that needs no waiting.
    pub(super) fn try_section(&self) {
        if self.try_lock() {
            self.enter();
            self.unlock();
        }
    }

    /// Enters a section, unless the time is over before.
    pub(super) fn section_in_time(&self) {
        if self.lock_until(self.own(), 1) {
            self.enter();
            self.unlock();
        }
    }

    /// Checks, when all threads are done, that the lock is free to those who wait and
    /// to those who try, and that no update is lost.
    pub(super) fn finish(&'static self) {
        self.lock();
        self.says_it_is_locked(true);
        self.enter();
        self.unlock();
        self.says_it_is_locked(false);
        if self.info.try_lock {
            assert!(
                self.try_lock(),
                "try_lock fails on a lock that is free again"
            );
            self.enter();
            self.unlock();
        }
        let entered = self.entered.borrow().len();
        if let Some(what) = execution::left_behind() {
            panic!("{what}");
        }
        let data = self.data.read();
        assert_eq!(data as usize, entered, "an update of the data is lost");
        self.abandon();
    }

    /// Ends the table when all threads are done, and the lock need not be free.
    pub(super) fn abandon(&'static self) {
        // SAFETY: made by `Box::leak` in `around`; the threads that shared it
        // have ended, and the caller does not use it again.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self).cast_mut()) });
    }
}

fn done_if(done: &bool) -> Answer {
    if *done { Answer::Done } else { Answer::No }
}

/// A number of accesses greater than any lock makes before its caller keeps a place, if
/// there is one to keep.
const MOST_ACCESSES: u32 = 200;

/// Returns what a lock that says this of itself may answer.
fn reference(info: &Info) -> Reference {
    Reference::new(interface(info), MAX_THREADS)
}

fn interface(info: &Info) -> Interface {
    Interface {
        recursive: info.recursive,
        detects_deadlocks: info.held_locks,
        sequentially_consistent: false,
        accesses: (info.fairness != Fairness::Unfair).then_some(MOST_ACCESSES),
        // Models of their own say who comes after whom.
        overtakes: None,
    }
}

/// Returns a new context, of thread `cpu`.
fn context(lock: &dyn Instance, cpu: usize) -> Context {
    let (context, address, bytes) = lock.context();
    if bytes > 0 {
        execution::owns(Some(cpu), address, bytes);
    }
    context
}

// SAFETY: modelled threads are coroutines of one OS thread; what they share
// without loom's knowledge is only touched between two switches.
unsafe impl Sync for Table {}

/// Runs `body` in `threads` modelled threads, the main one among them.
pub(super) fn run(
    table: &'static Table,
    threads: usize,
    body: impl Fn(&'static Table, usize) + Copy + 'static,
) {
    let others: Vec<_> = (1..threads)
        .map(|cpu| spawn(cpu, move || body(table, cpu)))
        .collect();
    body(table, 0);
    join_all(others);
    table.finish();
}

/// Holds what the threads of a model share that is about no lock, and data.
pub(crate) struct Shared<T> {
    pub(crate) inner: T,
    data: Data,
}

// SAFETY: as `Table`; loom reports two that use a cell at once.
unsafe impl<T> Sync for Shared<T> {}

impl<T: 'static> Shared<T> {
    /// Adds to the data, and returns it. An access without a happens-before
    /// from the one before is a race.
    pub(crate) fn add(&self, more: u32) -> u32 {
        self.data.add(more)
    }

    /// Reads the data, beside others that read it.
    pub(crate) fn read(&self) -> u32 {
        self.data.read()
    }

    /// Runs each body in a thread, the first in the main one.
    pub(crate) fn run<const N: usize>(inner: T, bodies: [fn(&Self); N]) -> Box<Self> {
        let data = Data::new();
        // For ever if the model fails: what loom has abandoned is not dropped.
        let shared: &'static Self = Box::leak(Box::new(Self { inner, data }));
        let begin = |cpu: usize| spawn(cpu, move || bodies[cpu](shared));
        let others: Vec<_> = (1..N).map(begin).collect();
        bodies[0](shared);
        join_all(others);
        // SAFETY: made above; the other threads have ended.
        unsafe { Box::from_raw(std::ptr::from_ref(shared).cast_mut()) }
    }
}

/// Turns enough for a thread to fall asleep, if it does.
pub(super) const TURNS: usize = 4;

/// Lets the others go on until they wait.
pub(super) fn let_others_wait(turns: usize) {
    execution::let_others_run(turns);
}

/// Starts `body` as thread `cpu`, which goes on until it waits.
pub(super) fn spawn_until_it_waits(cpu: usize, body: impl FnOnce() + 'static) -> Thread {
    let thread = spawn(cpu, body);
    let_others_wait(TURNS);
    thread
}

/// Lets these CPUs wait behind a holder, one after the other, until it lets go; returns
/// who has entered, in order. In one order of many.
pub(super) fn entered_behind_a_holder<const WAITERS: usize>(
    table: &'static Table,
    cpus: [usize; WAITERS],
    section: fn(&Table),
) -> Vec<usize> {
    execution::set_up(|| {
        table.lock();
        let others = cpus.map(|cpu| spawn_until_it_waits(cpu, move || section(table)));
        table.enter();
        table.unlock();
        join_all(others);
    });
    table.entered()
}

/// Waits, while a model is set up, until so many have been inside.
pub(super) fn await_entered(table: &Table, entered: usize) {
    /// Turns enough for three waiters to enter and leave.
    const MANY_TURNS: usize = 1_000;
    let mut turns = 0;
    while table.entered().len() < entered {
        turns += 1;
        assert!(turns < MANY_TURNS, "deadlock: the waiters do not enter");
        let_others_wait(1);
    }
}
