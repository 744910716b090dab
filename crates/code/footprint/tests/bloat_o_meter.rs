//! Agreement with the kernel's bloat-o-meter, and with `nm` on which it
//! stands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Workshop, bare, run};
use locklab_footprint::{Options, bloat_o_meter_totals, compare};

/// Sizes are given in assembly, so that every compiler makes the same.
const SOURCE: &str = r#"
#define FUNCTION(bind, name, bytes) \
    __asm__(".text\n" bind " \"" name "\"\n.type \"" name "\",%function\n" \
            "\"" name "\": .skip " #bytes "\n.size \"" name "\",.-\"" name "\"\n");

FUNCTION(".globl", "_start", 11)
FUNCTION(".globl", "shared", 100)
FUNCTION(".local", "state.12", 5)
FUNCTION(".local", "state.34", 6)
FUNCTION(".globl", "__se_sys_read", 999)
FUNCTION(".globl", "__mod_alias", 999)
FUNCTION(".globl", "a:b", 999)
#ifdef EXPERIMENT
FUNCTION(".globl", "shared2", 70)
FUNCTION(".local", "shared2.isra.0", 9)
FUNCTION(".weak", "overridable", 44)
FUNCTION(".globl", "fresh", 17)
#else
FUNCTION(".globl", "shared2", 90)
FUNCTION(".local", "shared2.constprop.1", 8)
FUNCTION(".weak", "overridable", 33)
FUNCTION(".weak", "weak_gone", 3)
FUNCTION(".globl", "gone", 19)
#endif

#ifdef EXPERIMENT
enum { ROWS = 24 };
#else
enum { ROWS = 16 };
#endif
const int table[ROWS] = { 1 };
int counters[ROWS] = { 1 };
int zeros[64];
__attribute__((weak)) int knob = 3;
const char linux_banner[] = "not counted";
const char vermagic[] = "not counted either";
/* As a static variable of a function is called. */
__asm__(".bss\n.type \"calls.0\",%object\n\"calls.0\": .skip 8\n.size \"calls.0\",8\n");
"#;

/// The figures were printed by the script itself, Debian's linux-source-6.12
/// (6.12.117) and linux-source-6.1 (6.1.192), with nm 2.40, for these two
/// programs as gcc 12.2 builds them with the flags below:
///
///     apt-get download linux-source-6.12   # unpack scripts/bloat-o-meter
///     python3 bloat-o-meter baseline experiment | sed -n '1p;$p'
#[test]
fn totals_are_those_of_the_kernel_script() {
    let shop = Workshop::new();
    let old = shop.gcc("baseline", SOURCE, &bare(&[]));
    let new = shop.gcc("experiment", SOURCE, &bare(&["-DEXPERIMENT"]));
    let bloat = bloat_o_meter_totals(&old, &new).unwrap();
    let (with_weak, without_weak) = (
        include_str!("data/bloat-o-meter-6.12.txt"),
        include_str!("data/bloat-o-meter-6.1.txt"),
    );
    assert_eq!(bloat.totals.to_string() + "\n", with_weak);
    assert!(
        bloat.rules.starts_with("Linux 6.6 and later"),
        "{}",
        bloat.rules
    );
    assert_eq!(bloat.without_weak.to_string() + "\n", without_weak);
}

/// The script of the tree that was compared counts, as its banner says.
#[test]
fn the_rules_are_those_of_the_kernel_that_is_compared() {
    let shop = Workshop::new();
    let kernel = |name: &str, version: &str, options: &[&str]| {
        let banner = format!("\nconst char banner[] = \"Linux version {version} (a@b)\";\n");
        shop.gcc(name, &format!("{SOURCE}{banner}"), &bare(options))
    };
    for (version, weak, rules) in [
        ("6.1.192", false, "Linux 6.1 "),
        ("6.5.0-rc1", false, "Linux 6.5 "),
        ("6.6.30", true, "Linux 6.6 "),
        ("6.12.117", true, "Linux 6.12 "),
    ] {
        let old = kernel("old", version, &[]);
        let new = kernel("new", version, &["-DEXPERIMENT"]);
        let bloat = bloat_o_meter_totals(&old, &new).unwrap();
        assert!(bloat.rules.starts_with(rules), "{}", bloat.rules);
        let counted = if weak {
            bloat.with_weak
        } else {
            bloat.without_weak
        };
        assert_eq!(bloat.totals, counted, "{version}");
        assert_ne!(bloat.with_weak, bloat.without_weak);
    }
}

/// Returns letter and bytes by symbol; several of one name are summed.
fn nm(file: &Path) -> BTreeMap<String, (char, u64)> {
    let listing = run(Command::new("nm").arg("--size-sort").arg(file));
    let mut symbols = BTreeMap::new();
    for line in listing.lines() {
        let [size, letter, name] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let sum = symbols.entry(name.to_string()).or_insert((' ', 0));
        sum.0 = letter.chars().next().unwrap();
        sum.1 += u64::from_str_radix(size, 16).unwrap();
    }
    symbols
}

/// A program with the C library's own parts, as the compiler of the day
/// builds it: executable, object and archive.
#[test]
fn functions_are_those_that_nm_counts() {
    let shop = Workshop::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        __thread int per_thread[4] = { 1 };
        __attribute__((weak)) int may_be_replaced(int x) { return x * 3; }
        static int twice(int x) { return x + x; }
        int alias(int) __attribute__((alias("may_be_replaced")));
        static __attribute__((noinline)) int power(int x, int n) {
            return n ? twice(x) * power(x, n - 1) : per_thread[x & 3];
        }
        int main(int argc, char **argv) {
            for (int i = 0; i < argc; i++)
                printf("%d %d\n", power(atoi(argv[i]), 7), may_be_replaced(i) + alias(i));
            return EXIT_SUCCESS;
        }
    "#;
    let program = shop.gcc("program", source, &["-O2"]);
    let object = shop.gcc(
        "object.o",
        source,
        &["-O2", "-fcommon", "-ffunction-sections"],
    );
    let other = shop.gcc("other.o", "int unrelated(int x) { return x; }", &["-O2"]);
    shop.run("ar", &["rcs", "library.a", "object.o", "other.o"]);
    shop.run("ar", &["rcsT", "thin.a", "object.o", "other.o"]);
    let library = shop.path("library.a");
    let thin = shop.path("thin.a");

    let options = Options::default();
    for file in [&program, &object, &other, &library, &thin] {
        let symbols = nm(file);
        let functions: u64 = symbols
            .values()
            .filter(|(letter, _)| "tTwWi".contains(*letter))
            .map(|(_, bytes)| bytes)
            .sum();
        let all: u64 = symbols
            .values()
            .filter(|(letter, _)| "tTdDbBrRvVwW".contains(*letter))
            .map(|(_, bytes)| bytes)
            .sum();
        let footprint = compare(file, &program, &options).unwrap();
        assert!(functions > 0);
        assert_eq!(footprint.text.baseline, functions, "{file:?}");
        assert_eq!(footprint.bloat_o_meter.totals.before, all, "{file:?}");
        let sum: u64 = footprint.symbols.iter().map(|s| s.bytes.baseline).sum();
        assert_eq!(footprint.text.baseline, sum);
    }
}
