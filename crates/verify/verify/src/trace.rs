//! The steps of a failing execution as something that a person can read: a
//! table with one column a thread, source lines and values.
//!
//! Addresses differ from run to run and say nothing, so words are named as
//! the source names them, nodes by the thread that brought them (`n2`), and
//! other nodes in the order in which they appear (`p1`).

use crate::journal::{Entry, LOCK, Operation, STATIC};
use crate::source;
use serde::{Deserialize, Serialize};

/// One step of a modelled thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The thread, from 0.
    pub thread: usize,
    /// The source file, without its folder.
    pub file: String,
    /// The line there, from 1.
    pub line: u32,
    /// Says what it does, in a few words: `tail n1 > n2`.
    pub what: String,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            thread,
            file,
            line,
            what,
        } = self;
        write!(f, "thread {thread}  {file}:{line}  {what}")
    }
}

/// Names of addresses.
#[derive(Default)]
struct Names {
    /// Memory that somebody brought: its address, bytes, and name.
    owned: Vec<(u64, u64, String)>,
    /// Other nodes, in the order in which they appear.
    seen: Vec<u64>,
}

/// Names what a value points into, that is static data.
const STATIC_DATA: &str = "data";

/// A node is no larger than this in the checker's world.
const NODE: u64 = 1024;

impl Names {
    fn owner(&self, address: u64) -> Option<&(u64, u64, String)> {
        self.owned
            .iter()
            .find(|&&(start, bytes, _)| (start..start + bytes.max(1)).contains(&address))
    }

    fn value(&mut self, pointer: bool, value: u64) -> String {
        if value < 4096 || (!pointer && self.owner(value).is_none()) {
            return if value < 4096 {
                value.to_string()
            } else if value == u64::from(u32::MAX) || value == u64::MAX {
                "-1".to_owned()
            } else {
                format!("{value:#x}")
            };
        }
        if let Some((start, _, name)) = self.owner(value) {
            if name == STATIC_DATA {
                return format!("{name}+{:#x}", value - start);
            }
            return if name.is_empty() {
                "lock".to_owned()
            } else {
                name.clone()
            };
        }
        let place = self.seen.iter().position(|&seen| seen == value);
        let place = place.unwrap_or_else(|| {
            self.seen.push(value);
            self.seen.len() - 1
        });
        format!("p{}", place + 1)
    }

    /// Returns what a word is called: its field, and whose node it is in.
    fn word(&self, entry: &Entry) -> String {
        let field = source::field(&entry.file(), entry.line, entry.column);
        let field = field.unwrap_or_else(|| "word".to_owned());
        if let Some((_, _, name)) = self.owner(entry.word) {
            return if name.is_empty() || name == STATIC_DATA {
                field
            } else {
                format!("{name}.{field}")
            };
        }
        let nearest = self
            .seen
            .iter()
            .enumerate()
            .filter(|&(_, &node)| node <= entry.word && entry.word - node < NODE)
            .max_by_key(|&(_, &node)| node);
        match nearest {
            Some((place, _)) => format!("p{}.{field}", place + 1),
            None => field,
        }
    }
}

/// Returns what the entries of a journal say.
pub(crate) fn steps(entries: &[Entry]) -> Vec<Step> {
    let mut names = Names::default();
    let mut steps = Vec::new();
    for entry in entries {
        if entry.operation == Operation::Owns {
            let name = match entry.cpu {
                LOCK => String::new(),
                STATIC => STATIC_DATA.to_owned(),
                cpu => format!("n{cpu}"),
            };
            // Later memory at an address is what is there.
            names.owned.insert(0, (entry.word, entry.new, name));
            continue;
        }
        let word = names.word(entry);
        let old = names.value(entry.pointer, entry.old);
        let new = names.value(entry.pointer, entry.new);
        let what = match entry.operation {
            Operation::Load => format!("{word} is {old}"),
            Operation::Store => format!("{word} = {new}"),
            Operation::Swap => format!("{word} {old} > {new} (swap)"),
            Operation::CompareExchange => format!("{word} {old} > {new}"),
            Operation::CompareFailed => format!("{word} not {new}: {old}"),
            Operation::Update => format!("{word} {old} > {new}"),
            Operation::Earlier => format!("{word} {old} > {new} (earlier)"),
            Operation::Seen => format!("sees {word} {old}"),
            Operation::InVain => format!("waits: {word} {old}"),
            Operation::Fence => "fence".to_owned(),
            Operation::Sleep => format!("sleeps: {word} {old}"),
            Operation::NoSleep => format!("does not sleep: {word} {old}"),
            Operation::Wake => format!("wakes one: {word}"),
            Operation::WakeAll => format!("wakes all: {word}"),
            Operation::WakeSome => format!("wakes some: {word}"),
            Operation::WakeNobody => format!("wakes nobody: {word}"),
            Operation::Enter => "IS INSIDE".to_owned(),
            Operation::Read => "READS INSIDE".to_owned(),
            Operation::Interrupt => "INTERRUPT".to_owned(),
            Operation::Leave => "END OF INTERRUPT".to_owned(),
            Operation::Owns => continue,
        };
        let file = entry.file();
        steps.push(Step {
            thread: entry.cpu.into(),
            file: file.rsplit('/').next().unwrap_or_default().to_owned(),
            line: entry.line,
            what,
        });
    }
    steps
}

/// Columns of a table that can be mailed.
const WIDTH: usize = 72;

/// The most steps that are shown where there is little room.
pub const SHOWN: usize = 60;

/// Returns the interleaving: one line a step, one column a thread. Of more than
/// `most` steps the first and the last are shown.
pub fn interleaving(steps: &[Step], most: usize) -> String {
    use std::fmt::Write;
    use textwrap::WordSplitter::NoHyphenation;
    let threads = steps.iter().map(|step| step.thread + 1).max().unwrap_or(0);
    if threads == 0 {
        return String::new();
    }
    let place = |step: &Step| {
        if step.what.chars().all(|c| c.is_uppercase() || c == ' ') {
            String::new()
        } else {
            format!("{}:{}", step.file, step.line)
        }
    };
    let left = steps.iter().map(|step| place(step).len()).max();
    let left = left.unwrap_or(0).clamp(6, 24);
    let column = ((WIDTH - left) / threads).saturating_sub(1).max(11);
    let mut text = format!("{:<left$}", "source");
    for thread in 0..threads {
        write!(text, " {:<column$}", format!("thread {thread}")).expect("a String grows");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    let wrapped = textwrap::Options::new(column).word_splitter(NoHyphenation);
    let skipped = steps.len().saturating_sub(most);
    for (number, step) in steps.iter().enumerate() {
        if skipped > 0 && number == most / 2 {
            writeln!(text, "({skipped} steps are left out: --steps FILE has all)")
                .expect("a String grows");
        }
        if skipped > 0 && (most / 2..most / 2 + skipped).contains(&number) {
            continue;
        }
        let mut source = place(step);
        for part in textwrap::wrap(&step.what, &wrapped) {
            let before = " ".repeat(step.thread * (column + 1));
            let shown = format!("{source:<left$} {before}{part}");
            writeln!(text, "{}", shown.trim_end()).expect("a String grows");
            source.clear();
        }
    }
    text
}

/// Explains the signs in a table.
pub const LEGEND: &str = "\
x is v: reads. x = v: writes. x a > b: read and written at once.
x not a: b: a compare-and-swap that found b. n1: the node of thread 1.
";
