//! Project tasks.
//!
//! `cargo xtask install-c --prefix DIR` puts the C library where a build with
//! pkg-config finds it.
//!
//! `cargo xtask install` installs what a user needs.
//!
//! `cargo xtask deny` checks the licences and advisories of dependencies.
//!
//! `cargo xtask dist` builds the Debian package and the other parts of a
//! release.
//!
//! `cargo xtask test` installs what the tests need and runs them all. It is
//! what a newcomer and CI run, so it must work on a machine that has only
//! Rust, and must never claim a test that did not run: what could not be
//! installed is named, and tests that need it are counted as skipped.

mod deny;
mod install_c;
mod miri;
mod outcome;
mod package;
mod packages;
mod process;
mod processors;
mod workspace;

use process::{SKIPPED, build_command, cargo, cargo_test, done};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [--thorough] [--no-install]
       cargo xtask test --kernel | --test-machine | --processors | --slurm | --package

  test           install what the tests need (Debian packages, by apt-get),
                 then run every test: unit, property, golden, doc, stress; the
                 last line is 'N passed, N failed, N skipped', and before it
                 stands what was skipped and why. With CI=true a skip that is
                 not in .ci/skips.txt is a failure
  --thorough     also the long ones (ten minutes more): every lock in the model
                 checker, with each of its orderings changed in turn; the scores
                 in the docs
  --no-install   install nothing; tests that lack a program are skipped
  --processors   only the locks' tests on AArch64 and RISC-V, by QEMU's user mode
  --slurm        only the test of chunks on a cluster: a Slurm of one node in a
                 scratch folder, of which no service of the system knows;
                 exits with 77 if Slurm is not here and cannot be installed
  --package      only the packages: what dist makes, installed in a fresh chroot
                 of this Debian release and used there (as root); and the
                 commands of the README's section Install, in a fresh clone
  --test-machine only the tests of kernels on a test machine: a guest of QEMU
                 stands in for it (half an hour without KVM, and the first
                 time as long again, to build two kernels, which are kept);
                 exits with 77 if what it takes cannot be installed
  --kernel       only the tests that build kernels (an hour on 2 cores the
                 first time; sources and builds are kept in the user's cache)

usage: cargo xtask install

  installs all Debian packages that Locklab can use, builds the command, the
  interposer and the QEMU plugin, and says where they are

usage: cargo xtask dist [wheel]

  builds a release in target/dist: the wheel for 'pip install', of a static binary with
  musl's target and compiler; man pages, shell completions, the Debian package, the book
  (by cargo-deb and mdBook, which are built in target/tools if they are not installed)

  wheel          only that

usage: cargo xtask deny

  checks the licences, sources and advisories of all dependencies by deny.toml
  (cargo-deny, which is built in target/tools if it is not installed); exits
  with 77 if it cannot be had

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
            Some("wheel") => done(package::wheel()),
            Some(_) => usage(),
        },
        Some("deny") => match arguments.next() {
            None => deny::check(),
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
    let (mut slurm, mut package, mut test_machine) = (false, false, false);
    for flag in flags {
        match flag {
            "--thorough" => thorough = true,
            "--no-install" => install = false,
            "--kernel" => kernel = true,
            "--slurm" => slurm = true,
            "--package" => package = true,
            "--test-machine" => test_machine = true,
            "--box" => {
                eprintln!("xtask: --box is now --test-machine");
                return ExitCode::from(2);
            }
            "--processors" => elsewhere = true,
            other => {
                eprintln!("xtask: '{other}' is not an option of test\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if install {
        if package {
            packages::install(packages::DIST_PACKAGES);
        } else if slurm {
            packages::install(packages::SLURM_PACKAGES);
        } else if test_machine {
            // The workloads' programs, and what builds one kernel.
            let all = [
                packages::TEST_MACHINE_PACKAGES,
                packages::PACKAGES,
                packages::KERNEL_PACKAGES,
            ];
            packages::install(&all.concat());
            packages::unpack_test_machine_kernels();
        } else if elsewhere {
            packages::install(processors::PACKAGES);
        } else {
            let more = if kernel {
                packages::KERNEL_PACKAGES
            } else {
                &[]
            };
            packages::install(&[packages::PACKAGES, more].concat());
            packages::unpack_guest_kernel();
            packages::install_axe();
        }
    }
    if package {
        return done(package::test());
    }
    if test_machine {
        if let Some(missing) = packages::missing_for_a_test_machine() {
            eprintln!("xtask: there is no {missing}, so nothing was tested");
            return ExitCode::from(SKIPPED);
        }
        if !build_plugin() {
            return ExitCode::FAILURE;
        }
        // Of the whole workspace, so that nothing is built a second time with
        // other features.
        let stand_in = [
            "--workspace",
            "--test=suite",
            "test_machine_stand_in::",
            "--",
        ];
        // A machine in the translator takes one CPU.
        let two = ["--ignored", "--test-threads=2"];
        return done(cargo_test(&[&stand_in[..], &two].concat()).report());
    }
    if slurm {
        let programs = ["munged", "slurmctld", "slurmd", "sbatch"];
        let missing = |program: &&str| !packages::there_is(program);
        if let Some(program) = programs.iter().find(|program| missing(program)) {
            let names = packages::SLURM_PACKAGES.iter().map(|(name, _)| *name);
            eprintln!(
                "xtask: there is no {program}, so nothing was tested; as root: apt-get install {}",
                names.collect::<Vec<_>>().join(" ")
            );
            return ExitCode::from(SKIPPED);
        }
        // Of the whole workspace, so that nothing is built a second time with
        // other features.
        let slurm = ["--workspace", "--test=suite", "slurm::", "--"];
        let alone = ["--ignored", "--test-threads=1"];
        return done(cargo_test(&[&slurm[..], &alone].concat()).report());
    }
    if elsewhere {
        return done(processors::test(install).report());
    }
    if !build_plugin() {
        return ExitCode::FAILURE;
    }
    if kernel {
        let kernel = ["--release", "--package=locklab", "--test=suite"];
        let alone = ["kernel_build::", "--", "--ignored", "--nocapture"];
        return done(cargo_test(&[&kernel[..], &alone].concat()).report());
    }
    // Most tests wait for something, and Miri computes.
    let (tested, miri) = std::thread::scope(|scope| {
        let miri = scope.spawn(|| miri::test(install));
        (workspace::test(), miri.join().expect("no panic"))
    });
    let Some(mut outcome) = tested else {
        return ExitCode::FAILURE;
    };
    outcome.add(miri);
    if thorough {
        workspace::test_thoroughly(&mut outcome);
    }
    done(outcome.report())
}

/// Builds the plugin. It is not a test itself, but tests load it into QEMU.
fn build_plugin() -> bool {
    cargo(&["build", "--release", "--package", "locklab-qemu-plugin"])
}

/// Returns what a user needs: packages, the command, and the plugin that it loads into
/// QEMU.
fn install() -> ExitCode {
    packages::install(&[packages::PACKAGES, packages::KERNEL_PACKAGES].concat());
    packages::unpack_guest_kernel();
    let built = build_command();
    if built {
        println!(
            "The command is target/release/locklab; its plugin for QEMU is beside it. \
             `locklab doctor` says what it can measure here."
        );
    }
    done(built)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Returns the Rust sources below a folder, as one text each.
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

    /// Returns whether rustdoc would run an example of this source.
    fn has_example(source: &str) -> bool {
        let comments = source.lines().map(str::trim_start);
        let fences = comments
            .filter(|line| line.starts_with("///") || line.starts_with("//!"))
            .filter_map(|line| line[3..].trim_start().strip_prefix("```"));
        // Every second fence closes a block.
        let mut opening = fences.step_by(2).map(str::trim);
        opening.any(|language| ["", "rust", "no_run", "should_panic"].contains(&language))
    }

    /// Returns the workspace.
    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a root")
    }

    /// Returns the folders of all crates in `crates`, each `crates/FOLDER/NAME`.
    fn crates() -> Vec<String> {
        let below = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(root().join(folder)).expect("a folder");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            names
                .map(|name| format!("{folder}/{}", name.to_string_lossy()))
                .collect()
        };
        below("crates").iter().flat_map(|f| below(f)).collect()
    }

    /// The tables of crates in CONTRIBUTING.md have all of them, folder by folder,
    /// each below what it uses. So a folder, too, uses only those above it.
    #[test]
    fn no_crate_uses_one_below_it() {
        let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
        let rows = text.lines().filter_map(|l| l.strip_prefix("| `"));
        let paths = rows.filter_map(|row| row.split('`').next());
        let order: Vec<&str> = paths.filter(|path| path.starts_with("crates/")).collect();
        for path in crates() {
            assert!(order.contains(&&*path), "{path} is not in CONTRIBUTING.md");
        }
        let (mut folders, names): (Vec<&str>, Vec<&str>) = order
            .iter()
            .map(|path| path.rsplit_once('/').expect("a folder"))
            .unzip();
        folders.dedup();
        for folder in &folders {
            let runs = folders.iter().filter(|other| *other == folder).count();
            assert_eq!(runs, 1, "{folder} stands in two places of CONTRIBUTING.md");
        }
        for (place, path) in order.iter().enumerate() {
            let manifest = root().join(path).join("Cargo.toml");
            let manifest = fs::read_to_string(&manifest).expect("a manifest");
            let after = manifest
                .split_once("\n[dependencies]\n")
                .map_or("", |(_, d)| d);
            let uses = after.split("\n[").next().unwrap_or("").lines();
            for used in uses.filter_map(|line| line.strip_prefix("locklab-")) {
                let used = used.split(['.', ' ']).next().unwrap_or(used);
                assert!(names[..place].contains(&used), "{path} uses {used}");
            }
        }
    }

    /// A crate that is packaged alone has the text of its licence with it. Here that is a link
    /// to the only copy, which `cargo package` follows.
    #[test]
    fn every_crate_has_the_texts_of_its_licence() {
        let benches = fs::read_dir(root().join("benches")).expect("a folder");
        let benches = benches.map(|entry| entry.expect("an entry").path());
        let beside = ["locklab", "packaging", "xtask"].map(|name| root().join(name));
        let crates = crates().into_iter().map(|path| root().join(path));
        for folder in crates.chain(benches).chain(beside) {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
            let name = folder.display();
            let mut lines = manifest.lines();
            let licence = lines.find(|line| line.starts_with("license")).unwrap_or("");
            let wanted: &[&str] = match licence {
                "license.workspace = true" => &["LICENSE-MIT", "LICENSE-APACHE"],
                r#"license = "GPL-2.0-or-later""# => &["LICENSE-GPL-2.0"],
                r#"license = "(MIT OR Apache-2.0) AND GPL-2.0-or-later""# => {
                    &["LICENSE-MIT", "LICENSE-APACHE", "LICENSE-GPL-2.0"]
                }
                other => panic!("{name}: '{other}' is no licence of this project"),
            };
            for file in wanted {
                let ours = folder.join(file);
                let all = match *file {
                    "LICENSE-GPL-2.0" => root().join("crates/code/qemu-plugin").join(file),
                    file => root().join(file),
                };
                assert!(
                    fs::read(&ours).ok() == fs::read(all).ok(),
                    "{name}: {file} differs"
                );
            }
        }
    }

    /// Manifests leave out test programs that would be empty, and name the one
    /// program that has all files of a crate's tests, because each program takes
    /// seconds to build. A test that is added later must run all the same.
    #[test]
    fn no_test_is_left_out() {
        let mut left_out = 0;
        for path in crates().into_iter().chain(["locklab".to_owned()]) {
            let crate_root = root().join(path);
            let manifest = fs::read_to_string(crate_root.join("Cargo.toml")).expect("a manifest");
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
