//! Brings the machine home: by asking its measured kernel, by its own
//! watchdog, or by its power; and what a kernel that failed said last.
//!
//! It must never leave the machine elsewhere without saying where it is and how
//! to get it back.

use super::{BOOT_ID, LOOK, Machine, Place, Trouble, Up, shell};
use crate::test_machine::ssh::To;
use locklab_host::interrupt::last_words;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A command that switches a machine off and on has at least this long.
const POWER: Duration = Duration::from_secs(300);

/// Lines of a console that are kept.
pub(super) const LAST_LINES: usize = 12;

/// Holds those of them before a panic: what the kernel was doing.
pub(super) const BEFORE_PANIC: usize = 4;

const PSTORE: &str =
    "cat /sys/fs/pstore/dmesg-* /var/lib/systemd/pstore/*/dmesg.txt 2>/dev/null | tail -n 200";

/// Returns the lines that say most about the end of a kernel: those around its panic,
/// which stands above a trace of any length, or else the last.
pub(super) fn tail(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let panic = lines.iter().rposition(|line| line.contains("Kernel panic"));
    let from = match panic {
        Some(at) => at.saturating_sub(BEFORE_PANIC),
        None => lines.len().saturating_sub(LAST_LINES),
    };
    lines[from..]
        .iter()
        .take(LAST_LINES)
        .map(|line| line.trim_end().to_owned())
        .collect()
}

impl Machine<'_> {
    pub(super) fn arrived(&mut self, boot_id: &str) {
        self.place = Place::Home(boot_id.trim().to_owned());
        last_words(None);
    }

    /// Returns a failed sample: brings the machine home, and keeps what its kernel said
    /// last.
    pub(super) fn failed(&mut self, why: String) -> Trouble {
        let console = self.last_lines();
        let home = self.go_home();
        self.lost_sample(why, console, home)
    }

    /// Returns the same of a kernel that has not answered for the whole limit: nothing
    /// is asked of it again if it can be switched off.
    pub(super) fn silent(&mut self, why: String) -> Trouble {
        let console = self.last_lines();
        let home = self.bring_home(self.settings.power_cycle.is_none());
        self.lost_sample(why, console, home)
    }

    fn lost_sample(&self, why: String, console: Vec<String>, home: Result<(), Trouble>) -> Trouble {
        match home {
            Ok(()) => Trouble::Failed {
                why,
                console: if console.is_empty() {
                    self.left_behind()
                } else {
                    console
                },
            },
            Err(fatal) => fatal,
        }
    }

    pub(super) fn interrupted(&mut self) -> Trouble {
        if let Place::Kernel(_) = self.place {
            self.cache.note(&format!(
                "interrupted; restarting {} into its own system. Ctrl-C again leaves it: {}",
                self.ssh.destination(),
                self.how_to_get_it_back()
            ));
        }
        match self.go_home() {
            Ok(()) => Trouble::Interrupted,
            Err(fatal) => fatal,
        }
    }

    /// Restarts the machine into its own system, unless it is there. Ctrl-C
    /// does not shorten this: a second one ends the command.
    pub(crate) fn go_home(&mut self) -> Result<(), Trouble> {
        self.bring_home(true)
    }

    /// Brings the machine home: by asking its kernel, if that may answer, and
    /// then by its power.
    fn bring_home(&mut self, asking: bool) -> Result<(), Trouble> {
        let Place::Kernel(up) = self.place.clone() else {
            return Ok(());
        };
        let began = Instant::now();
        let never = AtomicBool::new(false);
        let mut home = false;
        if asking {
            home = self.wait_for_home(&up, &never, true);
        }
        let home = home || self.power_cycle(&up, &never)?;
        if home {
            self.home_seconds = Some(began.elapsed().as_secs_f64());
            last_words(None);
            return Ok(());
        }
        Err(Trouble::Fatal(format!(
            "{} is not home within {} s: {}; when it is home, the same command with --resume \
             continues",
            self.ssh.destination(),
            self.limit().as_secs(),
            self.how_to_get_it_back()
        )))
    }

    /// Waits until its own system answers, and meanwhile asks the measured kernel to
    /// restart if that may answer: one that is still booting hears only a later call.
    fn wait_for_home(&mut self, up: &Up, never: &AtomicBool, asking: bool) -> bool {
        let (began, mut patience) = (Instant::now(), self.patience());
        while patience.lasts() {
            if asking {
                let _ = self.ssh.call(To::Kernel, "reboot", None, LOOK, never);
            }
            let answer = self.ssh.call(To::Home, BOOT_ID, None, LOOK, never);
            // A system that is being left still answers for a while.
            let leaving = began.elapsed() < LOOK.min(self.limit());
            match answer {
                Ok(id) if id.trim() == up.before && leaving => std::thread::sleep(self.pause),
                Ok(id) if id.trim() != up.facts.get("boot-id") => {
                    self.arrived(&id);
                    return true;
                }
                _ => std::thread::sleep(self.pause),
            }
        }
        false
    }

    /// Switches the machine off and on, if there is a command for it.
    fn power_cycle(&mut self, up: &Up, never: &AtomicBool) -> Result<bool, Trouble> {
        let Some(command) = self.settings.power_cycle.clone() else {
            return Ok(false);
        };
        self.cache.note(&format!(
            "{} is not home; power cycle by: {command}",
            self.ssh.destination()
        ));
        let log = self.session.file("power-cycle");
        let ended = shell(&command, self.session.path()).run(&log, self.limit().max(POWER), never);
        let failure = match ended {
            Ok(ended) => ended.failure(),
            Err(trouble) => Some(trouble.to_string()),
        };
        if let Some(failure) = failure {
            let stderr = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
            return Err(Trouble::Fatal(format!(
                "the power cycle of {} failed ({failure}: {}); {}",
                self.ssh.destination(),
                stderr.lines().last().unwrap_or("it said nothing"),
                self.how_to_get_it_back()
            )));
        }
        Ok(self.wait_for_home(up, never, false))
    }

    pub(super) fn how_to_get_it_back(&self) -> String {
        format!(
            "{} may be in a measured kernel; it restarts into its own system by itself after {} s \
             without a command, or now by: {}; a power cycle does it too",
            self.ssh.destination(),
            self.limit().as_secs(),
            self.ssh.by_hand("reboot")
        )
    }

    /// Returns the lines of the console since the present start that matter.
    fn last_lines(&self) -> Vec<String> {
        let Some((_, log)) = &self.console else {
            return Vec::new();
        };
        let bytes = std::fs::read(log).unwrap_or_default();
        let from = usize::try_from(self.console_from).unwrap_or(0);
        tail(&String::from_utf8_lossy(
            bytes.get(from..).unwrap_or_default(),
        ))
    }

    /// Returns what a kernel that panicked left in the firmware's memory.
    fn left_behind(&self) -> Vec<String> {
        let never = AtomicBool::new(false);
        let text = self.ssh.call(To::Home, PSTORE, None, LOOK, &never);
        tail(&text.unwrap_or_default())
    }
}

impl Drop for Machine<'_> {
    /// Brings the machine home, whatever ended the session.
    fn drop(&mut self) {
        if let Err(Trouble::Fatal(why)) = self.go_home() {
            self.cache.note(&why);
        }
        last_words(None);
    }
}
