//! `fs-mark`: making empty files in 16 folders by 16 threads at once, the
//! load on XFS under which the queued spinlock was reported.
//!
//! Install: fsmark, and xfsprogs for XFS. A run is one fs_mark in a fresh
//! folder. Files a second decide. For root, where the kernel supports it, the
//! folder lies on XFS in an image that is mounted for the session; else on
//! tmpfs (/dev/shm) or where `path` says, and the report says which. Invalid:
//! an exit status other than 0, output without the figure. The mount and the
//! image are removed at the end.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::output::excerpt;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_host::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of folders, with one thread for each.
const FOLDERS: u64 = 16;

pub(super) struct FsMark {
    files: u64,
    path: Option<PathBuf>,
    file_system: Option<FileSystem>,
}

/// The file system in which files are made.
struct FileSystem {
    folder: PathBuf,
    description: String,
    mounted: bool,
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg(&self.folder).status();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl FsMark {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            files: spec.scaled(250, 1),
            path: spec.path.clone(),
            file_system: None,
        }
    }

    fn file_system(&mut self, launcher: &Launcher) -> Result<&FileSystem, Fault> {
        if self.file_system.is_none() {
            self.file_system = Some(self.make_file_system(launcher)?);
        }
        self.file_system
            .as_ref()
            .ok_or_else(|| Fault::Unrunnable("no folder".into()))
    }

    fn make_file_system(&self, launcher: &Launcher) -> Result<FileSystem, Fault> {
        let below = |parent: &Path, description: String| -> Result<FileSystem, Fault> {
            let folder = parent.join(format!("locklab-fs-mark-{}", std::process::id()));
            std::fs::create_dir_all(&folder)
                .map_err(|e| Fault::Unrunnable(format!("cannot make {}: {e}", folder.display())))?;
            Ok(FileSystem {
                folder,
                description,
                mounted: false,
            })
        };
        if let Some(path) = &self.path {
            let path = std::path::absolute(path)
                .map_err(|e| Fault::Unrunnable(format!("{}: {e}", path.display())))?;
            return below(&path, format!("the given folder {}", path.display()));
        }
        match xfs(launcher) {
            Ok(file_system) => Ok(file_system),
            Err(why) => {
                let shm = Path::new("/dev/shm");
                if shm.is_dir() {
                    below(shm, format!("tmpfs, not XFS ({why})"))
                } else {
                    let scratch = launcher.scratch();
                    below(scratch, format!("the temporary folder, not XFS ({why})"))
                }
            }
        }
    }
}

/// Makes an XFS for the session, with the report's options.
fn xfs(launcher: &Launcher) -> io::Result<FileSystem> {
    if !nix::unistd::geteuid().is_root() {
        return Err(io::Error::other("only root can mount"));
    }
    let image = launcher.scratch().join("xfs.img");
    let folder = launcher.scratch().join("xfs");
    std::fs::create_dir_all(&folder)?;
    let file = std::fs::File::create(&image)?;
    // The image is sparse: it occupies what is written.
    file.set_len(8 << 30)?;
    let run = |program: &str, arguments: &[&str]| -> io::Result<()> {
        let found = locklab_host::process::find(program, &[])
            .ok_or_else(|| io::Error::other(format!("no {program}: apt-get install xfsprogs")))?;
        let out = Command::new(found).args(arguments).output()?;
        if out.status.success() {
            Ok(())
        } else {
            let stderr = String::from_utf8_lossy(&out.stderr);
            let why = format!("{program}: {}", excerpt(&stderr));
            Err(io::Error::other(why))
        }
    };
    let (image, target) = (image.display().to_string(), folder.display().to_string());
    run(
        "mkfs.xfs",
        &["-q", "-m", "crc=1,finobt=1", "-d", "agcount=32", &image],
    )?;
    run("mount", &["-t", "xfs", "-o", "loop", &image, &target])?;
    Ok(FileSystem {
        folder,
        description: "XFS (crc, finobt, 32 allocation groups) on a loop-mounted image".into(),
        mounted: true,
    })
}

impl Workload for FsMark {
    fn about(&self) -> String {
        format!(
            "fs_mark -D 100 -S0 -n {} -s 0 -L 1, {FOLDERS} folders, {FOLDERS} threads.",
            self.files
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        let what = self
            .file_system
            .as_ref()
            .map_or("not made yet", |f| &f.description);
        vec![
            ("Files on".into(), what.into()),
            ("CPUs".into(), launcher.cpus_text()),
        ]
    }

    fn is_one_process(&self) -> bool {
        true
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher("files", "files/s", Source::Output),
            Metric::lower("app-overhead", "us", Source::Output),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            program("fs_mark", "fsmark", subject)?;
        }
        match &self.path {
            Some(path) if !path.is_dir() => Err(Error::Usage(format!(
                "there is no folder {}",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let file_system = self.file_system(launcher)?.folder.clone();
        let folder = file_system.join("run");
        let _ = std::fs::remove_dir_all(&folder);
        let io = |e: io::Error| Fault::Unrunnable(format!("{}: {e}", folder.display()));
        let mut arguments: Vec<String> = ["-D", "100", "-S0", "-s", "0", "-L", "1", "-n"]
            .map(str::to_owned)
            .into();
        arguments.push(self.files.to_string());
        for n in 0..FOLDERS {
            std::fs::create_dir_all(folder.join(n.to_string())).map_err(io)?;
            // Relative paths are used, because long ones overflow a buffer of
            // fs_mark.
            arguments.extend(["-d".into(), format!("run/{n}")]);
        }
        let cpus = launcher.cpus.clone();
        let mut launch = launcher.launch(subject, "fs_mark", &arguments, &cpus)?;
        // Its log, too, is written where it runs.
        launch.folder = file_system;
        let done = launcher.run_launch(&launch)?;
        done.check()?;
        std::fs::remove_dir_all(&folder).map_err(io)?;
        let mut figures = done.figures();
        // FSUse% Count Size Files/sec App-Overhead, one line a loop.
        let line = |group: usize| {
            let mut columns = [r"[0-9.]+"; 5];
            columns[group] = r"([0-9.]+)";
            format!(r"(?m)^\s*{}\s*$", columns.join(r"\s+"))
        };
        figures.insert(
            "files".into(),
            output_metric::find("Files/sec", &line(3), &done.out)?,
        );
        figures.insert(
            "app-overhead".into(),
            output_metric::find("App Overhead", &line(4), &done.out)?,
        );
        Ok(figures)
    }
}
