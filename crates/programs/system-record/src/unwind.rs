//! The calls that a copied stack holds, by the tables of the program's files, and their names.
//!
//! A file without tables is walked by frame pointers. A stack that ends early keeps what was
//! found, and says that it ended early.

use crate::addresses::{Mapping, Space};
use crate::kernel_symbols::KernelSymbols;
use crate::raw::Stack;
use crate::spin_loops::{Code, look};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use locklab_preload_run::{Runtime, Symbols};
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};

/// The smallest page of any processor.
const PAGE: u64 = 4096;
/// The most calls of a stack that are kept.
const MOST: usize = 32;

/// A call with its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) function: String,
    /// File and line, where the program says them.
    pub(crate) line: Option<String>,
    /// The name of the program's file, or of the kernel.
    pub(crate) file: String,
}

/// Tables of a file.
struct Tables {
    /// Holds for each segment that is run: offset in the file, bytes there, address.
    segments: Vec<(u64, u64, u64)>,
    sections: Sections,
}

#[derive(Clone, Default)]
struct Sections {
    text: Option<(u64, Arc<[u8]>)>,
    eh_frame: Option<(u64, Arc<[u8]>)>,
    eh_frame_hdr: Option<(u64, Arc<[u8]>)>,
    debug_frame: Option<Arc<[u8]>>,
    got: Option<(u64, u64)>,
}

/// Bytes that several processes share.
#[derive(Clone, Default)]
struct Bytes(Arc<[u8]>);

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Unwinds and names the stacks of all processes.
#[derive(Default)]
pub(crate) struct Stacks {
    files: HashMap<PathBuf, Option<Arc<Tables>>>,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    processes: HashMap<u32, (Unwinder<Bytes>, Cache)>,
    symbols: Symbols,
    /// Names by file and offset.
    names: HashMap<(Arc<PathBuf>, u64), Vec<Named>>,
    compiled: HashMap<u32, BTreeMap<u64, (u64, String)>>,
    kernel: Option<KernelSymbols>,
    /// What the code at a place does.
    loops: HashMap<(Arc<PathBuf>, u64), Code>,
    /// The runtime of the files that are mapped.
    pub(crate) runtime: Option<&'static Runtime>,
}

impl Stacks {
    /// Adds a new mapping of a process.
    pub(crate) fn mapped(&mut self, process: u32, mapping: &Mapping) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Some(tables) = self.tables(process, &mapping.path)
            && let Some(module) = module(&tables, mapping)
        {
            let entry = self.processes.entry(process);
            let (unwinder, _) = entry.or_insert_with(|| (Unwinder::new(), Cache::new()));
            unwinder.add_module(module);
        }
    }

    /// Begins a process that has a new image, or is forked, with what is mapped.
    pub(crate) fn begins(&mut self, process: u32, space: &Space) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        self.processes.remove(&process);
        self.compiled.remove(&process);
        let mappings: Vec<Mapping> = space.mappings().cloned().collect();
        for mapping in &mappings {
            self.mapped(process, mapping);
        }
    }

    fn tables(&mut self, process: u32, path: &Path) -> Option<Arc<Tables>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let bytes = here(process, path).and_then(|path| fs::read(path).ok());
        if let Some(bytes) = bytes.as_ref().filter(|_| self.runtime.is_none()) {
            self.runtime = Runtime::of_file(path, bytes);
        }
        let tables = bytes.and_then(|bytes| tables(&bytes)).map(Arc::new);
        self.files.insert(path.into(), tables.clone());
        tables
    }

    /// Returns the calls of a stack with their names, innermost first, and whether it
    /// was followed to its end.
    pub(crate) fn calls(
        &mut self,
        process: u32,
        space: &Space,
        stack: &Stack,
    ) -> (Vec<Named>, bool) {
        let (addresses, whole) = self.walk(process, stack, MOST);
        let mut named = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            // The first is where it is, the others where they return to.
            let call = match number {
                0 => *address,
                _ => address.saturating_sub(1),
            };
            named.extend(self.name(process, space, call));
            if named.len() >= MOST {
                named.truncate(MOST);
                break;
            }
        }
        (named, whole)
    }

    /// Returns whether a stack was copied while the program was in a loop that only waits, or in
    /// a function by which such a loop lets time pass.
    pub(crate) fn spins(&mut self, process: u32, space: &Space, stack: &Stack) -> bool {
        let (addresses, _) = self.walk(process, stack, 2);
        let mut codes = addresses.iter().take(2);
        let mut next = || {
            let place = *codes.next()?;
            Some(self.code(process, space, place))
        };
        match next() {
            Some(Code::Spins { .. }) => true,
            Some(Code::Returns { pauses }) => {
                matches!(next(), Some(Code::Spins { tries }) if tries || pauses)
            }
            Some(Code::Works) | None => false,
        }
    }

    /// Returns what the code at a place does.
    fn code(&mut self, process: u32, space: &Space, place: u64) -> Code {
        let Some(mapping) = space.find(place) else {
            return Code::Works;
        };
        let offset = place - mapping.from + mapping.offset;
        let key = (mapping.path.clone(), offset);
        if let Some(known) = self.loops.get(&key) {
            return *known;
        }
        let code = self.tables(process, &mapping.path).and_then(|tables| {
            let mut segments = tables.segments.iter();
            let of = segments.find(|(from, length, _)| (*from..from + length).contains(&offset));
            let (from, _, address) = of?;
            let (begin, code) = tables.sections.text.as_ref()?;
            Some(look(code, *begin, offset - from + address))
        });
        let code = code.unwrap_or(Code::Works);
        self.loops.insert(key, code);
        code
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn walk(&mut self, process: u32, stack: &Stack, most: usize) -> (Vec<u64>, bool) {
        // The kernel has followed it itself.
        if stack.bytes.is_empty() {
            return (stack.calls.clone(), false);
        }
        let entry = self.processes.entry(process);
        let (unwinder, cache) = entry.or_insert_with(|| (Unwinder::new(), Cache::new()));
        let Some((place, registers, top)) = begin(&stack.registers) else {
            return (Vec::new(), false);
        };
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(top).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.copied().map(u64::from_le_bytes).ok_or(())
        };
        let mut frames = unwinder.iter_frames(place, registers, cache, &mut read);
        let mut addresses = Vec::new();
        while addresses.len() < most {
            match frames.next() {
                Ok(Some(frame)) => addresses.push(frame.address()),
                Ok(None) => return (addresses, true),
                Err(_) => return (addresses, false),
            }
        }
        (addresses, true)
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn walk(&mut self, _: u32, stack: &Stack, _: usize) -> (Vec<u64>, bool) {
        (stack.calls.clone(), false)
    }

    fn name(&mut self, process: u32, space: &Space, address: u64) -> Vec<Named> {
        let Some(mapping) = space.find(address) else {
            let compiled = self.compiled(process);
            let found = compiled.range(..=address).next_back();
            let name = found.filter(|(_, (to, _))| address < *to);
            return vec![Named {
                function: name.map_or("code compiled at run time".into(), |(_, (_, name))| {
                    name.clone()
                }),
                line: None,
                file: "no file".into(),
            }];
        };
        let offset = address - mapping.from + mapping.offset;
        let key = (mapping.path.clone(), offset);
        if let Some(named) = self.names.get(&key) {
            return named.clone();
        }
        let path = here(process, &mapping.path).unwrap_or_else(|| (*mapping.path).clone());
        let file = mapping
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // An address that a call returns to is expected there.
        let functions = self.symbols.functions(&(path, offset + 1));
        let mut named: Vec<Named> = functions
            .into_iter()
            .map(|(function, line)| Named {
                function,
                line,
                file: file.clone(),
            })
            .collect();
        if named.is_empty() {
            named.push(Named {
                function: format!("{file}+{offset:#x}"),
                line: None,
                file,
            });
        }
        self.names.insert(key, named.clone());
        named
    }

    /// Returns the map that a runtime writes of what it compiles, for perf.
    fn compiled(&mut self, process: u32) -> &BTreeMap<u64, (u64, String)> {
        self.compiled.entry(process).or_insert_with(|| {
            let name = PathBuf::from(format!("/tmp/perf-{process}.map"));
            let text = here(process, &name).and_then(|path| fs::read_to_string(path).ok());
            let lines = text.iter().flat_map(|text| text.lines());
            let functions = lines.filter_map(|line| {
                let mut words = line.splitn(3, ' ');
                let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
                let (from, length) = (number(words.next())?, number(words.next())?);
                Some((from, (from.checked_add(length)?, words.next()?.to_owned())))
            });
            functions.collect()
        })
    }

    /// Calls of the kernel with their names.
    pub(crate) fn kernel_calls(&mut self, calls: &[u64]) -> Vec<Named> {
        let kernel = self.kernel.get_or_insert_with(KernelSymbols::read);
        let named = calls.iter().map(|&address| Named {
            function: kernel.name(address),
            line: None,
            file: "kernel".into(),
        });
        named.collect()
    }

    /// Returns whether the kernel says the names of its functions, if it was asked.
    pub(crate) fn kernel_has_names(&self) -> bool {
        self.kernel.as_ref().is_none_or(KernelSymbols::are_there)
    }
}

/// Returns a file as this process can read it: that of another mount namespace is below
/// the root of a process there.
fn here(process: u32, path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let root = PathBuf::from(format!("/proc/{process}/root"));
    let below = root.join(path.strip_prefix("/").ok()?);
    match below.is_file() {
        true => Some(below),
        false => path.is_file().then(|| path.to_path_buf()),
    }
}

fn tables(bytes: &[u8]) -> Option<Tables> {
    let file = object::File::parse(bytes).ok()?;
    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        let bytes = section.uncompressed_data().ok()?;
        Some((section.address(), Arc::<[u8]>::from(&*bytes)))
    };
    let segments = file
        .segments()
        .filter(|segment| segment.permissions().executable())
        .map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        })
        .collect();
    Some(Tables {
        segments,
        sections: Sections {
            text: section(".text"),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
            got: file
                .section_by_name(".got")
                .map(|section| (section.address(), section.size())),
        },
    })
}

fn module(tables: &Tables, mapping: &Mapping) -> Option<Module<Bytes>> {
    // A mapping begins at a page, and its segment perhaps within it.
    let (offset, _, address) = tables.segments.iter().find(|(from, length, _)| {
        (from - from % PAGE..from + (*length).max(1)).contains(&mapping.offset)
    })?;
    let base = mapping
        .from
        .wrapping_sub(mapping.offset)
        .wrapping_add(*offset)
        .wrapping_sub(*address);
    let range = |section: &Option<(u64, Arc<[u8]>)>| {
        section
            .as_ref()
            .map(|(at, bytes)| *at..at + bytes.len() as u64)
    };
    let bytes = |section: &Option<(u64, Arc<[u8]>)>| {
        section.as_ref().map(|(_, bytes)| Bytes(bytes.clone()))
    };
    let sections = &tables.sections;
    Some(Module::new(
        mapping.path.to_string_lossy().into_owned(),
        mapping.from..mapping.to,
        base,
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(&sections.text),
            text: bytes(&sections.text),
            got_svma: sections.got.map(|(at, length)| at..at + length),
            eh_frame_svma: range(&sections.eh_frame),
            eh_frame: bytes(&sections.eh_frame),
            eh_frame_hdr_svma: range(&sections.eh_frame_hdr),
            eh_frame_hdr: bytes(&sections.eh_frame_hdr),
            debug_frame: sections.debug_frame.clone().map(Bytes),
            ..ExplicitModuleSectionInfo::default()
        },
    ))
}

/// Returns where unwinding begins: the place, the registers, and the address of the
/// copied bytes.
#[cfg(target_arch = "x86_64")]
fn begin(registers: &[u64]) -> Option<(u64, framehop::x86_64::UnwindRegsX86_64, u64)> {
    // In the order of the kernel's numbers: bp, sp, ip.
    let &[frame, top, place] = registers else {
        return None;
    };
    Some((
        place,
        framehop::x86_64::UnwindRegsX86_64::new(place, top, frame),
        top,
    ))
}

/// Returns where unwinding begins: the place, the registers, and the address of the
/// copied bytes.
#[cfg(target_arch = "aarch64")]
fn begin(registers: &[u64]) -> Option<(u64, framehop::aarch64::UnwindRegsAarch64, u64)> {
    // In the order of the kernel's numbers: x29, x30, sp, pc.
    let &[frame, link, top, place] = registers else {
        return None;
    };
    Some((
        place,
        framehop::aarch64::UnwindRegsAarch64::new(link, top, frame),
        top,
    ))
}
