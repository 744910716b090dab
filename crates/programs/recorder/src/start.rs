//! The start of a process: it maps the file that the variable names, before the
//! program runs. And its end by `exit`.

use crate::process::{self, Process};
use crate::{real, thread};
use core::ffi::CStr;
use libc::c_int;
use locklab_profile::clock;
use locklab_profile::message::say;
use locklab_trace::{FIRST, Header, MAGIC, VERSION, file_bytes};

/// Maps the file that the variable names. Without one nothing is recorded.
fn start() {
    real::find_all();
    // SAFETY: a C string; the program has not begun to change its environment.
    let path = unsafe { libc::getenv(c"LOCKLAB_RECORD".as_ptr()) };
    if path.is_null() {
        return;
    }
    // SAFETY: getenv returns a C string.
    let path = unsafe { CStr::from_ptr(path) };
    if let Err(why) = map(path) {
        say(&[
            "this process is not recorded: ",
            path.to_str().unwrap_or("the recording"),
            " ",
            why,
        ]);
    }
}

fn map(path: &CStr) -> Result<(), &'static str> {
    // SAFETY: a C string, and our own buffers; the mappings are checked.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return Err("cannot be opened by this user");
        }
        let mapped = map_open(file);
        libc::close(file);
        let header = mapped?;
        let process = libc::mmap(
            core::ptr::null_mut(),
            size_of::<Process>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if process == libc::MAP_FAILED {
            return Err("finds no memory");
        }
        if libc::madvise(process, size_of::<Process>(), libc::MADV_WIPEONFORK) != 0 {
            return Err("needs Linux 4.14 or newer");
        }
        if (*header).clock == 1 {
            clock::use_nanoseconds();
        }
        thread::find_usage();
        thread::make_key()?;
        process::set(header, process.cast());
    }
    thread::enter_image(false);
    Ok(())
}

/// Maps the file of the recording.
///
/// # Safety
/// `file` is an open descriptor.
unsafe fn map_open(file: c_int) -> Result<*mut Header, &'static str> {
    let map = |bytes: usize| {
        // SAFETY: a new mapping, of a descriptor of the caller's.
        let at = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err("cannot be mapped: the address space is limited");
        }
        Ok(at.cast::<Header>())
    };
    // SAFETY: zeros are a valid `stat`, and `file` is open.
    let length = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        libc::fstat(file, &raw mut stat);
        stat.st_size as u64
    };
    if length < FIRST as u64 {
        return Err("is no recording");
    }
    let head = map(FIRST)?;
    // SAFETY: a mapped page of the file.
    let (known, bytes) = unsafe {
        let known = (*head).magic == MAGIC && (*head).version == VERSION;
        let bytes = file_bytes((*head).blocks);
        libc::munmap(head.cast(), FIRST);
        (known, bytes)
    };
    if !known {
        return Err("is of another version than the recorder; 'cargo xtask install' builds both");
    }
    if length < bytes {
        return Err("is closed: its recording has ended");
    }
    map(bytes as usize)
}

/// Runs before the program does.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = {
    extern "C" fn begin() {
        start();
    }
    begin
};

/// Runs at `exit`, behind the program's own handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = {
    extern "C" fn end() {
        thread::exits();
    }
    end
};
