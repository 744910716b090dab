//! C and C++ programs against the library: what a user of the header does.

mod reference;

use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

/// Builds the static library as a user would, in a folder of its own, and
/// gives its path.
fn library(folder: &str, arguments: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let status = Command::new(env!("CARGO"))
        .args([
            "rustc",
            "--quiet",
            "--release",
            "--lib",
            "--crate-type",
            "staticlib",
        ])
        .arg("--manifest-path")
        .arg(Path::new(MANIFEST).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .args(arguments)
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the library builds");
    target.join("release/liblocklab_c.a")
}

/// Returns the C compilers that are installed; a test that lacks one counts as
/// skipped.
fn compilers(names: &[&'static str]) -> Vec<&'static str> {
    let (found, missing): (Vec<_>, Vec<_>) = names
        .iter()
        .partition(|name| Command::new(name).arg("--version").output().is_ok());
    for name in missing {
        println!("skipped: {name} is missing");
    }
    found
}

/// Compiles one file and runs it.
fn compile_and_run(compiler: &str, flags: &[&str], source: &str, library: &Path, after: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-O2"])
        .args(flags)
        .arg("-I")
        .arg(Path::new(MANIFEST).join("include"))
        .arg(Path::new(MANIFEST).join("tests/c").join(source))
        // The source may be C++ by flag; the library is not.
        .args(["-x", "none"])
        .arg(library)
        .args(after)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler starts");
    assert!(
        output.status.success(),
        "{compiler} {flags:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = Command::new(&program).output().expect("the program starts");
    assert!(
        output.status.success(),
        "{compiler} {flags:?}: {} {}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn c_and_cpp_programs_lock() {
    let library = library("hosted", &[]);
    let libs = ["-lpthread", "-ldl", "-lm"];
    for compiler in compilers(&["gcc", "clang"]) {
        compile_and_run(
            compiler,
            &["-std=c11", "-D_GNU_SOURCE"],
            "locks.c",
            &library,
            &libs,
        );
        // The machine code in the header against that in the library.
        compile_and_run(compiler, &["-std=c11"], "inline.c", &library, &libs);
    }
    for compiler in compilers(&["gcc", "clang"]) {
        // The header takes stdbool.h, whose `_Bool` clang calls an extension
        // of C89; gcc does not.
        let mut flags = vec!["-std=gnu89", "-pedantic"];
        if compiler == "clang" {
            flags.push("-Wno-c99-extensions");
        }
        compile_and_run(compiler, &flags, "modes.c", &library, &libs);
    }
    for compiler in compilers(&["g++", "clang++"]) {
        let flags = ["-x", "c++", "-std=c++17"];
        compile_and_run(compiler, &flags, "locks.c", &library, &libs);
        let flags = ["-x", "c++", "-std=c++14", "-pedantic"];
        compile_and_run(compiler, &flags, "wrapper.cpp", &library, &libs);
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
/// One macro turns every unlock of a file into a call or a copy.
#[test]
fn a_macro_inlines_unlock_or_not() {
    let Some(compiler) = compilers(&["gcc"]).pop() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("unlock.c");
    std::fs::write(
        &source,
        "#include \"locklab_inline.h\"\n\
         void f(locklab_ticket_t *t, locklab_qspinlock_t *q, locklab_mcs_t *m, \
         locklab_mcs_node_t *n) { locklab_ticket_unlock(t); locklab_qspinlock_unlock(q); \
         locklab_mcs_unlock(m, n); }\n",
    )
    .unwrap();
    // What the object still needs of the library, by name.
    let calls = |flags: &[&str]| {
        let object = folder.path().join("unlock.o");
        let status = Command::new(compiler)
            .args(["-O2", "-c", "-I"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status()
            .expect("the compiler starts");
        assert!(status.success());
        let bytes = std::fs::read(&object).unwrap();
        let needs = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
        [
            needs(b"\0locklab_ticket_unlock\0"),
            needs(b"\0locklab_qspinlock_unlock\0"),
            needs(b"\0locklab_mcs_unlock\0"),
        ]
    };
    assert_eq!(calls(&[]), [true; 3]);
    assert_eq!(calls(&["-DLOCKLAB_UNLOCK_INLINE=0"]), [true; 3]);
    let native = cfg!(not(target_arch = "x86_64"));
    assert_eq!(
        calls(&["-DLOCKLAB_UNLOCK_INLINE=1"]),
        [native, native, false]
    );
}

#[test]
fn a_freestanding_program_needs_no_libc() {
    let library = library(
        "freestanding",
        &[
            "--no-default-features",
            "--",
            "-C",
            "panic=abort",
            "-C",
            "relocation-model=static",
        ],
    );
    let flags = [
        "-std=c11",
        "-ffreestanding",
        "-nostdlib",
        "-static",
        "-fno-stack-protector",
    ];
    for compiler in compilers(&["gcc", "clang"]) {
        compile_and_run(
            compiler,
            &flags,
            "freestanding.c",
            &library,
            &["-Wl,--gc-sections"],
        );
    }
}

#[test]
fn pkg_config_finds_an_installed_library() {
    if compilers(&["gcc"]).is_empty() || Command::new("pkg-config").output().is_err() {
        println!("skipped: needs gcc and pkg-config; install the packages of these names");
        return;
    }
    let prefix = tempfile::tempdir().expect("a temporary folder");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    let status = Command::new(env!("CARGO"))
        .current_dir(MANIFEST)
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "install-c",
            "--prefix",
        ])
        .arg(prefix.path())
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("cargo starts");
    assert!(status.success());
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "locklab"])
        .env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config starts");
    assert!(
        flags.status.success(),
        "{}",
        String::from_utf8_lossy(&flags.stderr)
    );
    let program = prefix.path().join("program");
    let status = Command::new("gcc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-O2"])
        .arg(Path::new(MANIFEST).join("tests/c/locks.c"))
        .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
        .args(["-lpthread", "-o"])
        .arg(&program)
        .status()
        .expect("gcc starts");
    assert!(status.success());
    // Needs the library under its soname, which states what is compatible.
    let parts = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    ];
    let compatible = parts[..if parts[0] == "0" { 2 } else { 1 }].join(".");
    let needed = format!("liblocklab_c.so.{compatible}\0");
    let bytes = std::fs::read(&program).expect("the program");
    assert!(
        bytes
            .windows(needed.len())
            .any(|part| part == needed.as_bytes()),
        "the program needs {needed}"
    );
    let status = Command::new(&program)
        .env("LD_LIBRARY_PATH", prefix.path().join("lib"))
        .status()
        .expect("the program starts");
    assert!(status.success());
}

/// `include/locklab.h` is what cbindgen makes of the sources. To renew it:
/// `UPDATE_GOLDEN=1 cargo test -p locklab-capi`.
#[test]
fn the_header_is_up_to_date() {
    let config = cbindgen::Config::from_file(Path::new(MANIFEST).join("cbindgen.toml"))
        .expect("cbindgen.toml is valid");
    let mut header = Vec::new();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in ["typed.rs", "by_name.rs"] {
        builder = builder.with_src(Path::new(MANIFEST).join("src").join(source));
    }
    builder
        .generate()
        .expect("cbindgen understands the sources")
        .write(&mut header);
    // Items that cbindgen cannot know, and items that it writes for C99 and for Rust.
    let header = String::from_utf8(header)
        .expect("a header in UTF-8")
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", env!("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", env!("CARGO_PKG_VERSION_PATCH"))
        .replace("// __cplusplus", "/* __cplusplus */")
        .replace("// extern \"C\"", "/* extern \"C\" */")
        .replace(" # Safety\n", " Requires:\n")
        .into_bytes();
    let path = Path::new(MANIFEST).join("include/locklab.h");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &header).expect("the header can be written");
    }
    let committed = std::fs::read(&path).unwrap_or_default();
    assert!(
        committed == header,
        "include/locklab.h is out of date: run UPDATE_GOLDEN=1 cargo test -p locklab-capi"
    );
}

/// `docs/c-reference.md` is generated from the header. To renew it: as above.
#[test]
fn the_reference_is_up_to_date() {
    let read = |path: &str| std::fs::read_to_string(Path::new(MANIFEST).join(path));
    let chapter = reference::chapter(&read("include/locklab.h").expect("a header"));
    const PAGE: &str = "../../../docs/c-reference.md";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(Path::new(MANIFEST).join(PAGE), &chapter).expect("the page can be written");
    }
    assert!(
        chapter == read(PAGE).unwrap_or_default(),
        "docs/c-reference.md is out of date: run UPDATE_GOLDEN=1 cargo test -p locklab-capi"
    );
}
