//! The process itself: a variable of its environment, and its end with an error
//! message.

use core::ffi::CStr;
pub(crate) use locklab_profile::message::die;

/// Returns a variable of the environment, read without allocation.
pub(crate) fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: a C string; the value stays, since the program has not had the
    // time to change its environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string.
    unsafe { CStr::from_ptr(value) }
        .to_str()
        .ok()
        .filter(|value| !value.is_empty())
}
