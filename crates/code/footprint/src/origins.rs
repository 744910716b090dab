//! Finds the name of a function by the offset of its entry in DWARF. An
//! inlined copy only refers to its function: within its unit, or with
//! link-time optimisation (`DW_FORM_ref_addr`) in any other, so that all
//! units must be reachable. Must never keep more than the current unit and
//! one other, or memory grows with the debug information of a kernel.

use std::collections::HashMap;

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Reader, Unit, UnitHeader, UnitOffset};

use crate::names::normalise;

/// Stands for a normalised name.
pub(crate) type NameId = u32;

/// Names of functions by the offset of their entry in `.debug_info`, each
/// looked up once.
pub(crate) struct Origins<'a, R: Reader<Offset = usize>> {
    dwarf: &'a Dwarf<R>,
    pub(crate) headers: Vec<UnitHeader<R>>,
    /// Holds the offset of each unit in `.debug_info`, in ascending order.
    pub(crate) starts: Vec<usize>,
    by_offset: HashMap<usize, Option<NameId>>,
    by_text: HashMap<String, NameId>,
    texts: Vec<String>,
    /// The latest of the other units; references come in runs.
    other: Option<(usize, Unit<R>)>,
}

/// A chain of references longer than this goes in circles.
const LONGEST_CHAIN: usize = 16;

impl<'a, R: Reader<Offset = usize>> Origins<'a, R> {
    pub(crate) fn new(dwarf: &'a Dwarf<R>) -> gimli::Result<Self> {
        let mut headers = Vec::new();
        let mut starts = Vec::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            if let Some(DebugInfoOffset(start)) = header.debug_info_offset() {
                starts.push(start);
                headers.push(header);
            }
        }
        Ok(Self {
            dwarf,
            headers,
            starts,
            by_offset: HashMap::new(),
            by_text: HashMap::new(),
            texts: Vec::new(),
            other: None,
        })
    }

    pub(crate) fn text(&self, id: NameId) -> &str {
        &self.texts[id as usize]
    }

    pub(crate) fn resolve(
        &mut self,
        offset: usize,
        current: Option<(usize, &Unit<R>)>,
    ) -> Option<NameId> {
        if let Some(known) = self.by_offset.get(&offset) {
            return *known;
        }
        let id = self.look_up(offset, current).map(|symbol| {
            let text = normalise(&symbol);
            *self.by_text.entry(text).or_insert_with_key(|text| {
                self.texts.push(text.clone());
                (self.texts.len() - 1) as NameId
            })
        });
        self.by_offset.insert(offset, id);
        id
    }

    /// Returns the linker's name of a function, or else its name in the source.
    fn look_up(&mut self, offset: usize, current: Option<(usize, &Unit<R>)>) -> Option<String> {
        let dwarf = self.dwarf;
        let mut offset = offset;
        let mut plain = None;
        for _ in 0..LONGEST_CHAIN {
            let (start, unit) = match current {
                Some((start, unit)) if unit_holds(start, unit, offset) => (start, unit),
                _ => self.unit_at(offset)?,
            };
            let entry = unit.entry(UnitOffset(offset - start)).ok()?;
            let text = |value: AttributeValue<R>| {
                let reader = dwarf.attr_string(unit, value).ok()?;
                Some(reader.to_string_lossy().ok()?.into_owned())
            };
            let linkage = entry
                .attr_value(gimli::DW_AT_linkage_name)
                .or_else(|| entry.attr_value(gimli::DW_AT_MIPS_linkage_name));
            if let Some(symbol) = linkage.and_then(text) {
                return Some(symbol);
            }
            plain = plain.or_else(|| entry.attr_value(gimli::DW_AT_name).and_then(text));
            let next = entry
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(gimli::DW_AT_specification));
            offset = match next {
                Some(AttributeValue::UnitRef(at)) => start.saturating_add(at.0),
                Some(AttributeValue::DebugInfoRef(at)) => at.0,
                _ => return plain,
            };
        }
        None
    }

    fn unit_at(&mut self, offset: usize) -> Option<(usize, &Unit<R>)> {
        let at = self.starts.partition_point(|start| *start <= offset);
        let at = at.checked_sub(1)?;
        let start = self.starts[at];
        if self.other.as_ref().is_none_or(|(have, _)| *have != start) {
            let unit = Unit::new(self.dwarf, self.headers[at].clone()).ok()?;
            self.other = Some((start, unit));
        }
        let (_, unit) = self.other.as_ref()?;
        unit_holds(start, unit, offset).then_some((start, unit))
    }
}

fn unit_holds<R: Reader<Offset = usize>>(start: usize, unit: &Unit<R>, offset: usize) -> bool {
    offset >= start && offset - start < unit.header.length_including_self()
}
