//! A backend that plays a script.

use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Design, Experiment, Invalid, Key, Labels, Metric, Order, Provenance, Role, Sample, Source,
};
use locklab_harness::progress::Progress;
use locklab_harness::runner::{Outcome, Runner};
use locklab_harness::store::{Recorder, Store};
use locklab_judge::{Interim, Side};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Plays a script.
pub(crate) struct Script {
    /// Time that each run takes, on its own clock.
    pub(crate) takes: Duration,
    /// The factor by which runs of the first cell take longer.
    pub(crate) first_takes: u32,
    pub(crate) spent: Duration,
    pub(crate) started: Instant,
    pub(crate) until: Option<Instant>,
    /// Holds what the run of this number is.
    pub(crate) invalid: HashMap<usize, Invalid>,
    pub(crate) runs: Vec<(usize, Side)>,
    pub(crate) stop_after: usize,
    pub(crate) outcome: Stopped,
    pub(crate) pairing: Pairing,
    pub(crate) schedule: Schedule,
    pub(crate) begun: Vec<usize>,
    pub(crate) ended: usize,
    pub(crate) announced: Vec<Turn>,
    pub(crate) time: Option<Duration>,
    pub(crate) longest: Option<Duration>,
    /// A cell is settled from so many pairs on.
    pub(crate) settled: usize,
    /// The first cell is beyond doubt at so many pairs, and goes on.
    pub(crate) wide: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            takes: Duration::from_micros(1),
            first_takes: 1,
            spent: Duration::ZERO,
            started: Instant::now(),
            until: None,
            invalid: HashMap::new(),
            runs: Vec::new(),
            stop_after: usize::MAX,
            outcome: Stopped::Interrupted,
            pairing: Pairing::InTurn,
            schedule: Schedule::CellByCell,
            begun: Vec::new(),
            ended: 0,
            announced: Vec::new(),
            time: None,
            longest: None,
            settled: usize::MAX,
            wide: usize::MAX,
        }
    }
}

impl Backend for Script {
    fn experiment(&self, _: Design) -> Experiment {
        unreachable!("these tests run cells")
    }

    fn fingerprint(&self) -> Value {
        Value::Null
    }

    fn bias_fingerprint(&self, _: &Cell) -> Option<Value> {
        None
    }

    fn pairing(&self) -> Pairing {
        self.pairing
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn time(&self) -> Option<Duration> {
        self.time
    }

    fn longest(&self, _: &[Cell]) -> Option<Duration> {
        self.longest
    }

    fn now(&self) -> Instant {
        self.started + self.spent
    }

    fn until(&mut self, end: Instant) {
        self.until = Some(end);
    }

    fn interim(&self, cell: &Cell) -> Interim {
        if cell.pairs.len() >= self.settled {
            Interim::Decided
        } else if cell.pairs.len() == self.wide && cell.key.number("critical") == Some(0) {
            Interim::Wide
        } else {
            Interim::Open
        }
    }

    fn announce(&mut self, turns: &[Turn]) {
        self.announced = turns.to_vec();
    }

    fn begin(&mut self, _: &mut Cell, index: usize) -> Result<(), Stopped> {
        self.begun.push(index);
        Ok(())
    }

    fn run(&mut self, _: &Cell, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
        let number = self.runs.len();
        if number >= self.stop_after {
            return Err(self.outcome.clone());
        }
        self.runs.push((turn.cell, side));
        self.spent += match turn.cell {
            0 => self.takes * self.first_takes,
            _ => self.takes,
        };
        Ok(Sample {
            values: [("rate".to_owned(), 1.0 + turn.seed as f64)].into(),
            invalid: self.invalid.get(&number).cloned(),
            ..Sample::default()
        })
    }

    fn run_shared(
        &mut self,
        turns: &[Turn],
        side: Side,
        keep: &mut dyn FnMut(usize, Sample),
    ) -> Result<(), Stopped> {
        let cell = Cell::new(Key::point(2, 0, 1), Vec::new());
        for turn in turns {
            keep(turn.cell, self.run(&cell, turn, side)?);
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Cell) {
        self.ended += 1;
    }
}

pub(crate) fn design(pairs: u32) -> Design {
    Design {
        seed: 7,
        ..Design::usual(pairs)
    }
}

pub(crate) fn lengths(cells: &[Cell]) -> Vec<usize> {
    cells.iter().map(|cell| cell.pairs.len()).collect()
}

pub(crate) fn cells(count: u64) -> Vec<Cell> {
    let metric = Metric::higher("rate", "", Source::Backend).with_role(Role::Primary);
    (0..count)
        .map(|n| Cell::new(Key::point(2, n, 1), vec![metric.clone()]))
        .collect()
}

pub(crate) fn run_until(
    pairs: u32,
    cells: &mut [Cell],
    script: &mut dyn Backend,
    recorder: &mut Recorder,
    deadline: Option<Instant>,
) -> Outcome {
    Runner {
        design: &design(pairs),
        recorder,
        progress: &Progress::hidden(),
        deadline,
        interrupt: &AtomicBool::new(false),
        undecided: &|_| Vec::new(),
    }
    .run(script, cells)
}

pub(crate) fn run(pairs: u32, cells: &mut [Cell], script: &mut dyn Backend) -> Outcome {
    run_until(pairs, cells, script, &mut Recorder::nowhere(), None)
}

pub(crate) fn store(cells: &[Cell]) -> Recorder {
    let store = Store::open(Path::new(":memory:")).unwrap();
    let header = Experiment {
        kind: "matrix".into(),
        labels: Labels::new("a", "b"),
        spec: Value::Null,
        design: design(8),
        provenance: Provenance::Hardware("test".into()),
        facts: vec![],
        caveats: vec![],
        cells: cells.to_vec(),
        interrupted: None,
    };
    let id = store.begin("key", "", &header).unwrap();
    Recorder::new(store, id)
}

pub(crate) fn orders(cell: &Cell) -> Vec<Order> {
    cell.pairs.iter().map(|p| p.order).collect()
}
