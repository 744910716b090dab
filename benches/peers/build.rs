//! Compiles the loops around Concurrency Kit, if its headers are installed.

fn main() {
    println!("cargo:rerun-if-changed=src/ck.c");
    println!("cargo:rustc-check-cfg=cfg(ck)");
    let header = cc::Build::new()
        .cargo_metadata(false)
        .cargo_warnings(false)
        .file("src/ck.c")
        .define("ONLY_INCLUDE", None)
        .try_compile("locklab_ck_probe");
    // This is no error: the benchmark says so, and goes on without.
    if header.is_err() {
        return;
    }
    cc::Build::new()
        .file("src/ck.c")
        // As the Rust side is built in a benchmark, whatever the profile.
        .opt_level(3)
        .compile("locklab_ck");
    println!("cargo:rustc-cfg=ck");
}
