//! The modules that a ready kernel needs before the network is there, each
//! after those that it depends on. A kernel that was built for the machine has
//! them built in, and needs none.

use crate::module_file;
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the files of these modules and of all that they depend on, in the order in
/// which they load. One that the folder does not have is built in.
///
/// # Errors
/// [`Error::Failed`] if one cannot be read or unpacked.
pub(crate) fn in_order(folder: &Path, wanted: &[String]) -> Result<Vec<PathBuf>, Error> {
    let mut all = BTreeMap::new();
    list(folder, &mut all);
    let mut order = Vec::new();
    for name in wanted {
        add(&all, &normal(name), &mut order)?;
    }
    Ok(order)
}

fn add(all: &BTreeMap<String, PathBuf>, name: &str, order: &mut Vec<PathBuf>) -> Result<(), Error> {
    let Some(path) = all.get(name) else {
        return Ok(());
    };
    if order.contains(path) {
        return Ok(());
    }
    for needed in depends(&module_file::contents(path)?) {
        add(all, &needed, order)?;
    }
    order.push(path.clone());
    Ok(())
}

/// Returns what a module says that it depends on.
fn depends(bytes: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = bytes.windows(KEY.len()).position(|w| w == KEY) else {
        return Vec::new();
    };
    let value = bytes[at + KEY.len()..].split(|byte| *byte == 0).next();
    let value = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    let names = value.split(',').filter(|name| !name.is_empty());
    names.map(normal).collect()
}

/// Returns a module's name in one form: files write it with `-` or `_`.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn list(folder: &Path, all: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // `build` and `source` of an installed kernel lead out of the folder.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&path, all);
            continue;
        }
        if let Some(name) = module_file::plain_name(&path) {
            all.insert(normal(name.trim_end_matches(".ko")), path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_depends_on() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, depends: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("ELF\0license=GPL\0depends={depends}\0")).unwrap();
        };
        write("net/virtio_net.ko", "net_failover,virtio-ring");
        write("net/net_failover.ko", "failover");
        write("core/failover.ko", "");
        write("virtio/virtio_ring.ko", "");
        write("virtio/virtio-pci.ko", "virtio_ring");
        write("other/other.ko.xz", "");
        let names = |wanted: &[&str]| -> Vec<String> {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            let files = in_order(folder.path(), &wanted).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            files.iter().map(name).collect()
        };
        assert_eq!(
            names(&["virtio_pci", "virtio_net", "built_in"]),
            [
                "virtio_ring.ko",
                "virtio-pci.ko",
                "failover.ko",
                "net_failover.ko",
                "virtio_net.ko"
            ]
        );
        let error = in_order(folder.path(), &["other".into()]).unwrap_err();
        // It is no archive, or there is nothing to unpack it with.
        assert!(error.to_string().contains("xz"), "{error}");
    }
}
