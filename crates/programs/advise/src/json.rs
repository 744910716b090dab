//! The advice for programs: one document, whose figures are those of the report.

use crate::here::Here;
use crate::question::Question;
use crate::runs::Advice;
use crate::validation;
use crate::verdict::Verdict;
use crate::words::{Context, Summary, not_seen};
use locklab_replay::{Growth, Program};
use locklab_sim::Replayed;
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

/// Returns the fields of the document; `confirm` is the command that confirms the advice.
pub(crate) fn data(
    advice: Option<&Advice>,
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
    (context, words, confirm): (&Context<'_>, &str, Option<String>),
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
                "band": advice
                    .filter(|advice| advice.gate.gives_sizes())
                    .map(|advice| verdict.widened(advice.gate.spread())),
                "run": point.locks[*number].as_ref().ok().map(|runs| run_json(&runs[0])),
            })).collect::<Vec<_>>(),
            "failed": point.locks.iter().zip(&question.locks).filter_map(|(runs, lock)| {
                Some(json!({ "name": lock.name(), "why": runs.as_ref().err()?.to_string() }))
            }).collect::<Vec<_>>(),
            "what_ifs": point.what_ifs.iter().map(|(name, run)| json!({
                "name": name,
                "ratio": run.as_ref().ok().map(|run| run.rate / today),
            })).collect::<Vec<_>>(),
        })
    });
    let info = context.info;
    let fields = [
        ("schema", json!(1)),
        ("kind", json!("advice")),
        (
            "provenance",
            json!({ "source": "simulation", "recorded_on": info.machine }),
        ),
        ("command", json!(info.command)),
        ("advice", json!(words)),
        ("bound", context.judged.bound.json()),
        (
            "waiting",
            json!(context.used.spent().map(|spent| spent.json())),
        ),
        ("confirm", json!(confirm)),
        (
            "validation",
            json!(validation::sentences(
                summaries.iter().map(|s| s.point),
                question
            )),
        ),
        ("gate", gate(advice, program, question, context)),
        (
            "recorded",
            json!({
                "window_ns": recorded.window_ns,
                "acquisitions": recorded.acquisitions,
                "threads_at_work": recorded.rate(),
                "waiting_share": context.judged.bound.share,
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

/// Returns how far the model is from the recording.
fn gate(
    advice: Option<&Advice>,
    program: &Program,
    question: &Question,
    context: &Context<'_>,
) -> Value {
    let Some(advice) = advice else {
        return json!({ "passes": false, "why": context.not_simulated });
    };
    let gate = &advice.gate;
    json!({
        "passes": gate.passes(),
        "gives_sizes": gate.gives_sizes(),
        "ratio": gate.ratio(),
        "recorded_threads_at_work": gate.recorded,
        "simulated_threads_at_work": gate.simulated.rate,
        "machine": question.here.name,
        "repeated_delays": context.repeated,
        "forced_waits": gate.forced(),
        "replayed_here": match &gate.here {
            Here::Rate(ratio) => json!({ "ratio": ratio }),
            Here::Not(why) => json!({ "why": why }),
        },
        "fewer_threads": gate.fewer.as_ref().map(|fewer| json!({
            "threads": fewer.threads,
            "ratio": fewer.ratio.as_ref().ok(),
            "why": fewer.ratio.as_ref().err(),
            "holds_longer": fewer.growth.as_ref().ok().map(|growth| growth.times),
            "power": fewer.growth.as_ref().ok().map(Growth::overall),
        })),
        "not_seen": not_seen(program, gate),
    })
}
