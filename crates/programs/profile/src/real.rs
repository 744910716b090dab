//! The C library's own functions, behind those that a library in a program
//! replaces. Must never be one of the replacements: they would call themselves.

use crate::message::die;
use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function found after this library's in the search order.
pub struct Real<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    /// Names the function, whose type is `F`; [`real!`](macro@crate::real) states both.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(core::ptr::null_mut()),
            function: PhantomData,
        }
    }

    /// Looks it up, if this C library has it. Without a version that is the
    /// newest, which a program built today gets. All older ones are equivalent,
    /// except those of condition variables before 2.3.2, whose size differs.
    #[cold]
    #[inline(never)]
    pub fn find(&self) -> *mut c_void {
        // SAFETY: a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        // Relaxed: a function's code was there before this process was.
        self.address.store(address, Ordering::Relaxed);
        address
    }

    /// Returns the C library's function; it is looked up the first time. The
    /// process ends with a message if there is none.
    #[inline(always)]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            address = self.found();
        }
        // SAFETY: F is the type that the C library documents for this name.
        unsafe { core::mem::transmute_copy(&address) }
    }

    #[cold]
    #[inline(never)]
    fn found(&self) -> *mut c_void {
        let address = self.find();
        if address.is_null() {
            die(&[
                "the C library lacks a function of POSIX threads; glibc 2.30 or newer is needed",
            ]);
        }
        address
    }
}

/// Declares the C library's functions, each by its symbol and type, and
/// `find_all`, which looks them all up.
#[macro_export]
macro_rules! real {
    ($($name:ident = $symbol:literal: fn($($argument:ty),* $(,)?);)*) => {
        $(pub(crate) static $name: $crate::real::Real<
            unsafe extern "C-unwind" fn($($argument),*) -> libc::c_int,
        > = $crate::real::Real::new($symbol);)*

        /// Looks up all that this C library has.
        pub(crate) fn find_all() {
            $($name.find();)*
        }
    };
}
