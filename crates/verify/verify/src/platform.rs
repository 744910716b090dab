//! The checker's world: loom's atomics behind [`Platform`].
//!
//! A read that a lock waits with is pruned here ([`crate::execution`]), an
//! operation is changed here ([`crate::mutation`]), and time and sleep are
//! choices that loom explores. Nothing here knows any lock.

use crate::coverage;
use crate::execution;
use crate::journal::{Entry, Operation, Place};
use crate::mutation::{self, Change, Kind, Part, effective};
use crate::pointer::Pointer;
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Patience, Platform, Poll};
use locklab_locks::{HeldLocks, QueueNodes, Sleepers, VisibleReader};
use loom::sync::atomic;
use std::sync::atomic::Ordering;

/// Locks whose every interleaving, and every value that weak memory lets a
/// load see, is explored. Works only inside a model of this crate.
pub struct Loom;

/// One of loom's atomics, and its value as of the last step that wrote it:
/// what a read-modify-write on a part of it needs to know of that part.
pub struct Word<A: Mock> {
    atomic: A,
    newest: Newest,
    /// Holds what was there before.
    before: Newest,
    /// The bits that the newest write wrote without regard to what was there.
    overwritten: Newest,
    /// Says who wrote that, and whether by a read-modify-write.
    writer: Writer,
    /// Says whether what was there before certainly comes before it in the modification order.
    in_order: std::sync::atomic::AtomicBool,
    /// The address that a trace gives it; 0: its own.
    shown_at: Writer,
    /// Is accessed first by each read, if two of them conflict.
    reads: Option<atomic::AtomicU32>,
}

/// Offers what all of loom's atomics can do.
pub trait Mock {
    /// Accesses it as memory that nobody else knows.
    fn accessed_alone(&mut self);
}

/// The end of a word is an access to it: every other must happen before, or
/// a queue node is used after its owner has taken it back.
impl<A: Mock> Drop for Word<A> {
    fn drop(&mut self) {
        if execution::is_running() {
            execution::flush();
            self.atomic.accessed_alone();
        }
    }
}

type Writer = std::sync::atomic::AtomicUsize;

impl<A: Mock> Word<A> {
    /// Makes a word. Its beginning is an access to it, as its end is: who finds a
    /// queue node without a happens-before from its initialisation may read
    /// what its memory held before.
    fn made(mut atomic: A, value: u64) -> Self {
        let running = execution::is_running();
        if running {
            atomic.accessed_alone();
        }
        let conflict = running && execution::reads_conflict();
        Self {
            atomic,
            newest: Newest::new(value),
            before: Newest::new(value),
            overwritten: Newest::new(0),
            writer: Writer::new(FIRST),
            in_order: true.into(),
            shown_at: Writer::new(0),
            reads: conflict.then(|| atomic::AtomicU32::new(0)),
        }
    }

    /// Returns its newest value, which a load need not see.
    pub fn latest(&self) -> u64 {
        self.newest()
    }

    /// Makes a trace take it for the word at this address, which it stands for.
    pub fn stands_for(&self, address: usize) {
        self.shown_at.store(address, Ordering::Relaxed);
    }

    /// Notes that a read is about to be made, which conflicts with others.
    fn about_to_read(&self) {
        if let Some(reads) = &self.reads {
            reads.fetch_or(0, Ordering::Relaxed);
        }
    }

    fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    fn address(&self) -> usize {
        match self.shown_at.load(Ordering::Relaxed) {
            0 => std::ptr::from_ref(self).addr(),
            address => address,
        }
    }

    /// Notes a step on this word.
    fn step(&self, operation: Operation, here: Place, pointer: bool, old: u64, new: u64) {
        coverage::step(here, operation, pointer, old, new);
        execution::step(Entry {
            word: self.address() as u64,
            old,
            new,
            pointer,
            ..Entry::new(operation, execution::cpu(), here)
        });
    }

    fn written(&self, value: u64, overwritten: u64) {
        self.before.store(self.newest(), Ordering::Relaxed);
        self.newest.store(value, Ordering::Relaxed);
        self.overwritten.store(overwritten, Ordering::Relaxed);
    }

    /// Notes that a read-modify-write of this thread wrote `value`, the bits
    /// `overwritten` of it without regard to what was there.
    fn updated(&self, value: u64, overwritten: u64) {
        self.written(value, overwritten);
        self.in_order.store(true, Ordering::Relaxed);
        self.writer
            .store(execution::cpu() << 1 | 1, Ordering::Relaxed);
    }

    /// Decides whether a read-modify-write, which makes `new` of an old value, comes right
    /// before the newest write; and if so, returns what it reads.
    ///
    /// Loom puts it after all that was written before it ran. C11 lets it
    /// come before a write that does not happen before it. Where that write
    /// overwrites all that it changes, this is explored too: it reads what was
    /// there before that write. A read shows whether it may: it, too, sees what
    /// was there before only if the write does not happen before it. Once in
    /// front of each write: a second one would have to read what the first wrote,
    /// which loom does not know. For the same reason this thread has to have
    /// seen the newest write by `see_newest`, afterwards: neither it nor
    /// who comes after it reads again what was there before.
    fn comes_before<T: Copy>(
        &self,
        order: Ordering,
        number: impl Fn(T) -> u64,
        new: impl Fn(u64) -> u64,
        read: impl FnOnce(Ordering) -> T,
        see_newest: impl FnOnce() -> T,
    ) -> Result<T, Joined> {
        if self.overwritten.load(Ordering::Relaxed) == 0 || execution::is_quiet() {
            return Err(Joined(false));
        }
        let value = read(match order {
            Ordering::Relaxed | Ordering::Release => Ordering::Relaxed,
            _ => Ordering::Acquire,
        });
        // Others may have written before the read had its turn.
        let before = self.before.load(Ordering::Relaxed);
        let kept = !self.overwritten.load(Ordering::Relaxed);
        if self.writer.load(Ordering::Relaxed) >> 1 != execution::cpu()
            && self.in_order.load(Ordering::Relaxed)
            && number(value) == before
            && before != self.newest()
            && (new(before) ^ before) & kept == 0
        {
            let _joined = Joined::with_last();
            self.overwritten.store(0, Ordering::Relaxed);
            if number(see_newest()) != self.newest() {
                execution::skip_branch();
            }
            return Ok(value);
        }
        if number(value) != self.newest() {
            // All goes on as if it had read the newest, which is explored.
            execution::skip_branch();
        }
        Err(Joined::with_last())
    }

    /// Stores `value` by `store`, after what `read_newest` reads if another
    /// thread's read-modify-write wrote that.
    ///
    /// A read-modify-write comes right after what it read, so a store that
    /// comes after the one comes after the other; loom does not know, and
    /// would let a failed test-and-set overwrite the release that follows
    /// it. Reading the newest value first tells it. Whether it must is known
    /// only when the store has its turn, so the line is remembered and the
    /// model begun again.
    fn store_in_order(&self, value: u64, here: Place, read_newest: impl Fn(), store: impl Fn()) {
        let in_order = execution::stores_in_order(here);
        if in_order {
            read_newest();
            let _joined = Joined::with_last();
            store();
        } else {
            store();
            let last = self.writer.load(Ordering::Relaxed);
            if last & 1 == 1 && last >> 1 != execution::cpu() {
                execution::store_in_order(here);
            }
        }
        let last = self.writer.load(Ordering::Relaxed);
        let in_order = in_order || last == FIRST || last >> 1 == execution::cpu();
        self.in_order.store(in_order, Ordering::Relaxed);
        self.written(value, u64::MAX);
        self.writer.store(execution::cpu() << 1, Ordering::Relaxed);
    }
}

/// The writer of a word's first value: nobody who could read it again.
const FIRST: usize = usize::MAX - 1;

/// Says whether the operation under way is one step with the one before.
struct Joined(bool);

impl Joined {
    fn with_last() -> Self {
        let exploring = !execution::is_quiet();
        if exploring {
            loom::stop_exploring();
        }
        Self(exploring)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if self.0 && !std::thread::panicking() {
            loom::explore();
        }
    }
}

/// Beside the model: seen by the harness only, never by a lock.
type Newest = std::sync::atomic::AtomicU64;

/// The message where a const is needed: there is no execution that the atomic could
/// belong to.
const NOT_CONST: &str = "the checker's locks are made by Default, not by const";

/// Returns the ordering to use for `part` of the access at `here`. Loom knows
/// sequentially consistent fences, and no such accesses: one has a fence
/// before it, by which it is ordered with its like.
fn accessed(here: Place, part: Part, order: Ordering) -> Ordering {
    let order = effective(here, part, order);
    if order != Ordering::SeqCst {
        return order;
    }
    atomic::fence(Ordering::SeqCst);
    match part {
        Part::Load | Part::Failure => Ordering::Acquire,
        Part::Store => Ordering::Release,
        _ => Ordering::AcqRel,
    }
}

/// Returns the orderings of a read-modify-write that is a load and a store.
fn halves(order: Ordering) -> (Ordering, Ordering) {
    match order {
        Ordering::Relaxed => (Ordering::Relaxed, Ordering::Relaxed),
        Ordering::Acquire => (Ordering::Acquire, Ordering::Relaxed),
        Ordering::Release => (Ordering::Relaxed, Ordering::Release),
        _ => (Ordering::Acquire, Ordering::Release),
    }
}

macro_rules! word {
    ($atomic:ty, $value:ty, $number:expr, $unlikely:expr, $pointer:literal) => {
        impl Mock for $atomic {
            fn accessed_alone(&mut self) {
                self.with_mut(|_| ());
            }
        }

        impl Word<$atomic> {
            /// Loads. While a model is set up a load sees the newest value, or
            /// the queue that the model is about would not form: what is not
            /// explored sees the oldest that it may.
            fn read(&self, order: Ordering) -> $value {
                if !execution::is_quiet() {
                    self.about_to_read();
                    return self.atomic.load(order);
                }
                let same = $unlikely;
                self.atomic
                    .compare_exchange(same, same, Ordering::Relaxed, order)
                    .unwrap_or_else(|value| value)
            }

            /// Returns the newest value, which a load need not see: a compare-and-swap that
            /// changes nothing, whether or not it succeeds.
            fn newest_value(&self) -> $value {
                let (same, relaxed) = ($unlikely, Ordering::Relaxed);
                let newest = self.atomic.compare_exchange(same, same, relaxed, relaxed);
                newest.unwrap_or_else(|value| value)
            }

            fn write(&self, value: $value, order: Ordering, here: Place) {
                let old = self.newest();
                self.store_in_order(
                    $number(value),
                    here,
                    || {
                        self.newest_value();
                    },
                    || self.atomic.store(value, order),
                );
                self.step(Operation::Store, here, $pointer, old, $number(value));
            }

            /// Waits as [`Atomic::spin`] does. One function for all waits: there are
            /// hundreds of them, and each would be compiled anew.
            fn spin_at(
                &self,
                here: Place,
                order: Ordering,
                patience: Patience,
                poll: &mut dyn FnMut($value) -> Poll,
            ) -> $value {
                execution::access(here);
                let mut forever = patience == Patience::Forever;
                let kind = if forever {
                    Kind::Wait
                } else {
                    Kind::PatientWait
                };
                let change = mutation::change(here, kind, Ordering::Relaxed, self.address());
                let order = accessed(here, Part::Load, order);
                forever |= change == Some(Change::Patient);
                if forever {
                    execution::about_to_wait();
                }
                let mut reads = 0;
                loop {
                    let value = self.read(order);
                    let number = $number(value);
                    let mut done = poll(value) == Poll::Done;
                    match change {
                        Some(Change::NoWait) => done = true,
                        Some(Change::NegateWait) => done = !done,
                        _ => {}
                    }
                    if done {
                        execution::patient();
                        self.step(Operation::Seen, here, $pointer, number, number);
                        return value;
                    }
                    if forever {
                        reads += 1;
                        coverage::fruitless_read(here);
                        execution::fruitless(here, reads);
                    } else {
                        execution::impatient(here);
                        self.step(Operation::InVain, here, $pointer, number, number);
                        return value;
                    }
                }
            }
        }

        // SAFETY: loom's atomics, changed only where a mutant is asked for.
        unsafe impl Atomic<$value> for Word<$atomic> {
            const ZERO: Self = panic!("{}", NOT_CONST);

            fn new(value: $value) -> Self {
                let value = if execution::is_garbage() {
                    $unlikely
                } else {
                    value
                };
                Self::made(<$atomic>::new(value), $number(value))
            }

            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                let here = Place::here();
                execution::access(here);
                mutation::change(here, Kind::Load, Ordering::Relaxed, self.address());
                let value = self.read(accessed(here, Part::Load, order));
                self.step(
                    Operation::Load,
                    here,
                    $pointer,
                    $number(value),
                    $number(value),
                );
                value
            }

            #[track_caller]
            fn store(&self, value: $value, order: Ordering) {
                let here = Place::here();
                execution::access(here);
                let change = mutation::change(here, Kind::Store, order, self.address());
                let order = accessed(here, Part::Store, order);
                match change {
                    Some(Change::Omit) => return,
                    Some(by @ (Change::Delay | Change::DelayMore)) => {
                        let this = std::ptr::from_ref(self);
                        let by = 1 + u32::from(by == Change::DelayMore);
                        // SAFETY: made before this word ends: see its drop.
                        let late = move || unsafe { (*this).write(value, order, here) };
                        return execution::delay(by, late);
                    }
                    Some(Change::Repeat) => {
                        self.write(value, order, here);
                        execution::access(here);
                    }
                    _ => {}
                }
                self.write(value, order, here);
            }

            #[track_caller]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                let here = Place::here();
                execution::access(here);
                let change = mutation::change(here, Kind::Swap, order, self.address());
                let order = accessed(here, Part::Update, order);
                let number = $number;
                if let Some(change) = change {
                    let (load, store) = halves(order);
                    let old = self.atomic.load(load);
                    self.step(Operation::Load, here, $pointer, number(old), number(old));
                    if change == Change::Split {
                        self.write(value, store, here);
                    }
                    return old;
                }
                let joined = match self.comes_before(
                    order,
                    number,
                    |_| $number(value),
                    |order| self.atomic.load(order),
                    || self.newest_value(),
                ) {
                    Ok(old) => {
                        self.step(
                            Operation::Earlier,
                            here,
                            $pointer,
                            number(old),
                            number(value),
                        );
                        return old;
                    }
                    Err(joined) => joined,
                };
                let old = self.atomic.swap(value, order);
                drop(joined);
                self.updated($number(value), 0);
                self.step(Operation::Swap, here, $pointer, number(old), number(value));
                old
            }

            #[track_caller]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let here = Place::here();
                execution::access(here);
                let change = mutation::change(here, Kind::CompareExchange, success, self.address());
                let success = accessed(here, Part::Success, success);
                let failure = effective(here, Part::Failure, failure);
                let number = $number;
                if matches!(change, Some(Change::Pretend | Change::Split)) {
                    let (load, store) = halves(success);
                    let old = self.atomic.load(load);
                    self.step(Operation::Load, here, $pointer, number(old), number(old));
                    if old != current {
                        return Err(old);
                    }
                    if change == Some(Change::Split) {
                        self.write(new, store, here);
                    }
                    return Ok(old);
                }
                let result = self.atomic.compare_exchange(current, new, success, failure);
                match result {
                    Ok(old) => {
                        self.updated(number(new), 0);
                        let made = Operation::CompareExchange;
                        self.step(made, here, $pointer, number(old), number(new));
                    }
                    Err(found) => {
                        let failed = Operation::CompareFailed;
                        self.step(failed, here, $pointer, number(found), number(current));
                    }
                }
                if change == Some(Change::Invert) {
                    return match result {
                        Ok(value) => Err(value),
                        Err(value) => Ok(value),
                    };
                }
                result
            }

            #[track_caller]
            fn spin(
                &self,
                order: Ordering,
                patience: Patience,
                mut poll: impl FnMut($value) -> Poll,
            ) -> $value {
                self.spin_at(Place::here(), order, patience, &mut poll)
            }

            // It does what the default does, but under the caller's name.
            #[track_caller]
            fn spin_until(&self, order: Ordering, mut done: impl FnMut($value) -> bool) -> $value {
                self.spin(order, Patience::Forever, move |value| {
                    if done(value) {
                        Poll::Done
                    } else {
                        Poll::Relax(1)
                    }
                })
            }
        }
    };
}

word!(atomic::AtomicU8, u8, u64::from, 0xa5, false);
word!(atomic::AtomicU32, u32, u64::from, 0x5bd1_e995, false);
word!(
    atomic::AtomicUsize,
    usize,
    |value| value as u64,
    0x5bd1_e995,
    false
);
word!(
    atomic::AtomicPtr<()>,
    *mut (),
    |value: *mut ()| value as u64,
    // No lock's marker; aligned as any node.
    std::ptr::without_provenance_mut(0x5bd1_e980),
    true
);

macro_rules! word_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$value> for Word<$atomic> {
            word_int!($value, fetch_add, <$value>::wrapping_add, Kind::Add);
            word_int!($value, fetch_sub, <$value>::wrapping_sub, Kind::Add);
            word_int!($value, fetch_and, std::ops::BitAnd::bitand, Kind::Bits);
            word_int!($value, fetch_or, std::ops::BitOr::bitor, Kind::Bits);
        }
    };
    ($value:ty, $method:ident, $new:expr, $kind:expr) => {
        #[track_caller]
        fn $method(&self, value: $value, order: Ordering) -> $value {
            let here = Place::here();
            execution::access(here);
            let change = mutation::change(here, $kind, order, self.address());
            let order = accessed(here, Part::Update, order);
            let new = |old: $value| $new(old, value);
            if let Some(Change::Omit | Change::Split) = change {
                let (load, store) = halves(order);
                let old = self.atomic.load(load);
                self.step(Operation::Load, here, false, old as u64, old as u64);
                if change == Some(Change::Split) {
                    self.write(new(old), store, here);
                }
                return old;
            }
            let joined = match self.comes_before(
                order,
                |value| value as u64,
                |old| new(old as $value) as u64,
                |order| self.atomic.load(order),
                || self.newest_value(),
            ) {
                Ok(old) => {
                    self.step(Operation::Earlier, here, false, old as u64, new(old) as u64);
                    return old;
                }
                Err(joined) => joined,
            };
            let old = self.atomic.$method(value, order);
            drop(joined);
            self.updated(new(old) as u64, 0);
            self.step(Operation::Update, here, false, old as u64, new(old) as u64);
            if change == Some(Change::Repeat) {
                let old = self.atomic.$method(value, order);
                self.updated(new(old) as u64, 0);
                self.step(Operation::Update, here, false, old as u64, new(old) as u64);
            }
            old
        }
    };
}

word_int!(atomic::AtomicU8, u8);
word_int!(atomic::AtomicU32, u32);
word_int!(atomic::AtomicUsize, usize);

/// Whole-word read-modify-writes, as on every machine but x86-64, with the
/// ordering as given.
///
/// x86-64 has one plain store instead where nobody else writes that part.
/// What a read-modify-write promises beyond it is no more than TSO gives: it
/// carries on a release sequence (on TSO every read is an Acquire of all that
/// the writer did before, whoever wrote which byte), and it is not delayed
/// past later loads of its own thread: but a Release read-modify-write does
/// not hold back later loads here either, which may still read old values.
impl Word<atomic::AtomicU32> {
    /// Writes the low part, which nobody else writes: so its newest value is
    /// its value, and the sum cannot carry.
    #[track_caller]
    fn write_low(&self, mask: u32, order: Ordering, new: impl Fn(u32) -> u32 + Copy + 'static) {
        let here = Place::here();
        execution::access(here);
        let change = mutation::change(here, Kind::Store, order, self.address());
        let order = accessed(here, Part::Update, order);
        match change {
            Some(Change::Omit) => return,
            Some(by @ (Change::Delay | Change::DelayMore)) => {
                let this = std::ptr::from_ref(self);
                // SAFETY: made before this word ends: see its drop.
                return execution::delay(1 + u32::from(by == Change::DelayMore), move || unsafe {
                    (*this).write_part(mask, order, here, new);
                });
            }
            Some(Change::Repeat) => {
                self.write_part(mask, order, here, new);
                execution::access(here);
            }
            _ => {}
        }
        self.write_part(mask, order, here, new);
    }

    fn write_part(&self, mask: u32, order: Ordering, here: Place, new: impl Fn(u32) -> u32) {
        let low = self.newest() as u32 & mask;
        let difference = (new(low) & mask).wrapping_sub(low);
        let old = self.atomic.fetch_add(difference, order);
        assert_eq!(
            old & mask,
            low,
            "two threads write the same part of a word at {here}"
        );
        let now = u64::from(old.wrapping_add(difference));
        self.updated(now, mask.into());
        self.step(Operation::Update, here, false, u64::from(old), now);
    }
}

// SAFETY: as `Atomic`.
unsafe impl LockWord for Word<atomic::AtomicU32> {
    // It does what the default does, but under the caller's name.
    #[track_caller]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        self.load(Ordering::Relaxed) == 0
            && self
                .compare_exchange(0, held, order, Ordering::Relaxed)
                .is_ok()
    }

    #[track_caller]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        self.write_low(0xff, order, move |_| value.into());
    }

    #[track_caller]
    fn store_low_half(&self, value: u16, order: Ordering) {
        self.write_low(0xffff, order, move |_| value.into());
    }

    #[track_caller]
    fn increment_low_half(&self, order: Ordering) {
        self.write_low(0xffff, order, |old| old.wrapping_add(1));
    }

    #[track_caller]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let here = Place::here();
        execution::access(here);
        let change = mutation::change(here, Kind::Swap, order, self.address());
        let order = accessed(here, Part::Update, order);
        let mut first = None;
        if change.is_some() {
            let old = self.atomic.load(halves(order).0);
            first = Some(old);
            self.step(Operation::Load, here, false, old.into(), old.into());
            if change == Some(Change::Omit) {
                return (old >> 16) as u16;
            }
        }
        let mut old = self.newest() as u32;
        let new = |old: u32| (old & 0xffff) | (u32::from(value) << 16);
        loop {
            let result = self
                .atomic
                .compare_exchange(old, new(old), order, Ordering::Relaxed);
            if result.is_ok() {
                self.updated(new(old).into(), 0);
                break;
            }
            // Another wrote first; only its being first is news.
            old = self.newest() as u32;
        }
        self.step(Operation::Swap, here, false, old.into(), new(old).into());
        (first.unwrap_or(old) >> 16) as u16
    }
}

/// Returns where a mutant of what is no access of memory is said to be.
fn nowhere(file: &'static str) -> Place {
    Place {
        file,
        line: 0,
        column: 0,
    }
}

impl Loom {
    /// Ends a round of a loop that will repeat until another thread
    /// changes what it reads: a wait without limit, for locks that are not
    /// written with [`Atomic::spin`].
    pub fn repeats(here: Place) {
        execution::about_to_wait();
        execution::relax(here);
    }

    /// Decides whether a weak compare-and-swap that would succeed fails: both are explored.
    pub fn fails_without_cause() -> bool {
        execution::fails_without_cause()
    }

    /// Ends every [`Platform::wait`] on `word`.
    #[track_caller]
    pub(crate) fn wake_all(word: &Word<atomic::AtomicU32>) {
        let here = Place::here();
        if mutation::change(here, Kind::Wake, Ordering::Relaxed, 0).is_some() {
            return;
        }
        let value = word.newest_value().into();
        execution::wake(word.address(), usize::MAX);
        word.step(Operation::WakeAll, here, false, value, value);
    }

    /// Sleeps as [`Platform::wait`] does. Returns whether it slept.
    #[track_caller]
    fn sleep(word: &<Self as Platform>::U32, expected: u32) -> bool {
        let here = Place::here();
        execution::access(here);
        // Whoever sleeps is interrupted as whoever spins; and then looks again.
        execution::interrupt();
        let value = word.newest_value();
        if value != expected || execution::spurious() {
            word.step(
                Operation::NoSleep,
                here,
                false,
                value.into(),
                expected.into(),
            );
            return false;
        }
        word.step(Operation::Sleep, here, false, value.into(), expected.into());
        execution::sleep(word.address(), here);
        true
    }

    /// Ends the [`Platform::wait`] of at most so many threads on `word`, of those that
    /// have slept the longest. Returns how many those were.
    #[track_caller]
    pub fn wake_some(word: &<Self as Platform>::U32, most: usize) -> usize {
        let here = Place::here();
        execution::access(here);
        if mutation::change(here, Kind::Wake, Ordering::Relaxed, 0).is_some() {
            return 0;
        }
        let value = word.newest_value().into();
        let woken = execution::wake(word.address(), most);
        let operation = match woken {
            0 => Operation::WakeNobody,
            1 => Operation::Wake,
            _ => Operation::WakeSome,
        };
        word.step(operation, here, false, value, value);
        woken
    }

    /// Makes a fence that is sequentially consistent with its like, whatever
    /// [`Platform::fence`] is in this model.
    #[track_caller]
    pub(crate) fn full_fence() {
        Self::fence_at(Place::here(), Ordering::SeqCst, false);
    }

    fn fence_at(here: Place, order: Ordering, demote: bool) {
        execution::access(here);
        mutation::change(here, Kind::Fence, order, 0);
        match effective(here, Part::Fence, order) {
            Ordering::Relaxed => {}
            Ordering::SeqCst if demote => atomic::fence(Ordering::AcqRel),
            order => atomic::fence(order),
        }
        execution::step(Entry::new(Operation::Fence, execution::cpu(), here));
    }
}

// SAFETY: each thread of an execution has its number and its queue nodes.
unsafe impl Platform for Loom {
    type U8 = Word<atomic::AtomicU8>;
    type U32 = Word<atomic::AtomicU32>;
    type Usize = Word<atomic::AtomicUsize>;
    type Ptr<T: 'static> = Pointer<T, Word<atomic::AtomicPtr<()>>>;

    #[track_caller]
    fn fence(order: Ordering) {
        Self::fence_at(Place::here(), order, execution::fences_are_light());
    }

    #[track_caller]
    fn relax() {
        execution::relax(Place::here());
    }

    #[track_caller]
    fn relax_for(_: u32) {
        execution::relax(Place::here());
    }

    fn cpu() -> usize {
        let change = mutation::change(nowhere("P::cpu()"), Kind::Number, Ordering::Relaxed, 0);
        if change.is_some() {
            return 0;
        }
        execution::number()
    }

    fn try_cpu() -> Option<usize> {
        execution::is_numbered().then(Self::cpu)
    }

    fn node() -> usize {
        execution::numa_node()
    }

    fn now() -> u64 {
        execution::now()
    }

    /// Waits as a futex does: the check and the falling asleep are one step, which orders
    /// nothing else; what the system's own locks order is not relied upon.
    #[track_caller]
    fn wait(word: &Self::U32, expected: u32) {
        Self::sleep(word, expected);
    }

    #[track_caller]
    fn wake(word: &Self::U32) {
        Self::wake_some(word, 1);
    }

    #[track_caller]
    fn wake_if_any(word: &Self::U32) -> bool {
        Self::wake_some(word, 1) > 0
    }

    #[track_caller]
    unsafe fn wake_at(word: *const Self::U32) {
        let here = Place::here();
        execution::access(here);
        if mutation::change(here, Kind::Wake, Ordering::Relaxed, 0).is_some() {
            return;
        }
        let operation = match execution::wake(word.addr(), 1) {
            0 => Operation::WakeNobody,
            _ => Operation::Wake,
        };
        execution::step(Entry {
            word: word.addr() as u64,
            ..Entry::new(operation, execution::cpu(), here)
        });
    }

    #[track_caller]
    fn wake_all(word: &Self::U32) {
        Self::wake_some(word, usize::MAX);
    }

    fn sleepers(_: usize) -> Option<&'static Sleepers<Self>> {
        Some(execution::sleepers())
    }

    fn preferences(bound: u32) -> u32 {
        execution::asks_for_preferences(bound);
        let here = nowhere("P::preferences()");
        match mutation::change(here, Kind::Preference, Ordering::Relaxed, 0) {
            Some(Change::Unbounded) => u32::MAX - 1,
            Some(Change::OneMore) => execution::preferences() + 1,
            _ => execution::preferences(),
        }
    }

    fn virtualized() -> bool {
        execution::virtualized()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        execution::queue_nodes(cpu)
    }

    fn visible_readers() -> &'static [VisibleReader<Self>] {
        execution::visible_readers()
    }

    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        execution::held_locks().get(cpu)
    }
}
