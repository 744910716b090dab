//! The report on a sweep over real machines: a row for each machine, and the
//! cells on which the machines agree.
//!
//! Cells of two machines correspond if the file describes them alike: "all"
//! threads may be 8 on one machine and 128 on another.

use crate::file::{Part, Threads};
use crate::folder::Status;
use crate::machines::Machines;
use crate::task::{Missing, Task};
use locklab_document::{Column, ColumnGroup, Document, Part as Shown, Section, Table};
use locklab_host::error::Error;
use locklab_lab::VERSION;
use locklab_lab::experiment::{AT_ONCE, Experiment, Facts, Labels, Provenance};
use locklab_lab::store::Store;
use locklab_lab::verdicts::judge;
use locklab_workload::Mix;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The verdict on one cell of one machine.
#[derive(Clone, Debug, Serialize)]
struct CellVerdict {
    /// Pair of locks, and the cell as the file describes it.
    #[serde(skip)]
    described: Described,
    baseline: String,
    experiment: String,
    threads: u64,
    critical: u64,
    non_critical: u64,
    verdict: &'static str,
    ratio: Option<f64>,
}

/// A pair of locks, then workload and cell as the file describes them.
type Described = (String, String);

/// The verdicts on one machine.
#[derive(Clone, Debug, Serialize)]
struct Machine {
    feature: String,
    node: String,
    machine: String,
    cpus: usize,
    fingerprint: Facts,
    cells: Vec<CellVerdict>,
}

/// Describes what was collected of a sweep over machines.
#[derive(Debug, Default)]
pub(crate) struct CollectedMachines {
    machines: Vec<Machine>,
    /// Holds what is missing of each node that is not complete.
    pub(crate) missing: Vec<Missing>,
}

/// Merges all shards, and judges them.
///
/// # Errors
/// The store cannot be written, or a shard's experiments cannot be judged.
pub(crate) fn collect(sweep: &Machines) -> Result<CollectedMachines, Error> {
    let mut collected = CollectedMachines::default();
    let store = sweep.folder.new_store()?;
    let merged = sweep.features.iter().try_for_each(|feature| {
        let task = Task::Node(feature.clone());
        let status = sweep.folder.status(&task);
        let (mut done, mut why) = (status.as_ref().map_or(0, |status| status.done), None);
        let path = sweep.folder.shard(&task);
        if path.exists() {
            match Store::open_left(&path) {
                Ok(shard) => {
                    store.merge(&shard)?;
                    let status = status.unwrap_or_default();
                    let machine = machine(sweep, feature, &status, &shard)?;
                    collected.machines.extend(machine);
                }
                Err(e) => (done, why) = (0, Some(e.to_string())),
            }
        }
        let of = sweep.experiments();
        if done < of {
            collected.missing.push(Missing {
                why: why.unwrap_or_else(|| sweep.folder.why_missing(&task)),
                units: done..of,
                task,
            });
        }
        Ok(())
    });
    drop(store);
    sweep.folder.replace_store(merged)?;
    Ok(collected)
}

fn machine(
    sweep: &Machines,
    feature: &str,
    status: &Status,
    shard: &Store,
) -> Result<Option<Machine>, Error> {
    let mut of = Machine {
        feature: feature.to_owned(),
        node: status.node.clone(),
        machine: String::new(),
        cpus: status.cpus.unwrap_or_default(),
        fingerprint: Facts::new(),
        cells: Vec::new(),
    };
    for (id, _) in shard.keys()? {
        let experiment = shard.experiment(id)?;
        if let Provenance::Hardware(name) = &experiment.provenance {
            of.machine.clone_from(name);
        }
        of.fingerprint.clone_from(&experiment.facts);
        of.cells.extend(cells(sweep, of.cpus, &experiment)?);
    }
    Ok((!of.cells.is_empty()).then_some(of))
}

fn cells(
    sweep: &Machines,
    cpus: usize,
    experiment: &Experiment,
) -> Result<Vec<CellVerdict>, Error> {
    let verdicts = judge(experiment).map_err(|why| Error::Failed(why.to_string()))?;
    let labels = &experiment.labels;
    let work = experiment.spec["work"].as_str().unwrap_or_default();
    let workloads = sweep.file.workloads.iter();
    let of_work = workloads.filter(|w| w.work.word() == work);
    let in_file: Vec<Threads> = of_work.flat_map(|w| w.threads.iter().copied()).collect();
    let mix = Mix::deserialize(&experiment.spec["mix"]).unwrap_or_default();
    let mut cells: Vec<CellVerdict> = Vec::new();
    for judged in &verdicts.cells {
        let key = &experiment.cells[judged.cell].key;
        let Some([threads, critical, non_critical]) = key.place() else {
            continue;
        };
        let is_it = |n: &&Threads| n.on(cpus).is_some_and(|n| n as u64 == threads);
        let Some(words) = in_file.iter().find(is_it).map(|n| threads_words(*n)) else {
            continue;
        };
        let mut cell = match work {
            "fstat" => format!("fstat, {words}, non-critical {non_critical}"),
            _ => format!("{words}, critical {critical}, non-critical {non_critical}"),
        };
        let locks = key.number(AT_ONCE).and_then(|n| u32::try_from(n).ok());
        for words in mix.words(&[locks.unwrap_or(1)]) {
            cell.push_str(&format!("; {words}"));
        }
        cells.push(CellVerdict {
            described: (
                format!("{} against {}", labels.experiment, labels.baseline),
                cell,
            ),
            baseline: labels.baseline.clone(),
            experiment: labels.experiment.clone(),
            threads,
            critical,
            non_critical,
            verdict: judged.verdict().map_or("invalid", |v| v.word()),
            ratio: judged.ratio().map(|ratio| ratio.value),
        });
    }
    Ok(cells)
}

fn threads_words(threads: Threads) -> String {
    match threads {
        Threads::Number(1) => "1 thread".into(),
        Threads::Number(n) => format!("{n} threads"),
        Threads::Part(Part::Quarter) => "a quarter of the CPUs".into(),
        Threads::Part(Part::Half) => "half the CPUs".into(),
        Threads::Part(Part::All) => "all CPUs".into(),
    }
}

/// Returns the report on what was collected.
pub(crate) fn document(sweep: &Machines, collected: &CollectedMachines) -> Document {
    let machines = &collected.machines;
    let noun = |n: &Missing| format!("{} of {} pairs of locks", n.units.start, n.units.end);
    let missing: Vec<String> = collected
        .missing
        .iter()
        .map(|missing| format!("{}: {}; {}", missing.task, noun(missing), missing.why))
        .collect();
    let title = match sweep.file.title.as_str() {
        "" => "Sweep over machines".to_owned(),
        title => title.to_owned(),
    };
    let mut document = Document {
        title,
        head: vec![
            (
                "Figures".into(),
                format!(
                    "hardware: measured on {} machine{}, each by itself",
                    machines.len(),
                    if machines.len() == 1 { "" } else { "s" }
                ),
            ),
            ("Tool".into(), VERSION.into()),
        ],
        labels: Labels::new("baseline", "experiment"),
        data: data(sweep, machines, &missing),
        ..Document::default()
    };
    if !missing.is_empty() {
        document.push(Section::new("Missing").items(missing));
    }
    if machines.is_empty() {
        return document;
    }
    let facts = machines.iter().map(|of| {
        let text = format!("{} ({})", of.machine, of.node);
        (of.feature.clone(), text)
    });
    document.push(Section::new("Machines").facts(facts.collect()));
    document.push(
        Section::new("Verdicts: cells by machine")
            .with(Shown::Table(table(machines)))
            .note(
                "Each figure is a number of cells: those that are better, worse, shown flat, and \
                 unclear or invalid. Each cell is judged by the pairs of its own machine.",
            ),
    );
    if machines.len() > 1 {
        for section in agreement(machines) {
            document.push(section);
        }
    }
    for of in machines {
        document.push(
            Section::minor(format!("Fingerprint of {}", of.feature))
                .facts(of.fingerprint.clone())
                .folded(true),
        );
    }
    document
}

/// Returns a row for each machine, and a group of columns for each pair of locks.
fn table(machines: &[Machine]) -> Table {
    let mut pairs: Vec<&str> = Vec::new();
    for cell in machines.iter().flat_map(|of| &of.cells) {
        if !pairs.contains(&cell.described.0.as_str()) {
            pairs.push(&cell.described.0);
        }
    }
    let columns = ["better", "worse", "flat", "else"].map(|title| Column::new(title, 6));
    let mut groups = vec![ColumnGroup::new("", vec![Column::new("machine", 10)])];
    groups.extend(
        pairs
            .iter()
            .map(|pair| ColumnGroup::new(*pair, columns.to_vec())),
    );
    let rows = machines.iter().map(|of| {
        let mut row = vec![of.feature.clone()];
        for pair in &pairs {
            let words = of.cells.iter().filter(|cell| cell.described.0 == *pair);
            let mut counts = [0; 4];
            for cell in words {
                counts[match cell.verdict {
                    "better" => 0,
                    "worse" => 1,
                    "flat" => 2,
                    _ => 3,
                }] += 1;
            }
            row.extend(counts.map(|count: usize| count.to_string()));
        }
        row
    });
    Table {
        rows: rows.collect(),
        groups,
    }
}

/// Returns the cells on which all machines agree, those on which two contradict each
/// other, and the number of the others.
fn agreement(machines: &[Machine]) -> Vec<Section> {
    let mut cells: BTreeMap<&Described, Vec<(&str, &'static str)>> = BTreeMap::new();
    for of in machines {
        for cell in &of.cells {
            cells
                .entry(&cell.described)
                .or_default()
                .push((&of.feature, cell.verdict));
        }
    }
    let is_call = |verdict: &str| ["better", "worse", "flat"].contains(&verdict);
    let (mut agreed, mut against, mut open) = (Vec::new(), Vec::new(), 0);
    for ((pair, cell), verdicts) in &cells {
        let calls: Vec<_> = verdicts.iter().filter(|(_, v)| is_call(v)).collect();
        let has = |word: &str| calls.iter().any(|(_, verdict)| *verdict == word);
        if has("better") && has("worse") {
            let each: Vec<String> = calls.iter().map(|(f, v)| format!("{v} on {f}")).collect();
            against.push(format!("{pair}, {cell}: {}", each.join(", ")));
        } else if calls.len() == machines.len() && calls.iter().all(|(_, v)| *v == calls[0].1) {
            agreed.push(format!("{pair}, {cell}: {} on all", calls[0].1));
        } else {
            open += 1;
        }
    }
    let or_none = |items: Vec<String>| {
        if items.is_empty() {
            vec!["None.".into()]
        } else {
            items
        }
    };
    vec![
        Section::new("Where all machines agree").items(or_none(agreed)),
        Section::new("Where one is better and another worse").items(or_none(against)),
        Section::new("").prose(format!(
            "{open} other cells have no verdict on some machine, or are flat on some."
        )),
    ]
}

fn data(sweep: &Machines, machines: &[Machine], missing: &[String]) -> Map<String, Value> {
    let names: Vec<&str> = machines.iter().map(|of| of.machine.as_str()).collect();
    let fields = [
        ("schema", json!(1)),
        ("kind", json!("sweep")),
        (
            "provenance",
            json!({ "source": "hardware", "name": names.join(", ") }),
        ),
        ("store", json!(sweep.folder.store())),
        ("missing", json!(missing)),
        ("machines", json!(machines)),
    ];
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
