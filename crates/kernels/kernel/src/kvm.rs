//! Decides whether guests run on the processor (KVM) or in QEMU's translator (TCG).
//!
//! An existing device node proves nothing, and in a nested machine it may
//! hang; so a guest is booted, for at most 20 seconds. The result is kept in
//! the cache for as long as the machine runs (its boot id) and QEMU is the
//! same, because a node that hangs would cost those seconds in every command. A
//! failure that may be the kernel's own must never be kept: the next kernel
//! would be affected by it.

use crate::boot::{Accelerator, Qemu};
use crate::cache::Cache;
use crate::guests::{GuestRun, Guests};
use crate::making::Kernel;
use crate::settings::ProbeOptions;
use crate::workload::{Load, Workload};
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const NODE: &str = "/dev/kvm";
const LIMIT: Duration = Duration::from_secs(20);

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Probe {
    Works,
    /// QEMU failed before any of the kernel ran.
    Machine(String),
    /// The kernel began, so the fault may be the kernel's.
    Kernel(String),
}

/// The form in which the result is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    boot: String,
    qemu: String,
    /// Says why there is no KVM; `None` where there is.
    why: Option<String>,
}

/// Chooses KVM where a probe boot succeeds, and otherwise gives the reason.
///
/// # Errors
/// If a load has several CPUs that must not take turns and there is no KVM, or the
/// cache cannot be written; also after Ctrl-C.
pub fn choose(
    cache: &Cache<'_>,
    qemu: &Qemu,
    kernel: &Kernel,
    options: ProbeOptions,
    loads: &[Load],
) -> Result<(Accelerator, String), Error> {
    let (accelerator, why) = found(cache, qemu, kernel, options)?;
    if accelerator == Accelerator::Tcg {
        for load in loads {
            load.check_in_turn()
                .map_err(|error| Error::Failed(format!("{error}; this is {why}")))?;
        }
    }
    Ok((accelerator, why))
}

fn found(
    cache: &Cache<'_>,
    qemu: &Qemu,
    kernel: &Kernel,
    options: ProbeOptions,
) -> Result<(Accelerator, String), Error> {
    if options.tcg {
        return Ok((Accelerator::Tcg, "TCG, as asked".into()));
    }
    if let Err(e) = std::fs::File::options().read(true).write(true).open(NODE) {
        return Ok((Accelerator::Tcg, format!("TCG: {NODE}: {e}")));
    }
    // The result of one machine does not hold for another, although they may
    // share a home folder.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let machine = [boot.trim(), &qemu.version];
    let (found, kept) = remembered(cache, machine, options.again, || probe(cache, qemu, kernel))?;
    let earlier = if kept {
        " (found before, since this machine was started; --set probe=true looks again)"
    } else {
        ""
    };
    Ok(match found {
        Probe::Works => (Accelerator::Kvm, format!("KVM{earlier}")),
        Probe::Machine(why) | Probe::Kernel(why) => {
            (Accelerator::Tcg, format!("TCG: {why}{earlier}"))
        }
    })
}

/// Returns the result for this machine and QEMU, and whether it was in the cache.
fn remembered(
    cache: &Cache<'_>,
    [boot, qemu]: [&str; 2],
    again: bool,
    probe: impl FnOnce() -> Result<Probe, Error>,
) -> Result<(Probe, bool), Error> {
    let path = cache.folder("")?.join("kvm-probe.json");
    let kept = std::fs::read_to_string(&path).ok();
    // A file of another version, or a partial file, is ignored.
    let kept: Option<Kept> = kept.and_then(|text| serde_json::from_str(&text).ok());
    if let Some(kept) =
        kept.filter(|k| !again && !boot.is_empty() && k.boot == boot && k.qemu == qemu)
    {
        return Ok((kept.why.map_or(Probe::Works, Probe::Machine), true));
    }
    let found = probe()?;
    let why = match &found {
        Probe::Works => None,
        Probe::Machine(why) => Some(why.clone()),
        Probe::Kernel(_) => return Ok((found, false)),
    };
    let kept = Kept {
        boot: boot.into(),
        qemu: qemu.into(),
        why,
    };
    let text = serde_json::to_string(&kept)
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
    Ok((found, false))
}

fn probe(cache: &Cache<'_>, qemu: &Qemu, kernel: &Kernel) -> Result<Probe, Error> {
    cache.note("probing KVM, for at most 20 s");
    let guests = Guests {
        cache,
        qemu,
        accelerator: Accelerator::Kvm,
        limit: LIMIT,
    };
    let run = GuestRun {
        kernel,
        layout: 0,
        load: &Load::new(Workload::Boot),
        seed: 1,
        counted: false,
        alone: false,
    };
    match guests.run(&run) {
        Ok(Ok(_)) => Ok(Probe::Works),
        Ok(Err(invalid)) => {
            let why = format!("a probe boot failed: {}", invalid.why);
            Ok(if invalid.console.is_empty() {
                Probe::Machine(why)
            } else {
                Probe::Kernel(why)
            })
        }
        Err(Error::Interrupted(text)) => Err(Error::Interrupted(text)),
        Err(other) => Ok(Probe::Machine(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_machine_is_probed_once_and_a_kernels_fault_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().into(),
            interrupt: &interrupt,
            quiet: true,
        };
        let probes = Cell::new(0);
        let look = |machine, again, found: &Probe| {
            let probe = || {
                probes.set(probes.get() + 1);
                Ok(found.clone())
            };
            let (answer, kept) = remembered(&cache, machine, again, probe).unwrap();
            (answer, kept, probes.get())
        };
        let (here, hangs) = (["boot-1", "QEMU 7.2"], Probe::Machine("hangs".into()));
        let panics = Probe::Kernel("panic".into());
        assert_eq!(look(here, false, &panics), (panics.clone(), false, 1));
        assert_eq!(look(here, false, &hangs), (hangs.clone(), false, 2));
        assert_eq!(look(here, false, &Probe::Works), (hangs.clone(), true, 2));
        // Asked for again, another boot of the machine, another QEMU.
        assert_eq!(look(here, true, &Probe::Works), (Probe::Works, false, 3));
        assert_eq!(look(here, false, &hangs), (Probe::Works, true, 3));
        assert!(!look(["boot-2", "QEMU 7.2"], false, &hangs).1);
        assert!(!look(["boot-2", "QEMU 8.0"], false, &hangs).1);
        // A machine without a boot id has nothing to remember by.
        assert!(!look(["", "QEMU 8.0"], false, &hangs).1);
        assert!(!look(["", "QEMU 8.0"], false, &hangs).1);
        std::fs::write(folder.path().join("kvm-probe.json"), "{").unwrap();
        assert!(!look(here, false, &hangs).1);
    }
}
