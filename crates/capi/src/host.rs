//! Where the locks learn which CPU they run on.
//!
//! Hosted: each thread is a CPU, waits are futexes. Freestanding: the
//! embedder says.

#[cfg(feature = "std")]
pub(crate) use locklab_locks::Threads as Host;

#[cfg(not(feature = "std"))]
pub(crate) use freestanding::Host;
#[cfg(not(feature = "std"))]
pub use freestanding::locklab_queue_nodes;

#[cfg(not(feature = "std"))]
mod freestanding {
    use locklab_locks::{Native, QueueNodes};

    /// Queue nodes of one CPU: 64 bytes, aligned to 64, zeroed at start.
    #[repr(C, align(64))]
    pub struct locklab_queue_nodes {
        /// For the library only.
        opaque: [u8; 64],
    }

    const _: () =
        assert!(size_of::<QueueNodes<Native<Host>>>() == size_of::<locklab_queue_nodes>());

    unsafe extern "C" {
        /// Which CPU this is, below 16383. Preemption is off from before a
        /// lock function until after the unlock.
        safe fn locklab_host_cpu() -> u32;
        /// The queue nodes of a CPU: always the same, never freed.
        safe fn locklab_host_queue_nodes(cpu: u32) -> *mut locklab_queue_nodes;
    }

    /// The embedder.
    pub(crate) struct Host;

    // SAFETY: what the embedder promises in `locklab.h`.
    unsafe impl locklab_locks::Host for Host {
        fn cpu() -> usize {
            locklab_host_cpu() as usize
        }

        fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
            let nodes = locklab_host_queue_nodes(cpu as u32);
            // SAFETY: the embedder gives zeroed, aligned memory of this size
            // that is never freed; zero is the initial state of every atomic.
            unsafe { &*nodes.cast() }
        }
    }

    #[cfg(not(test))]
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        // Nothing in the library panics; an embedder that sees this loop has
        // passed a CPU number beyond the promised range.
        loop {
            core::hint::spin_loop();
        }
    }
}
