//! The blocks that a program executed, by their addresses in its file.
//!
//! The plugin sees where code lies while it runs; `footprint` and `objdump`
//! use addresses in the file. QEMU's page log says where the program was
//! loaded, which gives the difference. Must never guess: without that line the
//! addresses would belong to another function.

use locklab_footprint::{BLOCKS, PROGRAM};
use locklab_host::error::Error;
use object::{Object, ObjectSegment, SegmentFlags};
use std::fmt::Write as _;
use std::path::Path;

/// The log item of QEMU that [`in_the_file`] needs.
pub(super) const LOG: &str = "page";

/// Returns the ranges of executable code of a file.
fn code(program: &Path) -> Result<Vec<(u64, u64)>, Error> {
    let wrong = |e: &dyn std::fmt::Display| {
        Error::Failed(format!("cannot read {}: {e}", program.display()))
    };
    let bytes = std::fs::read(program).map_err(|e| wrong(&e))?;
    let file = object::File::parse(&*bytes).map_err(|e| wrong(&e))?;
    let executable = |flags| match flags {
        SegmentFlags::Elf { p_flags, .. } => p_flags.contains(object::elf::PF_X),
        _ => false,
    };
    Ok(file
        .segments()
        .filter(|segment| executable(segment.flags()))
        .map(|segment| (segment.address(), segment.address() + segment.size()))
        .collect())
}

/// Returns the address where the code of the program begins, from QEMU's log.
fn start(log: &str) -> Option<u64> {
    log.lines().find_map(|line| {
        let address = line.strip_prefix("start_code")?.trim();
        u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()
    })
}

/// The addresses that belong to the program's own file.
pub(super) struct Inside {
    code: Vec<(u64, u64)>,
    moved: u64,
}

impl Inside {
    /// Finds out where the code of `program` was loaded, by QEMU's log.
    ///
    /// # Errors
    /// If the log does not say it, or the program cannot be read.
    pub(super) fn new(program: &Path, log: &str) -> Result<Self, Error> {
        let code = code(program)?;
        let first = code.iter().map(|(from, _)| *from).min();
        let (Some(first), Some(start)) = (first, start(log)) else {
            return Err(Error::Failed(format!(
                "QEMU does not say where it put the code of {}, so its blocks cannot be named",
                program.display()
            )));
        };
        Ok(Inside {
            code,
            moved: start.wrapping_sub(first),
        })
    }

    /// Returns the address in the file; `None` for code of libraries.
    pub(super) fn of(&self, address: u64) -> Option<u64> {
        let inside = address.wrapping_sub(self.moved);
        self.code
            .iter()
            .any(|(from, to)| (*from..*to).contains(&inside))
            .then_some(inside)
    }
}

/// Converts the plugin's blocks to addresses in the file `program`; one more
/// column distinguishes them from those of libraries, whose addresses stay
/// unchanged.
///
/// # Errors
/// If QEMU's log does not say where the code was loaded, the program cannot be
/// read, or a line of the plugin is malformed.
pub(super) fn in_the_file(blocks: &str, program: &Path, log: &str) -> Result<String, Error> {
    let inside = Inside::new(program, log)?;
    let mut text = format!("{BLOCKS}\n");
    for line in blocks.lines().skip(1) {
        let (address, rest) = line.split_once(',').unwrap_or((line, ""));
        let address = address.strip_prefix("0x").unwrap_or(address);
        let address = u64::from_str_radix(address, 16)
            .map_err(|_| Error::Failed(format!("the plugin's line '{line}' is no block")))?;
        let (address, place) = match inside.of(address) {
            Some(inside) => (inside, PROGRAM),
            None => (address, "elsewhere"),
        };
        let _ = writeln!(text, "{address:#x},{rest},{place}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_file() {
        // Any executable will do: this test's own.
        let program = std::env::current_exe().unwrap();
        let (from, to) = code(&program).unwrap()[0];
        let at = 0x40_0000_0000_u64;
        let log = format!("guest_base 0x0\nstart_code  {:#018x}\n", at + from);
        let blocks = format!(
            "address,bytes,instructions,executions\n{:#x},4,1,9\n{:#x},4,1,2\n",
            at + from + 16,
            at + to + 0x10_0000
        );
        assert_eq!(
            in_the_file(&blocks, &program, &log).unwrap(),
            format!(
                "{BLOCKS}\n{:#x},4,1,9,program\n{:#x},4,1,2,elsewhere\n",
                from + 16,
                at + to + 0x10_0000
            )
        );
        assert!(in_the_file(&blocks, &program, "").is_err());
    }
}
