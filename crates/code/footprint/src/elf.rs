//! One ELF image: its sections by class, its symbols as `nm` sees them, and
//! where its code lies. Exists so that sizes and letters have one source.
//! Must never guess: a symbol that `nm --size-sort` does not print (no size,
//! undefined, absolute, a section or a file) is not there.

use std::borrow::Cow;
use std::ops::Range;

use object::{
    Object, ObjectSection, ObjectSymbol, SectionFlags, SectionIndex, SymbolFlags, SymbolSection,
    elf,
};
use serde::{Deserialize, Serialize};

use crate::error::damaged;
use locklab_host::error::Error;

/// Sorts the bytes of a section by their purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Instructions, wherever they are: `.text`, `.init.text`, `.plt`.
    Text,
    /// Loaded and not writable: constants, strings, unwind tables.
    Rodata,
    /// Loaded and writable, with initial contents.
    Data,
    /// Writable, zero at the start: in memory, not in the file.
    Bss,
    /// Debug information; not loaded.
    Debug,
    /// Sections that are not loaded either: symbol tables, comments, relocations.
    Other,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Text,
        Self::Rodata,
        Self::Data,
        Self::Bss,
        Self::Debug,
        Self::Other,
    ];

    /// Returns the name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Rodata => "rodata",
            Self::Data => "data",
            Self::Bss => "bss",
            Self::Debug => "debug",
            Self::Other => "other",
        }
    }
}

pub(crate) struct Section<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) class: Class,
    /// Bytes in memory for [`Class::Bss`], in the file for others.
    pub(crate) bytes: u64,
    /// `nm`'s letter for a local symbol of this section.
    letter: char,
    index: SectionIndex,
}

pub(crate) struct Symbol<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The type letter that `nm` prints.
    pub(crate) letter: char,
    pub(crate) class: Class,
    /// `st_size`; never 0.
    pub(crate) bytes: u64,
    pub(crate) address: u64,
}

impl Symbol<'_> {
    /// Returns whether it is a function as `nm` counts them: of type t, T, w, W or i, in a section
    /// of code (a weak symbol may also lie in one of data).
    pub(crate) fn is_function(&self) -> bool {
        self.class == Class::Text
    }
}

/// Returns the first two numbers of a version: of "6.1.140-rc1" 6 and 1.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Addresses and bytes of code.
pub(crate) type Code<'a> = (Range<u64>, &'a [u8]);

pub(crate) struct Elf<'a> {
    label: &'a str,
    file: object::File<'a>,
    sections: Vec<Section<'a>>,
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(label: &'a str, data: &'a [u8]) -> Result<Self, Error> {
        let wrong = |e: object::Error| damaged(label, e);
        let file = object::File::parse(data).map_err(wrong)?;
        let mut sections = Vec::new();
        for section in file.sections() {
            let name = String::from_utf8_lossy(section.name_bytes().map_err(wrong)?);
            if let Some((start, bytes)) = section.file_range() {
                let end = start.checked_add(bytes);
                if end.is_none_or(|end| end > data.len() as u64) {
                    let (name, len) = (name.escape_debug(), data.len());
                    let reason = format!("section {name} ends beyond its {len} bytes");
                    return Err(damaged(label, reason));
                }
            }
            if let SectionFlags::Elf { sh_type, sh_flags } = section.flags() {
                let (class, letter) = classify(&name, sh_type, sh_flags);
                sections.push(Section {
                    name: Cow::Owned(name.into_owned()),
                    class,
                    bytes: section.size(),
                    letter,
                    index: section.index(),
                });
            }
        }
        Ok(Self {
            label,
            file,
            sections,
        })
    }

    pub(crate) fn label(&self) -> &str {
        self.label
    }

    pub(crate) fn file(&self) -> &object::File<'a> {
        &self.file
    }

    pub(crate) fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// Returns whether it is an executable, shared library or kernel image, in which an address
    /// names one place; not an object file or kernel module.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(
            self.file.kind(),
            object::ObjectKind::Executable | object::ObjectKind::Dynamic
        )
    }

    /// Returns the version of Linux that a kernel image or module states: the first
    /// two numbers.
    pub(crate) fn linux_version(&self) -> Option<(u32, u32)> {
        let after = |section: &str, mark: &[u8]| {
            let section = self.file.section_by_name(section)?;
            let data = section.uncompressed_data().ok()?;
            let at = data.windows(mark.len()).position(|bytes| bytes == mark)?;
            let rest = &data[at + mark.len()..];
            let text = rest.iter().take(16).map(|&byte| char::from(byte));
            version(&text.collect::<String>())
        };
        after(".rodata", b"Linux version ").or_else(|| after(".modinfo", b"vermagic="))
    }

    pub(crate) fn has_symbols(&self) -> bool {
        self.file.symbol_table().is_some()
    }

    /// Returns whether the compiler left only its own intermediate code (`-flto`
    /// without `-ffat-lto-objects`), so that there is nothing to measure.
    pub(crate) fn is_slim_lto(&self) -> bool {
        self.file
            .symbols()
            .any(|s| s.name_bytes() == Ok(b"__gnu_lto_slim".as_slice()))
    }

    /// Returns every symbol with a size, as `nm --size-sort` prints them.
    pub(crate) fn symbols(&self) -> Result<Vec<Symbol<'a>>, Error> {
        let wrong = |e: object::Error| damaged(self.label, e);
        let mut symbols = Vec::new();
        for symbol in self.file.symbols() {
            let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                continue;
            };
            let kind = st_info.st_type();
            if symbol.size() == 0 || kind == elf::STT_FILE || kind == elf::STT_SECTION {
                continue;
            }
            let (class, local) = match symbol.section() {
                SymbolSection::Common => (Class::Bss, 'c'),
                SymbolSection::Section(index) => {
                    // Sections are numbered from 1 and all were kept.
                    let at = index.0.wrapping_sub(1);
                    match self.sections.get(at) {
                        Some(s) if s.index == index => (s.class, s.letter),
                        _ => continue,
                    }
                }
                _ => continue,
            };
            let letter = match st_info.st_bind() {
                _ if local == 'c' => 'C',
                _ if kind == elf::STT_GNU_IFUNC => 'i',
                elf::STB_WEAK if kind == elf::STT_OBJECT => 'V',
                elf::STB_WEAK => 'W',
                elf::STB_GNU_UNIQUE => 'u',
                elf::STB_GLOBAL => local.to_ascii_uppercase(),
                _ => local,
            };
            symbols.push(Symbol {
                name: String::from_utf8_lossy(symbol.name_bytes().map_err(wrong)?),
                letter,
                class,
                bytes: symbol.size(),
                address: symbol.address(),
            });
        }
        Ok(symbols)
    }

    /// Returns the code of a linked image, in ascending order.
    pub(crate) fn code(&self) -> Result<Vec<Code<'a>>, Error> {
        let mut code = Vec::new();
        for section in self.file.sections() {
            let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else {
                continue;
            };
            if classify("", sh_type, sh_flags).0 == Class::Text {
                let start = section.address();
                let range = start..start.saturating_add(section.size());
                // A file of debug information alone has no contents here.
                let data = section.data();
                code.push((range, data.map_err(|e| damaged(self.label, e))?));
            }
        }
        code.sort_by_key(|(range, _)| range.start);
        Ok(code)
    }
}

/// Returns the class, and the letter `nm` gives to a local symbol of such a section.
fn classify(name: &str, kind: elf::SectionType, flags: elf::SectionFlags) -> (Class, char) {
    let loaded = flags.contains(elf::SHF_ALLOC);
    if flags.contains(elf::SHF_EXECINSTR) {
        (Class::Text, 't')
    } else if kind == elf::SHT_NOBITS {
        (Class::Bss, 'b')
    } else if loaded && flags.contains(elf::SHF_WRITE) {
        (Class::Data, 'd')
    } else if loaded {
        (Class::Rodata, 'r')
    } else if [".debug", ".zdebug", ".stab", ".gdb_index", ".gnu.debuglto_"]
        .iter()
        .any(|start| name.starts_with(start))
    {
        (Class::Debug, 'N')
    } else {
        (Class::Other, 'n')
    }
}
