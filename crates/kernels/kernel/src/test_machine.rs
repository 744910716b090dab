//! The backend of kernels on a test machine: the same experiment file as in
//! QEMU, on a machine of the user's that ssh reaches.
//!
//! The machine's own system is *home*. From there `states` loads a kernel with
//! an initramfs in memory, starts it by kexec, waits until it answers, has it
//! run the workloads, collects the results, and restarts the machine into its
//! own system. `ssh` calls the user's ssh, `home` looks at the machine
//! without changing it, `dry_run` says what would be done. Kernels are made by
//! `locklab-kernel`, as for QEMU.
//!
//! Nothing here may install anything on the machine, write to a disk of it, or
//! leave it in a measured kernel if there is a way home.

mod backend;
mod bzimage;
mod contents;
mod disk;
pub mod dry_run;
pub mod home;
mod modules;
mod patience;
mod prepare;
mod session;
mod ssh;
mod states;
mod torture;

pub use backend::RemoteKernels;
pub use prepare::{doctor, prepare};
