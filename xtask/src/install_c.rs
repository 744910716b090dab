//! The C library below a prefix, with its pkg-config file.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds and installs.
pub(crate) fn install(prefix: &Path) -> ExitCode {
    if !crate::process::cargo(&["build", "--quiet", "--release", "--package", "locklab-capi"]) {
        return ExitCode::FAILURE;
    }
    match copy(prefix) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "xtask: cannot install below {}: {error}; give a --prefix that you may write",
                prefix.display()
            );
            ExitCode::FAILURE
        }
    }
}

/// Names the library as `crates/locks/capi/build.rs` does: by what is compatible.
fn soname() -> String {
    let mut parts = VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    match major {
        "0" => format!("liblocklab_c.so.0.{minor}"),
        major => format!("liblocklab_c.so.{major}"),
    }
}

/// Makes a symbolic link, replacing an existing file.
fn link(to: &str, at: &Path) -> io::Result<()> {
    match fs::remove_file(at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::os::unix::fs::symlink(to, at),
    }
}

fn copy(prefix: &Path) -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the project");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    fs::create_dir_all(prefix.join("lib/pkgconfig"))?;
    fs::create_dir_all(prefix.join("include"))?;
    // pkg-config wants an absolute prefix.
    let prefix = prefix.canonicalize()?;
    let lib = prefix.join("lib");
    for (library, name) in [
        ("liblocklab_c.a", "liblocklab_c.a".to_owned()),
        ("liblocklab_c.so", format!("liblocklab_c.so.{VERSION}")),
    ] {
        fs::copy(target.join("release").join(library), lib.join(name))?;
    }
    // What the dynamic linker looks for, and what the compiler does.
    link(&format!("liblocklab_c.so.{VERSION}"), &lib.join(soname()))?;
    link(&soname(), &lib.join("liblocklab_c.so"))?;
    for header in ["locklab.h", "locklab_inline.h", "locklab.hpp"] {
        let from = root.join("crates/locks/capi/include").join(header);
        fs::copy(from, prefix.join("include").join(header))?;
    }
    let pc = format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: locklab\nDescription: Spinlocks and queue locks from the papers\n\
         Version: {VERSION}\nLibs: -L${{libdir}} -llocklab_c\n\
         Libs.private: -lpthread -ldl -lm\nCflags: -I${{includedir}}\n",
        prefix.display()
    );
    fs::write(prefix.join("lib/pkgconfig/locklab.pc"), pc)
}
