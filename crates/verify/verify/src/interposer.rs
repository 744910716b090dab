//! Checks what the interposer does with atomics beside its locks
//! ([`locklab_pthread_protocols`]), in the checker's world.
//!
//! A lock without `try_lock` is one with it behind the gate, and promises what
//! every such lock does. The waiters of a condition variable promise that no
//! signal is lost and that the memory of who was woken is left alone (its end
//! counts as an access); what is published, that who sees the word sees the
//! contents; a slot, that its uses come one after the other.

use crate::execution;
use crate::journal::{Entry, Operation, Place};
use crate::mutation::{self, Kind};
use crate::parking::World;
use crate::platform::{Loom, Word};
use crate::property::{Property, Shared, announced, passed_while_it_sleeps, promises};
use crate::subject::subject;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock, Ticket, queue::Clh, queue::ClhHandle};
use locklab_pthread_protocols::condition::{Waiter, Waiters, WakeAt};
use locklab_pthread_protocols::front::Front;
use locklab_pthread_protocols::gate::{Gate, at_first};
use locklab_pthread_protocols::guarded::Guarded;
use locklab_pthread_protocols::publication::published_or;
use locklab_pthread_protocols::slot::Use;
use loom::sync::atomic::AtomicU32;

/// The name under which it is verified.
pub const INTERPOSER: &str = "interposer";

const FRONT: &[&str] = &["pthread-protocols/src/front.rs"];
const GATE: &[&str] = &["pthread-protocols/src/gate.rs"];
const CONDITION: &[&str] = &["pthread-protocols/src/condition.rs"];
const PUBLICATION: &[&str] = &["pthread-protocols/src/publication.rs"];
const SLOT: &[&str] = &["pthread-protocols/src/slot.rs"];

type U32 = Word<AtomicU32>;

/// CLH and the gate beside it (held, gate, gated), as under a mutex. With
/// `ALONE`, the main thread uses it as the only one where it is that. Without
/// `HEAVY` there are no fences: a light one, which is a full one here, does
/// more for the stores that follow it than it may.
struct Gated<const ALONE: bool, const HEAVY: bool = true>(Clh<Loom>, [U32; 3]);

impl<const ALONE: bool, const HEAVY: bool> Default for Gated<ALONE, HEAVY> {
    fn default() -> Self {
        let words = [0, 0, at_first::<World<HEAVY>>()];
        Self(Clh::default(), words.map(U32::new))
    }
}

impl<const ALONE: bool, const HEAVY: bool> Gated<ALONE, HEAVY> {
    fn gate(&self) -> Gate<'_, World<HEAVY>, Loom> {
        Gate::new(&self.1[0], &self.1[1], &self.1[2])
    }
}

// SAFETY: this is what is being checked.
unsafe impl<const ALONE: bool, const HEAVY: bool> RawLock<Loom> for Gated<ALONE, HEAVY> {
    type Ctx = ClhHandle<Loom>;

    const INFO: Info = Info {
        name: INTERPOSER,
        try_lock: true,
        ..<Clh<Loom> as RawLock<Loom>>::INFO
    };

    unsafe fn lock(&self, handle: &ClhHandle<Loom>) {
        if !(ALONE && execution::is_alone() && self.gate().enter_alone()) {
            // SAFETY: the caller's promise is the same.
            unsafe { self.0.lock(handle) };
            self.gate().enter();
        }
    }

    unsafe fn try_lock(&self, _: &ClhHandle<Loom>) -> bool {
        self.gate().try_enter()
    }

    unsafe fn unlock(&self, handle: &ClhHandle<Loom>) {
        let left = ALONE && execution::is_alone() && self.gate().leave_alone();
        if !left && self.gate().leave() {
            // SAFETY: the caller's promise is the same.
            unsafe { self.0.unlock(handle) };
        }
    }
}

/// A ticket lock behind a word (held, passed), as under a mutex whose waiters may
/// be passed.
struct Fronted(Ticket<Loom>, [U32; 2]);

impl Default for Fronted {
    fn default() -> Self {
        Self(Ticket::default(), [0; 2].map(U32::new))
    }
}

impl Fronted {
    fn front(&self) -> Front<'_, Loom> {
        Front::new(&self.1[0], &self.1[1])
    }
}

// SAFETY: this is what is being checked.
unsafe impl RawLock<Loom> for Fronted {
    type Ctx = ();

    const INFO: Info = Info {
        name: INTERPOSER,
        ..Info::BASE
    };

    unsafe fn lock(&self, _: &()) {
        if !self.front().try_enter() {
            // SAFETY: its context is nothing; unlocked below.
            unsafe { self.0.lock(&()) };
            self.front().enter_as_head();
            // SAFETY: locked above.
            unsafe { self.0.unlock(&()) };
        }
    }

    unsafe fn try_lock(&self, _: &()) -> bool {
        self.front().try_enter()
    }

    fn is_locked(&self) -> Option<bool> {
        Some(self.front().is_held())
    }

    unsafe fn unlock(&self, _: &()) {
        self.front().leave();
    }
}

/// Returns what the word promises: what every lock does, and that nobody passes the head of the
/// queue once too many have.
fn properties_of_the_front() -> Vec<Property> {
    let lock = subject::<Loom, Fronted>();
    let of = |property: &Property| {
        let name = match property.name {
            "exclusion" => "word, exclusion",
            "reuse" => "word, reuse",
            "exclusion of three" => "word, three",
            "try_lock alone" => "word, tried alone",
            "try_lock does not wait" => "word, a try ends",
            "try_lock races" => "word, a try races",
            "try_lock, late" => "word, a late try",
            "try_lock, again" => "word, tried again",
            "try_lock races of three" => "word, tries of three",
            "queue formed before" => "word, a queue before",
            "one comes back" => "word, one comes back",
            "one comes to two" => "word, one comes to two",
            _ => return None,
        };
        Some(Property {
            name,
            ..property.clone()
        })
    };
    let mut all: Vec<Property> = promises(&lock).iter().filter_map(of).collect();
    let [next, _] = announced(&lock);
    all.push(Property {
        name: "word, the head is next",
        ..next.with(|setting| setting.preferences = 0)
    });
    all.push(passed_while_it_sleeps(&lock));
    for property in &mut all {
        (property.orderings_of, property.structure_of) = (Some(FRONT[0]), FRONT);
    }
    all.push(Property::of_files(FRONT, "word, idle is over", 2, || {
        let uses = |shared: &Shared<Fronted>| {
            // SAFETY: its context is nothing.
            unsafe { shared.inner.lock(&()) };
            execution::arrive(0);
            shared.add(1);
            // SAFETY: acquired above.
            unsafe { shared.inner.unlock(&()) };
        };
        let ends = |shared: &Shared<Fronted>| {
            execution::await_arrival(0);
            while shared.inner.front().is_held() {
                Loom::relax();
            }
            shared.add(1);
        };
        Shared::run(Fronted::default(), [uses, ends]);
    }));
    all
}

/// Checks that who finds the gate idle is the last user, however the one before came in.
fn idle_is_over<const TRIES: bool>() {
    type Used = Shared<(Gated<false>, ClhHandle<Loom>)>;
    let uses = |shared: &Used| {
        let (lock, handle) = &shared.inner;
        // SAFETY: the context is in no other acquisition.
        let got = TRIES && unsafe { lock.try_lock(handle) };
        if !got {
            // SAFETY: as above.
            unsafe { lock.lock(handle) };
        }
        execution::arrive(0);
        shared.add(1);
        // SAFETY: acquired above.
        unsafe { lock.unlock(handle) };
    };
    let ends = |shared: &Used| {
        execution::await_arrival(0);
        while shared.inner.0.gate().busy() {
            Loom::relax();
        }
        shared.add(1);
    };
    Shared::run(Default::default(), [uses, ends]);
}

// SAFETY: the word is not accessed. One step with the store before it: nobody
// else ever sleeps on this word, and its owner only while it is 0.
unsafe impl WakeAt<Loom> for Loom {
    #[track_caller]
    fn wake_at(word: *const U32) {
        let here = Place::here();
        if mutation::change(here, Kind::Wake, Ordering::Relaxed, 0).is_none() {
            execution::wake(word.addr(), 1);
            execution::step(Entry::new(Operation::Wake, execution::cpu(), here));
        }
    }
}

/// A number of tokens, which threads wait for by a condition variable.
type Tokens = Shared<(Ticket<Loom>, Waiters<Loom>)>;

impl Tokens {
    fn locked(&self, change: impl FnOnce() -> bool) -> bool {
        // SAFETY: its context is nothing; unlocked below.
        unsafe { self.inner.0.lock(&()) };
        let changed = change();
        // SAFETY: locked above.
        unsafe { self.inner.0.unlock(&()) };
        changed
    }

    fn put(&self, tokens: u32, all: bool) {
        self.locked(|| self.add(tokens) > 0);
        if !self.inner.1.is_empty() {
            self.inner.1.wake::<Loom>(all);
        }
    }

    /// Takes a token; one whose time is over at once may go without.
    fn take(&self, in_time: bool) {
        loop {
            let waiter: &'static mut Waiter<Loom> = Box::leak(Box::default());
            let taken = self.locked(|| {
                let there = self.add(0) > 0;
                if there {
                    self.add(u32::MAX);
                } else {
                    // SAFETY: it ends below, woken or off the list.
                    unsafe { self.inner.1.append(waiter) };
                }
                there
            });
            let sleep = |word: &U32| {
                if in_time {
                    Loom::wait(word, 0);
                }
                !in_time
            };
            // SAFETY: appended above.
            let done = taken || !waiter.wait(sleep) && unsafe { self.inner.1.leave(waiter) };
            // SAFETY: ends here; its memory stays, where a late access is found.
            unsafe { std::ptr::drop_in_place(waiter) };
            if done {
                return;
            }
        }
    }
}

/// Returns a promise of the condition variable.
fn waiters<const N: usize>(name: &'static str, bodies: [fn(&Tokens); N]) -> Property {
    let mut property = Property::of_files(CONDITION, name, N, move || {
        Shared::run((Ticket::default(), Waiters::new(0)), bodies);
    });
    property.setting.choices = N < 3;
    property
}

fn made_once() {
    let body = |shared: &Shared<(U32, Guarded<Loom>)>| {
        let (word, guard) = &shared.inner;
        let make = || {
            assert_eq!(shared.add(1), 1, "made twice");
            7
        };
        assert_eq!(published_or(word, guard, |word| word != 0, make), 7);
        assert_eq!(shared.read(), 1, "published before it is made");
    };
    Shared::run((U32::new(0), Guarded::default()), [body, body]);
}

/// Checks what follows where another thread ends the use of a slot, its owner begins the next.
fn slot_comes_back() {
    let owner = |shared: &Shared<Use<Loom>>| {
        let slot = &shared.inner;
        assert!(slot.take() && !slot.take(), "taken once");
        shared.add(1);
        execution::arrive(0);
        while !slot.take() {
            Loom::relax();
        }
        shared.add(1);
        slot.set_aside();
        assert!(slot.is_aside() && !slot.take(), "set aside is in use");
        slot.free();
        assert!(!slot.is_aside() && slot.take(), "free again");
    };
    let other = |shared: &Shared<Use<Loom>>| {
        execution::await_arrival(0);
        shared.add(1);
        shared.inner.free();
    };
    Shared::run(Use::default(), [owner, other]);
}

/// Returns what the protocols promise.
pub(crate) fn interposer_properties() -> Vec<Property> {
    let mut all = promises(&subject::<Loom, Gated<false>>());
    // An attempt that finds the gate free takes it, also before a head that waits.
    all.retain(|property| property.name != "fifo, one tries");
    let alone = promises(&subject::<Loom, Gated<true>>());
    let light = promises(&subject::<Loom, Gated<false, false>>());
    for (of, name, called) in [
        (&alone, "fifo", "fifo, alone before"),
        (&alone, "try_lock does not wait", "one tries, alone before"),
        (&light, "try_lock races", "try_lock races, no fences"),
        (
            &light,
            "try_lock races of three",
            "races of three, no fences",
        ),
    ] {
        let property = of.iter().find(|property| property.name == name);
        let property = property.expect("a property of every lock").clone();
        all.push(Property {
            name: called,
            ..property
        });
    }
    for property in &mut all {
        (property.orderings_of, property.structure_of) = (Some(GATE[0]), GATE);
    }
    all.extend(properties_of_the_front());
    let take: fn(&Tokens) = |tokens| tokens.take(true);
    let give_up: fn(&Tokens) = |tokens| tokens.take(false);
    let two_puts: fn(&Tokens) = |tokens| (0..2).for_each(|_| tokens.put(1, false));
    let two_takes: fn(&Tokens) = |tokens| (0..2).for_each(|_| tokens.take(true));
    all.extend([
        Property::of_files(GATE, "idle is over", 2, idle_is_over::<false>),
        Property::of_files(GATE, "idle is over, one tried", 2, idle_is_over::<true>),
        waiters("signal", [|tokens| tokens.put(1, false), take]),
        waiters("a waiter comes again", [two_puts, two_takes]),
        waiters("two signals", [two_puts, take, take]),
        waiters("broadcast", [|tokens| tokens.put(2, true), take, take]),
        waiters("one gives up", [two_puts, take, give_up]),
        waiters("the first gives up", [give_up, take, two_puts]),
        Property::of_files(PUBLICATION, "made once", 2, made_once),
        Property::of_files(SLOT, "a slot comes back", 2, slot_comes_back),
    ]);
    all
}
