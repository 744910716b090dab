//! One side of a comparison: every image behind a path read once, and summed
//! under names that match across builds. Exists so that two sides can be
//! read at the same time. Must never hold a file in memory after its turn.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use gimli::{Dwarf, DwarfSections, EndianSlice, RelocateReader, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

use crate::bloat::BloatSizes;
use crate::elf::{Class, Elf};
use crate::execution;
use crate::hot::LINE_BYTES;
use crate::hot::{HotText, Place, hot_text};
use crate::inlined::{self, Inlined, Sum};
use crate::input::Input;
use crate::names::normalise;
use locklab_host::error::Error;

/// Selects what is read of a side besides its symbols.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) inlined: bool,
    pub(crate) call_sites_of: Option<&'a str>,
    pub(crate) counts: Option<(&'a [(Place, u64)], f64)>,
}

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) images: u64,
    pub(crate) linked: u64,
    /// Object files; a kernel module is linked later, from nothing here.
    pub(crate) objects: u64,
    pub(crate) machines: BTreeSet<String>,
    pub(crate) functions: HashMap<String, Sum>,
    pub(crate) data: HashMap<(Class, String), Sum>,
    pub(crate) sections: BTreeMap<(Class, String), u64>,
    /// Bytes of function symbols by file.
    pub(crate) files: BTreeMap<String, u64>,
    pub(crate) bloat: BloatSizes,
    /// Version of the first kernel image or module.
    pub(crate) linux: Option<(u32, u32)>,
    pub(crate) inlined: Inlined,
    pub(crate) hot: Option<HotText>,
    /// Counts that lie outside the image's code.
    pub(crate) unplaced: u64,
    pub(crate) notes: Vec<String>,
}

impl Tally {
    /// Reads all images of `input`; `progress` is called with the bytes read.
    pub(crate) fn read(
        input: &Input,
        wanted: &Wanted<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, Error> {
        let mut tally = Self::default();
        // The bytes reported so far for the current file, image by image.
        let reported = std::cell::Cell::new(0);
        input.images(
            &mut |image| {
                let elf = Elf::parse(image.label, image.data)?;
                let bytes = image.data.len() as u64;
                let before = reported.get();
                tally.add(&elf, image.file, wanted, &mut |share| {
                    let now = before + (bytes as f64 * share) as u64;
                    progress(now.saturating_sub(reported.get()));
                    reported.set(now.max(reported.get()));
                })
            },
            &mut |bytes| progress(bytes.saturating_sub(reported.replace(0))),
        )?;
        Ok(tally)
    }

    fn add(
        &mut self,
        elf: &Elf<'_>,
        file: &str,
        wanted: &Wanted<'_>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), Error> {
        self.images += 1;
        self.linked += u64::from(elf.is_linked());
        self.objects += u64::from(!elf.is_linked() && !file.ends_with(".ko"));
        self.machines
            .insert(format!("{:?}", elf.file().architecture()));
        self.linux = self.linux.or_else(|| elf.linux_version());
        for section in elf.sections() {
            let name = match elf.is_linked() {
                true => &section.name,
                false => without_symbol(&section.name),
            };
            let key = (section.class, name.to_string());
            let sum = self.sections.entry(key).or_default();
            *sum = sum.saturating_add(section.bytes);
        }
        if !elf.has_symbols() {
            self.notes.push(format!(
                "{} has no symbol table (it is stripped): only its sections are counted.",
                elf.label()
            ));
        } else if elf.is_slim_lto() {
            self.notes.push(format!(
                "{} holds the compiler's intermediate code, not machine code: compare what is linked from it.",
                elf.label()
            ));
        }
        let symbols = elf.symbols()?;
        let in_file = self.files.entry(file.to_string()).or_default();
        for symbol in &symbols {
            self.bloat.add(symbol);
            let name = normalise(&symbol.name);
            let sum = if symbol.is_function() {
                *in_file = in_file.saturating_add(symbol.bytes);
                self.functions.entry(name).or_default()
            } else {
                self.data.entry((symbol.class, name)).or_default()
            };
            *sum += Sum {
                count: 1,
                bytes: symbol.bytes,
            };
        }
        if let Some((counts, share)) = wanted.counts {
            let (code, unplaced) = execution::place(elf, &symbols, counts)?;
            self.hot = Some(hot_text(&code, share, LINE_BYTES));
            self.unplaced += unplaced;
        }
        if wanted.inlined
            && let Err(error) = self.read_debug_information(elf, wanted, progress)
        {
            self.inlined.damaged = true;
            self.notes.push(format!(
                "{}: its debug information cannot be read ({error}).",
                elf.label()
            ));
        }
        Ok(())
    }

    fn read_debug_information(
        &mut self,
        elf: &Elf<'_>,
        wanted: &Wanted<'_>,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let file = elf.file();
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let contents = |id: SectionId| match file.section_by_name(id.name()) {
            Some(section) => section.uncompressed_data(),
            None => Ok(Cow::Borrowed(&[][..])),
        };
        let found = &mut self.inlined;
        let sites = wanted.call_sites_of;
        if elf.is_linked() {
            let code: Vec<Range<u64>> = elf.code()?.into_iter().map(|(range, _)| range).collect();
            let sections = DwarfSections::load(contents)?;
            let dwarf = sections.borrow(|data| EndianSlice::new(data, endian));
            inlined::read(&dwarf, Some(&code), sites, found, progress)?;
        } else {
            // An object file's debug information is complete only with its
            // relocations applied.
            let sections = DwarfSections::load(|id| {
                let relocations = match file.section_by_name(id.name()) {
                    Some(section) => section.relocation_map()?,
                    None => Default::default(),
                };
                Ok::<_, object::Error>(Relocated {
                    data: contents(id)?,
                    relocations,
                })
            })?;
            let dwarf: Dwarf<_> = sections.borrow(|section| {
                let data = EndianSlice::new(&section.data, endian);
                RelocateReader::new(data, Relocations(&section.relocations))
            });
            inlined::read(&dwarf, None, sites, found, progress)?;
        }
        Ok(())
    }
}

/// Returns the name of a section without its symbol. With `-ffunction-sections` an
/// object file has a section a symbol, which the linker gathers again; the kernel's
/// `.data..percpu` is another thing.
fn without_symbol(section: &str) -> &str {
    for kind in [".text", ".rodata", ".data.rel.ro", ".data", ".bss"] {
        if let Some(rest) = section.strip_prefix(kind)
            && rest.starts_with('.')
            && !rest.starts_with("..")
        {
            return kind;
        }
    }
    section
}

struct Relocated<'a> {
    data: Cow<'a, [u8]>,
    relocations: object::read::RelocationMap,
}

#[derive(Clone, Copy, Debug)]
struct Relocations<'a>(&'a object::read::RelocationMap);

impl gimli::Relocate<usize> for Relocations<'_> {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.relocate(offset as u64, value))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(self.0.relocate(offset as u64, value as u64) as usize)
    }
}
