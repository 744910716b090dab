//! Names of the kernel's functions, from `/proc/kallsyms`.

use std::fs;

/// The functions of the running kernel, in the order of their addresses.
pub(crate) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Reads them. There are none where the kernel hides its addresses.
    pub(crate) fn read() -> Self {
        Self::of(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn of(text: &str) -> Self {
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let function = matches!(kind, "t" | "T" | "w" | "W");
            (function && address != 0).then(|| Some((address, words.next()?.to_owned())))?
        });
        let mut functions: Vec<(u64, String)> = functions.collect();
        // Of several names of one address the first is kept, as perf does.
        functions.sort_by_key(|(address, _)| *address);
        functions.dedup_by_key(|(address, _)| *address);
        Self(functions)
    }

    /// Returns whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the function with an address, and the offset in it.
    pub(crate) fn name(&self, address: u64) -> String {
        let behind = self.0.partition_point(|(from, _)| *from <= address);
        match behind.checked_sub(1).and_then(|at| self.0.get(at)) {
            Some((from, name)) => format!("{name}+{:#x}", address - from),
            None => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_an_address_in_it() {
        let text = "ffffffff81000000 T one\nffffffff81000000 t alias\nffffffff81000100 t two\n\
                    ffffffff81000180 d data\n0000000000000000 T hidden\n";
        let symbols = KernelSymbols::of(text);
        assert_eq!(symbols.name(0xffff_ffff_8100_0010), "one+0x10");
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), "two+0x90");
        assert_eq!(symbols.name(0x10), "0x10");
        assert!(!KernelSymbols::of("0 T a\n").are_there());
    }
}
