//! Names for a value behind each lock, with its guard, as Rust users expect them.
//!
//! A page of each says how it is used and how it differs from the standard library's: the
//! macros here write what is the same of many. They must never add code to a lock.

/// Makes the names for locks without a context: `Name<T>` and its guard.
macro_rules! mutexes {
    ($module:ident: $($name:ident $guard:ident $lock:ident, $own:literal;)*) => {$(
        #[doc = concat!("A value behind a [`", stringify!($lock), "`].\n\n```\nuse locklab_locks::",
            stringify!($module), "::", stringify!($name), ";\n\nstatic COUNT: ", stringify!($name),
            "<u32> = ", stringify!($name), "::new(0);\n\n*COUNT.lock() += 1;\n",
            "assert_eq!(COUNT.try_lock().map(|count| *count), Some(1));\n```\n\n",
            "# Differences from `std::sync::Mutex`\n\n- ", $own, "\n",
            "- No poisoning: a panic of the holder releases the lock.\n",
            "- It runs without an operating system, and a guard stays on its CPU (it is not `Send`).\n")]
        pub type $name<T> = lock_api::Mutex<$lock, T>;
        #[doc = concat!("The guard of a [`", stringify!($name), "`].")]
        pub type $guard<'a, T> = lock_api::MutexGuard<'a, $lock, T>;
    )*};
}

/// Makes the names for locks whose queue nodes belong to threads.
#[cfg(feature = "std")]
macro_rules! queue_mutexes {
    ($($name:ident $guard:ident $lock:ident, $own:literal;)*) => {$(
        #[doc = concat!("A value behind a [`", stringify!($lock),
            "`], whose queue nodes belong to threads.\n\n```\nuse locklab_locks::queue::{",
            stringify!($lock), ", ", stringify!($name), "};\n\nstatic COUNT: ", stringify!($name),
            "<u32> = ", stringify!($name), "::new(", stringify!($lock), "::new(), 0);\n\n",
            "*COUNT.lock() += 1;\nassert_eq!(*COUNT.lock(), 1);\n```\n\n",
            "# Differences from `std::sync::Mutex`\n\n- ", $own, "\n",
            "- A waiter spins, so a thread that is not running holds up the others.\n",
            "- No poisoning: a panic of the holder releases the lock.\n",
            "- The first lock of a thread allocates its queue node. Without `std`, ",
            "[`NodeMutex`](crate::mutex::NodeMutex) has the node on the stack.\n")]
        pub type $name<T> = crate::mutex::QueueMutex<$lock, T>;
        #[doc = concat!("The guard of a [`", stringify!($name), "`].")]
        pub type $guard<'a, T> = crate::mutex::QueueGuard<'a, $lock, T>;
    )*};
}

/// Makes the names for locks with readers: `Name<T>` and its two guards.
macro_rules! rw_locks {
    ($($name:ident $read:ident $write:ident $lock:ident, $own:literal;)*) => {$(
        #[doc = concat!("A value behind a [`", stringify!($lock),
            "`].\n\n```\nuse locklab_locks::rw::", stringify!($name), ";\n\nstatic NAMES: ",
            stringify!($name), "<Vec<&str>> = ", stringify!($name), "::new(Vec::new());\n\n",
            "NAMES.write().push(\"first\");\nassert_eq!(NAMES.read().len(), 1);\n```\n\n",
            "# Differences from `std::sync::RwLock`\n\n- ", $own, "\n",
            "- A waiter spins, so a thread that is not running holds up the others.\n",
            "- No poisoning: a panic of the holder releases the lock.\n",
            "- A writer can become a reader (`downgrade`).\n")]
        pub type $name<T> = lock_api::RwLock<$lock, T>;
        #[doc = concat!("A reader's guard of a [`", stringify!($name), "`].")]
        pub type $read<'a, T> = lock_api::RwLockReadGuard<'a, $lock, T>;
        #[doc = concat!("A writer's guard of a [`", stringify!($name), "`].")]
        pub type $write<'a, T> = lock_api::RwLockWriteGuard<'a, $lock, T>;
    )*};
}

#[cfg(feature = "std")]
pub(crate) use queue_mutexes;
pub(crate) use {mutexes, rw_locks};
