//! Compiles the one part that only C can say: see `c/cancel.c`.

fn main() {
    println!("cargo::rerun-if-changed=c/cancel.c");
    cc::Build::new()
        .file("c/cancel.c")
        .flag("-fexceptions")
        .opt_level(2)
        // Asynchronous cancellation may unwind from any instruction; without
        // a frame pointer the clean-up then reads its function from a lost
        // stack slot. With debug information cc sets it by itself.
        .force_frame_pointer(true)
        .compile("locklab_cancel");
}
