//! Atomics of a test, used as those of `std`. Each must be made within the test.

use crate::event::Place;
use crate::model::{self, Location, Orders};
use std::marker::PhantomData;
pub use std::sync::atomic::Ordering;

/// A value of at most eight bytes.
trait Word: Copy {
    fn into_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! int_word {
    ($($int:ty)*) => {$(
        impl Word for $int {
            fn into_bits(self) -> u64 {
                self as u64
            }

            fn from_bits(bits: u64) -> Self {
                bits as $int
            }
        }
    )*};
}

int_word!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl Word for bool {
    fn into_bits(self) -> u64 {
        self.into()
    }

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl<T> Word for *mut T {
    fn into_bits(self) -> u64 {
        self.expose_provenance() as u64
    }

    fn from_bits(bits: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

/// Executes a fence.
#[track_caller]
pub fn fence(order: Ordering) {
    model::fence(order, Place::here());
}

/// An atomic of any type.
struct Atomic<T> {
    location: Location,
    value: PhantomData<T>,
}

impl<T> Drop for Atomic<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() && crate::run::is_running() {
            model::retire(self.location, Place::here());
        }
    }
}

macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident$(<$parameter:ident>)?, $value:ty) => {
        $(#[$doc])*
        pub struct $name$(<$parameter>)? {
            atomic: Atomic<$value>,
        }

        // SAFETY: all threads of a test are coroutines of one thread.
        unsafe impl$(<$parameter>)? Send for $name$(<$parameter>)? {}
        // SAFETY: as above.
        unsafe impl$(<$parameter>)? Sync for $name$(<$parameter>)? {}

        impl$(<$parameter>)? std::fmt::Debug for $name$(<$parameter>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl$(<$parameter>)? $name$(<$parameter>)? {
            /// Returns an atomic with this value.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                let location = Location::new(size_of::<$value>() as u32);
                model::create(location, value.into_bits(), Place::here());
                Self { atomic: Atomic { location, value: PhantomData } }
            }

            /// Reads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                Word::from_bits(model::load(self.atomic.location, order, Place::here()))
            }

            /// Waits until it reads a value for which `ends` holds: one event, however
            /// often a loop would read. `ends` must depend on the value alone.
            #[track_caller]
            pub fn wait_until(&self, order: Ordering, mut ends: impl FnMut($value) -> bool) -> $value {
                let ends = |bits| ends(Word::from_bits(bits));
                Word::from_bits(model::await_load(self.atomic.location, order, Place::here(), ends))
            }

            /// Writes the value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                model::store(self.atomic.location, value.into_bits(), order, Place::here());
            }

            #[track_caller]
            fn update(&self, order: Ordering, new: impl FnOnce($value) -> $value) -> $value {
                let new = |bits| Some(new(Word::from_bits(bits)).into_bits());
                Word::from_bits(model::rmw(self.atomic.location, order, Place::here(), new))
            }

            /// Writes the value, and returns the one before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |_| value)
            }

            /// Writes `new` if the value is `current`. Returns the value before, as `Ok` if
            /// `new` was written.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.exchange(current, new, Orders { success, failure }, false)
            }

            /// Does the same, and may fail without a reason.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.exchange(current, new, Orders { success, failure }, true)
            }

            #[track_caller]
            fn exchange(
                &self,
                current: $value,
                new: $value,
                orders: Orders,
                weak: bool,
            ) -> Result<$value, $value> {
                let (current, new) = (current.into_bits(), new.into_bits());
                let place = Place::here();
                model::compare_exchange(self.atomic.location, current, new, orders, weak, place)
                    .map(Word::from_bits)
                    .map_err(Word::from_bits)
            }
        }
    };
}

macro_rules! atomic_int {
    ($(#[$doc:meta])* $name:ident, $value:ty) => {
        atomic!($(#[$doc])* $name, $value);

        impl $name {
            /// Adds, and returns the value before. Wraps around.
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_add(value))
            }

            /// Subtracts, and returns the value before. Wraps around.
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_sub(value))
            }

            /// Computes the bitwise and, and returns the value before.
            #[track_caller]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old & value)
            }

            /// Computes the bitwise or, and returns the value before.
            #[track_caller]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old | value)
            }

            /// Computes the bitwise exclusive or, and returns the value before.
            #[track_caller]
            pub fn fetch_xor(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old ^ value)
            }
        }
    };
}

atomic_int!(/// An atomic byte.
    AtomicU8, u8);
atomic_int!(/// An atomic of 16 bits.
    AtomicU16, u16);
atomic_int!(/// An atomic of 32 bits.
    AtomicU32, u32);
atomic_int!(/// An atomic of 64 bits.
    AtomicU64, u64);
atomic_int!(/// An atomic of the size of a pointer.
    AtomicUsize, usize);
atomic_int!(/// An atomic of 32 bits with a sign.
    AtomicI32, i32);
atomic!(/// An atomic truth value.
    AtomicBool, bool);
atomic!(/// An atomic pointer.
    AtomicPtr<T>, *mut T);
