//! The report and the JSON: their shape is what people and programs rely on.

use crate::common::{Workshop, bare};
use locklab_footprint::{
    Change, Class, Footprint, HotCounts, Options, Pair, Place, compare, render,
};

/// A lock's release, inlined and not; each size is chosen in assembly, except
/// for calls and returns, whose length x86-64 fixes.
const SOURCE: &str = r#"
#define BYTES(n) __asm__ volatile(".skip " #n ", 0x90")
#ifdef EXPERIMENT
#define INLINE static __attribute__((noinline))
#else
#define INLINE static inline __attribute__((always_inline))
#endif
/* On a line of their own, so that only sizes decide how many are touched. */
#define ALIGNED __attribute__((aligned(64)))
ALIGNED INLINE void unlock(void) { BYTES(40); }
ALIGNED void reader(void) { BYTES(20); unlock(); BYTES(4); }
ALIGNED void writer_with_a_name_that_does_not_fit_into_the_column(void)
{
    unlock(); BYTES(30); unlock(); BYTES(4);
}
ALIGNED void same(void) { BYTES(12); }
#ifdef EXPERIMENT
void fresh(void) { BYTES(24); }
const char table[48] = { 1 };
#else
void gone(void) { BYTES(16); }
const char table[32] = { 1 };
#endif
int counter = 1;
char zeros[256];
void _start(void) { reader(); writer_with_a_name_that_does_not_fit_into_the_column(); BYTES(1); }
"#;

fn footprint(shop: &Workshop) -> Footprint {
    let flags = ["-g", "-mpreferred-stack-boundary=3"];
    let old = shop.gcc("old", SOURCE, &bare(&flags));
    let flags = [&flags[..], &["-DEXPERIMENT"]].concat();
    let new = shop.gcc("new", SOURCE, &bare(&flags));
    let counts = |unlock| {
        vec![
            (Place::Symbol("reader".into()), 900),
            (Place::Symbol("unlock".into()), unlock),
            (Place::Symbol("same".into()), 5),
            (Place::Symbol("in_a_library".into()), 7),
        ]
    };
    let options = Options {
        call_sites_of: Some("unlock".into()),
        hot: Some(HotCounts {
            counts: Pair {
                baseline: counts(0),
                experiment: counts(500),
            },
            share: 0.99,
        }),
        ..Options::default()
    };
    let mut footprint = compare(&old, &new, &options).unwrap();
    footprint.inputs.baseline.path = "old/vmlinux".into();
    footprint.inputs.experiment.path = "new/vmlinux".into();
    // These sections hold the compiler's name and other things that vary.
    footprint
        .classes
        .retain(|c| !matches!(c.class, Class::Debug | Class::Other | Class::Rodata));
    footprint.notes.push(
        "A note that is longer than a line of seventy-two columns, so that it has to be wrapped once."
            .into(),
    );
    footprint
}

#[cfg(target_arch = "x86_64")]
#[test]
fn report_is_plain_text_of_72_columns() {
    let shop = Workshop::new();
    let text = render(&footprint(&shop), 3);
    for line in text.lines() {
        assert!(line.chars().count() <= 72 && line.is_ascii(), "{line}");
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/report.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap());
}

#[test]
fn json_has_the_promised_shape_and_can_be_read_back() {
    let shop = Workshop::new();
    let footprint = footprint(&shop);
    let json = serde_json::to_value(&footprint).unwrap();
    assert!(json["text"]["baseline"].as_u64().unwrap() > 0);
    let symbols = json["symbols"].as_array().unwrap();
    let of = |name: &str| symbols.iter().find(|s| s["name"] == name).unwrap();
    assert_eq!(of("gone")["experiment"], 0);
    assert_eq!(of("gone")["change"], "removed");
    assert_eq!(of("fresh")["baseline"], 0);
    for side in ["baseline", "experiment"] {
        let sum: u64 = symbols.iter().map(|s| s[side].as_u64().unwrap()).sum();
        assert_eq!(json["text"][side], sum);
    }
    assert_eq!(json["inlined"]["functions"][0]["name"], "unlock");
    assert_eq!(json["inlined"]["functions"][0]["call_sites"]["baseline"], 3);
    assert!(json["bloat_o_meter"]["before"].as_u64().unwrap() > 0);
    let back: Footprint = serde_json::from_value(json).unwrap();
    assert_eq!(back, footprint);
}

#[test]
fn a_file_against_itself_has_no_difference() {
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&["-g"]));
    let footprint = compare(&file, &file, &Options::default()).unwrap();
    assert!(footprint.symbols.iter().all(|s| s.change == Change::Same));
    assert!(footprint.sections.iter().all(|s| s.bytes.delta() == 0));
    assert_eq!(footprint.bloat_o_meter.totals.up, 0);
    assert!(render(&footprint, 5).contains("0 added, 0 removed, 0 grown, 0 shrunk"));
}

/// Clones and parts are one function; the same build without them matches.
#[test]
fn clones_match_across_builds() {
    let function = |name: &str, bytes: u32| {
        format!(
            "__asm__(\".text\\n.type \\\"{name}\\\",%function\\n\\\"{name}\\\": .skip {bytes}\\n\
             .size \\\"{name}\\\",{bytes}\\n\");\n"
        )
    };
    let old = function("_start", 1) + &function("f", 100);
    let new = function("_start", 1)
        + &function("f.constprop.0", 60)
        + &function("f.isra.0.cold", 20)
        + &function("f.part.3", 10);
    let shop = Workshop::new();
    let old = shop.gcc("old", &old, &bare(&[]));
    let new = shop.gcc("new", &new, &bare(&[]));
    let footprint = compare(&old, &new, &Options::default()).unwrap();
    let f = crate::common::symbol(&footprint, "f");
    assert_eq!((f.bytes.baseline, f.bytes.experiment), (100, 90));
    assert_eq!((f.count.baseline, f.count.experiment), (1, 3));
    assert_eq!(f.change, Change::Shrunk);
    assert_eq!(footprint.changes.added + footprint.changes.removed, 0);
}

#[test]
fn folders_are_compared_file_by_file() {
    let shop = Workshop::new();
    shop.gcc("old/sub/a.o", SOURCE, &bare(&[]));
    shop.gcc("old/b.o", "void b(void) {}", &bare(&[]));
    shop.gcc("new/sub/a.o", SOURCE, &bare(&["-DEXPERIMENT"]));
    shop.gcc("new/b.o", "void b(void) {}", &bare(&[]));
    shop.gcc("new/c.o", "void c(void) {}", &bare(&[]));
    shop.write("new/readme.txt", "not an ELF file");
    std::os::unix::fs::symlink("b.o", shop.path("new/link.o")).unwrap();
    let footprint = compare(&shop.path("old"), &shop.path("new"), &Options::default()).unwrap();
    let mut files: Vec<_> = footprint.files.iter().map(|f| f.path.as_str()).collect();
    files.sort();
    assert_eq!(files, ["b.o", "c.o", "sub/a.o"]);
    assert_eq!(footprint.inputs.baseline.images, 2);
    assert_eq!(footprint.inputs.experiment.images, 3);
    let sum: u64 = footprint.files.iter().map(|f| f.bytes.experiment).sum();
    assert_eq!(sum, footprint.text.experiment);
    assert!(render(&footprint, 9).contains("Files: functions changed in 2 of 3"));

    // A program beside the objects it was linked from counts twice.
    shop.run("gcc", &["-nostdlib", "new/sub/a.o", "-o", "new/program"]);
    let footprint = compare(&shop.path("old"), &shop.path("new"), &Options::default()).unwrap();
    let note = "a symbol of both counts twice";
    assert!(
        footprint.notes.iter().any(|n| n.contains(note)),
        "{:?}",
        footprint.notes
    );
}

#[test]
fn progress_ends_with_all_bytes() {
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&["-g"]));
    let heard = std::sync::Mutex::new(Vec::new());
    let tell = |behind, whole| heard.lock().unwrap().push((behind, whole));
    let options = Options {
        progress: Some(&tell),
        ..Options::default()
    };
    compare(&file, &file, &options).unwrap();
    let whole = 2 * std::fs::metadata(&file).unwrap().len();
    let heard = heard.into_inner().unwrap();
    assert!(heard.contains(&(whole, whole)), "{heard:?}");
    assert!(
        heard
            .iter()
            .all(|(behind, of)| behind <= of && *of == whole)
    );
}
