//! Installs what tests and users need of Debian, by apt-get.
//!
//! A test that lacks something is skipped, so what can be had is installed
//! first. Must never fail because one package is not in this release: the
//! others are installed, and the tests say what they miss.

use crate::process::run;
use std::process::{Command, Stdio};

/// A package, with what uses it.
type Package = (&'static str, &'static str);

/// Holds what tests use, and users.
pub(crate) const PACKAGES: &[Package] = &[
    ("gcc", "C callers, footprint and peer benchmarks"),
    ("g++", "programs on other locks: C++"),
    ("clang", "C callers, locks of the user's own"),
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
    ("patch", "the kernel lab; patched locks of the kernel"),
    (
        "linux-source-6.1",
        "the kernel's own locks; the kernel lab: the reports' kernel",
    ),
    ("make", "the kernel lab"),
    ("xz-utils", "to unpack the kernel's source"),
    ("flex", "the kernel lab: Kconfig"),
    ("bison", "the kernel lab: Kconfig"),
    ("bc", "the kernel lab: timeconst.h"),
    ("libelf-dev", "the kernel lab: objtool"),
    ("libssl-dev", "the kernel lab: certificates"),
    ("chromium", "pages in a browser"),
    ("shellcheck", "the scripts of the action"),
    (
        "libxml2-utils",
        "JUnit files: xmllint with the schemas of Jenkins and Ant",
    ),
];

/// The packages that only build kernels faster.
pub(crate) const KERNEL_PACKAGES: &[Package] =
    &[("ccache", "the kernel lab: the second kernel builds faster")];

/// The packages that chunks on a cluster are tested with.
pub(crate) const SLURM_PACKAGES: &[Package] = &[
    ("munge", "chunks: who may speak to the cluster"),
    ("slurmctld", "chunks: the cluster's controller"),
    ("slurmd", "chunks: its node"),
    ("slurm-client", "chunks: sbatch, squeue"),
];

/// The packages that the stand-in for a test machine is made of.
pub(crate) const TEST_MACHINE_PACKAGES: &[Package] = &[
    ("gcc", "the program of a test machine"),
    ("libc6-dev", "the program of a test machine"),
    ("qemu-system-x86", "the stand-in for a test machine"),
    ("openssh-client", "test machines"),
    ("dropbear-bin", "ssh in measured kernels"),
    ("busybox-static", "the stand-in's own system"),
    ("syslinux", "the stand-in's disk"),
    ("mtools", "the stand-in's disk"),
    ("dosfstools", "the stand-in's disk"),
    ("xz-utils", "modules of recent kernels"),
];

/// The packages that packages are made and tried with.
pub(crate) const DIST_PACKAGES: &[Package] = &[
    ("gcc", "the bundled SQLite"),
    ("musl-tools", "the static binary"),
    ("debootstrap", "a chroot to install the package in"),
];

/// Packages of which a release may have only another version, and the
/// beginning of the names of all versions.
const ANY_VERSION: &[(&str, &str)] = &[("linux-source-6.1", "linux-source-")];

/// A kernel to boot in tests, without building one: Debian's for clouds.
const GUEST_KERNEL: &str = "linux-image-cloud-amd64";

/// Installs the missing packages, and says which it could not. A failure is not
/// fatal: most tests need none of them.
pub(crate) fn install(wanted: &[Package]) {
    let missing = || -> Vec<&str> {
        let names = wanted.iter().map(|(package, _)| *package);
        names.filter(|package| !installed(package)).collect()
    };
    let wanted_now = missing();
    if wanted_now.is_empty() {
        return;
    }
    eprintln!("xtask: installing {}", wanted_now.join(" "));
    // Most machines have a package list; only a bare one, or one with an old
    // list, needs the update.
    if !apt_install(&wanted_now) {
        apt(&["update"]);
        if !apt_install(&wanted_now) {
            // One that is not there keeps none of the others away.
            for package in missing() {
                let other = ANY_VERSION.iter().find(|(name, _)| *name == package);
                if !apt_install(&[package])
                    && let Some((_, start)) = other
                    && let Some(newest) = newest_version(start)
                {
                    apt_install(&[&newest]);
                }
            }
        }
    }
    let missing = missing();
    if !missing.is_empty() {
        eprintln!(
            "xtask: could not install {}; tests that need them will be skipped. As root: apt-get \
             install {}",
            missing.join(", "),
            missing.join(" ")
        );
    }
}

fn apt_install(packages: &[&str]) -> bool {
    apt(&[&["install", "--no-install-recommends"], packages].concat())
}

/// Runs apt-get as root, waiting for another one to end.
fn apt(arguments: &[&str]) -> bool {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let mut command = if root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    run(command
        .args(["-q", "-y", "-o", "DPkg::Lock::Timeout=600"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null()))
}

/// Returns the last package whose name is this and then a version.
fn newest_version(start: &str) -> Option<String> {
    let names = Command::new("apt-cache")
        .args(["pkgnames", start])
        .output()
        .ok()?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let version = |name: &str| -> Option<Vec<u32>> {
        let numbers = name.strip_prefix(start)?.split('.');
        numbers.map(|number| number.parse().ok()).collect()
    };
    let versions = names
        .lines()
        .filter_map(|name| Some((version(name)?, name)));
    versions.max().map(|(_, name)| name.to_owned())
}

/// Unpacks the guest kernel into `target/guest-kernel`, not onto this machine.
pub(crate) fn unpack_guest_kernel() {
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
    let unpack = || run(Command::new("sh").args(["-c", SCRIPT, "sh", GUEST_KERNEL]));
    // An old package list names a file that is no longer there.
    if !(unpack() || apt(&["update"]) && unpack()) {
        eprintln!("xtask: could not unpack {GUEST_KERNEL}; tests that boot it will be skipped");
    }
}

/// Puts axe-core, which tests the pages of reports in a browser, into `target/tools`, where
/// npm is installed. Without it that part of the test is left out.
pub(crate) fn install_axe() {
    let folder = "target/tools/node_modules/axe-core";
    if there_is("npm") && !std::path::Path::new(folder).is_dir() {
        let install = [
            "install",
            "--silent",
            "--no-fund",
            "--prefix",
            "target/tools",
        ];
        run(Command::new("npm").args(install).arg("axe-core@4"));
    }
}

/// Says where the two kernels of the stand-in are.
const TEST_MACHINE_KERNELS: &str = "target/test-machine-kernels";

/// Unpacks two versions of the guest kernel into `target/test-machine-kernels`: what is
/// measured must be told apart by its name.
pub(crate) fn unpack_test_machine_kernels() {
    const SCRIPT: &str = r#"
        set -e
        [ ! -d "$2" ] || exit 0
        rm -rf "$2.new"
        mkdir -p "$2.new"
        new=$(apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
        old=$(apt-cache pkgnames linux-image- | grep -E -- '[0-9]-cloud-amd64$' | grep -vxF "$new" |
            sort -V | tail -n 1)
        cd "$2.new"
        for name in "$old" "$new"; do
            apt-get -q download "$name" >/dev/null 2>&1
            dpkg -x "$name"_*.deb "$name"
            rm "$name"_*.deb
        done
        cd - >/dev/null
        mv "$2.new" "$2""#;
    let unpack =
        || run(Command::new("sh").args(["-c", SCRIPT, "sh", GUEST_KERNEL, TEST_MACHINE_KERNELS]));
    // An old package list names a file that is no longer there.
    if !(unpack() || apt(&["update"]) && unpack()) {
        eprintln!("xtask: could not unpack two versions of {GUEST_KERNEL}");
    }
}

/// Returns what the stand-in for a test machine lacks.
pub(crate) fn missing_for_a_test_machine() -> Option<&'static str> {
    let programs = [
        "qemu-system-x86_64",
        "ssh",
        "dropbear",
        "dropbearkey",
        "busybox",
        "syslinux",
        "mcopy",
        "mkfs.vfat",
        "gcc",
    ];
    let program = programs.into_iter().find(|program| !there_is(program));
    let kernels =
        || (!std::path::Path::new(TEST_MACHINE_KERNELS).is_dir()).then_some(TEST_MACHINE_KERNELS);
    program.or_else(kernels)
}

fn installed(package: &str) -> bool {
    let status = |package: &str| {
        Command::new("dpkg-query")
            .args(["--show", "--showformat=${db:Status-Status}\n", package])
            .stderr(Stdio::null())
            .output()
            .is_ok_and(|query| {
                query
                    .stdout
                    .split(|&byte| byte == b'\n')
                    .any(|s| s == b"installed")
            })
    };
    let other = ANY_VERSION.iter().find(|(name, _)| *name == package);
    status(package) || other.is_some_and(|(_, start)| status(&format!("{start}[0-9]*")))
}

/// Returns whether a program is installed; daemons may not be on a user's path.
pub(crate) fn there_is(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders = path
        .split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"]);
    folders.any(|folder| std::path::Path::new(folder).join(program).exists())
}
