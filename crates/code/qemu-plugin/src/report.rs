// SPDX-License-Identifier: GPL-2.0-or-later
//! The report: one JSON document.

use locklab_frontend::icache::{Counts, Prefetch};
use locklab_frontend::{Account, Processor};
use serde::Serialize;

use crate::arguments::Arguments;
use crate::output;
use crate::seen::{ByMode, Seen};
use crate::session::Measured;
use crate::vcpu;

/// Says what was emulated, and by what.
#[derive(Serialize)]
pub(crate) struct Target {
    /// The guest's architecture, as QEMU names it.
    pub(crate) architecture: String,
    /// A whole machine, or a single program.
    pub(crate) system: bool,
    /// QEMU's plugin API version.
    pub(crate) plugin_api: i32,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    provenance: &'static str,
    not_modelled: &'static [&'static str],
    plugin: &'static str,
    target: &'a Target,
    geometry: GeometryOut,
    markers: Option<Markers>,
    vcpus: usize,
    all_vcpus_counted: bool,
    instructions: u64,
    l1i_fetches: u64,
    l1i_misses: u64,
    user: CountsOut,
    kernel: CountsOut,
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontend: Option<FrontendOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<SpansOut<'a>>,
}

/// Holds what was counted within spans.
#[derive(Serialize)]
struct SpansOut<'a> {
    /// Spans that ended.
    count: u64,
    user: CountsOut,
    kernel: CountsOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontend: Option<FrontendOut<'a>>,
}

/// Describes what the front end lost, as far as it is modelled.
#[derive(Serialize)]
struct FrontendOut<'a> {
    processor: &'a str,
    user: Account,
    kernel: Account,
    /// Blocks whose code was written over by other code and executed again.
    rewritten_blocks: u64,
    /// Says how much was simulated, when a part was.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<Sample>,
}

/// Describes what a sampled run stands on.
#[derive(Serialize)]
struct Sample {
    /// Instructions that were simulated and counted, of all.
    simulated_instructions: u64,
    /// Intervals that stand for the instructions between them.
    intervals: u64,
    /// Half the width of the 95 % interval of all cycles, in per cent, as far as it comes from
    /// which intervals were drawn; `null` with too few of them. Short warm-ups add to it.
    error_percent: Option<f64>,
}

impl Sample {
    fn read(all: u64) -> Self {
        let share = vcpu::share();
        let error = share.sums.error();
        Sample {
            simulated_instructions: share.simulated,
            intervals: share.sums.intervals,
            error_percent: match all {
                0 => None,
                _ => error.map(|error| 100.0 * error * share.sampled as f64 / all as f64),
            },
        }
    }
}

#[derive(Serialize)]
struct GeometryOut {
    size: u32,
    ways: u32,
    line: u32,
    sets: u32,
    prefetch: &'static str,
}

#[derive(Serialize)]
struct Markers {
    begins: u64,
    ends: u64,
}

#[derive(Serialize)]
struct CountsOut {
    instructions: u64,
    l1i_fetches: u64,
    l1i_misses: u64,
}

#[derive(Serialize)]
struct Part {
    user: CountsOut,
    kernel: CountsOut,
}

impl From<Counts> for CountsOut {
    fn from(counts: Counts) -> Self {
        CountsOut {
            instructions: counts.instructions,
            l1i_fetches: counts.fetches,
            l1i_misses: counts.misses,
        }
    }
}

/// Writes the report.
///
/// # Errors
/// A message for the user when the file cannot be written.
pub(crate) fn write(
    arguments: &Arguments,
    target: &Target,
    measured: &Measured,
    rewritten_blocks: u64,
) -> Result<(), String> {
    let [user, kernel] = measured.total();
    let all = (user + kernel).counts;
    let geometry = arguments.geometry;
    let prefetch = match arguments.prefetch {
        Prefetch::None => "none",
        Prefetch::NextLine => "next-line",
    };
    let account = |processor: &Processor, seen: Seen| {
        processor.account(seen.counts.instructions, &seen.events)
    };
    let frontend_of = |[user, kernel]: ByMode| {
        arguments.processor.as_ref().map(|processor| FrontendOut {
            processor: &processor.name,
            user: account(processor, user),
            kernel: account(processor, kernel),
            rewritten_blocks,
            sample: arguments.sample.map(|_| Sample::read(all.instructions)),
        })
    };
    let frontend = frontend_of([user, kernel]);
    let spans = &measured.spans;
    let spans = (spans.ended > 0).then(|| SpansOut {
        count: spans.ended,
        user: spans.total[0].counts.into(),
        kernel: spans.total[1].counts.into(),
        frontend: frontend_of(spans.total),
    });
    let not_modelled: &[&str] = match (&frontend, arguments.prefetch) {
        (Some(_), _) => &["speculation", "data side", "second thread of a core"],
        (None, Prefetch::None) => &["prefetch", "micro-op cache", "speculation", "L2"],
        (None, Prefetch::NextLine) => &["micro-op cache", "speculation", "L2"],
    };
    let report = Report {
        schema: 1,
        provenance: "model",
        not_modelled,
        plugin: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")),
        target,
        geometry: GeometryOut {
            size: geometry.size(),
            ways: geometry.ways(),
            line: geometry.line(),
            sets: geometry.sets(),
            prefetch,
        },
        markers: arguments.markers.then_some(Markers {
            begins: measured.begins,
            ends: measured.ends,
        }),
        vcpus: vcpu::read_all().len(),
        all_vcpus_counted: vcpu::all_counted(),
        instructions: all.instructions,
        l1i_fetches: all.fetches,
        l1i_misses: all.misses,
        user: user.counts.into(),
        kernel: kernel.counts.into(),
        parts: measured
            .parts
            .iter()
            .map(|&[user, kernel]| Part {
                user: user.counts.into(),
                kernel: kernel.counts.into(),
            })
            .collect(),
        frontend,
        spans,
    };
    let json = serde_json::to_string_pretty(&report).expect("numbers and strings only");
    output::replace(&arguments.out, &(json + "\n"))
}
