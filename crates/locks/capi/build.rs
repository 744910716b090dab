//! The name that programs ask the dynamic linker for: it changes with every
//! version that is not compatible (the minor one, before 1.0).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let part = |name| std::env::var(name).expect("set by cargo");
        let (major, minor) = (
            part("CARGO_PKG_VERSION_MAJOR"),
            part("CARGO_PKG_VERSION_MINOR"),
        );
        let compatible = if major == "0" {
            format!("0.{minor}")
        } else {
            major
        };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblocklab_c.so.{compatible}");
    }
}
