//! The initramfs of a measured kernel on a test machine: our program as its
//! first and as its only shell, dropbear with the session's keys, the network,
//! and the programs of the workloads. It must never hold anything of the user's
//! besides these.

use crate::Kernel;
use crate::cache::Cache;
use crate::guest::{Contents, FirstProgram, first_program, read};
use crate::module_file;
use crate::test_machine::home::Network;
use crate::test_machine::modules;
use crate::test_machine::session::Session;
use crate::workload::Load;
use locklab_host::error::Error;
use std::path::Path;
use std::time::Duration;

/// Writes the initramfs of a kernel that runs these loads.
///
/// # Errors
/// If a program is missing, with its package, or a file cannot be read or
/// written.
pub(crate) fn write(
    cache: &Cache<'_>,
    session: &Session,
    network: &Network,
    limit: Duration,
    kernel: &Kernel,
    loads: &[&Load],
    path: &Path,
) -> Result<(), Error> {
    let mut files = Contents::default();
    let program = read(&first_program(cache, FirstProgram::TestMachine)?)?;
    files.add("init", program.clone());
    files.add("lab/test-machine", program);
    files.add("lab/hostkey", read(&session.file("hostkey"))?);
    files.add("root/.ssh/authorized_keys", read(&session.file("key.pub"))?);
    files.add("etc/passwd", "root:x:0:0::/root:/lab/test-machine\n");
    files.add("etc/group", "root:x:0:\n");
    files.add("etc/shells", "/lab/test-machine\n");
    files.add("lab/machine", machine(network, limit));
    files.add_program("/usr/sbin/dropbear", "dropbear-bin")?;
    files.add_program("/usr/bin/sha256sum", "coreutils")?;
    let needed = match &kernel.modules {
        Some(folder) => modules::in_order(folder, &network.drivers)?,
        None => Vec::new(),
    };
    let mut list = String::new();
    for module in needed {
        let name = module_file::plain_name(&module).unwrap_or_default();
        list.push_str(&format!("/lab/{name}\n"));
        files.add(&format!("lab/{name}"), module_file::contents(&module)?);
    }
    files.add("lab/modules", list);
    for load in loads {
        files.add_workload(load, kernel)?;
    }
    files.pack(path).map_err(|e| cache.cannot_write(path, &e))
}

fn machine(network: &Network, limit: Duration) -> String {
    let mut text = format!(
        "mac {}\naddress {}\nprefix {}\nport {}\nlimit {}\n",
        network.mac,
        network.address,
        network.prefix,
        network.port,
        limit.as_secs().max(1)
    );
    if let Some(gateway) = network.gateway {
        text.push_str(&format!("gateway {gateway}\n"));
    }
    text
}
