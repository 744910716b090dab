//! The text of the source of the locks and of what they run on, as it was
//! compiled: what a word is called there, and what stands on a line.

use std::sync::{PoisonError, RwLock};

// `FILES`: each source file, by the end of its path: `locks/src/mcs.rs`.
include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// Sources that are not ours.
static ADDED: RwLock<Vec<(&'static str, &'static str)>> = RwLock::new(Vec::new());

/// Makes the text of a source file known, for the rest of the process, by the
/// name that its places have.
pub fn add_source(name: &'static str, text: String) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if added.iter().all(|(known, _)| *known != name) {
        added.push((name, text.leak()));
    }
}

/// Returns all that is known of such files in this process.
pub(crate) fn all_added() -> Vec<(String, String)> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let owned = added
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    owned.collect()
}

/// Makes those known that another process has known. No other process may be made
/// meanwhile: it could find them locked.
pub(crate) fn add_all(texts: &[(String, String)]) {
    for (name, text) in texts {
        if added(name).is_none() {
            add_source(name.clone().leak(), text.clone());
        }
    }
}

fn added(file: &str) -> Option<&'static str> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let (_, text) = added.iter().find(|(name, _)| *name == file)?;
    Some(text)
}

/// Returns the text of a line, from 1.
pub(crate) fn line(file: &str, line: u32) -> Option<&'static str> {
    let ours = FILES.iter().find(|(name, _)| file.ends_with(name));
    let text = ours.map(|(_, text)| *text).or_else(|| added(file))?;
    text.lines().nth(line.checked_sub(1)? as usize)
}

/// Returns the line that begins the block around this line: an item that is not inside
/// another.
pub(crate) fn block(file: &str, at: u32) -> &'static str {
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_lowercase());
    let lines = (1..=at).rev().filter_map(|number| line(file, number));
    lines.into_iter().find(|line| begins(line)).unwrap_or("")
}

/// Returns what a file of ours is called in places below its crate's folder.
pub(crate) fn name_of(file: &str) -> Option<&'static str> {
    let mut names = FILES.iter().map(|(name, _)| *name);
    names.find(|name| file.ends_with(name))
}

/// Returns the lines of code of a file, each with its number; comments and tests do not
/// count.
pub(crate) fn code(file: &str) -> Vec<(u32, &'static str)> {
    let mut ours = FILES.iter();
    let ours = ours.find(|(name, _)| *name == file || below_folder(name) == Some(file));
    let Some(text) = ours.map(|(_, text)| *text).or_else(|| added(file)) else {
        return Vec::new();
    };
    (1..)
        .zip(text.lines())
        .take_while(|(_, line)| !begins_tests(line.trim()))
        .filter(|(_, line)| !line.trim().starts_with("//"))
        .collect()
}

fn begins_tests(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test")
}

/// Returns whether a line of the file that has this end contains this text.
#[cfg(test)]
pub(crate) fn contains(file: &str, part: &str) -> bool {
    let ours = FILES.iter().find(|(name, _)| name.ends_with(file));
    ours.is_some_and(|(_, text)| text.lines().any(|line| line.contains(part)))
}

/// Tells which lines decide what a lock does and what it claims: not those that import, nor
/// the texts of its description. A file may move, and a lock may have another name.
#[derive(Default)]
struct Deciding {
    imports: bool,
    describes: bool,
}

impl Deciding {
    /// Returns whether the next line decides.
    fn decides(&mut self, line: &str) -> bool {
        let private = line
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ");
        let imports = self.imports || private.starts_with("use ");
        self.imports = imports && !line.ends_with(';');
        let field = line.split_once(": ").map_or("", |(field, _)| field);
        let begins = ["name", "summary", "paper"].contains(&field);
        let is_other = line.starts_with("..")
            || line == "};"
            || (!field.is_empty() && field.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        self.describes = begins || (self.describes && !is_other);
        !imports && !self.describes
    }
}

/// Returns a file's name below the folder of its crate's source, and a hash of the code that
/// decides what it does: comments and tests do not count.
pub(crate) fn fingerprint(file: &str) -> Option<(&'static str, u64)> {
    let (name, text) = FILES.iter().find(|(name, _)| file.ends_with(name))?;
    let mut deciding = Deciding::default();
    let code = text
        .lines()
        .map(str::trim)
        .take_while(|line| !begins_tests(line))
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .filter(|line| deciding.decides(line));
    // This is FNV-1a.
    let hash = code
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    Some((below_folder(name)?, hash))
}

fn below_folder(name: &'static str) -> Option<&'static str> {
    name.split_once("/src/").map(|(_, below)| below)
}

/// Returns the hash of a file by its name below that folder.
pub(crate) fn fingerprint_of(name: &str) -> Option<u64> {
    let mut names = FILES.iter().map(|(known, _)| *known);
    let file = names.find(|known| below_folder(known) == Some(name))?;
    fingerprint(file).map(|(_, hash)| hash)
}

/// Returns what the method that is called at this place is called on: the last name before it,
/// which may stand on a line above.
pub(crate) fn field(file: &str, at: u32, column: u32) -> Option<String> {
    if let Some(text) = added(file) {
        return field_in_c(text.lines().nth(at.checked_sub(1)? as usize)?, column);
    }
    let mut number = at;
    let mut before = line(file, number)?
        .get(..(column as usize).checked_sub(1)?)?
        .trim_end()
        .strip_suffix('.')?
        .trim_end();
    while before.is_empty() {
        number = number.checked_sub(1)?;
        before = line(file, number)?.trim_end();
    }
    // `slots[slot].load`, `slot(ticket).load`.
    while let Some(closed) = before.strip_suffix([']', ')']) {
        before = &closed[..closed.rfind(['[', '('])?];
    }
    let name: String = before
        .chars()
        .rev()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then(|| name.chars().rev().collect())
}

/// Returns `l->slots.flag` of `l->slots[slot % 2].flag, 1`, and what comes behind: the
/// index of an array has no name of its own.
fn path_in_c(text: &str) -> (String, &str) {
    let (mut path, mut depth) = (String::new(), 0);
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '[') - i32::from(c == ']');
        if depth > 0 || c == ']' {
            continue;
        }
        if !c.is_alphanumeric() && !"_->.".contains(c) {
            return (path, &text[at..]);
        }
        path.push(c);
    }
    (path, "")
}

/// Returns what the first argument of the call at this column is the address of, or what stands
/// there.
fn field_in_c(line: &str, column: u32) -> Option<String> {
    let from_column = line
        .get((column as usize).saturating_sub(1)..)
        .unwrap_or(line);
    let mut rest = from_column;
    let path = loop {
        let argument = rest.trim_start().trim_start_matches(['&', '*', '(']);
        // What is cast to another type, and not that type.
        let is_type = |name: &str| name.starts_with("struct ") || name.starts_with("union ");
        let argument = match argument.split_once("*)") {
            Some((name, cast)) if is_type(name) => cast,
            _ => argument,
        };
        let (path, behind) = path_in_c(argument);
        if let Some(member) = behind.strip_prefix(')')
            && member.starts_with(['-', '.'])
        {
            break path_in_c(member).0;
        }
        // A call, maybe within another: its first argument.
        match behind.strip_prefix('(') {
            Some(arguments) => rest = arguments,
            None => break path,
        }
    };
    let name = path.rsplit(['>', '.']).next()?;
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_owned())
}

/// Returns what is called on a line of C, by the names that stand before a parenthesis.
pub(crate) fn calls_in_c(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with(['#', '*', '/']) {
        ""
    } else {
        line
    };
    let before = code.match_indices('(').map(|(at, _)| &code[..at]);
    before.map(|before| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        &before[start..]
    })
}

#[cfg(test)]
#[path = "../tests/unit/source.rs"]
mod tests;
