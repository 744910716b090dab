//! The identity of this build of locklab, and the name of this machine. Shards of
//! two builds must never be merged.

use locklab_host::error::Error;
use locklab_lab::VERSION;
use nix::sys::utsname::uname;
use object::Object as _;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::OnceLock;

/// Returns the version and build of this program. Two builds of one version may differ in the
/// model.
#[must_use]
pub(crate) fn identity() -> String {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    IDENTITY
        .get_or_init(|| {
            let program = std::fs::read("/proc/self/exe").unwrap_or_default();
            let build = linkers_id(&program).unwrap_or_else(|| Sha256::digest(&program).to_vec());
            let short: String = build.iter().take(6).map(|b| format!("{b:02x}")).collect();
            format!("{VERSION} (build {short})")
        })
        .clone()
}

/// Returns the build id that the linker wrote. To read it is a hundred times as fast as to
/// hash the program, which each task of a cluster would have to do.
fn linkers_id(program: &[u8]) -> Option<Vec<u8>> {
    let file = object::File::parse(program).ok()?;
    Some(file.build_id().ok()??.to_vec())
}

/// Checks that the build `began`, which began the sweep of a folder, is this one.
///
/// # Errors
/// It is another build, whose figures may differ.
pub(crate) fn check(folder: &Path, began: &str) -> Result<(), Error> {
    let here = identity();
    if began == here {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "the sweep in {} was begun by {began} and this is {here} (on {}): figures of two versions \
         are not one sweep; use that one, or begin another with --folder",
        folder.display(),
        node()
    )))
}

/// Returns the name of this machine.
#[must_use]
pub(crate) fn node() -> String {
    // Commands of Slurm take Slurm's own name of the node.
    if let Ok(name) = std::env::var("SLURMD_NODENAME") {
        return name;
    }
    uname().map_or_else(
        |_| "this machine".into(),
        |name| name.nodename().to_string_lossy().into_owned(),
    )
}
