//! Sizes and penalties of a processor's front end, read from files that give each figure its
//! source. A figure that is published as a range, or estimated, has a band.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A figure, with its band and its source.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Holds the figure.
    pub value: f64,
    /// The lowest that is plausible; the figure itself if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The highest that is plausible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Says where it is published, or how it was estimated.
    pub source: String,
}

/// Processors that a file describes, by what CPUID says of them.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The vendor, such as `AuthenticAMD`.
    pub vendor: String,
    /// Holds the family, as CPUID reports it.
    pub family: u32,
    /// Ranges of models, both ends included.
    pub models: Vec<(u32, u32)>,
}

macro_rules! processor {
    ($($(#[$doc:meta])* $name:ident: $low:expr, $high:expr;)*) => {
        /// A processor's front end.
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        pub struct Processor {
            /// Holds the name of the processor.
            pub name: String,
            /// Says which processors it describes.
            pub identity: Vec<Identity>,
            /// Taken branches that each tagged table of the predictor of conditional branches
            /// looks back, shortest first; 128 at most, in four tables at most. Targets of indirect
            /// branches depend on the second.
            pub conditional_paths: Vec<u32>,
            $($(#[$doc])* pub $name: Figure,)*
        }

        impl Processor {
            /// Returns every figure with its name and the limits of what it may be.
            fn figures(&self) -> Vec<(&'static str, &Figure, f64, f64)> {
                vec![$((stringify!($name), &self.$name, $low, $high)),*]
            }
        }
    };
}

processor! {
    /// Operations that are dispatched in a cycle.
    width: 1.0, 64.0;
    /// Cycles that a taken branch takes at least, when it is predicted by the first level.
    taken: 0.0, 8.0;
    /// Cycles that each further window of the micro-op cache takes to be fetched, of the code
    /// between two taken branches; 0 if not given.
    #[serde(default = "Figure::not_given")]
    op_window_cycles: 0.0, 8.0;
    /// Bytes of the L1 instruction cache.
    l1i_size: 1024.0, 16_777_216.0;
    /// Ways of the L1 instruction cache.
    l1i_ways: 1.0, 64.0;
    /// Bytes of the L2 cache.
    l2_size: 1024.0, 67_108_864.0;
    /// Ways of the L2 cache.
    l2_ways: 1.0, 64.0;
    /// Cycles that an L1i miss costs that the predictor did not run ahead of.
    l2_latency: 0.0, 1000.0;
    /// Cycles for each line from L2 when the predictor runs ahead.
    l2_stream: 0.0, 1000.0;
    /// Cycles that an L2 miss costs that the predictor did not run ahead of.
    l3_latency: 0.0, 1000.0;
    /// Cycles for each line from L3 when the predictor runs ahead.
    l3_stream: 0.0, 1000.0;
    /// Instructions after a redirect from which on the predictor is ahead of fetching.
    lead: 0.0, 1000.0;
    /// Bytes of a window of the micro-op cache: 32 or 64.
    op_window: 32.0, 64.0;
    /// Sets of the micro-op cache.
    op_sets: 1.0, 4096.0;
    /// Ways of the micro-op cache.
    op_ways: 1.0, 64.0;
    /// Operations in a way.
    op_per_way: 1.0, 64.0;
    /// Ways that one window may take.
    op_ways_a_window: 1.0, 64.0;
    /// Instructions that are decoded in a cycle when they are not in the micro-op cache.
    decode: 0.5, 64.0;
    /// Cycles to change from the micro-op cache to the decoders.
    decode_switch: 0.0, 100.0;
    /// Branches in the first level of the branch target buffer.
    btb1_entries: 1.0, 1_048_576.0;
    /// Ways of the first level.
    btb1_ways: 1.0, 64.0;
    /// Branches in both levels.
    btb2_entries: 1.0, 1_048_576.0;
    /// Ways of the second level.
    btb2_ways: 1.0, 64.0;
    /// Cycles lost when the second level has a branch and the first has not.
    btb2_bubble: 0.0, 100.0;
    /// Cycles lost when the decoder finds the target of a direct branch.
    redirect: 0.0, 100.0;
    /// Cycles lost by a misprediction.
    mispredict: 0.0, 200.0;
    /// Return addresses that the return stack holds.
    return_stack: 1.0, 4096.0;
    /// Says whether a return with an empty stack goes where it went last (1) or is mispredicted
    /// (0).
    return_fallback: 0.0, 1.0;
    /// Cycles that a predicted return takes beyond other taken branches; 0 if not given.
    #[serde(default = "Figure::not_given")]
    return_bubble: 0.0, 20.0;
    /// Counters of the base predictor of conditional branches.
    conditional_base: 1.0, 1_048_576.0;
    /// Entries of each tagged table.
    conditional_tagged: 1.0, 1_048_576.0;
    /// Targets of indirect branches that are held by path.
    indirect_entries: 1.0, 1_048_576.0;
    /// Says whether a barrier (IBPB) flushes the targets of direct branches too (1) or not
    /// (0).
    barrier_direct: 0.0, 1.0;
    /// Cycles from one read of the time-stamp counter to the next with nothing between; 0 if
    /// not given.
    #[serde(default = "Figure::not_given")]
    counter_read: 0.0, 1000.0;
    /// Share of the cycles between that such a read does not hide, as long as it takes longer.
    #[serde(default = "Figure::not_given")]
    counter_shown: 0.0, 1.0;
    /// Cycles that two reads report beyond those between, where those take longer.
    #[serde(default = "Figure::not_given")]
    counter_beyond: 0.0, 1000.0;
}

/// Says why a processor file is wrong, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorError(String);

impl fmt::Display for ProcessorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProcessorError {}

impl ProcessorError {
    fn not_read(text: &str, error: &toml::de::Error) -> Self {
        let what = error.message().replace('\n', " ");
        if what.starts_with("missing field") {
            return ProcessorError(format!(
                "{what}: every figure is needed; give one that is not known as an estimate, with \
                 its band"
            ));
        }
        let line = error
            .span()
            .map_or(0, |span| text[..span.start].matches('\n').count());
        ProcessorError(format!("line {}: {what}", line + 1))
    }
}

/// The files that come with the crate.
const FILES: [(&str, &str); 6] = [
    ("skylake-sp", include_str!("../processors/skylake-sp.toml")),
    (
        "coffee-lake",
        include_str!("../processors/coffee-lake.toml"),
    ),
    (
        "emerald-rapids",
        include_str!("../processors/emerald-rapids.toml"),
    ),
    ("zen-3", include_str!("../processors/zen-3.toml")),
    ("zen-4", include_str!("../processors/zen-4.toml")),
    ("zen-5", include_str!("../processors/zen-5.toml")),
];

impl Processor {
    /// Returns the names of the processors that come with the crate.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// Returns the processor of this name.
    ///
    /// # Errors
    /// A sentence with the known names when there is none.
    pub fn named(name: &str) -> Result<Self, ProcessorError> {
        let file = FILES.iter().find(|(known, _)| *known == name);
        let (_, text) = file.ok_or_else(|| {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            ProcessorError(format!(
                "there is no processor '{name}'; name one of {known}, or a file that ends in .toml"
            ))
        })?;
        Self::parse(text)
    }

    /// Returns the processor that CPUID identifies so, if a file describes it.
    pub fn identified(vendor: &str, family: u32, model: u32) -> Option<Self> {
        Self::names()
            .filter_map(|name| Self::named(name).ok())
            .find(|processor| {
                processor.identity.iter().any(|known| {
                    known.vendor == vendor
                        && known.family == family
                        && known
                            .models
                            .iter()
                            .any(|(from, to)| (*from..=*to).contains(&model))
                })
            })
    }

    /// Returns the cycles from one read of the time-stamp counter to the next, with code between
    /// that takes so many alone; none where that is not known of the processor. A read executes
    /// while what follows is fetched and decoded, so that most of a short stretch is hidden.
    pub fn between_reads(&self, cycles: f64) -> Option<f64> {
        let read = self.counter_read.value;
        let hidden = read + self.counter_shown.value * cycles;
        (read > 0.0).then(|| hidden.max(cycles + self.counter_beyond.value))
    }

    /// Reads a processor file.
    ///
    /// # Errors
    /// A sentence that names the line, or the figure that is missing or out of range.
    pub fn parse(text: &str) -> Result<Self, ProcessorError> {
        let processor: Processor =
            toml::from_str(text).map_err(|error| ProcessorError::not_read(text, &error))?;
        for (name, figure, low, high) in processor.figures() {
            let values = [Some(figure.value), figure.low, figure.high];
            if let Some(wrong) = values
                .into_iter()
                .flatten()
                .find(|value| !(low..=high).contains(value))
            {
                return Err(ProcessorError(format!(
                    "{name} is {wrong}: give a number from {low} to {high}"
                )));
            }
            if figure.low() > figure.value || figure.value > figure.high() {
                return Err(ProcessorError(format!(
                    "{name} is {}, which is not within its band of {} to {}",
                    figure.value,
                    figure.low(),
                    figure.high()
                )));
            }
            if figure.source.trim().is_empty() {
                return Err(ProcessorError(format!("{name} has no source")));
            }
        }
        if !matches!(processor.op_window.value as u32, 32 | 64) {
            return Err(ProcessorError("op_window is neither 32 nor 64".into()));
        }
        Ok(processor)
    }
}

impl Figure {
    /// Returns the value of a figure that a file lacks because it was written before
    /// the figure existed.
    fn not_given() -> Self {
        Figure {
            value: 0.0,
            low: None,
            high: None,
            source: "not given".into(),
        }
    }

    /// Returns the lower end of the band.
    pub fn low(&self) -> f64 {
        self.low.unwrap_or(self.value)
    }

    /// Returns the upper end of the band.
    pub fn high(&self) -> f64 {
        self.high.unwrap_or(self.value)
    }
}
