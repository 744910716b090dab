//! The configuration of a kernel, and whether Kconfig kept it.
//!
//! It must never build anything other than requested: an option that
//! Kconfig drops is an error with its name.

use crate::build::{Place, build_error};
use crate::cache::{Cache, Tool};
use crate::recipe::Changes;
use locklab_host::error::Error;
use std::path::Path;
use std::time::Duration;

const WORKLOADS: &str = include_str!("../guest/workloads.config");

/// The base of a configuration, and the requested options.
pub(crate) struct Config {
    /// The make target it starts from.
    pub(crate) base: &'static str,
    /// Options, one per line.
    pub(crate) text: String,
}

/// The configuration of a recipe; a file's path is relative to `folder`.
///
/// # Errors
/// [`Error::Usage`] if the configuration's file cannot be read.
pub(crate) fn config(recipe: &Changes, folder: &Path) -> Result<Config, Error> {
    let (base, mut text) = match recipe.config.as_deref() {
        None | Some("workloads") => ("allnoconfig", WORKLOADS.to_owned()),
        // The reports' own, with the options of a guest that can be measured.
        Some("defconfig") => (
            "defconfig",
            WORKLOADS
                .lines()
                .filter(|line| line.starts_with("CONFIG_"))
                .map(|line| format!("{line}\n"))
                .collect(),
        ),
        Some(path) => {
            let path = folder.join(path);
            let text = std::fs::read_to_string(&path).map_err(|e| {
                Error::Usage(format!(
                    "cannot read the configuration {}: {e}; write workloads, defconfig, or a \
                     file of options",
                    path.display()
                ))
            })?;
            ("allnoconfig", text)
        }
    };
    for option in &recipe.options {
        text.push_str(option);
        text.push('\n');
    }
    Ok(Config { base, text })
}

/// Writes `.config` into the objects' folder.
///
/// # Errors
/// If a file cannot be written, make fails, or Kconfig drops an option (the
/// message names it).
pub(crate) fn configure(
    cache: &Cache<'_>,
    make: &Tool,
    place: &Place,
    config: &Config,
    variables: &[String],
) -> Result<(), Error> {
    let folder = &place.objects;
    let fragment = folder.join("locklab.config");
    std::fs::write(&fragment, &config.text).map_err(|e| cache.cannot_write(&fragment, &e))?;
    let run = |target: &str| {
        let mut make = make.clone();
        // Read by the make targets that start from nothing.
        if target == "allnoconfig" {
            make.environment
                .push(("KCONFIG_ALLCONFIG".into(), fragment.clone().into()));
        }
        let mut arguments = place.arguments(variables);
        arguments.push(target.into());
        let log = place.folder.join("config");
        let ended = cache.run(&make, &arguments, folder, &log, Duration::from_secs(900))?;
        match ended.failure() {
            None => Ok(()),
            Some(failure) => Err(build_error(cache, &log, "configuration", &failure)),
        }
    };
    run(config.base)?;
    let path = folder.join(".config");
    if config.base != "allnoconfig" {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, before + &config.text).map_err(|e| cache.cannot_write(&path, &e))?;
        run("olddefconfig")?;
    }
    let got = std::fs::read_to_string(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    let dropped = dropped(&config.text, &got);
    if dropped.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "the configuration drops {}: what it depends on is off, or this kernel does not have it; \
         turn that on in options, or leave it out (see {})",
        dropped.join(", "),
        path.display()
    )))
}

/// Options that were requested and that Kconfig did not keep. The last value
/// of an option counts.
fn dropped(asked: &str, got: &str) -> Vec<String> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for line in asked.lines() {
        let Some((name, value)) = line
            .split_once('=')
            .filter(|(n, _)| n.starts_with("CONFIG_"))
        else {
            continue;
        };
        wanted.retain(|(other, _)| *other != name);
        wanted.push((name, value));
    }
    let has = |name: &str| {
        got.lines()
            .find_map(|line| line.split_once('=').filter(|(n, _)| *n == name))
            .map_or("n", |(_, value)| value)
    };
    wanted
        .into_iter()
        .filter(|(name, value)| has(name) != *value)
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kconfig_drops_is_named() {
        let asked = "# x\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=4\nCONFIG_D=n\nCONFIG_B=n\nCONFIG_E=y\n";
        let got = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=8\n";
        assert_eq!(dropped(asked, got), ["CONFIG_C=4", "CONFIG_E=y"]);
    }

    #[test]
    fn the_ready_configuration_has_what_the_question_needs() {
        for option in [
            "PREEMPT=y",
            "PARAVIRT_SPINLOCKS=y",
            "PVH=y",
            "XFS_FS=y",
            "VIRTIO_CONSOLE=y",
        ] {
            assert!(
                WORKLOADS.contains(&format!("CONFIG_{option}\n")),
                "{option}"
            );
        }
    }
}
