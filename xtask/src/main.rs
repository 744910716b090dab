//! Project tasks.
//!
//! `cargo xtask install-c --prefix DIR` puts the C library where a build with
//! pkg-config finds it.
//!
//! `cargo xtask install` installs what a user needs.
//!
//! `cargo xtask dist` builds the Debian package and the other parts of a
//! release.
//!
//! `cargo xtask test` installs what the tests need and runs them all. It is
//! what a newcomer and CI run, so it must work on a machine that has only
//! Rust, and must never claim a test that did not run: what could not be
//! installed is named, and tests that need it say that they skip.

mod install_c;
mod package;
mod processors;
mod workspace;

use std::io::{self, Read};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Debian packages that tests use, with what uses them.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc", "C callers, footprint and peer benchmarks"),
    ("g++", "programs on other locks: C++"),
    ("clang", "C callers"),
    ("binutils", "footprint against nm"),
    ("pkg-config", "C callers"),
    ("libck-dev", "peer benchmarks: Concurrency Kit"),
    (
        "rocksdb-tools",
        "programs on other locks, compare: db_bench",
    ),
    ("memcached", "programs on other locks"),
    ("stress-ng", "programs on other locks"),
    ("python3", "programs on other locks"),
    ("qemu-user", "the i-cache model"),
    ("qemu-system-x86", "the i-cache model, whole machines"),
    ("nginx-light", "compare: nginx-churn"),
    ("apache2-utils", "compare: nginx-churn"),
    ("fsmark", "compare: fs-mark"),
    ("xfsprogs", "compare: fs-mark on XFS"),
    ("lld", "compare: link orders by --shuffle-sections"),
    ("libc6-dev", "the kernel lab: the guest's first program"),
    ("coccinelle", "the kernel lab: inlining on purpose"),
    ("patch", "the kernel lab"),
];

/// And those that kernels are built with.
const KERNEL_PACKAGES: &[(&str, &str)] = &[
    ("linux-source-6.1", "the kernel lab: the reports' kernel"),
    ("make", "the kernel lab"),
    ("xz-utils", "the kernel lab: to unpack the source"),
    ("flex", "the kernel lab: Kconfig"),
    ("bison", "the kernel lab: Kconfig"),
    ("bc", "the kernel lab: timeconst.h"),
    ("libelf-dev", "the kernel lab: objtool"),
    ("libssl-dev", "the kernel lab: certificates"),
    ("ccache", "the kernel lab: the second kernel builds faster"),
];

/// And those that sweeps on a cluster are tested with.
const SLURM_PACKAGES: &[(&str, &str)] = &[
    ("munge", "sweeps: who may speak to the cluster"),
    ("slurmctld", "sweeps: the cluster's controller"),
    ("slurmd", "sweeps: its node"),
    ("slurm-client", "sweeps: sbatch, squeue, scontrol"),
];

/// And those that packages are made and tried with.
const DIST_PACKAGES: &[(&str, &str)] = &[
    ("gcc", "the bundled SQLite"),
    ("musl-tools", "the static binary"),
    ("debootstrap", "a chroot to install the package in"),
];

/// What the process returns if nothing could be tested, as in other tests of
/// programs.
const SKIPPED: u8 = 77;

/// A kernel to boot in tests, without building one: Debian's for clouds.
const GUEST_KERNEL: &str = "linux-image-cloud-amd64";

const USAGE: &str = "usage: cargo xtask test [--thorough] [--no-install]
       cargo xtask test --kernel | --processors | --slurm | --package

  test           install what the tests need (Debian packages, by apt-get),
                 then run every test: unit, property, golden, doc, stress
  --thorough     also the long ones (ten minutes more): every lock in the model
                 checker, with each of its orderings changed in turn; the scores
                 in the docs; the merge of a thousand shards of a sweep
  --no-install   install nothing; tests that lack a program say so
  --processors   only the locks' tests on AArch64 and RISC-V, by QEMU's user mode
  --slurm        only the tests of sweeps on a cluster: a Slurm of one node in a
                 scratch folder, of which no service of the system knows;
                 exits with 77 if Slurm is not here and cannot be installed
  --package      only the packages: what dist makes, installed in a fresh chroot
                 of this Debian release and used there (as root)
  --kernel       only the tests that build kernels (an hour on 2 cores the
                 first time; sources and builds are kept in the user's cache)

usage: cargo xtask install

  installs all Debian packages that Locklab can use, builds the command, the
  interposer and the QEMU plugin, and says where they are

usage: cargo xtask dist

  builds a release in target/dist: man pages, shell completions, the Debian
  package, the book (by cargo-deb and mdBook, which are built in target/tools if
  they are not installed) and, with musl's target and compiler, a static binary
  of the command

usage: cargo xtask install-c --prefix DIR

  builds the C library and installs it below DIR: lib/liblocklab_c.{a,so},
  lib/pkgconfig/locklab.pc, include/locklab{.h,_inline.h,.hpp}
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = arguments.iter().map(String::as_str);
    match arguments.next() {
        Some("test") => test(arguments),
        Some("install") => match arguments.next() {
            None => install(),
            Some(_) => usage(),
        },
        Some("dist") => match arguments.next() {
            None => done(package::dist()),
            Some(_) => usage(),
        },
        Some("install-c") => match arguments.collect::<Vec<_>>()[..] {
            ["--prefix", prefix] => install_c::install(prefix.as_ref()),
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

fn test<'a>(flags: impl Iterator<Item = &'a str>) -> ExitCode {
    let (mut thorough, mut install, mut kernel, mut elsewhere) = (false, true, false, false);
    let (mut slurm, mut package) = (false, false);
    for flag in flags {
        match flag {
            "--thorough" => thorough = true,
            "--no-install" => install = false,
            "--kernel" => kernel = true,
            "--slurm" => slurm = true,
            "--package" => package = true,
            "--processors" => elsewhere = true,
            other => {
                eprintln!("xtask: '{other}' is not an option of test\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if install {
        if package {
            install_packages(DIST_PACKAGES);
        } else if slurm {
            install_packages(SLURM_PACKAGES);
        } else {
            let more = match (kernel, elsewhere) {
                (true, _) => KERNEL_PACKAGES,
                (false, true) => processors::PACKAGES,
                (false, false) => &[],
            };
            install_packages(&[PACKAGES, more].concat());
            unpack_guest_kernel();
        }
    }
    if package {
        return done(package::test());
    }
    if slurm {
        let programs = ["munged", "slurmctld", "slurmd", "sbatch"];
        if let Some(program) = programs.into_iter().find(|program| !there_is(program)) {
            let packages: Vec<&str> = SLURM_PACKAGES.iter().map(|(name, _)| *name).collect();
            eprintln!(
                "xtask: there is no {program}, so nothing was tested; as root: apt-get install {}",
                packages.join(" ")
            );
            return ExitCode::from(SKIPPED);
        }
        // Of the whole workspace, so that nothing is built a second time with
        // other features.
        return done(cargo(&[
            "test",
            "--workspace",
            "--test=suite",
            "slurm::",
            "--",
            "--ignored",
            "--test-threads=1",
        ]));
    }
    if elsewhere {
        return done(processors::test(install));
    }
    // Not a test itself, but tests load it into QEMU.
    if !cargo(&["build", "--release", "--package", "locklab-qemu-plugin"]) {
        return ExitCode::FAILURE;
    }
    if kernel {
        return done(cargo(&[
            "test",
            "--release",
            "--package=locklab",
            "--test=suite",
            "kernel_build::",
            "--",
            "--ignored",
            "--nocapture",
        ]));
    }
    let passed = workspace::test();
    done((!thorough || workspace::test_thoroughly()) && passed)
}

fn done(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What a user needs: packages, command, and the libraries that it loads.
fn install() -> ExitCode {
    install_packages(&[PACKAGES, KERNEL_PACKAGES].concat());
    unpack_guest_kernel();
    let built = build_command();
    if built {
        println!(
            "The command is target/release/locklab; its libraries are beside it. \
             `locklab doctor` says what it can measure here."
        );
    }
    done(built)
}

/// The command and the libraries that it loads.
fn build_command() -> bool {
    cargo(&[
        "build",
        "--release",
        "--package=locklab",
        "--package=locklab-preload",
        "--package=locklab-qemu-plugin",
    ])
}

fn cargo(arguments: &[&str]) -> bool {
    run(&mut command(arguments))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments);
    command
}

/// Runs it; what it prints to both streams, in one order.
fn heard(mut command: Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (mut reader, writer) = io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    // Its ends of the pipe, without which the read would not end.
    drop(command);
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    Ok((child.wait()?, output))
}

/// Installs the missing packages, or prints one line that says how to. A
/// failure is not fatal: most tests need none of them.
fn install_packages(wanted: &[(&str, &str)]) {
    let missing: Vec<&str> = wanted
        .iter()
        .map(|(package, _)| *package)
        .filter(|package| !installed(package))
        .collect();
    if missing.is_empty() {
        return;
    }
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let apt = |arguments: &[&str]| {
        let mut command = if root {
            Command::new("apt-get")
        } else {
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", "apt-get"]);
            sudo
        };
        run(command
            .args(["-q", "-y"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null()))
    };
    eprintln!("xtask: installing {}", missing.join(" "));
    let mut arguments = vec!["install", "--no-install-recommends"];
    arguments.extend(&missing);
    // Most machines have a package list; only a bare one needs the update.
    let done = apt(&arguments) || (apt(&["update"]) && apt(&arguments));
    if !done {
        eprintln!(
            "xtask: could not install them; tests that need them will skip. \
             As root: apt-get install {}",
            missing.join(" ")
        );
    }
}

/// Unpacks the guest kernel into `target/guest-kernel`, not onto this machine.
fn unpack_guest_kernel() {
    // The package is empty and depends on the newest kernel's.
    const SCRIPT: &str = r#"
        set -e
        [ ! -d target/guest-kernel/boot ] || exit 0
        rm -rf target/guest-kernel.new
        mkdir -p target/guest-kernel.new
        cd target/guest-kernel.new
        name=$(apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
        apt-get -q download "$name" >/dev/null 2>&1
        dpkg -x "$name"_*.deb .
        rm "$name"_*.deb
        mv ../guest-kernel.new ../guest-kernel"#;
    if !run(Command::new("sh").args(["-c", SCRIPT, "sh", GUEST_KERNEL])) {
        eprintln!("xtask: could not unpack {GUEST_KERNEL}; tests that boot it will skip");
    }
}

fn installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|query| query.stdout == b"installed")
}

/// Whether a program is installed; daemons may not be on a user's path.
fn there_is(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders = path
        .split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"]);
    folders.any(|folder| std::path::Path::new(folder).join(program).exists())
}

fn run(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!(
                "xtask: {} does not start: {error}",
                command.get_program().display()
            );
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// The Rust sources below a folder, as one text each.
    fn sources(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder of sources");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => sources(&path),
                false => fs::read_to_string(path).into_iter().collect(),
            })
            .collect()
    }

    /// Whether rustdoc would run an example of this source.
    fn has_example(source: &str) -> bool {
        let comments = source.lines().map(str::trim_start);
        let fences = comments
            .filter(|line| line.starts_with("///") || line.starts_with("//!"))
            .filter_map(|line| line[3..].trim_start().strip_prefix("```"));
        // Every second fence closes a block.
        let mut opening = fences.step_by(2).map(str::trim);
        opening.any(|language| ["", "rust", "no_run", "should_panic"].contains(&language))
    }

    /// Manifests leave out test programs that would be empty, and name the one
    /// program that has all files of a crate's tests, because each program takes
    /// seconds to build. A test that is added later must run all the same.
    #[test]
    fn no_test_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a root");
        let mut left_out = 0;
        for entry in fs::read_dir(root.join("crates")).expect("crates") {
            let crate_root = entry.expect("an entry").path();
            let Ok(manifest) = fs::read_to_string(crate_root.join("Cargo.toml")) else {
                continue;
            };
            let (lib, bin) = match manifest.split_once("[[bin]]") {
                Some((_, bin)) => ("", bin),
                None => (manifest.as_str(), ""),
            };
            let name = crate_root.display();
            if manifest.contains("\nautotests = false") {
                left_out += 1;
                let folder = crate_root.join("tests");
                let suite = fs::read_to_string(folder.join("suite.rs")).expect("tests/suite.rs");
                for entry in fs::read_dir(&folder).expect("tests") {
                    let path = entry.expect("an entry").path();
                    let stem = path.file_stem().expect("a name").to_string_lossy();
                    let is_file = path.extension().is_some_and(|e| e == "rs");
                    let is_in = suite.contains(&format!("\nmod {stem};"))
                        || manifest.contains(&format!("[[test]]\nname = \"{stem}\"\n"));
                    assert!(!is_file || is_in, "{}: in no program", path.display());
                }
            }
            if manifest.contains("\ndoctest = false") {
                left_out += 1;
                let examples = sources(&crate_root.join("src"));
                assert!(!examples.iter().any(|s| has_example(s)), "{name}: examples");
            }
            if lib.contains("\ntest = false") {
                left_out += 1;
                let tests = sources(&crate_root.join("src"));
                assert!(
                    !tests.iter().any(|s| s.contains("#[test]")),
                    "{name}: tests"
                );
            }
            if bin.contains("\ntest = false") {
                left_out += 1;
                let main = fs::read_to_string(crate_root.join("src/main.rs"));
                let main = main.expect("src/main.rs");
                assert!(!main.contains("#[test]"), "{name}: tests in main.rs");
            }
        }
        assert!(left_out > 5, "{left_out} only");
        assert!(has_example("/// ```\n/// let a = 1;\n/// ```\n"));
        assert!(!has_example("//! ```text\n//! a\n//! ```\n"));
    }
}
