//! Turns events into cycles by a first-order interval model (S. Eyerman, L. Eeckhout,
//! T. Karkhanis and J. Smith, "A mechanistic performance model for superscalar
//! out-of-order processors", TOCS 2009). Between two events that stop the supply,
//! code is dispatched at full width; each event adds its penalty. What data and
//! dependences cost is not in it.

use serde::{Deserialize, Serialize};

use crate::events::{Event, Events};
use crate::processor::{Figure, Processor};

/// Cycles with their band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cycles {
    /// The cycles with the lowest plausible penalties.
    pub low: f64,
    /// The cycles with the penalties of the processor file.
    pub value: f64,
    /// The cycles with the highest plausible penalties.
    pub high: f64,
}

impl Cycles {
    fn of(count: u64, penalty: &Figure) -> Self {
        let count = count as f64;
        Cycles {
            low: count * penalty.low(),
            value: count * penalty.value,
            high: count * penalty.high(),
        }
    }

    fn plus(self, other: Cycles) -> Self {
        Cycles {
            low: self.low + other.low,
            value: self.value + other.value,
            high: self.high + other.high,
        }
    }
}

/// Names what cycles were lost to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Taken branches and windows of the micro-op cache, of which each takes a while to fetch.
    Fetching,
    /// Lines that were in L2 and not in L1i.
    L1i,
    /// Lines that were in neither.
    L2,
    /// Instructions that had to be decoded.
    Decoding,
    /// Targets of direct branches and returns that the first level did not have.
    Targets,
    /// Conditional branches that went the other way.
    Conditional,
    /// Indirect branches to another target.
    Indirect,
    /// Returns that the stack did not predict, and what the others take longer than jumps.
    Returns,
    /// Branches that were mispredicted because a barrier had emptied the predictors.
    Flushes,
}

impl Cause {
    /// Lists every cause in the order of reports, with the name that reports print.
    pub const ALL: [(Cause, &'static str); 9] = [
        (Cause::Fetching, "fetching"),
        (Cause::L1i, "L1i misses"),
        (Cause::L2, "L2 code misses"),
        (Cause::Decoding, "decoding"),
        (Cause::Targets, "branch targets"),
        (Cause::Conditional, "conditional branches"),
        (Cause::Indirect, "indirect branches"),
        (Cause::Returns, "returns"),
        (Cause::Flushes, "flushed predictors"),
    ];

    /// Returns the name that reports print.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Processor {
    /// Returns the cycles that were lost to a cause.
    pub fn lost(&self, events: &Events, cause: Cause) -> Cycles {
        let of = |event: Event, penalty| Cycles::of(events[event], penalty);
        match cause {
            Cause::Fetching => {
                // All of it comes from these two figures.
                let figures = [&self.taken, &self.op_window_cycles].into_iter();
                let figures = figures.filter(|figure| figure.value > 0.0);
                let low = figures.clone().map(|figure| figure.low() / figure.value);
                let high = figures.map(|figure| figure.high() / figure.value);
                let sixteenth = Figure {
                    value: 1.0 / 16.0,
                    low: Some(low.fold(1.0, f64::min) / 16.0),
                    high: Some(high.fold(1.0, f64::max) / 16.0),
                    source: String::new(),
                };
                of(Event::Fetching, &sixteenth)
            }
            Cause::L1i => of(Event::L1Redirected, &self.l2_latency)
                .plus(of(Event::L1Streamed, &self.l2_stream)),
            Cause::L2 => of(Event::L2Redirected, &self.l3_latency)
                .plus(of(Event::L2Streamed, &self.l3_stream)),
            Cause::Decoding => {
                // What decoding takes longer than dispatching does.
                let slower = |decode: f64| (1.0 / decode - 1.0 / self.width.value).max(0.0);
                let slower = Figure {
                    value: slower(self.decode.value),
                    low: Some(slower(self.decode.high())),
                    high: Some(slower(self.decode.low())),
                    source: String::new(),
                };
                of(Event::Decoded, &slower).plus(of(Event::DecodeSwitch, &self.decode_switch))
            }
            Cause::Targets => of(Event::TargetSlow, &self.btb2_bubble)
                .plus(of(Event::TargetDecoded, &self.redirect)),
            Cause::Conditional => of(Event::Direction, &self.mispredict),
            Cause::Indirect => of(Event::Indirect, &self.mispredict),
            Cause::Returns => {
                of(Event::Return, &self.mispredict).plus(of(Event::Returned, &self.return_bubble))
            }
            Cause::Flushes => of(Event::FlushedSlow, &self.btb2_bubble)
                .plus(of(Event::FlushedDecoded, &self.redirect))
                .plus(of(Event::FlushedPrediction, &self.mispredict)),
        }
    }

    /// Returns the cycles that were lost to all causes.
    pub fn lost_in_all(&self, events: &Events) -> Cycles {
        Cause::ALL
            .into_iter()
            .fold(Cycles::default(), |sum, (cause, _)| {
                sum.plus(self.lost(events, cause))
            })
    }

    /// Returns the cycles of dispatch: the time of the code if nothing was lost.
    pub fn dispatch(&self, instructions: u64) -> Cycles {
        let cycles = instructions as f64 / self.width.value;
        Cycles {
            low: cycles,
            value: cycles,
            high: cycles,
        }
    }

    /// Returns all cycles: those of dispatch and those that were lost.
    pub fn cycles(&self, instructions: u64, events: &Events) -> Cycles {
        self.dispatch(instructions).plus(self.lost_in_all(events))
    }
}

/// Describes where the cycles of a run went, as documents show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Cycles in all: of dispatch, and lost.
    pub cycles: Cycles,
    /// Cycles of dispatch, as if nothing was lost.
    pub dispatch: Cycles,
    /// Cycles lost to each cause.
    pub lost: Vec<Lost>,
    /// The count of each event, by its name.
    pub events: std::collections::BTreeMap<String, u64>,
    /// Mispredictions of conditional branches under other hashes of the predictor, if they
    /// were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditional_by_hash: Vec<u64>,
}

/// Cycles lost to one cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Names the cause.
    pub cause: Cause,
    /// Holds the cycles that are lost by it.
    pub cycles: Cycles,
}

impl Processor {
    /// Returns where the cycles went.
    pub fn account(&self, instructions: u64, events: &Events) -> Account {
        Account {
            cycles: self.cycles(instructions, events),
            dispatch: self.dispatch(instructions),
            lost: Cause::ALL
                .into_iter()
                .map(|(cause, _)| Lost {
                    cause,
                    cycles: self.lost(events, cause),
                })
                .collect(),
            events: Event::ALL
                .into_iter()
                .map(|(event, name)| (name.to_owned(), events[event]))
                .collect(),
            conditional_by_hash: match events.by_hash.iter().any(|&wrong| wrong > 0) {
                true => events.by_hash.into(),
                false => Vec::new(),
            },
        }
    }
}
