//! Compiles the one part that only C can say: see `c/cancel.c`.

fn main() {
    println!("cargo::rerun-if-changed=c/cancel.c");
    cc::Build::new()
        .file("c/cancel.c")
        .flag("-fexceptions")
        .opt_level(2)
        .compile("locklab_cancel");
}
