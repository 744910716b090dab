//! A compiled lock in this process: its functions, its data, its lines.
//!
//! Loading runs the library's initialisers, so an instrumented one is loaded
//! in a child only ([`crate::isolate`]).

use crate::lines::Lines;
use libloading::os::unix;
use locklab_host::error::Error;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SegmentFlags, SymbolKind,
};
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// The greatest number of libraries in one process. Each has types of its own,
/// whose measured loops are compiled for it.
pub(crate) const LIBRARIES: usize = 8;

/// `lab_lock`, `lab_unlock`, `lab_read_lock`, `lab_read_unlock`.
pub(crate) type Act = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);
/// `lab_trylock`, `lab_read_trylock`.
pub(crate) type Try = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int;
/// `lab_init`.
pub(crate) type Init = unsafe extern "C-unwind" fn(*mut c_void);
/// `lab_is_locked`.
pub(crate) type Ask = unsafe extern "C-unwind" fn(*const c_void) -> c_int;

/// The functions that the instrumented code calls, in the layout of
/// c/instrumented.c.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) load: extern "C-unwind" fn(usize, c_uint, c_int, usize) -> u64,
    pub(crate) store: extern "C-unwind" fn(usize, c_uint, u64, c_int, usize),
    pub(crate) update: extern "C-unwind" fn(usize, c_uint, c_uint, u64, c_int, usize) -> u64,
    pub(crate) compare: extern "C-unwind" fn(usize, c_uint, u64, u64, c_int, c_int, usize) -> u64,
    pub(crate) fence: extern "C-unwind" fn(c_int, usize),
    pub(crate) read: extern "C-unwind" fn(usize, usize, c_uint, usize),
    pub(crate) write: extern "C-unwind" fn(usize, usize, c_uint, usize),
    pub(crate) cpu: extern "C-unwind" fn() -> c_uint,
    pub(crate) node: extern "C-unwind" fn() -> c_uint,
    pub(crate) relax: extern "C-unwind" fn(*const u8, usize, usize),
    pub(crate) fail: extern "C-unwind" fn(*const c_char, *const c_char, c_uint),
    pub(crate) futex_wait: extern "C-unwind" fn(usize, c_uint, usize) -> c_int,
    pub(crate) futex_wake: extern "C-unwind" fn(usize, c_uint, usize) -> c_uint,
    pub(crate) refuse_call: extern "C-unwind" fn(c_long, c_long, usize),
}

/// The access of a `read` or `write` is volatile: c/instrumented.c numbers it.
pub(crate) const VOLATILE: c_uint = 1;

/// The operation of an `update` is an exchange: c/instrumented.c numbers it.
pub(crate) const EXCHANGE: c_uint = 0;

/// The mark in the failure order of `compare` that it may fail without cause, as
/// c/instrumented.c says.
pub(crate) const WEAK: c_int = 0x100;

/// Describes what c/instrumented.c notes at the entry of each function: the registers
/// that a call preserves and the stack pointer. Beside memory, a loop of the caller
/// depends on nothing else.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    registers: [u64; 6],
    /// 0: it is not known.
    pub(crate) stack: usize,
    /// Says whether a compare-and-swap that would succeed has failed.
    failed: u64,
}

impl Frame {
    /// Returns one whose registers lie at the end of the stack.
    pub(crate) fn pushed(stack: *const u8, bytes: usize) -> Self {
        let _ = bytes;
        Self {
            stack: stack as usize,
            ..Self::default()
        }
    }

    /// Returns the registers and the stack, up to the entry of the lock's code; empty if they
    /// are not known.
    ///
    /// # Safety
    /// The frame is of a call that has not returned.
    pub(crate) unsafe fn state(&self, entry: usize) -> Vec<u8> {
        let bytes = entry.saturating_sub(self.stack);
        if self.stack == 0 || bytes == 0 {
            return Vec::new();
        }
        let registers = self
            .registers
            .iter()
            .flat_map(|register| register.to_ne_bytes());
        // SAFETY: the live part of the caller's stack.
        let stack = unsafe { std::slice::from_raw_parts(self.stack as *const u8, bytes) };
        registers.chain(stack.iter().copied()).collect()
    }
}

/// Returns the result of a read-modify-write, by the operation numbers of
/// c/instrumented.c.
pub(crate) fn updated(operation: c_uint, old: u64, value: u64) -> u64 {
    match operation {
        0 => value,
        1 => old.wrapping_add(value),
        2 => old.wrapping_sub(value),
        3 => old & value,
        4 => old | value,
        5 => old ^ value,
        _ => !(old & value),
    }
}

/// Returns the low `size` bytes.
pub(crate) fn low(size: c_uint, value: u64) -> u64 {
    match size {
        8.. => value,
        size => value & ((1 << (8 * size)) - 1),
    }
}

/// Returns what the lock's code has found wrong with itself, for the functions `fail`: an
/// assertion of this text, or in line 0 a call of that function.
///
/// # Safety
/// Both are strings of the library.
pub(crate) unsafe fn found_wrong(text: *const c_char, file: *const c_char, line: c_uint) -> String {
    // SAFETY: promised.
    let (text, file) = unsafe {
        (
            CStr::from_ptr(text).to_string_lossy(),
            CStr::from_ptr(file).to_string_lossy(),
        )
    };
    let file = file.rsplit('/').next().unwrap_or("");
    match line {
        0 => format!("the lock called {text}"),
        _ => format!("the assertion `{text}` at {file}:{line} does not hold"),
    }
}

/// Returns why a word at this address is none to sleep on; `line` is that of the call.
pub(crate) fn no_futex_word(address: usize, line: &str) -> Option<String> {
    (!address.is_multiple_of(4)).then(|| {
        format!("the futex word at {line} is not aligned to 4 bytes (address {address:#x})")
    })
}

/// Returns why a call of the system at this line is refused; `operation` is that of a
/// futex, or negative.
pub(crate) fn call_refused(number: c_long, operation: c_long, line: &str) -> String {
    let plain = operation & !c_long::from(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let what = match operation {
        ..0 => format!("call {number} of the system"),
        // Without a time-out it is not refused.
        _ if plain == c_long::from(libc::FUTEX_WAIT) => "FUTEX_WAIT with a time-out".to_owned(),
        operation => format!("operation {operation} of a futex"),
    };
    format!("{what} at {line} {REFUSED}")
}

/// How the sentence ends about what no modelled world has.
pub(crate) const REFUSED: &str = "cannot be simulated or checked; FUTEX_WAIT without a time-out \
                                  and FUTEX_WAKE can";

/// An object of a user's code, loaded. It stays loaded until the process ends.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    library: Arc<ManuallyDrop<unix::Library>>,
    /// Says where the loader put it: an address in the file is relative to this.
    pub(crate) base: usize,
    /// Address range of its code.
    pub(crate) code: Range<usize>,
    /// Address range of its writable data.
    pub(crate) data: Range<usize>,
    /// The first values of thread-local data, and the bytes that each thread has of them.
    pub(crate) thread_local: (Range<usize>, usize),
    /// Its static variables, by name, in order of their addresses; empty if the file has no symbols.
    pub(crate) objects: Arc<Vec<(String, Range<usize>)>>,
    /// Says where its functions note how they were entered; 0 if they do not.
    entered: usize,
}

impl Loaded {
    /// Returns how the function under way was entered, once: another call from within that function is not entered anew.
    pub(crate) fn take_entered(&self) -> Frame {
        // SAFETY: as above.
        unsafe { (self.entered as *mut Frame).as_mut() }.map_or_else(Frame::default, |entered| {
            let frame = *entered;
            entered.stack = 0;
            frame
        })
    }

    /// Makes the compare-and-swap under way fail although it would succeed.
    pub(crate) fn fails_without_cause(&self) {
        // SAFETY: as above; the code of the lock runs on this thread.
        if let Some(entered) = unsafe { (self.entered as *mut Frame).as_mut() } {
            entered.failed = 1;
        }
    }

    /// Returns the address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<*mut c_void> {
        // SAFETY: used as an address only.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
        Some(symbol.into_raw().cast())
    }

    /// Stores a table in a symbol.
    pub(crate) fn put<T: Copy>(&self, name: &str, table: T) -> Result<(), Error> {
        let missing = || Error::Failed(format!("the compiled file has no {name}"));
        let address = self.address(name).ok_or_else(missing)?;
        // SAFETY: the table lies there, by the file of Locklab that was linked in.
        unsafe { address.cast::<T>().write(table) };
        Ok(())
    }

    /// Loads an object, and stores `table` in its symbol `name`.
    pub(crate) fn load<T: Copy>(path: &Path, name: &str, table: T) -> Result<Self, Error> {
        let cannot = |e: &dyn std::fmt::Display| {
            Error::Failed(format!("cannot load {}: {e}", path.display()))
        };
        can_load()?;
        // SAFETY: made by this crate from the user's file, whose initialisers
        // are the compiler's own; that the user's code may do anything is why
        // this is done in a child.
        let library = unsafe { unix::Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) }
            .map_err(|e| cannot(&e))?;
        let bytes = std::fs::read(path).map_err(|e| cannot(&e))?;
        let file = object::File::parse(&*bytes).map_err(|e| cannot(&e))?;
        let of_table = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(name));
        let offset = match of_table {
            Some(symbol) if symbol.size() == size_of::<T>() as u64 => symbol.address() as usize,
            _ => return Err(cannot(&"another version of Locklab compiled it")),
        };
        let mut loaded = Self {
            // It is never unloaded: locks in static data may point into it.
            library: Arc::new(ManuallyDrop::new(library)),
            base: 0,
            code: 0..0,
            data: 0..0,
            thread_local: (0..0, 0),
            objects: Arc::default(),
            entered: 0,
        };
        let of_table = loaded.address(name);
        let of_table = of_table.ok_or_else(|| cannot(&format_args!("it has no {name}")))?;
        // SAFETY: the table lies there, by the file of Locklab that was linked
        // in, and has this size.
        unsafe { of_table.cast::<T>().write(table) };
        let base = of_table as usize - offset;
        loaded.base = base;
        let symbol = |name: &str| {
            file.dynamic_symbols()
                .find(|symbol| symbol.name() == Ok(name) && symbol.is_definition())
                .map(|symbol| symbol.address() as usize)
        };
        for segment in file.segments() {
            let start = base + segment.address() as usize;
            let range = start..start + segment.size() as usize;
            if let SegmentFlags::Elf { p_flags, .. } = segment.flags() {
                if p_flags & object::elf::PF_X != object::elf::ProgramFlags(0) {
                    loaded.code = range;
                } else if p_flags & object::elf::PF_W != object::elf::ProgramFlags(0) {
                    loaded.data = range;
                }
            }
        }
        for section in file.sections() {
            let start = base + section.address() as usize;
            let end = start + section.size() as usize;
            let (image, bytes) = &mut loaded.thread_local;
            match section.kind() {
                SectionKind::Tls => *image = start..end,
                SectionKind::UninitializedTls if image.start == image.end => *image = start..start,
                SectionKind::UninitializedTls => {}
                _ => continue,
            }
            *bytes = (end - image.start).next_multiple_of(64);
        }
        let variables = file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0
        });
        let objects = variables.map(|variable| {
            let start = base + variable.address() as usize;
            let name = variable.name().unwrap_or("static data").to_owned();
            (name, start..start + variable.size() as usize)
        });
        // A section that the file names by its limits is accessed as a whole, with what
        // lies between its variables: the kernel's data of each CPU are copied so.
        let sections = file.symbols().filter_map(|first| {
            let name = first.name().ok()?.strip_prefix("__start_")?;
            let last = symbol(&format!("__stop_{name}"))?;
            let memory = base + first.address() as usize..base + last;
            first.is_definition().then(|| (name.to_owned(), memory))
        });
        let mut objects: Vec<(String, Range<usize>)> = objects.chain(sections).collect();
        objects.sort_by_key(|(_, memory)| memory.start);
        loaded.objects = Arc::new(objects);
        if let Some(at) = loaded.address("locklab_entered_at") {
            // SAFETY: a pointer of the file of Locklab that was linked in.
            loaded.entered = unsafe { at.cast::<usize>().read() };
        }
        Ok(loaded)
    }
}

/// A lock of the user's, loaded.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    loaded: Loaded,
    pub(crate) lock: Act,
    pub(crate) unlock: Act,
    pub(crate) try_lock: Option<Try>,
    /// Equal to `lock` and `unlock` where readers do not share it.
    pub(crate) read_lock: Act,
    pub(crate) read_unlock: Act,
    pub(crate) try_read: Option<Try>,
    pub(crate) downgrade: Option<Act>,
    pub(crate) init: Option<Init>,
    pub(crate) is_locked: Option<Ask>,
}

impl Deref for Library {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.loaded
    }
}

impl Library {
    /// Loads a lock, and stores `table` in its symbol `name`.
    pub(crate) fn load<T: Copy>(path: &Path, name: &str, table: T) -> Result<Self, Error> {
        let loaded = Loaded::load(path, name, table)?;
        let missing = |name: &str| Error::Failed(format!("{} defines no {name}", path.display()));
        let address = |name: &str| loaded.address(name);
        let needed = |name: &str| address(name).ok_or_else(|| missing(name));
        let (lock, unlock) = (needed("lab_lock")?, needed("lab_unlock")?);
        // SAFETY: of these types, by the header that declares them.
        unsafe {
            Ok(Self {
                lock: std::mem::transmute::<*mut c_void, Act>(lock),
                unlock: std::mem::transmute::<*mut c_void, Act>(unlock),
                read_lock: std::mem::transmute::<*mut c_void, Act>(
                    address("lab_read_lock").unwrap_or(lock),
                ),
                read_unlock: std::mem::transmute::<*mut c_void, Act>(
                    address("lab_read_unlock").unwrap_or(unlock),
                ),
                try_read: address("lab_read_trylock")
                    .map(|f| std::mem::transmute::<*mut c_void, Try>(f)),
                downgrade: address("lab_downgrade")
                    .map(|f| std::mem::transmute::<*mut c_void, Act>(f)),
                try_lock: address("lab_trylock")
                    .map(|f| std::mem::transmute::<*mut c_void, Try>(f)),
                init: address("lab_init").map(|f| std::mem::transmute::<*mut c_void, Init>(f)),
                is_locked: address("lab_is_locked")
                    .map(|f| std::mem::transmute::<*mut c_void, Ask>(f)),
                loaded,
            })
        }
    }
}

/// Maps a site in a library to its source line.
pub(crate) struct Sites {
    base: usize,
    lines: Lines,
}

impl Sites {
    pub(crate) fn new(library: &Loaded, path: &Path) -> Self {
        Self {
            base: library.base,
            lines: Lines::of(path),
        }
    }

    /// Returns the path, file, line and column of a call that returns to `site`.
    pub(crate) fn position(&self, site: usize) -> Option<(String, String, u32, u32)> {
        self.lines.position(site.checked_sub(self.base + 1)?)
    }

    /// Returns the line of a call that returns to `site`.
    pub(crate) fn line(&self, site: usize) -> Option<String> {
        self.lines.of_call(site.checked_sub(self.base)?)
    }
}

/// Says whether this command can load libraries at all.
///
/// # Errors
/// [`Error::Failed`] if it is linked statically, as that of a wheel is.
pub(crate) fn can_load() -> Result<(), Error> {
    if cfg!(target_feature = "crt-static") {
        return Err(Error::Failed(
            "a statically linked locklab cannot load a lock of your own; take the one of the \
             Debian package, or build it with 'cargo build --release'"
                .to_owned(),
        ));
    }
    Ok(())
}
