//! The metrics of a boot: figures per unit of work, or rates, so that runs
//! of different lengths can be compared. Less is better in all of them except
//! those of the spinlock matrix.

use crate::boot::Accelerator;
use crate::counts::Counts;
use crate::outcome::Measured;
use crate::spinlock_matrix::{self, cells};
use crate::workload::{Load, Workload};
use locklab_harness::experiment::{Metric, Role, Source, Values};
use locklab_harness::metric::{
    CYCLES, CYCLES_KERNEL, CYCLES_READS, CYCLES_SPAN, CYCLES_USER, INSTRUCTIONS,
    INSTRUCTIONS_KERNEL, INSTRUCTIONS_USER, L1I_MISSES_KERNEL, L1I_MISSES_USER,
};

type Figure = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

fn per_unit(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    Some(of(measured.counts.as_ref()?) as f64 / measured.work as f64)
}

/// Misses per thousand instructions of both modes, as the reports define it.
fn mpki(measured: &Measured, of: impl Fn(&Counts) -> u64) -> Option<f64> {
    let counts = measured.counts.as_ref()?;
    let all = counts.user.instructions + counts.kernel.instructions;
    Some(of(counts) as f64 * 1000.0 / all as f64)
}

const TCG: &[Figure] = &[
    (L1I_MISSES_KERNEL, "/unit", |m| {
        per_unit(m, |c| c.kernel.l1i_misses)
    }),
    (L1I_MISSES_USER, "/unit", |m| {
        per_unit(m, |c| c.user.l1i_misses)
    }),
    ("l1i-mpki:k", "", |m| mpki(m, |c| c.kernel.l1i_misses)),
    ("l1i-mpki:u", "", |m| mpki(m, |c| c.user.l1i_misses)),
    (INSTRUCTIONS, "/unit", |m| {
        per_unit(m, |c| c.user.instructions + c.kernel.instructions)
    }),
    (INSTRUCTIONS_KERNEL, "/unit", |m| {
        per_unit(m, |c| c.kernel.instructions)
    }),
    (INSTRUCTIONS_USER, "/unit", |m| {
        per_unit(m, |c| c.user.instructions)
    }),
];

/// The figures of a modelled front end.
const FRONT_END: &[Figure] = &[
    (CYCLES, "/unit", |m| {
        Some(m.frontend.as_ref()?.cycles() / m.work as f64)
    }),
    (CYCLES_KERNEL, "/unit", |m| {
        Some(m.frontend.as_ref()?.kernel.cycles.value / m.work as f64)
    }),
    (CYCLES_USER, "/unit", |m| {
        Some(m.frontend.as_ref()?.user.cycles.value / m.work as f64)
    }),
];

/// The figures of the spans that a patch marks, by a modelled front end.
const SPANS: &[Figure] = &[
    (CYCLES_SPAN, "/span", |m| m.spans.as_ref()?.cycles()),
    (CYCLES_READS, "/span", |m| m.spans.as_ref()?.between_reads()),
];

const KVM: &[Figure] = &[("time", "ns/unit", |m| {
    Some(m.elapsed_ns as f64 / m.work as f64)
})];

/// Says what of a guest is a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figured {
    pub(crate) accelerator: Accelerator,
    /// A front end is modelled.
    pub(crate) front_end: bool,
    /// The kernels mark spans.
    pub(crate) spans: bool,
}

impl Figured {
    fn figures(self) -> impl Iterator<Item = &'static Figure> {
        let modelled = self.accelerator == Accelerator::Tcg && self.front_end;
        let parts: [&'static [Figure]; 3] = [
            match self.accelerator {
                Accelerator::Tcg => TCG,
                Accelerator::Kvm => KVM,
            },
            if modelled { FRONT_END } else { &[] },
            if modelled && self.spans { SPANS } else { &[] },
        ];
        parts.into_iter().flatten()
    }
}

/// Returns the source of the figures of an accelerator.
pub(crate) fn source(accelerator: Accelerator) -> Source {
    match accelerator {
        Accelerator::Tcg => Source::Model,
        Accelerator::Kvm => Source::Output,
    }
}

/// Returns the metrics of a load, the one that decides first.
pub(crate) fn metrics(load: &Load, figured: Figured) -> Vec<Metric> {
    let accelerator = figured.accelerator;
    let primary = match accelerator {
        Accelerator::Tcg => load.workload.primary(),
        Accelerator::Kvm => "time",
    };
    let mut metrics: Vec<Metric> = figured
        .figures()
        .map(|(name, unit, _)| {
            let metric = Metric::lower(name, unit, source(accelerator));
            if *name == primary {
                metric.with_role(Role::Primary)
            } else {
                metric
            }
        })
        .collect();
    metrics.sort_by_key(|metric| metric.role != Role::Primary);
    if let (Workload::SpinlockMatrix, Some(lengths)) = (load.workload, &load.lengths) {
        let source = source(accelerator);
        metrics.extend(spinlock_matrix::metrics(lengths, load.vcpus, source));
    }
    metrics
}

/// Returns the figures of one boot.
pub(crate) fn values(measured: &Measured, figured: Figured) -> Values {
    let mut values: Values = figured
        .figures()
        .filter_map(|(name, _, of)| Some(((*name).to_owned(), of(measured)?)))
        .collect();
    for (point, result) in cells(measured) {
        values.insert(point.metric(), result.rate());
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample;

    fn counted(accelerator: Accelerator) -> Figured {
        Figured {
            accelerator,
            front_end: false,
            spans: false,
        }
    }

    #[test]
    fn cycles_are_figures_where_they_are_modelled() {
        let named = |front_end, spans, accelerator| -> Vec<String> {
            let figured = Figured {
                accelerator,
                front_end,
                spans,
            };
            let metrics = metrics(&Load::new(Workload::ContextSwitch), figured);
            metrics.into_iter().map(|metric| metric.name).collect()
        };
        let all = named(true, true, Accelerator::Tcg);
        assert!(all.contains(&"cycles".to_owned()) && all.contains(&"cycles:span".to_owned()));
        assert!(!named(true, false, Accelerator::Tcg).contains(&"cycles:span".to_owned()));
        assert!(!named(true, true, Accelerator::Kvm).contains(&"cycles".to_owned()));
    }

    #[test]
    fn the_metric_that_decides_comes_first_and_is_the_workload_s_own() {
        let first = |workload, accelerator| {
            let metrics = metrics(&Load::new(workload), counted(accelerator));
            let primary = metrics.iter().filter(|m| m.at.is_none());
            let primary = primary.filter(|m| m.role == Role::Primary).count();
            assert_eq!(primary, 1);
            metrics[0].name.clone()
        };
        assert_eq!(first(Workload::Fstat, Accelerator::Tcg), "l1i-misses:k");
        assert_eq!(first(Workload::Fstat, Accelerator::Kvm), "time");
        assert_eq!(
            first(Workload::SpinlockMatrix, Accelerator::Tcg),
            "instructions:k"
        );
    }

    #[test]
    fn figures_are_for_each_unit_of_work() {
        let values = values(&sample(50).unwrap(), counted(Accelerator::Tcg));
        assert_eq!(values["l1i-misses:k"], 5.0);
        assert_eq!(values["instructions"], 500.0);
        assert_eq!(values["l1i-mpki:k"], 10.0);
    }
}
