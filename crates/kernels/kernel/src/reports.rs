//! The reports about kernels that ship with Locklab: their experiment files and the
//! patches that these name, unpacked where a user's own file would be.
//!
//! Their published figures are in `locklab_published`. Nothing here is built or booted.

use crate::cache::Cache;
use locklab_host::error::Error;
use std::path::PathBuf;

/// A report: its name, its experiment, and the patches that the experiment names.
struct Report {
    name: &'static str,
    experiment: &'static str,
    patches: &'static [(&'static str, &'static str)],
}

const REPORTS: [Report; 2] = [
    Report {
        name: "inline-unlock",
        experiment: include_str!("../experiments/inline-unlock.toml"),
        patches: &[],
    },
    Report {
        name: "finish-task-switch",
        experiment: include_str!("../experiments/finish-task-switch.toml"),
        patches: &[
            (
                "guest-has-ibpb.patch",
                include_str!("../experiments/patches/guest-has-ibpb.patch"),
            ),
            (
                "marks-finish-task-switch.patch",
                include_str!("../experiments/patches/marks-finish-task-switch.patch"),
            ),
        ],
    },
];

/// Returns the names of the reports.
pub fn names() -> impl Iterator<Item = &'static str> {
    REPORTS.iter().map(|report| report.name)
}

/// Writes a report's experiment into the cache, with its patches.
///
/// # Errors
/// [`Error::Usage`] if there is no such report, [`Error::Failed`] if the cache
/// cannot be written.
pub fn unpack(cache: &Cache<'_>, name: &str) -> Result<PathBuf, Error> {
    let report = find(name)?;
    let folder = cache.folder(&format!("reports/{name}"))?;
    cache.folder(&format!("reports/{name}/patches"))?;
    let file = folder.join(format!("{name}.toml"));
    let mut texts = vec![(file.clone(), report.experiment)];
    for (patch, text) in report.patches {
        texts.push((folder.join("patches").join(patch), text));
    }
    for (path, text) in texts {
        std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
    }
    Ok(file)
}

fn find(name: &str) -> Result<&'static Report, Error> {
    REPORTS
        .iter()
        .find(|report| report.name == name)
        .ok_or_else(|| {
            Error::Usage(format!(
                "there is no published report '{name}' about a kernel; there are {}",
                names().collect::<Vec<_>>().join(", ")
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe;
    use locklab_published::KernelReference;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_report_unpacks_and_its_patches_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        for name in names() {
            let experiment = recipe::Experiment::read(&unpack(&cache, name).unwrap(), &[]).unwrap();
            assert_eq!(experiment.name, name);
            for variant in experiment.variants() {
                for side in locklab_judge::Side::BOTH {
                    for patch in experiment.recipe(side, Some(&variant)).patches {
                        assert!(
                            experiment.folder.join(&patch).is_file(),
                            "{name}: {patch:?}"
                        );
                    }
                }
            }
            if let Some(reference) = experiment.reference {
                assert!(KernelReference::named(&reference).unwrap().is_some());
            }
        }
        assert!(find("inline-lock").is_err_and(|e| e.to_string().contains("inline-unlock")));
    }

    #[test]
    fn the_published_rows_are_variants_of_the_experiment() {
        let report = find("finish-task-switch").unwrap();
        let experiment = recipe::Experiment::parse(report.experiment).unwrap();
        let reference = KernelReference::named(report.name).unwrap().unwrap();
        let mut variants = 0;
        for name in reference.variants() {
            assert!(experiment.variant.iter().any(|v| v.name == name), "{name}");
            variants += 1;
        }
        assert_eq!(variants, 6);
    }
}
