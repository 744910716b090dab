//! The advice for programs: one document, whose figures are those of the report.

use crate::here::Here;
use crate::question::Question;
use crate::runs::Advice;
use crate::validation;
use crate::verdict::Verdict;
use crate::words::{Summary, not_seen, paragraph};
use locklab_replay::{Growth, Program};
use locklab_sim::Replayed;
use locklab_trace::Info;
use serde_json::{Map, Value, json};

fn run_json(run: &Replayed) -> Value {
    json!({
        "threads_at_work": run.rate,
        "acquisitions_per_s": run.acquisitions_per_s,
        "wait_p50_ns": run.wait.p50,
        "wait_p99_ns": run.wait.p99,
        "waited": run.waited,
        "cpus_burnt": run.burnt,
        "jain": run.jain,
        "forced_waits": run.forced,
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    json!({
        "ratio": verdict.ratio,
        "ratio_low": verdict.low,
        "ratio_high": verdict.high,
        "class": verdict.class.word(),
    })
}

/// The fields of the document; `confirm` is the command that confirms the advice.
pub(crate) fn data(
    advice: &Advice,
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
    (info, confirm): (&Info, Option<String>),
) -> Map<String, Value> {
    let recorded = &program.recorded;
    let points = summaries.iter().map(|summary| {
        let point = summary.point;
        let today = point.today[0].rate.max(1e-12);
        json!({
            "machine": question.machines[point.machine].name,
            "threads": point.threads,
            "running": point.running,
            "today": run_json(&point.today[0]),
            "ideal": { "run": run_json(&point.ideal[0]), "verdict": verdict_json(&summary.bound) },
            "limit": summary.limit(question),
            "locks": summary.locks.iter().map(|(number, verdict)| json!({
                "name": question.locks[*number].name(),
                "verdict": verdict_json(verdict),
                "run": point.locks[*number].as_ref().ok().map(|runs| run_json(&runs[0])),
            })).collect::<Vec<_>>(),
            "failed": point.locks.iter().zip(&question.locks).filter_map(|(runs, lock)| {
                Some(json!({ "name": lock.name(), "why": runs.as_ref().err()? }))
            }).collect::<Vec<_>>(),
            "what_ifs": point.what_ifs.iter().map(|(name, run)| json!({
                "name": name,
                "ratio": run.as_ref().ok().map(|run| run.rate / today),
            })).collect::<Vec<_>>(),
        })
    });
    let advised = match advice.gate.passes() {
        true => json!(paragraph(advice, summaries, program, question)),
        false => Value::Null,
    };
    let fields = [
        ("schema", json!(1)),
        ("kind", json!("advice")),
        (
            "provenance",
            json!({ "source": "simulation", "recorded_on": info.machine }),
        ),
        ("command", json!(info.command)),
        ("advice", advised),
        ("confirm", json!(confirm)),
        (
            "validation",
            json!(validation::sentences(
                summaries.iter().map(|s| s.point),
                question
            )),
        ),
        (
            "gate",
            json!({
                "passes": advice.gate.passes(),
                "ratio": advice.gate.ratio(),
                "recorded_threads_at_work": advice.gate.recorded,
                "simulated_threads_at_work": advice.gate.simulated.rate,
                "machine": question.here.name,
                "replayed_here": match &advice.gate.here {
                    Here::Rate(ratio) => json!({ "ratio": ratio, "passes": advice.gate.passes_here() }),
                    Here::Not(why) => json!({ "why": why }),
                },
                "fewer_threads": advice.gate.fewer.as_ref().map(|fewer| json!({
                    "threads": fewer.threads,
                    "ratio": fewer.ratio.as_ref().ok(),
                    "why": fewer.ratio.as_ref().err(),
                    "holds_longer": fewer.growth.as_ref().ok().map(|growth| growth.times),
                    "power": fewer.growth.as_ref().ok().map(Growth::overall),
                })),
                "not_seen": if advice.gate.passes() {
                    Vec::new()
                } else {
                    not_seen(program, &advice.gate)
                },
            }),
        ),
        (
            "recorded",
            json!({
                "window_ns": recorded.window_ns,
                "acquisitions": recorded.acquisitions,
                "threads_at_work": recorded.rate(),
                "waiting_share": recorded.waiting(),
                "preempted_ns": recorded.preempted_ns,
                "unmatched_waits": recorded.unmatched(),
                "threads": program.threads.len(),
                "scaling_threads": program.scaling_threads(),
            }),
        ),
        ("points", points.collect()),
    ];
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
