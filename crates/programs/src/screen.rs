//! Which workloads are worth a question about inlining: for each, the share
//! of pipeline slots that the front end left empty (top-down, level 1) where
//! the processor counts it, and the share of CPU time in the kernel.
//!
//! Screening only: medians of a few runs of one subject. Never a verdict.

use crate::counters::Filter;
use crate::launcher::Launcher;
use crate::subject::Subject;
use crate::workloads::{Fault, WorkloadSpec};
use locklab_lab::verdicts::median;
use serde::Serialize;

/// What a few runs of a workload showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Screened {
    /// Its title.
    pub name: String,
    /// Share of pipeline slots that the front end left empty.
    #[serde(rename = "front_end_bound")]
    pub front_end: Option<f64>,
    /// Share of its CPU time in the kernel.
    #[serde(rename = "kernel_share")]
    pub kernel: Option<f64>,
    /// Why it was not run, or not to the end.
    pub not_run: Option<String>,
}

impl Screened {
    /// What it is ranked by: the front end where it is known, else the
    /// kernel's share.
    fn rank(&self) -> f64 {
        self.front_end.or(self.kernel).unwrap_or(-1.0)
    }
}

/// Runs each workload `runs` times after one run that is left out; the one to
/// look at first comes first.
///
/// # Errors
/// [`Fault::Interrupted`], or a workload that does not exist. A run that
/// fails is an entry that says so.
pub fn screen(
    workloads: &[WorkloadSpec],
    runs: u32,
    launcher: &mut Launcher,
) -> Result<Vec<Screened>, Fault> {
    let mut all = Vec::new();
    for spec in workloads {
        all.push(one(spec, runs, launcher)?);
    }
    all.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    Ok(all)
}

fn one(spec: &WorkloadSpec, runs: u32, launcher: &mut Launcher) -> Result<Screened, Fault> {
    let mut workload = spec.workload().map_err(Fault::Unrunnable)?;
    let subject = Subject::default();
    let mut screened = Screened {
        name: spec.title(),
        not_run: workload.check([&subject, &subject], launcher).err(),
        ..Screened::default()
    };
    let (mut front_end, mut kernel) = (Vec::new(), Vec::new());
    for n in 0..=runs {
        if screened.not_run.is_some() {
            break;
        }
        launcher.begin(&format!("{}-{n}", screened.name), n.into(), Filter::User);
        match workload.run(&subject, launcher) {
            Ok(values) if n > 0 => {
                front_end.extend(values.get("front-end-bound").copied());
                let of = |name: &str| values.get(name).copied().unwrap_or(0.0);
                let all = of("user") + of("sys");
                if all > 0.0 {
                    kernel.push(of("sys") / all);
                }
            }
            Ok(_) => {}
            Err(Fault::Interrupted) => return Err(Fault::Interrupted),
            Err(
                Fault::Failed(why)
                | Fault::CheckFailed(why)
                | Fault::Counter(why)
                | Fault::Unrunnable(why),
            ) => screened.not_run = Some(why),
        }
    }
    screened.front_end = median(front_end);
    screened.kernel = median(kernel);
    Ok(screened)
}
