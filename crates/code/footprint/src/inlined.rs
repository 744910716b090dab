//! Inlined copies, from DWARF 2 to 5: for each function at how many call
//! sites its body was copied, and the bytes of code of these copies. A
//! symbol table cannot say this. Debug information of a kernel is hundreds
//! of megabytes, so units are read one after the other and forgotten. Must
//! never count code that the linker dropped or merged: it leaves the debug
//! information of such functions in place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{AddAssign, Range};

use gimli::{AttributeValue, Dwarf, EntriesRaw, Reader, Section, Unit};

use crate::origins::{NameId, Origins};

/// A number of things and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A place in the source that calls the requested function, and the
/// out-of-line function in whose code the copy is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) caller: String,
    /// The function that has the call in its source, if that was itself
    /// inlined into the caller.
    pub(crate) through: Option<String>,
    pub(crate) file: String,
    pub(crate) line: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Inlined {
    pub(crate) functions: HashMap<String, Sum>,
    pub(crate) sites: BTreeMap<Site, Sum>,
    /// Units of debug information that were read.
    pub(crate) units: u64,
    /// Units whose content is in another file (`-gsplit-dwarf`).
    pub(crate) split_units: u64,
    /// Copies whose function is described in a file shared with others (dwz).
    pub(crate) unresolved: u64,
    /// Some debug information could not be read.
    pub(crate) damaged: bool,
}

/// Reads all units. `code` are the executable ranges of a linked image, in
/// ascending order; `None` if the image is relocatable. `wanted` names the
/// function whose call sites are listed. `progress` is called with the share
/// of `.debug_info` read so far.
pub(crate) fn read<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    code: Option<&[Range<u64>]>,
    wanted: Option<&str>,
    found: &mut Inlined,
    progress: &mut dyn FnMut(f64),
) -> gimli::Result<()> {
    let mut names = Origins::new(dwarf)?;
    let mut placed = HashSet::new();
    let whole = dwarf.debug_info.reader().len();
    let mut told = 0;
    for at in 0..names.headers.len() {
        let header = names.headers[at].clone();
        // Reporting each of thousands of units would cost time and show nothing.
        if names.starts[at] - told > whole / 100 {
            told = names.starts[at];
            progress(told as f64 / whole as f64);
        }
        let unit = Unit::new(dwarf, header)?;
        if unit.dwo_name()?.is_some() {
            found.split_units += 1;
            continue;
        }
        found.units += 1;
        UnitWalk {
            dwarf,
            unit: &unit,
            start: names.starts[at],
            code,
            wanted,
            files: HashMap::new(),
        }
        .walk(&mut names, &mut placed, found)?;
    }
    Ok(())
}

/// Describes what encloses the entry that is being read.
struct Scope {
    depth: isize,
    /// The function: what was inlined, or the out-of-line function itself.
    name: Option<NameId>,
    /// The out-of-line function has code in the image.
    live: bool,
    inlined: bool,
}

struct UnitWalk<'a, R: Reader<Offset = usize>> {
    dwarf: &'a Dwarf<R>,
    unit: &'a Unit<R>,
    /// Holds the offset of the unit in `.debug_info`.
    start: usize,
    code: Option<&'a [Range<u64>]>,
    wanted: Option<&'a str>,
    files: HashMap<u64, String>,
}

impl<R: Reader<Offset = usize>> UnitWalk<'_, R> {
    fn walk(
        mut self,
        names: &mut Origins<'_, R>,
        placed: &mut HashSet<u64>,
        found: &mut Inlined,
    ) -> gimli::Result<()> {
        let mut sums: HashMap<NameId, Sum> = HashMap::new();
        let mut scopes: Vec<Scope> = Vec::new();
        let mut entries = self.unit.entries_raw(None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset();
            let Some(abbrev) = entries.read_abbreviation()? else {
                continue;
            };
            while scopes.last().is_some_and(|s| s.depth >= depth) {
                scopes.pop();
            }
            match abbrev.tag() {
                gimli::DW_TAG_subprogram => {
                    let attrs = Attrs::read(&mut entries, abbrev.attributes())?;
                    let ranges = self.code_of(&attrs)?;
                    // A linker that keeps one of several equal functions
                    // points the debug information of all at the one.
                    let live = match ranges.first() {
                        Some(first) => self.code.is_none() || placed.insert(first.start),
                        None => false,
                    };
                    let name = if live && self.wanted.is_some() {
                        names.resolve(self.start + offset.0, Some((self.start, self.unit)))
                    } else {
                        None
                    };
                    scopes.push(Scope {
                        depth,
                        name,
                        live,
                        inlined: false,
                    });
                }
                gimli::DW_TAG_inlined_subroutine
                    if scopes.iter().rfind(|s| !s.inlined).is_some_and(|s| s.live) =>
                {
                    let attrs = Attrs::read(&mut entries, abbrev.attributes())?;
                    let origin = match attrs.origin {
                        Some(AttributeValue::UnitRef(at)) => Some(self.start.saturating_add(at.0)),
                        Some(AttributeValue::DebugInfoRef(at)) => Some(at.0),
                        _ => None,
                    };
                    let name =
                        origin.and_then(|at| names.resolve(at, Some((self.start, self.unit))));
                    if let Some(id) = name {
                        // Inside a copy of itself the bytes are counted.
                        let nested = scopes.iter().any(|s| s.inlined && s.name == name);
                        let ranges = if nested {
                            Vec::new()
                        } else {
                            self.code_of(&attrs)?
                        };
                        let sum = Sum {
                            count: 1,
                            bytes: ranges
                                .iter()
                                .fold(0, |sum, r| sum.saturating_add(r.end - r.start)),
                        };
                        *sums.entry(id).or_default() += sum;
                        if self.wanted.is_some_and(|w| is_named(names.text(id), w)) {
                            let site = self.site(&scopes, &attrs, names);
                            *found.sites.entry(site).or_default() += sum;
                        }
                    } else {
                        found.unresolved += 1;
                    }
                    scopes.push(Scope {
                        depth,
                        name,
                        live: true,
                        inlined: true,
                    });
                }
                _ => entries.skip_attributes(abbrev.attributes())?,
            }
        }
        for (id, sum) in sums {
            let name = names.text(id);
            match found.functions.get_mut(name) {
                Some(total) => *total += sum,
                None => {
                    found.functions.insert(name.to_string(), sum);
                }
            }
        }
        Ok(())
    }

    /// Returns the entry's ranges that lie in code of the image. A linker gives what
    /// it drops the address 0, 1, or the highest two: never in a section.
    fn code_of(&self, attrs: &Attrs<R>) -> gimli::Result<Vec<Range<u64>>> {
        let (dwarf, unit) = (self.dwarf, self.unit);
        let mut ranges = Vec::new();
        let mut add = |begin: u64, end: u64| {
            let inside = |code: &[Range<u64>]| {
                let at = code.partition_point(|r| r.start <= begin);
                at > 0 && begin < code[at - 1].end
            };
            if begin < end && self.code.is_none_or(inside) {
                ranges.push(begin..end);
            }
        };
        if let Some(list) = &attrs.ranges {
            if let Some(mut iter) = dwarf.attr_ranges(unit, list.clone())? {
                while let Some(range) = iter.next()? {
                    add(range.begin, range.end);
                }
            }
        } else if let (Some(low), Some(high)) = (&attrs.low, &attrs.high)
            && let Some(begin) = dwarf.attr_address(unit, low.clone())?
        {
            let end = match dwarf.attr_address(unit, high.clone())? {
                Some(end) => Some(end),
                None => high.udata_value().and_then(|len| begin.checked_add(len)),
            };
            add(begin, end.unwrap_or(begin));
        }
        Ok(ranges)
    }

    fn site(&mut self, scopes: &[Scope], attrs: &Attrs<R>, names: &Origins<'_, R>) -> Site {
        let text = |scope: &Scope| match scope.name {
            Some(id) => names.text(id).to_string(),
            None => String::from("?"),
        };
        let caller = scopes.iter().rfind(|s| !s.inlined);
        Site {
            caller: caller.map_or_else(|| String::from("?"), text),
            through: scopes.last().filter(|s| s.inlined).map(text),
            file: self.file(attrs.call_file),
            line: attrs.call_line,
        }
    }

    /// Returns a file of the line table, relative to the compilation's folder where
    /// it is below it.
    fn file(&mut self, index: Option<u64>) -> String {
        let Some(index) = index else {
            return String::from("?");
        };
        if let Some(file) = self.files.get(&index) {
            return file.clone();
        }
        let file = self.file_path(index).unwrap_or_else(|| String::from("?"));
        self.files.insert(index, file.clone());
        file
    }

    fn file_path(&self, index: u64) -> Option<String> {
        let text = |value| {
            let reader = self.dwarf.attr_string(self.unit, value).ok()?;
            Some(reader.to_string_lossy().ok()?.into_owned())
        };
        let header = self.unit.line_program.as_ref()?.header();
        let entry = header.file(index)?;
        let name = text(entry.path_name())?;
        let folder = entry.directory(header).and_then(text).unwrap_or_default();
        let path = if name.starts_with('/') || folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        let base = self.unit.comp_dir.as_ref();
        let base = base.and_then(|dir| Some(dir.to_string_lossy().ok()?.into_owned()));
        let short = base.as_deref().and_then(|base| {
            let rest = path.strip_prefix(base)?;
            rest.strip_prefix('/').filter(|rest| !rest.is_empty())
        });
        let short = short.unwrap_or(&path);
        Some(short.strip_prefix("./").unwrap_or(short).to_string())
    }
}

/// Returns whether a function is the requested one: by its whole name, its
/// last path component, or without the parameters.
fn is_named(name: &str, wanted: &str) -> bool {
    let plain = name.split('(').next().unwrap_or(name);
    [name, plain].into_iter().any(|name| {
        name == wanted
            || name
                .strip_suffix(wanted)
                .is_some_and(|path| path.ends_with("::"))
    })
}

/// The attributes this module reads of an entry.
struct Attrs<R: Reader> {
    low: Option<AttributeValue<R>>,
    high: Option<AttributeValue<R>>,
    ranges: Option<AttributeValue<R>>,
    origin: Option<AttributeValue<R>>,
    call_file: Option<u64>,
    call_line: u64,
}

impl<R: Reader<Offset = usize>> Attrs<R> {
    fn read(
        entries: &mut EntriesRaw<'_, R>,
        specs: &[gimli::AttributeSpecification],
    ) -> gimli::Result<Self> {
        let mut attrs = Self {
            low: None,
            high: None,
            ranges: None,
            origin: None,
            call_file: None,
            call_line: 0,
        };
        for spec in specs {
            let attr = entries.read_attribute(*spec)?;
            match attr.name() {
                gimli::DW_AT_low_pc => attrs.low = Some(attr.value()),
                gimli::DW_AT_high_pc => attrs.high = Some(attr.value()),
                gimli::DW_AT_ranges => attrs.ranges = Some(attr.value()),
                gimli::DW_AT_abstract_origin => attrs.origin = Some(attr.value()),
                gimli::DW_AT_call_file => {
                    attrs.call_file = match attr.value() {
                        AttributeValue::FileIndex(index) => Some(index),
                        other => other.udata_value(),
                    }
                }
                gimli::DW_AT_call_line => attrs.call_line = attr.udata_value().unwrap_or(0),
                _ => {}
            }
        }
        Ok(attrs)
    }
}
