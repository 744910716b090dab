//! Tests the hot text of a real program, from counts by address and by symbol.

use std::path::Path;
use std::process::Command;

use crate::common::{Workshop, bare, run};
use locklab_footprint::{HotCounts, HotText, Options, Pair, Place, compare};

/// Functions of a line of 64 bytes each, of which two loop. `call` and `ret`
/// of x86-64 are 5 bytes and 1, a `nop` of this form is 1.
const SOURCE: &str = r#"
#define FUNCTION(name, body) \
    __asm__(".text\n.balign 64\n.globl " name "\n.type " name ",%function\n" \
            name ": " body "\n.size " name ",.-" name "\n");
FUNCTION("_start", "nop; nop; ret")
FUNCTION("hot", ".byte 0x66, 0x0f, 0x1f, 0x44, 0, 0\n nop; ret; .skip 92, 0x90")
FUNCTION("cold", ".skip 200, 0x90")
"#;

fn hot(file: &Path, counts: Vec<(Place, u64)>, share: f64) -> (HotText, u64) {
    let options = Options {
        hot: Some(HotCounts {
            counts: Pair {
                baseline: counts.clone(),
                experiment: counts,
            },
            share,
        }),
        ..Options::default()
    };
    let hot = compare(file, file, &options).unwrap().hot.unwrap();
    assert_eq!(hot.text.baseline, hot.text.experiment);
    (hot.text.baseline, hot.unplaced.baseline)
}

fn address(file: &Path, symbol: &str) -> u64 {
    let listing = run(Command::new("nm").arg(file));
    let line = listing.lines().find(|l| l.ends_with(&format!(" {symbol}")));
    u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn instructions_have_their_own_length() {
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&[]));
    let (start, at) = (address(&file, "_start"), address(&file, "hot"));
    let counts = vec![
        (Place::Address(at), 1000),
        (Place::Address(at + 6), 1000),
        (Place::Address(at + 7), 1000),
        (Place::Address(start), 10),
        (Place::Address(1), 77),
        (Place::Address(u64::MAX), 3),
    ];
    let (text, outside) = hot(&file, counts, 0.99);
    // Six bytes, one and one; not the ten counts of `_start`.
    assert_eq!((text.bytes, text.lines), (8, 1));
    assert_eq!((text.executed_bytes, text.executed_lines), (9, 2));
    assert_eq!((text.executed, outside), (3010, 80));
}

#[test]
fn symbols_have_their_size() {
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&[]));
    let counts = vec![
        (Place::Symbol("hot".into()), 5000),
        (Place::Symbol("cold".into()), 1),
        (Place::Symbol("elsewhere".into()), 9),
    ];
    let (text, outside) = hot(&file, counts, 0.99);
    assert_eq!((text.bytes, text.lines), (100, 2));
    assert_eq!((text.executed_bytes, text.executed_lines), (300, 6));
    assert_eq!((text.executed, outside), (5001, 9));
}

#[test]
fn counts_need_a_linked_file() {
    let shop = Workshop::new();
    let object = shop.gcc("object.o", SOURCE, &bare(&[]));
    let options = Options {
        hot: Some(HotCounts::default()),
        ..Options::default()
    };
    for path in [object.as_path(), object.parent().unwrap()] {
        let error = compare(path, path, &options).unwrap_err();
        assert!(
            error.to_string().contains("not a linked executable"),
            "{error}"
        );
    }
}
