//! Plans cells in which a recorded program is replayed. It must never look into the
//! recording.

use super::{Beat, Plan, Spec};
use crate::probe::Native;
use crate::replay::{Replay, act_ns};
use crate::replayer::late_ns;
use crate::work::Calibration;
use locklab_host::error::Error;
use locklab_host::topology::Topology;
use locklab_workload::Cells;
use std::sync::Arc;
use std::time::Duration;

/// The least and the most measured part of a slice of a recorded program, in ns,
/// and how many turns of its slowest thread it should have.
const REPLAYED: [u64; 2] = [10_000_000, 100_000_000];
/// The least with more workers than CPUs, each of which is to have one several times.
const CROWDED: u64 = 50_000_000;
const TURNS_REPLAYED: f64 = 20.0;

impl Plan {
    /// Plans cells in which a recorded program is replayed; the threads of the
    /// specification are its workers.
    ///
    /// # Errors
    /// As of [`Self::new`], and if the specification asks for processes.
    pub fn replaying(spec: Spec, replay: Replay, native: &Native) -> Result<Self, Error> {
        let beat = Beat::of(native);
        let calibration = native.calibration;
        let replay = replay.on_machine(act_ns(calibration.step_ns()), late_ns());
        Self::replay(spec, replay, &native.topology, calibration, beat)
    }

    pub(crate) fn replay(
        spec: Spec,
        replay: Replay,
        topology: &Topology,
        calibration: Calibration,
        beat: Beat,
    ) -> Result<Self, Error> {
        if spec.processes {
            return Err(Error::Usage(
                "a recorded program is replayed by threads; leave out processes".into(),
            ));
        }
        let turn = replay.turn_ns();
        let slice = (TURNS_REPLAYED * turn) as u64;
        let [mut least, most] = REPLAYED;
        if spec
            .cells
            .threads
            .iter()
            .any(|&all| all > topology.order.len())
        {
            least = CROWDED;
        }
        let spec = Spec {
            cells: Cells {
                critical: vec![0],
                non_critical: vec![0],
                locks: vec![u32::try_from(replay.locks()).unwrap_or(u32::MAX)],
                ..spec.cells
            },
            trace: Some(replay.name()),
            slice: spec
                .slice
                .or(Some(Duration::from_nanos(slice.clamp(least, most)))),
            ..spec
        };
        let mut plan = Self::of(spec, topology, calibration, beat)?;
        for cell in &mut plan.cells {
            cell.round = turn.min(least as f64);
        }
        plan.replay = Some(Arc::new(replay));
        Ok(plan)
    }
}
