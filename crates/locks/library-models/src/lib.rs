//! Models of the locks of other libraries, each written from its description.
//!
//! A program that uses such a lock is simulated with its model, and the model checker explores
//! the model, under the name that the library's own lock has in measurements. The models are
//! generic over the platform as the locks of `locklab-locks` are. They must never be deployed,
//! and must never be measured in place of the library: its next version may differ.
#![no_std]

mod abseil_mutex;
pub mod catalogue;
mod glibc_adaptive;
mod glibc_rw;
mod go_mutex;
// The macros of the public locks; a model uses some of them.
#[allow(dead_code, unused_imports, unused_macros)]
mod lock_api_impl;
mod musl_mutex;
mod parking_lot;
mod parking_lot_rw;
mod sleep_queue;
mod srw;
mod std_mutex;
mod std_rw;
mod swift_mutex;

pub use abseil_mutex::AbseilMutex;
pub use glibc_adaptive::GlibcAdaptive;
pub use glibc_rw::GlibcRw;
pub use go_mutex::GoMutex;
pub use musl_mutex::MuslMutex;
pub use parking_lot::ParkingLotMutex;
pub use parking_lot_rw::ParkingLotRw;
pub use srw::Srw;
pub use std_mutex::StdMutex;
pub use std_rw::StdRw;
pub use swift_mutex::SwiftMutex;

// The modules that the sources of the models name, as in `locklab-locks`.
mod futex {
    pub(crate) use locklab_locks::Futex;
}
mod native {
    pub(crate) use locklab_platform::native::*;
}
mod platform {
    pub(crate) use locklab_platform::platform::*;
}
mod raw {
    pub(crate) use locklab_platform::raw_lock::*;
}
mod sleepers {
    pub(crate) use locklab_platform::sleepers::*;
}
