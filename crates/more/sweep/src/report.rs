//! The reports on a sweep: the plan before it, and the summary after it, as a
//! document for every form of output.

use crate::collect::Collected;
use crate::models::Models;
use crate::over_threads;
use crate::own_locks;
use crate::plan::{Block, Plan};
use crate::regime::Regime;
use crate::summary::{OfLock, OfRegime, Says, Summary};
use locklab_document::{
    Document, Grid, GridCell, GridRow, Medium, Part, Section, Shade, mark, render,
};
use locklab_judge::Verdict;
use locklab_lab::VERSION;
use locklab_lab::experiment::{Facts, Labels};
use locklab_modelled::score;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Returns the facts of a plan: machines, locks, cells, replicates, runs.
#[must_use]
pub(crate) fn facts(plan: &Plan) -> Facts {
    let file = &plan.file;
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let machines: Vec<&str> = plan.machines.iter().map(|m| m.name.as_str()).collect();
    let mut baselines: Vec<&str> = plan.pairs.iter().map(|p| p.baseline.as_str()).collect();
    baselines.dedup();
    let mut facts = vec![
        fact(
            "Machines",
            format!("{}: {}", machines.len(), machines.join(", ")),
        ),
        fact(
            "Locks",
            format!(
                "{} compared with {}",
                count(plan.pairs.len(), "lock"),
                baselines.join(", ")
            ),
        ),
        fact(
            "Cells",
            format!(
                "{} over all machines, {} workload{}",
                plan.cells(),
                file.workloads.len(),
                if file.workloads.len() == 1 { "" } else { "s" }
            ),
        ),
        fact(
            "Replicates",
            match file.bands {
                1 => format!(
                    "{} (seed {})",
                    count(file.seeds as usize, "seed"),
                    file.seed
                ),
                bands => format!(
                    "{} (seed {}), on {bands} machines drawn from each model's band",
                    count(file.seeds as usize, "seed"),
                    file.seed
                ),
            },
        ),
        fact("Runs", format!("{}, each of two locks", plan.runs())),
    ];
    let own: Vec<String> = plan
        .pairs
        .iter()
        .filter_map(own_locks::sources)
        .flatten()
        .map(|(name, source)| format!("{name} (source {source})"))
        .collect::<std::collections::BTreeSet<String>>()
        .into_iter()
        .collect();
    if !own.is_empty() {
        facts.push(fact("Your own", own.join(", ")));
    }
    if !plan.notes.is_empty() {
        facts.push(fact("Left out", plan.notes.join(" ")));
    }
    facts
}

/// Returns the estimated times on one core, here, and on a cluster; `words` formats a
/// time.
#[must_use]
pub(crate) fn times(core: Duration, cores: usize, words: impl Fn(Duration) -> String) -> Facts {
    let on = |cores: usize| words(core / u32::try_from(cores.max(1)).unwrap_or(u32::MAX));
    vec![
        ("One core".into(), format!("about {}", words(core))),
        (
            "This machine".into(),
            format!("about {} on its {cores} cores", on(cores)),
        ),
        (
            "N nodes like it".into(),
            format!("about {} on 10, {} on 100", on(10 * cores), on(100 * cores)),
        ),
    ]
}

/// Returns the report on what was collected. `busy` is the share of the time that this
/// machine's cores worked, if they carried it out.
#[must_use]
pub(crate) fn document(models: &Models, collected: &Collected, busy: Option<f64>) -> Document {
    let summary = &Summary::new(&models.plan, &collected.figures);
    let plan = &models.plan;
    let title = match plan.file.title.as_str() {
        "" => "Sweep",
        title => title,
    };
    let mut head: Facts = vec![(
        "Figures".into(),
        format!(
            "simulation: {} modelled machine{}; no figure was measured",
            plan.machines.len(),
            if plan.machines.len() == 1 { "" } else { "s" }
        ),
    )];
    head.extend(facts(plan));
    head.push(("Tool".into(), VERSION.into()));
    let mut document = Document {
        title: title.to_owned(),
        head,
        labels: Labels::new("baseline", "experiment"),
        data: data(models, collected, summary),
        ..Document::default()
    };
    document.push(about(plan));
    if !collected.missing.is_empty() {
        document.push(missing(collected));
    }
    for machine in &plan.machines {
        let regimes = || summary.regimes.iter().filter(|r| r.machine == machine.name);
        if regimes().next().is_some() {
            document.push(of_machine(machine.name.as_str(), regimes()));
        }
    }
    let pictures = over_threads::sections(plan, &collected.figures);
    document.sections.extend(pictures);
    for regime in Regime::ALL {
        document.sections.extend(heat_maps(plan, summary, regime));
    }
    document.push(Section::new("Caveats").items(caveats(plan, collected)));
    if let Some(busy) = busy {
        let text = format!("The cores were busy {:.1} % of the time.", 100.0 * busy);
        document.push(Section::new("").prose(text));
        document.data.insert("busy".into(), json!(busy));
    }
    document
}

fn about(plan: &Plan) -> Section {
    Section::new("Locks that no other beats")
        .prose(format!(
            "One lock beats another in a regime if two things hold over its cells in every \
             replicate: it is ahead by more than {} % in throughput or in fairness, and it is \
             behind by more than that in neither. Each lock that no other beats is listed with \
             two figures. The first is its throughput against the baseline: the geometric mean \
             over the cells, and of that the median over the replicates. The second is Jain's \
             index of fairness.",
            plan.file.delta
        ))
        .note(Regime::MEANING)
}

fn of_machine<'a>(name: &str, regimes: impl Iterator<Item = &'a OfRegime>) -> Section {
    let mut section = Section::minor(name);
    let mut facts = Facts::new();
    for regime in regimes {
        let mut locks: Vec<&OfLock> = regime.locks.iter().filter(|l| l.never_worse).collect();
        let throughput = |lock: &OfLock| lock.throughput.map_or(0.0, |t| t.median);
        locks.sort_by(|a, b| {
            throughput(b)
                .total_cmp(&throughput(a))
                .then_with(|| a.lock.cmp(&b.lock))
        });
        let words: Vec<String> = locks
            .iter()
            .map(|lock| {
                let figure = |spread: Option<crate::summary::Quantiles>| {
                    spread.map_or_else(|| "-".into(), |s| format!("{:.2}", s.median))
                };
                format!(
                    "{} {} {}",
                    lock.lock,
                    figure(lock.throughput),
                    figure(lock.fairness)
                )
            })
            .collect();
        let cells = match regime.cells {
            1 => "1 cell".to_owned(),
            n => format!("{n} cells"),
        };
        let text = if words.is_empty() {
            format!("{cells}: no lock ran in all of them")
        } else {
            format!("{cells}: {}", words.join(", "))
        };
        facts.push((regime.regime.words().into(), text));
    }
    section = section.facts(facts);
    section
}

/// Returns the heat maps of a regime, locks by machines, one for each baseline.
fn heat_maps(plan: &Plan, summary: &Summary, regime: Regime) -> Vec<Section> {
    let of_regime: Vec<&OfRegime> = summary
        .regimes
        .iter()
        .filter(|r| r.regime == regime)
        .collect();
    let mut baselines: Vec<&str> = of_regime.iter().map(|r| r.baseline.as_str()).collect();
    baselines.sort_unstable();
    baselines.dedup();
    let mut sections = Vec::new();
    for baseline in baselines {
        let shown: Vec<&&OfRegime> = of_regime
            .iter()
            .filter(|r| r.baseline == baseline)
            .collect();
        let mut locks: Vec<&str> = Vec::new();
        for pair in plan.pairs.iter().filter(|pair| pair.baseline == baseline) {
            locks.push(&pair.experiment);
        }
        let rows = locks.iter().map(|lock| GridRow {
            name: (*lock).to_owned(),
            flag: String::new(),
            cells: shown
                .iter()
                .map(|of| {
                    let found = of.locks.iter().find(|l| l.lock == **lock);
                    found.and_then(|lock| cell(lock, of))
                })
                .collect(),
        });
        let grid = Grid {
            row_title: "lock".into(),
            column_title: "machine".into(),
            columns: shown.iter().map(|of| of.machine.clone()).collect(),
            rows: rows.collect(),
        };
        let section = Section::new(format!(
            "Heat map, {}: throughput against {baseline}",
            regime.words()
        ));
        sections.push(
            section
                .only(Medium::Page)
                .with(Part::Grid(grid))
                .with(Part::Legend(
                    [
                        ("+", "faster in nearly every replicate"),
                        ("-", "slower in nearly every replicate"),
                        ("=", "within the margin in nearly every replicate"),
                        ("?", "the replicates do not agree"),
                        ("*", "no other lock beats it"),
                    ]
                    .map(|(sign, meaning)| (sign.to_owned(), meaning.to_owned()))
                    .into(),
                )),
        );
    }
    sections
}

fn cell(lock: &OfLock, of: &OfRegime) -> Option<GridCell> {
    let throughput = lock.throughput?;
    let verdict = match lock.says? {
        Says::Better => Verdict::Better,
        Says::Worse => Verdict::Worse,
        Says::Flat => Verdict::Flat { nonzero: false },
        Says::Unclear => Verdict::Unclear {
            detectable: None,
            pairs_for_flat: None,
        },
    };
    let fairness = lock.fairness.map_or(f64::NAN, |f| f.median);
    Some(GridCell {
        value: format!("{:.2}", throughput.median),
        mark: format!(
            "{}{}",
            mark(&verdict),
            if lock.never_worse { "*" } else { "" }
        ),
        shade: Shade::of(&verdict, Some(throughput.median)),
        detail: format!(
            "{} on {}, {}: {:.3} of {} ({:.3} to {:.3}), fairness {fairness:.3}, {} of {} \
             cells{}",
            lock.lock,
            of.machine,
            of.regime.words(),
            throughput.median,
            of.baseline,
            throughput.low,
            throughput.high,
            lock.cells,
            of.cells,
            lock.beaten_by
                .as_ref()
                .map_or_else(String::new, |by| format!("; beaten by {by}"))
        ),
    })
}

fn missing(collected: &Collected) -> Section {
    const SHOWN: usize = 12;
    let chunks = collected.missing.len();
    let mut items: Vec<String> = collected
        .missing
        .iter()
        .take(SHOWN)
        .map(|missing| {
            format!(
                "{}: {} runs; {}",
                missing.task,
                missing.units.end - missing.units.start,
                missing.why
            )
        })
        .collect();
    if chunks > SHOWN {
        items.push(format!("{} more chunks, in --json", chunks - SHOWN));
    }
    Section::new("Missing")
        .prose(format!(
            "{} runs are missing. All figures below are of the other runs.",
            collected.missing_runs()
        ))
        .items(items)
}

fn caveats(plan: &Plan, collected: &Collected) -> Vec<String> {
    let mut items = vec![
        "Every figure is simulated on a model. The sweep varies the assumptions of a model only \
         if the file says bands. 'locklab machine show' prints them."
            .to_owned(),
        "A regime joins cells of several lengths and numbers of threads. The store has each cell \
         ('locklab results list --store')."
            .to_owned(),
    ];
    let questions = |block: &Block| {
        let spec = plan.spec(block, &plan.pairs[0]);
        score::questions(&spec, &plan.machines[block.machine])
    };
    let asked: BTreeSet<_> = plan.blocks.iter().flat_map(questions).collect();
    items.extend(score::sentences(asked));
    for ((machine, lock), (runs, why)) in &collected.failed {
        items.push(format!(
            "{lock} on {machine}: {runs} samples failed and are left out. The last one failed \
             because {why}"
        ));
    }
    items.extend(collected.clocks.iter().cloned());
    items
}

fn data(
    models: &Models,
    collected: &Collected,
    summary: &Summary,
) -> Map<String, serde_json::Value> {
    let plan = &models.plan;
    let machines: Vec<&str> = plan.machines.iter().map(|m| m.name.as_str()).collect();
    let missing: Vec<serde_json::Value> = collected
        .missing
        .iter()
        .map(|missing| {
            json!({
                "chunk": missing.task.number(),
                "runs": missing.units.end - missing.units.start,
                "why": missing.why,
                "log": models.folder.log(&missing.task),
            })
        })
        .collect();
    let failed: Vec<serde_json::Value> = collected
        .failed
        .iter()
        .map(|((machine, lock), (samples, why))| {
            json!({ "machine": machine, "lock": lock, "samples": samples, "why": why })
        })
        .collect();
    let fields = [
        ("schema", json!(1)),
        ("kind", json!("sweep")),
        (
            "provenance",
            json!({ "source": "simulation", "name": machines.join(", ") }),
        ),
        ("runs", json!(plan.runs())),
        ("store", json!(models.folder.store())),
        ("caveats", json!(caveats(plan, collected))),
        ("missing", json!(missing)),
        ("failed", json!(failed)),
        ("regimes", json!(summary.regimes)),
    ];
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns a plan as text, with its estimated times.
#[must_use]
pub(crate) fn plan_text(plan: &Plan, times: &Facts) -> String {
    let mut document = Document {
        title: match plan.file.title.as_str() {
            "" => "Sweep".to_owned(),
            title => title.to_owned(),
        },
        head: facts(plan),
        labels: Labels::new("baseline", "experiment"),
        ..Document::default()
    };
    document
        .push(Section::new("Time, estimated from runs drawn from the plan").facts(times.clone()));
    render::text(&document, render::Colour::Plain)
}

/// Returns a plan as JSON.
#[must_use]
pub(crate) fn plan_json(plan: &Plan, core: Duration) -> serde_json::Value {
    let machines: Vec<&str> = plan.machines.iter().map(|m| m.name.as_str()).collect();
    let pairs: Vec<[&str; 2]> = plan
        .pairs
        .iter()
        .map(|pair| [pair.baseline.as_str(), pair.experiment.as_str()])
        .collect();
    json!({
        "schema": 1,
        "dry_run": true,
        "kind": "sweep",
        "machines": machines,
        "pairs": pairs,
        "cells": plan.cells(),
        "replicates": plan.replicates(),
        "runs": plan.runs(),
        "left_out": plan.notes,
        "core_seconds": core.as_secs_f64(),
    })
}
