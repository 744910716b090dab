//! The summary for programs: JSON.

use crate::names::Chosen;
use crate::profile::Summary;
use serde_json::{Value, json};

impl Summary {
    /// Returns the fields of the document; `profiled` says whether places were recorded.
    pub(crate) fn json(&self, chosen: &Chosen, profiled: bool, status: u8) -> Value {
        let places: Vec<Value> = self
            .places
            .iter()
            .map(|place| {
                json!({
                    "place": place.name,
                    "acquired": place.counts.acquired,
                    "contended": place.counts.contended,
                    "waited_ns": place.counts.waited,
                    "longest_wait_ns": place.counts.longest_wait,
                    "mean_waiters": self.share(place.counts.waited),
                    "most_waiters": place.counts.most_waiters,
                    "holds": place.counts.holds,
                    "held_ns": place.counts.held,
                    "held_share": self.share(place.counts.held),
                    "longest_hold_ns": place.counts.longest_hold,
                    "waited_by": links(&place.waited_by),
                    "held_by": links(&place.held_by),
                    "mutexes": place.mutexes.iter().map(|mutex| json!({
                        "address": mutex.address.map(|address| format!("{address:#x}")),
                        "acquired": mutex.counts.acquired,
                        "contended": mutex.counts.contended,
                        "waited_ns": mutex.counts.waited,
                        "held_ns": mutex.counts.held,
                    })).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "schema": 1,
            "provenance": { "source": "hardware", "clock": "timestamp counter or monotonic clock" },
            "lock": chosen.lock,
            "wait": chosen.wait.name(),
            "rwlock": chosen.rwlock,
            "rwlocks_of_glibc": self.rwlocks_of_glibc,
            "exit": status,
            "interposed": self.images > 0,
            "kept_by_glibc": {
                "mutexes": self.kept_mutexes,
                "operations": self.kept_operations,
                "conditions": self.kept_conditions,
                "rwlocks": self.kept_rwlocks,
            },
            "outside_queue": self.outside,
            "sleepers": {
                "sleeps": self.sleeps,
                "handoffs": self.handoffs,
                "idle_s": self.idle,
                "passed": self.passes,
            },
            "seconds": self.seconds,
            "profile": profiled.then_some(places),
        })
    }
}

/// Returns the stacks that waited or held, as JSON.
fn links(side: &[(String, u64, f64)]) -> Vec<Value> {
    side.iter()
        .map(|(who, count, time)| json!({ "who": who, "count": count, "ns": time }))
        .collect()
}
