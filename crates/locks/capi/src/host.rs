//! The host of the C library, which says which CPU the caller runs on.
//!
//! In a hosted build each thread is a CPU, and waits are futexes. In a
//! freestanding build the embedder answers, by two functions that it must
//! define and by others that it may supply (`locklab_set_host`).

#[cfg(feature = "std")]
pub(crate) use locklab_locks::Threads as Host;

#[cfg(not(feature = "std"))]
pub(crate) use freestanding::Host;
#[cfg(not(feature = "std"))]
pub use freestanding::{locklab_host, locklab_queue_nodes, locklab_set_host};

/// The platform of every lock in the library.
pub(crate) type P = locklab_locks::Native<Host>;

#[cfg(not(feature = "std"))]
mod freestanding {
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
    use locklab_locks::{Native, QueueNodes};

    /// Queue nodes of one CPU: 64 bytes, aligned to 64, zeroed at start.
    #[repr(C, align(64))]
    pub struct locklab_queue_nodes {
        /// Private to the library.
        opaque: [u8; 64],
    }

    const _: () =
        assert!(size_of::<QueueNodes<Native<Host>>>() == size_of::<locklab_queue_nodes>());

    unsafe extern "C" {
        /// Returns the number of this CPU, below 16383. Preemption is off from before a
        /// lock function until after the unlock.
        safe fn locklab_host_cpu() -> u32;
        /// Returns the queue nodes of a CPU: always the same, never freed.
        safe fn locklab_host_queue_nodes(cpu: u32) -> *mut locklab_queue_nodes;
    }

    /// The functions that the embedder may supply; see `locklab.h`.
    #[repr(C)]
    pub struct locklab_host {
        /// The NUMA node of this CPU.
        pub node: Option<extern "C" fn() -> u32>,
        /// Nanoseconds of a clock that never goes back.
        pub now: Option<extern "C" fn() -> u64>,
        /// Sleeps on a word.
        pub wait: Option<extern "C" fn(word: *const u32, expected: u32)>,
        /// Ends the sleep of one CPU on a word.
        pub wake: Option<extern "C" fn(word: *const u32)>,
        /// Returns whether this is a virtual machine without help.
        pub virtualized: Option<extern "C" fn() -> bool>,
    }

    static GIVEN: AtomicPtr<locklab_host> = AtomicPtr::new(ptr::null_mut());

    /// Gives the library its host.
    ///
    /// # Safety
    /// `host` is null or points to a host that stays, whose functions keep
    /// what `locklab.h` says.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn locklab_set_host(host: *const locklab_host) {
        // G1: pairs with G2: the members are set.
        GIVEN.store(host.cast_mut(), Ordering::Release);
    }

    fn given() -> Option<&'static locklab_host> {
        // G2: pairs with G1.
        // SAFETY: null, or a host that stays.
        unsafe { GIVEN.load(Ordering::Acquire).as_ref() }
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

        fn node() -> usize {
            given()
                .and_then(|host| host.node)
                .map_or(0, |node| node() as usize)
        }

        fn now() -> u64 {
            given().and_then(|host| host.now).map_or(0, |now| now())
        }

        fn wait(word: &AtomicU32, expected: u32) {
            match given().and_then(|host| host.wait) {
                Some(wait) => wait(word.as_ptr(), expected),
                None => core::hint::spin_loop(),
            }
        }

        fn wake(word: &AtomicU32) {
            if let Some(wake) = given().and_then(|host| host.wake) {
                wake(word.as_ptr());
            }
        }

        fn virtualized() -> bool {
            given()
                .and_then(|host| host.virtualized)
                .is_some_and(|virtualized| virtualized())
        }
    }

    #[cfg(not(test))]
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        // An embedder that sees this loop has passed a CPU number beyond the
        // promised range, or has more CPUs wait than the lock serves.
        loop {
            core::hint::spin_loop();
        }
    }
}
