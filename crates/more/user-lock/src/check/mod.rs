//! A compiled lock under the model checker: each access that it reports is a
//! step of the model.
//!
//! The lock's memory stays unchanged, and holds the newest value of each word;
//! beside it each word that is accessed has a word of the checker's, which
//! decides what a read sees. The boundaries and widths of words are learnt: an
//! access that does not fit begins the model again. A plain read is a relaxed
//! load whose value stays in memory until the thread's next access; a plain
//! write is a relaxed store there. One that races is a failed promise
//! ([`race`]). A loop that repeats ([`crate::repeat`])
//! waits as `spin` does, and is pruned likewise.
//!
//! It must never run outside a model: its state belongs to one execution.

mod access;
mod bounds;
mod hooks;
mod race;
mod used;
mod waits;
mod word;
mod world;

use crate::inspect::{self, Facts};
use crate::isolate;
use crate::library::Library;
use hooks::{HOOKS, flush};
use locklab_locks::{Fairness, Info};
use locklab_verify::{Claims, Context, Instance, Property, Subject};
use std::collections::HashMap;
use std::mem::take;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
pub(crate) use world::Rules;
use world::{MOST_CONTEXTS, MOST_LOCKS, World, lines, make_words, thread, with};

/// The promise among the CPUs with the greatest numbers: the last entries of each
/// table, and names with all their bits.
const LAST_CPUS: &str = "the last CPUs";

/// Returns the promises of a lock that was compiled for the checker; `kept` lives as
/// long as they do.
pub(crate) fn promises(
    library: PathBuf,
    facts: Facts,
    rules: Rules,
    kept: impl Send + Sync + 'static,
) -> Vec<Property> {
    let lock: Arc<dyn Subject> = Arc::new(Checked {
        facts: facts.clone(),
    });
    let most = facts.max_cpus.unwrap_or(usize::MAX);
    let mut all = locklab_verify::promises(&lock);
    let numbered = facts.max_cpus.is_some();
    let claims = Claims {
        numbered,
        try_read: facts.try_read,
        readers_pass: facts.readers_pass,
        levels: facts.nesting.unwrap_or(usize::MAX),
        interrupts: facts.interrupts,
    };
    all.extend(locklab_verify::promises_of_own(&lock, claims));
    if facts.readers_share {
        all.extend(locklab_verify::promises_of_readers(&lock, claims));
    }
    if numbered {
        let of_queues = all
            .iter()
            .find(|property| property.name == "nesting of three CPUs");
        all.extend(of_queues.cloned().map(|mut property| {
            property.name = LAST_CPUS;
            property
        }));
    }
    let levels = if facts.interrupts { claims.levels } else { 1 };
    let world = Arc::new((library, facts, kept));
    all.into_iter()
        .filter(|property| property.threads <= most && property.levels <= levels)
        .map(|property| {
            let world = world.clone();
            let last_cpus = property.name == LAST_CPUS;
            let property = match world.1.init {
                true => property,
                false => property.never_held(used::NO_INIT),
            };
            property
                .of_operations()
                .prepared(move || World::load(&world.0, &world.1, rules, HOOKS))
                .after(move || {
                    World::begin();
                    with(|world| world.last_cpus = last_cpus);
                })
        })
        .collect()
}

/// Returns the file as a program of so many threads ([`locklab_verify::litmus`]).
pub(crate) fn litmus(
    library: PathBuf,
    facts: Facts,
    rules: Rules,
    threads: usize,
    kept: impl Send + Sync + 'static,
) -> Property {
    let program: Arc<dyn Subject> = Arc::new(Checked {
        facts: facts.clone(),
    });
    locklab_verify::litmus(&program, threads)
        .of_operations()
        .prepared(move || {
            let _ = &kept;
            World::load(&library, &facts, rules, HOOKS);
        })
        .after(World::begin)
}

/// The lock in the form that the models take.
struct Checked {
    facts: Facts,
}

/// One lock of an execution, by its place in the pool.
struct CheckedLock {
    address: usize,
}

/// A context's place in the pool.
struct CheckedContext(usize);

impl Subject for Checked {
    fn info(&self) -> Info {
        Info {
            try_lock: self.facts.try_lock,
            readers_share: self.facts.readers_share,
            fairness: if self.facts.fifo {
                Fairness::Fifo
            } else {
                Fairness::Unfair
            },
            ..inspect::INFO
        }
    }

    fn make(&self, about_to_wrap: bool) -> Box<dyn Instance> {
        let (address, bytes, init) = with(|world| {
            let bytes = 64 * lines(world.facts.lock_bytes);
            assert!(world.locks < MOST_LOCKS, "a model makes too many locks");
            let address = world.start() + world.locks * bytes;
            world.locks += 1;
            world.alive += 1;
            (address, bytes, world.library.init)
        });
        if let Some(init) = init {
            with(|world| world.quiet = true);
            // SAFETY: the lock in its place, before its first use.
            unsafe { init(address as *mut _) };
            with(|world| world.quiet = false);
        }
        if about_to_wrap {
            used::use_up(address, new_context().0);
        }
        // Static data that it may have initialised, such as per-CPU data.
        let (data, old) = with(|world| {
            let data = world.library.data.clone();
            let old: Vec<usize> = world
                .words
                .keys()
                .copied()
                .filter(|first| data.contains(first))
                .collect();
            (data, old)
        });
        if init.is_some() || about_to_wrap || old.is_empty() {
            for first in old {
                drop(with(|world| world.words.remove(&first)));
            }
            make_words(data.start, data.end);
        }
        locklab_verify::owns_static_data(data.start, data.len());
        make_words(address, address + bytes);
        Box::new(CheckedLock { address })
    }
}

impl Drop for CheckedLock {
    fn drop(&mut self) {
        let words = with(|world| {
            world.alive -= 1;
            match world.alive {
                0 => take(&mut world.words),
                _ => HashMap::new(),
            }
        });
        // In an order that is the same in every execution.
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable_by_key(|(first, _)| *first);
        drop(words);
    }
}

/// Returns the memory of one more context: its address, and the bytes there.
fn new_context() -> (usize, usize) {
    with(|world| {
        let room = 64 * lines(world.facts.ctx_bytes);
        let first = world.start() + MOST_LOCKS * 64 * lines(world.facts.lock_bytes);
        assert!(
            world.contexts < MOST_CONTEXTS,
            "a model makes too many contexts"
        );
        let address = first + world.contexts * room;
        world.contexts += 1;
        (address, room)
    })
}

impl CheckedLock {
    /// Calls the lock's code on a context.
    fn call<R>(&self, context: &Context, f: impl FnOnce(&Library, usize, usize) -> R) -> R {
        let context = context
            .downcast_ref::<CheckedContext>()
            .expect("a context of this lock")
            .0;
        self.run(|library| f(library, self.address, context))
    }

    /// Calls the lock's code.
    #[inline(never)]
    fn run<R>(&self, f: impl FnOnce(&Library) -> R) -> R {
        let marker = 0_u8;
        let me = thread();
        isolate::CPU.store(me, Ordering::Relaxed);
        // An interrupt may occur here while the thread waits.
        let (library, before) = with(|world| {
            let before = take(&mut world.threads[me]);
            world.threads[me]
                .at
                .enter(std::ptr::from_ref(&marker) as usize);
            (world.library.clone(), before)
        });
        let result = f(&library);
        flush(0);
        with(|world| world.threads[me] = before);
        result
    }
}

impl Instance for CheckedLock {
    fn memory(&self) -> (usize, usize) {
        (self.address, with(|world| world.facts.lock_bytes))
    }

    fn context(&self) -> (Context, usize, usize) {
        let (address, room) = new_context();
        make_words(address, address + room);
        let bytes = with(|world| world.facts.ctx_bytes);
        // A context of size zero has no name in a trace.
        let shown = if bytes > 1 { bytes } else { 0 };
        (Box::new(CheckedContext(address)), address, shown)
    }

    unsafe fn lock(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.lock)(lock as *mut _, context as *mut _) }
        });
    }

    unsafe fn try_lock(&self, context: &Context) -> bool {
        self.call(context, |library, lock, context| match library.try_lock {
            // SAFETY: the caller's promise, passed on.
            Some(take) => unsafe { take(lock as *mut _, context as *mut _) != 0 },
            None => false,
        })
    }

    unsafe fn unlock(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.unlock)(lock as *mut _, context as *mut _) }
        });
    }

    fn is_locked(&self) -> Option<bool> {
        let ask = with(|world| world.library.is_locked)?;
        // SAFETY: the lock in its place.
        Some(self.run(|_| unsafe { ask(self.address as *const _) } != 0))
    }

    fn outcome(&self) -> u64 {
        let ask = with(|world| world.library.is_locked);
        let ask = ask.expect("a program says how it has ended");
        // SAFETY: the lock in its place.
        self.run(|_| unsafe { ask(self.address as *const _) }) as u64
    }

    unsafe fn read(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_lock)(lock as *mut _, context as *mut _) }
        });
    }

    unsafe fn try_read(&self, context: &Context) -> bool {
        self.call(context, |library, lock, context| match library.try_read {
            // SAFETY: the caller's promise, passed on.
            Some(take) => unsafe { take(lock as *mut _, context as *mut _) != 0 },
            None => false,
        })
    }

    unsafe fn read_unlock(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_unlock)(lock as *mut _, context as *mut _) }
        });
    }
}
