//! A lock of the user's own in the hands of our programs: what a thread may do with it, and
//! the threads themselves.
//!
//! The code of the lock runs as that of a test does. Around it are the data that it
//! protects, which everyone inside accesses by plain accesses: whoever should not be there
//! races. Nothing here may judge otherwise than by an error of the execution.

use super::calls::end_thread;
use super::hooks::{NOWHERE, error, flush};
use super::world::{Owner, with};
use crate::inspect::Facts;
use crate::isolate;
use crate::library::Library;
use locklab_graph::MAX_THREADS;
use locklab_graph::model::{self, Location};
use locklab_verify::note_call;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The lock's code and what its file says, for the whole process.
pub(super) struct Code {
    pub(super) library: Library,
    pub(super) facts: Facts,
}

/// A lock, a context for each thread, and the data that it protects.
#[derive(Clone, Copy)]
pub(super) struct Table {
    code: &'static Code,
    lock: usize,
    contexts: [usize; MAX_THREADS],
    /// The number of those who were inside as writers, and then who they were.
    data: usize,
    waits: usize,
}

/// What is counted for a reader that is inside.
pub(super) const READER: u64 = 1 << 32;

/// What is wrong if the count says that somebody is there.
pub(super) const AT_ONCE: &str =
    "two threads are inside at the same time: their accesses are not ordered";

/// The most who are written down.
const MOST_INSIDE: usize = 31;

/// Fails the execution.
pub(super) fn fails(why: &str) -> ! {
    let site = isolate::SITE.load(Ordering::Relaxed);
    error(why, site)
}

/// Returns the location of a word of ours.
fn word(address: usize) -> Location {
    // SAFETY: memory of the exploration's own.
    unsafe { Location::memory(address, 8) }
}

impl Table {
    /// Makes a lock for so many threads, before the first of them is created.
    pub(super) fn new(code: &'static Code, threads: usize) -> Self {
        let (lock_bytes, ctx_bytes) = (code.facts.lock_bytes, code.facts.ctx_bytes);
        let mut contexts = [0; MAX_THREADS];
        let table = with(|world| {
            let lock = world.make(Owner::Lock, lock_bytes);
            for (thread, context) in contexts.iter_mut().enumerate().take(threads) {
                *context = world.make(Owner::Context(thread), ctx_bytes);
            }
            Self {
                code,
                lock,
                contexts,
                data: world.make(Owner::Data, 8 * (MOST_INSIDE + 1)),
                waits: world.make(Owner::Waits, 8 * MAX_THREADS),
            }
        });
        if let Some(init) = code.library.init {
            // SAFETY: the lock in its place, before its first use.
            table.run(|| unsafe { init(lock_of(table)) });
        }
        table
    }

    pub(super) fn facts(self) -> &'static Facts {
        &self.code.facts
    }

    /// Returns the memory of the lock, of this thread's context, and static data.
    pub(super) fn memory(self) -> [Range<usize>; 3] {
        let context = self.contexts[model::thread_id()];
        [
            self.lock..self.lock + self.facts().lock_bytes,
            context..context + self.facts().ctx_bytes,
            self.code.library.data.clone(),
        ]
    }

    /// Calls the lock's code.
    #[inline(never)]
    fn run<R>(self, call: impl FnOnce() -> R) -> R {
        let marker = 0_u8;
        let me = model::thread_id();
        with(|world| {
            let thread = &mut world.threads[me];
            thread.entry = std::ptr::from_ref(&marker) as usize;
            thread.loops.begin_call();
            thread.sites.clear();
        });
        let result = call();
        flush(with(|world| world.threads[me].site));
        result
    }

    fn act(self, act: crate::library::Act) {
        let context = self.contexts[model::thread_id()];
        // SAFETY: the lock in its place, with the thread's own context, which has one
        // acquisition at a time.
        self.run(|| unsafe { act(lock_of(self), context as *mut _) });
    }

    fn attempt(self, attempt: Option<crate::library::Try>) -> bool {
        let context = self.contexts[model::thread_id()];
        let attempt = attempt.expect("who tries has asked whether the lock can");
        // SAFETY: as `act`.
        self.run(|| unsafe { attempt(lock_of(self), context as *mut _) } != 0)
    }

    pub(super) fn lock(self) {
        self.act(self.code.library.lock);
        note_call("lock", true);
    }

    pub(super) fn unlock(self) {
        self.act(self.code.library.unlock);
        note_call("unlock", true);
    }

    pub(super) fn read(self) {
        self.act(self.code.library.read_lock);
        note_call("read", true);
    }

    pub(super) fn read_unlock(self) {
        self.act(self.code.library.read_unlock);
        note_call("read_unlock", true);
    }

    pub(super) fn downgrade(self) {
        let downgrade = self.code.library.downgrade;
        self.act(downgrade.expect("who downgrades has asked whether the lock can"));
        note_call("downgrade", true);
    }

    pub(super) fn try_lock(self) -> bool {
        let got = self.attempt(self.code.library.try_lock);
        note_call("try_lock", got);
        got
    }

    pub(super) fn try_read(self) -> bool {
        let got = self.attempt(self.code.library.try_read);
        note_call("try_read", got);
        got
    }

    /// Checks what the lock says of itself.
    pub(super) fn says_it_is_locked(self, locked: bool) {
        let Some(ask) = self.code.library.is_locked else {
            return;
        };
        // SAFETY: the lock in its place.
        if self.run(|| unsafe { ask(lock_of(self)) } != 0) != locked {
            fails(match locked {
                true => "lab_is_locked says that a lock is free that is held",
                false => "lab_is_locked says that a lock is held that is free",
            });
        }
    }

    /// Returns what the code of a litmus test says at its end.
    pub(super) fn outcome(self) -> u64 {
        let ask = self.code.library.is_locked;
        let ask = ask.expect("a program says how it has ended");
        // SAFETY: the lock in its place.
        self.run(|| unsafe { ask(lock_of(self)) }) as u64
    }

    /// Is inside, as a writer.
    pub(super) fn enter(self) {
        if self.is_counted(1, |inside| inside != 0) {
            return;
        }
        model::write(word(self.data), NOWHERE);
        let me = model::thread_id();
        let data = self.data as *mut u64;
        // SAFETY: memory of ours, which no other thread accesses unless it races, which ends
        // the execution.
        unsafe {
            let before = *data as usize;
            *data += 1;
            *data.add(1 + before.min(MOST_INSIDE - 1)) = me as u64;
        }
    }

    /// Is inside, as a reader.
    pub(super) fn look(self) {
        if self.is_counted(READER, |inside| inside % READER != 0) {
            return;
        }
        model::read(word(self.data), NOWHERE);
    }

    /// Counts this thread in and out, if that is asked: nobody must be there with whom it
    /// `conflicts`.
    fn is_counted(self, one: u64, conflicts: impl Fn(u64) -> bool) -> bool {
        let counts = with(|world| world.counts && world.live);
        if counts {
            let inside = word(self.data);
            let change = |by: u64| {
                // Nobody learns anything by it.
                model::rmw(inside, Ordering::Relaxed, NOWHERE, |old| {
                    Some(old.wrapping_add(by))
                })
            };
            if conflicts(change(one)) {
                fails(AT_ONCE);
            }
            change(one.wrapping_neg());
        }
        counts
    }

    /// Returns who was inside as a writer so far.
    pub(super) fn entered(self) -> Vec<usize> {
        // SAFETY: as `enter`.
        let data = unsafe { std::slice::from_raw_parts(self.data as *const u64, MOST_INSIDE + 1) };
        let number = (data[0] as usize).min(MOST_INSIDE);
        data[1..=number].iter().map(|who| *who as usize).collect()
    }

    pub(super) fn section(self) {
        self.lock();
        self.enter();
        self.unlock();
    }

    pub(super) fn read_section(self) {
        self.read();
        self.look();
        self.read_unlock();
    }

    pub(super) fn try_section(self) -> bool {
        let got = self.try_lock();
        if got {
            self.enter();
            self.unlock();
        }
        got
    }

    pub(super) fn try_read_section(self) -> bool {
        let got = self.try_read();
        if got {
            self.look();
            self.read_unlock();
        }
        got
    }

    /// Creates a thread, and waits until it waits for the lock or says that it is in.
    pub(super) fn spawn_until_it_waits(self, act: impl FnOnce() + 'static) -> usize {
        let tells = self.waits;
        let thread = spawn(move || {
            let me = model::thread_id();
            with(|world| world.threads[me].tells = Some(tells + 8 * me));
            act();
        });
        // Pairs with the Release by which it says so.
        let flag = word(tells + 8 * thread);
        model::await_load(flag, Ordering::Acquire, NOWHERE, |waits| waits == 1);
        thread
    }

    /// Waits until so many threads have come here.
    pub(super) fn meet(self, threads: u64) {
        // Each pairs with the others.
        let flag = word(self.waits);
        model::rmw(flag, Ordering::AcqRel, NOWHERE, |met| Some(met + 1));
        model::await_load(flag, Ordering::Acquire, NOWHERE, |met| met >= threads);
    }

    /// Says that this thread waits no longer.
    pub(super) fn says_that_it_is_in(self) {
        let me = model::thread_id();
        if with(|world| world.threads[me].tells.take().is_some()) {
            // Pairs with the Acquire of `spawn_until_it_waits`.
            model::store(word(self.waits + 8 * me), 1, Ordering::Release, NOWHERE);
        }
    }

    /// Waits until [`Self::lets_leave`] is called for this thread.
    pub(super) fn await_leave(self) {
        // Pairs with the Release there.
        let flag = word(self.waits + 8 * (model::thread_id() + MAX_THREADS / 2));
        model::await_load(flag, Ordering::Acquire, NOWHERE, |may| may == 1);
    }

    /// Lets another thread leave.
    pub(super) fn lets_leave(self, thread: usize) {
        // Pairs with the Acquire of `await_leave`.
        let flag = word(self.waits + 8 * (thread + MAX_THREADS / 2));
        model::store(flag, 1, Ordering::Release, NOWHERE);
    }

    /// Returns how often this was asked before and now.
    pub(super) fn count(self) -> u64 {
        // Nothing is learnt from it.
        let word = word(self.waits + 8 * (MAX_THREADS - 1));
        model::rmw(word, Ordering::Relaxed, NOWHERE, |count| Some(count + 1)) + 1
    }

    /// Ends the life of the lock.
    pub(super) fn end(self) {
        // SAFETY: the lock's memory.
        let all = unsafe { Location::memory(self.lock, self.facts().lock_bytes as u32) };
        model::retire(all, NOWHERE);
    }

    /// Checks that the lock is free once all threads have ended.
    pub(super) fn finish(self) {
        self.says_it_is_locked(false);
        self.section();
    }
}

fn lock_of(table: Table) -> *mut std::ffi::c_void {
    table.lock as *mut _
}

/// Creates a thread.
pub(super) fn spawn(act: impl FnOnce() + 'static) -> usize {
    with(|world| world.live = true);
    model::spawn(
        move || {
            act();
            end_thread(0);
        },
        NOWHERE,
    )
}

/// Waits for the end of threads.
pub(super) fn join(threads: impl IntoIterator<Item = usize>) {
    for thread in threads {
        model::join(thread, NOWHERE);
    }
}

/// Runs this once in each thread, the first of which is this one, and then looks whether
/// the lock is free.
pub(super) fn together(table: Table, threads: usize, act: fn(Table, usize)) {
    let others: Vec<usize> = (1..threads)
        .map(|cpu| spawn(move || act(table, cpu)))
        .collect();
    act(table, 0);
    join(others);
    table.finish();
}

/// Lets `body` interrupt what this thread does with the lock from now on, once.
pub(super) fn interrupted_by(body: impl Fn() + 'static) {
    let me = model::thread_id();
    with(|world| world.threads[me].interrupt = Some(Rc::new(body)));
}

/// Takes the first lock; an interrupt while this thread waits for it takes the others.
pub(super) fn descend(tables: &[Table]) {
    let Some((table, rest)) = tables.split_first() else {
        return;
    };
    let (me, rest) = (model::thread_id(), rest.to_vec());
    let body: Rc<dyn Fn()> = Rc::new(move || descend(&rest));
    with(|world| world.threads[me].interrupts_wait = Some(body));
    table.section();
}

/// Does this in one order, the same in every execution, until all threads wait.
pub(super) fn set_up<R>(body: impl FnOnce() -> R) -> R {
    let mut result = None;
    model::set_up(|| {
        result = Some(body());
        model::let_others_run();
    });
    result.expect("set above")
}

/// Lets nothing interrupt this thread any more.
pub(super) fn not_interrupted() {
    let me = model::thread_id();
    with(|world| world.threads[me].interrupt = None);
}
