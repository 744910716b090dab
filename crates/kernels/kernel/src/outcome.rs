//! The outcome of a boot: a measured run, or why there is none.
//!
//! A guest that panics, hangs, runs out of memory or reports a failure
//! gives its last console lines and no counts; it must never be treated as a
//! result.

use crate::counts::{Counts, FrontEnd, Spans};
use crate::lock_profile::{self, LockProfile};
use crate::workload::Load;
use locklab_document::{Column, Table, render};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The results of a guest that ended normally.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Units of work in the measured part.
    pub work: u64,
    /// The name of a unit: request, call, switch.
    pub unit: String,
    /// Time of the measured part by the guest's clock; under TCG this is a
    /// count of instructions and not a time.
    pub elapsed_ns: u64,
    /// Counts; `None` under KVM.
    pub counts: Option<Counts>,
    /// The losses of a front end, if one is modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontend: Option<FrontEnd>,
    /// The counts within the spans that the kernel marks, if it marks any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
    /// All values that the guest sent.
    pub results: BTreeMap<String, String>,
    /// Waits for the kernel's locks, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<LockProfile>,
    /// Time from QEMU's start to the workload, on this machine, in seconds.
    pub boot_seconds: f64,
    /// Time of the whole run on this machine, in seconds.
    pub wall_seconds: f64,
    /// CPU time of QEMU, in seconds.
    pub cpu_seconds: f64,
}

impl Measured {
    /// Returns the run as text: the load, the accelerator and `why` it was chosen, and
    /// the counts or the time. `slowdown` is the plugin's, if it was measured.
    #[must_use]
    pub fn text(&self, load: &Load, why: &str, slowdown: Option<f64>) -> String {
        let mut text = format!(
            "{}: {} x 1 {}, on {why}; {:.1} s of CPU time, {:.1} s to the workload\n",
            load.workload.name(),
            self.work,
            self.unit,
            self.cpu_seconds,
            self.boot_seconds
        );
        match &self.counts {
            Some(counts) => {
                let front = self.frontend.as_ref();
                let modes = [
                    ("user", counts.user, front.map(|front| &front.user)),
                    ("kernel", counts.kernel, front.map(|front| &front.kernel)),
                ];
                let rows = modes.map(|(name, mode, account)| {
                    let mut row = vec![
                        name.to_owned(),
                        mode.instructions.to_string(),
                        mode.l1i_misses.to_string(),
                        format!("{:.1}", mode.instructions as f64 / self.work as f64),
                    ];
                    row.extend(account.map(|account| format!("{:.0}", account.cycles.value)));
                    row
                });
                let mut columns = vec![
                    Column::words("Model", 8),
                    Column::new("Instructions", 16),
                    Column::new("L1i misses", 14),
                    Column::new("Instr/unit", 12),
                ];
                columns.extend(front.map(|_| Column::new("Cycles", 14)));
                text += &render::table(&Table::new(columns, rows.to_vec()));
            }
            None => {
                let _ = writeln!(
                    text,
                    "{:.1} ns per {}",
                    self.elapsed_ns as f64 / self.work as f64,
                    self.unit
                );
            }
        }
        if let Some(slowdown) = slowdown {
            let _ = writeln!(
                text,
                "The plugin took {slowdown:.2} times the CPU time of plain TCG."
            );
        }
        text
    }
}

/// Says why a boot has no result: one sentence, then the console's last lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Says why there is no result, as one sentence.
    pub why: String,
    /// The last lines of the console.
    pub console: Vec<String>,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)?;
        if !self.console.is_empty() {
            f.write_str("; the console's last lines:")?;
        }
        self.console
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Says how a boot ended.
pub type Outcome = Result<Measured, Invalid>;

/// Reads the files that a boot left in its folder.
pub fn read(folder: &Path, counted: bool) -> Outcome {
    let results = std::fs::read_to_string(folder.join("results")).unwrap_or_default();
    let measured = match parse(&results) {
        Ok(measured) => measured,
        Err(None) => {
            let console = std::fs::read(folder.join("console")).unwrap_or_default();
            let why = cause(&String::from_utf8_lossy(&console));
            return Err(invalid(why, folder));
        }
        Err(Some(why)) => return Err(invalid(why, folder)),
    };
    if !counted {
        return Ok(measured);
    }
    let text = std::fs::read_to_string(folder.join("counts.json")).unwrap_or_default();
    let report = read_counts(&text).map_err(|why| invalid(why, folder))?;
    Ok(Measured {
        counts: Some(report.counts),
        frontend: report.frontend,
        spans: report.spans,
        ..measured
    })
}

/// Reads the results of a run: one `KEY VALUE` per line.
///
/// # Errors
/// Why there is no result; `None` if the run broke off without saying why.
pub fn parse(text: &str) -> Result<Measured, Option<String>> {
    let results = parse_results(text);
    if let Some(why) = results.get("failed") {
        return Err(Some(format!("the workload failed: {why}")));
    }
    if !results.contains_key("done") {
        return Err(None);
    }
    let number = |name: &str| results.get(name)?.parse::<u64>().ok();
    let (Some(work @ 1..), Some(elapsed_ns)) = (number("work"), number("elapsed-ns")) else {
        return Err(Some("the run gave an incomplete result".into()));
    };
    Ok(Measured {
        work,
        unit: results.get("unit").cloned().unwrap_or_default(),
        elapsed_ns,
        counts: None,
        frontend: None,
        spans: None,
        results,
        locks: LockProfile::read(text).map_err(Some)?,
        boot_seconds: 0.0,
        wall_seconds: 0.0,
        cpu_seconds: 0.0,
    })
}

fn parse_results(results: &str) -> BTreeMap<String, String> {
    results
        .lines()
        .filter(|line| !lock_profile::is_line(line))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[derive(Deserialize)]
struct Markers {
    begins: u64,
    ends: u64,
}

/// The plugin's report.
#[derive(Deserialize)]
struct Report {
    markers: Markers,
    all_vcpus_counted: bool,
    #[serde(flatten)]
    counts: Counts,
    frontend: Option<FrontEnd>,
    spans: Option<Spans>,
}

fn read_counts(text: &str) -> Result<Report, String> {
    let report: Report = serde_json::from_str(text)
        .map_err(|e| format!("the plugin's report cannot be read: {e}"))?;
    if (report.markers.begins, report.markers.ends) != (1, 1) {
        return Err(format!(
            "the plugin saw {} begin and {} end markers instead of one each",
            report.markers.begins, report.markers.ends
        ));
    }
    if !report.all_vcpus_counted {
        return Err("the plugin did not count every vCPU".into());
    }
    Ok(report)
}

/// Returns the reason on the console of a guest that ended without a result.
fn cause(console: &str) -> String {
    for (needle, what) in [
        ("Out of memory: Killed", "the guest ran out of memory"),
        (
            "System is deadlocked on memory",
            "the guest ran out of memory",
        ),
        ("Kernel panic", "the guest's kernel panicked"),
    ] {
        if let Some(line) = console.lines().find(|line| line.contains(needle)) {
            let line = line.split("] ").last().unwrap_or(line).trim();
            return format!("{what} ({line})");
        }
    }
    "the guest ended without a result".into()
}

/// Returns the outcome of a run without a result, with the console's last lines.
pub fn invalid(why: String, folder: &Path) -> Invalid {
    let console = std::fs::read(folder.join("console")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    Invalid {
        why,
        console: lines
            .iter()
            .skip(lines.len().saturating_sub(12))
            .map(|line| line.trim_end().to_owned())
            .collect(),
    }
}

/// Returns a run for tests: 10 units, with the given misses of the kernel.
#[cfg(test)]
pub fn sample(misses: u64) -> Outcome {
    let mode = |instructions, l1i_misses| crate::counts::ModeCounts {
        instructions,
        l1i_fetches: 1,
        l1i_misses,
    };
    Ok(Measured {
        work: 10,
        unit: "call".into(),
        elapsed_ns: 1,
        counts: Some(Counts {
            user: mode(1000, 0),
            kernel: mode(4000, misses),
        }),
        frontend: None,
        spans: None,
        results: Default::default(),
        locks: None,
        boot_seconds: 1.0,
        wall_seconds: 1.0,
        cpu_seconds: 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(results: &str, console: &str, counts: &str) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("results", results),
            ("console", console),
            ("counts.json", counts),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        read(folder.path(), true)
    }

    const GOOD: &str = "booted-ms 900\nunit call\nwork 10\nelapsed-ns 5\ndone\n";

    fn counts(begins: u64) -> String {
        let mode = r#"{"instructions": 2, "l1i_fetches": 3, "l1i_misses": 4}"#;
        format!(
            r#"{{"schema": 1, "markers": {{"begins": {begins}, "ends": 1}},
                "all_vcpus_counted": true, "user": {mode}, "kernel": {mode}}}"#
        )
    }

    #[test]
    fn a_good_run_is_read() {
        let measured = outcome(GOOD, "", &counts(1)).unwrap();
        assert_eq!((measured.work, measured.unit.as_str()), (10, "call"));
        assert_eq!(measured.counts.unwrap().kernel.l1i_misses, 4);
    }

    #[test]
    fn what_went_wrong_is_said_and_never_a_result() {
        for (results, console, counts, needle) in [
            (
                "",
                "a\n[ 1.0] Kernel panic - not syncing: x\n",
                counts(1),
                "panicked (Kernel panic",
            ),
            (
                "work 1\n",
                "Out of memory: Killed process 3 (ab)\n",
                counts(1),
                "out of memory",
            ),
            ("failed cannot pin\n", "", counts(1), "cannot pin"),
            ("work 10\n", "", counts(1), "without a result"),
            ("done\n", "", counts(1), "incomplete"),
            (GOOD, "", counts(0), "0 begin"),
            (GOOD, "", String::new(), "report cannot be read"),
        ] {
            let invalid = outcome(results, console, &counts).unwrap_err();
            assert!(invalid.to_string().contains(needle), "{invalid}");
        }
    }

    #[test]
    fn the_last_lines_of_the_console_are_kept() {
        let console: String = (0..40).map(|i| format!("line {i}\r\n\n")).collect();
        let invalid = outcome("", &console, "").unwrap_err();
        assert_eq!(invalid.console.len(), 12);
        assert_eq!(invalid.console.last().unwrap(), "line 39");
    }
}
