//! The configuration of a kernel, and whether Kconfig kept it.
//!
//! It must never build anything other than requested: an option that
//! Kconfig drops is an error with its name.

use crate::cache::{Cache, Tool};
use crate::changes::Changes;
use crate::place::{Place, build_error};
use locklab_host::error::Error;
use std::path::Path;
use std::time::Duration;

const WORKLOADS: &str = include_str!("../guest/workloads.config");

/// Holds what a test machine's own configuration gets on top: it is left and entered
/// by kexec, its kernels are signed by nobody, and type information for BPF is
/// half of a build.
const TEST_MACHINE: &str = include_str!("../guest/test_machine.config");

/// The make target of a test machine's configuration.
const FROM_A_MACHINE: &str = "localyesconfig";

/// The option that turns on tracing of events where nothing else does.
const EVENTS_ONLY: &str = "CONFIG_ENABLE_DEFAULT_TRACERS";

/// The base of a configuration, and the requested options.
pub(crate) struct Config {
    /// The make target it starts from.
    pub(crate) base: &'static str,
    /// Options, one per line.
    pub(crate) text: String,
    /// The configuration of a test machine's own kernel, and the list of its
    /// modules, where it starts from those.
    pub(crate) machine: Option<[String; 2]>,
    /// The drivers that this machine cannot be without. They are checked, and decide
    /// nothing of the build.
    pub(crate) drivers: Vec<String>,
}

impl Config {
    /// Returns what of the machine decides the build.
    pub(crate) fn machine(&self) -> String {
        self.machine
            .as_ref()
            .map_or_else(String::new, |machine| machine.concat())
    }
}

/// Returns the configuration of a recipe; a file's path is relative to `folder`.
///
/// # Errors
/// [`Error::Usage`] if the configuration's file cannot be read.
pub(crate) fn config(recipe: &Changes, folder: &Path) -> Result<Config, Error> {
    let (mut machine, mut drivers) = (None, Vec::new());
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
        Some("test-machine" | "box") => {
            return Err(Error::Usage(
                "the configuration test-machine is for a test machine; give --on ssh:root@testhost"
                    .into(),
            ));
        }
        // Written by the backend of test machines.
        Some(of_machine) if of_machine.starts_with("test-machine:") => {
            let folder = Path::new(of_machine.trim_start_matches("test-machine:"));
            machine = Some([
                read(&folder.join("config"))?,
                modules(&folder.join("lsmod"))?,
            ]);
            let names = read(&folder.join("drivers"))?;
            drivers = names.lines().map(str::to_owned).collect();
            // The workloads' options do not change its own number of CPUs.
            let workloads = WORKLOADS
                .lines()
                .filter(|line| line.starts_with("CONFIG_") && !line.starts_with("CONFIG_NR_CPUS="));
            let options = workloads.chain(
                TEST_MACHINE
                    .lines()
                    .filter(|line| line.starts_with("CONFIG_")),
            );
            (
                FROM_A_MACHINE,
                options.map(|line| format!("{line}\n")).collect(),
            )
        }
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
    Ok(Config {
        base,
        text,
        machine,
        drivers,
    })
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))
}

/// Returns the names of the modules in a list of lsmod: sizes and uses differ from day
/// to day, and must not name another build.
fn modules(path: &Path) -> Result<String, Error> {
    let text = read(path)?;
    let names = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let lines = names.iter().map(|name| format!("{name} 0 0\n"));
    Ok(format!("Module Size Used\n{}", lines.collect::<String>()))
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
    let lsmod = folder.join("locklab.lsmod");
    let run = |target: &str| {
        let mut make = make.clone();
        // Read by the make targets that start from nothing.
        if target == "allnoconfig" {
            make.environment
                .push(("KCONFIG_ALLCONFIG".into(), fragment.clone().into()));
        }
        if target == FROM_A_MACHINE {
            make.environment
                .push(("LSMOD".into(), lsmod.clone().into()));
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
    let path = folder.join(".config");
    if let Some([own, modules]) = &config.machine {
        for (path, text) in [(&path, own), (&lsmod, modules)] {
            std::fs::write(path, text).map_err(|e| cache.cannot_write(path, &e))?;
        }
    }
    run(config.base)?;
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
        // Where functions can be traced, events are, and this cannot be asked for.
        .filter(|(name, _)| *name != EVENTS_ONLY || has("CONFIG_GENERIC_TRACER") != "y")
        // An empty text is as good as an option that is not there.
        .filter(|(name, value)| has(name) != *value && (*value, has(name)) != ("\"\"", "n"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kconfig_drops_is_named() {
        let asked = "# x\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=4\nCONFIG_D=n\nCONFIG_B=n\nCONFIG_E=y\n\
                     CONFIG_F=\"\"\n";
        let got = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=8\n";
        assert_eq!(dropped(asked, got), ["CONFIG_C=4", "CONFIG_E=y"]);
        // What traces functions traces events too.
        let events = "CONFIG_ENABLE_DEFAULT_TRACERS=y\n";
        assert_eq!(dropped(events, "CONFIG_GENERIC_TRACER=y\n"), [""; 0]);
        assert_eq!(dropped(events, ""), ["CONFIG_ENABLE_DEFAULT_TRACERS=y"]);
    }

    #[test]
    fn a_test_machine_s_configuration_is_its_own_with_what_kexec_takes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("config", "CONFIG_ACPI=y\n").unwrap();
        write("drivers", "igb\n").unwrap();
        let recipe = |config: String| Changes {
            config: Some(config),
            ..Changes::default()
        };
        let of_machine = recipe(format!("test-machine:{}", folder.path().display()));
        // The sizes and uses of modules are of the moment, and name no build.
        let mut names = Vec::new();
        for lsmod in [
            "Module Size Used\nigb 9 1\nxfs 7 0\n",
            "Module Size Used\nxfs 8 2\nigb 9 3\n",
        ] {
            write("lsmod", lsmod).unwrap();
            let config = super::config(&of_machine, Path::new("")).unwrap();
            assert_eq!(config.base, "localyesconfig");
            assert!(config.text.contains("CONFIG_KEXEC_FILE=y\n"));
            assert!(config.text.contains("CONFIG_PREEMPT=y\n"));
            assert!(!config.text.contains("NR_CPUS"));
            assert_eq!(config.drivers, ["igb"]);
            names.push(config.machine());
        }
        assert_eq!(names[0], names[1]);
        assert!(names[0].starts_with("CONFIG_ACPI=y\n") && names[0].contains("igb 0 0\nxfs 0 0"));
        let error = super::config(&recipe("test-machine".into()), Path::new(""))
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("--on ssh:root@testhost"),
            "{error}"
        );
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
