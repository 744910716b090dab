//! The platform of the interposer's own tables, which have locks too.

use crate::futex;
use crate::process::die;
use core::sync::atomic::AtomicU32;
use locklab_locks::{Host, Native, QueueNodes};
use locklab_pthread_protocols::condition::WakeAt;
use locklab_pthread_protocols::guarded;

/// The interposer's own tables and lists, whatever thread uses them. A sleep
/// for one of them is no wait for a lock of the program, and needs no record of
/// the thread.
pub(crate) struct Interposer;

/// The platform of [`Interposer`].
pub(crate) type Own = Native<Interposer>;
/// The lock around a table of the interposer.
pub(crate) type Guarded = guarded::Guarded<Own>;

// SAFETY: waits and wakes by the address of the word; none of its locks is of
// a kind that asks for a number or for queue nodes.
unsafe impl Host for Interposer {
    fn cpu() -> usize {
        die(&["a lock of the interposer's own asks for the number of a thread"])
    }

    fn queue_nodes(_: usize) -> &'static QueueNodes<Own> {
        die(&["a lock of the interposer's own asks for queue nodes"])
    }

    fn wait(word: &AtomicU32, expected: u32) {
        futex::wait(word, expected);
    }

    fn wake(word: &AtomicU32) {
        futex::wake(core::ptr::from_ref(word), 1);
    }
}

// SAFETY: the system call takes the address.
unsafe impl WakeAt<Own> for Interposer {
    fn wake_at(word: *const AtomicU32) {
        futex::wake(word, 1);
    }
}
