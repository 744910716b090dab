//! Names under which the symbols of two builds match. A compiler renames
//! what it clones, splits or makes unique (`f.constprop.0`, `f.cold`, Rust's
//! `17h0123456789abcdefE`), and no two builds do it alike; without this every
//! such symbol would be both removed and added. Must never make one name of
//! two functions that a reader of the source would tell apart.

use std::fmt;

/// Lists the endings that GCC and LLVM give, alone or before a number, to a copy
/// or a part of the same function. Not here: what names another function,
/// such as `._omp_fn` (a parallel region) or `.cfi_jt` (a jump table).
const SUFFIXES: &[&str] = &[
    "__part",
    "__uniq",
    "clone",
    "cold",
    "constprop",
    "hot",
    "isra",
    "llvm",
    "localalias",
    "lto_priv",
    "part",
    "specialized",
    "unlikely",
];

/// A demangled C++ name may be exponentially longer than its symbol.
const LONGEST: usize = 16 * 1024;

/// Returns the name a symbol is compared under: suffixes of clones and numbers of
/// statics stripped, Rust and C++ demangled, Rust hashes and disambiguators
/// left out. Generic instances that differ only in a hash share a name.
///
/// ```
/// use locklab_footprint::normalise;
/// assert_eq!(normalise("spin_lock.constprop.0.isra.0"), "spin_lock");
/// assert_eq!(normalise("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
/// ```
pub fn normalise(symbol: &str) -> String {
    // A symbol version (`memcpy@@GLIBC_2.14`) distinguishes functions.
    let (symbol, version) = symbol.split_at(symbol.find('@').unwrap_or(symbol.len()));
    let base = without_suffixes(symbol);
    if let Some(stem) = base.strip_prefix("__UNIQUE_ID_") {
        // The kernel numbers these by a counter of the compilation.
        let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        return format!("__UNIQUE_ID_{stem}{version}");
    }
    if let Ok(rust) = rustc_demangle::try_demangle(base) {
        return format!("{rust:#}{version}");
    }
    // A suffix that names another function is kept.
    let (mangled, suffix) = base.split_at(base.find('.').unwrap_or(base.len()));
    match cpp(mangled) {
        Some(name) => name + suffix + version,
        None => format!("{base}{version}"),
    }
}

fn without_suffixes(symbol: &str) -> &str {
    let mut name = symbol;
    loop {
        let stem = match name.rsplit_once('.') {
            Some((stem, last)) if is_number(last) => stem,
            _ => name,
        };
        let stem = match stem.rsplit_once('.') {
            Some((shorter, last)) if SUFFIXES.contains(&last) => shorter,
            _ => stem,
        };
        if stem.is_empty() || stem.len() == name.len() {
            return name;
        }
        name = stem;
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn cpp(mangled: &str) -> Option<String> {
    if !mangled.starts_with("_Z") || mangled.len() > LONGEST {
        return None;
    }
    let symbol = cpp_demangle::BorrowedSymbol::new(mangled.as_bytes()).ok()?;
    let mut name = Bounded(String::new());
    symbol
        .structured_demangle(&mut name, &cpp_demangle::DemangleOptions::new())
        .ok()?;
    Some(name.0)
}

struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_and_parts_match_their_function() {
        for clone in [
            "f",
            "f.constprop.0",
            "f.isra.0",
            "f.part.12",
            "f.cold",
            "f.constprop.0.isra.0.cold",
            "f.llvm.1234567890",
            "f.lto_priv.0",
            "f.lto_priv.0.cold",
            "f.localalias",
            "f.__uniq.31415926535.llvm.27182",
            "f.cold.1",
            "f.17",
        ] {
            assert_eq!(normalise(clone), "f", "{clone}");
        }
    }

    #[test]
    fn rust_hashes_and_disambiguators_are_left_out() {
        for one in [
            "_ZN4core3fmt5write17h0123456789abcdefE",
            "_ZN4core3fmt5write17hfedcba9876543210E.llvm.99",
        ] {
            assert_eq!(normalise(one), "core::fmt::write");
        }
        for one in [
            "_RNvCs1234_7mycrate3foo",
            "_RNvCskwGfYPst2Cb_7mycrate3foo",
            "_RNvCskwGfYPst2Cb_7mycrate3foo.cold",
        ] {
            assert_eq!(normalise(one), "mycrate::foo");
        }
        assert_eq!(
            normalise(
                "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE"
            ),
            "core::ptr::drop_in_place<alloc::string::String>"
        );
    }

    #[test]
    fn cpp_is_demangled_and_keeps_what_names_another_function() {
        assert_eq!(normalise("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(normalise("_ZN3foo3barEi.part.0"), "foo::bar(int)");
        assert_eq!(normalise("_Z3foov._omp_fn.0"), "foo()._omp_fn");
        assert_eq!(normalise("_Z3foov@@V_1"), "foo()@@V_1");
        // Garbage after the prefix stays as it is.
        assert_eq!(normalise("_Zzz9"), "_Zzz9");
    }

    #[test]
    fn plain_names_stay() {
        for name in [
            "main",
            "__x64_sys_read",
            "__pfx_schedule",
            ".L12",
            ".0",
            "",
            "memcpy@@GLIBC_2.14",
            "f.cfi_jt",
            "v1.2beta",
        ] {
            assert_eq!(normalise(name), name);
        }
        assert_eq!(normalise("CSWTCH.12"), "CSWTCH");
        assert_eq!(normalise("__UNIQUE_ID_alias123"), "__UNIQUE_ID_alias");
    }

    #[test]
    fn a_bomb_of_substitutions_is_refused() {
        // Each S<n>_ doubles what came before.
        let mut bomb = String::from("_Z1fI1a");
        for i in 0..60 {
            let last = if i == 0 {
                "S_".into()
            } else {
                format!("S{}_", char::from_digit(i - 1, 36).unwrap_or('Z'))
            };
            bomb.push_str(&format!("1tI{last}{last}E"));
        }
        bomb.push_str("Evv");
        assert!(normalise(&bomb).len() <= LONGEST);
    }
}
