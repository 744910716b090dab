//! Checks that a kernel for a test machine has the drivers that its network card and its
//! disk need, built in.
//!
//! `make localyesconfig` leaves out what it does not understand and says nothing, and
//! a kernel without the driver of its card never answers. So it is looked up before
//! anything is compiled which option of the source builds each driver. A module is not
//! enough: a kernel in another link order does not load most of them. It must never
//! refuse a driver that the source does not know and that was never a module.

use crate::cache::Cache;
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// Checks that these drivers are built into the kernel that was configured in
/// `objects` from the tree `source`; `loaded` is the list of the machine's modules.
///
/// # Errors
/// [`Error::Failed`] with the drivers that are not, and the options that build them;
/// also if the configuration cannot be read, or after Ctrl-C.
pub(crate) fn built_in(
    cache: &Cache<'_>,
    source: &Path,
    objects: &Path,
    drivers: &[String],
    loaded: &str,
) -> Result<(), Error> {
    if drivers.is_empty() {
        return Ok(());
    }
    let mut options = Options::default();
    read_makefiles(cache, &source.join("drivers"), &mut options)?;
    let path = objects.join(".config");
    let config = std::fs::read_to_string(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    let missing = missing(&options, &config, drivers, loaded);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "the kernel would not have what the machine's network card or disk needs: {} (see {}); \
         turn it on in [kernel] options, with what it depends on",
        missing.join(", "),
        path.display()
    )))
}

/// The options of each object that a makefile names: one of them builds it. An object
/// without options is always built.
type Options = BTreeMap<String, Vec<Option<String>>>;

fn missing(options: &Options, config: &str, drivers: &[String], loaded: &str) -> Vec<String> {
    let is_on = |option: &String| {
        let line = format!("{option}=y");
        config.lines().any(|other| other == line)
    };
    let mut drivers: Vec<String> = drivers.iter().map(|name| normal(name)).collect();
    drivers.sort();
    drivers.dedup();
    let mut missing = Vec::new();
    for name in drivers {
        match options.get(&name) {
            Some(all) if all.iter().any(|o| o.as_ref().is_none_or(is_on)) => {}
            Some(all) => {
                let all: Vec<&str> = all.iter().flatten().map(String::as_str).collect();
                missing.push(format!("{name} ({} is not y)", all.join(" or ")));
            }
            // What is built in may have a name that no makefile has; a module has not.
            None => {
                let mut modules = loaded.lines().filter_map(|line| line.split(' ').next());
                if modules.any(|module| normal(module) == name) {
                    missing.push(format!("{name} (which this source does not have)"));
                }
            }
        }
    }
    missing
}

fn read_makefiles(cache: &Cache<'_>, folder: &Path, options: &mut Options) -> Result<(), Error> {
    if cache.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(Error::Interrupted("interrupted".into()));
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read_makefiles(cache, &path, options)?;
        } else if matches!(entry.file_name().to_str(), Some("Makefile" | "Kbuild")) {
            let text = std::fs::read(&path).unwrap_or_default();
            read_makefile(&String::from_utf8_lossy(&text), options);
        }
    }
    Ok(())
}

/// Reads lines such as `obj-$(CONFIG_IGB) += igb.o`.
fn read_makefile(text: &str, options: &mut Options) {
    let text = text.replace("\\\n", " ");
    for line in text.lines() {
        let Some((left, right)) = line.split_once('=') else {
            continue;
        };
        let left = left.trim_end_matches(['+', ':']).trim();
        let option = match left.strip_prefix("obj-") {
            Some("y") => None,
            Some(choice) => {
                let name = choice.strip_prefix("$(").and_then(|c| c.strip_suffix(')'));
                match name {
                    Some(name) => Some(name.to_owned()),
                    None => continue,
                }
            }
            None => continue,
        };
        for word in right.split('#').next().unwrap_or("").split_whitespace() {
            if let Some(name) = word.strip_suffix(".o") {
                let all = options.entry(normal(name)).or_default();
                all.push(option.clone());
            }
        }
    }
}

/// Returns a module's name in one form: files write it with `-` or `_`.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_driver_that_the_configuration_lost_is_refused_with_its_option() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "drivers/net/Makefile",
            "obj-$(CONFIG_IGB) += igb.o\nigb-y := main.o\nobj-$(CONFIG_NVME) += \\\n\tnvme-core.o \\\n\
             \tnvme.o # both\n",
        );
        write("drivers/pci/Makefile", "obj-y\t+= always.o\n");
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        let check = |config: &str, drivers: &[&str]| {
            write("objects/.config", config);
            let drivers: Vec<String> = drivers.iter().map(ToString::to_string).collect();
            let objects = folder.path().join("objects");
            let loaded = "Module Size Used\nigb 0 0\nvendor 0 0\n";
            let checked = built_in(&cache, folder.path(), &objects, &drivers, loaded);
            checked.map_or_else(|error| error.to_string(), |()| String::new())
        };
        let all = "CONFIG_IGB=y\nCONFIG_NVME=y\n";
        // One that was never a module may have any name.
        assert_eq!(check(all, &["igb", "nvme_core", "always", "pcieport"]), "");
        let why = check("# CONFIG_IGB is not set\nCONFIG_NVME=y\n", &["igb", "nvme"]);
        assert!(why.contains("igb (CONFIG_IGB is not y)"), "{why}");
        assert!(!why.contains("nvme"), "{why}");
        let module = check("CONFIG_IGB=m\n", &["igb"]);
        assert!(module.contains("igb (CONFIG_IGB"), "{module}");
        let foreign = check(all, &["vendor"]);
        assert!(foreign.contains("this source does not have"), "{foreign}");
        // Kernels that are for no machine in particular need no driver.
        assert_eq!(check("", &[]), "");
    }
}
