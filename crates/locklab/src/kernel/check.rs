//! Whether the counts of a session repeat, and what the plugin costs: the
//! first run is made again, and once more without the plugin, alone on the
//! machine. A session whose counts do not repeat must never look like one
//! whose do.

use crate::kernel::boot::Boot;
use crate::kernel::cells;
use crate::kernel::guest;
use crate::kernel::outcome::{Measured, Outcome};
use crate::kernel::session::{Kernel, RunPair, Session};
use crate::kernel::workload::Load;
use locklab_host::error::Error;

impl Session<'_> {
    /// The first run again, and once more without the plugin, alone on the
    /// machine: whether counts repeat, and what the plugin costs.
    ///
    /// # Errors
    /// QEMU fails, or Ctrl-C.
    pub fn check(&self, baseline: &Kernel, load: &Load, pairs: &[RunPair]) -> Result<Check, Error> {
        let (Some(image), Some(seed), Some(pair)) =
            (baseline.images.first(), self.seeds.first(), pairs.first())
        else {
            return Err(Error::Failed("there is no run to repeat".into()));
        };
        let runs = self.lab.folder("runs")?;
        let folder = tempfile::Builder::new()
            .prefix("check-")
            .tempdir_in(&runs)
            .map_err(|e| self.lab.cannot_write(&runs, &e))?;
        let initramfs = folder.path().join("initramfs");
        guest::write_initramfs(self.lab, load, baseline.modules.as_deref(), &initramfs)?;
        let cmdline = format!("{} {}", load.workload.cmdline(), baseline.cmdline);
        let boot = Boot {
            image,
            initramfs: &initramfs,
            cmdline: cmdline.trim(),
            memory_mib: load.workload.memory_mib(),
            vcpus: load.vcpus,
            seed: *seed,
            accelerator: self.accelerator,
            counted: true,
            limit: self.limit,
        };
        let once = |counted| {
            let boot = Boot {
                counted,
                ..boot.clone()
            };
            self.qemu.boot(&boot, folder.path(), self.lab.interrupt)
        };
        let again = once(true)?;
        let boots = pairs
            .iter()
            .flat_map(|pair| [&pair.baseline, &pair.experiment])
            .filter_map(|outcome| Some(outcome.as_ref().ok()?.boot_seconds))
            .fold(0.0, f64::max);
        Ok(Check {
            first: pair.baseline.clone(),
            again,
            plain: once(false)?,
            longest_boot: boots,
        })
    }
}

/// What a session says of itself; see [`Session::check`].
#[derive(Clone, Debug)]
pub struct Check {
    first: Outcome,
    again: Outcome,
    plain: Outcome,
    longest_boot: f64,
}

impl Check {
    /// For the head of a report.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.first.is_ok() && self.differs().is_none() {
            facts.push((
                "Repeated",
                "the first run, a second time: the same counts to the last digit".into(),
            ));
        }
        facts.push((
            "Boot",
            format!("{:.1} s to the workload, the longest", self.longest_boot),
        ));
        if let (Ok(again), Ok(plain)) = (&self.again, &self.plain) {
            facts.push((
                "Plugin",
                format!(
                    "{:.2} times the CPU time of TCG without it ({:.1} s, {:.1} s)",
                    again.cpu_seconds / plain.cpu_seconds,
                    again.cpu_seconds,
                    plain.cpu_seconds
                ),
            ));
        }
        facts
    }

    /// Why the counts are not to be trusted, if they are not.
    #[must_use]
    pub fn differs(&self) -> Option<String> {
        match (&self.first, &self.again) {
            (Ok(first), Ok(again))
                if (first.counts, first.elapsed_ns) == (again.counts, again.elapsed_ns)
                    && cells::of(first) == cells::of(again) =>
            {
                None
            }
            // Both failed: the verdict says so.
            (Err(_), Err(_)) => None,
            (Ok(first), Ok(again)) => Some(format!(
                "the first run gave other counts the second time, so the counts here do not \
                 repeat: {} and {}",
                show(first),
                show(again)
            )),
            (Err(invalid), Ok(_)) | (Ok(_), Err(invalid)) => Some(format!(
                "the first run failed once and not the other time: {}",
                invalid.why
            )),
        }
    }
}

fn show(measured: &Measured) -> String {
    measured.counts.map_or_else(
        || "none".into(),
        |counts| {
            format!(
                "user {} and kernel {} instructions, {} and {} misses",
                counts.user.instructions,
                counts.kernel.instructions,
                counts.user.l1i_misses,
                counts.kernel.l1i_misses
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::outcome::sample as run;

    #[test]
    fn a_run_that_does_not_repeat_is_said() {
        let check = |again| Check {
            first: run(9),
            again,
            plain: run(9),
            longest_boot: 3.25,
        };
        let same = check(run(9));
        assert_eq!(same.differs(), None);
        let facts = same.facts();
        assert!(facts[0].1.contains("to the last digit"), "{facts:?}");
        assert!(facts[1].1.starts_with("3.2 s"), "{facts:?}");
        assert!(facts[2].1.starts_with("1.00 times"), "{facts:?}");
        let other = check(run(10));
        assert!(other.differs().unwrap().contains("9 misses"));
        assert!(other.facts().iter().all(|(name, _)| *name != "Repeated"));
    }
}
