//! Links the kernel without a C library, at the addresses of `kernel.ld`.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for argument in ["-nostdlib", "-nostartfiles", "-static", "-no-pie"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    println!("cargo::rustc-link-arg-bins=-T{folder}/kernel.ld");
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=none,-z,max-page-size=4096");
    println!("cargo::rerun-if-changed=kernel.ld");
}
