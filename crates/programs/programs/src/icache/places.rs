//! Finds where the front end loses: functions and call sites of the program, by the events of its
//! blocks. Exists to turn addresses into names; must never give the cycles of a library to a
//! function of the program.

use super::blocks;
use locklab_frontend::{Event, Events, Processor};
use locklab_host::error::Error;
use object::{Object, ObjectSymbol, SymbolKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A place in the program, and the cycles lost there.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Place {
    /// The function, with an offset for a call site; an address where there is no symbol.
    pub name: String,
    /// Holds what a call site calls, if the instruction says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Cycles lost, with the penalties of the processor file.
    pub cycles: f64,
}

/// Describes where a run lost cycles.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Places {
    /// Functions that lost most, worst first.
    pub functions: Vec<Place>,
    /// Calls whose target or direction was not predicted, worst first.
    pub call_sites: Vec<Place>,
    /// Says whether the program has names for its code.
    pub symbols: bool,
}

/// Functions and call sites that are listed.
const LISTED: usize = 10;

/// Holds what is called so in the lists: code outside the program's file.
const LIBRARIES: &str = "(libraries)";

/// The functions of a program, by address.
pub struct Symbols(BTreeMap<u64, (u64, String)>);

impl Symbols {
    /// Reads the function symbols of a program, of which there may be none.
    ///
    /// # Errors
    /// If the file cannot be read or is no ELF file.
    pub fn read(program: &Path) -> Result<Self, Error> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::Failed(format!("cannot read {}: {e}", program.display()))
        };
        let bytes = std::fs::read(program).map_err(|e| wrong(&e))?;
        let file = object::File::parse(&*bytes).map_err(|e| wrong(&e))?;
        let named = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                let name = symbol.name().ok().filter(|name| !name.is_empty())?;
                Some((symbol.address(), (symbol.size().max(1), name.to_owned())))
            });
        Ok(Symbols(named.collect()))
    }

    /// Returns whether there is a function of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.values().any(|(_, known)| known == name)
    }

    /// Returns the function that holds an address, and where in it.
    fn at(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (size, name)) = self.0.range(..=address).next_back()?;
        (address - start < *size).then_some((name, address - start))
    }
}

/// Reads the plugin's events of each block, and adds up what each function and each call
/// site lost.
///
/// # Errors
/// If the program's code cannot be located, or a line is malformed.
pub(super) fn places(
    csv: &str,
    program: &Path,
    log: &str,
    processor: &Processor,
) -> Result<Places, Error> {
    let symbols = Symbols::read(program)?;
    let inside = blocks::Inside::new(program, log)?;
    let mut functions: BTreeMap<String, f64> = BTreeMap::new();
    let mut calls: BTreeMap<(String, Option<String>), f64> = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let row = Row::parse(line)
            .ok_or_else(|| Error::Failed(format!("the plugin's line '{line}' is no block")))?;
        let name = |address| match inside.of(address) {
            None => (LIBRARIES.to_owned(), 0),
            Some(address) => symbols.at(address).map_or_else(
                || (format!("{address:#x}"), 0),
                |(name, offset)| (name.to_owned(), offset),
            ),
        };
        let (function, _) = name(row.address);
        *functions.entry(function).or_default() += processor.lost_in_all(&row.events).value;
        if row.call {
            let (caller, offset) = name(row.branch);
            let at = match caller == LIBRARIES {
                true => caller,
                false => format!("{caller}+{offset:#x}"),
            };
            let target = row.target.map(|target| name(target).0);
            *calls.entry((at, target)).or_default() += processor.lost_in_all(&row.ended()).value;
        }
    }
    let worst = |mut places: Vec<Place>| {
        places.retain(|place| place.cycles > 0.0);
        places.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.name.cmp(&b.name)));
        places.truncate(LISTED);
        places
    };
    Ok(Places {
        functions: worst(
            functions
                .into_iter()
                .map(|(name, cycles)| Place {
                    name,
                    target: None,
                    cycles,
                })
                .collect(),
        ),
        call_sites: worst(
            calls
                .into_iter()
                .filter(|((name, _), _)| name != LIBRARIES)
                .map(|((name, target), cycles)| Place {
                    name,
                    target,
                    cycles,
                })
                .collect(),
        ),
        symbols: !symbols.0.is_empty(),
    })
}

/// A line of the plugin's table of blocks.
struct Row {
    address: u64,
    call: bool,
    branch: u64,
    target: Option<u64>,
    events: Events,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let fields: Vec<&str> = line.split(',').collect();
        let [address, _, _, kind, branch, target, counts @ ..] = fields.as_slice() else {
            return None;
        };
        if counts.len() != Event::COUNT {
            return None;
        }
        let mut events = Events::default();
        for ((event, _), count) in Event::ALL.into_iter().zip(counts) {
            events[event] = count.parse().ok()?;
        }
        Some(Row {
            address: hex(address)?,
            call: matches!(*kind, "Call" | "IndirectCall"),
            branch: hex(branch)?,
            target: hex(target),
            events,
        })
    }

    /// Returns the events of the branch at its end alone.
    fn ended(&self) -> Events {
        let mut events = Events::default();
        for event in [
            Event::TargetSlow,
            Event::TargetDecoded,
            Event::Indirect,
            Event::FlushedSlow,
            Event::FlushedDecoded,
            Event::FlushedPrediction,
        ] {
            events[event] = self.events[event];
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_or_not() {
        let counts = "1,".repeat(Event::COUNT - 1) + "7";
        let row = Row::parse(&format!("0x10,8,2,Call,0x14,0x40,{counts}")).unwrap();
        assert!(row.call && row.target == Some(0x40));
        assert_eq!(row.events[Event::Interruption], 7);
        assert_eq!(row.ended()[Event::Interruption], 0);
        assert_eq!(row.ended()[Event::TargetSlow], 1);
        assert!(
            Row::parse(&format!("0x10,8,2,Return,0x14,,{counts}"))
                .unwrap()
                .target
                .is_none()
        );
        assert!(Row::parse("0x10,8,2,Call,0x14,0x40,1").is_none());
        assert!(Row::parse("").is_none());
    }

    #[test]
    fn addresses_have_the_name_of_their_function() {
        let named = [(0x10, (4, "f".to_owned())), (0x20, (8, "g".to_owned()))];
        let symbols = Symbols(named.into());
        assert_eq!(symbols.at(0x12), Some(("f", 2)));
        assert_eq!(symbols.at(0x14), None, "between functions");
        assert_eq!(symbols.at(0x8), None);
        assert!(symbols.has("g") && !symbols.has("h"));
    }
}
