//! Names of places in a program, from the symbols and debug information of its
//! files.
//!
//! A lock is acquired by a wrapper (a guard, a class around a mutex, a C
//! function that adds checks), and the wrapper is the same for all locks. So
//! the name of a call is that of the first caller outside wrappers. It must
//! never fail: a file without symbols gives an offset.

use addr2line::Loader;
use locklab_replay::{NO_PLACE, Names};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A call site: the file, and the offset in it to which the call returns.
pub type Call = (PathBuf, u64);

/// The files that were read.
#[derive(Default)]
pub struct Symbols(BTreeMap<PathBuf, Option<Module>>);

struct Module {
    loader: Loader,
    /// The symbols that a distribution keeps in a file of their own, found by the build.
    debug: Option<Loader>,
    /// Holds for each segment its offset in the file, its bytes there, and
    /// the address it was linked for.
    segments: Vec<(u64, u64, u64)>,
    /// Static data: where it was linked for, its bytes, and its name, in order of the
    /// first.
    data: Vec<(u64, u64, String)>,
}

/// A calling function, possibly inlined into the next.
struct Caller {
    function: String,
    line: Option<String>,
}

impl Symbols {
    /// Returns the name of a stack of calls, the innermost first.
    #[must_use]
    pub fn place(&mut self, calls: &[Call]) -> String {
        let mut outermost = None;
        for (path, offset) in calls {
            let module = self.module(path);
            let file = path.file_name().unwrap_or(path.as_os_str()).display();
            let callers = module
                .as_ref()
                .map_or_else(Vec::new, |module| module.callers(*offset));
            if callers.is_empty() {
                // Without a name it may be any function; the caller of a
                // wrapper is not a wrapper.
                return format!("{file}+{offset:#x}");
            }
            for Caller { function, line } in callers {
                let line = line.map_or_else(String::new, |line| format!(" {line}"));
                let name = format!("{}{line} ({file})", short(&function));
                if !is_wrapper(&function) {
                    return name;
                }
                outermost = Some(name);
            }
        }
        outermost.unwrap_or_else(|| NO_PLACE.into())
    }
}

impl Names for Symbols {
    fn place(&mut self, calls: &[Call]) -> String {
        Self::place(self, calls)
    }

    fn data(
        &mut self,
        modules: &[locklab_trace::Module],
        image: u64,
        address: u64,
    ) -> Option<String> {
        modules
            .iter()
            .filter(|mapped| mapped.image == image)
            .find_map(|mapped| {
                let path = PathBuf::from(String::from_utf8_lossy(&mapped.path).into_owned());
                let module = self.module(&path).as_ref()?;
                let linked = module.linked(mapped.offset)?;
                let symbol = module.data(address.checked_sub(mapped.from.checked_sub(linked)?)?)?;
                let file = path.file_name().unwrap_or(path.as_os_str()).display();
                Some(format!("{} ({file})", short(&demangle(symbol))))
            })
    }
}

impl Symbols {
    /// Returns the functions that a call is in, innermost first: several where calls
    /// are inlined. Each with its file and line, if the program says them; none if it
    /// says no name.
    pub fn functions(&mut self, (path, offset): &Call) -> Vec<(String, Option<String>)> {
        let module = self.module(path).as_ref();
        let callers = module.map_or_else(Vec::new, |module| module.callers(*offset));
        let named = callers
            .into_iter()
            .map(|caller| (caller.function, caller.line));
        named.collect()
    }

    fn module(&mut self, path: &Path) -> &Option<Module> {
        self.0
            .entry(path.into())
            .or_insert_with(|| Module::load(path))
    }
}

impl Module {
    fn load(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let segments = object::File::parse(&*bytes)
            .ok()?
            .segments()
            .map(|segment| {
                let (from, length) = segment.file_range();
                (from, length, segment.address())
            })
            .collect();
        let data = data(&bytes).unwrap_or_default();
        let loader = Loader::new(path).ok()?;
        let debug = debug_file(&bytes).and_then(|path| Loader::new(path).ok());
        Some(Self {
            loader,
            debug,
            segments,
            data,
        })
    }

    /// Returns the address that the byte at an offset of the file was linked for.
    fn linked(&self, offset: u64) -> Option<u64> {
        let (from, _, address) = self
            .segments
            .iter()
            .find(|(from, length, _)| (*from..from + length).contains(&offset))?;
        Some(offset - from + address)
    }

    /// Returns the name of the static data at an address as linked.
    fn data(&self, address: u64) -> Option<&str> {
        let after = self.data.partition_point(|(from, ..)| *from <= address);
        let (from, bytes, name) = self.data.get(after.checked_sub(1)?)?;
        (address - from < *bytes).then_some(name)
    }

    /// Returns the functions that call there, innermost first: several where calls are
    /// inlined.
    fn callers(&self, offset: u64) -> Vec<Caller> {
        self.find(offset).unwrap_or_default()
    }

    fn find(&self, offset: u64) -> Option<Vec<Caller>> {
        // The call comes before the address that it returns to.
        let call = offset.checked_sub(1)?;
        let (from, _, address) = self
            .segments
            .iter()
            .find(|(from, length, _)| (*from..from + length).contains(&call))?;
        let probe = call - from + address;
        let mut callers = Vec::new();
        if let Ok(mut frames) = self.loader.find_frames(probe) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(function) = frame.function else {
                    continue;
                };
                let line = frame.location.and_then(|location| {
                    let file = Path::new(location.file?).file_name()?.to_str()?;
                    Some(format!("{file}:{}", location.line?))
                });
                let Ok(raw) = function.raw_name() else {
                    continue;
                };
                callers.push(Caller {
                    function: demangle(&raw),
                    line,
                });
            }
        }
        if callers.is_empty() {
            let symbol = self.loader.find_symbol(probe);
            let symbol = symbol.or_else(|| self.debug.as_ref()?.find_symbol(probe));
            callers.push(Caller {
                function: demangle(symbol?),
                line: None,
            });
        }
        Some(callers)
    }
}

/// Returns the file that has the symbols which were stripped from another, where it is
/// installed.
fn debug_file(bytes: &[u8]) -> Option<PathBuf> {
    let file = object::File::parse(bytes).ok()?;
    let id = file.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug");
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

/// Returns the symbols of static data of a file.
fn data(bytes: &[u8]) -> Option<Vec<(u64, u64, String)>> {
    let file = object::File::parse(bytes).ok()?;
    let of_data = |symbol: &object::Symbol<'_, '_>| {
        symbol.kind() == object::SymbolKind::Data && symbol.size() > 0
    };
    let named = |symbol: object::Symbol<'_, '_>| {
        Some((
            symbol.address(),
            symbol.size(),
            symbol.name().ok()?.to_owned(),
        ))
    };
    let mut data: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(of_data)
        .filter_map(named)
        .collect();
    data.sort();
    Some(data)
}

/// Returns a name as written in the source. The name of a C function is that already,
/// and some would be demangled as C++ types: `f` as `float`.
fn demangle(name: &str) -> String {
    if name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("__Z") {
        addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
    } else {
        name.to_owned()
    }
}

/// Returns whether a function acquires a lock on behalf of another: one of the standard
/// libraries, of a class that is a lock or a guard by its name, and C functions that lock
/// by theirs.
#[must_use]
pub fn is_wrapper(function: &str) -> bool {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    // A template's name is preceded by what it returns.
    let name = name.rsplit(' ').next().unwrap_or(name);
    if ["std::", "__gthr", "__gnu_cxx::", "pthread_", "core::"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        return true;
    }
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        [function] => words(function).iter().any(|word| {
            ["mutex", "lock", "unlock", "trylock", "spinlock"].contains(&word.as_str())
        }),
        [.., class, _] => words(class)
            .iter()
            .any(|word| ["mutex", "lock", "spinlock", "locker", "guard"].contains(&word.as_str())),
        [] => false,
    }
}

/// Returns the words of a name in camel or snake case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if c.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// Returns a function's name without its arguments, and no longer than a line.
fn short(function: &str) -> String {
    let name = function.split('(').next().unwrap_or(function);
    name.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_without_their_arguments() {
        assert_eq!(short("rocksdb::DB::Get(int, char)"), "rocksdb::DB::Get");
    }

    #[test]
    fn a_name_of_c_is_not_a_type_of_cpp() {
        for name in ["f", "fz", "hot", "many", "i", "add_lock"] {
            assert_eq!(demangle(name), name);
        }
        assert_eq!(demangle("_ZN5Queue3putEi"), "Queue::put(int)");
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
    }

    #[test]
    fn a_wrapper_is_what_locks_for_another() {
        for wrapper in [
            "std::mutex::lock()",
            "int std::__detail::__try_lock_impl<std::mutex>(std::mutex&)",
            "rocksdb::port::Mutex::Mutex(bool)",
            "rocksdb::InstrumentedMutex::Lock()",
            "leveldb::MutexLock::MutexLock(leveldb::port::Mutex*)",
            "inline_mysql_mutex_lock",
            "item_lock",
            "g_mutex_unlock",
        ] {
            assert!(is_wrapper(wrapper), "{wrapper}");
        }
        for user in [
            "Queue::put(int)",
            "rocksdb::DBImpl::DBImpl(rocksdb::Options const&)",
            "rocksdb::BlockBasedTable::Open(rocksdb::Clock*)",
            "std_clock",
            "blockdev_read",
            "main",
        ] {
            assert!(!is_wrapper(user), "{user}");
        }
    }
}
