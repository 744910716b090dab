//! The configuration that the stand-in's own system says it has: that of a
//! distribution's kernel with everything turned off that this machine has not, so that
//! a kernel of it is built in minutes. Some of it is modules, as in a distribution's.

use std::path::{Path, PathBuf};

/// The options that the machine has. Locklab adds those that the workloads and kexec take.
const KEPT: &[&str] = &[
    "CONFIG_64BIT=y",
    "CONFIG_SMP=y",
    "CONFIG_ACPI=y",
    "CONFIG_PCI=y",
    "CONFIG_PCI_MSI=y",
    "CONFIG_RELOCATABLE=y",
    "CONFIG_RANDOM_TRUST_CPU=y",
    "CONFIG_RANDOM_TRUST_BOOTLOADER=y",
    "CONFIG_HPET_TIMER=y",
    "CONFIG_MULTIUSER=y",
    "CONFIG_PRINTK=y",
    "CONFIG_BLOCK=y",
    "CONFIG_NET=y",
    "CONFIG_INET=y",
    "CONFIG_NETDEVICES=y",
    "CONFIG_NET_CORE=y",
    "CONFIG_VIRTIO_MENU=y",
    "CONFIG_VIRTIO_PCI=y",
    "CONFIG_FAILOVER=m",
    "CONFIG_NET_FAILOVER=m",
    "CONFIG_VIRTIO_NET=m",
    "CONFIG_VIRTIO_BLK=m",
    "CONFIG_MODULES=y",
    // Not loaded there, so no kernel of it may have them.
    "CONFIG_SOUND=m",
    "CONFIG_SND=m",
];

/// Writes it to `folder`, from the configuration of a ready kernel.
pub(super) fn write(ready: &Path, folder: &Path) -> PathBuf {
    let text =
        std::fs::read_to_string(ready).unwrap_or_else(|e| panic!("{}: {e}", ready.display()));
    let lines: String = text.lines().map(|line| kept(line) + "\n").collect();
    let path = folder.join("machine.config");
    std::fs::write(&path, lines).unwrap();
    path
}

/// Returns a line with its option as the machine has it. Every option of the kernel stands in
/// the text, set or not; numbers and names stay.
fn kept(line: &str) -> String {
    let unset = line
        .strip_prefix("# ")
        .and_then(|rest| rest.strip_suffix(" is not set"));
    let set = line
        .split_once('=')
        .filter(|(_, value)| matches!(*value, "y" | "m"));
    let Some(name) = unset.or(set.map(|(name, _)| name)) else {
        return line.to_owned();
    };
    let wanted = KEPT
        .iter()
        .find(|option| option.split_once('=').is_some_and(|(n, _)| n == name));
    wanted.map_or_else(
        || format!("# {name} is not set"),
        |option| (*option).to_owned(),
    )
}
