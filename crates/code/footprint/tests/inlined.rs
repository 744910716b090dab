//! Tests that inlined copies are counted in programs whose copies are known: the
//! inlined body is a run of 40 bytes that no compiler can shorten.

use crate::common::{Workshop, bare, inlined, symbol};
use locklab_footprint::{Options, Pair, compare};

const SOURCE: &str = r#"
#define BYTES(n) __asm__ volatile(".skip " #n ", 0x90")
#ifdef EXPERIMENT
#define INLINE static __attribute__((noinline))
#else
#define INLINE static inline __attribute__((always_inline))
#endif
INLINE void unlock(void) { BYTES(40); }
static inline __attribute__((always_inline)) void leave(void) { unlock(); BYTES(8); }
void reader(void) { BYTES(20); unlock(); }
void writer(void)
{
    unlock(); BYTES(30); unlock();
    leave();
}
void _start(void) { reader(); writer(); }
"#;

fn pair(baseline: u64, experiment: u64) -> Pair {
    Pair {
        baseline,
        experiment,
    }
}

fn asked(function: &str) -> Options<'static> {
    Options {
        call_sites_of: Some(function.to_string()),
        ..Options::default()
    }
}

/// Executables and objects (with relocations), plain and compressed, of each
/// version of DWARF that compilers still write.
#[test]
fn copies_and_their_bytes() {
    for dwarf in ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        for (ending, flags) in [
            ("", [dwarf, "-g"]),
            (".o", [dwarf, "-g"]),
            ("", [dwarf, "-gz"]),
        ] {
            let shop = Workshop::new();
            let old = shop.gcc(&format!("old{ending}"), SOURCE, &bare(&flags));
            let new = [&flags[..], &["-DEXPERIMENT"]].concat();
            let new = shop.gcc(&format!("new{ending}"), SOURCE, &bare(&new));
            let footprint = compare(&old, &new, &asked("unlock")).unwrap();
            assert!(footprint.notes.is_empty(), "{:?}", footprint.notes);
            let unlock = inlined(&footprint, "unlock");
            assert_eq!(unlock.call_sites, pair(4, 0), "{flags:?}");
            assert_eq!(unlock.bytes, pair(160, 0), "{flags:?}");
            let leave = inlined(&footprint, "leave");
            assert_eq!(leave.call_sites, pair(1, 1), "{flags:?}");
            assert_eq!(leave.bytes.baseline, 48, "{flags:?}");
            // Out of line, it is a symbol instead.
            assert_eq!(symbol(&footprint, "unlock").bytes.baseline, 0);
            assert!(symbol(&footprint, "unlock").bytes.experiment >= 40);

            let sites = footprint.inlined.unwrap().call_sites.unwrap().sites;
            let sites: Vec<_> = sites
                .iter()
                .map(|s| {
                    (
                        s.caller.as_str(),
                        s.through.as_deref(),
                        s.file.as_str(),
                        s.line,
                        s.copies,
                    )
                })
                .collect();
            let once = pair(1, 0);
            assert_eq!(
                sites,
                [
                    ("reader", None, "old.c", 10, once),
                    ("writer", None, "old.c", 13, pair(2, 0)),
                    ("writer", Some("leave"), "old.c", 9, once),
                ],
                "{flags:?}"
            );
        }
    }
}

/// With link-time optimisation the copy's function is in another unit, to
/// which only `DW_FORM_ref_addr` leads.
#[test]
fn copies_across_units() {
    let shop = Workshop::new();
    let library = r#"
        void unlock(void) { __asm__ volatile(".skip 40, 0x90"); }
    "#;
    let program = r#"
        void unlock(void);
        void _start(void) { unlock(); __asm__ volatile(".skip 9, 0x90"); unlock(); }
    "#;
    let lto = ["-O2", "-g", "-flto", "-c"];
    shop.gcc("library.o", library, &lto);
    shop.gcc("program.o", program, &lto);
    shop.gcc("apart.o", library, &["-O2", "-g"]);
    shop.gcc("plain.o", program, &["-O2", "-g"]);
    let link = ["-O2", "-g", "-nostdlib", "-static", "-fno-pie", "-no-pie"];
    shop.run(
        "gcc",
        &[&link[..], &["-flto", "library.o", "program.o", "-o", "new"]].concat(),
    );
    shop.run(
        "gcc",
        &[&link[..], &["apart.o", "plain.o", "-o", "old"]].concat(),
    );
    let footprint = compare(&shop.path("old"), &shop.path("new"), &asked("unlock")).unwrap();
    let unlock = inlined(&footprint, "unlock");
    assert_eq!(unlock.call_sites, pair(0, 2));
    assert_eq!(unlock.bytes, pair(0, 80));
    let sites = &footprint
        .inlined
        .as_ref()
        .unwrap()
        .call_sites
        .as_ref()
        .unwrap()
        .sites;
    assert!(
        sites
            .iter()
            .all(|s| s.caller == "_start" && s.file == "program.c"),
        "{sites:?}"
    );
}

/// Returns what the linker threw away keeps its debug information, at address 0.
#[test]
fn dropped_functions_have_no_copies() {
    let shop = Workshop::new();
    let flags = ["-g", "-ffunction-sections"];
    let whole = shop.gcc("whole", SOURCE, &bare(&flags));
    let source = SOURCE.replace("reader(); writer();", "writer();");
    let flags = [&flags[..], &["-Wl,--gc-sections"]].concat();
    let dropped = shop.gcc("dropped", &source, &bare(&flags));
    let footprint = compare(&whole, &dropped, &Options::default()).unwrap();
    assert_eq!(symbol(&footprint, "reader").bytes.experiment, 0);
    let unlock = inlined(&footprint, "unlock");
    assert_eq!(unlock.call_sites, pair(4, 3));
    assert_eq!(unlock.bytes, pair(160, 120));
}

/// Several units, each with a copy of a header's function: one name.
#[test]
fn units_and_archives_are_summed() {
    let shop = Workshop::new();
    let rest = SOURCE
        .replace("reader", "reader2")
        .replace("writer", "writer2")
        .replace("_start", "begin");
    shop.gcc("one.o", SOURCE, &bare(&["-g"]));
    shop.gcc("two.o", &rest, &bare(&["-g"]));
    shop.run("ar", &["rcs", "both.a", "one.o", "two.o"]);
    shop.run(
        "gcc",
        &["-nostdlib", "-static", "one.o", "two.o", "-o", "both"],
    );
    for both in ["both.a", "both"] {
        let footprint =
            compare(&shop.path("one.o"), &shop.path(both), &Options::default()).unwrap();
        let unlock = inlined(&footprint, "unlock");
        assert_eq!(unlock.call_sites, pair(4, 8), "{both}");
        assert_eq!(unlock.bytes, pair(160, 320), "{both}");
    }
}

/// A function inlined into a copy of itself: the bytes of the inner copies
/// are within those of the outer one, and cannot exceed the program.
#[test]
fn a_copy_within_a_copy_of_itself_counts_its_bytes_once() {
    let shop = Workshop::new();
    let source = r#"
        static inline void burn(int n)
        {
            __asm__ volatile(".skip 40, 0x90" ::: "memory");
            if (n > 0) { burn(n - 1); __asm__ volatile("" ::: "memory"); }
        }
        void _start(int n) { burn(n); }
    "#;
    let program = shop.gcc("program", source, &["-O2", "-g", "-nostdlib", "-static"]);
    let footprint = compare(&program, &program, &Options::default()).unwrap();
    let burn = inlined(&footprint, "burn");
    assert!(
        burn.call_sites.baseline >= 3,
        "gcc inlines this no longer: {burn:?}"
    );
    assert!(burn.bytes.baseline >= 120);
    assert!(burn.bytes.baseline <= footprint.text.baseline, "{burn:?}");
}

#[test]
fn no_debug_information_is_said_and_not_shown_as_a_difference() {
    let shop = Workshop::new();
    let with = shop.gcc("with", SOURCE, &bare(&["-g"]));
    let without = shop.gcc("without", SOURCE, &bare(&[]));
    let split = shop.gcc("split", SOURCE, &bare(&["-g", "-gsplit-dwarf"]));
    for (other, word) in [(&without, "build it with -g"), (&split, ".dwo files")] {
        let footprint = compare(&with, other, &Options::default()).unwrap();
        assert!(footprint.inlined.is_none());
        assert_eq!(footprint.notes.len(), 1);
        assert!(footprint.notes[0].contains(word), "{:?}", footprint.notes);
    }
    let footprint = compare(&with, &with, &asked("no_such_function")).unwrap();
    assert!(
        footprint.notes[0].contains("no_such_function"),
        "{:?}",
        footprint.notes
    );
}

/// Rust: two builds with other hashes match, and copies have their path.
#[test]
fn rust_builds_match_although_their_hashes_differ() {
    let shop = Workshop::new();
    let source = r#"
        pub mod lock {
            #[inline(always)]
            pub fn unlock(word: &std::sync::atomic::AtomicU32) {
                word.store(0, std::sync::atomic::Ordering::Release);
            }
            #[inline(never)]
            pub fn leave(word: &std::sync::atomic::AtomicU32) { unlock(std::hint::black_box(word)); }
        }
        fn main() {
            let word = std::sync::atomic::AtomicU32::new(1);
            let word = std::hint::black_box(&word);
            lock::unlock(word);
            lock::leave(word);
        }
    "#;
    shop.write("program.rs", source);
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    for output in ["old", "new"] {
        let metadata = format!("metadata={output}");
        let flags = ["program.rs", "-g", "-O", "-C", &metadata, "-o", output];
        shop.run(&rustc, &flags);
    }
    let asked = asked("program::lock::unlock");
    let footprint = compare(&shop.path("old"), &shop.path("new"), &asked).unwrap();
    let leave = symbol(&footprint, "program::lock::leave");
    assert_eq!(leave.bytes.delta(), 0);
    assert!(leave.bytes.baseline > 0);
    let unlock = inlined(&footprint, "program::lock::unlock");
    assert_eq!(unlock.call_sites, pair(2, 2));
    let sites = footprint.inlined.unwrap().call_sites.unwrap().sites;
    let sites: Vec<_> = sites
        .iter()
        .map(|s| (s.caller.as_str(), s.file.as_str()))
        .collect();
    assert_eq!(
        sites,
        [
            ("program::lock::leave", "program.rs"),
            ("program::main", "program.rs")
        ]
    );
}

/// C++: two units each have the whole of an inline function, of which the
/// linker keeps one and points the debug information of both at it.
#[test]
fn merged_functions_have_their_copies_once() {
    let shop = Workshop::new();
    let header = r#"
        inline __attribute__((always_inline)) void unlock() { __asm__ volatile(".skip 40, 0x90"); }
        inline __attribute__((noinline)) void leave() { unlock(); unlock(); }
    "#;
    for (name, function) in [
        ("one", "void one() { leave(); }"),
        ("two", "int main() { leave(); }"),
    ] {
        shop.write(&format!("{name}.cc"), format!("{header}{function}"));
        let object = format!("{name}.o");
        let flags = [
            "-x",
            "c++",
            "-O2",
            "-g",
            "-c",
            &format!("{name}.cc"),
            "-o",
            &object,
        ];
        shop.run("clang", &flags);
    }
    shop.run(
        "gcc",
        &[
            "-nostdlib",
            "-static",
            "-Wl,-e,main",
            "one.o",
            "two.o",
            "-o",
            "both",
        ],
    );
    let footprint = compare(&shop.path("two.o"), &shop.path("both"), &Options::default()).unwrap();
    assert_eq!(symbol(&footprint, "leave()").count, pair(1, 1));
    let unlock = inlined(&footprint, "unlock()");
    assert_eq!(unlock.call_sites, pair(2, 2));
    assert_eq!(unlock.bytes, pair(80, 80));
}
