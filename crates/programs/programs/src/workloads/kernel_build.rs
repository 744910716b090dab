//! `kernel-build`: make of a small Linux kernel (tinyconfig, the object files
//! of the whole image), from clean.
//!
//! Install: linux-source, make, gcc, flex, bison, bc, libelf-dev. A run is
//! one make with as many jobs as CPUs, after a clean that is not measured.
//! Elapsed time decides, user and system time explain. The tree is unpacked
//! once into the user's cache folder, or given as `path`; it is never written
//! to, objects go to the scratch folder. Invalid: an exit status other than 0.

use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::ELAPSED;
use locklab_host::error::Error;
use std::path::{Path, PathBuf};

const PACKAGES: &str = "linux-source make gcc flex bison bc libelf-dev xz-utils";

fn no_sources() -> Error {
    Error::Usage(format!("no kernel sources; apt-get install {PACKAGES}"))
}

pub(super) struct KernelBuild {
    path: Option<PathBuf>,
    jobs: Option<u32>,
    tree: Option<PathBuf>,
}

impl KernelBuild {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            path: spec.path.clone(),
            jobs: spec.threads,
            tree: None,
        }
    }

    fn jobs(&self, launcher: &Launcher) -> usize {
        self.jobs.map_or(launcher.cpu_count(), |n| n as usize)
    }

    /// Unpacks Debian's sources, once per user.
    fn unpack(launcher: &mut Launcher) -> Result<PathBuf, Fault> {
        let unrunnable = Fault::Unrunnable;
        let archive = archive().ok_or_else(no_sources)?;
        let cache = directories::ProjectDirs::from("", "", "locklab")
            .map(|dirs| dirs.cache_dir().to_path_buf())
            .ok_or_else(|| unrunnable("there is no home folder to unpack sources in".into()))?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(".tar.xz").to_owned();
        let tree = cache.join(&name);
        if tree.join("Makefile").is_file() {
            return Ok(tree);
        }
        // It is unpacked elsewhere first: half a tree must not be mistaken for
        // a whole one.
        let partial = cache.join(format!("{name}.partial"));
        let io =
            |e: std::io::Error| unrunnable(format!("cannot unpack into {}: {e}", cache.display()));
        let _ = std::fs::remove_dir_all(&partial);
        std::fs::create_dir_all(&partial).map_err(io)?;
        let arguments = [
            "--extract".into(),
            "--strip-components=1".into(),
            "--file".into(),
            archive.display().to_string(),
            "--directory".into(),
            partial.display().to_string(),
        ];
        launcher.tool("tar", &arguments, &[])?;
        std::fs::rename(&partial, &tree).map_err(io)?;
        Ok(tree)
    }
}

fn archive() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/src").ok()?;
    let is_source = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("linux-source-") && name.ends_with(".tar.xz")
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_source(path))
        .max()
}

impl Workload for KernelBuild {
    fn about(&self) -> String {
        "make of a Linux kernel with tinyconfig, from clean.".into()
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        let tree = self.tree.as_ref().or(self.path.as_ref());
        let tree = tree.and_then(|t| t.file_name()).unwrap_or_default();
        vec![
            ("Tree".into(), tree.to_string_lossy().into_owned()),
            ("Jobs".into(), self.jobs(launcher).to_string()),
            ("CPUs".into(), launcher.cpus_text()),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::lower(ELAPSED, "s", Source::Process)]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            program("make", "make", subject)?;
        }
        match &self.path {
            Some(path) if !path.join("Makefile").is_file() => Err(Error::Usage(format!(
                "{} is no kernel tree: it has no Makefile",
                path.display()
            ))),
            None if archive().is_none() => Err(no_sources()),
            _ => Ok(()),
        }
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let tree = match (&self.tree, &self.path) {
            (Some(tree), _) => tree.clone(),
            (None, Some(path)) => std::path::absolute(path)
                .map_err(|e| Fault::Unrunnable(format!("{}: {e}", path.display())))?,
            (None, None) => Self::unpack(launcher)?,
        };
        self.tree = Some(tree.clone());
        let objects = launcher.fresh("kernel")?;
        let make = |target: &str, jobs: usize| {
            vec![
                "-s".into(),
                format!("-j{jobs}"),
                format!("-C{}", tree.display()),
                format!("O={}", objects.display()),
                target.to_owned(),
            ]
        };
        let jobs = self.jobs(launcher);
        let cpus = launcher.cpus.clone();
        launcher.tool("make", &make("tinyconfig", 1), &cpus)?;
        let done = launcher.run(subject, "make", &make("vmlinux", jobs), &cpus)?;
        done.check()?;
        Ok(done.figures())
    }
}
