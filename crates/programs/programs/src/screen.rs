//! Screening of workloads for questions about inlining: for each, the share
//! of pipeline slots that the front end left empty (top-down, level 1) where
//! the processor counts it, else modelled L1i misses, and the share of CPU
//! time in the kernel.
//!
//! It gives medians of a few runs of one subject, and never a verdict.

use crate::counters::{Counters, Filter};
use crate::fault::Fault;
use crate::icache::Model;
use crate::launcher::Launcher;
use crate::subject::Subject;
use crate::workloads::{Workload, WorkloadSpec};
use locklab_harness::verdicts::median;
use serde::Serialize;
use std::cmp::Ordering;

/// The results of a few runs of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Screened {
    /// The workload, as tables name it.
    pub name: String,
    /// Share of pipeline slots that the front end left empty.
    #[serde(rename = "front_end_bound")]
    pub front_end: Option<f64>,
    /// Modelled L1i misses in a thousand instructions of user mode, in one run
    /// under the i-cache model.
    #[serde(rename = "l1i_mpki_modelled")]
    pub modelled: Option<f64>,
    /// Share of its CPU time in the kernel.
    #[serde(rename = "kernel_share")]
    pub kernel: Option<f64>,
    /// Says why there are no modelled misses, if the model was requested.
    pub not_modelled: Option<String>,
    /// Says why it was not run, or not to the end.
    pub not_run: Option<String>,
}

impl Screened {
    /// Returns the key of the ranking: the front end where it is known, else modelled
    /// misses, and the kernel's share among those that have neither.
    fn rank(&self) -> [f64; 3] {
        [self.front_end, self.modelled, self.kernel].map(|x| x.unwrap_or(-1.0))
    }
}

/// Runs each workload `runs` times after one warm-up run, and once
/// under `model` if there is one; the most promising one comes first.
///
/// # Errors
/// [`Fault::Interrupted`] after Ctrl-C, and [`Fault::Unrunnable`] for a
/// workload that does not exist. A run that fails is an entry with the reason.
pub fn screen(
    workloads: &[WorkloadSpec],
    runs: u32,
    model: Option<&Model>,
    launcher: &mut Launcher,
) -> Result<Vec<Screened>, Fault> {
    let mut all = Vec::new();
    for spec in workloads {
        all.push(one(spec, runs, model, launcher)?);
    }
    all.sort_by(|a, b| {
        let ranks = b.rank().into_iter().zip(a.rank());
        ranks.fold(Ordering::Equal, |order, (b, a)| order.then(b.total_cmp(&a)))
    });
    Ok(all)
}

fn one(
    spec: &WorkloadSpec,
    runs: u32,
    model: Option<&Model>,
    launcher: &mut Launcher,
) -> Result<Screened, Fault> {
    let mut workload = spec.workload()?;
    let subject = Subject::default();
    let mut screened = Screened {
        name: spec.title(),
        not_run: workload
            .check([&subject, &subject], launcher)
            .err()
            .map(|e| e.to_string()),
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
            Err(fault) => screened.not_run = Some(fault.to_string()),
        }
    }
    screened.front_end = median(front_end);
    screened.kernel = median(kernel);
    if let Some(model) = model.filter(|_| screened.not_run.is_none()) {
        match modelled(workload.as_mut(), &screened.name, model, launcher) {
            Ok(mpki) => screened.modelled = Some(mpki),
            Err(Fault::Interrupted) => return Err(Fault::Interrupted),
            Err(fault) => screened.not_modelled = Some(fault.to_string()),
        }
    }
    Ok(screened)
}

/// Returns the modelled misses in a thousand instructions, in one run.
fn modelled(
    workload: &mut dyn Workload,
    name: &str,
    model: &Model,
    launcher: &mut Launcher,
) -> Result<f64, Fault> {
    if !workload.is_one_process() {
        let why = "its program starts others, which the model does not follow";
        return Err(Fault::Unrunnable(why.into()));
    }
    let counters = std::mem::replace(&mut launcher.counters, Counters::none());
    launcher.model = Some(model.clone());
    launcher.begin(&format!("{name}-model"), 0, Filter::User);
    let run = workload.run(&Subject::default(), launcher);
    launcher.model = None;
    launcher.counters = counters;
    let missing = || Fault::Failed("it left no counts".into());
    run?.get("l1i-mpki-modelled").copied().ok_or_else(missing)
}
