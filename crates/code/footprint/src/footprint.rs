//! The result of a comparison: plain data, the shape of the JSON. Exists so
//! that reports, stores and tests share one type. Must never lose a field or
//! change one's meaning: other tools read `text` and `symbols`.

use serde::{Deserialize, Serialize};

use crate::bloat::BloatOMeter;
use crate::elf::Class;
use crate::hot::HotText;

/// A figure of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair<T = u64> {
    /// The value of the old side.
    pub baseline: T,
    /// The value of the new side.
    pub experiment: T,
}

impl Pair {
    /// Returns new minus old.
    pub fn delta(self) -> i64 {
        let delta = i128::from(self.experiment) - i128::from(self.baseline);
        delta.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    pub(crate) fn change(self) -> Change {
        match (self.baseline, self.experiment) {
            (0, 1..) => Change::Added,
            (1.., 0) => Change::Removed,
            (old, new) if old < new => Change::Grown,
            (old, new) if old > new => Change::Shrunk,
            _ => Change::Same,
        }
    }
}

/// Says how a symbol changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the new side has it.
    Added,
    /// Only the old side has it.
    Removed,
    /// It has more bytes.
    Grown,
    /// It has fewer bytes.
    Shrunk,
    /// It has as many bytes; its code may differ.
    Same,
}

/// Holds the contents of two inputs, old against new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// Names the inputs that were compared.
    pub inputs: Pair<InputSummary>,
    /// Bytes of function symbols as `nm` counts them (types t, T, w, W and i
    /// in sections of code; an alias counts again). The sum of `symbols`.
    pub text: Pair,
    /// Bytes of sections by class, in the order of [`Class::ALL`].
    pub classes: Vec<ClassSize>,
    /// Bytes of sections by name, the most changed first.
    pub sections: Vec<SectionSize>,
    /// Counts the `symbols` that were added, removed and so on.
    pub changes: Changes,
    /// Functions, the most changed first.
    pub symbols: Vec<SymbolSize>,
    /// Other symbols: constants, variables; the most changed first.
    pub data: Vec<DataSize>,
    /// Bytes of function symbols by file, if two folders were compared.
    pub files: Vec<FileSize>,
    /// Inlined copies; none unless both sides have debug information.
    pub inlined: Option<InlinedCopies>,
    /// Hot text; none unless counts were given.
    pub hot: Option<HotPair>,
    /// The totals of the kernel's bloat-o-meter for the same files.
    pub bloat_o_meter: BloatOMeter,
    /// Caveats that apply to the figures, one sentence each.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSummary {
    /// The path as given.
    pub path: String,
    /// ELF images that were read: 1 for an executable.
    pub images: u64,
    /// Units of debug information that were read.
    pub debug_units: u64,
}

/// Bytes of all sections of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassSize {
    /// Names the purpose of the bytes.
    pub class: Class,
    /// Their sizes in the two files.
    #[serde(flatten)]
    pub bytes: Pair,
}

/// Bytes of all sections of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionSize {
    /// Names it as the file does; in object files `.text.f` is part of `.text`.
    pub name: String,
    /// Names the purpose of the bytes.
    pub class: Class,
    /// Their sizes in the two files.
    #[serde(flatten)]
    pub bytes: Pair,
}

/// Numbers of functions by how they changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The number of those that only the new side has.
    pub added: u64,
    /// The number of those that only the old side has.
    pub removed: u64,
    /// Functions with more bytes.
    pub grown: u64,
    /// Functions with fewer bytes.
    pub shrunk: u64,
    /// Functions of the same size.
    pub same: u64,
}

/// A function: all symbols whose [normalised](crate::normalise) name is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolSize {
    /// Its name, without what compilers append to clones.
    pub name: String,
    /// Bytes; 0 where the side does not have it.
    #[serde(flatten)]
    pub bytes: Pair,
    /// Counts the symbols of this name: clones, parts, statics of several files.
    pub count: Pair,
    /// Is true if it was added, removed, grew, shrank or stayed.
    pub change: Change,
}

/// A symbol that is not a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSize {
    /// Its name, without what compilers append to clones.
    pub name: String,
    /// The class of its section.
    pub class: Class,
    /// Bytes; 0 where the side does not have it.
    #[serde(flatten)]
    pub bytes: Pair,
    /// Is true if it was added, removed, grew, shrank or stayed.
    pub change: Change,
}

/// Bytes of function symbols of one file of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSize {
    /// Path below the folder.
    pub path: String,
    /// Bytes; 0 where the side does not have the file.
    #[serde(flatten)]
    pub bytes: Pair,
}

/// Inlining, according to the debug information (DWARF).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlinedCopies {
    /// Functions that were inlined somewhere, the most changed first.
    pub functions: Vec<InlinedFunction>,
    /// Lists the places where one function was inlined, if that was requested.
    pub call_sites: Option<CallSites>,
}

/// A function and the copies of its body in other functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlinedFunction {
    /// Its name, without what compilers append to clones.
    pub name: String,
    /// Call sites in the machine code at which a copy replaced a call: a call
    /// in a function that was itself inlined at ten places is ten.
    pub call_sites: Pair,
    /// Bytes of code of these copies, with what was inlined into them.
    pub bytes: Pair,
}

/// The call sites at which one function was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSites {
    /// The normalised name of the function that was asked for.
    pub function: String,
    /// The call sites, in order of caller, file and line.
    pub sites: Vec<CallSite>,
}

/// A line of source that calls the function, in the code of one caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSite {
    /// The out-of-line function in whose code the copy is.
    pub caller: String,
    /// The function that has the call in its source, where that was itself
    /// inlined into the caller.
    pub through: Option<String>,
    /// The file of the call, relative to the compilation's folder if below it.
    pub file: String,
    /// The line of the call.
    pub line: u64,
    /// Copies of this call in the caller.
    pub copies: Pair,
    /// Bytes of code of these copies.
    pub bytes: Pair,
}

/// Hot text of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotPair {
    /// The share of executed instructions that the text holds, 0 to 1.
    pub share: f64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// The text of each side.
    #[serde(flatten)]
    pub text: Pair<HotText>,
    /// Counts outside the image's code (libraries, kernel): not in `text`.
    pub unplaced: Pair,
}
