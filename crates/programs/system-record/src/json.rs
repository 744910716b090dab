//! A recording as JSON.

use crate::found::{Findings, Found};
use crate::kernel_waits::KernelUse;
use crate::tables::{kernel_use, program_use};
use crate::waits::{Use, Waits};
use crate::words::{notes, verdict};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the findings as JSON; `file` is that of the recording.
pub(crate) fn json(findings: &Findings, file: &Path) -> Value {
    let head = &findings.events.head;
    let mut value = json!({
        "schema": 1,
        "provenance": { "source": "hardware", "machine": head.machine },
        "source": head.source,
        "command": head.command,
        "file": file,
        "recorded_ns": head.length,
        "windows": findings.events.windows().map(|windows| json!({
            "count": windows.count,
            "share": windows.share,
        })),
        "cpus": head.cpus,
        "cpus_of_others": head.others,
        "ended": head.stopped,
        "events": findings.events.events.len(),
        "lost_events": head.lost,
        "lost_share": findings.lost(),
        "waiting_share": findings.bound.share,
        "bound": findings.bound.json(),
        "account": findings.times.json(),
        "verdict": verdict(findings),
        "notes": notes(findings),
    });
    let fields = match &findings.found {
        Found::Program(found) => program(findings, found),
        Found::Kernel(found) => kernel(found),
    };
    if let (Value::Object(all), Value::Object(fields)) = (&mut value, fields) {
        all.extend(fields);
    }
    value
}

fn program(findings: &Findings, found: &Waits) -> Value {
    let used = program_use(findings, found);
    json!({
        "threads": found.threads,
        "runtime": findings.runtime.map(|runtime| runtime.name),
        "conditions_ns": found.conditions,
        "barriers_ns": found.barriers,
        "parked_ns": found.parked,
        "untold_ns": found.untold,
        "asleep_ns": found.asleep,
        "futex_waits": found.calls,
        "stacks_early": found.early,
        "stacks_unnamed": found.unnamed,
        "locks": found.locks.iter().map(|lock| json!({
            "name": lock.place(),
            "kind": lock.family,
            "process": lock.process,
            "address": lock.address.map(|address| format!("{address:#x}")),
            "counts": counts(&lock.all),
            "spent": spent(&lock.all),
        })).collect::<Vec<_>>(),
        "sites": used.sites.iter().map(|site| json!({
            "name": site.name,
            "counts": site.counts.json(),
        })).collect::<Vec<_>>(),
    })
}

fn counts(used: &Use) -> Value {
    json!({
        "contended": used.waits,
        "waited_ns": used.waited,
        "spun_ns": used.spun,
        "longest_wait_ns": used.longest,
    })
}

fn spent(used: &Use) -> Value {
    json!({
        "holder_working_ns": used.parts.working,
        "holder_preempted_ns": used.parts.preempted,
        "holder_asleep_ns": used.parts.asleep,
        "in_line_ns": used.parts.in_line,
        "waking_ns": used.parts.waking,
        "unknown_ns": used.parts.unknown,
    })
}

fn kernel(found: &KernelUse) -> Value {
    json!({
        "waits": found.waits,
        "waited_ns": found.waited,
        "unmatched": found.unmatched,
        "callers": kernel_use(found).iter().map(|used| json!({
            "name": used.name,
            "kind": used.kind,
            "locks": used.locks,
            "counts": used.counts.json(),
        })).collect::<Vec<_>>(),
    })
}
