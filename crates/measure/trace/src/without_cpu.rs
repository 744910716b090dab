//! For how much of a long stretch a thread had no CPU, and whether it waited or others
//! were to run.
//!
//! What the recorder asks the system after a long stretch says how long the thread ran
//! since it asked last. The short stretches between are taken to have been run from
//! first to last, and waits to have had no CPU; what is left of the CPU time is the long
//! stretch's. So a stretch may seem to be run for longer than it was, by what waits take.

use crate::event::Event;

/// No wait with a switch to another thread takes less, in nanoseconds.
pub(crate) const SWITCH_NS: u64 = 1000;

/// A part of a stretch in which a thread had no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutCpu {
    /// The time at which the stretch began, in ticks; it ends with the record.
    pub since: u64,
    /// The number of its ticks without one.
    pub ticks: u64,
    /// Says how often the thread waited for something that no record explains; if never,
    /// others were to run.
    pub waits: u64,
}

/// Describes what is known of the CPU time of a thread while its records are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// The time of the last record.
    last: u64,
    asked: Option<CpuTimes>,
    /// Counts how many waits the records had since then, each of which is a switch, and
    /// for how many ticks.
    waits: u64,
    waited: u64,
}

/// Describes what the system said last, and when.
#[derive(Clone, Copy, Debug)]
struct CpuTimes {
    tick: u64,
    voluntary: u64,
    involuntary: u64,
    ran_ns: u64,
}

impl CpuTime {
    /// Takes the next record of the thread. What it returns is of a stretch that ends
    /// with it, whether the thread worked in it or waited for what the records know.
    pub fn add(
        &mut self,
        tick: u64,
        event: &Event<'_>,
        nanoseconds_per_tick: f64,
    ) -> Option<WithoutCpu> {
        if let Event::Begin { .. } = event {
            // A block ends nothing that the thread does.
            return None;
        }
        let since = std::mem::replace(&mut self.last, tick);
        let ticks = |ns: u64| (ns as f64 / nanoseconds_per_tick.max(1e-9)) as u64;
        match *event {
            Event::Switches {
                voluntary,
                involuntary,
                ran_ns,
                ..
            } => {
                let now = CpuTimes {
                    tick,
                    voluntary,
                    involuntary,
                    ran_ns,
                };
                let before = self.asked.replace(now)?;
                let waits = std::mem::take(&mut self.waits);
                let waiting = std::mem::take(&mut self.waited);
                let long = tick.saturating_sub(since);
                if long < ticks(Event::LONG_NS) {
                    return None;
                }
                let ran = ticks(ran_ns.saturating_sub(before.ran_ns));
                let short = since.saturating_sub(before.tick).saturating_sub(waiting);
                let without = long.saturating_sub(ran.saturating_sub(short));
                let waits = voluntary
                    .saturating_sub(before.voluntary)
                    .saturating_sub(waits);
                let switched = waits > 0 || involuntary > before.involuntary;
                (switched && without > 0).then_some(WithoutCpu {
                    since,
                    ticks: without,
                    waits,
                })
            }
            Event::Acquired
            | Event::Refused
            | Event::Woken { .. }
            | Event::Joined
            | Event::Slept
            | Event::Released => {
                let took = tick.saturating_sub(since);
                if took >= ticks(SWITCH_NS) {
                    self.waits += u64::from(!matches!(event, Event::Released));
                    self.waited += took;
                }
                None
            }
            _ => None,
        }
    }
}

impl CpuTime {
    /// Returns for how many ticks the thread had no CPU since its last record, if nothing
    /// more was recorded of it until `end`. `account` is what the system said of it then,
    /// and when, if it was asked: who is not known to have had a CPU in a long time had
    /// none. Without any account of the system, all of it is taken to be work.
    #[must_use]
    pub fn unfinished(
        &self,
        end: u64,
        account: Option<(u64, u64)>,
        nanoseconds_per_tick: f64,
    ) -> u64 {
        let ticks = |ns: u64| (ns as f64 / nanoseconds_per_tick.max(1e-9)) as u64;
        let long = end.saturating_sub(self.last);
        if long < ticks(Event::LONG_NS) {
            return 0;
        }
        let Some(before) = self.asked else {
            return account.map_or(0, |(_, ran)| long.saturating_sub(ticks(ran)));
        };
        let Some((_, ran_ns)) = account else {
            return long;
        };
        let ran = ticks(ran_ns.saturating_sub(before.ran_ns));
        let short = self.last.saturating_sub(before.tick);
        let short = short.saturating_sub(self.waited);
        long.saturating_sub(ran.saturating_sub(short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(voluntary: u64, involuntary: u64, ran_ns: u64) -> Event<'static> {
        Event::Switches {
            voluntary,
            involuntary,
            ran_ns,
            took: 0,
        }
    }

    /// Returns the last of some records, of a clock of half a nanosecond.
    fn last(records: &[(u64, Event<'static>)]) -> Option<WithoutCpu> {
        let mut time = CpuTime::default();
        let read = records
            .iter()
            .map(|(tick, event)| time.add(*tick, event, 0.5));
        read.last().flatten()
    }

    const ENDED: Event<'static> = Event::Cost { ticks: 1 };

    #[test]
    fn a_thread_that_lost_its_cpu_did_not_work_so_long() {
        let records = |ran_ns, involuntary| {
            [
                (1000, switches(2, 3, 5000)),
                (3000, ENDED),
                (203_000, switches(2, involuntary, ran_ns)),
            ]
        };
        // A microsecond of short stretches, and two of the long one.
        let lost = WithoutCpu {
            since: 3000,
            ticks: 196_000,
            waits: 0,
        };
        assert_eq!(last(&records(8000, 4)), Some(lost));
        // It had no CPU in all of it.
        assert_eq!(
            last(&records(5500, 4)).map(|lost| lost.ticks),
            Some(200_000)
        );
        assert_eq!(last(&records(106_000, 4)), None);
        // The clocks differ, and no switch was counted.
        assert_eq!(last(&records(100_000, 3)), None);
        assert_eq!(last(&[(9_000_000, switches(2, 3, 5000))]), None);
    }

    #[test]
    fn who_is_not_known_to_have_had_a_cpu_until_the_end_had_none() {
        let mut time = CpuTime::default();
        time.add(1000, &switches(2, 3, 5000), 0.5);
        time.add(3000, &ENDED, 0.5);
        let end = 2_003_000;
        assert_eq!(time.unfinished(end, None, 0.5), 2_000_000);
        // A microsecond of the short stretch, and 100 of the last.
        let account = Some((end, 106_000));
        assert_eq!(time.unfinished(end, account, 0.5), 1_800_000);
        // A short stretch is work, and so is that of a recording without accounts.
        assert_eq!(time.unfinished(13_000, None, 0.5), 0);
        assert_eq!(CpuTime::default().unfinished(end, None, 0.5), 0);
    }

    #[test]
    fn it_waited_if_it_was_switched_oftener_than_its_records_know() {
        let records = |voluntary| {
            [
                (1000, switches(2, 3, 5000)),
                (2000, Event::Sleep { timed: true }),
                (5000, Event::Slept),
                // An acquisition of a free lock is no wait.
                (5020, Event::Acquired),
                (205_020, switches(voluntary, 3, 8000)),
            ]
        };
        assert_eq!(last(&records(3)), None);
        let waited = last(&records(4)).unwrap();
        assert_eq!(waited.waits, 1);
        assert_eq!(waited.ticks, 195_020);
    }
}
