//! Licences, sources and advisories of all dependencies, as `deny.toml` wants
//! them.
//!
//! cargo-deny does the work. Must say what was not checked: the advisories are
//! a repository of their own, which takes a network.

use crate::package;
use crate::process::{SKIPPED, done, run};
use std::process::{Command, ExitCode};

/// The release that reads `deny.toml`.
const VERSION: &str = "^0.20";

/// Checks them. [`SKIPPED`] where there is no cargo-deny and none can be
/// built.
pub(crate) fn check() -> ExitCode {
    // Git fetches the advisories; what is left out would do it without.
    let Some(cargo_deny) = package::tool("cargo-deny", VERSION, &["--no-default-features"]) else {
        return ExitCode::from(SKIPPED);
    };
    let deny = |arguments: &[&str]| run(Command::new(&cargo_deny).args(arguments));
    let mut well = deny(&[
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]);
    if deny(&["--log-level", "off", "fetch", "db"]) {
        well &= deny(&["check", "--disable-fetch", "advisories"]);
    } else {
        eprintln!(
            "xtask: the advisories were not checked, because their database \
             (github.com/RustSec/advisory-db) cannot be fetched"
        );
    }
    done(well)
}
