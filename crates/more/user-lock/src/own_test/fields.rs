//! Names the words of a lock, of a context, and of static variables as the file does: by
//! members and elements, from the compiler's debug information.
//!
//! It must never be needed for a verdict: where there is no such information, names are
//! numbers of bytes.

use addr2line::gimli::{
    self, AttributeValue, DwTag, EndianSlice, LittleEndian, Operation, Unit, UnitOffset, constants,
};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// The most elements of an array, and words of a variable, that have names.
const MOST_ELEMENTS: u64 = 64;
const MOST_WORDS: usize = 4_096;

/// The variables of locklab_lock.h that point to what the file calls lock and context.
const LOCK: &str = "locklab_a_lock";
const CONTEXT: &str = "locklab_a_context";

type Slice<'a> = EndianSlice<'a, LittleEndian>;
/// Names by offset.
type Names = BTreeMap<usize, String>;

/// The names of one library.
#[derive(Default)]
pub(super) struct Fields {
    lock: Names,
    context: Names,
    statics: Names,
}

impl Fields {
    /// Reads the debug information of a library.
    pub(super) fn of(library: &Path) -> Self {
        let mut fields = Self::default();
        if let Ok(bytes) = std::fs::read(library)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            // What was read before an error stays.
            let _ = fields.read(&file);
        }
        fields
    }

    fn read(&mut self, file: &object::File<'_>) -> gimli::Result<()> {
        let section = |id: gimli::SectionId| -> gimli::Result<Cow<'_, [u8]>> {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(data.unwrap_or_default())
        };
        let sections = gimli::DwarfSections::load(section)?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let types = Types {
                dwarf: &dwarf,
                unit: &unit,
            };
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                if entry.tag() != constants::DW_TAG_variable {
                    continue;
                }
                // A definition may be apart from its declaration, which says the rest.
                let declared = match entry.attr_value(constants::DW_AT_specification) {
                    Some(AttributeValue::UnitRef(offset)) => unit.entry(offset)?,
                    _ => entry.clone(),
                };
                let (Some(of), Some(address)) = (types.of(&declared), types.address(entry)) else {
                    continue;
                };
                let name = types.name(&declared).unwrap_or_default();
                match &*name {
                    LOCK => types.flatten(types.behind(of), 0, "", &mut self.lock),
                    CONTEXT => types.flatten(types.behind(of), 0, "", &mut self.context),
                    _ => types.flatten(Some(of), address, &name, &mut self.statics),
                }
            }
        }
        Ok(())
    }

    /// Names the word of a lock that begins at this byte.
    pub(super) fn of_lock(&self, byte: usize) -> String {
        named(&self.lock, byte).unwrap_or_else(|| format!("lock+{byte}"))
    }

    /// Names the word of a context that begins at this byte.
    pub(super) fn of_context(&self, byte: usize) -> String {
        named(&self.context, byte).unwrap_or_else(|| format!("+{byte}"))
    }

    /// Names the word of a static variable at this address of the file.
    pub(super) fn of_static(&self, address: usize) -> Option<String> {
        self.statics.get(&address).cloned()
    }
}

/// Names a byte by the word that it is in.
fn named(names: &Names, byte: usize) -> Option<String> {
    let (first, name) = names.range(..=byte).next_back()?;
    let name = if name.is_empty() { "word" } else { name };
    match byte - first {
        0 => Some(name.to_owned()),
        more @ 1..8 => Some(format!("{name}+{more}")),
        _ => None,
    }
}

/// The types of one unit.
struct Types<'a> {
    dwarf: &'a gimli::Dwarf<Slice<'a>>,
    unit: &'a Unit<Slice<'a>>,
}

type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

impl<'a> Types<'a> {
    fn of(&self, entry: &Entry<'a>) -> Option<UnitOffset> {
        match entry.attr_value(constants::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            _ => None,
        }
    }

    fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let value = entry.attr_value(constants::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Returns where a static variable is.
    fn address(&self, entry: &Entry<'a>) -> Option<usize> {
        let AttributeValue::Exprloc(place) = entry.attr_value(constants::DW_AT_location)? else {
            return None;
        };
        let mut operations = place.operations(self.unit.encoding());
        match operations.next().ok()?? {
            Operation::Address { address } => Some(address as usize),
            Operation::AddressIndex { index } => {
                Some(self.dwarf.address(self.unit, index).ok()? as usize)
            }
            _ => None,
        }
    }

    /// Returns what a pointer points to.
    fn behind(&self, pointer: UnitOffset) -> Option<UnitOffset> {
        self.of(&self.unit.entry(pointer).ok()?)
    }

    fn number(&self, entry: &Entry<'a>, attribute: gimli::DwAt) -> Option<u64> {
        entry.attr_value(attribute)?.udata_value()
    }

    /// Names the words of a type from this address on.
    fn flatten(&self, of: Option<UnitOffset>, at: usize, name: &str, names: &mut Names) {
        let Some(of) = of else { return };
        if names.len() > MOST_WORDS {
            return;
        }
        let Ok(entry) = self.unit.entry(of) else {
            return;
        };
        match entry.tag() {
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_atomic_type => self.flatten(self.of(&entry), at, name, names),
            constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type => {
                let members = self.children(of, constants::DW_TAG_member);
                for member in members {
                    let place = self.number(&member, constants::DW_AT_data_member_location);
                    let own = self.name(&member).unwrap_or_default();
                    let whole = match (name.is_empty(), own.is_empty()) {
                        (false, false) => format!("{name}.{own}"),
                        _ => format!("{name}{own}"),
                    };
                    let place = at + place.unwrap_or(0) as usize;
                    self.flatten(self.of(&member), place, &whole, names);
                }
            }
            constants::DW_TAG_array_type => {
                let Some(element) = self.of(&entry) else {
                    return;
                };
                let size = self.size(element).unwrap_or(0) as usize;
                let of_elements = self.children(of, constants::DW_TAG_subrange_type);
                let counts = of_elements.iter().map(|range| {
                    let last = self.number(range, constants::DW_AT_upper_bound);
                    let count = self.number(range, constants::DW_AT_count);
                    count.or(last.map(|last| last + 1)).unwrap_or(0)
                });
                let count: u64 = counts.product();
                for number in 0..count.min(MOST_ELEMENTS) as usize {
                    let whole = format!("{name}[{number}]");
                    self.flatten(Some(element), at + number * size, &whole, names);
                }
            }
            _ => {
                names.entry(at).or_insert_with(|| name.to_owned());
            }
        }
    }

    fn size(&self, of: UnitOffset) -> Option<u64> {
        let entry = self.unit.entry(of).ok()?;
        let own = self.number(&entry, constants::DW_AT_byte_size);
        own.or_else(|| match entry.tag() {
            constants::DW_TAG_pointer_type => Some(8),
            _ => self.size(self.of(&entry)?),
        })
    }

    fn children(&self, of: UnitOffset, tag: DwTag) -> Vec<Entry<'a>> {
        let mut found = Vec::new();
        let Ok(mut tree) = self.unit.entries_tree(Some(of)) else {
            return found;
        };
        if let Ok(root) = tree.root() {
            let mut children = root.children();
            while let Ok(Some(child)) = children.next() {
                if child.entry().tag() == tag {
                    found.push(child.entry().clone());
                }
            }
        }
        found
    }
}
