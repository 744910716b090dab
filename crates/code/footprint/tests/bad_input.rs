//! Bad input: one sentence that names the file, never a panic.

use std::path::Path;

use crate::common::{Workshop, bare};
use locklab_footprint::{Options, compare, render};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const SOURCE: &str = r#"
static inline __attribute__((always_inline)) void f(int n) { __asm__ volatile("nop" :: "r"(n)); }
int table[4] = { 1 };
void g(int n) { f(n); f(n + 1); }
void _start(void) { g(1); g(2); }
"#;

fn error(old: &Path, new: &Path) -> String {
    let options = Options::default();
    compare(old, new, &options).unwrap_err().to_string()
}

#[test]
fn each_error_is_a_sentence_that_names_the_file() {
    let shop = Workshop::new();
    let good = shop.gcc("good", SOURCE, &bare(&[]));
    let mut kernel = vec![0; 0x300];
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    std::fs::create_dir(shop.path("folder")).unwrap();
    shop.write("texts/readme", "no ELF file");
    shop.write("member", "no ELF file");
    shop.run("ar", &["rcs", "texts.a", "member"]);
    shop.write(
        "dangling.a",
        b"!<thin>\nlost.o/         0           0     0     644     9         `\n",
    );
    let cases = [
        (shop.path("missing"), "does not exist"),
        (shop.write("empty", ""), "is empty"),
        (shop.write("text", "hello"), "not an ELF file"),
        (shop.write("script", "#!/bin/sh\n"), "is a script"),
        (shop.write("bzImage", &kernel), "give the vmlinux"),
        (shop.write("a.gz", b"\x1f\x8b\x08"), "decompress it first"),
        (
            shop.write("short", b"\x7fELF\x02\x01"),
            "truncated or damaged",
        ),
        (
            shop.write("bad.a", b"!<arch>\nnonsense"),
            "truncated or damaged",
        ),
        (shop.path("texts.a"), "without an ELF member"),
        (shop.path("lost.o"), "does not exist"),
        ("/dev/null".into(), "neither a file nor a folder"),
    ];
    for (path, says) in &cases {
        let given = match path.ends_with("lost.o") {
            true => shop.path("dangling.a"),
            false => path.clone(),
        };
        for message in [error(&good, &given), error(&given, &good)] {
            assert!(message.contains(says), "{message}");
            assert!(message.contains(&*path.to_string_lossy()), "{message}");
            assert!(
                message.ends_with('.') && !message.contains('\n'),
                "{message}"
            );
        }
    }
    let (folder, texts) = (shop.path("folder"), shop.path("texts"));
    for empty in [&folder, &texts] {
        assert!(error(empty, empty).contains("holds no ELF file"));
    }
    assert!(error(&good, &texts).contains("holds no ELF file"));
    shop.gcc("texts/one.o", SOURCE, &bare(&[]));
    assert!(error(&good, &texts).contains("give two files or two folders"));
    // In a folder, too: to leave it out would show as a difference.
    shop.write("texts/broken.o", b"\x7fELF\x02\x01");
    assert!(error(&texts, &texts).contains("broken.o is truncated"));
}

#[test]
fn permissions_are_told_apart() {
    use std::os::unix::fs::PermissionsExt;
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&[]));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o0)).unwrap();
    // The superuser may read it nevertheless.
    match std::fs::File::open(&file) {
        Ok(_) => assert!(compare(&file, &file, &Options::default()).is_ok()),
        Err(_) => assert!(error(&file, &file).contains("may not be read by this user")),
    }
}

#[test]
fn a_stripped_file_is_said_to_be_so() {
    let shop = Workshop::new();
    let file = shop.gcc("file", SOURCE, &bare(&["-s"]));
    let footprint = compare(&file, &file, &Options::default()).unwrap();
    assert_eq!(footprint.text.baseline, 0);
    assert!(
        footprint.notes[0].contains("no symbol table"),
        "{:?}",
        footprint.notes
    );
    // "+0.00 %" would say that symbols were compared.
    let text = render(&footprint, 10);
    assert!(
        !text.contains("0.00%") && !text.contains("0 added"),
        "{text}"
    );
    assert!(
        text.contains("not compared, because neither side has function symbols"),
        "{text}"
    );
    let whole = shop.gcc("whole", SOURCE, &bare(&[]));
    let text = render(&compare(&whole, &file, &Options::default()).unwrap(), 10);
    assert!(
        text.contains("not compared, because the experiment has no function symbols"),
        "{text}"
    );
}

#[test]
fn no_truncation_panics_or_passes_for_whole() {
    let shop = Workshop::new();
    for (name, flags) in [("program", &["-g"][..]), ("object.o", &["-g", "-gz"])] {
        let whole = shop.gcc(name, SOURCE, &bare(flags));
        let bytes = std::fs::read(&whole).unwrap();
        // The table of sections is last, so that no shorter file has it.
        for len in (0..bytes.len()).step_by(17).chain([bytes.len() - 1]) {
            let cut = shop.write("cut", &bytes[..len]);
            let message = error(&whole, &cut);
            assert!(
                message.ends_with('.') && !message.contains('\n'),
                "{len}: {message}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Whatever the bytes are: a result or a sentence.
    #[test]
    fn no_damage_panics(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        which in 0..3usize,
    ) {
        thread_local! {
            static FILES: (Workshop, Vec<Vec<u8>>) = {
                let shop = Workshop::new();
                let program = shop.gcc("program", SOURCE, &bare(&["-g"]));
                let object = shop.gcc("object.o", SOURCE, &bare(&["-g", "-gdwarf-4"]));
                shop.run("ar", &["rcs", "archive.a", "object.o"]);
                let files = [program, object, shop.path("archive.a")];
                let files = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
                (shop, files)
            };
        }
        FILES.with(|(shop, files)| {
            let mut bytes = files[which].clone();
            for (at, value) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            let damaged = shop.write("damaged", &bytes);
            let options = Options { call_sites_of: Some("f".into()), ..Options::default() };
            match compare(&shop.path("program"), &damaged, &options) {
                Ok(footprint) => { render(&footprint, 10); }
                Err(e) => prop_assert!(!e.to_string().contains('\n'), "{e}"),
            }
            Ok(())
        })?;
    }
}
