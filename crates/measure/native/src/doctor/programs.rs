//! Programs that backends and workloads start, and the Debian packages
//! that have them.

use crate::doctor::check::{Check, MODELS, State, WORKLOADS};
use std::path::{Path, PathBuf};

/// Checks what the kernel and machine backends need. `root` is where /dev is.
pub(super) fn models(root: &Path) -> Vec<Check> {
    let mut checks = vec![kvm(root)];
    for (name, package, needed) in [
        ("qemu-system-x86_64", "qemu-system-x86", "boots kernels"),
        ("qemu-x86_64", "qemu-user", "the i-cache model of a program"),
        ("gcc", "gcc", "builds kernels, and C callers"),
        ("make", "make", "builds kernels"),
        ("flex", "flex", "builds kernels"),
        ("bison", "bison", "builds kernels"),
        ("bc", "bc", "builds kernels"),
        ("ld.lld", "lld", "shuffles link orders"),
    ] {
        checks.push(program(MODELS, name, package, needed));
    }
    checks
}

/// Checks the programs that the workloads start.
pub(super) fn workloads() -> Vec<Check> {
    [
        ("nginx", "nginx", "nginx-churn"),
        ("ab", "apache2-utils", "nginx-churn"),
        ("db_bench", "rocksdb-tools", "rocksdb-deleteseq"),
        ("fs_mark", "fsmark", "fs-mark"),
        ("mkfs.xfs", "xfsprogs", "fs-mark on XFS"),
        (
            "valgrind",
            "valgrind",
            "the i-cache model's peer, cachegrind",
        ),
        ("perf", "linux-perf", "a second opinion on counters"),
    ]
    .map(|(name, package, needed)| program(WORKLOADS, name, package, needed))
    .into()
}

fn program(part: &'static str, name: &str, package: &str, needed: &str) -> Check {
    match find(name) {
        Some(path) => Check::new(part, name, State::Ok, path.display().to_string()),
        None => Check::new(
            part,
            name,
            State::Missing,
            format!("not found; for: {needed}"),
        )
        .remedy(format!("apt-get install {package} (as root)")),
    }
}

/// Returns a program on the search path, or where administrators' programs are.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.map(|f| f.join(name)).find(|file| executable(file))
}

fn executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Looks at the node and does not open it: behind a node that exists may be
/// nothing that answers.
pub(super) fn kvm(root: &Path) -> Check {
    let node = root.join("dev/kvm");
    if !node.exists() {
        return Check::new(
            MODELS,
            "KVM",
            State::Missing,
            "there is no /dev/kvm: kernels run under TCG, which is some 20 times slower and cannot \
             time contention",
        )
        .remedy(
            "modprobe kvm_intel or kvm_amd; in a virtual machine ask for nested virtualisation",
        );
    }
    Check::new(
        MODELS,
        "KVM",
        State::Unknown,
        "/dev/kvm exists, which does not prove that it works; the kernel lab boots a guest to \
         find out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_its_package_named() {
        assert!(find("sh").is_some());
        let check = program(WORKLOADS, "no-such-program", "a-package", "a test");
        assert_eq!(check.state, State::Missing);
        assert_eq!(
            check.remedy.as_deref(),
            Some("apt-get install a-package (as root)")
        );
    }

    #[test]
    fn a_node_is_no_proof() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(kvm(root.path()).state, State::Missing);
        std::fs::create_dir(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join("dev/kvm"), "").unwrap();
        assert_eq!(kvm(root.path()).state, State::Unknown);
    }
}
