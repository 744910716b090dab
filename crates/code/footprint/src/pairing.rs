//! Pairs what two sides hold under the same name and sorts it by how much it
//! changed. Exists so that every figure of a report has both sides beside
//! each other. Must never show a difference where one side was not measured.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::bloat;
use crate::elf::Class;
use crate::footprint::{
    CallSite, CallSites, Change, Changes, ClassSize, DataSize, FileSize, Footprint, HotPair,
    InlinedCopies, InlinedFunction, InputSummary, Pair, SectionSize, SymbolSize,
};
use crate::hot::LINE_BYTES;
use crate::inlined::Sum;
use crate::options::Options;
use crate::tally::Tally;

pub(crate) fn pair(
    paths: [&Path; 2],
    sides: [&Tally; 2],
    options: &Options<'_>,
    is_folder: bool,
) -> Footprint {
    let [old, new] = sides;
    let symbols = symbols(old, new);
    let mut changes = Changes::default();
    let mut text = Pair::default();
    for symbol in &symbols {
        *match symbol.change {
            Change::Added => &mut changes.added,
            Change::Removed => &mut changes.removed,
            Change::Grown => &mut changes.grown,
            Change::Shrunk => &mut changes.shrunk,
            Change::Same => &mut changes.same,
        } += 1;
        text.baseline = symbol.bytes.baseline.saturating_add(text.baseline);
        text.experiment = symbol.bytes.experiment.saturating_add(text.experiment);
    }
    let summary = |at: usize| InputSummary {
        path: paths[at].display().to_string(),
        images: sides[at].images,
        debug_units: sides[at].inlined.units,
    };
    let mut files = Vec::new();
    if is_folder {
        for (path, bytes) in both(&old.files, &new.files) {
            let path = path.clone();
            files.push(FileSize { path, bytes });
        }
        most_changed(&mut files, |f| (f.bytes, f.path.clone()));
    }
    let inlined = inlined(old, new, options);
    Footprint {
        inputs: Pair {
            baseline: summary(0),
            experiment: summary(1),
        },
        text,
        classes: classes(old, new),
        sections: sections(old, new),
        changes,
        symbols,
        data: data(old, new),
        files,
        hot: hot(old, new, options),
        bloat_o_meter: bloat::totals(&old.bloat, &new.bloat, old.linux),
        notes: notes(paths, sides, options, inlined.as_ref()),
        inlined,
    }
}

fn symbols(old: &Tally, new: &Tally) -> Vec<SymbolSize> {
    let mut symbols: Vec<_> = both(&old.functions, &new.functions)
        .into_iter()
        .map(|(name, sums)| SymbolSize {
            name: name.clone(),
            bytes: bytes(sums),
            count: count(sums),
            change: bytes(sums).change(),
        })
        .collect();
    most_changed(&mut symbols, |s| (s.bytes, s.name.clone()));
    symbols
}

fn data(old: &Tally, new: &Tally) -> Vec<DataSize> {
    let mut data: Vec<_> = both(&old.data, &new.data)
        .into_iter()
        .map(|((class, name), sums)| DataSize {
            name: name.clone(),
            class: *class,
            bytes: bytes(sums),
            change: bytes(sums).change(),
        })
        .collect();
    most_changed(&mut data, |d| (d.bytes, d.name.clone()));
    data
}

fn sections(old: &Tally, new: &Tally) -> Vec<SectionSize> {
    let mut sections: Vec<_> = both(&old.sections, &new.sections)
        .into_iter()
        .map(|((class, name), bytes)| SectionSize {
            name: name.clone(),
            class: *class,
            bytes,
        })
        .collect();
    most_changed(&mut sections, |s| (s.bytes, s.name.clone()));
    sections
}

fn classes(old: &Tally, new: &Tally) -> Vec<ClassSize> {
    let sum = |side: &Tally, class: Class| {
        let of_class = side.sections.iter().filter(|((c, _), _)| *c == class);
        of_class.fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
    };
    Class::ALL
        .into_iter()
        .map(|class| ClassSize {
            class,
            bytes: Pair {
                baseline: sum(old, class),
                experiment: sum(new, class),
            },
        })
        .collect()
}

/// Returns whether a side's inlined copies were all counted.
fn has_inlined(side: &Tally) -> bool {
    side.inlined.units > 0 && side.inlined.split_units == 0 && !side.inlined.damaged
}

fn inlined(old: &Tally, new: &Tally, options: &Options<'_>) -> Option<InlinedCopies> {
    if !(has_inlined(old) && has_inlined(new)) {
        return None;
    }
    let mut functions: Vec<_> = both(&old.inlined.functions, &new.inlined.functions)
        .into_iter()
        .map(|(name, sums)| InlinedFunction {
            name: name.clone(),
            call_sites: count(sums),
            bytes: bytes(sums),
        })
        .collect();
    most_changed(&mut functions, |f| (f.bytes, f.name.clone()));
    most_changed(&mut functions, |f| (f.call_sites, String::new()));
    let call_sites = options.call_sites_of.as_ref().map(|function| CallSites {
        function: function.clone(),
        sites: both(&old.inlined.sites, &new.inlined.sites)
            .into_iter()
            .map(|(site, sums)| CallSite {
                caller: site.caller.clone(),
                through: site.through.clone(),
                file: site.file.clone(),
                line: site.line,
                copies: count(sums),
                bytes: bytes(sums),
            })
            .collect(),
    });
    Some(InlinedCopies {
        functions,
        call_sites,
    })
}

fn hot(old: &Tally, new: &Tally, options: &Options<'_>) -> Option<HotPair> {
    Some(HotPair {
        share: options.hot.as_ref()?.share,
        line_bytes: LINE_BYTES,
        text: Pair {
            baseline: old.hot?,
            experiment: new.hot?,
        },
        unplaced: Pair {
            baseline: old.unplaced,
            experiment: new.unplaced,
        },
    })
}

/// Returns notes on what the figures do not say themselves.
fn notes(
    paths: [&Path; 2],
    sides: [&Tally; 2],
    options: &Options<'_>,
    inlined: Option<&InlinedCopies>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if sides[0].machines != sides[1].machines {
        let names = sides.map(|s| s.machines.iter().cloned().collect::<Vec<_>>().join(", "));
        notes.push(format!(
            "The two are for different machines ({} and {}).",
            names[0], names[1]
        ));
    }
    for (path, side) in paths.into_iter().zip(sides) {
        let path = path.display();
        notes.extend(side.notes.iter().cloned());
        if side.linked > 0 && side.objects > 0 {
            notes.push(format!(
                "{path} holds object files and what may be linked from them: a symbol of both counts twice."
            ));
        }
        if !options.inlined {
            continue;
        }
        let found = &side.inlined;
        if found.split_units > 0 {
            notes.push(format!(
                "{path} has its debug information in .dwo files, so inlined copies are not counted: build without -gsplit-dwarf."
            ));
        } else if found.units == 0 && !found.damaged {
            notes.push(format!(
                "{path} has no debug information, so inlined copies are not counted: build it with -g."
            ));
        }
        if inlined.is_some() && found.unresolved > 0 {
            notes.push(format!(
                "{} inlined copies in {path} name no function there (its debug information is shared between files, as dwz does).",
                found.unresolved
            ));
        }
    }
    if let Some(sites) = inlined.and_then(|i| i.call_sites.as_ref())
        && sites.sites.is_empty()
    {
        notes.push(format!(
            "No copy of a function {} was inlined on either side.",
            sites.function
        ));
    }
    // A file against itself would say everything twice.
    let mut seen = BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    notes
}

/// Returns the entries of two maps under each key that either has, in order of keys.
fn both<'a, K: Ord + 'a, V: Copy + Default + 'a>(
    old: impl IntoIterator<Item = (&'a K, &'a V)>,
    new: impl IntoIterator<Item = (&'a K, &'a V)>,
) -> BTreeMap<&'a K, Pair<V>> {
    let mut pairs: BTreeMap<&K, Pair<V>> = BTreeMap::new();
    for (key, value) in old {
        pairs.entry(key).or_default().baseline = *value;
    }
    for (key, value) in new {
        pairs.entry(key).or_default().experiment = *value;
    }
    pairs
}

fn bytes(sums: Pair<Sum>) -> Pair {
    Pair {
        baseline: sums.baseline.bytes,
        experiment: sums.experiment.bytes,
    }
}

fn count(sums: Pair<Sum>) -> Pair {
    Pair {
        baseline: sums.baseline.count,
        experiment: sums.experiment.count,
    }
}

/// Orders the largest change first, then the largest, then by name.
fn most_changed<T>(rows: &mut [T], key: impl Fn(&T) -> (Pair, String)) {
    rows.sort_by_cached_key(|row| {
        let (size, name) = key(row);
        let change = Reverse(size.delta().unsigned_abs());
        (change, Reverse(size.experiment), name)
    });
}
