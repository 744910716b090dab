//! The checker's world: loom's atomics behind [`Platform`].
//!
//! A read that a lock waits with is pruned here ([`crate::execution`]), an
//! ordering is weakened here ([`crate::ordering`]), and time and sleep are
//! choices that loom explores. Nothing here knows any lock.

use crate::execution;
use crate::ordering::{Part, effective};
use locklab_locks::QueueNodes;
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Patience, Platform, Poll};
use loom::sync::atomic;
use std::panic::Location;
use std::sync::atomic::Ordering;

/// Locks whose every interleaving, and every value that weak memory lets a
/// load see, is explored. Works only inside a model of this crate.
pub struct Loom;

/// One of loom's atomics, and its value as of the last step that wrote it:
/// what a read-modify-write on a part of it needs to know of that part.
pub struct Word<A: Mock> {
    atomic: A,
    newest: Newest,
    /// What was there before.
    before: Newest,
    /// The bits that the newest write wrote without regard to what was there.
    overwritten: Newest,
    /// Who wrote that, and whether by a read-modify-write.
    writer: Writer,
}

/// What all of loom's atomics can do.
pub trait Mock {
    /// Accesses it as memory that nobody else knows.
    fn end(&mut self);
}

/// The end of a word is an access to it: every other must happen before, or
/// a queue node is used after its owner has taken it back.
impl<A: Mock> Drop for Word<A> {
    fn drop(&mut self) {
        if execution::is_running() {
            self.atomic.end();
        }
    }
}

type Writer = std::sync::atomic::AtomicUsize;

impl<A: Mock> Word<A> {
    fn made(atomic: A, value: u64) -> Self {
        Self {
            atomic,
            newest: Newest::new(value),
            before: Newest::new(value),
            overwritten: Newest::new(0),
            writer: Writer::new(execution::cpu() << 1),
        }
    }

    fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
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
        self.writer
            .store(execution::cpu() << 1 | 1, Ordering::Relaxed);
    }

    /// Whether a read-modify-write, which makes `new` of an old value, comes
    /// before the newest write; and if so, what it reads.
    ///
    /// Loom puts it after all that was written before it ran. C11 lets it
    /// come before a write that does not happen before it. Where that write
    /// leaves no trace of it, this is explored too: it reads what was there
    /// before that write, and changes nothing. That it may is told by a read:
    /// a read, too, sees what was there before only if the write does not
    /// happen before it.
    fn comes_before<T: Copy>(
        &self,
        order: Ordering,
        number: impl Fn(T) -> u64,
        new: impl Fn(u64) -> u64,
        read: impl FnOnce(Ordering) -> T,
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
            && number(value) == before
            && before != self.newest()
            && (new(before) ^ before) & kept == 0
        {
            return Ok(value);
        }
        if number(value) != self.newest() {
            // All goes on as if it had read the newest, which is explored.
            loom::skip_branch();
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
    fn store_in_order(
        &self,
        value: u64,
        here: &'static Location<'static>,
        read_newest: impl Fn(),
        store: impl Fn(),
    ) {
        if execution::stores_in_order(here) {
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
        self.written(value, u64::MAX);
        self.writer.store(execution::cpu() << 1, Ordering::Relaxed);
    }
}

/// Whether the operation under way is one step with the one before.
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

/// Where a const is needed, there is no execution that the atomic could
/// belong to.
const NOT_CONST: &str = "the checker's locks are made by Default, not by const";

macro_rules! word {
    ($atomic:ty, $value:ty, [$($generic:tt)*], $number:expr, $unlikely:expr) => {
        impl<$($generic)*> Mock for $atomic {
            fn end(&mut self) {
                self.with_mut(|_| ());
            }
        }

        // SAFETY: loom's atomics, weakened only where a mutant is asked for.
        unsafe impl<$($generic)*> Atomic<$value> for Word<$atomic> {
            const ZERO: Self = panic!("{}", NOT_CONST);

            fn new(value: $value) -> Self {
                Self::made(<$atomic>::new(value), $number(value))
            }

            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                let here = Location::caller();
                let value = self.atomic.load(effective(here, Part::Load, order));
                execution::step(here, "reads", $number(value));
                value
            }

            #[track_caller]
            fn store(&self, value: $value, order: Ordering) {
                let here = Location::caller();
                let order = effective(here, Part::Store, order);
                self.store_in_order(
                    $number(value),
                    here,
                    // Changes nothing, whether or not it succeeds.
                    || {
                        let (same, relaxed) = ($unlikely, Ordering::Relaxed);
                        let _ = self.atomic.compare_exchange(same, same, relaxed, relaxed);
                    },
                    || self.atomic.store(value, order),
                );
                execution::step(here, "stores", $number(value));
            }

            #[track_caller]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                let here = Location::caller();
                let order = effective(here, Part::Update, order);
                let number = $number;
                let joined = match self.comes_before(
                    order,
                    number,
                    |_| $number(value),
                    |order| self.atomic.load(order),
                ) {
                    Ok(old) => {
                        execution::step(here, "swaps out, earlier,", $number(old));
                        return old;
                    }
                    Err(joined) => joined,
                };
                let old = self.atomic.swap(value, order);
                drop(joined);
                self.updated($number(value), 0);
                execution::step(here, "swaps out", $number(old));
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
                let here = Location::caller();
                let success = effective(here, Part::Success, success);
                let failure = effective(here, Part::Failure, failure);
                let result = self.atomic.compare_exchange(current, new, success, failure);
                match result {
                    Ok(_) => {
                        self.updated($number(new), 0);
                        execution::step(here, "compares and swaps in", $number(new));
                    }
                    Err(found) => execution::step(here, "compares and finds", $number(found)),
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
                let here = Location::caller();
                let order = effective(here, Part::Load, order);
                if patience == Patience::Forever {
                    execution::about_to_wait();
                }
                let mut reads = 0;
                loop {
                    let value = self.atomic.load(order);
                    if poll(value) == Poll::Done {
                        execution::patient();
                        execution::step(here, "waits for and reads", $number(value));
                        return value;
                    }
                    if patience == Patience::Forever {
                        reads += 1;
                        execution::fruitless(here, reads);
                    } else {
                        execution::impatient(here);
                        execution::step(here, "waits in vain and reads", $number(value));
                        return value;
                    }
                }
            }

            // As the default, but under the caller's name.
            #[track_caller]
            fn spin_until(
                &self,
                order: Ordering,
                mut done: impl FnMut($value) -> bool,
            ) -> $value {
                self.spin(order, Patience::Forever, move |value| {
                    if done(value) { Poll::Done } else { Poll::Relax(1) }
                })
            }
        }
    };
}

word!(atomic::AtomicU8, u8, [], u64::from, 0xa5);
word!(atomic::AtomicU32, u32, [], u64::from, 0x5bd1_e995);
word!(
    atomic::AtomicUsize,
    usize,
    [],
    |value| value as u64,
    0x5bd1_e995
);
word!(atomic::AtomicPtr<T>, *mut T, [T: 'static], |value: *mut T| value as u64, std::ptr::dangling_mut());

macro_rules! word_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$value> for Word<$atomic> {
            word_int!($value, fetch_add, <$value>::wrapping_add, "adds to");
            word_int!($value, fetch_sub, <$value>::wrapping_sub, "subtracts from");
            word_int!($value, fetch_and, std::ops::BitAnd::bitand, "ands with");
            word_int!($value, fetch_or, std::ops::BitOr::bitor, "ors with");
        }
    };
    ($value:ty, $method:ident, $new:expr, $what:literal) => {
        #[track_caller]
        fn $method(&self, value: $value, order: Ordering) -> $value {
            let here = Location::caller();
            let order = effective(here, Part::Update, order);
            let joined = match self.comes_before(
                order,
                |value| value as u64,
                |old| $new(old as $value, value) as u64,
                |order| self.atomic.load(order),
            ) {
                Ok(old) => {
                    execution::step(here, concat!($what, " (earlier)"), old as u64);
                    return old;
                }
                Err(joined) => joined,
            };
            let old = self.atomic.$method(value, order);
            drop(joined);
            self.updated($new(old, value) as u64, 0);
            execution::step(here, $what, old as u64);
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
    fn write_low(&self, mask: u32, order: Ordering, new: impl Fn(u32) -> u32) {
        let here = Location::caller();
        let order = effective(here, Part::Update, order);
        let low = self.newest() as u32 & mask;
        let difference = (new(low) & mask).wrapping_sub(low);
        let old = self.atomic.fetch_add(difference, order);
        assert_eq!(
            old & mask,
            low,
            "two threads write the same part of a word at {here}"
        );
        self.updated(old.wrapping_add(difference).into(), mask.into());
        execution::step(here, "writes part of", u64::from(old));
    }
}

// SAFETY: as `Atomic`.
unsafe impl LockWord for Word<atomic::AtomicU32> {
    // As the default, but under the caller's name.
    #[track_caller]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        self.load(Ordering::Relaxed) == 0
            && self
                .compare_exchange(0, held, order, Ordering::Relaxed)
                .is_ok()
    }

    #[track_caller]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        self.write_low(0xff, order, |_| value.into());
    }

    #[track_caller]
    fn store_low_half(&self, value: u16, order: Ordering) {
        self.write_low(0xffff, order, |_| value.into());
    }

    #[track_caller]
    fn increment_low_half(&self, order: Ordering) {
        self.write_low(0xffff, order, |old| old.wrapping_add(1));
    }

    #[track_caller]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let here = Location::caller();
        let order = effective(here, Part::Update, order);
        let mut old = self.newest() as u32;
        loop {
            let new = (old & 0xffff) | (u32::from(value) << 16);
            let result = self
                .atomic
                .compare_exchange(old, new, order, Ordering::Relaxed);
            if result.is_ok() {
                self.updated(new.into(), 0);
                break;
            }
            // Another wrote first; only its being first is news.
            old = self.newest() as u32;
        }
        execution::step(here, "swaps the high half of", u64::from(old));
        (old >> 16) as u16
    }
}

impl Loom {
    /// Ends every [`Platform::wait`] on `word`.
    #[track_caller]
    pub(crate) fn wake_all(word: &Word<atomic::AtomicU32>) {
        let value = newest(word);
        execution::wake_all(std::ptr::from_ref(word).addr());
        let here = Location::caller();
        execution::step(here, "wakes all sleepers on", u64::from(value));
    }
}

// SAFETY: each thread of an execution has its number and its queue nodes.
unsafe impl Platform for Loom {
    type U8 = Word<atomic::AtomicU8>;
    type U32 = Word<atomic::AtomicU32>;
    type Usize = Word<atomic::AtomicUsize>;
    type Ptr<T: 'static> = Word<atomic::AtomicPtr<T>>;

    #[track_caller]
    fn fence(order: Ordering) {
        let here = Location::caller();
        match effective(here, Part::Fence, order) {
            Ordering::Relaxed => {}
            order => atomic::fence(order),
        }
        execution::step(here, "fences", 0);
    }

    #[track_caller]
    fn relax() {
        execution::relax(Location::caller());
    }

    #[track_caller]
    fn relax_for(_: u32) {
        execution::relax(Location::caller());
    }

    fn cpu() -> usize {
        execution::cpu()
    }

    /// Two nodes, so that a lock that prefers its own has a choice.
    fn node() -> usize {
        execution::cpu() % 2
    }

    fn now() -> u64 {
        execution::now()
    }

    /// A futex: the check and the falling asleep are one step, which orders
    /// nothing else; what the system's own locks order is not relied upon.
    #[track_caller]
    fn wait(word: &Self::U32, expected: u32) {
        let here = Location::caller();
        // Whoever sleeps is interrupted as whoever spins is, and looks again.
        execution::interrupt();
        if newest(word) != expected || execution::spurious() {
            execution::step(here, "does not sleep on", u64::from(expected));
            return;
        }
        execution::step(here, "sleeps on", u64::from(expected));
        execution::sleep(std::ptr::from_ref(word).addr(), here);
    }

    #[track_caller]
    fn wake(word: &Self::U32) {
        let value = newest(word);
        execution::wake(std::ptr::from_ref(word).addr());
        execution::step(Location::caller(), "wakes sleepers on", u64::from(value));
    }

    fn preferences(_: u32) -> u32 {
        1
    }

    fn virtualized() -> bool {
        execution::virtualized()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        execution::queue_nodes(cpu)
    }
}

/// The newest value of a word, which a load need not see: a compare-and-swap
/// that changes nothing, whether or not it succeeds.
fn newest(word: &Word<atomic::AtomicU32>) -> u32 {
    const UNLIKELY: u32 = 0x5bd1_e995;
    word.atomic
        .compare_exchange(UNLIKELY, UNLIKELY, Ordering::Relaxed, Ordering::Relaxed)
        .unwrap_or_else(|value| value)
}
