//! The files that a recorded program had mapped, so that its calls get names.

use std::path::PathBuf;

/// A mapped file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The number of the program image.
    pub image: u64,
    /// The lowest mapped address.
    pub from: u64,
    /// The address after the last.
    pub to: u64,
    /// Offset in the file of the first address.
    pub offset: u64,
    /// The path of the file.
    pub path: Vec<u8>,
}

/// Returns the addresses of a stack of an image as files and offsets; those in no file are
/// left out.
#[must_use]
pub fn calls(modules: &[Module], image: u64, frames: &[u64]) -> Vec<(PathBuf, u64)> {
    let in_file = |address: &u64| {
        let holds =
            |module: &&Module| module.image == image && (module.from..module.to).contains(address);
        let module = modules.iter().find(holds)?;
        let path = PathBuf::from(String::from_utf8_lossy(&module.path).into_owned());
        Some((path, address - module.from + module.offset))
    };
    frames.iter().filter_map(in_file).collect()
}
