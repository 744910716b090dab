//! Records what an unmodified program does with its pthread locks.
//!
//! `LD_PRELOAD=liblocklab_recorder.so LOCKLAB_RECORD=FILE PROGRAM`, where FILE
//! begins with a header of `locklab_trace`; `locklab record` makes it and sets
//! the variables. The program keeps glibc's own locks: each function here notes
//! the time, calls glibc's, and notes the time again. (The library that puts
//! other locks under a program is `locklab-preload`; a recording under another
//! lock would say what that lock does to the program, and not what the program
//! does.)
//!
//! Layout: the functions of the C library (`exports`) find the records of their
//! thread (`thread`), which go to a block of the mapped file (`process`); call
//! sites get numbers, and are walked once each (`stacks`). A program that says itself what
//! it does with locks of its own calls `user_locks`.
//!
//! Nothing here may allocate by `malloc` under a lock's function, panic, keep a
//! file open, or acquire a lock of the program: any of these may in turn use
//! the very mutex that is being acquired.

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the recorder knows glibc on 64-bit Linux only");

mod exports;
mod lock;
mod modules;
mod process;
mod real;
mod stacks;
mod start;
mod thread;
mod user_locks;
