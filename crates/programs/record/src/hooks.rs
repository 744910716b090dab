//! The functions of the recorder, if it is loaded. They must never wait or allocate: a program
//! calls them within its locks.

use std::ffi::c_void;

/// Records what a thread does with the lock at an address.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(feature = "record", target_os = "linux")),
    expect(dead_code, reason = "nobody records the address")
)]
pub(crate) struct Lock(*const c_void);

impl Lock {
    /// Names the lock that lies there.
    pub(crate) fn at<T: ?Sized>(lock: &T) -> Self {
        Self((&raw const *lock).cast())
    }
}

#[cfg(all(feature = "record", target_os = "linux"))]
mod loaded {
    use super::{Lock, c_void};
    use std::ffi::{CStr, c_int};
    use std::mem::transmute;
    use std::sync::OnceLock;

    /// The recorder's functions.
    struct Recorder {
        asks: unsafe extern "C" fn(*const c_void, c_int),
        took: unsafe extern "C" fn(*const c_void, c_int),
        answered: unsafe extern "C" fn(c_int),
        releases: unsafe extern "C" fn(*const c_void),
        released: unsafe extern "C" fn(),
    }

    fn recorder() -> Option<&'static Recorder> {
        static FOUND: OnceLock<Option<Recorder>> = OnceLock::new();
        FOUND.get_or_init(find).as_ref()
    }

    fn find() -> Option<Recorder> {
        let symbol = |name: &CStr| {
            // SAFETY: a C string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let asks = symbol(c"locklab_record_asks")?;
        let took = symbol(c"locklab_record_took")?;
        let answered = symbol(c"locklab_record_answered")?;
        let releases = symbol(c"locklab_record_releases")?;
        let released = symbol(c"locklab_record_released")?;
        // SAFETY: functions of these types, by their names.
        unsafe {
            Some(Recorder {
                asks: transmute::<*mut c_void, unsafe extern "C" fn(*const c_void, c_int)>(asks),
                took: transmute::<*mut c_void, unsafe extern "C" fn(*const c_void, c_int)>(took),
                answered: transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(answered),
                releases: transmute::<*mut c_void, unsafe extern "C" fn(*const c_void)>(releases),
                released: transmute::<*mut c_void, unsafe extern "C" fn()>(released),
            })
        }
    }

    impl Lock {
        /// Records an acquisition: `once` tries it and says whether it succeeded; if not,
        /// `waits` does it, and says whether it has the lock.
        #[inline]
        pub(crate) fn acquire(
            self,
            shared: bool,
            once: impl FnOnce() -> bool,
            waits: impl FnOnce() -> bool,
        ) -> bool {
            let Some(recorder) = recorder() else {
                return waits();
            };
            let shared = c_int::from(shared);
            // SAFETY: the recorder takes any address, and its calls have no conditions.
            unsafe {
                if once() {
                    (recorder.took)(self.0, shared);
                    return true;
                }
                (recorder.asks)(self.0, shared);
                let got = waits();
                (recorder.answered)(c_int::from(got));
                got
            }
        }

        /// Records an attempt that does not wait.
        #[inline]
        pub(crate) fn attempt(self, shared: bool, once: impl FnOnce() -> bool) -> bool {
            let got = once();
            if got && let Some(recorder) = recorder() {
                // SAFETY: as above.
                unsafe { (recorder.took)(self.0, c_int::from(shared)) };
            }
            got
        }

        /// Records a release.
        #[inline]
        pub(crate) fn release(self, release: impl FnOnce()) {
            let Some(recorder) = recorder() else {
                return release();
            };
            // SAFETY: as above.
            unsafe { (recorder.releases)(self.0) };
            release();
            // SAFETY: as above.
            unsafe { (recorder.released)() };
        }
    }
}

#[cfg(not(all(feature = "record", target_os = "linux")))]
impl Lock {
    /// Acquires the lock by `waits`; without the feature nothing is recorded.
    #[inline(always)]
    pub(crate) fn acquire(
        self,
        _: bool,
        _: impl FnOnce() -> bool,
        waits: impl FnOnce() -> bool,
    ) -> bool {
        waits()
    }

    /// Tries to acquire the lock by `once`.
    #[inline(always)]
    pub(crate) fn attempt(self, _: bool, once: impl FnOnce() -> bool) -> bool {
        once()
    }

    /// Releases the lock by `release`.
    #[inline(always)]
    pub(crate) fn release(self, release: impl FnOnce()) {
        release();
    }
}
