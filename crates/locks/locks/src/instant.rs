//! The deadline of an acquisition that can be given up, for `lock_api`'s `try_lock_until`.
//!
//! It exists because `lock_api` asks for a type, and the platform's clock is a number. It must
//! never be compared with an instant of another platform.

/// A time of [`Platform::now`](crate::platform::Platform::now): the deadline of
/// `try_lock_until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub(crate) u64);

impl Instant {
    /// Returns the instant `time` from now, or the last representable one if that is
    /// earlier.
    pub fn after<P: crate::platform::Platform>(time: core::time::Duration) -> Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(P::now().saturating_add(nanoseconds))
    }
}

#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use super::Instant;
    use crate::NativePlatform as N;
    use crate::platform::Platform;
    use core::time::Duration;

    /// A time in its unit; one that is too long for the clock never ends.
    #[test]
    fn an_instant_is_that_long_from_now() {
        let before = N::now();
        let Instant(later) = Instant::after::<N>(Duration::from_micros(3));
        assert!((before + 3_000..=N::now() + 3_000).contains(&later));
        assert_eq!(Instant::after::<N>(Duration::MAX), Instant(u64::MAX));
    }
}
